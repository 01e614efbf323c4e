"""The program that is measured in each language, in Python: see same.rs."""

from statistics import median
from time import perf_counter_ns

import ayre

ROUNDS, MIB, SMALL, LARGE, BATCH = 5, 1 << 20, 5000, 50, 50000

port = ayre.join()
rank, peer = port.rank, port.rank ^ 1
region = port.alloc(MIB)
port.share(peer, region)
remote = port.accept_region(peer)
small, large, into = bytes(8), bytearray(MIB), bytearray(8)


def put(data):
    while True:
        try:
            return port.put(remote, 0, data)
        except ayre.BusyError:
            port.progress()


def there_and_back(count):
    for _ in range(count):
        if rank == 0:
            port.send_wait(peer, small)
            port.recv_into(into)
        else:
            port.recv_into(into)
            port.send_wait(peer, small)


def put_small(count):
    for _ in range(count if rank == 0 else 0):
        put(small)
    port.flush(peer)


def fetch_add(count):
    for _ in range(count if rank == 0 else 0):
        port.fetch_add(remote, 0, 1)


def put_large(count):
    for _ in range(count if rank == 0 else 0):
        put(large)
        port.flush(peer)


def one_way(count):
    for _ in range(count):
        if rank == 0:
            port.send_wait(peer, small)
        else:
            port.recv_into(into)


def measure(name, run, count):
    run(count)
    times = []
    for _ in range(ROUNDS):
        port.barrier()
        begun = perf_counter_ns()
        run(count)
        times.append((perf_counter_ns() - begun) / count)
    if rank == 0:
        print(f"{name} {median(times):.1f}", flush=True)


measure("there-and-back", there_and_back, SMALL)
measure("put", put_small, SMALL)
measure("fetch-add", fetch_add, SMALL)
measure("put-large", put_large, LARGE)
measure("message", one_way, BATCH)
port.close()
