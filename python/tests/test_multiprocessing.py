"""Queues in place of those of multiprocessing, between processes of each start method."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ayre
from ayre.multiprocessing import Empty, Full, JoinableQueue, Queue, SimpleQueue
from test_processes import start, until_it_waits

FORK = multiprocessing.get_context("fork")


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request: pytest.FixtureRequest) -> BaseContext:
    return multiprocessing.get_context(request.param)


def produce(queue: Queue[Any], producer: int, count: int) -> None:
    for number in range(count):
        queue.put((producer, number, np.full(number % 300, producer)))


def consume(queue: Queue[Any], results: SimpleQueue[Any]) -> None:
    taken = []
    while (item := queue.get()) is not None:
        producer, number, array = item
        assert (array == np.full(number % 300, producer)).all()
        taken.append((producer, number))
    results.put(taken)


@pytest.mark.parametrize("maxsize", [0, 5])
def test_each_item_goes_to_one_consumer_in_its_producers_order(
    context: BaseContext, maxsize: int
) -> None:
    producers, consumers, count = 4, 3, 500
    queue: Queue[Any] = Queue(maxsize)
    results: SimpleQueue[Any] = SimpleQueue()
    making = [context.Process(target=produce, args=(queue, it, count)) for it in range(producers)]
    taking = [context.Process(target=consume, args=(queue, results)) for _ in range(consumers)]
    for process in making + taking:
        process.start()
    for process in making:
        process.join()
    for _ in taking:
        queue.put(None)
    every: list[tuple[int, int]] = []
    for _ in taking:
        taken = results.get()
        for producer in range(producers):
            numbers = [number for its, number in taken if its == producer]
            assert numbers == sorted(numbers)
        every += taken
    for process in taking:
        process.join()
        assert process.exitcode == 0
    assert sorted(every) == [(it, number) for it in range(producers) for number in range(count)]
    assert queue.empty()


def heir(queue: Queue[str], results: Queue[str], parent: int) -> None:
    while os.getppid() == parent:
        os.sched_yield()
    results.put(queue.get() + " was there")


def creator(results: Queue[str]) -> None:
    queue: Queue[str] = Queue()
    queue.put("an item")
    FORK.Process(target=heir, args=(queue, results, os.getpid())).start()
    os._exit(0)


def test_a_queue_outlives_the_process_that_has_made_it() -> None:
    results: Queue[str] = Queue()
    process = FORK.Process(target=creator, args=(results,))
    process.start()
    assert results.get(timeout=60) == "an item was there"
    process.join()


def put_for_ever(queue: Queue[Any], producer: int) -> None:
    number = 0
    while True:
        queue.put((producer, number, bytes(number % 5000)))
        number += 1


def drain(queue: Queue[Any]) -> Iterator[Any]:
    while True:
        try:
            yield queue.get(timeout=0.2)
        except Empty:
            return


def test_a_killed_producer_leaves_whole_items_and_a_queue_that_works() -> None:
    queue: Queue[Any] = Queue(capacity=1 << 16)
    last = {}
    for producer in range(20):
        process = FORK.Process(target=put_for_ever, args=(queue, producer))
        process.start()
        items = [queue.get() for _ in range(100 + producer)]
        process.kill()
        process.join()
        items += drain(queue)
        assert [item[:2] for item in items] == [(producer, number) for number in range(len(items))]
        assert all(len(item[2]) == item[1] % 5000 for item in items)
        last[producer] = len(items)
    assert len(last) == 20


def get_for_ever(queue: Queue[int], started: Connection) -> None:
    while True:
        queue.get()
        started.send_bytes(b".")


def test_a_killed_consumer_takes_one_item_more_at_most() -> None:
    queue: Queue[int] = Queue()
    for _ in range(20):
        for number in range(2000):
            queue.put(number)
        here, there = FORK.Pipe(duplex=False)
        process = FORK.Process(target=get_for_ever, args=(queue, there))
        process.start()
        there.close()
        here.recv_bytes()
        process.kill()
        process.join()
        said = 1
        try:
            while True:
                here.recv_bytes()
                said += 1
        except EOFError:
            pass
        rest = list(drain(queue))
        assert rest == list(range(2000 - len(rest), 2000))
        assert said <= 2000 - len(rest) <= said + 1


def stop_in_the_middle(queue: Queue[Any], ready: Connection) -> None:
    ready.send_bytes(b".")
    while True:
        queue.put(bytes(1 << 22))
        queue.get()


def test_processes_that_are_killed_while_they_copy_release_the_queue() -> None:
    queue: Queue[Any] = Queue(capacity=1 << 26)
    for _ in range(20):
        here, there = FORK.Pipe(duplex=False)
        process = FORK.Process(target=stop_in_the_middle, args=(queue, there))
        process.start()
        here.recv_bytes()
        process.kill()
        process.join()
        queue.put("after it", timeout=60)
        *before, own = drain(queue)
        assert own == "after it"
        assert all(item == bytes(1 << 22) for item in before)


INTERRUPTED = """
import sys
from ayre.multiprocessing import JoinableQueue

queue = JoinableQueue(1)
queue.put(1)
try:
    print("ready", flush=True)
    {wait}
except KeyboardInterrupt:
    print("interrupted", queue.qsize(), flush=True)
"""


@pytest.mark.parametrize("wait", ["queue.get(), queue.get()", "queue.put(2)", "queue.join()"])
def test_an_interrupt_ends_a_wait(wait: str) -> None:
    process = start(INTERRUPTED.format(wait=wait))
    until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    left = 0 if "get" in wait else 1
    assert (said, process.returncode) == (f"interrupted {left}\n", 0)


END = """
import threading
from ayre.multiprocessing import Queue

queue = Queue()
for number in range(1000):
    queue.put(bytes(1000))
threading.Thread(target=lambda: [queue.get() for _ in range(1001)], daemon=True).start()
"""


def test_the_interpreter_ends_with_items_inside_and_a_thread_that_waits() -> None:
    subprocess.run([sys.executable, "-c", END], check=True, timeout=60)


def test_a_full_queue_and_an_empty_one_say_so() -> None:
    queue: Queue[int] = Queue(2)
    with pytest.raises(Empty):
        queue.get_nowait()
    with pytest.raises(Empty):
        queue.get(timeout=0.01)
    with pytest.raises(Empty):
        queue.get(timeout=-1)
    queue.put(1)
    assert not queue.full()
    queue.put_nowait(2)
    assert (queue.full(), queue.qsize(), queue.empty()) == (True, 2, False)
    with pytest.raises(Full):
        queue.put_nowait(3)
    with pytest.raises(Full):
        queue.put(3, timeout=0.01)
    assert [queue.get(), queue.get()] == [1, 2]
    queue.close()
    for call in (queue.get, lambda: queue.put(1), queue.qsize, queue.empty, queue.full):
        with pytest.raises(ValueError, match="closed"):
            call()
    queue.join_thread()
    queue.cancel_join_thread()


def test_bytes_that_wait_are_bounded_by_the_capacity() -> None:
    queue: Queue[bytes] = Queue(capacity=1 << 16)
    with pytest.raises(ayre.InvalidError, match="capacity"):
        queue.put(bytes(1 << 15))
    with pytest.raises(ayre.InvalidError, match="capacity"):
        Queue(capacity=0)
    for _ in range(6):
        queue.put_nowait(bytes(10_000))
    with pytest.raises(Full):
        queue.put_nowait(bytes(10_000))
    queue.get()
    queue.put_nowait(bytes(10_000))


def test_a_queue_takes_much_before_anybody_gets() -> None:
    queue: Queue[Any] = Queue()
    for round_ in range(3):
        for number in range(30):
            queue.put((number, bytes(1 << 20)))
        for number in range(30 - round_):
            assert queue.get()[0] == number
        for number in range(30 - round_, 30):
            assert queue.get()[0] == number


def test_arrays_come_as_they_went() -> None:
    queue: SimpleQueue[Any] = SimpleQueue()
    array = np.arange(60.0).reshape(3, 4, 5)
    frozen = array.copy()
    frozen.flags.writeable = False
    for item in (array, array.T, np.asfortranarray(array[0]), array[:, ::-2], array[:0], frozen):
        queue.put(item)
        found = queue.get()
        np.testing.assert_array_equal(found, item)
        assert found.dtype == item.dtype
        assert found.flags.writeable == item.flags.writeable
    queue.put([array, array, {"a": array}])
    first, second, third = queue.get()
    assert first is second is third["a"]


@given(st.lists(st.recursive(st.integers() | st.binary() | st.text(), st.lists), max_size=20))
def test_items_come_as_they_went(items: list[Any]) -> None:
    queue: Queue[Any] = Queue()
    for item in items:
        queue.put(item)
    assert [queue.get() for _ in items] == items


class Stubborn:
    def __reduce__(self) -> Any:
        raise RuntimeError("no")


class Late:
    pass


def test_an_item_that_cannot_be_pickled_is_not_put() -> None:
    queue: Queue[Any] = Queue()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            queue.put([1, Stubborn()])
    assert queue.empty()
    queue.put([1, 2])
    assert queue.get() == [1, 2]


def test_items_are_pickled_as_multiprocessing_pickles_them() -> None:
    queue: Queue[Any] = Queue()
    here, there = FORK.Pipe()
    queue.put((there, "with it"))
    queue.get()[0].send("through a connection")
    assert here.recv() == "through a connection"
    queue.put(Late())
    assert type(queue.get()) is Late
    ForkingPickler.register(Late, lambda _: (str, ("registered later",)))
    queue.put(Late())
    assert queue.get() == "registered later"
    del ForkingPickler._extra_reducers[Late]


def test_a_queue_is_given_to_children_alone() -> None:
    for queue in (Queue(), SimpleQueue(), JoinableQueue()):
        with pytest.raises(RuntimeError, match="inheritance"):
            pickle.dumps(queue)


def work(queue: JoinableQueue[int], results: Queue[int]) -> None:
    while (number := queue.get()) >= 0:
        results.put(number * number)
        queue.task_done()
    queue.task_done()


def test_a_join_waits_until_all_items_are_done(context: BaseContext) -> None:
    queue: JoinableQueue[int] = JoinableQueue()
    results: Queue[int] = Queue()
    workers = [context.Process(target=work, args=(queue, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for number in range(100):
        queue.put(number)
    queue.join()
    assert results.qsize() == 100
    assert sorted(results.get() for _ in range(100)) == [number**2 for number in range(100)]
    for _ in workers:
        queue.put(-1)
    queue.join()
    for worker in workers:
        worker.join()
    with pytest.raises(ValueError, match="too many times"):
        queue.task_done()


def test_threads_of_one_process_share_a_queue() -> None:
    queue: Queue[int] = Queue(10)
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.extend(iter(queue.get, -1))) for _ in range(4)]
    threads += [
        threading.Thread(target=lambda: [queue.put(number) for number in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads[4:]:
        thread.join()
    for _ in range(4):
        queue.put(-1)
    for thread in threads[:4]:
        thread.join()
    assert sorted(taken) == sorted(list(range(500)) * 4)
