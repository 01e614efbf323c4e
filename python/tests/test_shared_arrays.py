"""Arrays and locks in memory that processes share."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext

import numpy as np
import pytest

import ayre
from test_jobs import TOOL, run
from test_processes import start, until_it_waits

FORK = multiprocessing.get_context("fork")


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request: pytest.FixtureRequest) -> BaseContext:
    return multiprocessing.get_context(request.param)


def count(shared: ayre.SharedArray, row: int, rounds: int) -> None:
    for _ in range(rounds):
        with shared.lock:
            shared[0, 0] += 1
        with shared.locks[1 + row % 2]:
            shared.array[1 + row % 2] += 1


def test_processes_count_under_locks(context: BaseContext) -> None:
    shared = ayre.SharedArray((3, 50), np.int64, locks=3)
    processes = [context.Process(target=count, args=(shared, row, 300)) for row in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert shared[0, 0] == 1200
    assert (shared.array[1:] == 600).all()
    assert not shared.lock.was_abandoned


def hold(shared: ayre.SharedArray, ready: Connection) -> None:
    with shared.lock:
        ready.send_bytes(b".")
        signal.pause()


def test_a_killed_holder_releases_its_lock() -> None:
    shared = ayre.SharedArray(1)
    here, there = FORK.Pipe(duplex=False)
    process = FORK.Process(target=hold, args=(shared, there))
    process.start()
    here.recv_bytes()
    assert not shared.lock.acquire(blocking=False)
    assert not shared.lock.acquire(timeout=0.01)
    process.kill()
    process.join()
    assert shared.lock.acquire(timeout=60)
    assert shared.lock.was_abandoned
    shared.lock.release()
    with shared.lock as lock:
        assert not lock.was_abandoned


def test_a_lock_is_its_threads() -> None:
    lock = ayre.SharedArray(1).lock
    with pytest.raises(ayre.InUseError, match="does not hold"):
        lock.release()
    with lock:
        with pytest.raises(ayre.InUseError, match="already"):
            lock.acquire()
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.append(lock.acquire(False)))
        thread.start()
        thread.join()
        assert found == [False]


def test_a_shared_array_is_an_array() -> None:
    shared = ayre.SharedArray((4, 3), "f4")
    assert (len(shared), shared.array.shape, shared.array.dtype) == (4, (4, 3), np.float32)
    shared[1:3] = 7
    assert np.asarray(shared) is shared.array
    assert np.array(shared).sum() == 42
    assert np.sum(shared, axis=0).tolist() == [14, 14, 14]
    assert np.asarray(shared, dtype=int).dtype == int
    assert shared[2].base is not None
    assert ayre.SharedArray((2, 0)).array.size == 0
    assert ayre.SharedArray(3, [("a", "i2"), ("b", "f8")])[0]["b"] == 0


def test_arguments_that_cannot_be_say_so() -> None:
    with pytest.raises(TypeError, match="references"):
        ayre.SharedArray(3, object)
    with pytest.raises(ValueError, match="one lock"):
        ayre.SharedArray(3, locks=0)
    with pytest.raises(ValueError, match="negative"):
        ayre.SharedArray((3, -1))
    with pytest.raises(RuntimeError, match="inheritance"):
        pickle.dumps(ayre.SharedArray(3))
    with pytest.raises(ayre.Error):
        ayre.SharedArray(1 << 60)
    with pytest.raises(ayre.InvalidError, match="No such file"):
        ayre.Region.of_file("/proc/self/fd/99999")
    with pytest.raises(ayre.SetupError):
        ayre.Region.of_file("/dev/null")
    with pytest.raises(ayre.InvalidError, match="no lock"):
        ayre.SharedLock(ayre.Region.shared(4096), 0, made=True)


INTERRUPTED = """
import ayre
shared = ayre.SharedArray(1)
import threading
taken = threading.Event()
def hold():
    shared.lock.acquire()
    taken.set()
    threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
taken.wait()
try:
    print("ready", flush=True)
    shared.lock.acquire()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_ends_a_wait_for_a_lock() -> None:
    process = start(INTERRUPTED)
    until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("interrupted\n", 0)


OF_GROUP = """
import ayre
import numpy as np

with ayre.join(spin="shared") as port:
    group = ayre.Messenger(port).group()
    shared = ayre.SharedArray.of_group(group, (port.size, 1000), np.int64)
    shared[port.rank, 1:] = port.rank
    for _ in range(100):
        with shared.lock:
            shared[0, 0] += 1
    group.barrier()
    assert shared[0, 0] == 100 * port.size
    assert all((shared[rank, 1:] == rank).all() for rank in range(port.size))
    group.barrier()
    print("shared\\n", end="", flush=True)
"""


@pytest.mark.skipif(TOOL is None, reason="there is no tool `ayre`")
def test_ranks_of_a_job_share_an_array() -> None:
    job = run(3, OF_GROUP)
    said, _ = job.communicate(timeout=120)
    assert (said, job.returncode) == ("shared\n" * 3, 0)
