//! Actions that send packets to a link and that no filter refers to yet (`tc actions add`): they outlive the link, without it.

use netlink_sys::protocols::NETLINK_ROUTE;

use super::action::{self, MIRRED_IFINDEX, PARAMETERS, TCA_ACT_OPTIONS};
use super::{KIND, TCA_ACT_TAB};
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::plain::PlainSocket;
use crate::kernel::plain::genl::NESTED;
use crate::kernel::{Errno, Error};
use crate::model::Link;

/// `RTM_GETACTION` (`linux/rtnetlink.h`).
const GET_ACTION: u16 = 50;
/// The size of `struct tcamsg`.
const HEADER: usize = 4;
/// `bindcnt` of `tc_gen`: the number of filters that refer to the action.
const FILTERS: usize = 16;

/// Those of the calling thread's namespace that send packets to a link which can be lost, in words. A list of them marks each action in
/// it (`used_hw_stats` in tc(8)), so none is read where a filter may have one.
pub(in crate::kernel) fn redirects(links: &[Link]) -> Result<Vec<String>, Error> {
    let may_have_one = |link: &Link| {
        let mut objects = link.traffic.objects.iter();
        !link.traffic.lost.is_empty() || objects.any(|one| !one.links.is_empty())
    };
    if links.iter().any(may_have_one) || !links.iter().any(Link::can_be_uplink) {
        return Ok(Vec::new());
    }
    let mut kind = Nested::default();
    kind.push(KIND, b"mirred\0".to_vec());
    let mut first = Nested::default();
    first.push(1 | NESTED, kind.bytes());
    let mut table = Nested::default();
    table.push(TCA_ACT_TAB | NESTED, first.bytes());
    let body = [&[0; HEADER][..], &table.bytes()].concat();
    let socket = PlainSocket::open(NETLINK_ROUTE)?;
    match socket.dump(GET_ACTION, &body) {
        Ok(dump) => Ok(redirects_in(&dump, links)),
        // A kernel without actions.
        Err(Errno::EOPNOTSUPP) => Ok(Vec::new()),
        Err(errno) => Err(errno.into()),
    }
}

fn redirects_in(dump: &[Vec<u8>], links: &[Link]) -> Vec<String> {
    let mut all = Vec::new();
    for message in dump {
        let table = message.get(HEADER..).and_then(Nested::parse);
        let list = table.as_ref().and_then(|table| table.get(TCA_ACT_TAB));
        let Some(list) = list.and_then(Nested::parse) else {
            continue;
        };
        let actions = list.iter().filter_map(|(_, one)| Nested::parse(one));
        all.extend(actions.filter_map(|action| redirect(&action, links)));
    }
    all
}

/// An action in the words of tc(8).
fn redirect(action: &Nested, links: &[Link]) -> Option<String> {
    let options = action.get(TCA_ACT_OPTIONS).and_then(Nested::parse)?;
    let parameters = options.get(PARAMETERS)?;
    let number = |at| word(parameters, at);
    if action::kind(action) != "mirred" || number(FILTERS) != Some(0) {
        return None;
    }
    let index = number(MIRRED_IFINDEX)?;
    let mut links = links.iter().filter(|link| link.can_be_uplink());
    let link = links.find(|link| link.index == index)?;
    Some(format!(
        "action mirred index {} to {}",
        number(0)?,
        link.name
    ))
}
