//! All that is set on a device.

use std::path::Path;

use super::device::DriverInfo;
use super::features::{self, Features};
use super::fields::SettingMessage;
use super::ioctl::{IoctlDevice, flows, per_queue, private, rss, tunables, words};
use super::message::{self, Reported, Values};
use super::{dcb, irqs, link_modes, queues};
use crate::kernel::Errno;
use crate::kernel::conf::module;
use crate::kernel::conf::sysfs::Sysfs;
use crate::kernel::error::SetError;
use crate::kernel::plain::genl::{Answer, ETHTOOL, Genl};
use crate::model::IfName;
use crate::model::net::link::nic::{NicGroup, NicState, NicValue};

/// Sockets and files of the calling thread's namespace.
pub(super) struct NicReader {
    genl: Option<Genl>,
    sysfs: Option<Sysfs>,
}

impl NicReader {
    pub fn open_here() -> Self {
        Self {
            genl: Genl::open_here(&ETHTOOL),
            // Before Linux 5.2 none can be mounted in this way.
            sysfs: Sysfs::here().ok(),
        }
    }

    /// As on a kernel before 5.6.
    #[cfg(test)]
    pub fn without_messages() -> Self {
        Self {
            genl: None,
            ..Self::open_here()
        }
    }

    /// All that is set on a device, but for virtual functions; and what of it cannot be read, in words.
    pub fn read(&mut self, dev: &IfName) -> (Option<NicState>, Vec<String>) {
        let Ok(device) = IoctlDevice::open(dev) else {
            return (None, Vec::new());
        };
        let mut reading = NicReading::new(dev);
        let info = DriverInfo::of(&device);
        reading.state.driver = info.as_ref().and_then(DriverInfo::whole);
        self.read_messages(&device, &mut reading);
        reading.note(NicGroup::Rss, rss::read(&device));
        reading.note_contexts(rss::contexts(&device));
        let channels = reading.state.settings.get(&NicGroup::Channels);
        if per_queue::differ(&device, channels) {
            let text = format!("coalescing of single queues of {dev} (ethtool --per-queue)");
            reading.unreadable.push(text);
        }
        reading.note(NicGroup::FlowHash, flows::read_hash(&device));
        reading.note(NicGroup::Tunables, tunables::read(&device));
        reading.note_rules(flows::read_rules(&device));
        reading.note(NicGroup::Dcb, dcb::read(dev));
        let driver = reading.state.driver.as_ref();
        let module = driver.map(|driver| module::read(Path::new(module::MODULES), &driver.name));
        reading.put(NicGroup::Module, module.unwrap_or_default());
        let bus = info.and_then(|info| info.bus());
        if let Some(files) = bus.as_deref().and_then(irqs::IrqFiles::of) {
            reading.put(NicGroup::Irqs, irqs::read(&files, dev));
            reading.limit(NicGroup::Irqs, irqs::limits(&files, dev));
        }
        if let Some(files) = self.sysfs.as_ref().and_then(|all| all.files(dev).ok()) {
            reading.put(NicGroup::Queues, queues::read(&files));
            reading.limit(NicGroup::Queues, queues::numbers(&files));
        }
        reading.finish()
    }

    /// What has messages; where the kernel has not, by ioctl(2).
    fn read_messages(&mut self, device: &IoctlDevice<'_>, reading: &mut NicReading<'_>) {
        let mut answers = self.ask(device.name).into_iter();
        let mut next = || answers.next().unwrap_or(Err(Errno::EOPNOTSUPP.into()));
        let features = next().and_then(|answer| Features::of(&answer).ok_or(INVALID));
        reading.note_features(features.or_else(|error| {
            let other = || Features::read(device).map_err(SetError::from);
            if_absent(error, other)
        }));
        // The hints of a virtual device are all that it has.
        let driver = reading.state.driver.as_ref();
        let is_virtual = driver.is_some_and(|driver| driver.name == "virtio_net");
        let modes = next().map(|answer| link_modes::of(&answer, is_virtual));
        reading.note(
            NicGroup::Link,
            modes.or_else(|error| {
                let read = || link_modes::LinkSettings::read(device).map_err(SetError::from);
                if_absent(error, || Ok(read()?.settings(is_virtual)))
            }),
        );
        for message in message::all() {
            let reported = next().map(|answer| message.reported(&answer));
            let reported = reported.or_else(|error| {
                if_absent(error, || by_ioctl(message, device).map_err(SetError::from))
            });
            reading.note_reported(message.group, reported);
        }
    }

    /// The answers for features, link modes, and all other messages.
    fn ask(&mut self, dev: &IfName) -> Vec<Answer> {
        let Some(genl) = &mut self.genl else {
            return Vec::new();
        };
        let mut requests = vec![
            (features::GET, message::request(dev, 0)),
            (link_modes::GET, message::request(dev, 0)),
        ];
        requests.extend(message::all().map(|message| (message.get, message.query(dev))));
        genl.get(&requests).unwrap_or_default()
    }
}

const INVALID: SetError = SetError {
    errno: Errno::EBADMSG,
    words: None,
};

/// The other way, where the kernel or the driver does not know the first.
fn if_absent<T>(
    error: SetError,
    other: impl FnOnce() -> Result<T, SetError>,
) -> Result<T, SetError> {
    if error.errno == Errno::EOPNOTSUPP {
        other()
    } else {
        Err(error)
    }
}

fn by_ioctl(message: &SettingMessage, device: &IoctlDevice<'_>) -> Result<Reported, Errno> {
    match message.structure {
        None => private::read(device),
        Some(structure) => {
            let mut request = words(&[structure.get]);
            request.resize(structure.words * 4, 0);
            Ok(message.reported_by(&device.call(&request)?))
        }
    }
}

/// What was read so far.
struct NicReading<'a> {
    dev: &'a IfName,
    state: NicState,
    unreadable: Vec<String>,
}

impl<'a> NicReading<'a> {
    fn new(dev: &'a IfName) -> Self {
        Self {
            dev,
            state: NicState::default(),
            unreadable: Vec::new(),
        }
    }

    fn put(&mut self, group: NicGroup, values: Values) {
        if !values.is_empty() {
            self.state.settings.insert(group, values);
        }
    }

    fn limit(&mut self, group: NicGroup, maxima: Values) {
        if !maxima.is_empty() {
            self.state.limits.insert(group, maxima);
        }
    }

    fn note(&mut self, group: NicGroup, values: Result<Values, impl Into<SetError>>) {
        match values.map_err(Into::into) {
            Ok(values) => self.put(group, values),
            // The device has no such settings, or is gone. Some drivers have other words for it.
            Err(SetError {
                errno: Errno::EOPNOTSUPP | Errno::ENODEV | Errno::EINVAL | Errno::EPROTONOSUPPORT,
                ..
            }) => {}
            Err(error) => {
                let (group, dev) = (group.as_str(), self.dev);
                let text = format!("ethtool {group} of {dev} cannot be read: {error}");
                self.unreadable.push(text);
            }
        }
    }

    fn note_features(&mut self, features: Result<Features, SetError>) {
        let wanted = features.map(|features| {
            self.state.unmet = features.unmet;
            features.wanted
        });
        self.note(NicGroup::Features, wanted);
    }

    fn note_reported(&mut self, group: NicGroup, reported: Result<Reported, SetError>) {
        let values = reported.map(|reported| {
            self.limit(group, reported.maxima);
            if reported.nameless > 0 {
                let (group, dev) = (group.as_str(), self.dev);
                let text = format!("ethtool {group} of {dev}: a name is not printable text");
                self.unreadable.push(text);
            }
            reported.values
        });
        self.note(group, values);
    }

    fn note_contexts(&mut self, count: usize) {
        if count > 0 {
            let text = format!("{count} contexts of RSS of {}", self.dev);
            self.unreadable.push(text);
        }
    }

    /// The password is not recorded, and a driver that comes back has none.
    fn note_password(&mut self) {
        /// `WAKE_MAGICSECURE`.
        const SECURE: u64 = 1 << 6;
        let wol = self.state.settings.get(&NicGroup::Wol);
        let is_secure = wol
            .into_iter()
            .flat_map(Values::values)
            .any(|modes| match modes {
                NicValue::Texts(words) => words.iter().any(|word| word == "magicsecure"),
                NicValue::Number(bits) => bits & SECURE != 0,
                _ => false,
            });
        if is_secure {
            let text = format!("the Wake-on-LAN password of {}", self.dev);
            self.unreadable.push(text);
        }
    }

    fn note_rules(&mut self, rules: Result<flows::Rules, Errno>) {
        let values = rules.map(|rules| {
            let dev = self.dev;
            let text = |at| format!("ethtool rule {at} of {dev} uses a context of RSS");
            self.unreadable.extend(rules.in_contexts.iter().map(text));
            rules.values
        });
        self.note(NicGroup::Rules, values);
    }

    fn finish(mut self) -> (Option<NicState>, Vec<String>) {
        self.note_password();
        let Self {
            state, unreadable, ..
        } = self;
        let is_empty = state.settings.is_empty();
        ((!is_empty).then_some(state), unreadable)
    }
}

/// What the answers in datagrams say, whatever was asked, and structures of the same bytes.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn nic_in(bytes: &[u8], dev: &IfName) -> (NicState, Vec<String>) {
    let mut reading = NicReading::new(dev);
    for (_, answer) in crate::kernel::plain::genl::answers_in(bytes) {
        let Ok(answer) = answer else {
            continue;
        };
        if let Some(features) = Features::of(&answer) {
            reading.note_features(Ok(features));
        }
        reading.put(NicGroup::Link, link_modes::of(&answer, true));
        reading.put(NicGroup::Dcb, dcb::values(&answer, Some(&answer)));
        for message in message::all() {
            reading.note_reported(message.group, Ok(message.reported(&answer)));
        }
    }
    reading.put(NicGroup::Rss, rss::in_structure(bytes, 4));
    let (state, unreadable) = reading.finish();
    (state.unwrap_or_default(), unreadable)
}
