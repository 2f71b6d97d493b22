//! Sentences about what a reload of a NIC's driver needs, and what it left.

use super::{and, few};
use crate::model::problem::{DriverCause, FullFilters};
use crate::model::text::{escape, join};
use crate::report::text::verb;

sentences! {
    DriverCause {
        Held { holders, module, is_in_command } if *is_in_command => "COMMAND unloads it, but not {held}, {use} it: that fails, and the \
            driver that runs now stays. Use `modprobe -r {all} {module}` in COMMAND"
            (held = and(holders), use = verb(holders.len(), "which uses", "which use"), all = join(holders, " ")),
        Held { holders, module, is_in_command: _ } => "{held} {use} this driver, so `modprobe -r {module}` fails. Unload all with \
            `modprobe -r {all} {module}`"
            (held = and(holders), use = verb(holders.len(), "uses", "use"), all = join(holders, " ")),
        FirmwareMissing { files, has_safe_mode } if *has_safe_mode => "the module that a reload loads needs {files}, and no such file is \
            installed: the driver would start in safe mode, with one queue and without virtual functions. Install it before the reload"
            (files = few(files)),
        FirmwareMissing { files, has_safe_mode: _ } => "the module that a reload loads names {files}, and no such file is installed. Some \
            devices need it" (files = few(files)),
        FiltersFull { needed, room, beyond } => "needs {needed} filters for its MACs and VLANs, and has room for {room}: {beyond}"
            (beyond = beyond_filters(*beyond)),
        NameNotPinned { config } => "{config} names it, and nothing pins that name: another version of the driver may add a port to it \
            (such as np0). Pin it by a .link file with PermanentMACAddress= and Name=" (config = escape(config)),
        OtherParameter { running, option } => "runs with {running}, and a reload sets it to the value in modprobe.d or the kernel's \
            command line. To keep the present one, write `{option}` there" (running = escape(running), option = escape(option)),
        NotReloaded { nics } => "COMMAND succeeded, but its driver was not reloaded: {nics} {is} not made again. If COMMAND was to reload \
            it, the former driver still runs. `modprobe -r X; modprobe X` succeeds even if the first command fails: use `&&`"
            (nics = few(nics), is = verb(nics.len(), "was", "were")),
        ModuleGone => "this module was loaded before COMMAND and is not loaded now. If something needs it, run `modprobe` with its name",
    }
}

/// What becomes of packets beyond the filters, and what to do.
fn beyond_filters(beyond: FullFilters) -> &'static str {
    match beyond {
        FullFilters::Promiscuous => {
            "the device takes all packets of its network then, which costs processor time and no packet"
        }
        FullFilters::Lost => "the pods beyond that receive nothing",
        FullFilters::MaxMacs => {
            "the pods beyond that may receive nothing. Raise max_macs with `devlink dev param set`, and run `devlink dev reload` \
             at the end of COMMAND, because a reload of the driver sets it back"
        }
    }
}
