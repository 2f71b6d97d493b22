# The state of namespaces, from the documents of `parts` in capture.sh, as lines with sorted keys, each after the name of its
# namespace.
# Left out: values that change without a cause (counters, timers, lifetimes of leased addresses). A NIC that returns may have a
# new ifindex (nic-index.sh compares it): it, and every reference to it, becomes "NIC". All other indexes are compared.
# So has a virtual function of a NIC, wherever it is.

def flat($head):
  to_entries | sort_by(.key)[] | . as $e | .value
  | if type == "object" then flat("\($head).\($e.key)") else "\($head).\($e.key) = \(tojson)" end;

def nic: if . == $nic then "eth0" else . end;
def names: walk(if type == "string" then nic else . end);

def link($name):
  if ($name == "host" and .ifindex == $nic_index) or .parentbus == "pci" then .ifindex = "NIC" else . end
  | if .link_index == $nic_index then .link_index = "NIC" else . end
  # The state of LACP, which follows the order of the ports.
  | if .linkinfo.info_slave_data.ad_aggregator_id then .linkinfo.info_slave_data |= with_entries(select(.key | test("^(ad_|state$)") | not)) else . end
  # The number of the active port's group: the port that gets its carrier first.
  | del(.linkinfo.info_data.ad_info.aggregator)
  # And what netdevsim draws by lot.
  | del(.linkinfo.info_slave_data.link_failure_count, .linkinfo.info_slave_data.ad_churn_actor_state, .stats, .stats64,
      .phys_switch_id)
  | flat("link \(.ifname)");

def lifetime: if .dynamic then del(.valid_life_time, .preferred_life_time) else . end;
def address: .ifname as $name | .addr_info[] | lifetime | "addr \($name) \(tojson)";

def timeless: del(.cache, .expires, .age, .used, .rtt, .cwnd, .users);
def lines($head): .[] | timeless | "\($head) \(tojson)";

def state($name):
  (.[0] | sort_by(.ifname)[] | link($name)),
  (.[1] | sort_by(.ifname)[] | address), (.[7] | sort_by(.ifname)[] | address),
  (.[2] | lines("route4")), (.[8] | sort_by(tojson) | lines("route6")),
  (.[3] | lines("rule4")), (.[9] | lines("rule6")),
  ((.[4] + .[5]) | sort_by(tojson) | lines("neigh4")), ((.[10] + .[11]) | sort_by(tojson) | lines("neigh6")),
  (.[6] | lines("nexthop4")), (.[12] | lines("nexthop6"));

names | . as $all
| ($names | split(" ") - [""]) | to_entries[] | .value as $name | $all[.key * 13:(.key + 1) * 13]
| state($name) | "\($name) \(.)"
