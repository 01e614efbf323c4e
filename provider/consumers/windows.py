"""Windows of each kind, whose memory's owner makes no call into MPI while the other rank works on
it: it computes until it reads in its memory that all has been done. If nobody served it, that would
be never.

What MPI does by messages of its own waits for the owner's calls, whatever is below: locks of MPICH,
unless they are not to be checked, and its atomics without this hint. Nobody else touches the
windows, so both may be had."""

import ctypes
import time

from mpi4py import MPI

LONG = 65536
world = MPI.COMM_WORLD
hints = MPI.Info.Create()
hints.Set("accumulate_ops", "same_op")


def number(memory, place):
    return int.from_bytes(memory[place * 8:place * 8 + 8], "little")


def window(kind):
    """A window, its memory here, and where that begins for the others."""
    size = LONG + 64
    if kind == "allocate":
        made = MPI.Win.Allocate(size, 1, hints, world)
        return made, made.tomemory(), 0
    memory = memoryview((ctypes.c_byte * size)()).cast("B")
    if kind == "create":
        return MPI.Win.Create(memory, 1, hints, world), memory, 0
    made = MPI.Win.Create_dynamic(hints, world)
    made.Attach(memory)
    return made, memory, world.bcast(MPI.Get_address(memory), root=1)


def word(value):
    return memoryview(bytearray(value.to_bytes(8, "little")))


def work(made, base):
    def spec(data):
        return [data, len(data) // 8, MPI.INT64_T]

    def there(place, count=1):
        return [base + place * 8, count, MPI.INT64_T]

    long, back, old = bytearray(range(256)) * (LONG // 256), bytearray(LONG), bytearray(8)
    made.Lock(1, MPI.LOCK_SHARED, MPI.MODE_NOCHECK)
    made.Put(spec(long), 1, there(8, LONG // 8))
    made.Flush(1)
    made.Get(spec(back), 1, there(8, LONG // 8))
    made.Flush(1)
    assert back == long
    made.Put(spec(word(40)), 1, there(1))
    made.Flush(1)
    made.Fetch_and_op([word(1), 1, MPI.INT64_T], [old, 1, MPI.INT64_T], 1, base + 8, MPI.SUM)
    made.Flush(1)
    assert number(old, 0) == 40
    made.Accumulate(spec(word(1)), 1, there(1), MPI.SUM)
    made.Flush(1)
    made.Put(spec(word(1)), 1, there(0))
    made.Flush(1)
    made.Unlock(1)


for kind in ("create", "allocate", "dynamic"):
    made, memory, base = window(kind)
    world.Barrier()
    start = time.monotonic()
    if world.rank == 0:
        work(made, base)
        print(f"{kind} {(time.monotonic() - start) * 1000:.0f} ms", flush=True)
    elif world.rank == 1:
        while number(memory, 0) == 0:
            pass
        assert number(memory, 1) == 42
    world.Barrier()
    if kind == "dynamic":
        made.Detach(memory)
    made.Free()
