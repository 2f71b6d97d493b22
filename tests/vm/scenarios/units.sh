#!/usr/bin/env bash
# lab: systemd
# The systemd units of netfix: what they see, write and report inside their sandbox, and what starts them.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

KEPT=/var/lib/netfix
METRICS=/var/lib/prometheus/node-exporter/netfix.prom

# lodger NAME N COMMAND...: a pod without a mount, only with a process in it.
lodger() {
    local name=$1 n=$2 pid
    shift 2
    "$@" sleep infinity &
    pid=$!
    wait_for 5 "$name's namespace" lives_apart "$pid"
    pod_at "$name" "$n" "/proc/$pid/ns/net"
}
lives_apart() { [ "$(cat "/proc/$1/comm")" = sleep ] && [ ! "/proc/$1/ns/net" -ef /proc/self/ns/net ]; }

# shelf NAME N: a pod that is only mounted, in a temporary directory that only its owner can enter.
shelf() {
    local folder=/tmp/netfix-lab
    mkdir -m 700 "$folder"
    touch "$folder/$1"
    unshare --net="$folder/$1" true
    chown 4242 "$folder"
    pod_at "$1" "$2" "$folder/$1"
}

# pod_at NAME N PATH
pod_at() {
    ns_name "$1" "$3"
    PODS+=("$1")
    ip -n "$1" link set lo up
    pod_link "$1" "$NIC.3" "0a:00:00:00:03:2$2"
    pod_net "$1" "10.3.0.2$2/24" 10.3.0.1
}

# The part of a service that limits its rights; all services must have the same, but that a rehearsal sets sysctls.
sandbox() { sed -n '/^NoNewPrivileges=/,$ { /rehearsal/d; s/^ProtectKernelTunables=no/ProtectKernelTunables=yes/; p }' "$LAB_REPO/contrib/systemd/$1"; }

well_formed() {
    [ -z "$(systemd-analyze verify --man=no "$LAB_REPO"/contrib/systemd/netfix-* 2>&1)" ] || fail "systemd-analyze verify complains"
    local unit
    # Four tenths are for the calls that mount a sysfs, for bpf(2) and pidfd_getfd(2).
    local -A most=([check]=29 [snapshot]=29 [rehearsal]=31)
    for unit in check snapshot rehearsal; do
        systemd-analyze security --offline=true --threshold="${most[$unit]}" "$LAB_REPO/contrib/systemd/netfix-$unit.service" >"$OUT" ||
            fail "netfix-$unit.service is exposed: $(tail -n 1 "$OUT")"
    done
    for unit in check rehearsal; do
        diff <(sandbox netfix-snapshot.service) <(sandbox "netfix-$unit.service") || fail "two sandboxes"
    done
}

# The schedule is too slow for a test: here both timers fire at once, and the check's also when it is started.
enable_timers() {
    local units=/run/systemd/system
    mkdir -p $units/netfix-.timer.d $units/netfix-check.timer.d
    printf '%s\n' '[Timer]' RandomizedDelaySec=0 AccuracySec=10ms >$units/netfix-.timer.d/prompt.conf
    printf '%s\n' '[Timer]' OnActiveSec=1s >$units/netfix-check.timer.d/soon.conf
    systemctl daemon-reload
    systemctl enable -q --now netfix-snapshot.timer
    systemctl enable -q netfix-check.timer
}

# last_run UNIT: how it ended, and netfix's exit code.
last_run() { systemctl show -P Result -P ExecMainStatus "$1.service" | xargs; }
ended() { [ "$(last_run "$1")" = "$2" ] || fail "$1 ended with '$(last_run "$1")', not '$2'"; }
run_of() { systemctl show -P InvocationID "$1.service"; }

# next_run UNIT "RESULT CODE" CMD...: the next run by the timer ends so after the command; nothing else starts it.
next_run() {
    local before
    before=$(run_of "$1")
    "${@:3}"
    wait_for 120 "$1 to be started by its timer and to end" another_run "$1" "$before"
    ended "$1" "$2"
}
another_run() { [ "$(run_of "$1")" != "$2" ] && [ "$(systemctl show -P ActiveState "$1.service")" != activating ]; }

# checked "RESULT CODE": the next check ends so, and the timer continues.
checked() {
    next_run netfix-check "$1" systemctl restart netfix-check.timer
    [ "$(systemctl show -P SubState netfix-check.timer)" = waiting ] || fail "there will be no other check"
}

said_of_run() { journalctl -q -o cat "_SYSTEMD_INVOCATION_ID=$(run_of netfix-check)"; }
# degraded_in_journal COMMAND FIELD: of each pod's record.
degraded_in_journal() { journalctl -q -o json -t netfix "COMMAND=$1" CODE=degraded PRIORITY=3 | jq -r "select(.POD) | $2" | sort -u; }
metric() { setpriv --reuid 4242 --regid 4242 --clear-groups grep -qxF -- "$1" "$METRICS" || fail "no '$1' for others to read in $METRICS"; }

inodes() { local pod; for pod in "${PODS[@]}"; do stat -L -c %i "/run/netns/$pod"; done | sort; }
timeless() { jq -S 'del(.netfix.created, .netfix.created_boottime, .netfix.checksum)' "$1"; }

# as_a_shell_writes: the same files with the same content as a snapshot in a root shell, outside any sandbox.
as_a_shell_writes() {
    local file
    [ "$(inodes)" = "$(jq .netfix.identity.inode "$KEPT"/checkpoints/* | sort)" ] || fail "not every pod has a checkpoint"
    diff <(ls "$STATE/checkpoints") <(ls "$KEPT/checkpoints") || fail "other checkpoints"
    for file in "$STATE"/checkpoints/*; do
        diff <(timeless "$file") <(timeless "$KEPT/checkpoints/${file##*/}") || fail "${file##*/} differs"
    done
    [ "$(stat -c %a "$KEPT")" = 700 ] || fail "$KEPT is open to others"
}

standard_node
lodger root 1 unshare --net
lodger user 2 unshare --net setpriv --reuid 4242 --regid 4242 --clear-groups
lodger rootless 3 setpriv --reuid 4242 --regid 4242 --clear-groups unshare --user --map-root-user --net
shelf shelf 4
gw_hide
before_loss

step "the unit's snapshot equals that of a root shell"
install_units
well_formed
systemctl start netfix-snapshot.service
as_a_shell_writes
STATE=$KEPT

step "started by their timers"
enable_timers
checked "success 0"
metric "netfix_check_status 0"
metric "netfix_pods{state=\"in-sync\"} ${#PODS[@]}"
next_run netfix-snapshot "success 0" date -s '+1 hour'

step "the rehearsal in its sandbox finds what the check finds, and that every pod comes back"
systemctl start netfix-rehearsal.service || fail "the rehearsal failed: $(journalctl -u netfix-rehearsal.service -o cat)"
ended netfix-rehearsal "success 0"

step "a failed unit, the journal and the metrics report a loss; a snapshot at that moment replaces nothing"
cp -r "$KEPT/checkpoints" "$WORK/good"
lost
modprobe -r macvlan
checked "exit-code 2"
grep -q '^macvlan ' /proc/modules || fail "what a restore needs is not loaded for the sandbox"
said_of_run | grep -q "^CRITICAL: degraded: ${#PODS[@]} pods (" || fail "not every pod is counted: $(said_of_run)"
metric "netfix_check_status 2"
metric "netfix_pods{state=\"degraded\"} ${#PODS[@]}"
systemctl -q is-failed netfix-check.service
systemctl start netfix-snapshot.service 2>/dev/null && fail "the snapshot's unit did not fail"
ended netfix-snapshot "exit-code 1"
diff -r "$WORK/good" "$KEPT/checkpoints"
journalctl --sync
for command in check snapshot; do
    diff <(degraded_in_journal $command .POD) <(ls "$KEPT/checkpoints") || fail "the journal does not name every pod of $command"
    [ -e "$(degraded_in_journal $command .NETNS | head -1)" ] || fail "no namespace in the journal"
done

step "restored from the unit's snapshot; the failed unit is cleared"
expect_exit 0 nf restore --nic-wait 60s
restored
checked "success 0"
systemctl -q is-failed netfix-check.service && fail "still a failed unit"

step "a young pod is no warning, and a warning is no failure"
lodger late 5 unshare --net
checked "success 0"
ip -n "${PODS[0]}" link set eth0 txqueuelen 777
checked "success 1"

step "a runtime that cannot be queried is a failure; options come from /etc/default/netfix"
echo NETFIX_RUNTIME_ENDPOINT=unix:///run/missing.sock >/etc/default/netfix
checked "exit-code 3"
metric "netfix_check_status 3"
