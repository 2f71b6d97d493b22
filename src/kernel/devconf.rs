//! Per-interface settings from the link dump (`IFLA_AF_SPEC`), under the names of their files in `/proc/sys/net`.

use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, Inet6DevConf, InetDevConf,
};

use super::sysctl;
use crate::model::sysctl::{Folder, Settings, SysctlKey, Sysctls};

/// Timers are milliseconds in the dump and seconds in their files.
const MILLISECONDS: i32 = 1000;
/// The one setting that is an unsigned number.
const UNSIGNED: &str = "ioam6_id_wide";

/// All settings of the dump but `mc_forwarding`, which only the kernel changes.
pub(super) fn parse(specs: &[AfSpecUnspec]) -> Sysctls {
    let mut sysctls = Sysctls::default();
    for spec in specs {
        match spec {
            AfSpecUnspec::Inet(parts) => {
                for part in parts {
                    if let AfSpecInet::DevConf(conf) = part {
                        sysctls.ipv4 = settings(Folder::Ipv4Conf, &ipv4(conf));
                    }
                }
            }
            AfSpecUnspec::Inet6(parts) => {
                for part in parts {
                    if let AfSpecInet6::DevConf(conf) = part {
                        sysctls.ipv6 = settings(Folder::Ipv6Conf, &ipv6(conf));
                    }
                }
            }
            _ => {}
        }
    }
    sysctls
}

/// The settings that this kernel has: the decoder fills the shorter dump of an older kernel with zeros.
fn settings(folder: Folder, pairs: &[(&'static str, i32)]) -> Settings {
    let known = sysctl::known_keys(folder);
    let value = |name: &str, value: i32| {
        if name == UNSIGNED {
            i64::from(value.cast_unsigned())
        } else {
            value.into()
        }
    };
    let pairs = pairs
        .iter()
        .map(|(name, number)| (SysctlKey::known(name), value(name, *number)));
    pairs.filter(|(key, _)| known.contains(key)).collect()
}

/// `IPV4_DEVCONF_*` (linux/ip.h) by file name (net/ipv4/devinet.c).
fn ipv4(conf: &InetDevConf) -> [(&'static str, i32); 32] {
    [
        ("forwarding", conf.forwarding),
        ("proxy_arp", conf.proxy_arp),
        ("accept_redirects", conf.accept_redirects),
        ("secure_redirects", conf.secure_redirects),
        ("send_redirects", conf.send_redirects),
        ("shared_media", conf.shared_media),
        ("rp_filter", conf.rp_filter),
        ("accept_source_route", conf.accept_source_route),
        ("bootp_relay", conf.bootp_relay),
        ("log_martians", conf.log_martians),
        ("tag", conf.tag),
        ("arp_filter", conf.arpfilter),
        ("medium_id", conf.medium_id),
        ("disable_xfrm", conf.noxfrm),
        ("disable_policy", conf.nopolicy),
        ("force_igmp_version", conf.force_igmp_version),
        ("arp_announce", conf.arp_announce),
        ("arp_ignore", conf.arp_ignore),
        ("promote_secondaries", conf.promote_secondaries),
        ("arp_accept", conf.arp_accept),
        ("arp_notify", conf.arp_notify),
        ("accept_local", conf.accept_local),
        ("src_valid_mark", conf.src_vmark),
        ("proxy_arp_pvlan", conf.proxy_arp_pvlan),
        ("route_localnet", conf.route_localnet),
        (
            "igmpv2_unsolicited_report_interval",
            conf.igmpv2_unsolicited_report_interval,
        ),
        (
            "igmpv3_unsolicited_report_interval",
            conf.igmpv3_unsolicited_report_interval,
        ),
        (
            "ignore_routes_with_linkdown",
            conf.ignore_routes_with_linkdown,
        ),
        (
            "drop_unicast_in_l2_multicast",
            conf.drop_unicast_in_l2_multicast,
        ),
        ("drop_gratuitous_arp", conf.drop_gratuitous_arp),
        ("bc_forwarding", conf.bc_forwarding),
        ("arp_evict_nocarrier", conf.arp_evict_nocarrier),
    ]
}

/// `DEVCONF_*` (linux/ipv6.h) by file name (net/ipv6/addrconf.c).
#[allow(clippy::too_many_lines)] // one line a setting
fn ipv6(conf: &Inet6DevConf) -> [(&'static str, i32); 58] {
    [
        ("forwarding", conf.forwarding),
        ("hop_limit", conf.hoplimit),
        ("mtu", conf.mtu6),
        ("accept_ra", conf.accept_ra),
        ("accept_redirects", conf.accept_redirects),
        ("autoconf", conf.autoconf),
        ("dad_transmits", conf.dad_transmits),
        ("router_solicitations", conf.rtr_solicits),
        (
            "router_solicitation_interval",
            conf.rtr_solicit_interval / MILLISECONDS,
        ),
        (
            "router_solicitation_delay",
            conf.rtr_solicit_delay / MILLISECONDS,
        ),
        ("use_tempaddr", conf.use_tempaddr),
        ("temp_valid_lft", conf.temp_valid_lft),
        ("temp_prefered_lft", conf.temp_prefered_lft),
        ("regen_max_retry", conf.regen_max_retry),
        ("max_desync_factor", conf.max_desync_factor),
        ("max_addresses", conf.max_addresses),
        ("force_mld_version", conf.force_mld_version),
        ("accept_ra_defrtr", conf.accept_ra_defrtr),
        ("accept_ra_pinfo", conf.accept_ra_pinfo),
        ("accept_ra_rtr_pref", conf.accept_ra_rtr_pref),
        (
            "router_probe_interval",
            conf.rtr_probe_interval / MILLISECONDS,
        ),
        (
            "accept_ra_rt_info_max_plen",
            conf.accept_ra_rt_info_max_plen,
        ),
        ("proxy_ndp", conf.proxy_ndp),
        ("optimistic_dad", conf.optimistic_dad),
        ("accept_source_route", conf.accept_source_route),
        ("disable_ipv6", conf.disable_ipv6),
        ("accept_dad", conf.accept_dad),
        ("force_tllao", conf.force_tllao),
        ("ndisc_notify", conf.ndisc_notify),
        (
            "mldv1_unsolicited_report_interval",
            conf.mldv1_unsolicited_report_interval,
        ),
        (
            "mldv2_unsolicited_report_interval",
            conf.mldv2_unsolicited_report_interval,
        ),
        ("suppress_frag_ndisc", conf.suppress_frag_ndisc),
        ("accept_ra_from_local", conf.accept_ra_from_local),
        ("use_optimistic", conf.use_optimistic),
        ("accept_ra_mtu", conf.accept_ra_mtu),
        ("use_oif_addrs_only", conf.use_oif_addrs_only),
        ("accept_ra_min_hop_limit", conf.accept_ra_min_hop_limit),
        (
            "ignore_routes_with_linkdown",
            conf.ignore_routes_with_linkdown,
        ),
        (
            "drop_unicast_in_l2_multicast",
            conf.drop_unicast_in_l2_multicast,
        ),
        ("drop_unsolicited_na", conf.drop_unsolicited_na),
        ("keep_addr_on_down", conf.keep_addr_on_down),
        (
            "router_solicitation_max_interval",
            conf.rtr_solicit_max_interval / MILLISECONDS,
        ),
        ("seg6_enabled", conf.seg6_enabled),
        ("seg6_require_hmac", conf.seg6_require_hmac),
        ("enhanced_dad", conf.enhanced_dad),
        ("addr_gen_mode", conf.addr_gen_mode),
        ("disable_policy", conf.disable_policy),
        (
            "accept_ra_rt_info_min_plen",
            conf.accept_ra_rt_info_min_plen,
        ),
        ("ndisc_tclass", conf.ndisc_tclass),
        ("rpl_seg_enabled", conf.rpl_seg_enabled),
        ("ra_defrtr_metric", conf.ra_defrtr_metric),
        ("ioam6_enabled", conf.ioam6_enabled),
        ("ioam6_id", conf.ioam6_id),
        ("ioam6_id_wide", conf.ioam6_id_wide),
        ("ndisc_evict_nocarrier", conf.ndisc_evict_nocarrier),
        ("accept_untracked_na", conf.accept_untracked_na),
        ("accept_ra_min_lft", conf.accept_ra_min_lft),
        ("force_forwarding", conf.force_forwarding),
    ]
}
