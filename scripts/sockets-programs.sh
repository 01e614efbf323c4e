#!/bin/sh
# Runs programs that know nothing of Ayre with libayre-sockets.so loaded beforehand on both sides,
# and says for each whether its results were right, and what went by rings. Fails if one fails. The
# programs are the scripts of sockets/programs/.
#
# usage: scripts/sockets-programs.sh check [PROGRAM...]     results
#        scripts/sockets-programs.sh kills [PROGRAM...]     results where programs are killed
#        scripts/sockets-programs.sh figures [PROGRAM...]   numbers, over TCP and over Ayre
#        scripts/sockets-programs.sh faults [PROGRAM...]    each check must see spoilt bytes
#        scripts/sockets-programs.sh quick                  some checks and kills, for CI
#
# In the environment:
#   LIBRARY        another library, or `none`: plain TCP. PROFILE=checked builds it with assertions
#   SIDES          server or client: one side loads it, and everything must stay TCP
#   BETWEEN=hosts  both sides are network namespaces of this machine, joined by a cable, as root:
#                  all goes by links. A key is made, unless AYRE_SOCKETS_HOSTS=plain
#   BETWEEN=namespaces  the same, with a common folder: all goes by shared memory
#   OVER=unix      Unix sockets, for redis, postgres, mariadb and memcached
#   AYRE_REQUIRE=1 a program that is not installed is a failure
#   LIMIT          seconds for a program, 180 unless said
set -eu
cd "$(dirname "$0")/.."

say() { echo "sockets-programs: $*"; }

usage() {
    sed -n '/^# usage/,/^set/s/^# \{0,1\}/sockets-programs: /p' "$0" >&2
    exit 2
}

command="${1:-check}"
[ "$#" -eq 0 ] || shift
case "$command" in check | kills | figures | faults | quick) ;; *) usage ;; esac

case "${BETWEEN:-}" in
"" | "made "*) ;;
hosts | namespaces)
    BETWEEN="made $BETWEEN" exec scripts/netns.sh with 2 scripts/sockets-programs.sh "$command" "$@"
    ;;
*) usage ;;
esac

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -n "${BETWEEN:-}" ]; then
    # Servers that give up their rights look for files in here.
    chmod 755 "$TMPDIR"
    # A server is in the first namespace of scripts/netns.sh, a client in the second.
    export SERVER_NETNS="${NETNS}0" CLIENT_NETNS="${NETNS}1" ADDRESS=10.77.0.1
fi
case "${BETWEEN:-}" in
*namespaces)
    export AYRE_SOCKETS_MEET="$work/meet"
    mkdir -m 1777 "$AYRE_SOCKETS_MEET"
    ;;
*hosts)
    export AYRE_SOCKETS_HOSTS="${AYRE_SOCKETS_HOSTS:-$work/key}"
    (umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$work/key")
    ;;
esac

# The names of all programs, or those asked for.
programs() {
    if [ "$#" -gt 0 ]; then
        printf '%s\n' "$@"
    else
        find sockets/programs -name '*.sh' | sed 's/.*\/\(.*\)\.sh/\1/' | grep -vx common | sort
    fi
}

# The library, built unless one is named; programs find it by its whole path.
library() {
    if [ "${LIBRARY:-}" = none ]; then
        echo none
    elif [ -n "${LIBRARY:-}" ]; then
        realpath "$LIBRARY"
    else
        profile="${PROFILE:-release}"
        PROFILE="$profile" scripts/build.sh ayre-sockets >&2
        target=$(cargo metadata --format-version 1 --no-deps |
            sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
        echo "$target/$profile/libayre_sockets.so"
    fi
}

# The ends of TCP connections that both namespaces have opened up to now.
opened() {
    for one in "$SERVER_NETNS" "$CLIENT_NETNS"; do
        ip netns exec "$one" grep '^Tcp: [0-9]' /proc/net/snmp
    done | awk '{ n += 2 * $6 } END { print n }'
}

# run PART PROGRAM: into $work/out; 77 says that something is not installed.
run() {
    timeout -k 30 "${LIMIT:-180}" "sockets/programs/$2.sh" "$1" >"$work/out" 2>&1
}

passed=0
failed=0

line() { printf '%-8s %-10s %8s %8s %10s %9s %9s %9s\n' "$@" | sed 's/ *$//'; }

# verdict PROGRAM STATUS: a line of the table, and why if it is not ok.
verdict() {
    # The numbers are words.
    # shellcheck disable=SC2046
    set -- "$1" "$2" $(sed -n 's/^summary //p' "$work/out")
    megabytes() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e6 }'; }
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        line ok "$1" "$3" "$4" "$5" "$(megabytes "$6")" "$(megabytes "$7")" "$ends"
        return
    fi
    if [ "$2" -eq 77 ] && [ "${AYRE_REQUIRE:-}" != 1 ]; then
        line skipped "$1" "" "" "" "" "" ""
    else
        failed=$((failed + 1))
        line FAILED "$1" "" "" "" "" "" ""
    fi
    [ "$2" -ne 124 ] || echo "    no end after ${LIMIT:-180} s"
    # The reason stands before the logs, of which there may be many.
    { grep -a 'FAILED' "$work/out" | head -n 1; tail -n 12 "$work/out"; } |
        cut -c 1-300 | tr -cd '\11\12\40-\176' | sed 's/^/    /'
}

# table PART PROGRAM...: between namespaces with all ends that TCP has opened. Those without a peer
# are in no other column.
table() {
    part="$1"
    shift
    line "" program connections rings fallbacks "ring MB" "TCP MB" \
        "$([ -z "${BETWEEN:-}" ] || echo "TCP ends")"
    for program in "$@"; do
        before=0 ends=
        [ -z "${BETWEEN:-}" ] || before=$(opened)
        status=0
        run "$part" "$program" || status=$?
        [ -z "${BETWEEN:-}" ] || ends=$(($(opened) - before))
        verdict "$program" "$status"
    done
    echo "$passed programs passed, $failed failed"
}

# Names are words.
# shellcheck disable=SC2046
check() { table check $(programs "$@"); }

# shellcheck disable=SC2046
kills() {
    killing() { grep -q '^kills()' "sockets/programs/$1.sh"; }
    [ "$#" -gt 0 ] || set -- $(for one in $(programs); do ! killing "$one" || echo "$one"; done)
    table kills "$@"
}

# In CI all of these must be there, and the library has its assertions.
quick() {
    table check redis postgres nginx memcached mosquitto mariadb
    table kills redis mosquitto
    echo "over Unix sockets:"
    export OVER=unix
    table check postgres memcached
    verdict=ok
    [ "$failed" -eq 0 ] || verdict=FAILED
    echo "test result: $verdict. $passed passed; $failed failed;"
}

# A check that passes with a library that spoils bytes is no check.
faults() {
    cc -O1 -Wall -Wextra -shared -fPIC -o "$work/faulty.so" sockets/programs/faulty.c
    export LIBRARY="$work/faulty.so" RINGS=no
    for program in $(programs "$@"); do
        status=0
        run check "$program" || status=$?
        case "$status" in
        0)
            failed=$((failed + 1))
            echo "$program has not seen it"
            ;;
        77) echo "$program skipped: $(cat "$work/out")" ;;
        *)
            passed=$((passed + 1))
            echo "$program: $(grep -a 'FAILED' "$work/out" | head -n 1 | cut -c 1-80)"
            ;;
        esac
    done
    echo "$passed checks have seen it, $failed have not"
}

figures() {
    asked="$LIBRARY"
    printf '%-10s %-18s %12s %12s  %-8s %s\n' program "" TCP Ayre "" ratio
    for program in $(programs "$@"); do
        for over in none "$asked"; do
            status=0
            LIBRARY="$over" SUMMARY="$work/summary" run figures "$program" || status=$?
            if [ "$status" -ne 0 ]; then
                [ "$status" -eq 77 ] && [ "${AYRE_REQUIRE:-}" != 1 ] || failed=$((failed + 1))
                sed "s/^/    $program: /" "$work/out"
                break
            fi
            cp "$work/out" "$work/$([ "$over" = none ] && echo tcp || echo ayre)"
        done
        [ "$status" -eq 0 ] || continue
        passed=$((passed + 1))
        [ "$asked" != none ] || cp "$work/tcp" "$work/ayre"
        paste -d ' ' "$work/tcp" "$work/ayre" | awk -v program="$program" 'NF == 6 && $1 == $4 {
            form = $2 < 1000 ? "%-10s %-18s %12.4g %12.4g" : "%-10s %-18s %12.0f %12.0f"
            printf form "  %-8s %.2f\n", program, $1, $2, $5, $3, $5 / $2 }'
        awk -v program="$program" '
            { printf "%-10s by rings: %d of %d ends, %.1f MB; by TCP: %.1f MB\n",
                program, $3, $2, $5 / 1e6, $6 / 1e6 }' "$work/summary"
    done
    echo "$passed programs measured, $failed failed"
}

if [ "$command" = quick ]; then
    export PROFILE=checked AYRE_REQUIRE=1
fi
[ "$command" = faults ] || LIBRARY=$(library)
export LIBRARY
"$command" "$@"
[ "$failed" -eq 0 ]
