#!/usr/bin/env bash
# The files of scripts/release, signed with a throwaway key: sums, signature, bill of materials and notes. sha256sum(1), ssh-keygen(1) and
# cargo tree judge. The packages stay in target/package, for the tests of each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() { printf 'release.sh: %s\n' "$*" >&2; exit 1; }

keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
ssh-keygen -q -t ed25519 -N '' -f "$keys/key"
scripts/release --draft --sign "ssh:$keys/key" >&2
cd target/package
sha256sum --check --quiet SHA256SUMS
for file in netfix*; do grep -q "  $file$" SHA256SUMS || fail "$file has no sum"; done
printf 'me %s\n' "$(cat "$keys/key.pub")" >"$keys/allowed"
ssh-keygen -q -Y verify -f "$keys/allowed" -I me -n netfix -s SHA256SUMS.sig <SHA256SUMS || fail "the signature is bad"
echo >>SHA256SUMS
! ssh-keygen -q -Y verify -f "$keys/allowed" -I me -n netfix -s SHA256SUMS.sig <SHA256SUMS 2>/dev/null || fail "a changed file has a good signature"
sed -i '$d' SHA256SUMS
cd ../..
bill=$(printf '%s\n' target/package/netfix-*-x86_64.cdx.json)
crates=$(cargo tree --locked --edges normal --target x86_64-unknown-linux-gnu --prefix none --format '{p}' | awk '{ print $1 "@" substr($2, 2) }' | sort -u)
listed=$(jq -r '.metadata.component, .components[] | .purl | ltrimstr("pkg:cargo/")' "$bill" | sort -u)
diff <(echo "$crates") <(echo "$listed") || fail "the bill of materials lists other crates than cargo tree"
unknown=$(jq -r '[.dependencies[].dependsOn[]] - [.components[]."bom-ref"] | length' "$bill")
[ "$unknown" = 0 ] || fail "$unknown crates are needed and not listed"
without=$(jq -r '.components[] | select((.hashes | length) != 1 or .licenses[0].expression == "NOASSERTION") | .name' "$bill")
[ -z "$without" ] || fail "without sum or license: $without"
! grep -qF "$PWD" "$bill" target/package/root/usr/bin/netfix || fail "the path of this build is in what is published"
grep -q '^### ' target/package/NOTES.md || fail "the notes have no entries"
