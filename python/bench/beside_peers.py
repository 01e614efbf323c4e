"""Measures Ayre beside its peers: one process and a forked child, on one host.

    python3 bench/beside_peers.py [--rounds 9] [--json]

All cases take turns, for as many rounds as asked; the table has medians in microseconds. pyzmq
and mpi4py take part where they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import numpy as np

import ayre
import ayre.multiprocessing

FORK = multiprocessing.get_context("fork")
END = b"the end."
MIB = 1 << 20
Round = Callable[[], float]
"""Runs a case once, and gives the time of one operation in seconds."""


def timed(count: int, step: Callable[[], object]) -> float:
    """Time a step, and give the mean of as many as asked."""
    start = perf_counter()
    for _ in range(count):
        step()
    return (perf_counter() - start) / count


@contextmanager
def child(work: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Run a function in a forked child, whose end the caller brings about before it leaves."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    yield
    process.join(10)
    if process.exitcode is None:
        process.kill()


def port_of(number: int, path: str) -> ayre.Port:
    """Open a port that is connected with the other one of a pair."""
    port = ayre.Port(number=number, linger=0.05)
    if number == 0:
        port.listen(path)
        port.accept()
        return port
    while not os.path.exists(path):
        os.sched_yield()
    port.connect(path)
    return port


# Messages of 8 bytes, one way: half of the time there and back.


def echo(take: Callable[[], bytes], give: Callable[[bytes], object]) -> None:
    """Send back what comes, until the end."""
    while (data := take()) != END:
        give(data)


@contextmanager
def there_and_back(
    take: Callable[[], object], give: Callable[[bytes], object], count: int
) -> Iterator[Round]:
    """Measure messages to a child that sends them back."""

    def step() -> None:
        give(b"8 bytes.")
        take()

    yield lambda: timed(count, step) / 2
    give(END)


@contextmanager
def ayre_messages(folder: str) -> Iterator[Round]:
    """Measure short messages of ports."""
    path = f"{folder}/messages"

    def work() -> None:
        port = port_of(1, path)
        echo(lambda: port.recv().data, lambda data: port.send_wait(0, data))

    with child(work):
        port = port_of(0, path)
        with there_and_back(port.recv, lambda data: port.send_wait(1, data), 20_000) as run:
            yield run


@contextmanager
def pipes(_folder: str) -> Iterator[Round]:
    """Measure a pair of multiprocessing's connections."""
    here, there = FORK.Pipe()
    with (
        child(lambda: echo(there.recv_bytes, there.send_bytes)),
        there_and_back(here.recv_bytes, here.send_bytes, 3000) as run,
    ):
        yield run


@contextmanager
def queues(kind: Callable[[], Any]) -> Iterator[Round]:
    """Measure two queues of multiprocessing's."""
    out, back = kind(), kind()
    with (
        child(lambda: echo(out.get, back.put)),
        there_and_back(back.get, out.put, 2000) as run,
    ):
        yield run


@contextmanager
def zmq_messages(folder: str) -> Iterator[Round]:
    """Measure a pair of pyzmq's sockets."""
    import zmq  # type: ignore[import-not-found,unused-ignore]

    def work() -> None:
        socket = zmq.Context().socket(zmq.PAIR)
        socket.connect(f"ipc://{folder}/zmq")
        echo(socket.recv, socket.send)

    with child(work):
        socket = zmq.Context().socket(zmq.PAIR)
        socket.bind(f"ipc://{folder}/zmq")
        with there_and_back(socket.recv, socket.send, 3000) as run:
            yield run


# Memory of 1 MiB.


@contextmanager
def puts(_folder: str) -> Iterator[Round]:
    """Measure a put of an array into a region of a direct connection."""
    port = ayre.Port()
    own = port.connect_loopback()
    region = port.alloc(MIB)
    port.share(own, region)
    remote, array = port.accept_region(own), np.ones(MIB, np.uint8)

    def step() -> None:
        port.put(remote, 0, array)
        port.flush(own)

    yield lambda: timed(300, step)
    port.close()


@contextmanager
def copies(_folder: str) -> Iterator[Round]:
    """Measure the copy of as many bytes by numpy."""
    into, array = np.zeros(MIB, np.uint8), np.ones(MIB, np.uint8)
    yield lambda: timed(300, lambda: np.copyto(into, array))


# Items that a child produces, one after the other.


@contextmanager
def items(
    open_producer: Callable[[], Callable[[], object]],
    open_consumer: Callable[[], Callable[[], object]],
    count: int,
) -> Iterator[Round]:
    """Measure the time of an item from a child that is asked for so many."""
    here, there = FORK.Pipe()

    def work() -> None:
        produce = open_producer()
        while there.recv():
            for _ in range(count):
                produce()

    with child(work):
        consume = open_consumer()

        def run() -> float:
            here.send(True)
            return timed(count, consume)

        yield run
        here.send(False)


def ayre_items(folder: str, data: Any, count: int) -> Any:
    """Measure records of a remote queue, which has bytes and no objects."""
    path = f"{folder}/records-{data.nbytes}"

    def producer() -> Callable[[], object]:
        port = port_of(1, path)
        queue = port.accept_queue(0)
        return lambda: port.enqueue_wait(queue, data)

    def consumer() -> Callable[[], object]:
        port = port_of(0, path)
        queue = port.create_queue(max(16 * data.nbytes, 1 << 16))
        port.share_queue(1, queue)
        into = np.empty_like(data)
        return lambda: port.dequeue_into_wait(queue, into)

    return items(producer, consumer, count)


def called_items(folder: str, data: Any, count: int) -> Any:
    """Measure payloads of active messages, for items that are longer than a record."""
    path = f"{folder}/calls"

    def producer() -> Callable[[], object]:
        messenger = ayre.Messenger(port_of(1, path))
        return lambda: messenger.call(0, "take", payload=data)

    def consumer() -> Callable[[], object]:
        messenger, taken = ayre.Messenger(port_of(0, path)), []
        messenger.handler("take")(lambda call, payload: taken.append(payload))

        def take() -> object:
            while not taken:
                messenger.wait()
            return taken.pop()

        return take

    return items(producer, consumer, count)


def peer_items(kind: Callable[[], Any], data: Any, count: int) -> Any:
    """Measure items of a queue of multiprocessing's."""
    queue = kind()
    given = data if data.nbytes > 64 else data.tobytes()
    return items(lambda: lambda: queue.put(given), lambda: queue.get, count)


# Sums of 1 MiB over two processes.


@contextmanager
def allreduces(folder: str) -> Iterator[Round]:
    """Measure allreduces of a group of two."""
    count, path = 200, f"{folder}/sums"

    def work() -> None:
        group = ayre.Messenger(port_of(1, path)).group()
        array = np.ones(MIB // 8)
        while group.broadcast(np.ones(1, np.uint8))[0]:
            for _ in range(count):
                group.allreduce(array, "max")

    with child(work):
        group = ayre.Messenger(port_of(0, path)).group()
        array = np.ones(MIB // 8)

        def run() -> float:
            group.broadcast(np.ones(1, np.uint8))
            return timed(count, lambda: group.allreduce(array, "max"))

        yield run
        group.broadcast(np.zeros(1, np.uint8))


MPI = """
import numpy as np
from time import perf_counter
from mpi4py import MPI
world, array, into = MPI.COMM_WORLD, np.ones(1 << 17), np.ones(1 << 17)
rank, word = world.Get_rank(), np.zeros(8, np.uint8)
def message():
    if rank == 0:
        world.Send(word, 1); world.Recv(word, 1)
    else:
        world.Recv(word, 0); world.Send(word, 0)
def allreduce():
    world.Allreduce(array, into, op=MPI.MAX)
for step, count, share in ((message, 20000, 2), (allreduce, 200, 1)):
    for _ in range(count // 10):
        step()
    start = perf_counter()
    for _ in range(count):
        step()
    if rank == 0:
        print((perf_counter() - start) / count / share)
"""


@contextmanager
def mpi4py(which: int) -> Iterator[Round]:
    """Measure buffers of mpi4py, in a job of its own for each round."""

    def run() -> float:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        said = subprocess.run(
            [*command, sys.executable, "-c", MPI], capture_output=True, text=True, check=True
        )
        return float(said.stdout.split()[which])

    yield run


def cases(folder: str) -> dict[str, dict[str, Any]]:
    """Give all cases that this machine has, by subject and name."""
    short, long = np.zeros(64, np.uint8), np.zeros(MIB, np.uint8)
    kinds: dict[str, Any] = {
        "ayre.multiprocessing.Queue": ayre.multiprocessing.Queue,
        "multiprocessing.Queue": FORK.Queue,
        "multiprocessing.SimpleQueue": FORK.SimpleQueue,
    }
    found: dict[str, dict[str, Any]] = {
        "message of 8 B, one way": {
            "ayre": ayre_messages(folder),
            "multiprocessing.Pipe": pipes(folder),
            **{name: queues(kind) for name, kind in kinds.items()},
        },
        "put of 1 MiB": {"ayre": puts(folder), "memcpy": copies(folder)},
        "item of 64 B": {
            "ayre, record": ayre_items(folder, short, 5000),
            **{name: peer_items(kind, short, 5000) for name, kind in kinds.items()},
        },
        "item of 1 MiB": {
            "ayre, call": called_items(folder, long, 100),
            **{name: peer_items(kind, long, 100) for name, kind in kinds.items()},
        },
        "allreduce of 1 MiB": {"ayre": allreduces(folder)},
    }
    if importlib.util.find_spec("zmq"):
        found["message of 8 B, one way"]["pyzmq ipc"] = zmq_messages(folder)
    if importlib.util.find_spec("mpi4py") and shutil.which("mpirun"):
        found["message of 8 B, one way"]["mpi4py"] = mpi4py(0)
        found["allreduce of 1 MiB"]["mpi4py"] = mpi4py(1)
    return found


def main() -> None:
    """Run all cases in turn, and print the medians."""
    parser = argparse.ArgumentParser(description="Measures Ayre for Python beside its peers.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="all times, in seconds")
    options = parser.parse_args()
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        runs = {
            (subject, name): stack.enter_context(case)
            for subject, all_of in cases(folder).items()
            for name, case in all_of.items()
        }
        for number in range(options.rounds + 1):
            for (subject, name), run in runs.items():
                taken = run()
                if number > 0:  # the first round warms up
                    times.setdefault(subject, {}).setdefault(name, []).append(taken)
    if options.json:
        json.dump(times, sys.stdout)
        return
    for subject, all_of in times.items():
        print(subject)
        for name, one in all_of.items():
            print(f"  {name:30} {statistics.median(one) * 1e6:10.2f} us")


if __name__ == "__main__":
    main()
