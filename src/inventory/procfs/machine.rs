//! Whether netfix runs on the host: in the network namespace of process 1, and with all processes in sight. Elsewhere running pods
//! would seem to be gone.

use std::env;
use std::io;
use std::path::Path;

use super::{machine_inode, namespace, netns_inode, of_machine, process};
use crate::kernel::Netns;
use crate::model::problem::{Elsewhere, InventoryCause, UsageCause};
use crate::model::{NetnsIdentity, Problem};

/// With the value `self` it makes the network namespace of this process the host's: for nodes that are kept in a namespace.
const HOST_NETNS: &str = "NETFIX_HOST_NETNS";
/// The inode of the first pid namespace: `PROC_PID_INIT_INO` (`include/linux/proc_fs.h`).
const FIRST_PIDS: u64 = 0xEFFF_FFFC;
/// Only the first network namespace has it: `net_core_table` (`net/core/sysctl_net_core.c`).
const OF_FIRST_NETNS: &str = "/proc/sys/net/core/netdev_max_backlog";

/// Fails where this process is not in the host's network namespace, or the processes of the host are not visible.
pub(crate) fn prove() -> Result<(), Problem> {
    match elsewhere() {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(UsageCause::NotTheHost { why }.error("")),
        Err(error) => {
            let error = error.to_string();
            Err(InventoryCause::CannotObserve { error }.error("/proc/1/ns"))
        }
    }
}

fn is_self_the_host() -> bool {
    env::var_os(HOST_NETNS).is_some_and(|value| value == "self")
}

fn elsewhere() -> io::Result<Option<Elsewhere>> {
    if is_self_the_host() {
        return Ok(None);
    }
    // First, because in a container process 1 can be netfix, in each namespace of its own.
    let own_pids = namespace("self", "pid")?;
    let has_first_netns = || Path::new(OF_FIRST_NETNS).exists();
    let is_hidden = std::process::id() == 1
        || of_machine("pid")? != own_pids
        || (own_pids != FIRST_PIDS && has_first_netns());
    if is_hidden {
        return Ok(Some(Elsewhere::Pids));
    }
    let is_other = netns_inode("self")? != machine_inode()?;
    Ok(is_other.then_some(Elsewhere::Netns))
}

/// Whether the host is a container, whose own links lead to namespaces that it cannot see.
pub(crate) fn is_container() -> bool {
    namespace("self", "pid").is_ok_and(|pids| pids != FIRST_PIDS)
}

/// The host's network namespace, with process 1.
pub(crate) fn host() -> Option<NetnsIdentity> {
    let mut host = Netns::host().ok()?;
    host.holder = process(1);
    Some(host.identity(None))
}

/// Fails where the records of this boot are of a netfix that saw an older process 1: it saw more processes.
pub(crate) fn prove_whole(recorded: Option<&NetnsIdentity>) -> Result<(), Problem> {
    let recorded = recorded.filter(|_| !is_self_the_host());
    let start = |of: &NetnsIdentity| of.holder.map(|first| first.start_time);
    let is_inner = recorded.is_some_and(|then| {
        let now = host().filter(|now| then.may_be(now));
        now.is_some_and(|now| start(then).is_some() && start(then) < start(&now))
    });
    if is_inner {
        let why = Elsewhere::Pids;
        return Err(UsageCause::NotTheHost { why }.error(""));
    }
    Ok(())
}
