#!/bin/sh
# Measures Open MPI between two hosts, namespaces of this machine that are taken away again: over
# Ayre beside the same Open MPI over its tcp path, by turns, $ROUNDS rounds of each; then the same
# without frames beside UDP, as for users who may not send them, and encrypted, as links are by
# default. Prints the medians and the ratios. As root.
#
# usage: [ROUNDS=5] bench/mpi-net.sh
set -eu
cd "$(dirname "$0")/.."

[ "${1:-}" = inside ] || exec scripts/netns.sh with 2 bench/mpi-net.sh inside

say() { echo "bench-mpi-net: $*"; }

scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
mpicc.openmpi -O2 -Wall -o "$folder/mpi" bench/mpi.c

export FI_PROVIDER_PATH="$target/provider/libfabric"
ayre="OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre"
own="OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=eth0"

# A round: whose, the environment, what else mpirun is told.
round() {
    # The environment and the arguments are words.
    # shellcheck disable=SC2086
    if ! env $2 timeout 300 "$PWD/scripts/netns.sh" mpirun \
        -H "${NETNS}0:1,${NETNS}1:1" -n 2 -x FI_PROVIDER_PATH $3 "$folder/mpi" \
        >"$folder/round" 2>"$folder/errors"; then
        cat "$folder/errors"
        exit 1
    fi
    sed "s/^/$1 /" "$folder/round" >>"$folder/rounds"
}

# Rounds of both by turns, so that whatever else the machine does hits both.
compare() {
    say "$1: 2 ranks on 2 hosts, $ROUNDS rounds of each"
    : >"$folder/rounds"
    for _ in $(seq "$ROUNDS"); do
        round ayre "$ayre" "$2"
        round own "$own" ""
    done
    awk -f bench/summary.awk "$folder/rounds"
}

: "${ROUNDS:=5}"
compare "plain links" "-x FI_AYRE_PLAIN=1"
compare "plain links by UDP alone" "-x FI_AYRE_PLAIN=1 -x FI_AYRE_ETHERNET=0"
compare "encrypted links" ""
