#!/bin/sh
# Measures what a program of libfabric sees: tagged messages between two processes over Ayre, over
# libfabric's own shared memory, and what this machine's memory allows; by turns, $ROUNDS rounds of
# each. Prints the medians and the ratios.
#
# usage: [ROUNDS=7] bench/fabric.sh
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench-fabric: $*"; }

scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
export FI_PROVIDER_PATH="$target/provider/libfabric"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc -O2 -Wall -o "$folder/fabric" bench/fabric.c -lfabric

: "${ROUNDS:=7}"
for _ in $(seq "$ROUNDS"); do
    for whose in ayre shm raw; do
        timeout 120 "$folder/fabric" "$whose" >"$folder/round"
        sed "s/^/$whose /" "$folder/round" >>"$folder/rounds"
    done
done
say "beside libfabric's own shared memory, $ROUNDS rounds of each"
awk -v other=shm -f bench/summary.awk "$folder/rounds"
say "beside a line that goes there and back, and a ring that is copied into and out of"
awk -v other=raw -f bench/summary.awk "$folder/rounds"
