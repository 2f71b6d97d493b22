//! Links that pass on what they receive (`tc filter add … ingress … action mirred … redirect`): their namespace does not see it.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcHandle, TcMessage};

use super::action::{self, PARAMETERS, TCA_ACT_OPTIONS};
use super::{filter, parse};
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::{Error, Socket};
use crate::model::TrafficObject;
use crate::model::net::traffic::{HOOK_INGRESS, OPTIONS};

/// `eaction` of `struct tc_mirred`, and its values `TCA_EGRESS_REDIR` and `TCA_INGRESS_REDIR` (`linux/tc_act/tc_mirred.h`).
const MIRRED_ACTION: usize = 20;
const REDIRECTS: [u32; 2] = [1, 3];

/// Whether the link with that index may pass on all that it receives.
pub(crate) fn passes_on(socket: &mut Socket, index: u32) -> Result<bool, Error> {
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = TcHandle::from(HOOK_INGRESS);
    let filters = match socket.dump(RouteNetlinkMessage::GetTrafficFilter(message)) {
        // No such qdisc, or a kernel without traffic control.
        Err(Error::Kernel(_)) => return Ok(false),
        filters => filters?,
    };
    let mut filters = filters.objects.iter().filter_map(parse);
    Ok(filters.any(|(_, filter)| redirects(&filter)))
}

fn redirects(filter: &TrafficObject) -> bool {
    let options = filter.attribute(OPTIONS).unwrap_or_default();
    let list = Nested::parse(&filter::actions(&filter.kind, options));
    let is_redirect = |action: &[u8]| {
        let action = Nested::parse(action).filter(|action| action::kind(action) == "mirred");
        let options = action.and_then(|action| Nested::parse(action.get(TCA_ACT_OPTIONS)?));
        let options = options.as_ref().and_then(|options| options.get(PARAMETERS));
        let kind = options.and_then(|options| word(options, MIRRED_ACTION));
        kind.is_some_and(|kind| REDIRECTS.contains(&kind))
    };
    list.is_some_and(|list| list.iter().any(|(_, action)| is_redirect(action)))
}
