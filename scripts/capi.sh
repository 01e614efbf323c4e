#!/bin/sh
# Builds Ayre for C and C++: libayre.so, libayre.a, ayre.h, ayre.hpp, and the files by which
# pkg-config and CMake find them. PROFILE=checked takes what the tests have built.
#
# usage: scripts/capi.sh [install FOLDER]
#   install  puts all below FOLDER, as in /usr/local: include, lib, lib/pkgconfig, lib/cmake
#            $LIBDIR stands for lib; $DESTDIR goes before FOLDER, for packages
set -eu
cd "$(dirname "$0")/.."

profile="${PROFILE:-release}"
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Programs that were linked with one version run with all that have the same number here.
abi=0
# What an archive of Rust needs of the system.
system="-lpthread -ldl -lm -lgcc_s -lrt"
folder="$target/$profile/c"
libraries="${LIBDIR:-lib}"

PROFILE="$profile" scripts/build.sh ayre-capi
mkdir -p "$folder"
cp "$target/$profile/libayre_c.a" "$folder/libayre.a"
# The functions of the header alone are to be seen, and each says since when it is there.
# shellcheck disable=SC2086 # several words
cc -shared -o "$folder/libayre.so.$version" -Wl,-soname,"libayre.so.$abi" \
    -Wl,--version-script=capi/libayre.map -Wl,-z,nodelete -Wl,--gc-sections \
    -Wl,--whole-archive "$folder/libayre.a" -Wl,--no-whole-archive $system
ln -sf "libayre.so.$version" "$folder/libayre.so.$abi"
ln -sf "libayre.so.$abi" "$folder/libayre.so"

pkg_config() {
    cat <<END
prefix=$1
libdir=\${prefix}/$libraries
Name: ayre
Description: low-overhead communication between processes and machines
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${libdir} -layre
Libs.private: $system
END
}

cmake() {
    cat <<END
# Gives the targets ayre::ayre and ayre::static.
get_filename_component(_ayre "\${CMAKE_CURRENT_LIST_DIR}/$up" ABSOLUTE)
if(NOT TARGET ayre::ayre)
  add_library(ayre::ayre SHARED IMPORTED)
  set_target_properties(ayre::ayre PROPERTIES
    IMPORTED_LOCATION "\${_ayre}/$libraries/libayre.so.$version"
    IMPORTED_SONAME "libayre.so.$abi"
    INTERFACE_INCLUDE_DIRECTORIES "\${_ayre}/include")
  add_library(ayre::static STATIC IMPORTED)
  set_target_properties(ayre::static PROPERTIES
    IMPORTED_LOCATION "\${_ayre}/$libraries/libayre.a"
    INTERFACE_INCLUDE_DIRECTORIES "\${_ayre}/include"
    INTERFACE_LINK_LIBRARIES "$(echo "$system" | sed 's/-l//g; s/ /;/g')")
endif()
END
}

cmake_version() {
    cat <<END
set(PACKAGE_VERSION $version)
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
END
}

if [ "${1:-}" = install ]; then
    prefix=${2:?a folder to install into, such as /usr/local}
    case "$prefix" in /*) ;; *) prefix="$PWD/$prefix" ;; esac
    to="${DESTDIR:-}$prefix"
    # From the folder of CMake's files back to $prefix.
    up=$(echo "$libraries/cmake/ayre" | sed 's|[^/][^/]*|..|g')
    mkdir -p "$to/include" "$to/$libraries/pkgconfig" "$to/$libraries/cmake/ayre"
    cp capi/include/ayre.h capi/include/ayre.hpp "$to/include/"
    cp "$folder/libayre.a" "$to/$libraries/"
    # Programs that run have the old one mapped: it is replaced, and not written over.
    cp -P --remove-destination "$folder"/libayre.so* "$to/$libraries/"
    pkg_config "$prefix" >"$to/$libraries/pkgconfig/ayre.pc"
    cmake >"$to/$libraries/cmake/ayre/ayre-config.cmake"
    cmake_version >"$to/$libraries/cmake/ayre/ayre-config-version.cmake"
    echo "capi: installed below $to"
    echo "try: PKG_CONFIG_PATH=$prefix/$libraries/pkgconfig pkg-config --cflags --libs ayre"
else
    echo "capi: $folder/libayre.so, $folder/libayre.a, capi/include/ayre.h, capi/include/ayre.hpp"
fi
