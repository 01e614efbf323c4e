"""Endpoints: messages by address and tag, in one process and in asyncio."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import ayre
from conftest import for_ever

Pair = tuple[ayre.Endpoint, ayre.Endpoint]


@pytest.fixture
def endpoints() -> Iterator[Pair]:
    """Give two endpoints of this host."""
    with ayre.Endpoint(local=True) as near, ayre.Endpoint(local=True) as far:
        yield near, far


def exchange(near: ayre.Endpoint, far: ayre.Endpoint, posted: ayre.Posted) -> ayre.Received | None:
    """Wait for a request, while both make progress."""
    while not posted.test():
        near.progress()
        far.progress()
    return posted.wait()


def send(near: ayre.Endpoint, far: ayre.Endpoint, *arguments: object, **named: object) -> None:
    """Send in a thread, while the other one makes progress."""
    to = near.remote(far.address)
    thread = threading.Thread(target=lambda: near.send(to, *arguments, **named))  # type: ignore[arg-type]
    thread.start()
    while thread.is_alive():
        far.progress()
    thread.join()


@pytest.mark.parametrize("length", [0, 1, 8, 1000, 5000, 1 << 20])
def test_messages_of_any_length_arrive(endpoints: Pair, length: int) -> None:
    near, far = endpoints
    data = np.arange(length, dtype=np.uint8)
    posted = far.post_receive(1 << 20, tag=7)
    send(near, far, data, tag=7)
    found = exchange(near, far, posted)
    assert found is not None
    assert (found.data, found.tag, found.length) == (data.tobytes(), 7, length)


def test_receives_take_what_matches(endpoints: Pair) -> None:
    near, far = endpoints
    send(near, far, b"first", tag=0x10)
    send(near, far, b"second", tag=0x21)
    send(near, far, b"third", tag=0x32)
    assert far.probe(tag=0x99) is None
    found = far.probe(tag=0x21)
    assert found is not None
    assert (found.length, found.data) == (6, None)
    assert far.recv(8, tag=0x30, ignored=0xF).data == b"third"
    assert far.recv(3, tag=0x21).data == b"sec"
    source = far.remote(near.address)
    assert far.recv(8, source=source).source == source


def test_a_receive_that_is_late_takes_nothing(endpoints: Pair) -> None:
    near, far = endpoints
    with pytest.raises(ayre.TimedOutError):
        far.recv(8, timeout=0.0)
    posted = far.post_receive(8)
    assert posted.cancel()
    with pytest.raises(ayre.ClosedError):
        posted.wait()
    with pytest.raises(ayre.ClosedError):
        posted.wait()
    send(near, far, b"here")
    assert far.recv(8).data == b"here"


def test_requests_that_nobody_waits_for_are_forgotten(endpoints: Pair) -> None:
    near, far = endpoints
    to = near.remote(far.address)
    posted = near.post_receive(8)
    del posted
    done = threading.Event()
    thread = threading.Thread(target=lambda: [far.progress() for _ in iter(done.is_set, True)])
    thread.start()
    for _ in range(1000):
        near.post_send(to, bytes(100))
    done.set()
    thread.join()
    for _ in range(1000):
        assert far.recv(100).length == 100


def test_an_endpoint_that_has_gone_is_a_connection_error() -> None:
    near = ayre.Endpoint(local=True)
    far = ayre.Endpoint(local=True)
    send(near, far, b"x")
    to = near.remote(far.address)
    posted = near.post_receive(8, source=to)
    far.close()
    with pytest.raises(ConnectionError):
        posted.wait(60.0)
    with pytest.raises(ConnectionError):
        for_ever(lambda: near.send(to, b"x"))
    assert near.reason(to)
    near.close()
    near.close()
    with pytest.raises(ayre.ClosedError):
        near.remote(near.address)


def test_one_thread_at_a_time(endpoints: Pair) -> None:
    near, far = endpoints
    to = near.remote(far.address)
    thread = threading.Thread(target=lambda: far.recv(8))
    thread.start()
    with pytest.raises(ayre.InUseError):
        for_ever(far.progress)
    near.send(to, b"end")
    thread.join()
    with pytest.raises(ayre.InvalidError):
        near.remote("no address")


def test_a_forked_child_may_not_use_it(endpoints: Pair) -> None:
    near, _ = endpoints
    child = os.fork()
    if child == 0:
        code = 1
        try:
            near.progress()
        except ayre.InheritedError:
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_requests_are_awaited(endpoints: Pair) -> None:
    near, far = endpoints

    async def serve() -> None:
        for _ in range(100):
            found = await far.post_receive(1 << 16, tag=1)
            assert found is not None
            assert found.data is not None
            assert found.source is not None
            await far.post_send(found.source, found.data[::-1], tag=2)

    async def ask() -> None:
        to = near.remote(far.address)
        for number in range(100):
            data = bytes(range(number))
            await near.post_send(to, data, tag=1, timeout=0.0)
            found = await near.post_receive(1 << 16, tag=2)
            assert found is not None
            assert found.data == data[::-1]

    async def both() -> None:
        await asyncio.gather(serve(), ask())

    send(near, far, b"connect")
    far.recv(8)
    send(far, near, b"connect")
    near.recv(8)
    asyncio.run(asyncio.wait_for(both(), 60))
