# Pods of the real CNI plugins, with the cache entries that libcni writes.
# shellcheck shell=bash

CACHE=$WORK/cni
PLUGINS=/usr/lib/cni
declare -A CONFIGS=() RESULTS=() # pod -> its network's list of plugins, what they answered

id_of() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }

# plugin VERB POD: the standard input is the plugin's configuration.
plugin() {
    local config
    config=$(cat)
    CNI_COMMAND=$1 CNI_CONTAINERID=$(id_of "$2") CNI_NETNS=/var/run/netns/$2 CNI_IFNAME=eth0 CNI_PATH=$PLUGINS \
        "$PLUGINS/$(jq -r .type <<<"$config")" <<<"$config"
}

# attach POD CONFLIST: ADD by every plugin of the list, and the cache entry as libcni writes it.
attach() {
    local pod=$1 list=$2 n result=null id
    id=$(id_of "$pod")
    for ((n = 0; n < $(jq '.plugins | length' <<<"$list"); n++)); do
        result=$(jq --argjson n $n --argjson prev "$result" '.plugins[$n] + {name, cniVersion}
            + if $prev then {prevResult: $prev} else {} end' <<<"$list" | plugin ADD "$pod")
    done
    CONFIGS[$pod]=$list RESULTS[$pod]=$result
    mkdir -p "$CACHE/results"
    jq -cn --arg id "$id" --arg pod "$pod" --arg config "$(base64 -w0 <<<"$list")" --argjson result "$result" '{
        kind: "cniCacheV1", containerId: $id, $config, ifName: "eth0", networkName: "lab",
        cniArgs: [["IgnoreUnknown", "1"], ["K8S_POD_NAMESPACE", "shop"], ["K8S_POD_NAME", $pod],
            ["K8S_POD_INFRA_CONTAINER_ID", $id]], $result}' >"$CACHE/results/lab-$id-eth0"
    chmod 600 "$CACHE/results/lab-$id-eth0"
}

# The CHECK of the plugins.
check() {
    local pod=$1 n list=${CONFIGS[$1]}
    for ((n = 0; n < $(jq '.plugins | length' <<<"$list"); n++)); do
        jq --argjson n $n --argjson prev "${RESULTS[$pod]}" \
            '.plugins[$n] + {name, cniVersion, prevResult: $prev}' <<<"$list" | plugin CHECK "$pod" || return
    done
}

# network POD ADDRESS GATEWAY PLUGIN [CHAINED]: attaches it with a fixed address and a default route.
network() {
    local pod=$1 address=$2 gateway=$3 main=$4 chained=${5:-empty}
    pod_ns "$pod"
    attach "$pod" "$(jq -cn --arg address "$address" --arg gateway "$gateway" "{
        cniVersion: \"1.0.0\", name: \"lab\",
        plugins: [$main + {ipam: {type: \"static\", addresses: [{\$address, \$gateway}],
            routes: [{dst: \"0.0.0.0/0\"}]}}, $chained]}")"
    GATEWAYS[$pod]=$gateway
}
