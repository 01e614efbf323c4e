#!/bin/sh
# Ranks the packages that apt knows of, in one process and in $RANKS; arguments go to the example.
set -eu
cd "$(dirname "$0")/.."

release="${CARGO_TARGET_DIR:-target}/release"
cargo build --release -p ayre-cli -p ayre-pagerank

case " $* " in
*" --graph"* | *" --lists"*) ;;
*)
    if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
        echo "demo: apt has no package lists here; taking the small graph of the example"
        set -- --graph small "$@"
    fi
    ;;
esac

# This shell is one of the threads that are running.
read -r _ _ _ running _ </proc/loadavg
running=$((${running%%/*} - 1))
if [ "$running" -gt 0 ]; then
    echo "demo: $running other threads are running here; times are better on an idle machine"
fi

run() {
    ranks="$1"
    shift
    set -- "$release/ayre" run -n "$ranks" --bind cores -- "$release/ayre-pagerank" "$@"
    echo
    echo "demo: $*"
    "$@"
}

run 1 --top 0 "$@"
if [ "${RANKS:-2}" -ne 1 ]; then
    run "${RANKS:-2}" "$@"
fi
