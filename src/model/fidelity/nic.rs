//! What is set on a NIC, and lost with its driver.

use super::attribute::Treatment::{Named, NotRead, Restored};
use super::attribute::TwinComparison::{Never, Part};
use super::attribute::{AttributeTable, row};

/// Why a rehearsal does not compare what is set on devices.
pub(super) const OF_DEVICES: &str = "a twin has stand-ins in the place of devices";

/// By the options of ethtool(8) and the files of sysfs: most have no number that all kernels know.
pub const NIC: AttributeTable = AttributeTable {
    title: "Settings of a NIC",
    source: "What ethtool(8), ip(8), bridge(8), nft(8) and files set on a device, on the host and in pods. A driver does not report every \
             setting, and does not accept all that it reports",
    twin: Never(OF_DEVICES),
    rows: &[
        row(1, "ethtool -G", Restored, "nic-settings, nic-refused"),
        row(2, "ethtool -L", Restored, "nic-settings"),
        row(3, "ethtool -C", Restored, "nic-settings, nic-refused"),
        row(
            4,
            "ethtool --per-queue",
            Named,
            "kernel/ethtool/ioctl/per_queue",
        ),
        row(5, "ethtool -K", Restored, "nic-settings"),
        row(6, "ethtool -A", Restored, "nic-settings"),
        row(7, "ethtool --set-priv-flags", Restored, "nic-settings"),
        row(
            8,
            "ethtool -X",
            Restored,
            "nic-settings, kernel/ethtool/fakes",
        ),
        row(9, "ethtool -X context", Named, "kernel/ethtool/fakes").since("4.18"),
        row(10, "ethtool -N rx-flow-hash", Restored, "nic-settings"),
        row(
            11,
            "ethtool -N flow-type",
            Restored,
            "kernel/ethtool/ioctl/flows",
        ),
        row(12, "ethtool --set-eee", Restored, "kernel/ethtool/fakes"),
        row(13, "ethtool --set-fec", Restored, "nic-refused").since("4.14"),
        row(
            14,
            "ethtool -s advertise, autoneg, speed, duplex",
            Restored,
            "nic-settings",
        ),
        row(15, "ethtool -s wol", Restored, "nic-settings"),
        row(16, "ethtool -s sopass", Named, "kernel/ethtool/fakes"),
        row(17, "ethtool -s msglvl", Restored, "nic-settings"),
        row(
            18,
            "ethtool -s mdix, port, master-slave",
            NotRead("the link partners negotiate it"),
            "",
        ),
        row(
            19,
            "ethtool --set-tunable, --set-phy-tunable",
            Restored,
            "kernel/ethtool/ioctl/tunables",
        ),
        row(
            20,
            "ethtool --set-module",
            NotRead("the power mode of a transceiver costs no packet"),
            "",
        )
        .since("5.16"),
        row(
            21,
            "SIOCSHWTSTAMP",
            NotRead("ptp4l(8) sets it again when its device comes back"),
            "",
        ),
        row(
            22,
            "smp_affinity of its interrupts",
            Restored,
            "nic-settings",
        ),
        row(
            23,
            "rps_cpus, gro_flush_timeout, threaded",
            Restored,
            "fidelity/sysfs",
        )
        // Of links on a device.
        .in_twin(Part("packet steering and NAPI settings")),
        row(
            24,
            "byte_queue_limits, tx_maxrate",
            Restored,
            "nic-settings, kernel/ethtool/queues",
        ),
        row(25, "sriov_numvfs, ip link set vf", Restored, "sriov"),
        row(26, "dcb", Named, "kernel/ethtool/dcb"),
        row(
            27,
            "devlink dev param, cmode runtime",
            Restored,
            "nic-devlink, kernel/devlink/params",
        )
        .since("4.19"),
        row(
            28,
            "devlink dev param, cmode driverinit",
            Named,
            "nic-devlink, kernel/devlink/params",
        )
        .since("4.19"),
        row(
            29,
            "devlink dev param, cmode permanent",
            NotRead("it is in the memory of the device, and survives"),
            "",
        )
        .since("4.19"),
        row(
            30,
            "devlink dev eswitch, representors",
            Named,
            "nic-devlink, kernel/devlink/eswitch",
        )
        .since("4.8"),
        row(
            31,
            "devlink rate, sb, trap, health, port function",
            NotRead("limits and counters of the embedded switch, which is named where it is used"),
            "",
        ),
        row(
            32,
            "bridge vlan set",
            Named,
            "nic-devlink, kernel/link/vlan_options",
        )
        .since("5.6"),
        row(33, "bridge mdb of a vxlan", Named, "kernel/bridging").since("6.4"),
        row(34, "bridge fdb add self", Restored, "nft-chains"),
        row(
            35,
            "nft chain, flowtable on a device",
            Named,
            "nft-chains, kernel/attached/chains",
        ),
        row(36, "AF_XDP sockets", Named, "kernel/attached/xsk").since("4.18"),
        row(37, "XDP and tc-bpf programs", Named, "unsupported"),
        row(
            38,
            "parameters of the driver's module",
            Named,
            "kernel/conf/module",
        ),
        row(39, "bridge link set hwmode", Restored, "kernel/link/hwmode"),
    ],
};
