#!/bin/sh
# PostgreSQL: tables there and back, transactions whose totals must agree, a cancelled query.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
PATH="$PATH:$(echo /usr/lib/postgresql/*/bin)"
needs initdb postgres psql pgbench

port=$(free_port)
forks=yes
# Where clients connect; a folder is that of a Unix socket.
host="$ADDRESS"
[ "$OVER" != unix ] || host="$work"

database() {
    become postgres
    [ -z "$as" ] || chown postgres "$work"
    cd "$work"
    # Words, or nothing.
    # shellcheck disable=SC2086
    $as initdb -D "$work/data" -U test -A trust --no-sync >"$work/initdb.log" 2>&1 || fail initdb
    echo "host all all $ADDRESS/16 trust" >>"$work/data/pg_hba.conf"
    server
    client createdb -h "$host" -p "$port" -U test test
}

server() {
    serve server "$port" postgres -D "$work/data" -h "$ADDRESS" -p "$port" -k "$work" -F
    server=$pid
    takes_connections
}

takes_connections() {
    wait_until "it takes connections" sql postgres 'select 1' >/dev/null 2>&1
}

# sql DATABASE COMMAND: bare values.
sql() { client psql -h "$host" -p "$port" -U test -d "$1" -XAtq -v ON_ERROR_STOP=1 -c "$2"; }

bench() {
    client pgbench -h "$host" -p "$port" -U test -n "$@" test >"$work/bench" \
        2>"$work/bench.log" || fail "pgbench $*"
}

check() {
    database
    equal "$(sql test "select sum(n), count(*) from generate_series(1, 100000) n")" \
        "5000050000|100000" "a sum"
    equal "$(sql test "select repeat('0123456789', 500000)" | tr -d '\n' | sha256sum)" \
        "$(awk 'BEGIN { for (i = 0; i < 500000; i++) printf "0123456789" }' | sha256sum)" "5 MB"

    seq 200000 | awk '{ print $1 "\t" $1 * 7 % 1000 "\tline " $1 }' >"$work/rows"
    chmod 644 "$work/rows"
    sql test 'create table t (id int, n int, line text)'
    sql test 'copy t from stdin' <"$work/rows"
    sql test 'copy (select * from t order by id) to stdout' >"$work/got"
    alike "$work/got" "$work/rows" "rows copied in and out"

    bench -i -I dtGvp -s 2
    bench -S -c 8 -j 2 -t 1000
    grep -q '^number of transactions actually processed: 8000/8000$' "$work/bench" ||
        fail "pgbench -S: $(cat "$work/bench")"
    bench -c 8 -j 2 -t 200
    bench -c 4 -t 200 -M prepared
    bench -c 2 -t 50 -C
    equal "$(totals)" "t|t|t|2500" "totals of accounts, tellers, branches, and the history"

    begin cancelled psql -h "$host" -p "$port" -U test -d test -Xc 'select pg_sleep(600)'
    sleeper=$pid
    wait_until "it sleeps" sleeps
    # Sent on to psql, which asks by a connection of its own.
    kill -INT "$sleeper"
    wait_until "the query is cancelled" over "$sleeper"
    grep -q 'canceling statement due to user request' "$work/cancelled.log.errors" ||
        fail "the query was not cancelled: $(cat "$work/cancelled.log.errors")"
    by_rings 10000000
}

sleeps() {
    [ "$(sql test "select count(*) from pg_stat_activity where query ~ '^select pg_sleep'")" = 1 ]
}

totals() {
    sql test "
        with history as (select sum(delta) s, count(*) n from pgbench_history)
        select s = (select sum(abalance) from pgbench_accounts),
            s = (select sum(tbalance) from pgbench_tellers),
            s = (select sum(bbalance) from pgbench_branches), n from history"
}

# All totals agree when a process of the server was killed, and when all were.
kills() {
    database
    bench -i -I dtGvp -s 2
    for victim in one all; do
        transactions "$victim"
        if [ "$victim" = one ]; then
            kill -9 "$(pgrep -P "$server" -f 'test test .*(UPDATE|BEGIN|COMMIT|idle)' | head -n 1)"
        else
            kill_hard "$server"
        fi
        for pid in $benches; do
            fails "$pid" "pgbench hears of a killed server"
        done
        if [ "$victim" = one ]; then
            takes_connections
        else
            # It does not begin while one of the killed server's processes is there.
            wait_until "the others of the server end" nobody_left
            anew
            server
        fi
        equal "$(totals | cut -d '|' -f 1-3)" "t|t|t" "totals after $victim was killed"
        told=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' \
            "$work/$victim"*.log | awk '{ n += $1 } END { print n + 0 }')
        [ "$(totals | cut -d '|' -f 4)" -ge "$told" ] || fail "less than $told in the history"
        sql test 'truncate pgbench_history; update pgbench_accounts set abalance = 0;
            update pgbench_tellers set tbalance = 0; update pgbench_branches set bbalance = 0'
    done
    bench -c 8 -j 2 -t 50
    equal "$(totals)" "t|t|t|400" "totals in the end"
    by_rings 100000
}

# transactions NAME: by two programs of four clients, and all are at work.
transactions() {
    benches=
    for number in 1 2; do
        begin "$1$number" pgbench -h "$host" -p "$port" -U test -n -c 4 -t 1000000 test
        benches="$benches $pid"
    done
    wait_until "transactions are done" has_history 200
}

has_history() { [ "$(sql test 'select count(*) from pgbench_history')" -ge "$1" ]; }

figures() {
    database
    bench -i -I dtGvp -s 2
    for clients in 1 8; do
        bench -S -c "$clients" -j 1 -T "$SECONDS_EACH" -M prepared
        awk -v c="$clients" '/^tps/ { print "select/" c, $3, "tx/s" }' "$work/bench"
    done
    bench -c 8 -T "$SECONDS_EACH"
    awk '/^tps/ { print "tpcb/8", $3, "tx/s" }' "$work/bench"
}

main "$@"
