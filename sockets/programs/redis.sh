#!/bin/sh
# Redis: many clients at once, pipelines, long values, a client that waits, and a replica.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs redis-server redis-cli redis-benchmark

port=$(free_port)

# redis LOG PORT OPTION...
redis() {
    log_name="$1" at="$2"
    shift 2
    mkdir "$work/$log_name"
    serve "$log_name" "$at" redis-server --port "$at" --bind "$ADDRESS" --save '' --appendonly no \
        --dir "$work/$log_name" --protected-mode no --unixsocket "$work/$log_name/socket" "$@"
}

cli() { client redis-cli -h "$ADDRESS" -p "$port" "$@"; }

check() {
    redis server "$port"
    equal "$(cli ping)" PONG ping

    seq 20000 | awk '{ printf "SET key%d value-%d-%s\r\n", $1, $1 * $1, $1 % 7 }' >"$work/sets"
    client redis-cli -h "$ADDRESS" -p "$port" --pipe <"$work/sets" >"$work/pipe"
    grep -q 'errors: 0, replies: 20000$' "$work/pipe" || fail "mass insertion: $(cat "$work/pipe")"
    equal "$(cli dbsize)" 20000 "keys after mass insertion"
    seq 5000 | sed 's/^/GET key/' >"$work/gets"
    seq 5000 | awk '{ printf "value-%d-%s\n", $1 * $1, $1 % 7 }' >"$work/wanted"
    cli <"$work/gets" >"$work/got"
    alike "$work/got" "$work/wanted" "values, one by one"

    data "$work/long" 8000000
    equal "$(cli -x set long <"$work/long")" OK "a value of 8 MB"
    cli --raw get long | head -c 8000000 >"$work/got"
    alike "$work/got" "$work/long" "a value of 8 MB"

    client redis-benchmark -h "$ADDRESS" -p "$port" -c 50 -n 20000 -q incr counter >/dev/null
    equal "$(cli get counter)" 20000 "a counter that 50 clients raise"
    client redis-benchmark -h "$ADDRESS" -p "$port" -c 20 -n 16000 -P 16 -q incr piped >/dev/null
    equal "$(cli get piped)" 16000 "a counter that 20 clients raise by pipelines"
    client redis-benchmark -h "$ADDRESS" -p "$port" -c 10 -n 2000 -k 0 -q incr anew >/dev/null
    equal "$(cli get anew)" 2000 "a counter that 2000 connections raise"

    begin waits redis-cli -h "$ADDRESS" -p "$port" blpop list "$deadline"
    waiter=$pid
    wait_until "a client waits" one_waits
    cli rpush list item >/dev/null
    finishes "$waiter" "the client that waits"
    equal "$(tr '\n' ' ' <"$work/waits.log")" "list item " "what the client has waited for"

    # The replica is both a server and a client.
    chained=yes
    other=$(free_port)
    redis replica "$other" --replicaof "$ADDRESS" "$port"
    wait_until "the replica has all" replicated
    client redis-cli -h "$ADDRESS" -p "$other" --raw get long | head -c 8000000 >"$work/got"
    alike "$work/got" "$work/long" "a long value of the replica"
    by_rings 10000000
}

one_waits() { cli info clients | grep -q '^blocked_clients:1'; }

replicated() {
    [ "$(client redis-cli -h "$ADDRESS" -p "$other" dbsize)" = "$(cli dbsize)" ] &&
        client redis-cli -h "$ADDRESS" -p "$other" info replication |
        grep -q '^master_link_status:up'
}

figures() {
    redis server "$port"
    set -- -h "$ADDRESS" -p "$port"
    [ "$OVER" != unix ] || set -- -s "$work/server/socket"
    for depth in 1 16; do
        # As many seconds' worth, roughly.
        client redis-benchmark "$@" -c 50 -d 64 -n $((SECONDS_EACH * 40000 * depth)) -P "$depth" \
            -t get,set --csv >"$work/csv"
        tr -d '"' <"$work/csv" | awk -F , -v depth="$depth" '
            $1 == "GET" || $1 == "SET" { printf "%s/%d %s req/s\n", tolower($1), depth, $2 }'
    done
}

main "$@"
