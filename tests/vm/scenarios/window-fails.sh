#!/usr/bin/env bash
# lab: systemd
# What the user's command can do to a window: it fails, it starts kubelet, it is ended by a signal. The pods are back
# whatever it does. And a kubelet that does not stay stopped: then it is never run.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# signalled NAME: sent to netfix while the command runs, which would take for ever.
signalled() {
    rm -f "$WORK/going"
    in_background -- "modprobe -r e1000e; trap 'modprobe e1000e; exit 3' $1; touch $WORK/going; while :; do sleep 0.1; done"
    wait_for 60 "the command to run" test -e "$WORK/going"
    kill -s "$1" "$WINDOW"
    exit_of_window 1
    recorded '.exit == 1 and .run.exit == 3 and any(.problems[]; .code == "interrupted")'
    recorded '.pods | all(.state == "restored" and .rebuilt == false)'
    untouched
}

plain_node
plain_kubelet
before_window

step "it fails"
upgrade 1 -o json -- "$RELOAD; exit 7"
problem command-failed 'exit code 7'
jq -e '.exit == 1 and .report.run.exit == 7 and (.pods | all(.state == "restored"))' "$OUT" >/dev/null || fail "the document says something else"
[ -s "$(jq -r .report.log "$OUT")" ] || fail "the log is not where the document says"
recorded '.exit == 1 and .run.exit == 7'
untouched

step "it cannot be started"
expect_exit 1 nf upgrade --yes --settle 1s -o json -- /nowhere
problem command-failed /nowhere
untouched

step "its words reach it as they were typed, through systemd"
words=('a b' "\$HOME \${HOME} \$\$ \$" '%h %% %n' "q'u\"o" '' '\x41\n' $'two\nlines' ';' - -- +x '@' ':')
printf '%s\n' '#!/bin/bash' "printf '%s\\0' \"\$@\" >$WORK/words" >"$WORK/command"
chmod +x "$WORK/command"
expect_exit 0 nf upgrade --yes --settle 1s -- "$WORK/command" "${words[@]}"
cmp "$WORK/words" <(printf '%s\0' "${words[@]}") || fail "it got $(tr "\0" "|" <"$WORK/words")"
untouched

for signal in INT TERM; do
    step "SIG$signal"
    signalled "$signal"
done

step "it starts kubelet itself"
upgrade 5 -o json -- "systemctl unmask -q --runtime $KUBELET; systemctl start $KUBELET"
problem kubelet-not-paused "$KUBELET"
untouched

step "a dependency starts kubelet whenever it is stopped: the command is never run"
printf '%s\n' '[Unit]' "Upholds=$KUBELET" '[Service]' 'ExecStart=/bin/sleep infinity' >/run/systemd/system/minder.service
systemctl daemon-reload
systemctl start minder.service
expect_exit 4 "$NETFIX" --state-dir "$STATE" upgrade --yes -o json -- touch "$WORK/was-run"
problem kubelet-not-paused "$KUBELET"
[ ! -e "$WORK/was-run" ] || fail "the command was run"
wait_for 10 "kubelet" kubelet_runs
untouched
