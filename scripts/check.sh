#!/bin/sh
# What can be checked without running Ayre.
set -eu
cd "$(dirname "$0")/.."

step() {
    echo "check: $*"
    "$@"
}

step cargo fmt --all --check
step cargo clippy --workspace --all-targets -- -D warnings
step cargo xtask tidy
step cargo xtask spec
step cargo xtask api
step cargo xtask header
step scripts/drawings.sh check
step scripts/lint-c.sh
export RUSTDOCFLAGS="-D warnings"
step cargo doc --workspace --no-deps --document-private-items
