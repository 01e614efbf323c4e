#!/bin/sh
# sockperf: messages there and back, each compared.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs sockperf

port=$(free_port)

ping_pong() {
    client sockperf ping-pong --tcp -i "$ADDRESS" -p "$port" "$@" >"$work/out" 2>&1 ||
        fail "sockperf $*: $(cat "$work/out")"
}

check() {
    serve server "$port" sockperf server --tcp -i "$ADDRESS" -p "$port"
    for size in 14 64 1500 60000; do
        ping_pong -m "$size" -t 1 --data-integrity
        grep -q 'dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' \
            "$work/out" || fail "size $size: the order: $(grep dropped "$work/out")"
    done
    by_rings 1000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    serve server "$port" sockperf server --tcp -i "$ADDRESS" -p "$port"
    ping_pong -m 64 -t "$SECONDS_EACH"
    awk '
        /avg-latency=/ { sub(".*avg-latency=", ""); sub(" .*", ""); print "one-way/64B", $0, "us" }
        /percentile 99.000 =/ { print "one-way-p99/64B", $NF, "us" }' "$work/out"
}

main "$@"
