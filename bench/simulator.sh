#!/usr/bin/env bash
# Processor time of the simulator's standard networks and of a pair of EXTOLL's nodes: packets, hops
# of packets and cycles for each second of one core. Set-up is left out by a run of few packets.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release -p ayre-sim --example speed
program=${CARGO_TARGET_DIR:-target}/release/examples/speed
TIMEFORMAT=%U

printf '%-10s %12s %14s %14s %12s\n' network 'CPU seconds' 'M packets/s' 'M hops/s' 'cycles/s'
for case in crossbar torus-2 torus-3 tree dragonfly huge pair; do
    # The warm caches of a network of 65,536 nodes are those of memory, and a few packets tell.
    case $case in huge) packets=300000 ;; *) packets=2000000 ;; esac
    { short=$({ time "$program" $case 1000 >/dev/null; } 2>&1); } 2>&1
    result=$(mktemp)
    long=$({ time "$program" $case $packets >"$result"; } 2>&1)
    awk -v case=$case -v short="$short" -v long="$long" -v packets=$packets '
        {
            for (at = 1; at <= NF; at++) {
                split($at, pair, "=")
                value[pair[1]] = pair[2]
            }
            seconds = long - short
            printf "%-10s %12.2f %14.2f %14.2f %12.0f\n", case, seconds, packets / seconds / 1e6,
                (packets * (value["hops"] + 1)) / seconds / 1e6, value["cycles"] / seconds
        }' "$result"
    rm -f "$result"
done
