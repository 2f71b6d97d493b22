//! Per-interface settings from the link dump (`IFLA_AF_SPEC`), under the names of their files in `/proc/sys/net`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::OnceLock;

use netlink_packet_core::{DecodeError, NlaBuffer, NlasIterator, Parseable};
use netlink_packet_route::link::AfSpecInet6;

use crate::kernel::codec::nested::word;
use crate::kernel::conf::sysctl;
use crate::model::net::link::sysctl::{Folder, Settings, SysctlKey, Sysctls};
use crate::model::recent::Recent;

/// These are milliseconds in the dump and seconds in their files.
const TIMES: [&str; 4] = [
    "router_probe_interval",
    "router_solicitation_delay",
    "router_solicitation_interval",
    "router_solicitation_max_interval",
];
const MILLISECONDS: i32 = 1000;
/// The one setting that is an unsigned number.
const UNSIGNED: &str = "ioam6_id_wide";

/// `IFLA_INET_CONF` and `IFLA_INET6_CONF` (`linux/if_link.h`), in the attributes of `AF_INET` and `AF_INET6`.
const IFLA_INET_CONF: u16 = 1;
const IFLA_INET6_CONF: u16 = 2;
const IFLA_INET6_TOKEN: u16 = 7;
/// The families of both (`linux/socket.h`).
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// All settings in `IFLA_AF_SPEC` but `mc_forwarding`, which only the kernel changes; and the token of the link for addresses
/// from router advertisements, where one is set.
pub(crate) fn parse(specs: &[u8]) -> Result<(Sysctls, Option<Ipv6Addr>), DecodeError> {
    let (mut sysctls, mut token) = (Sysctls::default(), None);
    for spec in NlasIterator::new(specs) {
        let spec = spec?;
        for part in NlasIterator::new(spec.value()) {
            let part = part?;
            match (spec.kind(), part.kind()) {
                (AF_INET, IFLA_INET_CONF) => {
                    sysctls.ipv4 = known(Folder::Ipv4Conf, part.value());
                }
                (AF_INET6, IFLA_INET6_CONF) => {
                    sysctls.ipv6 = known(Folder::Ipv6Conf, part.value());
                }
                (AF_INET6, IFLA_INET6_TOKEN) => token = decode_token(&part)?,
                _ => {}
            }
        }
    }
    Ok((sysctls, token))
}

/// An unset one is `::`.
fn decode_token(part: &NlaBuffer<&[u8]>) -> Result<Option<Ipv6Addr>, DecodeError> {
    Ok(match AfSpecInet6::parse(part)? {
        AfSpecInet6::Token(token) => Some(token).filter(|token| !token.is_unspecified()),
        _ => None,
    })
}

/// The settings of one folder, and what they were decoded from.
type Decoded = (Folder, Vec<u8>, Settings);

thread_local! {
    /// Those that this thread decoded last.
    static RECENT: RefCell<Recent<Decoded>> = const { RefCell::new(Recent::new()) };
}

/// The settings in an attribute, decoded unless this thread has had the same bytes a moment ago.
fn known(folder: Folder, conf: &[u8]) -> Settings {
    RECENT.with_borrow_mut(|recent| {
        if let Some((_, _, settings)) = recent.find(|one| one.0 == folder && one.1 == conf) {
            return settings.clone();
        }
        let settings = settings(folder, conf);
        recent.add((folder, conf.to_vec(), settings.clone()));
        settings
    })
}

/// The settings of a link dump that this kernel has; those that a shorter dump lacks are zeros.
fn settings(folder: Folder, conf: &[u8]) -> Settings {
    let value = |(key, at): &(SysctlKey, usize)| {
        let value = word(conf, at * size_of::<u32>()).unwrap_or_default();
        let value = match key.as_str() {
            UNSIGNED => value.into(),
            name if TIMES.contains(&name) => (value.cast_signed() / MILLISECONDS).into(),
            _ => value.cast_signed().into(),
        };
        (*key, value)
    };
    Places::of(folder).dumped.iter().map(value).collect()
}

/// The settings of one folder that this kernel has and that its link dump lacks.
pub(crate) fn undumped(folder: Folder) -> &'static [SysctlKey] {
    &Places::of(folder).undumped
}

/// The settings of a folder in the order of the link dump.
pub(crate) fn names(folder: Folder) -> &'static [&'static str] {
    match folder {
        Folder::Ipv4Conf | Folder::Ipv4Neigh => &IPV4,
        Folder::Ipv6Conf | Folder::Ipv6Neigh => &IPV6,
    }
}

/// Where this kernel has the settings of a folder.
struct Places {
    /// The place of each in the dump, in ascending order of the keys.
    dumped: Vec<(SysctlKey, usize)>,
    undumped: Vec<SysctlKey>,
}

impl Places {
    fn of(folder: Folder) -> &'static Self {
        static OF_IPV4: OnceLock<Places> = OnceLock::new();
        static OF_IPV6: OnceLock<Places> = OnceLock::new();
        let find = |names: &[&'static str]| {
            let known = sysctl::known_keys(folder);
            let places = names.iter().enumerate();
            let places = places.map(|(at, name)| (SysctlKey::known(name), at));
            let dumped: BTreeMap<_, _> = places.filter(|(key, _)| known.contains(key)).collect();
            let undumped = known.iter().filter(|key| !dumped.contains_key(key));
            Places {
                undumped: undumped.copied().collect(),
                dumped: dumped.into_iter().collect(),
            }
        };
        let places = match folder {
            Folder::Ipv4Conf | Folder::Ipv4Neigh => &OF_IPV4,
            Folder::Ipv6Conf | Folder::Ipv6Neigh => &OF_IPV6,
        };
        places.get_or_init(|| find(names(folder)))
    }
}

/// The settings of `IFLA_INET_CONF` in their order (`IPV4_DEVCONF_*`, linux/ip.h), by file name (net/ipv4/devinet.c).
const IPV4: [&str; 33] = [
    "forwarding",
    "mc_forwarding",
    "proxy_arp",
    "accept_redirects",
    "secure_redirects",
    "send_redirects",
    "shared_media",
    "rp_filter",
    "accept_source_route",
    "bootp_relay",
    "log_martians",
    "tag",
    "arp_filter",
    "medium_id",
    "disable_xfrm",
    "disable_policy",
    "force_igmp_version",
    "arp_announce",
    "arp_ignore",
    "promote_secondaries",
    "arp_accept",
    "arp_notify",
    "accept_local",
    "src_valid_mark",
    "proxy_arp_pvlan",
    "route_localnet",
    "igmpv2_unsolicited_report_interval",
    "igmpv3_unsolicited_report_interval",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_gratuitous_arp",
    "bc_forwarding",
    "arp_evict_nocarrier",
];

/// The settings of `IFLA_INET6_CONF` in their order (`DEVCONF_*`, linux/ipv6.h), by file name (net/ipv6/addrconf.c).
const IPV6: [&str; 60] = [
    "forwarding",
    "hop_limit",
    "mtu",
    "accept_ra",
    "accept_redirects",
    "autoconf",
    "dad_transmits",
    "router_solicitations",
    "router_solicitation_interval",
    "router_solicitation_delay",
    "use_tempaddr",
    "temp_valid_lft",
    "temp_prefered_lft",
    "regen_max_retry",
    "max_desync_factor",
    "max_addresses",
    "force_mld_version",
    "accept_ra_defrtr",
    "accept_ra_pinfo",
    "accept_ra_rtr_pref",
    "router_probe_interval",
    "accept_ra_rt_info_max_plen",
    "proxy_ndp",
    "optimistic_dad",
    "accept_source_route",
    "mc_forwarding",
    "disable_ipv6",
    "accept_dad",
    "force_tllao",
    "ndisc_notify",
    "mldv1_unsolicited_report_interval",
    "mldv2_unsolicited_report_interval",
    "suppress_frag_ndisc",
    "accept_ra_from_local",
    "use_optimistic",
    "accept_ra_mtu",
    "stable_secret",
    "use_oif_addrs_only",
    "accept_ra_min_hop_limit",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_unsolicited_na",
    "keep_addr_on_down",
    "router_solicitation_max_interval",
    "seg6_enabled",
    "seg6_require_hmac",
    "enhanced_dad",
    "addr_gen_mode",
    "disable_policy",
    "accept_ra_rt_info_min_plen",
    "ndisc_tclass",
    "rpl_seg_enabled",
    "ra_defrtr_metric",
    "ioam6_enabled",
    "ioam6_id",
    "ioam6_id_wide",
    "ndisc_evict_nocarrier",
    "accept_untracked_na",
    "accept_ra_min_lft",
    "force_forwarding",
];
