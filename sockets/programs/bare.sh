#!/bin/sh
# Sockets and nothing else, by bench/sockets.c: messages there and back, connections, a stream.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs cc

source="$(dirname "$0")/../../bench/sockets.c"
port=$(free_port)

bare() {
    cc -O2 -Wall -Wextra -o "$work/bare" "$source"
    where="$ADDRESS:$port"
    if [ "$OVER" = unix ]; then
        where="$work/socket"
        start bare "$work/bare" serve "$where"
        wait_until "it listens" test -S "$where"
    else
        serve bare "$port" "$work/bare" serve "$where"
    fi
}

# It compares the end of each block. Others do more: this is for figures.
check() {
    bare
    client "$work/bare" measure "$where" 0.3 || fail "no end in good order"
    by_rings 100000000
}

figures() {
    bare
    client "$work/bare" measure "$where" "$SECONDS_EACH"
}

main "$@"
