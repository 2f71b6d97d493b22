#!/usr/bin/env bash
# The .rpm of scripts/package, installed, updated and removed by rpm(8) in a root of its own, where its scripts run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() { echo "FAIL $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "must run as root"
for program in rpm busybox; do command -v "$program" >/dev/null || fail "no $program: run scripts/setup --all"; done
package=$(printf '%s\n' "$PWD"/target/package/netfix-*.x86_64.rpm | head -n 1)
archive=${package%.x86_64.rpm}-x86_64-linux.tar.gz
[ -e "$package" ] && [ -e "$archive" ] || fail "no package: run scripts/package first"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,tmp/archive,run/systemd/system,var/lib/netfix/checkpoints}
tar -xzf "$archive" -C "$root/tmp/archive" --strip-components 1
mknod -m 666 "$root/dev/null" c 1 3
cp "$(command -v busybox)" "$root/bin/busybox"
for name in sh rm echo; do ln -s busybox "$root/bin/$name"; done
# Notes what the scripts of the package ask systemd for.
printf '#!/bin/sh\necho "$*" >>/tmp/systemctl\n' >"$root/bin/systemctl"
chmod 755 "$root/bin/systemctl"

in_root() { rpm --root "$root" "$@"; }
asked() { grep -qx -- "$1" "$root/tmp/systemctl" || fail "$2: systemctl was not asked to: $1"; }
files() { (cd "$root" && find usr etc -type f -o -type l | sort); }
kept() { [ -e "$root/var/lib/netfix/checkpoints/web-0" ] || fail "$1 removed a checkpoint"; }

in_root --initdb
echo kept >"$root/var/lib/netfix/checkpoints/web-0"

echo "== install"
in_root -i --nodeps "$package"
diff <(cd "$root/tmp/archive" && find usr etc -type f -o -type l | sort) <(files) || fail "other files than in the archive"
in_root -V --nodeps netfix || fail "the installed files differ from the package"
asked daemon-reload install
! grep -Eq 'enable|start' "$root/tmp/systemctl" || fail "the installation enabled or started something"
[ "$(chroot "$root" /usr/bin/netfix --version)" = "$("$root/tmp/archive/usr/bin/netfix" --version)" ] || fail "it does not run there"

echo "== update: options that were changed stay, and nothing is stopped"
echo 'NETFIX_KEEP=7' >>"$root/etc/default/netfix"
next=$root/tmp/next.rpm
target/tools/bin/cargo-generate-rpm generate-rpm --target x86_64-unknown-linux-gnu --set-metadata 'version = "99.0.0"' --output "$next"
: >"$root/tmp/systemctl"
in_root -U --nodeps "$next"
[ "$(in_root -q --qf '%{VERSION}' netfix)" = 99.0.0 ] || fail "the version after the update"
grep -qx NETFIX_KEEP=7 "$root/etc/default/netfix" || fail "the update lost the options"
! grep -q 'disable\|stop' "$root/tmp/systemctl" || fail "the update stopped something"
kept "the update"

echo "== with an open window it stays"
touch "$root/var/lib/netfix/window.json"
! in_root -e netfix 2>"$root/tmp/error" || fail "it was removed in a window"
grep -q 'a maintenance window is open' "$root/tmp/error" || fail "the refusal says: $(cat "$root/tmp/error")"
[ -x "$root/usr/bin/netfix" ] || fail "the program is gone"
rm "$root/var/lib/netfix/window.json"

echo "== remove"
in_root -e netfix
asked 'disable --now --quiet netfix-snapshot.timer netfix-check.timer netfix-rehearsal.timer netfix-guard.service' removal
[ "$(files)" = etc/default/netfix.rpmsave ] || fail "it left: $(files)"
kept "the removal"
