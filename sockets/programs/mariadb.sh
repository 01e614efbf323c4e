#!/bin/sh
# MariaDB: tables there and back, sysbench's transactions, and transfers whose sum must stay.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
PATH="$PATH:/usr/sbin"
needs mariadbd mariadb mariadb-install-db sysbench

port=$(free_port)
accounts=1000

database() {
    become mysql
    [ -z "$as" ] || chown mysql "$work"
    cd "$work"
    # Words, or nothing.
    # shellcheck disable=SC2086
    $as mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$work/data" --tmpdir="$work" >"$work/install.log" 2>&1 || fail mariadb-install-db
    server
    client mariadb --no-defaults -S "$work/socket" -u root -e "create database test;
        create user test identified by ''; grant all on *.* to test" || fail "create database"
}

server() {
    serve server "$port" mariadbd --no-defaults --datadir="$work/data" --tmpdir="$work" \
        --bind-address="$ADDRESS" --port="$port" --socket="$work/socket" --skip-name-resolve \
        --innodb-buffer-pool-size=64M --max-allowed-packet=64M --local-infile=1
    server=$pid
}

# Where clients connect.
at() {
    case "$OVER" in
    unix) echo "-S $work/socket" ;;
    *) echo "-h $ADDRESS -P $port" ;;
    esac
}

at_of_sysbench() {
    case "$OVER" in
    unix) echo "--mysql-socket=$work/socket" ;;
    *) echo "--mysql-host=$ADDRESS --mysql-port=$port" ;;
    esac
}

# sql COMMAND: bare values.
sql() {
    # shellcheck disable=SC2046
    client mariadb --no-defaults $(at) -u test -NB --local-infile=1 \
        --max-allowed-packet=64M test -e "$1"
}

# bench LUA OPTION... prepare|run
bench() {
    # shellcheck disable=SC2046
    client sysbench --db-driver=mysql $(at_of_sysbench) --mysql-user=test --mysql-db=test "$@" \
        >"$work/bench" 2>&1 ||
        fail "sysbench $*: $(grep -m 3 FATAL "$work/bench")"
}

done_by_bench() { sed -n 's/^ *transactions: *\([0-9]*\) .*/\1/p' "$work/bench"; }

# Each transfer takes from one account, gives to another, and tells that.
transfers() {
    cat >"$work/transfers.lua" <<LUA
function thread_init()
    connection = sysbench.sql.driver():connect()
    acknowledged = io.open("$work/acknowledged", "a")
end
function event()
    local from, to = sysbench.rand.uniform(1, $accounts), sysbench.rand.uniform(1, $accounts)
    -- In order, so that no two transfers wait for each other.
    local first, second = math.min(from, to), math.max(from, to)
    local sum = sysbench.rand.uniform(1, 100)
    connection:query("begin")
    connection:query("update accounts set sum = sum + " .. sum .. " where id = " .. first)
    connection:query("update accounts set sum = sum - " .. sum .. " where id = " .. second)
    connection:query("insert into told (sum) values (" .. sum .. ")")
    connection:query("commit")
    acknowledged:write("x\\n")
    acknowledged:flush()
end
LUA
    chmod 644 "$work/transfers.lua"
    sql "
        create table accounts (id int primary key, sum int not null);
        create table told (id int primary key auto_increment, sum int not null);
        insert into accounts select seq, 1000 from seq_1_to_$accounts"
}

check() {
    database
    equal "$(sql "select sum(seq), count(*) from seq_1_to_100000" | tr '\t' ' ')" \
        "5000050000 100000" "a sum"
    equal "$(sql "select repeat('0123456789', 500000)" | tr -d '\n' | sha256sum)" \
        "$(awk 'BEGIN { for (i = 0; i < 500000; i++) printf "0123456789" }' | sha256sum)" "5 MB"

    seq 200000 | awk '{ print $1 "\t" $1 * 7 % 1000 "\tline " $1 }' >"$work/rows"
    chmod 644 "$work/rows"
    sql "create table t (id int, n int, line text)"
    sql "load data local infile '$work/rows' into table t"
    sql "select * from t order by id" >"$work/got"
    alike "$work/got" "$work/rows" "rows loaded and selected"

    bench oltp_read_write --tables=2 --table-size=2000 prepare
    bench oltp_read_write --tables=2 --table-size=2000 --threads=8 --events=1000 --time=0 run
    equal "$(done_by_bench)" 1000 "sysbench's transactions"
    equal "$(sql "select (select count(*) from sbtest1), (select count(*) from sbtest2)")" \
        "$(printf '2000\t2000')" "rows of sysbench"
    transfers
    bench "$work/transfers.lua" --threads=8 --events=2000 --time=0 run
    equal "$(sql "select (select sum(sum) from accounts), (select count(*) from told)")" \
        "$(printf '%s\t2000' $((accounts * 1000)))" "the sum of all accounts, and transfers"
    by_rings 20000000
}

# Each transfer that the server has acknowledged is there when it has come back.
kills() {
    database
    transfers
    # shellcheck disable=SC2046
    begin bench sysbench --db-driver=mysql $(at_of_sysbench) --mysql-user=test --mysql-db=test \
        "$work/transfers.lua" --threads=8 --events=0 --time=0 run
    transferring=$pid
    wait_until "transfers are made" many_acknowledged
    kill_hard "$server"
    fails "$transferring" "sysbench hears of the killed server"
    anew
    server
    told=$(wc -l <"$work/acknowledged")
    equal "$(sql "select sum(sum) from accounts")" $((accounts * 1000)) "the sum of all accounts"
    [ "$(sql "select count(*) from told")" -ge "$told" ] || fail "less than $told transfers"
    bench "$work/transfers.lua" --threads=8 --events=500 --time=0 run
    equal "$(sql "select sum(sum) from accounts")" $((accounts * 1000)) "the sum in the end"
    by_rings 100000
}

many_acknowledged() {
    [ -e "$work/acknowledged" ] && [ "$(wc -l <"$work/acknowledged")" -ge 500 ]
}

figures() {
    database
    bench oltp_read_write --tables=2 --table-size=2000 prepare
    for test in oltp_point_select oltp_read_write; do
        bench "$test" --tables=2 --table-size=2000 --threads=8 --time="$SECONDS_EACH" run
        sed -n "s|^ *transactions: .*(\([0-9.]*\) per sec.).*|${test#oltp_}/8 \1 tx/s|p" \
            "$work/bench"
    done
}

main "$@"
