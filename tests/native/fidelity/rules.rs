//! Rules: attributes of new kernels, and their order.

use super::{comes_back, is_repaired};

#[test]
fn a_rule_for_one_port_is_stored_and_comes_back() {
    is_repaired(
        &[
            "rule add pref 100 ipproto tcp dport 443 lookup 100",
            "-6 rule add pref 100 ipproto udp sport 53 lookup 100",
        ],
        &["rule del pref 100", "-6 rule del pref 100"],
    );
    comes_back(&["rule add pref 100 ipproto tcp dport 443-450 lookup 100"]);
}

#[test]
fn rules_of_one_priority_keep_their_order() {
    is_repaired(
        &[
            "rule add pref 100 from 10.88.1.10 lookup 100",
            "rule add pref 100 fwmark 7 lookup 101",
            "rule add pref 100 to 10.99.0.0/16 lookup 102",
        ],
        &["rule del pref 100 from 10.88.1.10 lookup 100"],
    );
}
