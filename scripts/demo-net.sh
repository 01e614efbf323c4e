#!/bin/sh
# The demo over a network: $RANKS ranks on $HOSTS hosts, which are network namespaces of this
# machine and are taken away again. Rank 0 compares the result, to the bit, with what it computes
# alone; the demo fails if they differ. As root; arguments go to the example.
set -eu
cd "$(dirname "$0")/.."

hosts="${HOSTS:-2}"
if [ "${1:-}" != inside ]; then
    exec scripts/netns.sh with "$hosts" scripts/demo-net.sh inside "$@"
fi
shift

release="${CARGO_TARGET_DIR:-target}/release"
cargo build --release -p ayre-cli -p ayre-pagerank

case " $* " in
*" --graph"* | *" --lists"*) ;;
*)
    if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
        echo "demo-net: apt has no package lists here; taking the small graph of the example"
        set -- --graph small "$@"
    fi
    ;;
esac

names=$(scripts/netns.sh names "$hosts" | paste -s -d ,)
set -- "$release/ayre" run --hosts "$names" -n "${RANKS:-2}" \
    --via 'ip netns exec {host} {command}' -- "$release/ayre-pagerank" "$@"
echo
echo "demo-net: $*"
"$@"
