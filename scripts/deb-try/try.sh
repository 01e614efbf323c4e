#!/bin/sh
# Installs a package, uses it as a person would, and removes it. To be run in a mount namespace of
# its own: what is installed lies in memory above the system's folders, where nobody else sees it.
#
# usage: unshare --mount scripts/deb-try/try.sh PACKAGE RING
#   RING  a program of Open MPI that says how many ranks it has counted
set -eu

package="$1"
ring="$2"

fail() {
    echo "deb: $*"
    exit 1
}

over=$(mktemp -d)
mount -t tmpfs tmpfs "$over"
for folder in usr etc var; do
    mkdir -p "$over/$folder/upper" "$over/$folder/work"
    mount -t overlay overlay "/$folder" \
        -o "lowerdir=/$folder,upperdir=$over/$folder/upper,workdir=$over/$folder/work"
done
unset FI_PROVIDER_PATH MANPATH

dpkg -i "$package" >"$over/log" || fail "dpkg -i: $(cat "$over/log")"
files=$(dpkg -L ayre)

ayre info >"$over/info" || fail "ayre info fails"
fi_info -p ayre >"$over/offers" || fail "libfabric does not find the provider"
grep -q 'provider: ayre' "$over/offers" || fail "fi_info: $(cat "$over/offers")"
# The images of containers may leave out manuals, and the program that shows them.
if [ -e /usr/share/man/man1/ayre.1.gz ]; then
    for page in ayre ayre-run ayre-info; do
        ! command -v man >/dev/null || man -w "$page" >/dev/null || fail "no page $page"
    done
else
    grep -rqs '^path-exclude *= */usr/share/man' /etc/dpkg/dpkg.cfg.d || fail "no manual"
fi
bash -c '. /usr/share/bash-completion/completions/ayre && complete -p ayre' >/dev/null ||
    fail "bash does not complete"

# These leave Open MPI no other transport to fall back on.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
counted=$(OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre \
    mpirun.openmpi --oversubscribe -n 2 "$ring" 2>&1) || fail "mpirun: $counted"
[ "$counted" = "counted 2 of 2" ] || fail "mpirun: $counted"

dpkg -P ayre >"$over/log" || fail "dpkg -P: $(cat "$over/log")"
for file in $files; do
    [ ! -f "$file" ] || fail "$file is still there"
done
