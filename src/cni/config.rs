//! A network's configuration and the runtime's arguments beside it: one plugin, or a list in which the first creates the interface and the others change it.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::tuning;
use crate::model::net::link::sysctl::{SysctlKey, Sysctls};
use crate::model::net::link::{MacvlanMode, VlanId};
use crate::model::pod::partial::{Attachment, Made};
use crate::model::text::{Invalid, escape};
use crate::model::{IfName, Mac};

/// The arguments of one call of the plugins of a network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a> {
    /// `CNI_ARGS`.
    pub pairs: &'a [(String, String)],
    /// Values for the capabilities that a plugin declares.
    pub capabilities: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// The value of one of `CNI_ARGS`.
    pub(super) fn pair(self, key: &str) -> Option<&'a str> {
        self.pairs
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The MAC for a plugin, from the source with the highest precedence.
    pub(super) fn mac(self, plugin: &Value) -> Result<Option<Mac>, String> {
        let declared = plugin["capabilities"]["mac"] == true;
        let from_runtime = self
            .capabilities
            .get("mac")
            .filter(|_| declared)
            .and_then(Value::as_str);
        let sources = [
            plugin["runtimeConfig"]["mac"].as_str(),
            from_runtime,
            self.pair("MAC"),
            plugin["mac"].as_str(),
        ];
        let text = sources.into_iter().flatten().find(|text| !text.is_empty());
        text.map(str::parse)
            .transpose()
            .map_err(|error: Invalid| error.to_string())
    }
}

/// The plugins of one network, in order; never empty.
#[derive(Debug)]
pub(super) struct Chain {
    main: Value,
    rest: Vec<Value>,
}

/// The options of the macvlan and vlan plugins, for which zero and empty mean absent.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PluginOptions {
    master: String,
    mode: String,
    mtu: u32,
    link_in_container: bool,
    bcqueuelen: u32,
    vlan_id: u16,
}

/// Plugins without state in the interface: they add netfilter rules, or change a veth's peer on the host.
const WITHOUT_TRACE: [&str; 5] = [
    "portmap",
    "firewall",
    "bandwidth",
    "istio-cni",
    "linkerd-cni",
];

impl Chain {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut document: Value =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut plugins = match document.get_mut("plugins").map(Value::take) {
            Some(Value::Array(plugins)) => plugins,
            Some(_) => return Err("plugins is not a list".to_owned()),
            None => vec![document],
        };
        if let Some(nameless) = plugins
            .iter()
            .position(|plugin| !plugin["type"].is_string())
        {
            return Err(format!("plugin {} has no type", nameless + 1));
        }
        if plugins.is_empty() {
            return Err("it has no plugin".to_owned());
        }
        Ok(Self {
            main: plugins.remove(0),
            rest: plugins,
        })
    }

    /// The plugin that created the interface.
    pub(super) fn main_type(&self) -> &str {
        type_of(&self.main)
    }

    /// An interface according to the configuration, without the plugins' result.
    pub(super) fn attachment(
        &self,
        ifname: &IfName,
        args: Arguments<'_>,
    ) -> Result<Attachment, String> {
        let mut attachment = main(&self.main, ifname, args)?;
        if !attachment.can_be_made() {
            return Ok(attachment);
        }
        for plugin in &self.rest {
            match type_of(plugin) {
                "tuning" => tuning::apply(plugin, args, &mut attachment)?,
                harmless if WITHOUT_TRACE.contains(&harmless) => {}
                other => attachment.beyond.push(format!("the plugin {other}")),
            }
        }
        Ok(attachment)
    }
}

fn type_of(plugin: &Value) -> &str {
    plugin["type"].as_str().unwrap_or_default()
}

fn main(plugin: &Value, ifname: &IfName, args: Arguments<'_>) -> Result<Attachment, String> {
    let name = type_of(plugin);
    if !["macvlan", "vlan"].contains(&name) {
        return Ok(Attachment::bare(
            ifname.clone(),
            Made::Other(name.to_owned()),
        ));
    }
    let options = PluginOptions::deserialize(plugin).map_err(|error| error.to_string())?;
    if options.link_in_container {
        let made = Made::Other(format!("{name} on a link in the pod (linkInContainer)"));
        return Ok(Attachment::bare(ifname.clone(), made));
    }
    let made = match name {
        "macvlan" => Made::Macvlan {
            mode: Some(mode(&options.mode)?),
            bc_queue_len: Some(options.bcqueuelen).filter(|length| *length != 0),
        },
        _ => Made::Vlan(VlanId::try_from(options.vlan_id).map_err(|error| error.to_string())?),
    };
    let is_macvlan = name == "macvlan";
    let mut attachment = Attachment::bare(ifname.clone(), made);
    let parent = Some(options.master).filter(|master| !master.is_empty());
    attachment.parent = parent
        .map(IfName::try_from)
        .transpose()
        .map_err(|error| error.to_string())?;
    attachment.mtu = Some(options.mtu).filter(|mtu| *mtu != 0);
    if is_macvlan {
        attachment.mac = args.mac(plugin)?;
        let has_addresses = plugin["ipam"]["type"]
            .as_str()
            .is_some_and(|ipam| !ipam.is_empty());
        if has_addresses {
            attachment.tuning.implied = announcing();
        }
    }
    Ok(attachment)
}

fn mode(text: &str) -> Result<MacvlanMode, String> {
    Ok(match text {
        "" | "bridge" => MacvlanMode::Bridge,
        "private" => MacvlanMode::Private,
        "vepa" => MacvlanMode::Vepa,
        "passthru" => MacvlanMode::Passthru,
        other => return Err(format!("\"{}\" is not a macvlan mode", escape(other))),
    })
}

/// The macvlan plugin sets these on every interface with addresses: the kernel announces them to the neighbours.
fn announcing() -> Sysctls {
    let on = |key| [(SysctlKey::known(key), 1)].into();
    Sysctls {
        ipv4: on("arp_notify"),
        ipv6: on("ndisc_notify"),
        ..Sysctls::default()
    }
}
