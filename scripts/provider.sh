#!/bin/sh
# Builds libayre-fi.so, Ayre as a provider of libfabric, and says how to use it. The library is to
# have this name, and to stand alone: nothing of libfabric's may be linked. PROFILE=checked builds
# it with its assertions, as the tests have it.
set -eu
cd "$(dirname "$0")/.."

# Shown by cargo, so that CARGO_TARGET_DIR and the like are obeyed.
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
profile="${PROFILE:-provider}"
# A folder of its own: libfabric loads all that ends in fi.so, cargo's own copy too.
folder="$target/$profile/libfabric"

PROFILE="$profile" scripts/build.sh ayre-provider
mkdir -p "$folder"
# Put in place whole: programs that run have the old one mapped.
cp "$target/$profile/libayre_fi.so" "$folder/libayre-fi.so.new"
mv "$folder/libayre-fi.so.new" "$folder/libayre-fi.so"

echo "provider: $folder/libayre-fi.so"
echo "try: FI_PROVIDER_PATH=$folder fi_info -p ayre"
