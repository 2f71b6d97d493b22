//! The causes that the kernel's log names: what they mean, and what to do.

use crate::model::problem::LogCause;
use crate::model::window::KernelCause;

sentences! {
    LogCause {
        Named { cause } => "{cause}",
    }
}

sentences! {
    KernelCause {
        SafeMode => "ice runs in safe mode, with one queue and without virtual functions: it found no DDP package that fits. Install the \
            package of the new driver in /lib/firmware/intel/ice/ddp, and load the driver again",
        RecoveryMode => "the firmware of the device is in recovery mode: no driver and no rollback helps. Restart the machine with a power \
            cycle, or flash the firmware again with the vendor's tool",
        PromiscuousForced => "the filters of i40e are full: it receives all frames, and the processors drop those of others. Fewer pods or \
            VLANs on the device would end that",
        MacFilterLimit => "the filters of ice are full: pods beyond that receive nothing. `ip link set DEVICE promisc on` lets them in",
        AddressesDropped => "more MACs than mlx5 takes: pods beyond that may receive nothing. Raise `max_macs` (`devlink dev param set`), \
            and run `devlink dev reload` in COMMAND",
        FilterFailure => "bnxt_en has no filter for a MAC: a pod may receive nothing. `ip link set DEVICE promisc on` lets it in",
        RdmaActive => "ice does not change channels while RDMA uses the device. Run `modprobe -r irdma`, then `netfix restore`",
        UnsupportedModule => "the driver does not accept the transceiver. Use another one, or load the driver with its option for that \
            (ixgbe: allow_unsupported_sfp=1)",
        UnknownSymbol => "a module does not fit the new driver and is not loaded. Install the one that comes with the driver",
        FunctionsAssigned => "a virtual machine has a virtual function of the device: stop the machine, or detach the function",
        ReferenceLeaked => "a program or the kernel holds a reference to the link, so the driver cannot be unloaded. End the \
            programs with sockets on it; if this line still comes again for minutes, only a reboot helps",
        FunctionLoops => "the driver of a virtual function starts again and again: it may not reach the physical function. Load a driver \
            that fits that of the physical function",
    }
}
