"""Waits in an event loop: messages, notifications, records, cancelled tasks, ports that close."""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

import ayre

Pair = tuple[ayre.Port, ayre.Port]
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, for a minute at most."""

    async def limited() -> T:
        return await asyncio.wait_for(work, 60.0)

    return asyncio.run(limited())


async def rested(port: ayre.Port) -> None:
    """Wait until the port rests for the tasks that wait at it."""
    while port._watcher is None or not port._watcher.is_resting:
        await asyncio.sleep(0)


def test_a_task_waits_for_messages_and_notifications(pair: Pair) -> None:
    near, far = pair

    async def work() -> None:
        message = asyncio.create_task(near.recv_async())
        note = asyncio.create_task(near.notification())
        await rested(near)
        far.send(0, b"hello", tag=4)
        got = await message
        assert (got.source, got.tag, got.data) == (1, 4, b"hello")
        await rested(near)
        far.notify(0, ayre.PostOptions(value=9))
        assert (await note).value == 9
        far.send(0, b"there already")
        assert (await near.recv_async()).data == b"there already"
        assert near._watcher is None

    run(work())


def test_ports_of_one_loop_talk(pair: Pair) -> None:
    near, far = pair

    async def answer() -> None:
        async for message in far.messages():
            far.send(0, message.data + b"!")
            if message.data == b"end":
                return

    async def work() -> None:
        server = asyncio.create_task(answer())
        for number in range(100):
            near.send(1, b"%d" % number)
            assert (await near.recv_async()).data == b"%d!" % number
        near.send(1, b"end")
        await server

    run(work())


def test_iterators_end_with_their_timeout(pair: Pair) -> None:
    near, far = pair

    async def work() -> None:
        for value in range(3):
            far.send(0, bytes([value]))
            far.notify(0, ayre.PostOptions(value=value))
        assert [one.data async for one in near.messages(0.0)] == [b"\0", b"\1", b"\2"]
        assert [one.value async for one in near.notifications(0.01)] == [0, 1, 2]

    run(work())


def test_several_tasks_share_the_messages_of_a_port(pair: Pair) -> None:
    near, far = pair
    found: list[int] = []

    async def take() -> None:
        while True:
            found.append(int.from_bytes((await near.recv_async()).data, "little"))

    async def work() -> None:
        tasks = [asyncio.create_task(take()) for _ in range(5)]
        await rested(near)
        for number in range(300):
            while True:
                try:
                    far.send(0, number.to_bytes(2, "little"))
                    break
                except ayre.BusyError:
                    await asyncio.sleep(0)
        while len(found) < 300:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work())
    assert sorted(found) == list(range(300))
    assert near._watcher is None


@pytest.mark.parametrize("is_woken", [False, True])
def test_a_cancelled_task_loses_nothing(pair: Pair, is_woken: bool) -> None:
    near, far = pair

    async def work() -> None:
        first = asyncio.create_task(near.recv_async())
        second = asyncio.create_task(near.recv_async())
        await rested(near)
        if is_woken:
            # The loop wakes the tasks; the first one is cancelled before it runs.
            far.send(0, b"kept")
            near._watcher._come()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        if not is_woken:
            far.send(0, b"kept")
        assert (await second).data == b"kept"

    run(work())


def test_records_wake_a_task(pair: Pair) -> None:
    near, far = pair
    queue = near.create_queue(4096)
    near.share_queue(1, queue)
    remote = far.accept_queue(0)

    async def work() -> None:
        record = asyncio.create_task(near.dequeue_async(queue))
        await rested(near)
        far.enqueue(remote, b"record")
        assert (await record).data == b"record"

    run(work())


def test_a_death_ends_the_wait_of_a_task(pair: Pair) -> None:
    near, far = pair

    async def work() -> None:
        task = asyncio.create_task(near.recv_async())
        await rested(near)
        far.close()
        with pytest.raises(ayre.PeerDiedError) as died:
            await task
        assert died.value.peer == 1

    run(work())


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_port_that_closes_ends_the_waits_of_tasks(pair: Pair, is_elsewhere: bool) -> None:
    near, _ = pair

    async def work() -> None:
        tasks = [asyncio.create_task(near.recv_async()) for _ in range(3)]
        await rested(near)
        if is_elsewhere:
            await asyncio.to_thread(near.close)
        else:
            near.close()
        for task in tasks:
            with pytest.raises(ayre.ClosedError):
                await task
        with pytest.raises(ayre.ClosedError):
            await near.recv_async()

    run(work())


def test_one_loop_waits_at_a_port(pair: Pair) -> None:
    near, far = pair
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            run(near.recv_async())
        except ayre.InUseError as error:
            refused.append(error)

    async def work() -> None:
        task = asyncio.create_task(near.recv_async())
        await rested(near)
        await asyncio.to_thread(elsewhere)
        far.send(0, b"here")
        assert (await task).data == b"here"

    run(work())
    assert len(refused) == 1
    # After the first loop another one may wait.
    far.send(0, b"again")
    assert run(near.recv_async()).data == b"again"


def test_the_loop_sleeps_though_nobody_takes_what_has_come(pair: Pair) -> None:
    near, far = pair

    async def work() -> None:
        far.send(0, b"untaken")
        task = asyncio.create_task(near.notification())
        await rested(near)
        far.notify(0, ayre.PostOptions(ayre.Classes.COMPLETER, tag=5))
        while not task.done():
            far.progress()
            await asyncio.sleep(0)
        assert (await task).tag == 5
        far.notify(0, ayre.PostOptions(ayre.Classes.COMPLETER, tag=6))
        assert (await near.recv_async()).data == b"untaken"
        waiting = asyncio.create_task(near.recv_async())
        await rested(near)
        far.send(0, b"next")
        assert (await waiting).data == b"next"

    run(work())
    assert near.wait_notification(60.0).tag == 6


def test_a_program_sleeps_at_the_descriptor(pair: Pair) -> None:
    near, far = pair
    while not near.rest():
        pass
    assert select.select([near], [], [], 0.0)[0] == []
    thread = threading.Thread(target=far.send, args=(0, b"ring"))
    thread.start()
    assert select.select([near], [], [], 60.0)[0] == [near]
    near.wake()
    assert near.recv(10.0).data == b"ring"
    thread.join()
