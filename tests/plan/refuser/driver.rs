//! A driver that refuses requests by its state, on the model kernel: which, says the table of its directory.

use std::collections::BTreeSet;

use netfix::model::net::link::function::FunctionSetting;
use netfix::model::net::link::nic::{NicGroup, NicValue};
use netfix::model::{Link, LinkKind};
use netfix::plan::{Change, NetlinkStep, NicStep, SriovChange, Step};

use super::table::{Condition, Rule, Table, value};
use crate::kernel::{Errno, Kernel};

/// What a restore sends to a NIC and its driver, in the order of the session.
#[derive(Debug, Clone)]
pub enum Request {
    /// A step of the host's plan.
    Step(Step),
    /// A pod's macvlan on the device, and then on a virtual function.
    Macvlan,
    MacvlanOnFunction,
}

impl Request {
    /// The words that a rule names it by.
    pub fn words(&self) -> String {
        match self {
            Self::Macvlan => "macvlan".to_owned(),
            Self::MacvlanOnFunction => "macvlan-vf".to_owned(),
            Self::Step(Step::Nic(step)) => format!("{} {}", step.group.as_str(), step.key),
            Self::Step(Step::Sriov(step)) => match step.change {
                SriovChange::Number(_) => "numvfs".to_owned(),
                SriovChange::Bind(_) | SriovChange::Rebind(_) => "bind".to_owned(),
                _ => "autoprobe".to_owned(),
            },
            Self::Step(Step::Netlink(NetlinkStep::SetLink { change, .. })) => match change {
                Change::Up => "up".to_owned(),
                Change::Function(_, FunctionSetting::Trust(_)) => "vf trust".to_owned(),
                Change::Function(..) => "vf".to_owned(),
                _ => "link".to_owned(),
            },
            Self::Step(_) => "other".to_owned(),
        }
    }
}

/// Whether functions are made while a macvlan is on the device, and what RDMA holds is set while that is off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    Netfix,
    Naive,
}

pub struct Driver<'t> {
    pub kernel: Kernel,
    table: &'t Table,
    executor: Executor,
    macvlans: usize,
    /// The functions were made while no link received the packets of the device.
    unheld: bool,
    /// How often it was asked to go up.
    ups: u32,
    /// The rules that refused a request, by their place in the table.
    pub fired: BTreeSet<usize>,
}

impl<'t> Driver<'t> {
    pub fn new(table: &'t Table, executor: Executor) -> Self {
        Self {
            kernel: Kernel::holding(&table.case.observed),
            table,
            executor,
            macvlans: 0,
            unheld: false,
            ups: 0,
            fired: BTreeSet::new(),
        }
    }

    fn device(&self) -> Link {
        let mut links = self.kernel.state.links.iter();
        let device = links.find(|link| link.kind == LinkKind::Physical);
        device.expect("the device stays").clone()
    }

    /// Carries requests of one kind out: settings of one group together and, if one is refused, each alone.
    pub fn group(&mut self, requests: &[Request]) -> Vec<(Request, Errno)> {
        let of_group = |request: &Request| matches!(request, Request::Step(Step::Nic(_)));
        if requests.len() > 1 && requests.iter().all(of_group) {
            let is_refused = |request: &Request| self.refusal(&request.words()).is_some();
            if !requests.iter().any(is_refused) {
                let each = requests.iter().filter_map(|request| {
                    let refused = self.take(request).err()?;
                    Some((request.clone(), refused))
                });
                return each.collect();
            }
        }
        let each = requests.iter().filter_map(|request| {
            let refused = self.carry_out(request).err()?;
            Some((request.clone(), refused))
        });
        each.collect()
    }

    /// One request, with what the executor does where the driver refuses it.
    fn carry_out(&mut self, request: &Request) -> Result<(), Errno> {
        const TIMES: usize = 100;
        let mut result = self.take(request);
        match request {
            Request::Step(Step::Nic(step))
                if self.executor == Executor::Netfix && result == Err(Errno::EBUSY) =>
            {
                let held = step.held_by(&self.kernel.observe());
                if !held.is_empty() {
                    self.switch(&held, false)?;
                    result = self.take(request);
                    self.switch(&held, true)?;
                }
            }
            Request::Step(step) if is_up(step) => {
                for _ in 0..TIMES {
                    if result != Err(Errno::EBUSY) {
                        break;
                    }
                    result = self.take(request);
                }
            }
            _ => {}
        }
        result
    }

    fn switch(&mut self, steps: &[NicStep], to: bool) -> Result<(), Errno> {
        steps.iter().try_for_each(|step| {
            let step = NicStep {
                value: NicValue::Flag(to),
                ..step.clone()
            };
            self.take(&Request::Step(step.into()))
        })
    }

    fn take(&mut self, request: &Request) -> Result<(), Errno> {
        let words = request.words();
        self.ups += u32::from(words == "up");
        if let Some((at, errno)) = self.refusal(&words) {
            self.fired.insert(at);
            return Err(errno);
        }
        match request {
            Request::Macvlan => self.macvlans += 1,
            Request::MacvlanOnFunction => {}
            Request::Step(step) => self.kernel.take(step)?,
        }
        if words == "numvfs" {
            self.unheld = self.macvlans == 0 && self.executor == Executor::Naive;
        }
        self.table.effects(&words).for_each(|(group, key, value)| {
            let mut links = self.kernel.state.links.iter_mut();
            let device = links.find(|link| link.kind == LinkKind::Physical);
            let nic = device.and_then(|link| link.nic.as_mut()).expect("a NIC");
            nic.settings.entry(group).or_default().insert(key, value);
        });
        Ok(())
    }

    /// Which rule refuses this request now.
    fn refusal(&self, words: &str) -> Option<(usize, Errno)> {
        let mut rules = self.table.rules.iter().enumerate();
        rules.find_map(|(at, rule)| {
            let holds = rule.is_about(words) && rule.when.iter().all(|one| self.holds(one));
            holds.then_some((at, rule.errno))
        })
    }

    fn holds(&self, condition: &Condition) -> bool {
        let device = self.device();
        let nic = device.nic.as_ref();
        let sriov = nic.and_then(|nic| nic.sriov.as_ref());
        match condition {
            Condition::Up => device.flags.up,
            Condition::Down => !device.flags.up,
            Condition::Functions => sriov.is_some_and(|sriov| sriov.vfs > 0),
            Condition::Untrusted => sriov.is_none_or(|sriov| {
                let mut all = sriov.functions.iter();
                sriov.vfs == 0 || all.any(|one| one.trust != Some(true))
            }),
            Condition::Macvlans => self.macvlans > 0,
            Condition::Unheld => self.unheld,
            Condition::Resets(times) => self.ups <= *times,
            Condition::Setting(group, key, wanted) => {
                let values = nic.and_then(|nic| nic.settings.get(group));
                let now = values.and_then(|values| {
                    let mut values = values.iter();
                    values.find(|(name, _)| name.as_str() == key)
                });
                match wanted {
                    Some(wanted) => now.is_some_and(|(_, now)| *now == value(wanted)),
                    None => now.is_some(),
                }
            }
        }
    }
}

fn is_up(step: &Step) -> bool {
    matches!(
        step,
        Step::Netlink(NetlinkStep::SetLink {
            change: Change::Up,
            ..
        })
    )
}

impl Rule {
    /// Whether the rule is about a request: its words are the first ones.
    fn is_about(&self, words: &str) -> bool {
        let rest = words.strip_prefix(self.request.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }
}

/// The group of a word.
pub fn group(word: &str) -> NicGroup {
    let quoted = serde_json::Value::String(word.to_owned());
    serde_json::from_value(quoted).unwrap_or_else(|error| panic!("{word}: {error}"))
}
