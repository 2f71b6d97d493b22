#!/usr/bin/env bash
# lab: systemd
# The Debian package of scripts/package on a node with pods: installed, upgraded in the middle of a window, removed, purged.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

TIMERS=(netfix-snapshot.timer netfix-check.timer netfix-rehearsal.timer)
METRICS=/var/lib/prometheus/node-exporter/netfix.prom
OPTIONS=/etc/default/netfix

eval "tidy_of_window() $(declare -f tidy | tail -n +2)"
tidy() {
    rm -f /var/lib/netfix/window.json
    systemctl disable --now "${TIMERS[@]}"
    dpkg --purge netfix
    rm -rf /var/lib/netfix /run/systemd/system/netfix-*.timer.d "$(dirname $METRICS)"
    tidy_of_window
}

deb=$(printf '%s\n' "$LAB_REPO"/target/package/netfix_*_amd64.deb | head -n 1)
[ -e "$deb" ] || fail "no package: run scripts/package first"
# From here on the program is the one of the package, with its own state directory.
NETFIX=/usr/bin/netfix STATE=/var/lib/netfix

# The index of all manual pages of this machine takes minutes on an emulated processor.
rm -f /var/lib/man-db/auto-update

# next_version FILE: the same package with a higher version and another program.
next_version() {
    local tree=$WORK/next
    dpkg-deb -R "$deb" "$tree"
    sed -i 's/^Version: .*/Version: 99.0/' "$tree/DEBIAN/control"
    printf '\n' >>"$tree/usr/bin/netfix"
    dpkg-deb -Znone -b "$tree" "$1" >/dev/null
    rm -r "$tree"
}

timers_are() { [ "$(systemctl is-enabled "${TIMERS[@]}" | xargs) $(systemctl is-active "${TIMERS[@]}" | xargs)" = "$1" ] || fail "the timers are not $1"; }
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' netfix)" = installed ] || fail "the package is not installed"; }
kept_whole() { diff -r "$WORK/checkpoints" $STATE/checkpoints || fail "$1 changed the checkpoints"; }
# window_runs: in the same process as before.
window_runs() {
    systemctl -q is-active netfix-upgrade.service || fail "the window has ended"
    [ "$(systemctl show -P MainPID netfix-upgrade.service)" = "$running" ] || fail "the window was started again"
}
# Of a window; the package has units of its own.
no_units() { [ -z "$(systemctl list-units --all --plain --no-legend 'netfix-upgrade*' 'netfix-deadline-*')" ]; }
# The schedule is too slow for a test.
soon() {
    mkdir -p "/run/systemd/system/$1.d"
    printf '%s\n' '[Timer]' OnActiveSec=1s RandomizedDelaySec=0 AccuracySec=10ms >"/run/systemd/system/$1.d/soon.conf"
    systemctl daemon-reload
}
has_ended() { [ -n "$(systemctl show -P ExecMainExitTimestamp "$1")" ] && [ "$(systemctl show -P ActiveState "$1")" = inactive ]; }

pages_are_readable() {
    local page
    for page in /usr/share/man/man8/netfix*.8.gz; do
        [ -n "$(lexgrog "$page")" ] || fail "$page has no name and title"
        [ -z "$(MANROFFSEQ='' LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)" ] || fail "groff complains about $page"
    done
    page=$(man -l /usr/share/man/man8/netfix-restore.8.gz)
    for word in EXAMPLES 'EXIT STATUS' ENVIRONMENT FILES; do grep -q "^$word" <<<"$page" || fail "no $word in netfix-restore(8)"; done
}

# complete WORD...: the candidates of bash for the last word, with the package's script.
complete_with_bash() {
    bash --norc -c '. /usr/share/bash-completion/completions/netfix
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _clap_complete_netfix netfix "${!#}" "" 2>&1
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

plain_node
plain_kubelet

step "installed: every file is there, no timer is enabled, nothing runs"
dpkg -i "$deb"
is_installed
dpkg -L netfix >"$WORK/paths"
[ -z "$(dpkg --verify netfix)" ] || fail "files differ: $(dpkg --verify netfix)"
timers_are "disabled disabled disabled inactive inactive inactive"
[ ! -e $STATE ] || fail "netfix was run"
[ -z "$(systemctl list-units --all --plain --no-legend 'netfix-*' | grep -v 'not-found' || :)" ] || fail "a unit is loaded"
verified=$(systemd-analyze verify /usr/lib/systemd/system/netfix-* 2>&1) || fail "systemd-analyze verify fails: $verified"
[ -z "$verified" ] || fail "systemd-analyze verify complains: $verified"
pages_are_readable

step "an enabled timer takes a snapshot"
soon netfix-snapshot.timer
soon netfix-check.timer
systemctl enable -q --now "${TIMERS[@]}"
wait_for 60 "the snapshot" has_ended netfix-snapshot.service
[ "$(systemctl show -P Result netfix-snapshot.service)" = success ] || fail "the snapshot has failed"
[ "$(find $STATE/checkpoints -type f ! -name '.*' | wc -l)" = "${#PODS[@]}" ] || fail "not every pod has a checkpoint"
diff <(complete_with_bash netfix restore '' | sort) <(printf '%s\n' "${PODS[@]}" | sort) || fail "TAB does not complete the stored pods"
systemctl restart netfix-check.timer
wait_for 60 "the metrics" test -e $METRICS

step "upgraded in the middle of a window: the window, the timers, the options and the checkpoints stay"
echo 'NETFIX_CHECK_OPTIONS=--max-age 3h' >>$OPTIONS
systemctl restart netfix-check.service
journalctl --sync
grep -q 'netfix_check_status 0' $METRICS || fail "the check has another option: $(cat $METRICS)"
next_version "$WORK/next.deb"
before_window
nf upgrade --yes --watch 5s -- bash -c "until [ -e $WORK/go ]; do sleep 1; done; $RELOAD" >"$OUT" 2>&1 &
client=$!
wait_for 60 "the phase command" in_phase command
running=$(systemctl show -P MainPID netfix-upgrade.service)
cp -r $STATE/checkpoints "$WORK/checkpoints"
dpkg -i "$WORK/next.deb"
is_installed
[ "$(dpkg-query -W -f '${Version}' netfix)" = 99.0 ] || fail "not upgraded"
window_runs
[ -n "$(systemctl list-units --plain --no-legend --state=waiting 'netfix-deadline-*.timer')" ] || fail "the deadline is gone"
timers_are "enabled enabled enabled active active active"
grep -qx 'NETFIX_CHECK_OPTIONS=--max-age 3h' $OPTIONS || fail "the options are lost"
kept_whole "the upgrade"

step "a removal in the middle of a window is refused"
! dpkg -r netfix >"$WORK/refused" 2>&1 || fail "netfix was removed"
grep -q 'a maintenance window is open' "$WORK/refused" || fail "no reason: $(cat "$WORK/refused")"
is_installed
timers_are "enabled enabled enabled active active active"
window_runs

step "the window of the replaced program ends as any other"
systemctl stop "${TIMERS[@]}"
touch "$WORK/go"
wait $client || fail "the window went wrong: $(cat "$OUT")"
untouched
rm -r "$WORK/checkpoints"
cp -r $STATE/checkpoints "$WORK/checkpoints"

step "removed: timers, units and metrics are gone, checkpoints and options stay"
systemctl start "${TIMERS[@]}"
dpkg -r netfix
kept_whole "the removal"
[ ! -e /usr/bin/netfix ] && [ ! -e $METRICS ] || fail "files are left"
[ -z "$(systemctl list-units --all --plain --no-legend 'netfix-*' | grep -v not-found || :)" ] || fail "units are left"
[ -z "$(find /etc/systemd -name 'netfix-*')" ] || fail "enabled links are left: $(find /etc/systemd -name 'netfix-*')"
grep -q max-age $OPTIONS || fail "the options are lost"

step "a purge deletes no checkpoint while a window is open"
touch $STATE/window.json
dpkg --purge netfix 2>&1 | grep 'is kept: a maintenance window is open'
kept_whole "the purge"
[ ! -e $OPTIONS ] || fail "the options are left"
rm $STATE/window.json

step "installed again: the checkpoints are used; purged: nothing is left"
dpkg -i "$deb"
timers_are "disabled disabled disabled inactive inactive inactive"
expect_exit 0 nf diff
dpkg --purge netfix
while read -r path; do
    [ -d "$path" ] || [ ! -e "$path" ] || fail "left after the purge: $path"
done <"$WORK/paths"
left=$(find /etc/systemd /run/systemd/system /var/lib/systemd $STATE -name '*netfix*' -not -name '*.timer.d' 2>/dev/null || :)
[ -z "$left" ] || fail "left after the purge: $left"
