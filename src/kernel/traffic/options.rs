//! The options of qdiscs and classes: from what the kernel reports to what is stored, and to what it takes.
//!
//! Both are the same bytes, but for statistics, and for what the kernel reports in another form than it takes it
//! (`net/sched/sch_*.c`). A rehearsal compares all options that are stored ([`TRAFFIC`](crate::model::fidelity::TRAFFIC)).

use crate::kernel::codec::nested::{Nested, clear, set_word, word};

/// The qdiscs that netfix restores: the kernel takes the options that it reports.
const QDISCS: [&str; 16] = [
    "bfifo",
    "clsact",
    "codel",
    "fq",
    "fq_codel",
    "htb",
    "ingress",
    "mq",
    "netem",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "prio",
    "sfq",
    "tbf",
];

/// Whether netfix restores qdiscs of this kind.
pub(super) fn is_known(kind: &str) -> bool {
    QDISCS.contains(&kind)
}

/// Whether users create classes of such a qdisc. The classes of the others come with the qdisc.
pub(super) fn has_own_classes(kind: &str) -> bool {
    kind == "htb"
}

/// Whether such a qdisc, or a class of it, can have filters (`Qdisc_class_ops.tcf_block`).
pub(super) fn has_filters(kind: &str) -> bool {
    matches!(
        kind,
        "htb" | "prio" | "sfq" | "fq_codel" | "ingress" | "clsact"
    )
}

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
/// `direct_pkts` in `struct tc_htb_glob`, and `level` in `struct tc_htb_opt` (`linux/pkt_sched.h`).
const HTB_DIRECT_PACKETS: std::ops::Range<usize> = 16..20;
const HTB_LEVEL: std::ops::Range<usize> = 36..40;
/// `stats` in `struct tc_sfq_qopt_v1`.
const SFQ_STATS: std::ops::Range<usize> = 48..72;

/// The options of a qdisc or class without statistics.
pub(super) fn storable(kind: &str, mut options: Vec<u8>) -> Vec<u8> {
    match kind {
        "sfq" => clear(&mut options, SFQ_STATS),
        "htb" => {
            if let Some(mut nested) = Nested::parse(&options) {
                if let Some(glob) = nested.get_mut(TCA_HTB_INIT) {
                    // `htb_init` takes the major version, `htb_dump` reports both.
                    let version = word(glob, 0).unwrap_or_default();
                    set_word(
                        glob,
                        0,
                        if version > 0xffff {
                            version >> 16
                        } else {
                            version
                        },
                    );
                    clear(glob, HTB_DIRECT_PACKETS);
                }
                if let Some(class) = nested.get_mut(TCA_HTB_PARMS) {
                    clear(class, HTB_LEVEL);
                }
                options = nested.bytes();
            }
        }
        _ => {}
    }
    options
}

/// `TCA_FQ_CODEL_FLOWS`: only for a new qdisc (`fq_codel_change`).
const TCA_FQ_CODEL_FLOWS: u16 = 5;
/// Times of codel in microseconds: `TCA_CODEL_TARGET`, `TCA_CODEL_INTERVAL`, `TCA_CODEL_CE_THRESHOLD`.
const CODEL_TIMES: [u16; 3] = [1, 3, 5];
/// `TCA_FQ_CODEL_TARGET`, `TCA_FQ_CODEL_INTERVAL`, `TCA_FQ_CODEL_CE_THRESHOLD`.
const FQ_CODEL_TIMES: [u16; 3] = [1, 3, 7];

/// The options to send for stored ones, of a new qdisc or class, or for a change of one that is there.
pub(super) fn sendable(kind: &str, options: &[u8], is_new: bool) -> Vec<u8> {
    let times = match kind {
        "codel" => CODEL_TIMES,
        "fq_codel" => FQ_CODEL_TIMES,
        "tbf" => return with_bursts(options),
        "sfq" => return with_flows(options),
        _ => return options.to_vec(),
    };
    let Some(mut nested) = Nested::parse(options) else {
        return options.to_vec();
    };
    for number in times {
        if let Some(value) = nested.get_mut(number) {
            let time = word(value, 0).unwrap_or_default();
            set_word(value, 0, codel_time(time));
        }
    }
    if kind == "fq_codel" && !is_new {
        nested.remove(&[TCA_FQ_CODEL_FLOWS]);
    }
    nested.bytes()
}

/// The microseconds to send, so that the kernel reports these. It keeps units of 1024 ns (`CODEL_SHIFT`, `net/codel.h`), rounds
/// down to them, and rounds down again when it reports them: 5000 is reported as 4999, and 4999 would become 4998.
fn codel_time(reported: u32) -> u32 {
    const UNIT: u64 = 1024;
    const MICROSECOND: u64 = 1000;
    let units = (u64::from(reported) * MICROSECOND).div_ceil(UNIT);
    let sent = (units * UNIT).div_ceil(MICROSECOND);
    u32::try_from(sent).unwrap_or(u32::MAX)
}

/// The options of an `sfq` that has more flows than packets: it was made without a limit, and with one the kernel would lower
/// the flows to it (`sfq_change`).
fn with_flows(options: &[u8]) -> Vec<u8> {
    /// `limit` and `flows` in `struct tc_sfq_qopt` (`linux/pkt_sched.h`).
    const LIMIT: usize = 8;
    const FLOWS: usize = 16;
    let mut options = options.to_vec();
    if word(&options, FLOWS) > word(&options, LIMIT) {
        set_word(&mut options, LIMIT, 0);
    }
    options
}

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
/// `struct tc_tbf_qopt` (`linux/pkt_sched.h`): both `struct tc_ratespec`, then `limit`, `buffer` and `mtu`, the latter two as
/// times.
const TBF_RATE: usize = 0;
const TBF_PEAKRATE: usize = 12;
const TBF_BUFFER: usize = 28;
const TBF_MTU: usize = 32;

/// The options of a `tbf` with its bursts in bytes. The kernel reports them as times only, in units of 64 ns, from which it
/// would compute the largest packet that passes (`max_size` in `tbf_change`) one byte too small.
fn with_bursts(options: &[u8]) -> Vec<u8> {
    let Some(mut nested) = Nested::parse(options) else {
        return options.to_vec();
    };
    let Some(parameters) = nested.get(TCA_TBF_PARMS).map(<[u8]>::to_vec) else {
        return options.to_vec();
    };
    for (rate, rate64, ticks, burst) in [
        (TBF_RATE, TCA_TBF_RATE64, TBF_BUFFER, TCA_TBF_BURST),
        (TBF_PEAKRATE, TCA_TBF_PRATE64, TBF_MTU, TCA_TBF_PBURST),
    ] {
        let rate64 = nested.get(rate64);
        let rate64 = rate64.and_then(|value| value.try_into().ok().map(u64::from_ne_bytes));
        let ticks = word(&parameters, ticks).unwrap_or_default();
        let bytes = Rate::read(&parameters, rate, rate64).and_then(|rate| rate.burst(ticks));
        if let Some(bytes) = bytes.filter(|_| nested.get(burst).is_none()) {
            nested.push(burst, bytes.to_ne_bytes().to_vec());
        }
    }
    nested.bytes()
}

/// A rate on Ethernet (`struct tc_ratespec`).
struct Rate {
    bytes_per_second: u64,
    /// Bytes added to each packet.
    overhead: u64,
    /// The least size of a packet.
    least: u64,
}

impl Rate {
    /// `None` for no rate, and for ATM cells.
    fn read(parameters: &[u8], at: usize, rate64: Option<u64>) -> Option<Self> {
        const LINKLAYER_MASK: u8 = 15;
        const ETHERNET: u8 = 1;
        let half = |at: usize| {
            let bytes = parameters.get(at..at + 2)?;
            bytes.try_into().ok().map(u16::from_ne_bytes)
        };
        let layer = parameters.get(at + 1)? & LINKLAYER_MASK;
        let rate = rate64.unwrap_or(word(parameters, at + 8)?.into());
        (layer == ETHERNET && rate != 0).then_some(Self {
            bytes_per_second: rate,
            overhead: half(at + 2)?.into(),
            least: half(at + 6)?.into(),
        })
    }

    /// The largest packet that takes `ticks` (64 ns, `PSCHED_SHIFT`), by the kernel's own arithmetic
    /// (`psched_ratecfg_precompute`, `psched_l2t_ns`).
    fn burst(&self, ticks: u32) -> Option<u32> {
        const TICK: u32 = 6;
        let (mut factor, mut shift) = (1_000_000_000_u64, 0);
        let mut multiplier = factor / self.bytes_per_second;
        while multiplier & 1 << 31 == 0 && factor & 1 << 63 == 0 {
            factor <<= 1;
            shift += 1;
            multiplier = factor / self.bytes_per_second;
        }
        let multiplier = u128::from(multiplier).max(1);
        let limit = (u128::from(ticks) + 1) << TICK << shift;
        let size = limit.div_ceil(multiplier) - 1;
        let is_reported = (size * multiplier) >> shift >> TICK == u128::from(ticks);
        let bytes = size.checked_sub(self.overhead.into())?;
        let is_possible = is_reported && bytes != 0 && size >= self.least.into();
        u32::try_from(bytes).ok().filter(|_| is_possible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `codel_time_to_us` makes of what `codel_change` got.
    fn reported(sent: u32) -> u64 {
        let units = (u64::from(sent) * 1000) >> 10;
        (units << 10) / 1000
    }

    #[test]
    fn the_times_of_codel_are_reported_as_before() {
        for set in (1..200_000).chain([5_000_000, 4_000_000_000]) {
            let was = u32::try_from(reported(set)).unwrap();
            assert_eq!(reported(codel_time(was)), u64::from(was), "{set} was set");
        }
    }

    #[test]
    fn the_burst_of_a_tbf_is_as_large_as_before() {
        for rate in [1_000, 15_625, 125_000, 1_250_000, 1_333_333, 12_500_000] {
            let rate = Rate {
                bytes_per_second: rate,
                overhead: 0,
                least: 0,
            };
            for bytes in [1500_u32, 1514, 1600, 10_240, 65_535] {
                let exact = u128::from(bytes) * 1_000_000_000 / u128::from(rate.bytes_per_second);
                let ticks = u32::try_from(exact >> 6).unwrap();
                assert_eq!(rate.burst(ticks), Some(bytes), "{}", rate.bytes_per_second);
            }
        }
    }

    #[test]
    fn an_sfq_keeps_its_flows() {
        let options = |limit: u32| [1514, 10, limit, 1024, 128].map(u32::to_ne_bytes).concat();
        assert_eq!(sendable("sfq", &options(127), true), options(0));
        assert_eq!(sendable("sfq", &options(200), true), options(200));
        assert_eq!(sendable("sfq", &[1, 2], true), [1, 2]);
    }

    #[test]
    fn statistics_are_not_stored() {
        let mut nested = Nested::default();
        let glob = [0x3_0011_u32, 10, 0x30, 0, 77].map(u32::to_ne_bytes);
        nested.push(TCA_HTB_INIT, glob.concat());
        let stored = Nested::parse(&storable("htb", nested.bytes())).unwrap();
        let expected = [3_u32, 10, 0x30, 0, 0].map(u32::to_ne_bytes).concat();
        assert_eq!(stored.get(TCA_HTB_INIT), Some(expected.as_slice()));
        assert_eq!(storable("sfq", vec![1; 72])[48..], [0; 24]);
        assert_eq!(storable("htb", vec![1, 2]), vec![1, 2], "strange bytes");
    }
}
