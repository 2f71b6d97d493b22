# Losses at random moments, one after another, beside a kubelet and netfix-guard.service. The scenario has made the node with its pods, and
# defines add_pod NAME, remove_pod NAME and of_webs: the sandboxes and containers of the pods that stay, each in a line.
# shellcheck shell=bash
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

# How many; what each is about, in turns.
LOSSES=${NETFIX_ROUNDS:-8}
KINDS=(short double kubelet added long removed window dead)
RANDOM=${NETFIX_SEED:-$RANDOM}

# pause FROM TO: a random time between so many milliseconds.
pause() {
    local time=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1)))
    sleep "$((time / 1000)).$(printf %03d $((time % 1000)))"
}
# lose FROM TO: the driver is away for a random time.
lose() { unload_driver && pause "$1" "$2" && load_driver; }

loss_short() { lose 200 3000; }
# At most a minute; the longest ones are few.
loss_long() { lose 5000 $((RANDOM % 3 ? 15000 : 60000)); }
# The device resets again while the guard is at work, or just after.
loss_double() { lose 200 2000 && pause 0 6000 && lose 200 2000; }
# kubelet starts again at a random moment of the loss, or of the restore. One that starts over pods without network rebuilds them.
loss_kubelet() {
    unload_driver
    (pause 0 4000; systemctl restart $KUBELET || :) &
    pause 200 3000
    load_driver
    wait $!
    MAY_REBUILD=1
}
loss_added() {
    unload_driver
    pause 0 2000
    add_pod extra
    pause 0 2000
    load_driver
}
loss_removed() {
    unload_driver
    pause 0 2000
    remove_pod extra
    pause 0 2000
    load_driver
}
# One just before a window, which has one of its own.
loss_window() {
    lose 200 1000
    pause 0 3000
    nf upgrade --yes --lock-wait 120s --watch 2s -- bash -c "modprobe -r $DRIVER; sleep 1; modprobe $DRIVER" >"$OUT" 2>&1 ||
        [ $? = 5 ] || fail "the window: $(cat "$OUT")"
}
# The guard is killed in it.
loss_dead() {
    lose 200 2000
    pause 0 3000
    systemctl kill -s KILL netfix-guard.service
}

web_answers() { answers "$1" 10.3.0.1; }
webs_answer() { local name; for name in "${WEBS[@]}"; do web_answers "$name" || return 1; done; }
guard_is_done() { [ ! -e "$STATE/window.json" ] && [ "$(jq -r .watch "$STATE/guard.json")" = null ]; }
is_extra_there() { [ "$(of_extra | wc -l)" = "$1" ]; }
left_of_netfix() { systemctl list-units --all --plain --no-legend 'netfix-*' | grep -v '^netfix-guard.service'; }

# settled ROUND: all is back, nobody was rebuilt, and nothing of netfix is left.
settled() {
    if [ "$MAY_REBUILD" = 1 ]; then
        # By kubelet itself, which started over them: they have another sandbox.
        wait_for 120 "the pods, or those in their place" eval 'find_webs 2>/dev/null && webs_answer'
    else
        wait_for 120 "the pods" webs_answer
    fi
    wait_for 60 "the end of the restore" guard_is_done
    # kubelet compares what it has with its pods.
    rounds_later $((1 + MAY_REBUILD))
    if [ "$MAY_REBUILD" = 1 ] && ! of_webs | diff -q "$WORK/webs" - >/dev/null; then
        REBUILT=$((REBUILT + 1))
        find_webs
        webs_answer || fail "the pods in their place do not answer"
        # What the timer does.
        expect_exit 0 nf snapshot
    else
        of_webs | diff "$WORK/webs" - || fail "a pod was rebuilt"
    fi
    of_webs >"$WORK/webs"
    case $1 in
    added) wait_for 120 "the new pod" is_extra_there 1 ;;
    removed) wait_for 120 "the end of the removed pod" is_extra_there 0 ;;
    esac
    kubelet_runs || fail "kubelet is $(systemctl show -P ActiveState -P LoadState $KUBELET | xargs)"
    [ -z "$(masks)" ] || fail "a mask is left: $(masks)"
    [ -z "$(left_of_netfix)" ] || fail "a unit is left: $(left_of_netfix)"
    MAY_REBUILD=0
}

losses() {
    local number kind begun
    rounds_later 1
    BACKOFF=100ms guard_unit --manager-wait 0s
    all_answer
    expect_exit 0 nf snapshot
    guard_unit_start
    REBUILT=0 MAY_REBUILD=0
    of_webs >"$WORK/webs"
    for number in $(seq "$LOSSES"); do
        kind=${KINDS[(number - 1) % ${#KINDS[@]}]}
        begun=$SECONDS
        step "loss $number of $LOSSES: $kind"
        "loss_$kind"
        settled "$kind"
        echo "settled after $((SECONDS - begun)) s"
    done
    echo "$LOSSES losses; kubelet itself rebuilt pods $REBUILT times; restores of the guard: $(jq .restores "$STATE/guard.json")"
    expect_exit '0|1' nf check
    guard_unit_stop
}
