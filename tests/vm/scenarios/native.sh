#!/usr/bin/env bash
# Native tests that depend on the kernel, on Debian's kernel, which is older than the usual one.
set -Eeuo pipefail

TESTS=(
    links::links_of_every_mode_and_property_come_back_side_by_side
    links::mode_passthru_comes_back_with_the_parents_mac
    host::creating_a_pods_eth0_does_not_change_the_nodes_eth0
    host::an_interface_of_the_node_with_a_pods_index_does_not_block_a_restore
    addresses::order_and_attributes_of_addresses_and_permanent_neighbours_come_back
    routes::routes_and_rules_of_every_kind_come_back
    sysctls::settings_of_every_kind_come_back
    conflicts::a_taken_mac_is_a_conflict_that_changes_nothing_in_its_pod_and_no_other_until_it_is_free
    conflicts::a_taken_interface_index_is_reported_and_the_pod_is_restored_unnoticed_by_the_host
)

"${NATIVE_TESTS:?is the path of the binary of tests/native}" --exact "${TESTS[@]}" | tee /run/native
# cargo skips a name that no test has.
grep -q "^test result: ok. ${#TESTS[@]} passed" /run/native
