#!/bin/sh
# Runs simulated networks twice by one seed and compares the two: $PAIRS pairs of each kind of
# program (ports, endpoints, streams, groups, messages, collectives), by other seeds each time. A
# run begins things for $AYRE_TEST_ROUNDS rounds; one of collectives makes always the same number
# of calls. A difference is told with the seed that brings it back, with as many rounds.
set -eu
cd "$(dirname "$0")/.."

export AYRE_SOAK="${PAIRS:-1000}"
export AYRE_TEST_ROUNDS="${AYRE_TEST_ROUNDS:-100}"
# Of ports that are killed, many are told.
export AYRE_LOG=off
cargo test -p ayre --profile checked --test simulation --test simulation_groups \
    --test simulation_messages --test simulation_collectives -- \
    a_seed --test-threads=1 --nocapture
