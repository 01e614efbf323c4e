#!/bin/sh
# iperf3: one way, the other, both at once, by several connections, and a file.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs iperf3

port=$(free_port)

# iperf NAME OPTION...: in the numbers that both sides have told each other.
iperf() {
    out="$work/$1.json"
    shift
    client iperf3 -c "$ADDRESS" -p "$port" -J "$@" >"$out" || fail "iperf3 $*: $(grep error "$out")"
}

# member FILE OBJECT MEMBER: a number.
member() {
    awk -v object="\"$2\":" -v member="\"$3\":" '
        $1 == object { inside = 1 }
        inside && $1 == member { gsub(",", "", $2); printf "%.0f\n", $2; exit }' "$1"
}

check() {
    serve server "$port" iperf3 -s -B "$ADDRESS" -p "$port"
    for way in "" "-R" "-P 4" "-P 4 -R" "-l 1000" "-Z"; do
        # The way is words.
        # shellcheck disable=SC2086
        iperf "check" -n 100M $way
        sent=$(member "$out" sum_sent bytes)
        received=$(member "$out" sum_received bytes)
        # The test ends when the sender has sent; the rest is on its way, and may be much.
        if [ "$sent" -lt 104857600 ] || [ "$received" -gt "$sent" ] ||
            [ "$received" -lt 10000000 ]; then
            fail "iperf3 $way: sent $sent, received $received"
        fi
    done
    iperf both -t 1 --bidir
    [ "$(member "$out" sum_received bytes)" -gt 1000000 ] || fail "nothing came in both ways"

    # Its own streams are counted, not compared. A file it sends wrongly where a write takes only a
    # part, also over TCP: it goes slowly enough that buffers do not fill.
    data "$work/file" 5000000
    other=$(free_port)
    serve files "$other" iperf3 -s -B "$ADDRESS" -p "$other" -F "$work/received"
    port=$other
    iperf file -F "$work/file" -n 5000000 -b 200M
    size=$(stat -c %s "$work/received")
    [ "$size" -ge 4000000 ] || fail "of a file of 5 MB came $size bytes"
    head -c "$size" "$work/file" >"$work/sent"
    alike "$work/received" "$work/sent" "a file"
    by_rings 300000000
}

# A server takes the next client when one is killed; a client ends when the server is killed.
kills() {
    serve server "$port" iperf3 -s -B "$ADDRESS" -p "$port"
    server=$pid
    for way in "" "-R" "-P 4"; do
        # The way is words.
        # shellcheck disable=SC2086
        begin killed iperf3 -c "$ADDRESS" -p "$port" -t 50 -i 0.1 --forceflush $way
        victim=$pid
        wait_until "it has begun" long killed 6
        kill_child "$victim"
        wait_until "the server takes the next" takes_next
        [ "$(member "$out" sum_received bytes)" -gt 10000000 ] || fail "after iperf3 $way: little"
    done
    begin left iperf3 -c "$ADDRESS" -p "$port" -t 50 -i 0.1 --forceflush
    client=$pid
    wait_until "it has begun" long left 6
    kill_hard "$server"
    fails "$client" "a client hears of the killed server"
    anew
    serve server "$port" iperf3 -s -B "$ADDRESS" -p "$port"
    # For long enough that a link opens.
    iperf next -t 1
    by_rings 10000000
}

# It refuses while it has not left the last one.
takes_next() {
    out="$work/next.json"
    client iperf3 -c "$ADDRESS" -p "$port" -J -n 100M >"$out" && ! grep -q '"error"' "$out"
}

figures() {
    [ "$OVER" = tcp ] || return 0
    serve server "$port" iperf3 -s -B "$ADDRESS" -p "$port"
    for way in "" "-R"; do
        # The way is words.
        # shellcheck disable=SC2086
        iperf figures -t "$SECONDS_EACH" $way
        member "$out" sum_received bits_per_second |
            awk -v way="stream$way" '{ print way, $1 / 1e9, "Gbit/s" }'
    done
}

main "$@"
