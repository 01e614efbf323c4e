#!/bin/sh
# memcached: files there and back, its own client's tests of both protocols, and verified load.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs memcached memccp memccat memccapable memcaslap

port=$(free_port)

check() {
    become nobody
    serve server "$port" memcached -l "$ADDRESS" -p "$port" -U 0 -m 256 -I 2m
    mkdir "$work/files"
    for i in $(seq 50); do
        data "$work/files/file$i" $((i * i * 400))
    done
    client memccp --servers="$ADDRESS:$port" "$work/files"/*
    for i in $(seq 50); do
        client memccat --servers="$ADDRESS:$port" "file$i" >"$work/got"
        # A line end that is not in the file.
        head -c $((i * i * 400)) "$work/got" >"$work/exact"
        alike "$work/exact" "$work/files/file$i" "file $i of $((i * i * 400)) bytes"
    done
    client memccapable -h "$ADDRESS" -p "$port" >"$work/capable" 2>&1 ||
        fail "memccapable: $(grep -iv pass "$work/capable")"
    load -x 40000 -v 1
    awk '/^(cmd_get|cmd_set|get_misses|verify_misses|verify_failed):/ { print $1, $2 }' \
        "$work/load" >"$work/counts"
    for count in get_misses verify_misses verify_failed; do
        equal "$(sed -n "s/^$count: //p" "$work/counts")" 0 "$count"
    done
    [ "$(awk '/^cmd/ { n += $2 } END { print n }' "$work/counts")" -ge 40000 ] ||
        fail "less than 40000 operations: $(cat "$work/counts")"
    by_rings 10000000
}

# load OPTION...
load() {
    # Its own words for keys, values, and nine reads for each write.
    printf 'key\n16 16 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n' >"$work/mix"
    client memcaslap -s "$ADDRESS:$port" -T 2 -c 32 -F "$work/mix" "$@" >"$work/load" 2>&1 ||
        fail "memcaslap: $(cat "$work/load")"
}

figures() {
    [ "$OVER" = tcp ] || return 0
    become nobody
    serve server "$port" memcached -l "$ADDRESS" -p "$port" -U 0 -m 256
    load -t "${SECONDS_EACH}s" -X 64
    sed -n 's/.* TPS: \([0-9]*\) .*/get+set \1 op\/s/p' "$work/load"
}

main "$@"
