#!/bin/sh
# Repeats the tests, the ignored long ones too, the fuzz targets and the demo until $MINUTES are
# over; stops at the first failure. Property tests draw other cases in each round, and the fuzz
# targets, $FUZZ_SECONDS each, go on from what they have found so far. Tests that kill, stop or
# revoke processes make $AYRE_SOAK tries of each kind, at other instructions in each round.
set -eu
cd "$(dirname "$0")/.."

export PROPTEST_CASES="${PROPTEST_CASES:-20000}"
export AYRE_SOAK="${AYRE_SOAK:-300}"
# Programs of socket calls that run over TCP and over the library for sockets, by several searches
# at a time: faults show under load that a quiet machine hides.
export AYRE_SOCKETS_PROGRAMS="${AYRE_SOCKETS_PROGRAMS:-7000}"
export AYRE_SOCKETS_TEST_AT_ONCE="${AYRE_SOCKETS_TEST_AT_ONCE:-$(($(nproc) + 1))}"
export AYRE_SOCKETS_TEST_HOSTS_EVERY="${AYRE_SOCKETS_TEST_HOSTS_EVERY:-1}"
# Simulated networks of each test of the link.
export SEEDS="${SEEDS:-20000}"

fuzz() {
    if ! cargo +nightly --version >/dev/null 2>&1; then
        echo "soak: no fuzzing without a nightly compiler: rustup toolchain install nightly"
        return
    fi
    if ! cargo fuzz --version >/dev/null 2>&1; then
        cargo install --locked cargo-fuzz
    fi
    (cd fuzz && cargo +nightly run --quiet --example seeds)
    for target in lane lines commands responses control frames datagrams set_ups endings \
        matching records deposits groups streams sockets; do
        cargo +nightly fuzz run "$target" -- -max_len=600 -max_total_time="${FUZZ_SECONDS:-60}"
    done
}

end=$(($(date +%s) + ${MINUTES:-60} * 60))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
    round=$((round + 1))
    echo "soak: round $round"
    cargo build --workspace --profile checked
    AYRE_SOCKETS_SEED=$(date +%s) cargo test --workspace --profile checked -- --include-ignored
    PROFILE=checked scripts/python-try.sh all
    fuzz
    scripts/demo.sh
done
echo "soak: $round rounds passed"
