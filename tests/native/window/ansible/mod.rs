//! The Ansible collection in contrib/ansible: a real ansible-playbook over real ssh connections. systemctl(1), ip(8) and files
//! show what it did.

mod control;
mod role;
mod wave;
