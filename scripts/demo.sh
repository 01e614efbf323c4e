#!/bin/sh
# Runs the example `pagerank` as a job of $RANKS processes; arguments go to the example.
set -eu
cd "$(dirname "$0")/.."

release="${CARGO_TARGET_DIR:-target}/release"
cargo build --release -p ayre-cli -p ayre-pagerank
set -- "$release/ayre" run -n "${RANKS:-2}" -- "$release/ayre-pagerank" "$@"
echo "demo: $*"
exec "$@"
