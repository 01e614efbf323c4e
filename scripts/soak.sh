#!/bin/sh
# Repeats the tests, the ignored long ones too, and the demo until $MINUTES are over; stops at the
# first failure. Property tests draw other cases in each round.
set -eu
cd "$(dirname "$0")/.."

export PROPTEST_CASES="${PROPTEST_CASES:-20000}"
end=$(($(date +%s) + ${MINUTES:-60} * 60))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
    round=$((round + 1))
    echo "soak: round $round"
    cargo build --workspace --profile checked
    cargo test --workspace --profile checked -- --include-ignored
    scripts/demo.sh
done
echo "soak: $round rounds passed"
