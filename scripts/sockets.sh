#!/bin/sh
# Builds libayre-sockets.so and the tool that runs programs with it, and says how to use them.
set -eu
cd "$(dirname "$0")/.."

target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
profile="${PROFILE:-release}"

PROFILE="$profile" scripts/build.sh ayre-sockets
PROFILE="$profile" scripts/build.sh ayre-cli

echo "sockets: $target/$profile/libayre_sockets.so"
echo "try: $target/$profile/ayre sockets -- PROGRAM"
