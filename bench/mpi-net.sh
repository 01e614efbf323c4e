#!/bin/sh
# Measures Open MPI between two hosts, namespaces of this machine that are taken away again: over
# Ayre beside the same Open MPI over its tcp path, by turns, $ROUNDS rounds of each; then the same
# with Ayre's links encrypted, as they are by default. Prints the medians and the ratios. As root.
#
# usage: [ROUNDS=5] bench/mpi-net.sh
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench-mpi-net: $*"; }

scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
# A name of its own: what somebody else has set up stays as it is.
export NETNS="ayre-bench$$-"
trap 'scripts/netns.sh down; rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
scripts/netns.sh up
mpicc.openmpi -O2 -Wall -o "$folder/mpi" bench/mpi.c

# What mpirun calls in place of ssh: with a host, and what to run there.
cat >"$folder/agent" <<'END'
#!/bin/sh
host="$1"
shift
exec ip netns exec "$host" sh -c "$*"
END
chmod +x "$folder/agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export FI_PROVIDER_PATH="$target/provider/libfabric"
ayre="OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre"
own="OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=eth0"

# A round: whose, the environment, what else mpirun is told.
round() {
    # The environment and the arguments are words.
    # shellcheck disable=SC2086
    if ! ip netns exec "${NETNS}0" env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$folder/agent" \
        OMPI_MCA_oob_tcp_if_include=eth0 $2 timeout 300 mpirun.openmpi --bind-to none \
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
compare "encrypted links" ""
