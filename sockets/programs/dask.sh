#!/bin/sh
# Dask: a scheduler, two workers that give each other what they have worked out, and a client.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
python=/usr/bin/python3
needs "$python"
"$python" -c 'import distributed, numpy' 2>/dev/null ||
    { say "missing: distributed" && told=yes && exit 77; }

port=$(free_port)

programs() {
    cat >"$work/client.py" <<'PY'
import hashlib, sys, time
import numpy as np
from distributed import Client, wait

address, port, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])

def blob(number, size):
    return np.random.default_rng(number).bytes(size)

def digest(*blobs):
    return hashlib.sha256(b"".join(blobs)).hexdigest()

def check(client):
    assert client.submit(sum, [1, 2, 3]).result() == 6
    numbers = client.map(lambda n: n * n, range(1000))
    assert client.submit(sum, numbers).result() == sum(n * n for n in range(1000)), "squares"
    # Half of what is hashed lies at the other worker.
    size = 500000
    blobs = [blob(number, size) for number in range(20)]
    workers = sorted(client.scheduler_info()["workers"])
    theirs = [client.submit(blob, number, size, workers=[workers[number % 2]], pure=False)
        for number in range(20)]
    wait(theirs)
    for worker in workers:
        got = client.submit(digest, *theirs, workers=[worker], pure=False).result()
        assert got == digest(*blobs), "what workers give each other"
    assert client.gather(theirs) == blobs, "what workers give the client"
    sent = client.scatter(blobs)
    assert client.submit(digest, *sent, pure=False).result() == digest(*blobs), "what it gives them"

def measure(client):
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        client.submit(int, count).result()
        count += 1
    print("turns/submit", count / seconds, "1/s")

with Client(f"tcp://{address}:{port}") as client:
    client.wait_for_workers(2)
    measure(client) if seconds else check(client)
PY
}

cluster() {
    programs
    # A worker is a client of the scheduler and of the other worker.
    chained=yes
    export DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False
    serve scheduler "$port" "$python" -m distributed.cli.dask_scheduler --host "$ADDRESS" \
        --port "$port" --no-dashboard --no-show
    for worker in 1 2; do
        start "worker$worker" "$python" -m distributed.cli.dask_worker "tcp://$ADDRESS:$port" \
            --host "$ADDRESS" --no-nanny --no-dashboard --nthreads 1 --local-directory "$work"
    done
}

check() {
    cluster
    client "$python" "$work/client.py" "$ADDRESS" "$port" 0 || fail "the client"
    by_rings 20000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    cluster
    client "$python" "$work/client.py" "$ADDRESS" "$port" "$SECONDS_EACH"
}

main "$@"
