//! Sentences about the state folder, and what snapshots and the pre-check find.

use super::{and, or_nothing};
use crate::model::pod::empty::Evidence;
use crate::model::problem::{
    CheckCause, Elsewhere, FleetCause, RehearsalCause, SnapshotCause, StoreCause, StoreEffect,
    Unrehearsed, UsageCause,
};
use crate::model::text::{count, duration};
use crate::model::{IpFamily, LossCause};

sentences! {
    StoreCause {
        Corrupt { path, reason, effect } => "{path} is damaged: {reason}{effect}" (effect = or_nothing("; ", effect.as_ref())),
        NoSpace { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        TooLarge { path, size, most } => "cannot write {path}: {size} MiB, and netfix reads at most {most} MiB",
        CannotWrite { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        CannotRead { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        Locked { path, holder, waited } if waited.is_zero() => "{path} is held by {holder}. Run this again when that \
            command has ended, or wait for it with --lock-wait 60s",
        Locked { path, holder, waited } => "{path} is held by {holder}, which did not end within {waited} (--lock-wait)"
            (waited = duration(*waited)),
        NoGeneration { kept } if kept.is_empty() => "there is no such generation: none is kept yet. Run `netfix snapshot`",
        NoGeneration { kept } if kept.len() == 1 => "there is no such generation: only {kept} is kept"
            (kept = and(kept)),
        NoGeneration { kept } => "there is no such generation: {kept} are kept" (kept = and(kept)),
    }
}

sentences! {
    StoreEffect {
        NothingReplaced => "no generation holds the old checkpoint, so it is not replaced",
        HostUnknown => "the host's own addresses and routes are unknown",
        HostOfGeneration => "the host is compared with the newest generation",
        TimesUnknown => "when the checkpoints were last verified is unknown",
        WindowUnknown => "whether kubelet is paused is unknown. Run `netfix resume`: it starts kubelet and keeps the file under \
            another name",
        KeptInMemory => "until the next netfix command that takes the lock, the record is in /run/netfix",
    }
}

sentences! {
    IpFamily {
        V4 => "IPv4",
        V6 => "IPv6",
    }
}

sentences! {
    LossCause {
        LinkGone => "is gone",
        LinkDown => "is down",
        LinkReplaced => "is another device now",
        Addresses => "has lost all its addresses",
        FamilyAddresses(family) => "has lost all its {family} addresses",
        DefaultRoute(family) if *family == IpFamily::V4 => "has lost its default route",
        DefaultRoute(family) => "has lost its {family} default route",
        GatewayRoutes(family) => "has lost all its {family} routes with a gateway",
        Uplink => "is there, but its bridge on the host has lost its uplink",
        Route(to) => "has lost its route to {to}",
        Rule(priority) => "has no way out: the rule with priority {priority} is gone",
        Way(to) => "has no way to {to} any more, although the route is there: see `ip rule` and `ip route`",
        NoCarrier => "has no carrier, and no way out without it",
        Neighbour(hop) => "has no way to learn the MAC of {hop}, its next hop: the permanent neighbour is gone, or ARP is off",
        NeighbourMac { hop, mac } => "sends packets for {hop}, its next hop, to {mac}, by a permanent neighbour: it had another MAC",
        HostLinkDown => "on the host, which carries its packets, is down",
        NoPort => "on the host, which carries its packets, is no port of its bridge any more",
        HostRoute(to) => "on the host, which carries its packets, has lost the route to {to}",
        HostAddress(ip) => "on the host, which carries its packets, has lost the address {ip}, its gateway",
        HostSetting(key) => "on the host does not forward its packets any more: {key} is 0",
        HostWay(to) => "on the host, which carries its packets, gets none for {to} any more, although the route is there: see `ip rule` and `ip route`",
        HostForwarding { table } => "on the host does not forward its packets by the routing table {table} any more: see `ip rule` and \
            `ip route show table {table}`",
        PortBlocked => "passes no packets: it is a disabled port of its bridge",
        Isolated => "on the host, which carries its packets, is an isolated port of its bridge, as the uplink is",
        NotInVlan => "on the host, which carries its packets, is not in its VLAN any more",
    }
}

sentences! {
    Evidence {
        Runtime => "its runtime reports a network of its own",
        CniCache => "libcni's cache has a result for it",
        HostId => "a link of it was connected with the host",
        Packets => "the kernel has counted packets of another interface than lo",
        Checkpoint => "its checkpoint is damaged",
    }
}

/// The generation that has what was lost.
fn held(generation: Option<u64>) -> String {
    generation.map_or_else(String::new, |number| {
        format!(" (saved in generation {number})")
    })
}

sentences! {
    SnapshotCause {
        Lost { what: LossCause::NoCarrier, .. } => "has no carrier, and no way out without it: netfix keeps the good checkpoint. Check \
            the cable, the switch and the driver. If the present state is right, run `netfix snapshot --accept POD`",
        Lost { what, generation } => "{what}{held}: netfix keeps the good checkpoint, and `netfix restore` brings it back. If the \
            present state is right, run `netfix snapshot --accept POD`" (held = held(*generation)),
        TooLong { most, left } => "{left} entries of the pod's tables are not recorded, and a restore does not bring them back: it has \
            more than {most} routes, rules or neighbours",
        NoRecord { evidence } => "has no interface and no checkpoint, and {evidence}: what it lost is unknown. If it needs none, \
            run `netfix snapshot --accept POD`",
        Incomplete { what } => "{what}, by libcni's cache: it is not saved, and `netfix restore` brings back what is missing. If the \
            present state is right, run `netfix snapshot --accept POD`",
        CutOffAccepted { why } => "{why}: accepted, the present state is recorded",
        GivenUp { what, generation: None } => "{what}: given up, the present state is recorded",
        GivenUp { what, generation: Some(number) } => "{what}: given up, the present state is recorded. `netfix restore \
            --generation {number}` brings it back",
        BareGivenUp => "has no interface: given up, recorded as a pod without a network",
        NotRunning => "no running pod has this name or id: nothing to accept. Nothing was written",
        Several { pods } => "{pods} have this name, or an id that begins with it. Use NAMESPACE/NAME or a longer id. Nothing was \
            written" (pods = count(*pods, "pod")),
        NothingLost => "has lost nothing: nothing to accept. Nothing was written",
        HostLost { what, generation } => "{what} on the host{held}: netfix keeps the good state of the host, and `netfix restore` \
            brings it back. If the present state is right, run `netfix snapshot --accept host`" (held = held(*generation)),
        LessRestorable { generation, is_host } => "a restore could not recreate it as it is now: netfix keeps the record by which it \
            can{held}. If the present state is right, run `netfix snapshot --accept {who}`" (held = held(*generation),
            who = if *is_host { "host" } else { "POD" }),
        HostObjectLost => "is missing on the host, and netfix cannot restore it: netfix keeps the good state of the host. Configure \
            it again, or run `netfix snapshot --accept host`",
        HostGivenUp => "what the host has lost is given up, its present state is recorded",
        AnswersGivenUp => "earlier answers are given up: what is silent now counts as never answered",
        HostNoCarrier => "carried the host's packets and has no carrier: netfix keeps the good state of the host. Check the cable, the \
            switch and the driver. If the present state is right, run `netfix snapshot --accept host`",
        LinkVanished { link } => "{link} vanished while it was read. Run `netfix snapshot` again",
        HostLinkGone => "is missing under stored checkpoints: netfix keeps the good state of the host",
        HostLinkDown => "is down under stored checkpoints: netfix keeps the good state of the host",
        OnThirdNamespace => "is on a link in another namespace: a restore could not recreate it",
        KindCannotBeMade => "is of a kind that netfix cannot create: a restore could not recreate it",
        KeysCannotBeRead => "has keys that the kernel does not show: a restore could not recreate it. After a restore, let its owner \
            (such as wpa_supplicant) create it again",
        LowerCannotBeSet => "stays when its lower device is lost, and netfix cannot attach it to the new one. After a restore, delete \
            and add it",
        LowerIsGone => "its lower device is gone: it sends nothing. `netfix restore` gives it the one that a snapshot has; else delete \
            and add it",
        TrafficCannotBeRestored { what } => "has {what}: a restore could not recreate that. After a restore, configure it again \
            with tc(8)",
        RedirectCannotBeRestored { filter, link } => "has {filter}, which sends packets to {link}: a reload of the driver gives {link} \
            another ifindex, and the filter no longer reaches it. After a restore, delete and add it with tc(8)",
        ProgramCannotBeRestored { what } => "has {what}: a restore cannot load programs. After a restore, let its owner (such as \
            Cilium) install it again",
        ProgramOwned { what, owner } => "has {what}, which belongs to {owner}: netfix leaves it to {owner}, which runs and installs it \
            again after a reload",
        CannotBeRestored => "a restore could not recreate this",
        DeviceInPod => "has neither a permanent MAC nor a bus address, so netfix could not find it again to move it back into \
            the pod",
        MembershipStays => "uses autojoin, which netfix cannot restore: the kernel would reject the address on a recreated link",
        HeldDown => "is held down (protodown). After a restore the carrier of its NIC can raise it for up to a second, until netfix \
            takes it down again: its IPv6 addresses and routes can be in use from then on, and it can have one more address, link-local, \
            and lose neighbours that are not permanent. If it has carrier now, it has that and its link-local address again when the \
            carrier of its NIC changes",
        PairNotRecorded { what } => "has entries that are not recorded ({what}): it is one end of a pair, which stays when a NIC is lost. \
            If it is deleted, add them again",
        DcbCannotBeRestored { what } => "has data center bridging ({what}), which a reload of the driver can remove. netfix does not set it, \
            because that resets some devices. After a reload, configure it again with dcb(8) or lldptool(8)",
        DcbManaged { what } => "has data center bridging ({what}): lldpad configures it again after a reload",
        NetworkAnswers { mac, addresses } => "{mac} answers for all {addresses} addresses that netfix probed: the network \
            answers for other machines (proxy ARP). After the reload netfix ignores its answers",
        SameMacAnswers { addresses } => "the network answers for {addresses}, in use on this node, with the MAC of their own links \
            (ARP suppression), or another machine has the same address and MAC. After the reload netfix ignores these answers, but not \
            for the MAC of a virtual router" (addresses = and(addresses)),
        AnotherAnswers { mac, addresses } => "{mac} answers for {addresses}, in use on this node: another machine with the \
            same address, or a network that answers for others (proxy ARP). After the reload netfix ignores these answers"
            (addresses = and(addresses)),
        PortCannotBeRestored { master } => "is a port of {master}: a restore could not give it its former place there",
    }
}

sentences! {
    RehearsalCause {
        NotBack => "would be lost: a restore in a twin of the node did not bring it back",
        Surplus => "would be new: a restore in a twin of the node added it",
        Differs { attribute, now, then, more } => "would come back with {attribute} {then} instead of {now}{others}, as in a twin of the \
            node" (
            then = or_none(then.as_deref()), now = or_none(now.as_deref()), others = and_others(*more)
        ),
        Contents => "would differ after a restore, as in a twin of the node",
        Order => "would come back in another order, as in a twin of the node",
        Refused { message } => "in a twin of the node: {message}",
        MoreDiffer { more } => "{objects} would differ after a restore" (objects = more_objects(*more)),
        Failed { error } => "could not be rehearsed: {error}",
        TimeOver { limit } => "the rehearsal has taken {limit}: the other pods are not rehearsed" (limit = duration(*limit)),
        NotRehearsed { why } => "{why}" (why = why.words()),
        LeftToDaemon { more: 0 } => "would be left to its daemon, as in a twin of the node",
        LeftToDaemon { more } => "would be left to its daemon, and {objects} to theirs, as in a twin of the node" (
            objects = more_objects(*more)
        ),
    }
}

/// A value; an attribute may not be set.
fn or_none(value: Option<&str>) -> &str {
    value.unwrap_or("none")
}

fn and_others(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" ({} differ)", count(more, "more attribute")),
    }
}

fn more_objects(more: usize) -> String {
    count(more, "more object")
}

impl Unrehearsed {
    fn words(&self) -> &'static str {
        match self {
            Self::Device => "is a hardware device: a twin cannot have it",
            Self::Elsewhere => "is on a link in another namespace: a twin cannot have that",
            Self::Kind => "a twin cannot have a link of this kind",
            Self::Below => "a host link under it cannot be rehearsed",
            Self::NoRecord => "has no checkpoint",
            Self::Partial => "its record has gaps",
            Self::Lost => "has lost a part of its network",
        }
    }
}

sentences! {
    CheckCause {
        NoFolder => "does not exist: no snapshot was ever taken. Run `netfix snapshot`, and schedule it (timer or cron)",
        FolderUnusable { error } => "{error}; no snapshot can be written",
        TooFewBytes { free_kib: free, needed_kib: needed } => "has {free} KiB free; a snapshot may need {needed} KiB",
        TooFewInodes { free } => "has only {inodes} free" (inodes = count(*free, "inode")),
        CapabilityMissing => "this process does not have the capability, so a restore would fail",
        KindMissing => "this kernel cannot create links of this kind, nor load the module for it: a restore of the pods \
            that have one would fail",
        NoCompleteSnapshot => "no snapshot of all pods was completed since this machine's boot. Run `netfix snapshot`",
        SnapshotStale { age, completed } => "the last snapshot of all pods was completed {age} ago, at {completed}. Run \
            `netfix snapshot`" (age = duration(*age)),
        NoCarrierUnderPods => "has no carrier: the pods on it cannot be reached",
        NoCarrierUnderHost => "has no carrier: the host reaches nobody through it",
        NoCarrier => "has no carrier",
        NoCheckpoint => "has no checkpoint yet. Run `netfix snapshot`",
        Stale { age } => "last verified {age} ago. Run `netfix snapshot`" (age = duration(*age)),
        OriginFormat => "is in the format of i40e_net_fix, which does not record the links under the pod. Run `netfix \
            snapshot`",
        Lost { what: LossCause::NoCarrier, .. } => "has no carrier, and no way out without it. Check the cable, the switch and the \
            driver",
        Lost { what, generation } if matches!(what, LossCause::Addresses | LossCause::FamilyAddresses(_)) => "{what}{held}. \
            Run `netfix restore`: it adds them, or names the machine that uses one" (held = held(*generation)),
        Lost { what, generation } => "{what}{held}. Run `netfix restore`" (held = held(*generation)),
        HostLost { what, generation } => "{what} on the host{held}. Run `netfix restore`; if the present state is right, \
            run `netfix snapshot --accept host`" (held = held(*generation)),
        Drift { more: 0, pod } => "`netfix restore` would do this (`netfix diff{pod}` shows it). If the present state is \
            right, run `netfix snapshot`" (pod = or_nothing(" ", pod.as_ref())),
        Drift { more, pod } => "`netfix restore` would do this and {steps} (`netfix diff{pod}` shows them). If the present \
            state is right, run `netfix snapshot`" (steps = count(*more, "more step"), pod = or_nothing(" ", pod.as_ref())),
        Unrecorded { more: 0 } => "is in no checkpoint: a loss of the NIC would take it. Run `netfix snapshot`",
        Unrecorded { more } => "is in no checkpoint, like {objects}: a loss of the NIC would take them. Run `netfix snapshot`"
            (objects = count(*more, "more object")),
    }
}

sentences! {
    UsageCause {
        NotRoot => "netfix enters network namespaces of other processes: run it as root",
        NotTheHost { why: Elsewhere::Netns } => "this is not the host's network namespace, which is that of process 1: run netfix on \
            the host (in Kubernetes with hostNetwork: true, in a unit without PrivateNetwork=), or set NETFIX_HOST_NETNS=self if this \
            namespace is the host's",
        NotTheHost { why: Elsewhere::Pids } => "the processes of the host are not visible in this pid namespace: run netfix on the host \
            (in Kubernetes with hostPID: true), or set NETFIX_HOST_NETNS=self if this is the host",
        TextOnly => "this command has no `-o` formats: it prints plain text",
    }
}

sentences! {
    FleetCause {
        Unreadable { error } => "{error}",
        NoDocument { error } => "is not a `netfix -o json` document: {error}. The rest of the file is skipped",
        Empty => "the file is empty",
        Old { age, most } => "was checked {age} ago (--max-age {most}): how the node is now is unknown. Run `netfix check -o json` \
            there again" (age = duration(*age), most = duration(*most)),
        Future { by } => "was checked {by} in the future: how the node is now is unknown. Compare the clocks" (by = duration(*by)),
        Undated => "does not have the time of its check, because an older netfix printed it: how the node is now is unknown",
        Selection => "is a check of selected pods only: how the node is now is unknown",
        Superseded { others, newest } => "{others} of this node left out: the newest one, in {newest}, counts"
            (others = count(*others, "older document")),
    }
}
