#!/bin/sh
# Measures what it is worth that a group chooses its schedules by what its links are loaded with:
# beside each fixed schedule, by turns, under background traffic that comes and goes, $ROUNDS rounds
# of each. Then studies the recordings of it, with plots in target/study.
#
# usage: [ROUNDS=4] bench/adaptive.sh
set -eu
cd "$(dirname "$0")/.."

cargo build --release -p ayre-cli -p ayre --bins --example adaptive
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
rm -rf "$target/study"
timeout 1800 "$target/release/examples/adaptive" "${ROUNDS:-4}" 1024 "$target/study"
"$target/release/ayre" study "$target"/study/*.tsv --calls allreduce-1024 --plots "$target/study"
