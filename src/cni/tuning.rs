//! The `tuning` plugin: settings of another plugin's interface.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::config::Arguments;
use crate::model::net::link::sysctl::{Settings, SysctlKey, Sysctls};
use crate::model::pod::partial::{Attachment, Tuning};
use crate::model::{IfName, Mac};

/// Its options, in its configuration and in `args.cni`, which has precedence.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TuningOptions {
    sysctl: BTreeMap<String, String>,
    mac: Option<String>,
    promisc: Option<bool>,
    mtu: Option<u32>,
    allmulti: Option<bool>,
    #[serde(rename = "txQLen")]
    tx_q_len: Option<u32>,
}

/// Applies the plugin's changes after those of the plugins before it.
pub(super) fn apply(
    plugin: &Value,
    args: Arguments<'_>,
    attachment: &mut Attachment,
) -> Result<(), String> {
    let read = |value: &Value| {
        TuningOptions::deserialize(value).map_err(|error| format!("tuning: {error}"))
    };
    let own = read(plugin)?;
    let stronger = match &plugin["args"]["cni"] {
        Value::Null => TuningOptions::default(),
        value => read(value)?,
    };
    let mac = match stronger.mac.as_deref().filter(|mac| !mac.is_empty()) {
        Some(text) => Some(
            text.parse::<Mac>()
                .map_err(|error| format!("tuning: {error}"))?,
        ),
        None => args.mac(plugin)?,
    };
    attachment.mac = mac.or(attachment.mac);
    attachment.mtu = stronger
        .mtu
        .or(own.mtu)
        .filter(|mtu| *mtu != 0)
        .or(attachment.mtu);
    let Tuning {
        txqueuelen,
        promisc,
        allmulti,
        sysctls,
        implied: _,
    } = &mut attachment.tuning;
    *txqueuelen = stronger.tx_q_len.or(own.tx_q_len).or(*txqueuelen);
    *allmulti = stronger.allmulti.or(own.allmulti).or(*allmulti);
    // The plugin never disables promiscuous mode.
    if stronger.promisc.or(own.promisc) == Some(true) {
        *promisc = Some(true);
    }
    for (key, value) in own.sysctl.iter().chain(&stronger.sysctl) {
        if !set(sysctls, &attachment.ifname, key, value) {
            attachment
                .beyond
                .push(format!("the setting {key} = {value}"));
        }
    }
    Ok(())
}

/// Records a sysctl of the interface; others stay with the namespace. `false` if netfix cannot restore it.
fn set(sysctls: &mut Sysctls, ifname: &IfName, key: &str, value: &str) -> bool {
    // A name in a file of libcni is UTF-8.
    let name = ifname.as_str().unwrap_or_default();
    let path = key.replace('.', "/").replacen("IFNAME", name, 1);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ["net", family, folder, dev, key] = parts.as_slice() else {
        return !is_about(&path, ifname);
    };
    if !ifname.is(dev) {
        return true;
    }
    let settings: &mut Settings = match (*family, *folder) {
        ("ipv4", "conf") => &mut sysctls.ipv4,
        ("ipv6", "conf") => &mut sysctls.ipv6,
        ("ipv4", "neigh") => &mut sysctls.neigh4,
        ("ipv6", "neigh") => &mut sysctls.neigh6,
        _ => return false,
    };
    if (*family, *folder, *key) == ("ipv6", "conf", "stable_secret") {
        sysctls.stable_secret = value.trim().parse().ok();
        return sysctls.stable_secret.is_some();
    }
    let (Ok(key), Ok(value)) = (SysctlKey::try_from((*key).to_owned()), value.trim().parse())
    else {
        return false;
    };
    settings.insert(key, value);
    true
}

/// Whether any part of a path is the interface's name: then the setting is lost with the interface.
fn is_about(path: &str, ifname: &IfName) -> bool {
    path.split('/').any(|part| ifname.is(part))
}
