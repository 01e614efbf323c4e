#!/bin/sh
# Measures this machine; arguments go to `ayre perf`.
set -eu
cd "$(dirname "$0")/.."

cargo build --release -p ayre-cli
set -- "${CARGO_TARGET_DIR:-target}/release/ayre" perf "$@"
echo "bench: $*"
exec "$@"
