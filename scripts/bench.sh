#!/bin/sh
# Measures this machine; arguments go to `ayre perf`. With `net` as the first one, measures Ayre
# over the network, between two namespaces that are made for that and removed again (needs root).
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench: $*"; }

leave() {
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
}

# Two hosts as far as the network knows, joined by a cable with the MTU of Ethernet.
join_namespaces() {
    near="ayre-bench-$$-near" far="ayre-bench-$$-far"
    trap leave EXIT
    trap 'exit 1' HUP INT TERM
    ip netns add "$near"
    ip netns add "$far"
    ip -n "$near" link add eth0 mtu 1500 type veth peer name eth0 mtu 1500 netns "$far"
    ip -n "$near" address add 10.73.0.1/30 dev eth0
    ip -n "$far" address add 10.73.0.2/30 dev eth0
    for namespace in "$near" "$far"; do
        ip -n "$namespace" link set lo up
        ip -n "$namespace" link set eth0 up
    done
}

cargo build --release -p ayre-cli
ayre="${CARGO_TARGET_DIR:-target}/release/ayre"

if [ "${1:-}" != net ]; then
    set -- "$ayre" perf "$@"
    say "$*"
    exec "$@"
fi

shift
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null; then
    say "two network namespaces take root and the command ip (package iproute2)"
    exit 1
fi
join_namespaces
set -- "$ayre" perf --net --ethernet --netns "$near,$far" --between 10.73.0.1,10.73.0.2 "$@"
say "$*"
"$@"
