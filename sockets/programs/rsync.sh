#!/bin/sh
# rsync's daemon: a folder there, changed, there again, and back.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs rsync

port=$(free_port)
forks=yes

daemon() {
    mkdir "$work/there" "$work/here"
    cat >"$work/conf" <<CONF
use chroot = no
[folder]
path = $work/there
read only = no
uid = $(id -u)
gid = $(id -g)
CONF
    serve server "$port" rsync --daemon --no-detach --address="$ADDRESS" --port="$port" \
        --config="$work/conf" --log-file="$work/rsync.log"
}

# The other end of a copy ends when one is killed, and the daemon goes on.
kills() {
    daemon
    server=$pid
    url="rsync://$ADDRESS:$port/folder/"
    data "$work/here/long" 20000000
    for victim in client server; do
        begin "$victim" rsync -a --bwlimit=4M "$work/here/" "$url"
        copying=$pid
        wait_until "a part is there" some_is_there
        if [ "$victim" = client ]; then
            kill_child "$copying"
        else
            pkill -9 -P "$server"
            fails "$copying" "the client hears of the killed server"
        fi
        wait_until "the server's part ends" has_children "$server" 0
        find "$work/there" -type f -delete
    done
    copy "$work/here/" "$url"
    same_folders "$work/here" "$work/there" "a folder there, in the end"
    copy "$url" "$work/back/"
    same_folders "$work/here" "$work/back" "a folder back, in the end"
    by_rings 1
}

some_is_there() { [ -n "$(find "$work/there" -type f -size +100k)" ]; }

copy() { client rsync -a --delete "$@" || fail "rsync $*"; }

same_folders() { diff -r "$1" "$2" >"$work/diff" || fail "$3: $(head -n 3 "$work/diff")"; }

check() {
    daemon
    url="rsync://$ADDRESS:$port/folder/"
    for i in $(seq 200); do
        seq "$((i * 50))" >"$work/here/$i"
    done
    data "$work/here/long" 20000000
    copy "$work/here/" "$url"
    same_folders "$work/here" "$work/there" "a folder there"

    # Parts of a file are new, and few bytes must go.
    printf 'changed' | dd of="$work/here/long" bs=1 seek=5000000 conv=notrunc status=none
    printf 'changed' >"$work/here/100"
    rm "$work/here/7"
    copy --checksum --stats "$work/here/" "$url" >"$work/stats"
    same_folders "$work/here" "$work/there" "a changed folder there"
    sent=$(sed -n 's/^Total bytes sent: //p' "$work/stats" | tr -d ,)
    [ "$sent" -lt 2000000 ] || fail "a small change has taken $sent bytes"

    copy -z "$url" "$work/back/"
    same_folders "$work/here" "$work/back" "a folder back"
    # One end of a copy is two processes, which share the connection: most of it stays TCP.
    by_rings 1
}

figures() {
    [ "$OVER" = tcp ] || return 0
    daemon
    data "$work/there/long" 300000000
    from=$(date +%s%N)
    client rsync -aW "rsync://$ADDRESS:$port/folder/" "$work/here/"
    echo "$from $(date +%s%N)" | awk '{ print "whole/300MB", 300 / (($2 - $1) / 1e9), "MB/s" }'
}

main "$@"
