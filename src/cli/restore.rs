//! Arguments of a restore and its plan.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{PodArgs, Runtimes};
use super::nic::NicArgs;
use super::values::{self, EXPERT};
use crate::model::{ConflictProbe, IfName, ProbeRate};
use crate::records::contest::CNI_CACHE;
use crate::records::fallback::Fallback;
use crate::records::prepare::{RecordSource, SurveyRequest};
use crate::refusal::Refusal;

/// The heading of what a restore works from.
const SOURCE: &str = "Restore source";
/// How long `restore` waits for a missing NIC unless the user sets another time.
pub(crate) const NIC_WAIT: Duration = Duration::from_secs(60);

/// What a restore works from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RestoreSource {
    /// The checkpoints that netfix wrote or imported, and those of earlier generations.
    Checkpoints,
    /// The results that libcni cached when it created the pods.
    CniCache,
}

/// What a restore works from, and the runtimes that it needs for that.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// Restore from this source alone
    ///
    /// Default: the checkpoints; for a pod without a usable one those of an earlier generation, then libcni's cache.
    #[arg(long, help_heading = SOURCE, value_enum, value_name = "SOURCE")]
    pub source: Option<RestoreSource>,
    /// Directory of libcni's cache; used by --source cni-cache and to tell which of two pods owns an address
    #[arg(long, hide = true, value_name = "DIR", default_value = CNI_CACHE)]
    pub cni_cache_dir: PathBuf,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}

/// The pods of a restore, and their parent link where the checkpoint has none.
#[derive(Debug, Clone, Args)]
pub struct RestorePods {
    /// Which pods.
    #[command(flatten)]
    pub pods: PodArgs,
    /// The host link under pods whose checkpoint names none (`i40e_net_fix` format), such as eth0.3
    #[arg(long, help_heading = EXPERT, hide_short_help = true, value_name = "IFNAME")]
    pub parent: Option<IfName>,
    /// Restore also what daemons own, though they may have withdrawn it since the snapshot
    ///
    /// That is: routes of routing daemons, addresses of keepalived, service addresses on the loopback device.
    #[arg(long, help_heading = SOURCE)]
    pub with_daemons: bool,
    /// Settings of NICs.
    #[command(flatten)]
    pub nic: NicArgs,
}

impl RestorePods {
    /// The request for the engine.
    pub(crate) fn request(&self, source: &SourceArgs) -> Result<SurveyRequest, Refusal> {
        let generation = self.pods.generation;
        let fallback = match (source.source, generation) {
            (None, None) => Fallback::GenerationsAndCache,
            (Some(RestoreSource::Checkpoints), None) => Fallback::Generations,
            (_, Some(_)) | (Some(RestoreSource::CniCache), None) => Fallback::Nothing,
        };
        Ok(SurveyRequest {
            selection: self.pods.selectors.selection()?,
            source: match source.source {
                None | Some(RestoreSource::Checkpoints) => RecordSource::Checkpoints { generation },
                Some(RestoreSource::CniCache) => {
                    RecordSource::CniCache(source.cni_cache_dir.clone())
                }
            },
            fallback,
            with_daemons: self.with_daemons,
            nic: self.nic.nic_settings,
            index: self.nic.index.nic_index,
            parent: self.parent.clone(),
            runtimes: source.runtimes.config(),
            cni_cache: source.cni_cache_dir.clone(),
        })
    }
}

/// The restore to plan, for its exit code.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Which pods.
    #[command(flatten)]
    pub target: RestorePods,
    /// Where from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The restore to plan.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Which one.
    #[command(flatten)]
    pub planned: DiffArgs,
    /// Exit with code 3 if there is anything to do
    #[arg(long)]
    pub exit_code: bool,
}

/// How fast a restore probes and announces.
#[derive(Debug, Clone, Copy, Args)]
pub struct RateArgs {
    /// Send at most this many probes and announcements per second, such as 15 for a switch with dynamic ARP inspection
    ///
    /// Default: netfix sends them at once; 15 where up to 75 addresses are restored and some are leased (DHCP).
    #[arg(
        long,
        hide = true,
        value_name = "NUMBER",
        env = "NETFIX_PROBE_RATE",
        hide_env_values = true
    )]
    pub probe_rate: Option<ProbeRate>,
}

/// The probe before an address is added.
#[derive(Debug, Clone, Copy, Args)]
pub struct ProbeArgs {
    /// Before adding an address, check that no other machine uses it
    #[arg(long, hide = true, value_enum, value_name = "HOW", default_value_t)]
    pub conflict_probe: ConflictProbe,
    /// `--conflict-probe off`.
    #[arg(long, hide = true, conflicts_with = "conflict_probe")]
    pub no_conflict_probe: bool,
    /// The rate.
    #[command(flatten)]
    pub rate: RateArgs,
}

impl ProbeArgs {
    /// What both options mean.
    #[must_use]
    pub fn mode(self) -> ConflictProbe {
        if self.no_conflict_probe {
            ConflictProbe::Off
        } else {
            self.conflict_probe
        }
    }
}

/// How long a restore waits for the owners of links, and works on one pod.
#[derive(Debug, Clone, Copy, Args)]
pub struct PaceArgs {
    /// Wait this long for the network manager that owns a missing host link to bring it back, then recreate it
    #[arg(long, hide = true, value_name = "DURATION",
        default_value = "5s", value_parser = values::time)]
    pub manager_wait: Duration,
    /// Time budget per pod; a pod that needs more is finished after all others
    #[arg(long, hide = true, value_name = "DURATION", default_value = "5s",
        value_parser = values::time)]
    pub pod_budget: Duration,
}

/// A restore.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Which pods.
    #[command(flatten)]
    pub target: RestorePods,
    /// Where from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Wait this long for a NIC that is missing, such as 2m; 0: do not wait [default: 60s]
    ///
    /// A time that you set is also the limit for the carrier of a NIC that was never away. Without it netfix waits for
    /// the carrier only of a NIC that has come back meanwhile.
    #[arg(long, alias = "wait", value_name = "DURATION", value_parser = values::time)]
    pub nic_wait: Option<Duration>,
    /// What a restore waits for, and for how long.
    #[command(flatten)]
    pub pace: PaceArgs,
    /// The probe.
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// After the restore, watch the links for this long and restore anything that is lost again
    ///
    /// Then netfix checks everything once more.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::time)]
    pub watch: Duration,
    /// Print the steps and change nothing, like `plan`
    #[arg(long)]
    pub dry_run: bool,
}
