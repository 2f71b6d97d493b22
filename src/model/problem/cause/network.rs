//! Causes found in what is missing, in the way, or not answering on the network.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::causes;
use crate::model::manager::{Manager, SettingOwner};
use crate::model::net::link::OtherDriver;
use crate::model::net::link::index::IndexUser;
use crate::model::net::link::nic::NicValue;
use crate::model::net::link::socket::Program;
use crate::model::window::KernelCause;
use crate::model::{Code, Hardware, IfName, LossCause, Mac, PodId};

causes! {
    /// Causes found in what a plan cannot restore.
    PlanCause {
        HostLinkMissing { parent: IfName } => ParentMissing,
        OwnLinkMissing { parent: IfName } => ParentMissing,
        DeviceMissing { hardware: Option<Hardware> } => ParentMissing,
        DeviceRenamed { now: IfName, then: IfName, config: Option<String> } => DeviceRenamed,
        KindMissing { kind: String } => Unsupported,
        LowerMissing { parent: IfName } => ParentMissing,
        LowerLost { parent: Option<IfName> } => Unsupported,
        MasterLost { master: IfName } => Unsupported,
        MasterMissing { master: IfName } => ParentMissing,
        NotTakenBack { master: IfName } => Unsupported,
        QdiscLost { now: String, then: String } => Unsupported,
        TrafficLost { what: String } => Unsupported,
        ProgramLost { what: String } => Unsupported,
        ProgramLeft { what: String, owner: String } => Unsupported,
        RedirectLost { filter: String, link: IfName } => Unsupported,
        ObjectLost => Unsupported,
        IfindexDiffers { now: u32, then: u32 } => IfindexDiffers,
        NicRenumbered { now: u32, then: u32, why: KeptIndex } => IfindexDiffers,
        Surplus => Surplus,
        IsUp => Drift,
        MadeWithOtherMac { now: Mac, then: Mac } => Drift,
        MadeWithOtherData => Drift,
        MadeWithOtherAddresses { more: usize } => Drift,
        DuplicateAddress => AddressConflict,
        LifetimeOver => Unsupported,
        Leased { more: usize } => Leased,
        NotAdvertised => NotAdvertised,
        LeftToDaemon { more: usize } => LeftToDaemon,
        SettingUnknown { then: NicValue, driver: Option<Box<OtherDriver>> } => SettingUnknown,
        IrqsBalanced => SettingDiffers,
        DcbManaged => SettingDiffers,
        SettingNeedsReload { then: NicValue, now: Option<NicValue>, driver: Option<Box<OtherDriver>> } => SettingDiffers,
        ModuleParameter { then: NicValue, now: Option<NicValue>, option: String } => SettingDiffers,
        Crippled { cause: KernelCause } => DriverReload,
        SettingMayReset { then: NicValue, now: Option<NicValue>, driver: Option<Box<OtherDriver>> } => SettingDiffers,
        SettingNeedsDown { then: NicValue, now: Option<NicValue>, driver: Option<Box<OtherDriver>> } => SettingDiffers,
        SettingsGone => SettingUnknown,
        SettingUnmet { then: NicValue } => SettingRefused,
        QueuesGone { now: Option<u64>, first: String, more: usize } => SettingRefused,
        SettingNotRestored { then: NicValue, now: Option<NicValue>, driver: Option<Box<OtherDriver>> } => SettingDiffers,
        SettingChanged { then: NicValue, now: Option<NicValue> } => SettingDiffers,
        FunctionsNotRestored { now: u32, then: u32 } => SettingDiffers,
        NoFunctions { then: u32 } => SettingUnknown,
        OtherNumberOfFunctions { now: u32, then: u32 } => SettingDiffers,
        OtherFunctionDriver { index: u32, now: String, then: String } => SettingDiffers,
    }
}

/// Why a NIC that its driver has made anew does not get its former ifindex back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptIndex {
    /// A person wants that (`--nic-index keep`).
    Requested,
    /// The kernel cannot move a device to a certain ifindex.
    OldKernel,
    /// The host is a container: if netfix died meanwhile, the kernel would return the device elsewhere.
    Container,
    /// Another link has it.
    Taken(IfName),
    /// Pods send packets through the NIC.
    Pods,
    /// The NIC is up, and pods that are not selected may use it.
    Selection,
    /// Another program has made virtual functions of it.
    Functions,
    /// It has an address that is not recorded.
    Address(IpAddr),
    /// This manager brings the NIC up, and loses track of one that goes meanwhile.
    Owner(Manager),
    /// The kernel refused it, with its error.
    Refused(Option<String>),
}

causes! {
    /// Causes where another object has the place, the name or the address.
    ConflictCause {
        OtherKind { now: String, then: String } => LinkConflict,
        OtherVlan { now: String, then: String } => LinkConflict,
        VlanIdTaken { by: IfName } => LinkConflict,
        OtherParent { now: Option<IfName>, then: Option<IfName> } => LinkConflict,
        OtherBondMode { now: String, then: String } => LinkConflict,
        OtherMaster { now: IfName, then: IfName } => LinkConflict,
        DeviceInUse { device: IfName, role: String } => LinkConflict,
        OtherTraffic { now: String, then: String } => LinkConflict,
        MacClaimed { others: Others } => MacConflict,
        MacOfAnother { owner: ClaimHolder, title: Title } => MacConflict,
        MacKept { others: Others } => MacConflict,
        AddressClaimed { others: Others } => AddressConflict,
        AddressOfAnother { owner: ClaimHolder, title: Title } => AddressConflict,
        AddressKept { others: Others } => AddressConflict,
        AddressInUse { owner: ClaimHolder, mac: Option<Mac> } => AddressConflict,
        AddressAnswered { mac: Mac, link: IfName } => AddressConflict,
        SameMacAnswered { mac: Mac, link: IfName } => AddressConflict,
        HostAddressMoved { mac: Mac, link: IfName } => AddressConflict,
        HostAddressTaken { mac: Mac, link: IfName } => AddressConflict,
        AllAnswered { mac: Mac, link: IfName, addresses: usize } => AddressConflict,
    }
}

impl ConflictCause {
    /// Whether it is about a claim of several pods, which costs only the contested object.
    pub(crate) fn is_claim(&self) -> bool {
        matches!(self.code(), Code::MacConflict | Code::AddressConflict)
    }
}

/// Why one of several claimants gets the contested object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Title {
    /// It is the host.
    Host,
    /// It has the object now.
    InUse,
    /// libcni's result gives it the object.
    CniResult,
    /// It is the only one that had the object in this generation.
    Older {
        /// The number of the generation.
        generation: u64,
    },
}

/// A namespace that has, or claims, what only one can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimHolder {
    /// The pod, or `None` for the host.
    pub pod: Option<PodId>,
    /// A path that leads to the pod's namespace.
    pub netns: String,
    /// The link that has it, where that is known.
    pub link: Option<IfName>,
}

/// All holders of one object but one of them. The problems of all share the list: it may be as long as there are pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Others {
    /// All holders.
    pub all: Arc<[ClaimHolder]>,
    /// The place of the one.
    pub but: usize,
}

impl Others {
    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ClaimHolder> {
        let but = self.but;
        let others = self
            .all
            .iter()
            .enumerate()
            .filter(move |(at, _)| *at != but);
        others.map(|(_, holder)| holder)
    }
}

causes! {
    /// Causes found in carrying a plan out.
    RestoreCause {
        MacTaken { owner: Option<(Mac, ClaimHolder)>, error: String } => MacConflict,
        ParentGone { error: String } => ParentMissing,
        UplinkLost => UplinkLost,
        StillLost { what: LossCause } => Degraded,
        PlaceTaken { error: String } => LinkConflict,
        ParentOccupied { parent: IfName, vfs: u32, error: String } => LinkConflict,
        DeviceResets { limit: Duration, error: String } => Failed,
        RoutePlaceTaken { error: String } => Failed,
        StepFailed { error: String } => Failed,
        FunctionRefused { error: String } => SettingRefused,
        FunctionUnchanged => SettingRefused,
        StepWithoutEffect => Failed,
        WaitsForCarrier => NoCarrier,
        NoCarrier => NoCarrier,
        UdevUnfinished { limit: Duration } => UdevPending,
        MadeForManager { manager: Manager, limit: Duration } => ManagedLink,
        NotActivated { limit: Duration, error: Option<String> } => ManagedLink,
        TakenBack => ManagedLink,
        UnknownToManager { manager: Manager } => ManagedLink,
        ManagerUnreachable { error: String } => ManagerUnreachable,
        LostAgain { what: LostObjects, pods: usize } => Degraded,
        PodsLostAgain { what: LostObjects, pods: Vec<String> } => Degraded,
        TornDown => PodGone,
        Unsettled { times: usize } => Degraded,
        FunctionLoops { times: usize } => Degraded,
        SettingRefused {
            then: NicValue,
            now: Option<NicValue>,
            limit: Option<NicValue>,
            driver: Option<Box<OtherDriver>>,
            error: Option<String>,
            may_be_held: bool,
        } => SettingRefused,
        SettingOwned { owner: SettingOwner } => ManagedLink,
        HostFailed { error: String } => Failed,
        Postponed { budget: Duration } => PodBudget,
        DetectionUnfinished { limit: Duration } => AddressConflict,
        NotProbed { failed: usize, all: usize, error: String } => Failed,
        Burst { frames: usize } => ProbeRate,
        AnsweredByProxy { mac: Option<Mac>, probes: usize } => AddressConflict,
        NotAnnounced { failed: usize, all: usize, error: String } => Failed,
    }
}

/// Objects that were lost, by what weighs most among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "kinds of objects")]
pub enum LostObjects {
    Others,
    Addresses,
    Links,
}

causes! {
    /// Causes found in what programs lose with a link: each before the loss, and after it.
    SocketCause {
        GroupsEnd { groups: Vec<IpAddr>, programs: Vec<Program> } => SocketLost,
        GroupsEnded { groups: Vec<IpAddr>, programs: Vec<Program> } => SocketLost,
        AnycastEnds { groups: Vec<IpAddr>, programs: Vec<Program> } => SocketLost,
        AnycastEnded { groups: Vec<IpAddr>, programs: Vec<Program> } => SocketLost,
        PacketEnds { programs: Vec<Program> } => SocketLost,
        PacketEnded { programs: Vec<Program> } => SocketLost,
        RoutingEnds { programs: Vec<Program> } => SocketLost,
        RoutingEnded { programs: Vec<Program> } => SocketLost,
        TapEnds { programs: Vec<Program> } => SocketLost,
        TapEnded { programs: Vec<Program> } => SocketLost,
        FunctionEnds { index: u32, driver: String, programs: Vec<Program> } => Unsupported,
        VerbsEnd { programs: Vec<Program> } => Unsupported,
        ClockEnds { programs: Vec<Program> } => Unsupported,
        IndexNamed { index: u32, users: Vec<IndexUser> } => IfindexNamed,
        IndexEnds { index: u32, users: Vec<IndexUser>, why: Option<KeptIndex> } => IfindexNamed,
        IndexDead { then: u32, now: u32, by: Option<IfName>, users: Vec<IndexUser>, is_older: bool } => IfindexNamed,
        IndexUnknown { users: Vec<IndexUser> } => IfindexNamed,
        IndexUnread { what: String } => IfindexNamed,
        OperatorActs { pid: Option<u32> } => SriovOperator,
        ConnectionsEnd { connections: usize } => Unsupported,
        ConnectionsUnknown { error: String } => Unsupported,
    }
}

causes! {
    /// Causes found in probing gateways and targets.
    GatewayCause {
        NoAnswer { timeout: Duration } => GatewayUnreachable,
        ArpOnly => GatewayUnreachable,
        NeverAnswered => GatewayUnreachable,
        NeverProbed => GatewayUnknown,
        PermanentNeighbour => GatewayUnknown,
        PortAwaited { bridge: IfName, state: &'static str, wait: Duration } => GatewayUnknown,
        AggregateAwaited { wait: Duration } => GatewayUnknown,
        Redirected => GatewayUnknown,
        NoMemory { error: String } => GatewayUnknown,
        NotPermitted { error: String } => GatewayUnknown,
        OverBudget { budget: Duration } => GatewayUnknown,
        TooManyRoutes { most: usize } => GatewayUnknown,
        CannotProbe { error: String } => GatewayUnreachable,
        InterfaceMissing => GatewayUnreachable,
        InterfaceDown => GatewayUnreachable,
        NoAddress { address: IpNet } => GatewayUnreachable,
        AddressDuplicate { address: IpNet } => GatewayUnreachable,
        AddressTentative { address: IpNet } => GatewayUnreachable,
        NotAdvertised { address: IpNet } => GatewayUnreachable,
        NoRoute { to: String, error: String } => GatewayUnreachable,
        NoWayBack { address: IpAddr, error: Option<String> } => GatewayUnreachable,
        RouteRefuses { to: String, error: String } => GatewayUnreachable,
        RuleRefuses { to: String, rule: u32, error: String } => GatewayUnreachable,
        SendRefused { error: String } => GatewayUnreachable,
        ProbeFailed { error: String } => Failed,
        TargetSilent { timeout: Duration } => TargetUnreachable,
        TargetRefused { error: String } => TargetUnreachable,
        NameNotFound => TargetUnreachable,
        NameUnresolved { error: String } => TargetUnreachable,
        NameWithoutProcess => TargetUnreachable,
    }
}
