#!/usr/bin/env bash
# Random pods on Debian's kernel, with the kinds of links that the usual kernel lacks: ipvlan, VLANs, bonds, VRFs.
# NETFIX_CASES and NETFIX_SEED: how many, and which.
set -Eeuo pipefail

export NETFIX_CASES=${NETFIX_CASES:-6} NETFIX_SEED=${NETFIX_SEED:-1} NETFIX_THREADS=2
modprobe -a ipvlan 8021q vrf macvtap bridge
modprobe bonding max_bonds=0
"${NATIVE_TESTS:?is the path of the binary of tests/native}" --exact --nocapture \
    roundtrip::what_a_random_pod_loses_comes_back_or_was_named \
    roundtrip::every_case_in_testdata_comes_back \
    roundtrip::decided::every_attribute_that_the_kernel_reports_is_decided | tee /run/native
grep -q '^test result: ok. 3 passed' /run/native
