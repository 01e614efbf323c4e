#!/bin/sh
# Runs the HPC Challenge, as the system packages it, over Ayre and over its MPI's own transport:
# the same program, $RANKS ranks of it, on one matrix. Prints both, and fails unless both pass their
# own checks and have come to the same numbers. $MPIRUN is how programs are launched.
set -eu
cd "$(dirname "$0")/.."

scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A grid of ranks as near to a square as their number allows.
rows=1
for divisor in 2 3 4 5 6 7 8; do
    if [ $((RANKS % divisor)) -eq 0 ] && [ $((divisor * divisor)) -le "$RANKS" ]; then
        rows=$divisor
    fi
done
sed -e 's/^[0-9]* *Ns$/1200 Ns/' -e "s/^[0-9]* *Ps\$/$rows Ps/" \
    -e "s/^[0-9]* *Qs\$/$((RANKS / rows)) Qs/" \
    /usr/share/doc/hpcc/examples/_hpccinf.txt >"$folder/hpccinf.txt"

: "${MPIRUN:=mpirun.openmpi --oversubscribe}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# In a folder of its own, with what is left of the arguments in the environment.
challenge() {
    name="$1"
    shift
    mkdir "$folder/$name"
    cp "$folder/hpccinf.txt" "$folder/$name/"
    echo "demo-mpi: hpcc with $RANKS ranks, $name"
    # The launcher and its options are words.
    # shellcheck disable=SC2086
    if ! (cd "$folder/$name" && env "$@" $MPIRUN -n "$RANKS" hpcc); then
        echo "demo-mpi: hpcc has failed"
        exit 1
    fi
}

# What is measured differs from run to run.
figures() {
    rates='HPL_Tflops|PTRANS_GBs|MPIRandomAccess_GUPs|MPIFFT_Gflops'
    grep -E "^($rates|AvgPingPongLatency_usec|AvgPingPongBandwidth_GBytes)=" \
        "$folder/$1/hpccoutf.txt"
}

# What is computed does not.
results() {
    grep -E '^(Success|PTRANS_residual|MPIRandomAccess_ErrorsFraction|MPIFFT_maxErr)=|Ax-b.*ED$' \
        "$folder/$1/hpccoutf.txt"
}

challenge "over Ayre" OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi \
    OMPI_MCA_opal_common_ofi_provider_include=ayre FI_PROVIDER_PATH="$target/provider/libfabric"
challenge "over the MPI's own transport" OMPI_MCA_pml=ob1

for name in "over Ayre" "over the MPI's own transport"; do
    echo
    echo "$name:"
    figures "$name" | sed 's/^/  /'
done
echo
results "over Ayre" | sed 's/^/  /'
results "over Ayre" >"$folder/one"
results "over the MPI's own transport" >"$folder/other"
if ! grep -q '^Success=1$' "$folder/one" || ! grep -q PASSED "$folder/one"; then
    echo "demo-mpi: hpcc's own checks have failed"
    exit 1
fi
if ! cmp -s "$folder/one" "$folder/other"; then
    echo "demo-mpi: the results differ; over the MPI's own transport:"
    sed 's/^/  /' "$folder/other"
    exit 1
fi
echo "demo-mpi: all checks passed, the same results to the last digit"
