use crate::model::net::address::*;

const MAC: Mac = Mac([0x02, 0x42, 0x0a, 0x03, 0x01, 0x01]);

fn maker(text: &str, flags: u32, protocol: Option<u8>, reports: bool) -> Maker {
    let mut address = Address::plain("eth0".parse().unwrap(), text.parse().unwrap(), 64);
    (address.flags, address.protocol) = (flags, protocol);
    Maker::of(&address, reports, Some(MAC), GenMode::OfMac)
}

#[test]
fn a_link_local_address_is_the_kernels_only_if_the_kernel_would_make_it() {
    const DERIVED: &str = "fe80::42:aff:fe03:101";
    assert_eq!(maker(DERIVED, PERMANENT, None, false), Maker::Kernel);
    assert_eq!(maker("fe80::88", PERMANENT, None, false), Maker::Admin);
    assert_eq!(maker(DERIVED, PERMANENT, Some(3), true), Maker::Kernel);
    assert_eq!(
        maker(DERIVED, PERMANENT, None, true),
        Maker::Admin,
        "added by hand"
    );
    let stable = PERMANENT | STABLE_PRIVACY;
    assert_eq!(maker("fe80::1234", stable, Some(3), true), Maker::Kernel);
    assert_eq!(
        maker("fe80::1234", PERMANENT, Some(3), true),
        Maker::Admin,
        "made from an earlier MAC"
    );
}

#[test]
fn an_old_kernel_derives_no_address_with_other_attributes_or_without_a_mode() {
    let derived = "fe80::42:aff:fe03:101".parse().unwrap();
    let address = Address::plain("eth0".parse().unwrap(), derived, 64);
    let of = |address: &Address, mode| Maker::of(address, false, Some(MAC), mode);
    assert_eq!(of(&address, GenMode::OfMac), Maker::Kernel);
    assert_eq!(of(&address, GenMode::OfSecret), Maker::Admin);
    assert_eq!(of(&address, GenMode::Nothing), Maker::Admin);
    for change in [
        |address: &mut Address| address.prefix_len = 128,
        |address: &mut Address| address.flags = NODAD,
        |address: &mut Address| address.metric = Some(9),
    ] {
        let mut other = address.clone();
        change(&mut other);
        assert_eq!(of(&other, GenMode::OfMac), Maker::Admin, "{other:?}");
    }
}

#[test]
fn what_routers_advertise_comes_from_the_network() {
    let by_kernel = MANAGETEMPADDR;
    assert_eq!(maker("fd00::1", by_kernel, Some(2), true), Maker::Network);
    assert_eq!(
        maker("fd00::1", 0, Some(2), true),
        Maker::Admin,
        "a program's"
    );
    assert_eq!(
        maker("fd00::1", MANAGETEMPADDR, None, false),
        Maker::Network
    );
    assert_eq!(maker("fd00::1", TEMPORARY, None, true), Maker::Network);
    assert_eq!(maker("fd00::1", MANAGETEMPADDR, None, true), Maker::Admin);
    assert_eq!(maker("fd00::1", 0, None, false), Maker::Admin, "DHCPv6");
    assert_eq!(
        maker("10.0.0.1", TEMPORARY, None, true),
        Maker::Admin,
        "for IPv4 the bit means secondary"
    );
}
