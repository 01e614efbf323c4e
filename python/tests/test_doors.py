"""Channels, streams, multicast: messengers of one process, of which the far ones run in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import ayre
from conftest import for_ever

Pair = tuple[ayre.Messenger, ayre.Messenger]


@pytest.fixture
def messengers(pair: tuple[ayre.Port, ayre.Port]) -> Pair:
    """Give two messengers, 0 and 1."""
    near, far = pair
    return ayre.Messenger(near), ayre.Messenger(far)


def beside(near: ayre.Messenger, far: ayre.Messenger, work: Callable[[], object]) -> None:
    """Do the work, while the far messenger runs handlers in a thread."""
    is_done = threading.Event()

    def serve() -> None:
        while not is_done.is_set():
            far.poll()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        work()
    finally:
        is_done.set()
        thread.join()


def until(near: ayre.Messenger, far: ayre.Messenger, holds: Callable[[], bool]) -> None:
    """Poll both messengers until a condition holds."""
    while not holds():
        near.poll()
        far.poll()


# Channels.


def test_messages_of_a_channel_come_in_order(messengers: Pair) -> None:
    near, far = messengers
    found: list[tuple[int, bytes]] = []

    @far.handler("note")
    def note(call: ayre.Call, number: int, payload: bytes) -> None:
        found.append((number, payload))

    by = near.channel(3, priority=2, weight=4, room=1 << 16)
    far.channel(3)
    for number in range(40):
        by.call(1, "note", number, payload=np.full(number, number, np.uint8))
    until(near, far, lambda: len(found) == 40)
    assert found == [(number, bytes([number]) * number) for number in range(40)]
    assert (by.number, by.messenger is near, repr(by)) == (3, True, "<ayre.Channel 3>")


def test_a_held_channel_delays_no_other(messengers: Pair) -> None:
    near, far = messengers
    found: list[int] = []

    @far.handler("note")
    def note(call: ayre.Call, number: int, payload: bytes) -> None:
        found.append(number)

    by, there = near.channel(1, room=1 << 12), far.channel(1)
    there.hold()
    sent = 0

    def send() -> None:
        nonlocal sent
        by.try_call(1, "note", sent, payload=bytes(500))
        far.poll()
        sent += 1

    with pytest.raises(ayre.BusyError) as busy:
        for_ever(send)
    assert busy.value.reason == ayre.Busy.CHANNEL_FULL
    assert by.backlog(1) > 0
    near.call(1, "note", 10**6)
    until(near, far, lambda: found == [10**6])
    there.release()
    until(near, far, lambda: len(found) == sent + 1)
    assert found == [10**6, *range(sent)]


def test_a_handler_replies_by_a_channel(messengers: Pair) -> None:
    near, far = messengers
    found: list[bytes] = []
    by = near.channel(9)
    far.channel(9)

    @near.handler("answer")
    def answer(call: ayre.Call, payload: bytes) -> None:
        found.append(payload)

    @far.handler("ask")
    def ask(call: ayre.Call, payload: bytes) -> None:
        call.reply("answer", payload=payload * 2, channel=9)
        call.send(0, "answer", payload=b"last", channel=by)

    near.call(1, "ask", payload=b"ab")
    until(near, far, lambda: len(found) == 2)
    assert found == [b"abab", b"last"]


@pytest.mark.parametrize("options", [{"number": 0}, {"priority": 8}, {"weight": 0}])
def test_a_channel_has_limits(messengers: Pair, options: dict[str, int]) -> None:
    near, _ = messengers
    with pytest.raises(ayre.InvalidError):
        near.channel(**{"number": 1, **options})


def test_what_a_handler_sends_is_sent_though_it_raises(messengers: Pair) -> None:
    near, far = messengers
    found: list[bytes] = []

    @near.handler("answer")
    def answer(call: ayre.Call, payload: bytes) -> None:
        found.append(payload)

    kept: list[ayre.Call] = []

    @far.handler("ask")
    def ask(call: ayre.Call, payload: bytes) -> None:
        call.reply("answer", payload=b"first")
        kept.append(call)
        raise KeyError("why")

    near.call(1, "ask")
    with pytest.raises(KeyError):
        for_ever(far.poll)
    until(near, far, lambda: bool(found))
    assert found == [b"first"]
    with pytest.raises(ayre.ClosedError):
        kept[0].reply("answer")


def test_a_call_is_of_the_thread_of_its_handler(messengers: Pair) -> None:
    near, far = messengers
    raised: list[BaseException] = []

    @far.handler("ask")
    def ask(call: ayre.Call, payload: bytes) -> None:
        def other() -> None:
            try:
                call.reply("answer")
            except ayre.ClosedError as error:
                raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    near.call(1, "ask")
    until(near, far, lambda: bool(raised))


# Streams.


def test_items_go_through_stages(messengers: Pair) -> None:
    near, far = messengers
    found: list[bytes | None] = []
    told: list[object] = []

    @far.stage("double")
    def double(flow: ayre.Flow, item: bytes | None) -> None:
        told.append((flow.arguments, flow.end))
        if item is not None:
            flow.emit(item * 2)
            flow.emit(np.frombuffer(item, np.uint8))

    @near.stage("keep")
    def keep(flow: ayre.Flow, item: bytes | None) -> None:
        found.append(item)

    def work() -> None:
        with near.stream((1, "double", 7, -1), (0, "keep")) as stream:
            stream.push(b"ab")
            stream.push(np.arange(3, dtype=np.uint8))
        stream.close()
        with pytest.raises(ayre.ClosedError):
            stream.push(b"late")

    beside(near, far, work)
    assert found == [b"abab", b"ab", b"\0\1\2\0\1\2", b"\0\1\2", None]
    assert told[0] == ([7, 2**64 - 1, 0, 0], None)
    assert told[-1] == ([7, 2**64 - 1, 0, 0], "closed")


def test_a_stage_that_raises_ends_its_stream(messengers: Pair) -> None:
    near, far = messengers
    ends: list[object] = []

    @far.stage("break")
    def fail(flow: ayre.Flow, item: bytes | None) -> None:
        if item is not None:
            raise KeyError("why")
        ends.append(flow.end)

    raised: list[BaseException] = []

    def work() -> None:
        stream = near.stream((1, "break"))
        with pytest.raises(ayre.StreamFailedError) as failed:
            for_ever(lambda: stream.push(b"item"))
        stream.cancel()
        assert (failed.value.reason, failed.value.peer) == (ayre.FailureReason.STAGE_FAILED, 1)

    def serve() -> None:
        while not is_done.is_set():
            try:
                far.poll()
            except KeyError as error:
                raised.append(error)

    is_done = threading.Event()
    thread = threading.Thread(target=serve)
    thread.start()
    work()
    is_done.set()
    thread.join()
    assert len(raised) == 1


def test_an_exception_cancels_a_stream(messengers: Pair) -> None:
    near, far = messengers
    ends: list[ayre.StreamFailedError | None] = []

    @far.stage("sink")
    def sink(flow: ayre.Flow, item: bytes | None) -> None:
        if item is None:
            assert flow.end == "failed"
            ends.append(flow.failure)

    def work() -> None:
        with pytest.raises(KeyError), near.stream((1, "sink")) as stream:
            {}[stream.push(b"item")]
        while not ends:
            near.poll()

    beside(near, far, work)
    assert ends[0] is not None
    assert ends[0].reason == ayre.FailureReason.CANCELLED


def test_streams_refuse_what_cannot_be(messengers: Pair) -> None:
    near, far = messengers

    is_done = threading.Event()
    far.let_peers_set_entries(False)
    thread = threading.Thread(target=lambda: [far.poll() for _ in iter(is_done.is_set, True)])
    thread.start()
    with pytest.raises(ayre.EntryRefusedError) as refused:
        near.set_entry(1, (0, 5), ayre.Entry(1, 6, "sink", [1, 2], once=True))
    is_done.set()
    thread.join()
    assert (refused.value.reason, refused.value.peer) == (ayre.EntryAnswer.DENIED, 1)
    with pytest.raises(ayre.StreamFailedError):
        near.open_stream(77)
    with pytest.raises(ayre.InvalidError):
        near.stream((1,))
    with pytest.raises(ayre.InvalidError):
        near.stream((1, "sink", 1, 2, 3, 4, 5))
    near.stage("own")(lambda flow, item: None)
    stream = near.stream((0, "own"))
    with pytest.raises(ayre.ArgumentError):
        stream.push(bytes((1 << 20) + 1))
    stream.cancel()


# Multicast.


def test_members_get_the_same_messages_and_views(messengers: Pair) -> None:
    near, far = messengers
    views: dict[int, list[tuple[int, ...] | None]] = {0: [], 1: []}
    found: dict[int, list[int]] = {0: [], 1: []}

    def handlers(rank: int, messenger: ayre.Messenger) -> Callable[[ayre.View | None], None]:
        @messenger.handler("note")
        def note(call: ayre.Call, number: int, payload: bytes) -> None:
            found[rank].append(number)

        return lambda view: views[rank].append(tuple(view.members) if view else None)

    watch, other = handlers(0, near), handlers(1, far)
    first = near.found("tide", watch)
    joined: list[ayre.Membership] = []

    def join() -> None:
        joined.append(far.join("tide", 0, other))
        for number in range(100, 150):
            joined[0].send("note", number)
        while len(found[1]) < 100:
            far.poll()

    thread = threading.Thread(target=join)
    thread.start()
    while first.members != [0, 1]:
        near.poll()
    for number in range(50):
        first.send("note", number, payload=bytes(2000))
    while len(found[0]) < 100:
        near.poll()
    thread.join()
    assert found[0] == found[1]
    assert sorted(found[0]) == [*range(50), *range(100, 150)]
    assert (views[0], views[1]) == ([(0, 1)], [(0, 1)])
    beside(near, far, first.leave)
    assert (first.members, views[0]) == ([], [(0, 1), (1,), None])
    with pytest.raises(ayre.NoMemberError):
        first.send("note", 1)


def test_a_handler_sends_to_its_group(messengers: Pair) -> None:
    near, far = messengers
    found: list[bytes] = []
    member = near.found("own")

    @near.handler("all")
    def all_of(call: ayre.Call, payload: bytes) -> None:
        found.append(payload)

    @near.handler("ask")
    def ask(call: ayre.Call, payload: bytes) -> None:
        call.multicast(member, "all", payload=payload)

    far.call(0, "ask", payload=b"to all")
    until(near, far, lambda: found == [b"to all"])
    beside(far, near, lambda: far.send_through("own", 0, "all", payload=b"from outside"))
    until(near, far, lambda: found == [b"to all", b"from outside"])


def test_a_stranger_is_refused(messengers: Pair) -> None:
    near, far = messengers

    def work() -> None:
        with pytest.raises(ayre.RefusedError) as refused:
            near.join("nothing", 1)
        assert refused.value.peer == 1
        with pytest.raises(ayre.UnreachableError):
            near.join("nothing", 17)
        with pytest.raises(ayre.InvalidError):
            near.found("x", window=0)

    beside(near, far, work)
