#!/bin/sh
# Runs programs that know nothing of Ayre over it and over their MPI's own transport, and prints a
# line for each: what it is, how many ranks, what has come out, how the other transport does.
# Fails if anything fails over Ayre only.
#
# usage: scripts/consumers.sh [quick]
#   quick  two ranks, a part of mpi4py's tests, the provider with its assertions: a minute, for CI
#
# Needed besides Debian's Open MPI and LAMMPS (scripts/deps.sh): the wheels of Open MPI, MPICH and
# mpi4py, which pip installs below the build folder, and mpi4py's tests, from its source package.
set -eu
cd "$(dirname "$0")/.."

sets="$PWD/provider/consumers"
profile=provider
[ "${1:-}" != quick ] || profile=checked
PROFILE=$profile scripts/provider.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
provider="$target/$profile/libfabric"
home="$target/consumers"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Releases that were tried; others will do, too, but nobody has looked.
openmpi=5.0.11
mpich=5.0.2
mpi4py=4.1.2

passed=0
failed=0

line() { printf '%-12s %-26s %-34s %s\n' "$@"; }

ok() {
    passed=$((passed + 1))
    line ok "$@"
}

fails() {
    failed=$((failed + 1))
    line FAILED "$@"
}

# A folder of Python programs with these packages, made once.
environment() {
    name="$1"
    shift
    if [ ! -e "$home/$name/ready" ]; then
        rm -rf "${home:?}/$name"
        python3 -m venv "$home/$name"
        "$home/$name/bin/pip" install -q --disable-pip-version-check "$@"
        touch "$home/$name/ready"
    fi
}

# The tests of mpi4py are in its source package only.
fetch_tests() {
    tests="$home/mpi4py-$mpi4py/test"
    if [ ! -d "$tests" ]; then
        "$home/openmpi-4.1/bin/pip" download -q --disable-pip-version-check --no-deps \
            --no-binary mpi4py -d "$home" "mpi4py==$mpi4py"
        tar -xzf "$home/mpi4py-$mpi4py.tar.gz" -C "$home"
    fi
}

title() {
    case "$1" in
    openmpi-4.1) echo "Open MPI $(mpirun.openmpi --version | sed -n 's/.*) //p') (Debian)" ;;
    openmpi-5) echo "Open MPI $openmpi (wheel)" ;;
    mpich-5) echo "MPICH $mpich (wheel)" ;;
    esac
}

# launch MPI TRANSPORT RANKS COMMAND...: for ten minutes at most, should it hang.
launch() {
    mpi="$1" transport="$2" ranks="$3"
    shift 3
    case "$mpi" in
    openmpi-4.1) set -- mpirun.openmpi --oversubscribe -n "$ranks" "$@" ;;
    openmpi-5) set -- "$home/$mpi/bin/mpirun" --map-by :OVERSUBSCRIBE -n "$ranks" "$@" ;;
    mpich-5) set -- "$home/$mpi/bin/mpiexec" -n "$ranks" "$@" ;;
    esac
    case "$mpi $transport" in
    openmpi*ayre)
        set -- OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre \
            FI_PROVIDER_PATH="$provider" "$@"
        ;;
    openmpi*own) set -- OMPI_MCA_pml=ob1 "$@" ;;
    mpich*ayre)
        set -- FI_PROVIDER=ayre FI_PROVIDER_PATH="$provider" \
            MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 "$@"
        ;;
    esac
    timeout -k 5 600 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}

# The environment of Python that has an MPI's mpi4py.
python_of() { echo "$home/$1/bin/python"; }

# suite MPI TRANSPORT RANKS ARGUMENTS...: mpi4py's tests; each rank has a file of its own.
suite() {
    log="$work/$1-$2-$3" python=$(python_of "$1")
    mpi="$1" transport="$2" ranks="$3"
    shift 3
    # One that there always is, so that its name stands for something.
    rm -f "$log".*
    : >"$log.0"
    # What a rank is called, it finds out for itself.
    # shellcheck disable=SC2016
    launch "$mpi" "$transport" "$ranks" sh -c \
        'log=$1; shift; exec "$@" >"$log.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" 2>&1' - "$log" \
        "$python" -u "$tests/main.py" -v --no-numpy -e spawn -e dynproc "$@" \
        >"$log" 2>&1 || true
}

# The tests that have failed in the last run, and where it has stopped before its end.
failures() {
    sed -n 's/^\(FAIL\|ERROR\): [^(]*(\([^)]*\)).*/\2/p' "$1".* | sort -u
    for rank in "$1".*; do
        grep -q '^Ran ' "$rank" ||
            sed -n 's/^test[^(]*(\([^)]*\)) \.\.\. *$/\1/p' "$rank" | tail -n 1
    done
}

# mpi4py_tests MPI RANKS ARGUMENTS...: what fails over Ayre is tried over the MPI's own transport.
mpi4py_tests() {
    mpi="$1" ranks="$2"
    shift 2
    what="mpi4py $mpi4py, $ranks ranks"
    known="$sets/mpi4py-$mpi"
    if [ -e "$known" ]; then
        sed -e 's/ *#.*//' -e '/^$/d' "$known" >"$work/known"
        set -- --xfile "$work/known" "$@"
    fi
    suite "$mpi" ayre "$ranks" "$@"
    failures "$work/$mpi-ayre-$ranks" >"$work/failed"
    count=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1 tests/p' "$work/$mpi-ayre-$ranks.0")
    if [ ! -s "$work/failed" ] && [ -n "$count" ]; then
        ok "$(title "$mpi")" "$what" "$count"
        return
    fi
    set --
    while read -r test; do
        set -- "$@" -k "$test"
    done <"$work/failed"
    suite "$mpi" own "$ranks" "$@"
    failures "$work/$mpi-own-$ranks" >"$work/failed-own"
    only=$(grep -Fvxf "$work/failed-own" "$work/failed" || true)
    if [ -z "$only" ] && [ -n "$count" ]; then
        ok "$(title "$mpi")" "$what" "$count; $(wc -l <"$work/failed") fail over both"
        return
    fi
    fails "$(title "$mpi")" "$what" "${count:-hangs or has died}; over Ayre only:"
    echo "${only:-it has not begun}" | sed 's/^/    /'
}

# What LAMMPS computes, without the times that it took.
thermo() { sed -n '/^Step/,/^Loop/{/^Loop/d;p;}' "$1"; }

lammps() {
    ranks="$1"
    what="LAMMPS melt, $ranks ranks"
    for transport in ayre own; do
        launch openmpi-4.1 "$transport" "$ranks" lmp -in "$sets/melt.lammps" \
            -log "$work/log-$transport" >"$work/out-$transport" 2>&1 || true
        thermo "$work/log-$transport" >"$work/thermo-$transport" || true
    done
    if [ -s "$work/thermo-ayre" ] && cmp -s "$work/thermo-ayre" "$work/thermo-own"; then
        ok "$(title openmpi-4.1)" "$what" "the same to 14 digits over both"
    else
        fails "$(title openmpi-4.1)" "$what" "it has failed, or the results differ"
        diff "$work/thermo-ayre" "$work/thermo-own" || true
    fi
}

# The sockets by which endpoints of this process are called.
sockets_of() {
    find "/proc/$1/fd" -type l -exec readlink {} + 2>/dev/null |
        sed -n 's/^socket:\[\(.*\)\]$/\1/p' >"$work/inodes"
    awk 'NR == FNR { own[$1]; next } $7 in own && $8 ~ /^@ayre/ { print $8 }' \
        "$work/inodes" /proc/net/unix
}

# Waits until a condition holds, or a minute.
until_so() {
    tries=600
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

have_begun() { [ "$(find "$1" -name '[0-2]' | wc -l)" -eq 3 ]; }

has_ended() { ! kill -0 "$1" 2>/dev/null; }

# killed MPI: of three ranks that do nothing but talk, one is killed.
killed() {
    mpi="$1" begun="$work/begun-$1"
    what="kill -9 of a rank of 3"
    mkdir "$begun"
    ls /dev/shm >"$work/files"
    launch "$mpi" ayre 3 "$(python_of "$mpi")" "$sets/talk.py" "$begun" >"$work/out" 2>&1 &
    job=$!
    if ! until_so have_begun "$begun"; then
        fails "$(title "$mpi")" "$what" "it does not begin"
        kill "$job"
        return
    fi
    : >"$work/sockets"
    for rank in 0 1 2; do
        sockets_of "$(cat "$begun/$rank")" >>"$work/sockets"
    done
    kill -9 "$(cat "$begun/1")"
    if ! until_so has_ended "$job"; then
        fails "$(title "$mpi")" "$what" "the job goes on"
        kill "$job"
        return
    fi
    left=$(
        for rank in 0 1 2; do
            # The launcher's children may have to be waited for by init.
            until_so has_ended "$(cat "$begun/$rank")" || echo "rank $rank"
        done
        ls /dev/shm | grep ayre | grep -Fvxf "$work/files" || true
        grep -Fof "$work/sockets" /proc/net/unix || true
    )
    if [ "$(wc -l <"$work/sockets")" -lt 3 ]; then
        fails "$(title "$mpi")" "$what" "it does not run over Ayre"
    elif [ -z "$left" ]; then
        ok "$(title "$mpi")" "$what" "the job ends, nothing is left"
    else
        fails "$(title "$mpi")" "$what" "left behind:"
        echo "$left" | sed 's/^/    /'
    fi
}

environment openmpi-4.1 "mpi4py==$mpi4py"
environment mpich-5 "mpich==$mpich" "mpi4py==$mpi4py"
fetch_tests

if [ "${1:-}" = quick ]; then
    for mpi in openmpi-4.1 mpich-5; do
        mpi4py_tests "$mpi" 2 -i test_p2p -i test_comm -i test_cco_obj -i test_msgspec
    done
    lammps 2
    killed openmpi-4.1
else
    environment openmpi-5 "openmpi==$openmpi" "mpi4py==$mpi4py"
    for mpi in openmpi-4.1 openmpi-5 mpich-5; do
        for ranks in 1 2 3 4; do
            mpi4py_tests "$mpi" "$ranks"
        done
        killed "$mpi"
    done
    lammps 2
    lammps 4
fi
# In the words in which the test harness closes, for those who add up.
verdict=ok
[ "$failed" -eq 0 ] || verdict=FAILED
echo "test result: $verdict. $passed passed; $failed failed; programs over Ayre"
[ "$failed" -eq 0 ]
