#!/bin/sh
# Builds a package for Debian: the tool, its manual and completions, and the provider where
# libfabric looks for providers. PROFILE=checked takes what the tests have built.
#
# usage: scripts/deb.sh [try]
#   try  installs it besides, uses it and removes it, as root, seen by nobody else
set -eu
cd "$(dirname "$0")/.."

say() { echo "deb: $*"; }

profile="${PROFILE:-release}"
case "$profile" in
release) fabric=provider ;;
*) fabric=$profile ;;
esac
PROFILE="$profile" scripts/build.sh ayre-cli
PROFILE=$fabric scripts/provider.sh >/dev/null

metadata=$(cargo metadata --format-version 1 --no-deps)
target=$(echo "$metadata" | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
maintainer="${DEBFULLNAME:-The authors of Ayre} <${DEBEMAIL:-ayre@localhost}>"
architecture=$(dpkg --print-architecture)
# Debian's libfabric looks here where FI_PROVIDER_PATH is not set.
libraries="usr/lib/$(gcc -print-multiarch)/libfabric"
# All files are as old as the commit: the same programs give the same package.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
root="$work/root"
package="$target/deb/ayre_$version-1_$architecture.deb"

# What the licences of the crates that are linked ask for: their texts, each once.
notices() {
    cargo metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu |
        grep -o '"manifest_path":"[^"]*"' | cut -d'"' -f4 | sort -u >"$work/manifests"
    cargo tree -p ayre-cli -p ayre-provider -e normal,build --prefix none -f '{p}' |
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

fill() {
    install -D -m 755 "$target/$profile/ayre" "$root/usr/bin/ayre"
    install -D -m 644 "$target/$fabric/libfabric/libayre-fi.so" "$root/$libraries/libayre-fi.so"
    strip --strip-unneeded "$root/usr/bin/ayre" "$root/$libraries/libayre-fi.so"
    share="$root/usr/share"
    ayre="$target/$profile/ayre"
    "$ayre" man "$share/man/man1"
    mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
        "$share/fish/vendor_completions.d" "$share/doc/ayre/docs"
    "$ayre" completions bash >"$share/bash-completion/completions/ayre"
    "$ayre" completions zsh >"$share/zsh/vendor-completions/_ayre"
    "$ayre" completions fish >"$share/fish/vendor_completions.d/ayre.fish"
    cp README.md SECURITY.md "$share/doc/ayre"
    cp docs/*.md "$share/doc/ayre/docs"
    cp CHANGELOG.md "$share/doc/ayre/changelog"
    history >"$share/doc/ayre/changelog.Debian"
    copyright >"$share/doc/ayre/copyright"
    notices >"$share/doc/ayre/notices"
    gzip -9n "$share/man/man1"/* "$share/doc/ayre"/changelog* "$share/doc/ayre/notices"
    chmod -R u=rwX,go=rX "$root"
}

control() {
    cat <<END
Package: ayre
Version: $version-1
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6 (>= $(needs "$root/usr/bin/ayre" "$root/$libraries/libayre-fi.so")), libgcc-s1
Suggests: libfabric1 (>= 1.17), libfabric-bin, openmpi-bin
Section: net
Priority: optional
Description: network interface in software, with a provider of libfabric
 Processes put and get each other's memory, send messages and wait for each
 other, within a host through shared memory and between hosts by encrypted
 links. The tool ayre runs parallel jobs, measures, and says what the machine
 offers. Programs that use libfabric, as those of MPI do, find the provider
 "ayre".
END
}

build() {
    fill
    mkdir -p "$root/DEBIAN" "$target/deb"
    control >"$root/DEBIAN/control"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
    say "$package, $(($(wc -c <"$package") / 1024)) KiB"
}

build
[ "${1:-}" = try ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
    say "only root can install what is to be tried"
    exit 1
fi
mpicc.openmpi -Wall -o "$work/ring" scripts/deb-try/ring.c
unshare --mount scripts/deb-try/try.sh "$package" "$work/ring"
say "installed, used and removed"
