#!/bin/sh
# Redis: many clients at once, pipelines, long values, a client that waits, and a replica.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs redis-server redis-cli redis-benchmark

port=$(free_port)

# Where clients connect.
at() {
    case "$OVER" in
    unix) echo "-s $work/server/socket" ;;
    *) echo "-h $ADDRESS -p $port" ;;
    esac
}

# redis LOG PORT OPTION...
redis() {
    log_name="$1" at="$2"
    shift 2
    mkdir -p "$work/$log_name"
    serve "$log_name" "$at" redis-server --port "$at" --bind "$ADDRESS" --save '' --appendonly no \
        --dir "$work/$log_name" --protected-mode no --unixsocket "$work/$log_name/socket" "$@"
}

# Words.
# shellcheck disable=SC2046
cli() { client redis-cli $(at) "$@"; }

# shellcheck disable=SC2046
benchmark() { client redis-benchmark $(at) "$@"; }

check() {
    redis server "$port"
    equal "$(cli ping)" PONG ping

    seq 20000 | awk '{ printf "SET key%d value-%d-%s\r\n", $1, $1 * $1, $1 % 7 }' >"$work/sets"
    cli --pipe <"$work/sets" >"$work/pipe"
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

    benchmark -c 50 -n 20000 -q incr counter >/dev/null
    equal "$(cli get counter)" 20000 "a counter that 50 clients raise"
    benchmark -c 20 -n 16000 -P 16 -q incr piped >/dev/null
    equal "$(cli get piped)" 16000 "a counter that 20 clients raise by pipelines"
    benchmark -c 10 -n 2000 -k 0 -q incr anew >/dev/null
    equal "$(cli get anew)" 2000 "a counter that 2000 connections raise"

    # shellcheck disable=SC2046
    begin waits redis-cli $(at) blpop list "$deadline"
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

# Each value that the server has acknowledged is there when it has come back.
kills() {
    port=$(free_port)
    keeps="--appendonly yes --appendfsync always"
    # Options are words.
    # shellcheck disable=SC2086
    redis server "$port" $keeps
    server=$pid
    writers=
    for writer in 1 2 3 4; do
        seq 1000000 | sed "s/.*/SET $writer-& value&/" >"$work/sets$writer"
        input="$work/sets$writer"
        # shellcheck disable=SC2046
        begin "writer$writer" redis-cli -e $(at)
        writers="$writers $pid"
    done
    input=
    for writer in 1 2 3 4; do
        wait_until "writer $writer has written" long "writer$writer" 500
    done
    kill_hard "$server"
    for writer in 1 2 3 4; do
        wait_until "writer $writer hears of it" grep -q connect "$work/writer$writer.log.errors"
    done
    # They would go on with all they have.
    for pid in $writers; do
        stop "$pid"
    done
    anew
    # shellcheck disable=SC2086
    redis server "$port" $keeps
    for writer in 1 2 3 4; do
        count=$(grep -c '^OK' "$work/writer$writer.log")
        seq "$count" | sed "s/^/GET $writer-/" >"$work/gets"
        seq "$count" | sed 's/^/value/' >"$work/wanted"
        cli <"$work/gets" >"$work/got"
        alike "$work/got" "$work/wanted" "what writer $writer was told is there"
    done

    # Others go on when a client is killed.
    for turn in 1 2 3 4 5; do
        # shellcheck disable=SC2046
        begin "killed$turn" redis-benchmark $(at) -c 20 -P 8 -n 10000000 -q incr killed
        victim=$pid
        wait_until "it is at work" raised
        kill_child "$victim"
        benchmark -c 20 -n 5000 -q incr counter >/dev/null
        equal "$(cli get counter)" $((turn * 5000)) "a counter that others raise"
        wait_until "the server has left the killed client" one_is_connected
        cli del killed >/dev/null
    done
    by_rings 100000
}

raised() { [ "$(cli get killed)" -gt 1000 ] 2>/dev/null; }

one_is_connected() { cli info clients | grep -q '^connected_clients:1.$'; }

figures() {
    redis server "$port"
    for depth in 1 16; do
        # As many seconds' worth, roughly.
        benchmark -c 50 -d 64 -n $((SECONDS_EACH * 40000 * depth)) -P "$depth" \
            -t get,set --csv >"$work/csv"
        tr -d '"' <"$work/csv" | awk -F , -v depth="$depth" '
            $1 == "GET" || $1 == "SET" { printf "%s/%d %s req/s\n", tolower($1), depth, $2 }'
    done
}

main "$@"
