#!/bin/sh
# Builds libucp.so.0, Ayre as a library for programs of UCX, in a folder of its own, and says how to
# use it. The library stands alone: nothing of UCX's is linked. PROFILE=checked builds it with its
# assertions, as the tests have it.
set -eu
cd "$(dirname "$0")/.."

# Shown by cargo, so that CARGO_TARGET_DIR and the like are obeyed.
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
profile="${PROFILE:-provider}"
folder="$target/$profile/ucp"

PROFILE="$profile" scripts/build.sh ayre-ucp
mkdir -p "$folder"
# Put in place whole: programs that run have the old one mapped.
cp "$target/$profile/libayre_ucp.so" "$folder/libucp.so.0.new"
mv "$folder/libucp.so.0.new" "$folder/libucp.so.0"
# Python's UCXX and UCX-Py ask for this name.
ln -sf libucp.so.0 "$folder/libucp.so"

echo "ucp: $folder/libucp.so.0"
echo "try: LD_LIBRARY_PATH=$folder OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any mpirun PROGRAM"
