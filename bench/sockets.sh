#!/bin/sh
# Measures programs that know nothing of Ayre over TCP, over AF_UNIX where they can, and over both
# with libayre-sockets.so loaded beforehand; by turns, $ROUNDS rounds of each. First on one host;
# then, as root, between two namespaces of this machine joined by a cable: with shared memory, and
# as two hosts, by links. These are plain, unless AYRE_SOCKETS_HOSTS names a key. Prints medians,
# and how many times better Ayre is.
#
# usage: [ROUNDS=5] [SECONDS_EACH=2] [PROGRAMS="redis iperf3"]
#        bench/sockets.sh [host|namespaces|hosts]
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench-sockets: $*"; }

: "${ROUNDS:=5}" "${SECONDS_EACH:=2}" "${PROFILE:=release}"
: "${PROGRAMS:=bare redis iperf3 postgres sockperf nginx}"
export SECONDS_EACH PROFILE PROGRAMS ROUNDS

if [ "${1:-both}" = both ]; then
    "$0" host
    [ "$(id -u)" -eq 0 ] || exit 0
    "$0" namespaces
    exec "$0" hosts
fi
if [ "$1" != host ] && [ -z "${CABLE:-}" ]; then
    CABLE=made exec scripts/netns.sh with 2 "$0" "$1"
fi

[ -n "${LIBRARY:-}" ] || scripts/build.sh ayre-sockets
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
library="${LIBRARY:-$target/$PROFILE/libayre_sockets.so}"
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ "$1" != host ]; then
    # Servers that give up their rights look for files in here.
    chmod 755 "$TMPDIR"
    export SERVER_NETNS="${NETNS}0" CLIENT_NETNS="${NETNS}1" ADDRESS=10.77.0.1
fi
case "$1" in
host) say "on one host, $ROUNDS rounds of each" ;;
namespaces)
    # Where the library finds its peer of another network.
    export AYRE_SOCKETS_MEET="$folder/meet"
    mkdir -m 1777 "$AYRE_SOCKETS_MEET"
    say "between two namespaces of one host, $ROUNDS rounds of each"
    ;;
hosts)
    : "${AYRE_SOCKETS_HOSTS:=plain}"
    export AYRE_SOCKETS_HOSTS
    say "between two hosts, by links ($AYRE_SOCKETS_HOSTS), $ROUNDS rounds of each"
    ;;
esac

# round PROGRAM WHOSE LIBRARY OVER
round() {
    status=0
    LIBRARY="$3" OVER="$4" "sockets/programs/$1.sh" figures >"$folder/round" 2>"$folder/errors" ||
        status=$?
    if [ "$status" -eq 77 ]; then
        say "$1 is not installed"
    elif [ "$status" -ne 0 ]; then
        cat "$folder/round" "$folder/errors"
        exit 1
    else
        sed "s|^|$2 $1 |" "$folder/round" >>"$folder/rounds"
    fi
}

: >"$folder/rounds"
# Of lines `whose program name value unit`: less is better in units of time.
for program in $PROGRAMS; do
    for _ in $(seq "$ROUNDS"); do
        round "$program" tcp none tcp
        round "$program" unix none unix
        round "$program" ayre "$library" tcp
        round "$program" rings "$library" unix
    done
done
awk -f bench/sockets.awk "$folder/rounds"
