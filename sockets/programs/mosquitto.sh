#!/bin/sh
# Mosquitto: lines and a long message from one client to another, at each quality of service.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs mosquitto mosquitto_pub mosquitto_sub

port=$(free_port)

broker() {
    become nobody
    cat >"$work/conf" <<CONF
listener $port $ADDRESS
allow_anonymous true
max_queued_messages 0
max_inflight_messages 100
log_type all
CONF
    serve server "$port" mosquitto -c "$work/conf"
}

# subscribed COUNT: so many have subscribed, all told.
subscribed() { [ "$(grep -c 'Sending SUBACK' "$work/server.log")" -ge "$1" ]; }

check() {
    broker
    seq 2000 | awk '{ print $1, $1 * $1, "a line of some length" }' >"$work/lines"
    data "$work/long" 3000000
    for quality in 0 1 2; do
        begin "lines$quality" mosquitto_sub -h "$ADDRESS" -p "$port" -q "$quality" \
            -t "lines/$quality" -C 2000
        lines=$pid
        begin "long$quality" mosquitto_sub -h "$ADDRESS" -p "$port" -q "$quality" \
            -t "long/$quality" -C 1 -N
        long=$pid
        wait_until "two have subscribed" subscribed $((quality * 2 + 2))
        client mosquitto_pub -h "$ADDRESS" -p "$port" -q "$quality" -t "lines/$quality" -l \
            <"$work/lines" || fail "mosquitto_pub of lines"
        client mosquitto_pub -h "$ADDRESS" -p "$port" -q "$quality" -t "long/$quality" \
            -f "$work/long" || fail "mosquitto_pub of a long message"
        finishes "$lines" "2000 lines at quality $quality"
        finishes "$long" "a long message at quality $quality"
        alike "$work/lines$quality.log" "$work/lines" "lines at quality $quality"
        alike "$work/long$quality.log" "$work/long" "a long message at quality $quality"
    done
    by_rings 9000000
}

# A killed subscriber gets the rest when it has come back; others have missed nothing.
kills() {
    broker
    seq 20000 >"$work/lines"
    subscribe killed
    killed=$pid
    subscribe other -C 20000
    other=$pid
    wait_until "two have subscribed" subscribed 2
    input="$work/lines"
    begin publisher mosquitto_pub -h "$ADDRESS" -p "$port" -q 1 -t lines -l
    publisher=$pid
    input=
    wait_until "the first has lines" long killed 500
    kill_child "$killed"
    finishes "$publisher" "the publisher"
    finishes "$other" "the other subscriber"
    alike "$work/other.log" "$work/lines" "lines of the other subscriber"
    subscribe again
    again=$pid
    wait_until "the rest has come" ends_with_last
    stop "$again"
    # A line may come twice where it was not acknowledged, and one may be lost at the killed one.
    from=$(head -n 1 "$work/again.log")
    seq "$from" 20000 >"$work/wanted"
    alike "$work/again.log" "$work/wanted" "the rest"
    first=$(wc -l <"$work/killed.log")
    if [ "$from" -gt $((first + 200)) ] || [ "$from" -lt $((first - 200)) ]; then
        fail "the rest begins at $from, and $first lines had come"
    fi
    by_rings 100000
}

# subscribe LOG OPTION...: the first two names are one client.
subscribe() {
    as_client=$([ "$1" = other ] && echo other || echo one)
    called="$1"
    shift
    begin "$called" mosquitto_sub -h "$ADDRESS" -p "$port" -q 1 -c -i "$as_client" -t lines "$@"
}

ends_with_last() { [ "$(tail -n 1 "$work/again.log")" = 20000 ]; }

figures() {
    [ "$OVER" = tcp ] || return 0
    broker
    seq 200000 >"$work/lines"
    begin lines mosquitto_sub -h "$ADDRESS" -p "$port" -t lines -C 200000
    lines=$pid
    wait_until "a client has subscribed" subscribed 1
    from=$(date +%s%N)
    client mosquitto_pub -h "$ADDRESS" -p "$port" -t lines -l <"$work/lines"
    finishes "$lines" "200000 lines"
    echo "$from $(date +%s%N)" | awk '{ print "lines", 200000 / (($2 - $1) / 1e9), "msg/s" }'
}

main "$@"
