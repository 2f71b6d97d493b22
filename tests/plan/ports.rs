//! The order in which a bond gets its ports.

use netfix::model::{IfName, LinkKind};

use super::kernel::Kernel;
use super::{About, Case, cases};

/// The links that become ports in a restore, in this order.
fn in_order(case: &Case) -> Vec<IfName> {
    let mut kernel = Kernel::holding(&case.observed);
    loop {
        let (plan, _) = case.plan(&kernel.observe(), None);
        if plan.steps.is_empty() {
            return kernel.enslaved;
        }
        for step in &plan.steps {
            kernel.take(step).expect("the kernel refuses nothing");
        }
        kernel.pass_time();
    }
}

/// Some drivers treat the first port in another way. By ifindex it would be the one whose driver is the fastest.
#[test]
fn the_ports_of_a_bond_come_back_in_their_order() {
    let cases = cases::read::<Case>("plan").into_iter();
    let mut cases = cases.filter(|(folder, _)| folder.ends_with("host-bond-made-and-bare"));
    let (_, mut case) = cases.next().expect("the case");
    let About::Host { devices } = &mut case.about else {
        panic!("not of the host");
    };
    let second: IfName = "eth1".parse().expect("a name");
    devices.insert(second.clone());
    for state in [&mut case.wanted, &mut case.observed] {
        let mut links = state.links.iter();
        let mut port = links
            .find(|link| link.name.as_bytes() == b"eth0")
            .expect("a port")
            .clone();
        (port.name, port.index) = (second.clone(), port.index + 50);
        let hardware = port.hardware.as_mut().expect("a device");
        hardware.bus = Some("0000:02:00.0".to_owned());
        hardware.permanent_mac = Some("52:54:00:00:00:77".parse().expect("a MAC"));
        state.links.push(port);
    }
    let first: IfName = "eth0".parse().expect("a name");
    assert_eq!(in_order(&case), [first.clone(), second.clone()]);
    let mut links = case.wanted.links.iter_mut();
    let bond = links.find(|link| matches!(link.kind, LinkKind::Bond(_)));
    bond.expect("a bond").ports = vec![second.clone(), first.clone()];
    assert_eq!(in_order(&case), [second, first]);
}
