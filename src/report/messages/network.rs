//! Sentences about what is missing, in the way, or not answering on the network.

use std::fmt;

use super::{and, or_nothing};
use crate::model::manager::SettingOwner;
use crate::model::net::link::nic::{FunctionOf, NicValue, present};
use crate::model::problem::{
    ClaimHolder, ConflictCause, GatewayCause, KeptIndex, LostObjects, PlanCause, RestoreCause,
    Title,
};
use crate::model::text::{count, duration, escape, join};
use crate::model::{Hardware, IfName};

sentences! {
    PlanCause {
        HostLinkMissing { parent } => "cannot be recreated: the host's {parent} is missing",
        OwnLinkMissing { parent } => "cannot be recreated: {parent} is missing",
        DeviceMissing { hardware } => "the device{hardware} is missing. Load its driver{modprobe}, then run `netfix restore`"
            (hardware = device(hardware.as_ref()), modprobe = modprobe(hardware.as_ref())),
        DeviceRenamed { now, then, config } => "is now named {now}; its VLANs and macvlans are recreated on it{config}. To get the name back, \
            run `ip link set {now} down`, `ip link set {now} name {then}` and `netfix restore`"
            (config = still_named(config.as_ref(), then)),
        FunctionsNotRestored { now, then } => "has {now} virtual functions, had {then}: not restored (--nic-settings report)",
        NoFunctions { then } => "had {then} virtual functions; its driver offers none now",
        OtherNumberOfFunctions { now, then } => "has {now} virtual functions now, {then} in the checkpoint. Another program made them: \
            netfix never changes a number that is not 0",
        OtherFunctionDriver { index, now, then } => "virtual function {index} has the driver {now} now, {then} in the checkpoint. It is \
            in use, so netfix does not change that",
        KindMissing { kind } => "is missing, and netfix cannot create links of kind {kind}",
        LowerMissing { parent } => "sends nothing: its lower device {parent} is missing",
        LowerLost { parent: Some(parent) } => "has lost its lower device {parent}, and netfix cannot attach it to the new one. Delete \
            and add it",
        LowerLost { parent: None } => "has lost its lower device, and netfix cannot attach it again. Delete and add it",
        NotTakenBack { master } => "is not a port of {master} yet: ovs-vswitchd takes it back, netfix does not",
        MasterMissing { master } => "was a port of {master}, which is missing. Create it again, then run `netfix restore`",
        MasterLost { master } => "was a port of {master}, and netfix cannot attach it again",
        QdiscLost { now, then } => "has qdisc {now} now; netfix cannot restore its qdisc {then}",
        TrafficLost { what } => "has lost {what}, and netfix cannot restore it. Configure it again with tc(8)",
        ProgramLost { what } => "has lost {what}, and netfix cannot load programs. Let its owner (such as Cilium) install it \
            again",
        ProgramLeft { what, owner } => "has lost {what}. {owner}, to which it belongs, runs and installs it again: netfix leaves it \
            to {owner}",
        RedirectLost { filter, link } => "cannot restore {filter}: it sends packets to {link}, which is missing or has \
            another ifindex now. Configure it again with tc(8)",
        ObjectLost => "is missing, and netfix cannot restore it",
        IfindexDiffers { now, then } => "has ifindex {now} now, {then} in the checkpoint: sockets bound to the old one \
            receive nothing",
        NicRenumbered { now, then, why } => "has ifindex {now} now, {then} in the checkpoint: nftables rules and sockets that name the \
            old one do not name it. {why}" (why = kept_index(why)),
        Surplus => "is not in the checkpoint; left unchanged",
        IsUp => "link state differs: it is up, and was down in the checkpoint; left unchanged",
        MadeWithOtherMac { now, then } => "another program made it again, with MAC {now}; the checkpoint has {then}. netfix leaves the \
            new MAC: other machines may use it",
        MadeWithOtherData => "another program made it again, with other data (such as the VNI or the local address) than in the \
            checkpoint. netfix leaves it unchanged",
        MadeWithOtherAddresses { more: 0 } => "is not added: another program made the link again, with another address",
        MadeWithOtherAddresses { more } => "is not added, and {more} more: another program made the link again, with other addresses",
        DuplicateAddress => "another machine on the network has this address (duplicate address detection failed)",
        LifetimeOver => "its lifetime ended after the checkpoint was written: the router must advertise it again",
        NotAdvertised => "was made from the advertisements of a router, and no router has advertised it since. netfix does not \
            restore it: check the router, and what it answers to a solicitation (`rdisc6 LINK`)",
        Leased { more: 0 } => "is leased; its client must renew it. A restore adds it with at least half of its lease",
        Leased { more } => "is leased, and {more} more; their client must renew them. A restore adds each with at least half of \
            its lease",
        LeftToDaemon { more: 0 } => "is left to its daemon, which adds it again or has withdrawn it. To restore it from the \
            checkpoint, run `netfix restore --with-daemons`",
        LeftToDaemon { more } => "is left to its daemon, and {more} more to theirs: they add them again or have withdrawn them. To \
            restore them from the checkpoint, run `netfix restore --with-daemons`",
        SettingUnknown { then, driver: None } => "was {then}; the driver does not have this setting any more" (then = then.short()),
        SettingUnknown { then, driver: Some(driver) } => "was {then}; {driver}, does not have this setting" (then = then.short()),
        IrqsBalanced => "irqbalance runs and assigns interrupts to processors: netfix leaves the affinity to it",
        DcbManaged => "lldpad runs and configures data center bridging: netfix leaves it to lldpad",
        SettingNeedsReload { then, now, driver } => "is {now}, was {then}: the driver takes this parameter only when it starts. Set it with \
            `devlink dev param set`, then run `devlink dev reload`, which removes the network device once more"
            (then = then.short(), now = present(now.as_ref(), driver.as_deref())),
        SettingNeedsDown { then, now, driver } => "is {now}, was {then}: with i40e, a change while the link is up may crash the kernel. Take it \
            down, then run `netfix restore`" (then = then.short(), now = present(now.as_ref(), driver.as_deref())),
        ModuleParameter { then, now, option } => "is {now}, was {then}: a module takes its parameters when it is loaded. Write `{option}` \
            to a file in /etc/modprobe.d, and load the driver again" (then = then.short(), now = present(now.as_ref(), None)),
        Crippled { cause } => "{cause}",
        SettingMayReset { then, now, driver } => "is {now}, was {then}: netfix does not set it, because that resets some devices. Configure it \
            again with dcb(8) or lldptool(8)" (then = then.short(), now = present(now.as_ref(), driver.as_deref())),
        SettingsGone => "the driver reports no settings any more: none can be compared or restored",
        SettingUnmet { then } => "is requested {then}, as it was, but the driver does not do it now" (then = then.short()),
        QueuesGone { now, first, more } => "the NIC has {now} now, so netfix cannot restore {first}{more}"
            (now = now.map_or_else(|| "fewer queues".to_owned(), |now| count(now, "queue")),
            more = or_nothing(" and ", (*more > 0).then(|| format!("{more} more")).as_ref())),
        SettingNotRestored { then, now, driver } => "is {now}, was {then}: not restored (--nic-settings report)"
            (then = then.short(), now = present(now.as_ref(), driver.as_deref())),
        SettingChanged { then, now } => "is {now}, was {then}: changed since the snapshot, while the device stayed. netfix leaves it \
            unchanged; to record the present value, run `netfix snapshot`" (then = then.short(), now = present(now.as_ref(), None)),
    }
}

/// Why a NIC does not get its former ifindex back.
pub(super) fn kept_index(why: &KeptIndex) -> String {
    match why {
        KeptIndex::Requested => "netfix leaves it (--nic-index keep)".to_owned(),
        KeptIndex::OldKernel => "This kernel cannot give it back: that needs Linux 5.13".to_owned(),
        KeptIndex::Container => "netfix cannot give it back: the host is a container".to_owned(),
        KeptIndex::Taken(by) => format!("netfix cannot give it back: {by} has it"),
        KeptIndex::Pods => {
            "netfix does not give it back: that would interrupt the pods that use the NIC now"
                .to_owned()
        }
        KeptIndex::Selection => "netfix does not give it back: pods that are not selected may use the NIC. Run `netfix restore` without a selection".to_owned(),
        KeptIndex::Functions => {
            "netfix does not give it back: another program has made virtual functions of the NIC"
                .to_owned()
        }
        KeptIndex::Address(ip) => format!(
            "netfix does not give it back: the NIC would lose {ip}, which is not in the checkpoint"
        ),
        KeptIndex::Owner(manager) => format!("netfix does not give it back: {manager} brings the NIC up when it appears"),
        KeptIndex::Refused(error) => format!(
            "The kernel does not give it back{}",
            or_nothing(": ", error.as_ref())
        ),
    }
}

/// A configuration that has the former name of a device.
fn still_named(config: Option<&String>, then: &IfName) -> String {
    let words = config.map(|config| {
        format!(
            "{} still names {then}, so new pods or its manager fail",
            escape(config)
        )
    });
    or_nothing(", but ", words.as_ref())
}

/// What a person needs to recognise a device.
/// How its driver is loaded, where that is known.
fn modprobe(hardware: Option<&Hardware>) -> String {
    let driver = hardware.and_then(|hardware| hardware.driver.as_deref());
    driver.map_or_else(String::new, |driver| {
        format!(" (modprobe {})", escape(driver))
    })
}

fn device(hardware: Option<&Hardware>) -> String {
    let Some(Hardware {
        permanent_mac,
        bus,
        driver,
        function,
        port,
        instance: _,
    }) = hardware
    else {
        return String::new();
    };
    let own = match function {
        Some(FunctionOf { of, index }) => Some(format!("virtual function {index} of {of}")),
        None => permanent_mac.map(|mac| mac.to_string()),
    };
    let port = port.as_ref().filter(|_| own.is_none());
    let port = port.map(|port| format!("port {port}"));
    let parts = [driver.clone(), bus.clone(), own, port]
        .into_iter()
        .flatten();
    match parts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        parts => format!(" ({parts})"),
    }
}

sentences! {
    ConflictCause {
        OtherKind { now, then } => "is a {now} now, a {then} in the checkpoint",
        OtherVlan { now, then } => "is VLAN {now} now, {then} in the checkpoint",
        VlanIdTaken { by } => "cannot be recreated: {by} has the same VLAN id on the same parent. Rename or remove {by} \
            first",
        OtherParent { now, then } => "is on {now} now, on {then} in the checkpoint"
            (now = name(now.as_ref()), then = name(then.as_ref())),
        OtherBondMode { now, then } => "has mode {now} now, {then} in the checkpoint; netfix never changes the mode of \
            an existing bond",
        OtherMaster { now, then } => "is a port of {now} now, of {then} in the checkpoint",
        DeviceInUse { device, role } => "cannot be moved into the pod: the host uses it as {device}, {role}. Remove it \
            there, and make sure no network manager claims it",
        OtherTraffic { now, then } => "has {now} instead of {then}, which netfix does not replace. Remove it with tc(8), \
            then run `netfix restore`",
        MacClaimed { others } => "also claimed by {others}; cannot tell which claim is older, so netfix creates this link \
            for none of them" (others = and(others.iter())),
        MacOfAnother { owner, title } => "not created: {owner} {title}",
        MacKept { others } => "also claimed by {others}; netfix creates this link only here" (others = and(others.iter())),
        AddressClaimed { others } => "also claimed by {others}; cannot tell which claim is older, so netfix adds it to none \
            of them" (others = and(others.iter())),
        AddressOfAnother { owner, title } => "not added: {owner} {title}",
        AddressKept { others } => "also claimed by {others}; netfix adds it only here" (others = and(others.iter())),
        AddressInUse { owner, mac } => "not added, nor the routes that need it: {owner} has it now{mac}"
            (mac = or_nothing(", with MAC ", mac.as_ref())),
        AddressAnswered { mac, link } => "another machine has it: {mac} answered the probe on {link}. netfix does not add it, \
            nor the routes that need it, until that machine releases it",
        SameMacAnswered { mac, link } => "another machine has it, and the MAC of its link too: {mac} answered the probe on {link}. It is \
            a virtual address that has moved, a second instance with the same MAC, or a network that answers for its hosts (ARP \
            suppression). netfix does not add it, nor the routes that need it. If the network answers: \
            `netfix restore --conflict-probe off`",
        HostAddressMoved { mac, link } => "another machine has it now: {mac} answered the probe on {link}. netfix does not add \
            it, nor the routes that need it. If it is a virtual address that has moved, run `netfix snapshot`",
        HostAddressTaken { mac, link } => "another machine has the host's first address on this link: {mac} answered the probe \
            on {link}. netfix does not add it, nor the routes that need it: the host may be unreachable. Release it there and \
            run `netfix restore`, or add it anyway: `netfix restore --conflict-probe off`",
        AllAnswered { mac, link, addresses } => "{mac} answered the probe on {link}, as all {addresses} addresses that netfix probed: \
            another machine that has them, or a network that answers for every address (proxy ARP). netfix does not add it, nor \
            the routes that need it. If the network answers: `netfix restore --conflict-probe off`",
    }
}

fn name(parent: Option<&IfName>) -> String {
    parent.map_or_else(
        || "a link of another namespace".to_owned(),
        ToString::to_string,
    )
}

impl fmt::Display for ClaimHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = &self.link {
            write!(f, "link {link} of ")?;
        }
        match &self.pod {
            Some(pod) => write!(f, "pod {pod} ({})", escape(&self.netns)),
            None => f.write_str("the host"),
        }
    }
}

sentences! {
    Title {
        Host => "has it",
        InUse => "has it now",
        CniResult => "has it (source: CNI result)",
        Older { generation } => "had it before (generation {generation})",
    }
}

/// A program, and where it is configured.
fn setting_owner(owner: &SettingOwner) -> String {
    match owner {
        SettingOwner::LinkFile { path } => {
            format!("udev ({})", escape(&path.display().to_string()))
        }
        SettingOwner::NetworkManager => "NetworkManager (its profile of the device)".to_owned(),
        SettingOwner::Tuned { profile } => format!("tuned (profile {})", escape(profile)),
    }
}

/// What may keep a driver from a change of its channels.
const HELD: &str =
    ". A driver for RDMA may hold them: unload that (irdma, bnxt_re), then run `netfix restore`";

/// Why a setting is not as it was.
fn refusal(error: Option<&String>) -> String {
    error.map_or_else(
        || ": the driver accepted it, but did not set it".to_owned(),
        |error| format!(": the driver refused it: {error}"),
    )
}

sentences! {
    RestoreCause {
        MacTaken { owner: Some((address, owner)), error } => "{owner} has the same MAC {address} on the same parent, so this \
            link cannot go up: {error}",
        MacTaken { owner: None, error } => "another link has the same MAC on the same parent, so this link cannot go up: \
            {error}",
        StillLost { what } => "{what}: netfix cannot restore that: what is in the way is not recorded",
        UplinkLost => "is there, but its bridge on the host has not got its uplink back: the pod cannot reach other machines",
        ParentGone { error } => "the parent is missing: {error}",
        PlaceTaken { error } => "another link is in its place: {error}",
        ParentOccupied { parent, vfs: 0, error } => "another link, such as a bridge or a bond, receives all packets of {parent}: {error}",
        ParentOccupied { parent, vfs: _, error } => "{parent} takes no such link: {error}. The driver ice refuses them if virtual functions \
            were made while {parent} had none. Run `echo 0 >/sys/class/net/{parent}/device/sriov_numvfs`, then `netfix restore`, which makes \
            the functions again",
        DeviceResets { limit, error } => "its driver refused for {limit} to take it up, as in a reset: {error}. Run `netfix restore` again"
            (limit = duration(*limit)),
        RoutePlaceTaken { error } => "another route is in its place and is left unchanged: {error}. If that \
            one is right, run `netfix snapshot`; else delete it with ip(8) and run `netfix restore`",
        StepFailed { error } => "{error}",
        SettingRefused { then, now, limit, driver, error, may_be_held } => "was {then}, is {now}{limit}{error}{held}" (then = then.short(),
            now = present(now.as_ref(), driver.as_deref()), limit = or_nothing(", at most ", limit.as_ref().map(NicValue::short).as_ref()),
            error = refusal(error.as_ref()), held = if *may_be_held { HELD } else { "" }),
        FunctionRefused { error } => "refused by the driver: {error}",
        FunctionUnchanged => "the driver accepted it, but did not set it",
        SettingOwned { owner } => "also set by {owner} whenever the device appears, to other values: netfix restored the recorded ones. To \
            keep one value, set it there" (owner = setting_owner(owner)),
        HostFailed { error } => "{error}",
        Postponed { budget } => "needed more than {budget} (--pod-budget): the rest of its work followed after all other pods"
            (budget = duration(*budget)),
        StepWithoutEffect => "the kernel reported success, but the change is missing",
        WaitsForCarrier => "must wait for carrier. Run `netfix restore` again when the link has it",
        NoCarrier => "is up but has no carrier: the pods on it are restored and cannot be reached",
        UdevUnfinished { limit } => "udev did not finish with it within {limit}; netfix continued. See \
            `systemctl status systemd-udevd`" (limit = duration(*limit)),
        MadeForManager { manager, limit } => "{manager} owns it and did not bring it back within {limit}: netfix recreated \
            it" (limit = duration(*limit)),
        NotActivated { limit, error } => "NetworkManager did not bring it back within {limit}, and did not activate its \
            profile{error}: netfix recreated it, and NetworkManager shows it as external. `nmcli connection up` \
            activates the profile" (limit = duration(*limit), error = or_nothing(": ", error.as_ref())),
        TakenBack => "Open vSwitch took its port back; netfix only takes it up",
        UnknownToManager { manager } => "restored by netfix, because {manager}, which owns the link, did not. Restarting \
            {manager} may remove it unless it is configured there",
        ManagerUnreachable { error } => "cannot query the network managers: {error}; netfix could not wait for the owners of \
            host links",
        LostAgain { what, pods } => "{what} of the host{with} were lost again after the restore, and restored once more. Usual \
            causes: a network manager, or a second driver reset"
            (what = objects(*what), with = or_nothing(" and ", (*pods > 0).then(|| count(*pods, "pod")).as_ref())),
        PodsLostAgain { what, pods } => "{objects} of {count} were lost again after the restore while the host's links stayed, and \
            restored once more: {names}. {culprit}"
            (objects = objects(*what), count = count(pods.len(), "pod"), names = join(pods.iter().map(|pod| escape(pod)), ", "),
            culprit = culprit(*what)),
        TornDown => "gone: its runtime is tearing it down (the sandbox is no longer ready). netfix recreated nothing in it",
        Unsettled { times } => "the links under the pods were recreated {times} times: pods can be without \
            network. Find what removes them (`journalctl -b`, `dmesg`), then run `netfix restore`",
        FunctionLoops { times } => "its driver makes its device again and again ({times} devices so far): a reset that never ends. Read \
            `dmesg`; reload the driver of the function, or bring the former one of its physical function back",
        DetectionUnfinished { limit } => "duplicate address detection has not ended after {limit}: another machine may have this \
            address. Run `netfix check` in a while" (limit = duration(*limit)),
        NotProbed { failed, all, error } => "cannot send {failed} of {all}: {error}. netfix adds these addresses without a probe"
            (all = count(*all, "probe")),
        Burst { frames } => "a restore sends up to {frames} probes and announcements within a second. A switch with dynamic ARP \
            inspection disables a port that sends more than it allows, often 15: `--probe-rate 15` keeps below that, and takes longer",
        AnsweredByProxy { mac: None, probes } => "{probes} answered with the MAC of the addresses' own links, as while this node \
            had these addresses: netfix ignores these answers" (probes = count(*probes, "probe")),
        AnsweredByProxy { mac: Some(mac), probes } => "{mac} answered {probes}, as it did while this node had these addresses: \
            netfix ignores these answers" (probes = count(*probes, "probe")),
        NotAnnounced { failed, all, error } => "cannot send {failed} of {all}: {error}"
            (all = count(*all, "announcement")),
    }
}

sentences! {
    GatewayCause {
        NoAnswer { timeout } => "no answer within {timeout}" (timeout = duration(*timeout)),
        ArpOnly => "answers ARP only: no answer to a ping, and it answered pings before",
        NeverAnswered => "no answer, and it has never answered: nothing is known to be lost",
        NeverProbed => "no answer to a ping, and it has never answered; its MAC is fixed, so the kernel does not probe it",
        PortAwaited { bridge, state, wait } => "port of {bridge}: it forwards nothing yet ({state}, spanning tree). netfix waits up to \
            {wait} longer for answers" (wait = duration(*wait)),
        AggregateAwaited { wait } => "no port sends yet: its switch has not accepted one (802.3ad). netfix waits up to {wait} longer for \
            answers" (wait = duration(*wait)),
        Redirected => "no answer was seen: the interface passes all that it receives on to another one (tc mirred)",
        PermanentNeighbour => "no answer to a ping, and its MAC is fixed, so the kernel does not probe it: it may ignore pings",
        NoMemory { error } => "could not be probed: {error}. This happens when the neighbour table is full (`sysctl \
            net.ipv4.neigh.default.gc_thresh3`), in whichever namespace. Run `netfix verify` again",
        NotPermitted { error } => "could not be probed: {error}. netfix needs CAP_NET_ADMIN and CAP_NET_RAW",
        OverBudget { budget } => "not probed: the pod needs more than {budget} (--pod-budget)" (budget = duration(*budget)),
        TooManyRoutes { most } => "not all of its gateways are probed: the pod has more than {most} routes or rules",
        CannotProbe { error } => "cannot be probed: {error}",
        InterfaceMissing => "cannot be probed: the interface is missing",
        InterfaceDown => "cannot be probed: the interface is down",
        NoAddress { address } => "no address to send from: {address} is missing",
        AddressDuplicate { address } => "no address to send from: another machine has {address} (duplicate address detection)",
        AddressTentative { address } => "no address to send from: duplicate address detection of {address} has not ended",
        NotAdvertised { address } => "no router advertises the network of {address} any more",
        NoRoute { to, error } => "no route to {to} ({error})",
        NoWayBack { address, error: None } => "the host sends packets to {address} elsewhere, and not to the pod",
        NoWayBack { address, error: Some(error) } => "the host has no route to {address}, and sends the pod nothing ({error})",
        RouteRefuses { to, error } => "the route to {to} refuses packets ({error})",
        RuleRefuses { to, rule, error } => "rule {rule} refuses packets to {to} ({error})",
        SendRefused { error } => "cannot send packets to it: {error}. Usual cause: a firewall in the namespace",
        ProbeFailed { error } => "cannot probe gateways: {error}",
        TargetSilent { timeout } => "no answer within {timeout}" (timeout = duration(*timeout)),
        TargetRefused { error } => "cannot be reached: {error}",
        NameNotFound => "the pod's name servers do not know this name",
        NameUnresolved { error } => "cannot resolve the name in the pod: {error}",
        NameWithoutProcess => "cannot resolve the name: no process of the pod is known. Use an address",
    }
}

fn objects(what: LostObjects) -> &'static str {
    match what {
        LostObjects::Links => "links",
        LostObjects::Addresses => "addresses",
        LostObjects::Others => "routes or settings",
    }
}

/// Who took them from pods alone.
fn culprit(what: LostObjects) -> &'static str {
    match what {
        LostObjects::Links => {
            "A program on this node or in the pod deleted them (a CNI DEL, for example)"
        }
        LostObjects::Addresses | LostObjects::Others => {
            "The pod's links stayed: a program on this node or in the pod removed them"
        }
    }
}
