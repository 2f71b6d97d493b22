//! How `i40e_net_fix` uses a checkpoint, written again from its description: what it reads, and what it
//! does then.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::background::wait_until;
use crate::common::{Node, tool};

/// Exactly the keys that `i40e_net_fix` reads from a file; all others could be missing.
#[derive(Debug)]
pub struct OriginCheckpoint {
    pub netns: PathBuf,
    pub ifname: String,
    pub mac: String,
    pub ips: Vec<OriginIp>,
    pub routes: Vec<(String, IpAddr)>,
}

#[derive(Debug)]
pub struct OriginIp {
    pub address: String,
    pub gateway: Option<IpAddr>,
}

impl OriginCheckpoint {
    pub fn read(file: &Path) -> Self {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let value: Value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{}: {e}\n{text}", file.display()));
        let result = &value["result"];
        let interfaces = list(&result["interfaces"]);
        assert!(
            !interfaces.is_empty(),
            "i40e_net_fix panics on a file without interfaces:\n{text}"
        );
        let ips: Vec<_> = list(&result["ips"])
            .iter()
            .map(|ip| read_ip(ip, interfaces.len()))
            .collect();
        let routes = list(&result["routes"])
            .iter()
            .filter_map(|route| read_route(route, &ips))
            .collect();
        // Always the first interface, regardless of its name.
        Self {
            netns: text_of(&value, "netns").into(),
            ifname: text_of(&value, "ifname"),
            mac: text_of(&interfaces[0], "mac"),
            ips,
            routes,
        }
    }

    /// Creates a bridge-mode macvlan of MTU 1500 outside, moves it in, renames it; then sets MAC, addresses and routes,
    /// in that order.
    pub fn restore(&self, node: &Node) {
        let inside = |words: &str| {
            let netns = format!("--net={}", self.netns.display());
            tool::run(
                tool::command("nsenter", [netns.as_str(), "ip"]).args(words.split_whitespace()),
            );
        };
        node.ns
            .ip("link add link eth0 name netfix-tmp mtu 1500 type macvlan mode bridge");
        // ip(8) needs a pid or a name: a process that enters the namespace through the open file has the
        // pid.
        let netns = format!("--net={}", self.netns.display());
        let mut seat = tool::command("nsenter", [netns.as_str(), "sleep", "60"])
            .spawn()
            .expect("nsenter starts");
        let moved = move_to(node, seat.id());
        seat.kill()
            .and_then(|()| seat.wait())
            .expect("the seat's end");
        assert!(
            moved,
            "the interface could not be moved to {}",
            self.netns.display()
        );
        inside(&format!("link set netfix-tmp name {}", self.ifname));
        inside(&format!("link set {} address {}", self.ifname, self.mac));
        inside(&format!("link set {} up", self.ifname));
        for ip in &self.ips {
            inside(&format!("addr add {} dev {}", ip.address, self.ifname));
        }
        for (dst, gateway) in &self.routes {
            inside(&format!(
                "route add {dst} via {gateway} dev {}",
                self.ifname
            ));
        }
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text_of(value: &Value, key: &str) -> String {
    let text = value[key].as_str().filter(|text| !text.is_empty());
    text.unwrap_or_else(|| panic!("i40e_net_fix needs a text {key} in {value}"))
        .to_owned()
}

fn read_ip(ip: &Value, interfaces: usize) -> OriginIp {
    let address = text_of(ip, "address");
    let family = if address.contains(':') { "6" } else { "4" };
    assert_eq!(ip["version"], family, "version must be there as text: {ip}");
    let interface = ip["interface"]
        .as_u64()
        .and_then(|index| usize::try_from(index).ok());
    assert!(
        interface.is_some_and(|index| index < interfaces),
        "interface must be an index: {ip}"
    );
    OriginIp {
        address,
        gateway: ip["gateway"].as_str().map(parse),
    }
}

/// A route without a gateway uses that of the first address of its family.
fn read_route(route: &Value, ips: &[OriginIp]) -> Option<(String, IpAddr)> {
    let dst = text_of(route, "dst");
    let is_v6 = dst.contains(':');
    let fallback = || {
        ips.iter()
            .filter_map(|ip| ip.gateway)
            .find(|gateway| gateway.is_ipv6() == is_v6)
    };
    let gateway = route["gw"].as_str().map(parse).or_else(fallback)?;
    Some((dst, gateway))
}

fn parse(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Moves the link once the process has entered the namespace.
fn move_to(node: &Node, pid: u32) -> bool {
    let own = std::fs::read_link(format!("/proc/{}/ns/net", std::process::id()))
        .expect("this process's namespace");
    let arrived =
        || std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|there| there != own);
    wait_until(arrived)
        && node
            .ns
            .try_ip(&format!("link set netfix-tmp netns {pid}"))
            .is_ok()
}
