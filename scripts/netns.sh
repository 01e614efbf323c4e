#!/bin/sh
# Makes, or takes away, hosts to try the network with: namespaces of this machine, each with a
# network of its own. Two are joined by a cable, more by a switch, once for each path.
#
# usage: scripts/netns.sh up|down|names [HOSTS=2] [PATHS=1]      (as root)
#        scripts/netns.sh with HOSTS COMMAND...   runs it between hosts of its own, that nobody else
#                                                 has set up, and that are gone when it ends, with
#                                                 what it has left in $TMPDIR
#        scripts/netns.sh mpirun ARGUMENT...      Open MPI's, on the first of hosts that are there
#        scripts/netns.sh on HOST COMMAND...      what Open MPI calls in place of ssh
#
# Between two hosts of `with`, LOSS="LOST LATE" makes cables that lose so many of 1000 frames, and
# bring so many late: scripts/cable.c.
#
# Host i is the namespace $NETNS<i>, path p its interface eth<p> with the address 10.77.p.<i+1>:
#
#   ayre run --hosts ayre0,ayre1 --via 'ip netns exec {host} {command}' -- program
set -eu

NETNS="${NETNS:-ayre}"
MTU="${MTU:-1500}"
command="${1:-}"

say() { echo "netns: $*" >&2; }

usage() {
    sed -n '/^# usage/,/^#$/s/^# \{0,1\}/netns: /p' "$0" >&2
    exit 2
}

count() { seq 0 $(($1 - 1)); }

names() {
    for host in $(count "$hosts"); do
        echo "$NETNS$host"
    done
}

# All there are, however many were made.
down() {
    ip netns list | cut -d ' ' -f 1 | while read -r name; do
        case "$name" in
        "$NETNS"[0-9] | "$NETNS"[0-9][0-9] | "$NETNS"-switch) ip netns delete "$name" ;;
        esac
    done
}

cable() {
    if [ -n "${LOSS:-}" ]; then
        lossy_cable "$1"
        return
    fi
    ip link add "eth$1" netns "${NETNS}0" type veth peer name "eth$1" netns "${NETNS}1"
}

# A process passes frames on.
lossy_cable() {
    cc -O2 -Wall -Wextra -o "$TMPDIR/cable" "$(dirname "$0")/cable.c"
    # Numbers are words.
    # shellcheck disable=SC2086
    "$TMPDIR/cable" "${NETNS}0" "${NETNS}1" "eth$1" $LOSS >"$TMPDIR/ready" &
    cables="$cables $!"
    until [ -s "$TMPDIR/ready" ]; do
        kill -0 "$!" || exit 1
        sleep 0.02
    done
}

switch() {
    ip -n "$NETNS-switch" link add "path$1" type bridge
    ip -n "$NETNS-switch" link set "path$1" mtu "$MTU" up
    for host in $(count "$hosts"); do
        port="host$host-$1"
        ip link add "eth$1" netns "$NETNS$host" type veth peer name "$port" netns "$NETNS-switch"
        ip -n "$NETNS-switch" link set "$port" master "path$1" mtu "$MTU" up
    done
}

up() {
    for name in $(names); do
        ip netns add "$name"
        ip -n "$name" link set lo up
    done
    [ "$hosts" -eq 2 ] || ip netns add "$NETNS-switch"
    for path in $(count "$paths"); do
        if [ "$hosts" -eq 2 ]; then cable "$path"; else switch "$path"; fi
        for host in $(count "$hosts"); do
            ip -n "$NETNS$host" address add "10.77.$path.$((host + 1))/24" dev "eth$path"
            ip -n "$NETNS$host" link set "eth$path" mtu "$MTU" up
        done
    done
}

# In a folder of its own: Open MPI's daemons keep files there by names that both would give.
on() {
    own="${TMPDIR:-/tmp}/$1"
    mkdir -p "$own"
    host="$1"
    shift
    exec ip netns exec "$host" env TMPDIR="$own" sh -c "$*"
}

# Hosts of one machine know nothing of each other's processes, and all would bind them to the first
# processor.
run_mpi() {
    exec ip netns exec "${NETNS}0" env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$0 on" \
        OMPI_MCA_oob_tcp_if_include=eth0 \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun.openmpi --bind-to none "$@"
}

check() {
    case "$hosts$paths" in *[!0-9]*) usage ;; esac
    if [ "$hosts" -lt 2 ] || [ "$hosts" -gt 99 ] || [ "$paths" -lt 1 ] || [ "$paths" -gt 4 ]; then
        say "from 2 to 99 hosts, and from 1 to 4 paths"
        exit 2
    fi
    [ "$command" != names ] || return 0
    [ "$(id -u)" -eq 0 ] || { say "only root can make network namespaces" && exit 1; }
    command -v ip >/dev/null || { say "missing: ip (install the package iproute2)" && exit 1; }
}

[ "$#" -gt 0 ] || usage
shift
case "$command" in
on) on "$@" ;;
mpirun) run_mpi "$@" ;;
esac

hosts="${1:-2}"
paths=1
# Processes.
cables=
[ "$command" = with ] || paths="${2:-1}"
check
case "$command" in
up)
    if ip netns list | cut -d ' ' -f 1 | grep -qx "${NETNS}0"; then
        say "there is a ${NETNS}0 already; take it away first: scripts/netns.sh down"
        exit 1
    fi
    # Half a network is worse than none.
    trap 'status=$?; [ "$status" -eq 0 ] || down; exit "$status"' EXIT
    up
    say "$(names | tr '\n' ' ')are there"
    ;;
down) down ;;
names) names ;;
with)
    shift
    export NETNS="ayre$$-"
    # For all that the command leaves.
    TMPDIR=$(mktemp -d)
    export TMPDIR
    # Numbers of processes are words.
    trap '[ -z "$cables" ] || kill $cables; down; rm -rf "$TMPDIR"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    up
    "$@"
    ;;
*) usage ;;
esac
