#!/bin/sh
# Runs the HPC Challenge, as the system packages it, on two hosts over Ayre: RANKS=2 ranks in two
# network namespaces of this machine, which are taken away again; once over a network without
# faults, once over one that loses every twentieth datagram. Fails unless both pass their own checks
# and have come to the same numbers as the MPI's own transport on one host. As root.
set -eu
cd "$(dirname "$0")/.."

[ "${1:-}" = inside ] || exec scripts/netns.sh with 2 scripts/demo-mpi-net.sh inside

scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
RANKS="${RANKS:-2}"

sed -e 's/^[0-9]* *Ns$/600 Ns/' -e 's/^[0-9]* *Ps$/1 Ps/' -e "s/^[0-9]* *Qs\$/$RANKS Qs/" \
    /usr/share/doc/hpcc/examples/_hpccinf.txt >"$folder/hpccinf.txt"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export FI_PROVIDER_PATH="$target/provider/libfabric"
each=$(((RANKS + 1) / 2))
hosts="${NETNS}0:$each,${NETNS}1:$each"

# In a folder of its own, by the command that the arguments are.
challenge() {
    name="$1"
    shift
    mkdir "$folder/$name"
    cp "$folder/hpccinf.txt" "$folder/$name/"
    echo "demo-mpi-net: hpcc with $RANKS ranks, $name"
    if ! (cd "$folder/$name" && "$@" -n "$RANKS" hpcc); then
        echo "demo-mpi-net: hpcc has failed"
        exit 1
    fi
    # What is computed is the same in each run; what is measured is not.
    grep -E '^(Success|PTRANS_residual|MPIRandomAccess_ErrorsFraction|MPIFFT_maxErr)=|Ax-b.*ED$' \
        "$folder/$name/hpccoutf.txt" >"$folder/$name/results"
    grep -E '^(MPIRandomAccess_GUPs|AvgPingPong(Latency_usec|Bandwidth_GBytes))=' \
        "$folder/$name/hpccoutf.txt" | sed 's/^/  /'
}

# What is run in other folders needs the whole path.
netns="$PWD/scripts/netns.sh"
between_hosts() {
    env OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre \
        "$netns" mpirun --oversubscribe -x FI_PROVIDER_PATH "$@"
}

challenge "on one host" env OMPI_MCA_pml=ob1 mpirun.openmpi --oversubscribe
challenge "on two hosts" between_hosts -H "$hosts"
FI_AYRE_FAULTS=loss=5%
export FI_AYRE_FAULTS
challenge "on two hosts, 5 % lost" between_hosts -x FI_AYRE_FAULTS -H "$hosts"

echo
sed 's/^/  /' "$folder/on one host/results"
for name in "on two hosts" "on two hosts, 5 % lost"; do
    if ! grep -q '^Success=1$' "$folder/$name/results" ||
        ! cmp -s "$folder/on one host/results" "$folder/$name/results"; then
        echo "demo-mpi-net: $name, the results differ:"
        sed 's/^/  /' "$folder/$name/results"
        exit 1
    fi
done
echo "demo-mpi-net: all checks passed, the same results to the last digit"
