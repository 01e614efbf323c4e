#!/bin/sh
# Redis as the system packages it: the server on one host, redis-benchmark on another, which are
# network namespaces of this machine, joined by a cable, and are taken away again. Over TCP, and
# over Ayre with libayre-sockets.so loaded beforehand, side by side. Fails if nothing went by rings,
# or if Redis, run with it, gives a wrong answer. As root.
set -eu
cd "$(dirname "$0")/.."

export BETWEEN=namespaces AYRE_REQUIRE=1
echo "demo-sockets: redis-server in one network namespace, its clients in another: right answers?"
scripts/sockets-programs.sh check redis
echo
echo "demo-sockets: redis-benchmark, 50 clients, 64 bytes, 1 and 16 requests at once"
scripts/sockets-programs.sh figures redis
