//! Frames on the wire: ARP, neighbour discovery and ICMP echo, through packet sockets and raw sockets.

pub mod frame;
pub mod icmp;
pub mod packet;
