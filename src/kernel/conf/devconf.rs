//! Per-interface settings from the link dump (`IFLA_AF_SPEC`), under the names of their files in `/proc/sys/net`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::OnceLock;

use netlink_packet_core::{DecodeError, NlaBuffer, NlasIterator, Parseable};
use netlink_packet_route::link::{AfSpecInet, AfSpecInet6, Inet6DevConf, InetDevConf};

use crate::kernel::conf::sysctl;
use crate::model::net::link::sysctl::{Folder, Settings, SysctlKey, Sysctls};
use crate::model::recent::Recent;

/// Timers are milliseconds in the dump and seconds in their files.
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
                    sysctls.ipv4 = known(Folder::Ipv4Conf, &part, decode4)?;
                }
                (AF_INET6, IFLA_INET6_CONF) => {
                    sysctls.ipv6 = known(Folder::Ipv6Conf, &part, decode6)?;
                }
                (AF_INET6, IFLA_INET6_TOKEN) => token = decode_token(&part)?,
                _ => {}
            }
        }
    }
    Ok((sysctls, token))
}

type AttributeBuffer<'a> = NlaBuffer<&'a [u8]>;

fn decode4(part: &AttributeBuffer<'_>) -> Result<Settings, DecodeError> {
    Ok(match AfSpecInet::parse(part)? {
        AfSpecInet::DevConf(conf) => settings(Folder::Ipv4Conf, &ipv4(&conf)),
        _ => Settings::default(),
    })
}

fn decode6(part: &AttributeBuffer<'_>) -> Result<Settings, DecodeError> {
    Ok(match AfSpecInet6::parse(part)? {
        AfSpecInet6::DevConf(conf) => settings(Folder::Ipv6Conf, &ipv6(&conf)),
        _ => Settings::default(),
    })
}

/// An unset one is `::`.
fn decode_token(part: &AttributeBuffer<'_>) -> Result<Option<Ipv6Addr>, DecodeError> {
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
fn known(
    folder: Folder,
    part: &AttributeBuffer<'_>,
    decode: impl FnOnce(&AttributeBuffer<'_>) -> Result<Settings, DecodeError>,
) -> Result<Settings, DecodeError> {
    RECENT.with_borrow_mut(|recent| {
        if let Some((_, _, settings)) = recent.find(|one| one.0 == folder && one.1 == part.value())
        {
            return Ok(settings.clone());
        }
        let settings = decode(part)?;
        recent.add((folder, part.value().to_vec(), settings.clone()));
        Ok(settings)
    })
}

/// The settings of a link dump that this kernel has: the decoder fills the shorter dump of an older kernel with zeros.
fn settings(folder: Folder, pairs: &[(&'static str, i32)]) -> Settings {
    let value = |(name, value): (&str, i32)| {
        if name == UNSIGNED {
            i64::from(value.cast_unsigned())
        } else {
            value.into()
        }
    };
    let places = Places::of(folder).dumped.iter();
    places.map(|(key, at)| (*key, value(pairs[*at]))).collect()
}

/// The settings of one folder that this kernel has and that its link dump lacks.
pub(crate) fn undumped(folder: Folder) -> &'static [SysctlKey] {
    &Places::of(folder).undumped
}

/// Where this kernel has the settings of a folder.
struct Places {
    /// The place of each in the dump, in ascending order of the keys.
    dumped: Vec<(SysctlKey, usize)>,
    undumped: Vec<SysctlKey>,
}

impl Places {
    fn of(folder: Folder) -> &'static Self {
        static IPV4: OnceLock<Places> = OnceLock::new();
        static IPV6: OnceLock<Places> = OnceLock::new();
        let find = |pairs: Vec<(&'static str, i32)>| {
            let known = sysctl::known_keys(folder);
            let places = pairs.iter().enumerate();
            let places = places.map(|(at, (name, _))| (SysctlKey::known(name), at));
            let dumped: BTreeMap<_, _> = places.filter(|(key, _)| known.contains(key)).collect();
            let undumped = known.iter().filter(|key| !dumped.contains_key(key));
            Places {
                undumped: undumped.copied().collect(),
                dumped: dumped.into_iter().collect(),
            }
        };
        match folder {
            Folder::Ipv4Conf | Folder::Ipv4Neigh => {
                IPV4.get_or_init(|| find(ipv4(&InetDevConf::default())))
            }
            Folder::Ipv6Conf | Folder::Ipv6Neigh => {
                IPV6.get_or_init(|| find(ipv6(&Inet6DevConf::default())))
            }
        }
    }
}

/// Fields under their own names.
macro_rules! named {
    ($conf:ident, $($field:ident),+ $(,)?) => {
        [$((stringify!($field), $conf.$field)),+]
    };
}

/// `IPV4_DEVCONF_*` (linux/ip.h) by file name (net/ipv4/devinet.c).
fn ipv4(conf: &InetDevConf) -> Vec<(&'static str, i32)> {
    let renamed = [
        ("arp_filter", conf.arpfilter),
        ("disable_xfrm", conf.noxfrm),
        ("disable_policy", conf.nopolicy),
        ("src_valid_mark", conf.src_vmark),
    ];
    let same = named!(
        conf,
        forwarding,
        proxy_arp,
        accept_redirects,
        secure_redirects,
        send_redirects,
        shared_media,
        rp_filter,
        accept_source_route,
        bootp_relay,
        log_martians,
        tag,
        medium_id,
        force_igmp_version,
        arp_announce,
        arp_ignore,
        promote_secondaries,
        arp_accept,
        arp_notify,
        accept_local,
        proxy_arp_pvlan,
        route_localnet,
        igmpv2_unsolicited_report_interval,
        igmpv3_unsolicited_report_interval,
        ignore_routes_with_linkdown,
        drop_unicast_in_l2_multicast,
        drop_gratuitous_arp,
        bc_forwarding,
        arp_evict_nocarrier,
    );
    renamed.into_iter().chain(same).collect()
}

/// The settings whose files have names of their own, in the files' units.
fn ipv6_renamed(conf: &Inet6DevConf) -> [(&'static str, i32); 7] {
    [
        ("hop_limit", conf.hoplimit),
        ("mtu", conf.mtu6),
        ("router_solicitations", conf.rtr_solicits),
        (
            "router_solicitation_interval",
            conf.rtr_solicit_interval / MILLISECONDS,
        ),
        (
            "router_solicitation_delay",
            conf.rtr_solicit_delay / MILLISECONDS,
        ),
        (
            "router_probe_interval",
            conf.rtr_probe_interval / MILLISECONDS,
        ),
        (
            "router_solicitation_max_interval",
            conf.rtr_solicit_max_interval / MILLISECONDS,
        ),
    ]
}

/// `DEVCONF_*` (linux/ipv6.h) by file name (net/ipv6/addrconf.c).
fn ipv6(conf: &Inet6DevConf) -> Vec<(&'static str, i32)> {
    let same = named!(
        conf,
        forwarding,
        accept_ra,
        accept_redirects,
        autoconf,
        dad_transmits,
        use_tempaddr,
        temp_valid_lft,
        temp_prefered_lft,
        regen_max_retry,
        max_desync_factor,
        max_addresses,
        force_mld_version,
        accept_ra_defrtr,
        accept_ra_pinfo,
        accept_ra_rtr_pref,
        accept_ra_rt_info_max_plen,
        proxy_ndp,
        optimistic_dad,
        accept_source_route,
        disable_ipv6,
        accept_dad,
        force_tllao,
        ndisc_notify,
        mldv1_unsolicited_report_interval,
        mldv2_unsolicited_report_interval,
        suppress_frag_ndisc,
        accept_ra_from_local,
        use_optimistic,
        accept_ra_mtu,
        use_oif_addrs_only,
        accept_ra_min_hop_limit,
        ignore_routes_with_linkdown,
        drop_unicast_in_l2_multicast,
        drop_unsolicited_na,
        keep_addr_on_down,
        seg6_enabled,
        seg6_require_hmac,
        enhanced_dad,
        addr_gen_mode,
        disable_policy,
        accept_ra_rt_info_min_plen,
        ndisc_tclass,
        rpl_seg_enabled,
        ra_defrtr_metric,
        ioam6_enabled,
        ioam6_id,
        ioam6_id_wide,
        ndisc_evict_nocarrier,
        accept_untracked_na,
        accept_ra_min_lft,
        force_forwarding,
    );
    ipv6_renamed(conf).into_iter().chain(same).collect()
}
