"""Active messages: handlers, replies, failures, exceptions, and the port of a messenger."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

import ayre
from conftest import Loop

Pair = tuple[ayre.Port, ayre.Port]
Two = tuple[ayre.Messenger, ayre.Messenger]


@pytest.fixture
def two(pair: Pair) -> Two:
    """Give two messengers that know each other's peers, 0 and 1."""
    near, far = pair
    return ayre.Messenger(near), ayre.Messenger(far)


def until(messenger: ayre.Messenger, found: list[Any], count: int = 1) -> None:
    """Wait until handlers have found something."""
    while len(found) < count:
        messenger.wait(60.0)


def test_handlers_run_and_reply(two: Two) -> None:
    near, far = two
    sums: list[Any] = []

    @far.handler("add")
    def add(call: ayre.Call, first: int, second: int, payload: bytes) -> None:
        assert call.source == 0
        call.reply("sum", first + second, payload=payload[::-1])

    @near.handler("sum")
    def total(call: ayre.Call, value: int, payload: bytes) -> None:
        sums.append((call.source, value, payload))

    assert (add.arguments, total.arguments) == (2, 1)
    for handler in ("add", add, add.id):
        near.call(1, handler, 3, -4, payload=b"abc")
        assert far.wait(60.0) == 1
        until(near, sums)
        assert sums.pop() == (1, 2**64 - 1, b"cba")
    assert far.is_announced(0, "sum", 1)
    assert not far.is_announced(0, "sum", 2)


@pytest.mark.parametrize("size", [0, 1, 1000, 1025, 300_000])
@pytest.mark.parametrize("count", [0, 8])
def test_calls_have_arguments_and_payloads_of_any_size(two: Two, size: int, count: int) -> None:
    near, far = two
    found: list[Any] = []
    payload = bytes(range(256)) * (size // 256) + bytes(range(size % 256))

    @far.handler(40, arguments=count)
    def take(_call: ayre.Call, *given: Any) -> None:
        found.append((given[:-1], given[-1]))

    thread = threading.Thread(
        target=lambda: near.call(1, 40, *range(count), payload=bytearray(payload))
    )
    thread.start()
    until(far, found)
    thread.join()
    assert found == [(tuple(range(count)), payload)]


def test_an_exception_ends_the_call_that_ran_the_handler(two: Two) -> None:
    near, far = two

    @far.handler("fail")
    def fail(call: ayre.Call, payload: bytes) -> None:
        call.reply("never")
        raise LookupError(payload.decode())

    near.call(1, fail, payload=b"first")
    with pytest.raises(LookupError, match="first"):
        far.wait(60.0)
    assert [(one.peer, one.cause, one.is_ours) for one in far.failures()] == [(0, "failed", False)]


def test_the_caller_learns_of_failures(two: Two) -> None:
    near, far = two

    @far.handler("fail")
    def fail(_call: ayre.Call, _payload: bytes) -> None:
        raise LookupError

    near.call(1, "fail")
    near.call(1, "nobody", 1)
    near.call(1, "fail", payload=b"x" * 100)
    raised = 0
    causes: list[tuple[str, bool]] = []
    while len(causes) < 3:
        try:
            far.poll()
        except LookupError:
            raised += 1
        near.poll()
        causes += [(one.cause, one.is_ours) for one in near.failures()]
    assert causes == [("failed", True), ("unknown", True), ("failed", True)]
    assert raised in (1, 2)


def test_several_exceptions_lose_none(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = two
    others: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: others.append(str(found.exc_value)))

    @far.handler("fail")
    def fail(_call: ayre.Call, number: int, _payload: bytes) -> None:
        raise LookupError(str(number))

    for number in range(8):
        near.call(1, fail, number)
    raised: list[str] = []
    while len(raised) + len(others) < 8:
        try:
            far.poll()
        except LookupError as error:
            raised.append(str(error))
    assert sorted(raised + others) == [str(number) for number in range(8)]


def test_a_call_ends_with_its_handler(two: Two) -> None:
    near, far = two
    kept: list[ayre.Call] = []

    @far.handler("keep")
    def keep(call: ayre.Call, _payload: bytes) -> None:
        with pytest.raises(ayre.InUseError):
            far.poll()
        with pytest.raises(ayre.InUseError):
            _ = far.port.rank
        kept.append(call)

    near.call(1, "keep")
    until(far, kept)
    with pytest.raises(ayre.ClosedError):
        kept[0].reply("keep")
    assert kept[0].source == 0


def test_a_reply_that_cannot_be_sent_raises(two: Two) -> None:
    near, far = two

    @far.handler("stray")
    def stray(call: ayre.Call, _payload: bytes) -> None:
        call.send(77, "anything")

    near.call(1, "stray")
    with pytest.raises(ayre.ArgumentError) as refused:
        far.wait(60.0)
    assert refused.value.fault == ayre.Fault.FOREIGN_HANDLE


def test_bad_calls_are_refused(two: Two) -> None:
    near, _ = two
    with pytest.raises(ValueError, match="8 arguments"):
        near.call(1, "many", *range(9))
    with pytest.raises(ayre.ArgumentError):
        near.call(9, "nobody")
    with pytest.raises(ayre.ArgumentError):
        near.try_call(1, "long", payload=bytes(1025))
    with pytest.raises(AttributeError):
        near.call(1, 1.5)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        near.call(1, "word", 1 << 64)
    with pytest.raises(ValueError, match="id"):
        near.call(1, 0)
    with pytest.raises(ValueError, match="name"):
        near.handler("")(lambda call, payload: None)
    near.handler("twice")(lambda call, payload: None)
    with pytest.raises(ValueError, match="already"):
        near.handler("twice")(lambda call, payload: None)
    with pytest.raises(ValueError, match="arguments"):
        near.handler("any")(lambda *words: None)
    with pytest.raises(ValueError, match="landing"):
        ayre.Messenger(ayre.Port(), landing=5)
    with pytest.raises(TimeoutError):
        near.wait(0.0)


def test_the_port_of_a_messenger_keeps_all_but_messages(two: Two) -> None:
    near, far = two
    for refused in (near.port.try_recv, near.port.recv, lambda: near.port.send(1, b"x")):
        with pytest.raises(ValueError, match="Messenger"):
            refused()
    region = far.port.alloc(64)
    far.port.share(0, region)
    near.port.put(near.port.accept_region(1), 0, b"data", ayre.Classes.COMPLETER)
    assert far.port.wait_notification(60.0).source == 0
    assert region.read(0, 4) == b"data"
    assert repr(near) == "<ayre.Messenger of <ayre.Port 0 of 1, 1 peers>>"
    with pytest.raises(ValueError, match="name"):
        near.group("")
    near.port.close()
    with pytest.raises(ayre.ClosedError):
        near.poll()


def test_a_call_waits_for_room(two: Two) -> None:
    near, far = two
    found: list[int] = []

    @far.handler("count")
    def count(_call: ayre.Call, number: int, _payload: bytes) -> None:
        found.append(number)

    with pytest.raises(ayre.BusyError):  # noqa: PT012 - one of the calls raises
        for number in range(10**6):
            near.try_call(1, count, number, payload=bytes(512))
    sent = number
    thread = threading.Thread(target=lambda: near.call(1, count, sent, payload=bytes(512)))
    thread.start()
    until(far, found, sent + 1)
    thread.join()
    assert found == list(range(sent + 1))


def test_a_sync_waits_for_all(two: Two) -> None:
    near, far = two
    found: list[int] = []
    far.handler("note")(lambda call, number, payload: found.append(number))
    for number in range(10):
        near.call(1, "note", number)
    thread = threading.Thread(target=near.sync)
    thread.start()
    far.sync()
    thread.join()
    assert found == list(range(10))
    assert near.is_announced(1, "note", 1)
    near.flush()


def test_a_task_serves(two: Two) -> None:
    near, far = two
    sums: list[int] = []

    @far.handler("double")
    def double(call: ayre.Call, number: int, _payload: bytes) -> None:
        if number == 99:
            raise LookupError("99")
        call.reply("sum", 2 * number)

    near.handler("sum")(lambda call, number, payload: sums.append(number))

    async def work() -> None:
        tasks = [asyncio.create_task(one.serve()) for one in (near, far)]
        for number in range(50):
            near.call(1, "double", number)
            while len(sums) <= number:
                await asyncio.sleep(0)
        near.call(1, "double", 99)
        with pytest.raises(LookupError, match="99"):
            await tasks[1]
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    asyncio.run(work())
    assert sums == [2 * number for number in range(50)]


def test_a_port_calls_its_own_handlers(loop: Loop) -> None:
    messenger = ayre.Messenger(loop.port)
    found: list[bytes] = []
    messenger.handler("own")(lambda call, payload: found.append(payload))
    messenger.call(loop.own, "own", payload=b"to myself")
    until(messenger, found)
    assert found == [b"to myself"]


def test_the_death_of_a_peer_ends_a_wait(two: Two) -> None:
    near, far = two
    near.port.close()
    with pytest.raises(ayre.PeerDiedError):
        far.wait(60.0)
    with pytest.raises(ConnectionError):
        far.call(0, "anything")
