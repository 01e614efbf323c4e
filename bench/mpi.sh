#!/bin/sh
# Measures Open MPI over Ayre beside the same Open MPI over its own transport, by libfabric and by
# UCX's interface, and there beside UCX's own library, too. By turns, $ROUNDS rounds of each; it
# prints the medians and the ratio of each pair of rounds.
#
# usage: [ROUNDS=7] bench/mpi.sh
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench-mpi: $*"; }

scripts/provider.sh >/dev/null
scripts/ucp.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc.openmpi -O2 -Wall -o "$folder/mpi" bench/mpi.c

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ayre="OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre
FI_PROVIDER_PATH=$target/provider/libfabric"
ucx="OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any
OMPI_MCA_opal_common_ucx_devices=any"

# A round: the ranks, how they are placed, the environment, what the program is given. As many
# slots as ranks are claimed, so that Open MPI polls as it does by default.
round() {
    # The environment and the program's arguments are words.
    # shellcheck disable=SC2086
    if ! env $3 timeout 300 mpirun.openmpi --host "localhost:$1" --bind-to "$2" -n "$1" \
        "$folder/mpi" $4 >"$folder/round" 2>"$folder/errors"; then
        cat "$folder/errors"
        exit 1
    fi
}

# Rounds of both by turns, so that whatever else the machine does hits both.
compare() {
    say "$5: $1 ranks, $ROUNDS rounds of each"
    : >"$folder/rounds"
    for _ in $(seq "$ROUNDS"); do
        round "$1" "$2" "$3" "${6:-}"
        sed 's/^/ayre /' "$folder/round" >>"$folder/rounds"
        round "$1" "$2" "$4" "${6:-}"
        sed 's/^/own /' "$folder/round" >>"$folder/rounds"
    done
    awk -f bench/summary.awk "$folder/rounds"
}

: "${ROUNDS:=7}"
own=OMPI_MCA_pml=ob1
window="OMPI_MCA_osc=rdma OMPI_MCA_btl=self,ofi"
compare 2 core "$ayre" "$own" messages
by_ucx="$ucx LD_LIBRARY_PATH=$target/provider/ucp"
compare 2 core "$by_ucx" "$own" "messages by UCX's interface"
compare 2 core "$by_ucx" "$ucx" "the same, beside UCX's own library"
compare 2 core "$ayre $window" "$own" "memory of a window" one-sided
compare 2 core "$by_ucx OMPI_MCA_osc=ucx" "$ucx OMPI_MCA_osc=ucx" \
    "memory of a window by UCX's interface, beside UCX's own library" one-sided
compare 8 none "$ayre" "$own" "more ranks than processors"
compare 8 none "$ayre" "$own OMPI_MCA_mpi_yield_when_idle=1" "the same, its own told to yield"
