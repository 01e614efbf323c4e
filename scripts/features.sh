#!/bin/sh
# Checks `ayre` with none of its Cargo features, and with each of them alone: that it compiles, that
# it keeps what its page says of dependencies, and that two processes talk by shared memory.
#
# usage: scripts/features.sh [PROFILE]
set -eu
cd "$(dirname "$0")/.."

# The most direct dependencies without features.
most=11
# Crates that compile C, or look for a C library.
builders='^(bindgen|cc|cmake|nasm-rs|pkg-config|vcpkg|[a-z0-9_-]+-sys) '

step() {
    echo "features: $*"
    "$@"
}

fail() {
    echo "features: $*" >&2
    exit 1
}

# The crates below `ayre` by these options of `cargo tree`, each once; `-sys` of the kernel's
# numbers is Rust alone.
crates() {
    cargo tree -q -p ayre -e normal,build --prefix none --no-dedupe "$@" | sort -u |
        grep -v '^linux-raw-sys '
}

for features in '' net job tuning; do
    step cargo clippy -q -p ayre --no-default-features --features "$features" -- -D warnings
done

direct=$(crates --no-default-features --depth 1 | grep -vc '^ayre v')
[ "$direct" -le $most ] || fail "$direct direct dependencies without features; at most $most"
if found=$(crates --no-default-features | grep -E "$builders"); then
    fail "without features nothing may need a C compiler: $found"
fi
# The pattern finds what it is for.
crates | grep -qE "$builders" || fail "the default features need a C compiler, and none was seen"
echo "features: $direct direct dependencies without features, and no C compiler"

step cargo test -q -p ayre --no-default-features --test shared_memory --profile "${1:-checked}"
