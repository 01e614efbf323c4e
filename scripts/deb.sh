#!/bin/sh
# Builds packages for Debian. ayre has the tool, its manual and completions, the provider where
# libfabric looks for providers, and the library for sockets where the tool looks for it. libayre0
# has the library for programs in C and C++, and libayre-dev the rest that they are compiled with.
# PROFILE=checked takes what the tests have built.
#
# usage: scripts/deb.sh [try]
#   try  installs them besides, uses them and removes them, as root, seen by nobody else
set -eu
cd "$(dirname "$0")/.."

say() { echo "deb: $*"; }

profile="${PROFILE:-release}"
# What is only tried is compressed quickly.
case "$profile" in
release) fabric=provider level=6 ;;
*) fabric=$profile level=1 ;;
esac
PROFILE="$profile" scripts/build.sh ayre-cli
PROFILE="$profile" scripts/build.sh ayre-sockets
PROFILE=$fabric scripts/provider.sh >/dev/null

metadata=$(cargo metadata --format-version 1 --no-deps)
target=$(echo "$metadata" | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
maintainer="${DEBFULLNAME:-The authors of Ayre} <${DEBEMAIL:-ayre@localhost}>"
architecture=$(dpkg --print-architecture)
multiarch=$(gcc -print-multiarch)
# Debian's libfabric looks here where FI_PROVIDER_PATH is not set.
providers="usr/lib/$multiarch/libfabric"
# The tool looks here; the loader does not, as only those who ask are to have it.
sockets="usr/lib/$multiarch/ayre/libayre-sockets.so"
# All files are as old as the commit: the same programs give the same package.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tool="$work/ayre"
library="$work/libayre0"
headers="$work/libayre-dev"

# What the licences of the crates that are linked ask for: their texts, each once.
notices() {
    cargo metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu |
        grep -o '"manifest_path":"[^"]*"' | cut -d'"' -f4 | sort -u >"$work/manifests"
    cargo tree -p ayre-cli -p ayre-provider -p ayre-sockets -p ayre-capi -e normal,build \
        --prefix none -f '{p}' |
        awk '{ print $1 "-" substr($2, 2) }' | sort -u >"$work/linked"
    while read -r crate; do
        folder=$(dirname "$(grep -F "/$crate/Cargo.toml" "$work/manifests" || echo none/none)")
        for text in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/NOTICE*; do
            [ -f "$text" ] || continue
            sum=$(sha256sum <"$text")
            echo "$crate ${text##*/}" >>"$work/of-${sum%% *}"
            [ -e "$work/text-${sum%% *}" ] || cp "$text" "$work/text-${sum%% *}"
        done
    done <"$work/linked"
    echo "Crates that are linked into Ayre's programs, and the texts that come with them."
    for names in "$work"/of-*; do
        printf '\n==== %s\n\n' "$(paste -sd, "$names" | sed 's/,/, /g')"
        cat "$work/text-${names##*/of-}"
    done
}

copyright() {
    cat <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Ayre

Files: *
Copyright: 2026 the authors of Ayre
License: MIT or Apache-2.0
Comment: The texts of the crates that are linked are in notices.gz.

License: Apache-2.0
 The text is in /usr/share/common-licenses/Apache-2.0.

License: MIT
END
    sed -n '/^Permission/,$p' LICENSE-MIT | sed 's/^$/./; s/^/ /'
}

# Of the package; what is new in Ayre is its own changelog.
history() {
    cat <<END
ayre ($version-1) unstable; urgency=medium

  * What is new: changelog.gz

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
}

# The newest version of the C library that a symbol of the files is from.
needs() {
    objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -V | tail -n 1
}

# The texts that each package has.
documents() {
    mkdir -p "$1"
    cp CHANGELOG.md "$1/changelog"
    history >"$1/changelog.Debian"
    copyright >"$1/copyright"
    cp "$work/notices" "$1/notices"
    gzip -9n "$1"/changelog* "$1/notices"
}

fill_tool() {
    install -D -m 755 "$target/$profile/ayre" "$tool/usr/bin/ayre"
    install -D -m 644 "$target/$fabric/libfabric/libayre-fi.so" "$tool/$providers/libayre-fi.so"
    install -D -m 644 "$target/$profile/libayre_sockets.so" "$tool/$sockets"
    strip --strip-unneeded "$tool/usr/bin/ayre" "$tool/$providers/libayre-fi.so" "$tool/$sockets"
    share="$tool/usr/share"
    ayre="$target/$profile/ayre"
    "$ayre" man "$share/man/man1"
    gzip -9n "$share/man/man1"/*
    mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
        "$share/fish/vendor_completions.d" "$share/doc/ayre/docs"
    "$ayre" completions bash >"$share/bash-completion/completions/ayre"
    "$ayre" completions zsh >"$share/zsh/vendor-completions/_ayre"
    "$ayre" completions fish >"$share/fish/vendor_completions.d/ayre.fish"
    cp README.md SECURITY.md "$share/doc/ayre"
    cp docs/*.md "$share/doc/ayre/docs"
    documents "$share/doc/ayre"
}

fill_libraries() {
    PROFILE="$profile" DESTDIR="$headers" LIBDIR="lib/$multiarch" scripts/capi.sh install /usr \
        >/dev/null
    lib="usr/lib/$multiarch"
    mkdir -p "$library/$lib"
    mv "$headers/$lib"/libayre.so.* "$library/$lib/"
    strip --strip-unneeded "$library/$lib/libayre.so.$version"
    chmod 644 "$library/$lib/libayre.so.$version"
    strip --strip-debug "$headers/$lib/libayre.a"
    documents "$library/usr/share/doc/libayre0"
    documents "$headers/usr/share/doc/libayre-dev"
    cp -R capi/examples "$headers/usr/share/doc/libayre-dev/"
}

# The name, what it depends on, its section, and its description.
control() {
    cat <<END
Package: $1
Version: $version-1
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$work/$1" | cut -f1)
Depends: $2
Section: $3
Priority: optional
END
    [ "$1" != ayre ] || echo "Suggests: libfabric1 (>= 1.17), libfabric-bin, openmpi-bin"
    [ "$1" = ayre ] || echo "Multi-Arch: same"
    cat
}

build() {
    root="$work/$1"
    mkdir -p "$root/DEBIAN" "$target/deb"
    control "$@" >"$root/DEBIAN/control"
    if [ "$1" = libayre0 ]; then
        echo "libayre 0 libayre0 (>= $version)" >"$root/DEBIAN/shlibs"
        echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    fi
    chmod -R u=rwX,go=rX "$root"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    package="$target/deb/$1_$version-1_$architecture.deb"
    dpkg-deb --root-owner-group -z$level --build "$root" "$package" >/dev/null
    packages="$packages $package"
    say "$package, $(($(wc -c <"$package") / 1024)) KiB"
}

packages=
notices >"$work/notices"
fill_tool
fill_libraries
newest=$(needs "$tool/usr/bin/ayre" "$tool/$providers/libayre-fi.so" "$tool/$sockets")
build ayre "libc6 (>= $newest), libgcc-s1" net <<'END'
Description: network interface in software, with a provider of libfabric
 Processes put and get each other's memory, send messages and wait for each
 other, within a host through shared memory and between hosts by encrypted
 links. The tool ayre runs parallel jobs, measures, and says what the machine
 offers, and runs unmodified programs whose TCP connections within the host go
 by shared memory. Programs that use libfabric, as those of MPI do, find the
 provider "ayre".
END
build libayre0 "libc6 (>= $(needs "$library/usr/lib/$multiarch/libayre.so.$version")), libgcc-s1" \
    libs <<'END'
Description: network interface in software, the library
 Processes put and get each other's memory, send messages and wait for each
 other, within a host through shared memory and between hosts by encrypted
 links. This is the library that programs in C and C++ run with.
END
build libayre-dev "libayre0 (= $version-1), libc6-dev" libdevel <<'END'
Description: network interface in software, headers for C and C++
 Processes put and get each other's memory, send messages and wait for each
 other, within a host through shared memory and between hosts by encrypted
 links. This has ayre.h and ayre.hpp, the static library, the files by which
 pkg-config and CMake find them, and examples.
END
[ "${1:-}" = try ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
    say "only root can install what is to be tried"
    exit 1
fi
mpicc.openmpi -Wall -o "$work/ring" scripts/deb-try/ring.c
# It takes a minute, so only packages for others are looked at.
# shellcheck disable=SC2086 # several packages
[ "$profile" != release ] || lintian --fail-on error $packages
# shellcheck disable=SC2086
unshare --mount scripts/deb-try/try.sh "$work/ring" $packages
say "installed, used and removed"
