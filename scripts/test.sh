#!/bin/sh
# All tests, optimised but with assertions; the library without its features; those for C and for
# Python as they are installed; the loom models; Wireshark's dissector; the pages of the tool in a
# browser; the blocks of the book; the instruction counts.
set -eu
cd "$(dirname "$0")/.."

# A step takes some minutes, and a test that hangs is a failure: cargo's last lines name it.
LIMIT=2400

step() {
    echo "test: $*"
    begun=$(date +%s)
    status=0
    timeout --kill-after=10 "$LIMIT" "$@" || status=$?
    echo "test: that took $(($(date +%s) - begun)) s"
    if [ "$status" -eq 124 ]; then
        echo "test: it was ended after $LIMIT s; \`has been running\` above names what hangs"
    fi
    return "$status"
}

# The tests over several processes start the tool `ayre`, so it is built with the rest.
step cargo build --workspace --profile checked
step cargo test --workspace --profile checked --no-fail-fast

step scripts/features.sh
step env PROFILE=checked scripts/capi-try.sh
step env PROFILE=checked scripts/python-try.sh

# A folder of its own: other flags would otherwise rebuild everything, each time, for both.
(
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
    export RUSTFLAGS="--cfg loom"
    step cargo test -p ayre --lib --profile checked -- mem::model
)

step scripts/dissect.sh
step scripts/report.sh
step scripts/pages.sh
step cargo xtask instructions
