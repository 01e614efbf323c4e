#!/bin/sh
# Runs simulated networks twice by one seed and compares the two: $PAIRS pairs of each kind of
# program (ports, endpoints, streams, groups, messages, collectives), each of $ROUNDS rounds, by
# other seeds each time. A difference is told with the seed that brings it back.
set -eu
cd "$(dirname "$0")/.."

export AYRE_SOAK="${PAIRS:-1000}"
export ROUNDS="${ROUNDS:-100}"
# Of ports that are killed, many are told.
export AYRE_LOG=off
cargo test -p ayre --profile checked --test simulation --test simulation_groups \
    --test simulation_messages --test simulation_collectives -- \
    a_seed --test-threads=1 --nocapture
