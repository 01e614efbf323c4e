#!/bin/sh
# memcached: files there and back, its own client's tests of both protocols, and verified load.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs memcached memccp memccat memccapable memcaslap

port=$(free_port)
# Where clients connect.
servers="$ADDRESS:$port"
[ "$OVER" != unix ] || servers="$work/socket"

check() {
    become nobody
    cache
    mkdir "$work/files"
    for i in $(seq 50); do
        data "$work/files/file$i" $((i * i * 400))
    done
    client memccp --servers="$servers" "$work/files"/*
    for i in $(seq 50); do
        client memccat --servers="$servers" "file$i" >"$work/got"
        # A line end that is not in the file.
        head -c $((i * i * 400)) "$work/got" >"$work/exact"
        alike "$work/exact" "$work/files/file$i" "file $i of $((i * i * 400)) bytes"
    done
    [ "$OVER" = unix ] || tests_and_load
    by_rings 10000000
}

# Programs that know nothing of Unix sockets.
tests_and_load() {
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
}

# Others go on when a client is killed, and a client goes on when the server is.
kills() {
    become nobody
    cache
    data "$work/file" 900000
    [ "$OVER" = unix ] || killed_clients
    kill_hard "$server"
    ! client memccat --servers="$servers" file >"$work/got" 2>&1 || fail "no server is there"
    anew
    cache
    there_and_back "when the server has come back"
    # The file itself may come before either side has shown that it waits.
    by_rings 1
}

# The load's program knows nothing of Unix sockets.
killed_clients() {
    for turn in 1 2 3; do
        mix
        begin "load$turn" memcaslap -s "$servers" -T 2 -c 32 -F "$work/mix" -t 60s
        victim=$pid
        wait_until "it is at work" has_connections 32
        kill_child "$victim"
        there_and_back "while a client is killed"
        wait_until "the server has left the killed client" has_no_connections
    done
}

# there_and_back WORDS: a file.
there_and_back() {
    client memccp --servers="$servers" "$work/file" || fail memccp
    client memccat --servers="$servers" file | head -c 900000 >"$work/got"
    alike "$work/got" "$work/file" "a file, $1"
}

connections() {
    client memcstat --servers="$servers" | sed -n 's/.*curr_connections: \([0-9]*\).*/\1/p'
}

has_connections() { [ "$(connections)" -gt "$1" ]; }

# But for those of the one that asks, and of the server itself.
has_no_connections() { [ "$(connections)" -lt 32 ]; }

cache() {
    if [ "$OVER" = unix ]; then
        [ -z "$as" ] || chown nobody "$work"
        # A killed server leaves it.
        rm -f "$work/socket"
        start server memcached -s "$work/socket" -m 256 -I 2m
        server=$pid
        wait_until "the server listens" test -S "$work/socket"
        return
    fi
    serve server "$port" memcached -l "$ADDRESS" -p "$port" -U 0 -m 256 -I 2m
    server=$pid
}

# load OPTION...
load() {
    mix
    client memcaslap -s "$servers" -T 2 -c 32 -F "$work/mix" "$@" >"$work/load" 2>&1 ||
        fail "memcaslap: $(cat "$work/load")"
}

# Its own words for keys, values, and nine reads for each write.
mix() { printf 'key\n16 16 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n' >"$work/mix"; }

figures() {
    [ "$OVER" = tcp ] || return 0
    become nobody
    serve server "$port" memcached -l "$ADDRESS" -p "$port" -U 0 -m 256
    load -t "${SECONDS_EACH}s" -X 64
    sed -n 's/.* TPS: \([0-9]*\) .*/get+set \1 op\/s/p' "$work/load"
}

main "$@"
