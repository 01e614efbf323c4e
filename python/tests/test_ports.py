"""Ports, memory, operations, messages, queues, locks: what is asked is done."""

from __future__ import annotations

import pickle
import threading

import pytest

import ayre
from ayre import AtomicOp, Busy, Classes, Fault, Operation, Rights
from conftest import Loop

Pair = tuple[ayre.Port, ayre.Port]


def both(first: object, second: object) -> tuple[object, object]:
    """Make two calls at a time."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(first()))  # type: ignore[operator]
    thread.start()
    here = second()  # type: ignore[operator]
    thread.join()
    return found[0], here


def test_two_ports_share_memory(pair: Pair) -> None:
    near, far = pair
    assert (near.rank, near.peers, far.peers, near.size) == (0, [1], [0], 1)
    region = far.alloc(4096)
    far.share(0, region, (64, 128), Rights.READ | Rights.WRITE | Rights.NOTIFY, name=5)
    remote = near.accept_region(1, 5)
    assert (len(remote), remote.peer) == (64, 1)
    assert remote.rights == Rights.READ | Rights.WRITE | Rights.NOTIFY
    near.put(remote, 8, b"12345678", ayre.PostOptions(Classes.COMPLETER, tag=3, value=9))
    note = far.wait_notification(10.0)
    assert (note.source, note.class_, note.operation) == (0, Classes.COMPLETER, Operation.PUT)
    assert (note.tag, note.value, note.fault, note.is_declined) == (3, 9, None, False)
    assert region.read(72, 8) == b"12345678"
    with pytest.raises(ayre.RightsError) as refused:
        near.fetch_add(remote, 0, 1)
    assert refused.value.fault == Fault.RIGHTS
    with pytest.raises(IndexError):
        near.put(remote, 60, b"12345678")


def test_notifications_and_messages_are_iterated(pair: Pair) -> None:
    near, far = pair
    for value in range(5):
        near.notify(1, ayre.PostOptions(value=value))
        near.send(1, bytes([value]), tag=value)
    assert [note.value for note in far.notifications(1.0)] == list(range(5))
    assert [(one.source, one.tag, one.data) for one in far.messages(0.0)] == [
        (0, value, bytes([value])) for value in range(5)
    ]
    assert far.poll_notification() is None
    assert far.try_recv() is None


def test_atomics_return_words(loop: Loop) -> None:
    port, remote = loop.port, loop.remote
    assert port.fetch_add(remote, 8, 5) == 0
    assert port.fetch_add(remote, 8, -1) == 5
    assert port.compare_swap(remote, 8, 4, 1 << 63) == (4, True)
    assert port.compare_swap(remote, 8, 4, 0) == (1 << 63, False)
    port.put_immediate(remote, 8, -3)
    port.flush(loop.own)
    assert port.fetch(remote, 8, ayre.Atomic(AtomicOp.MIN_SIGNED, -7)) == (2**64 - 3, True)
    assert loop.region.load(8) == 2**64 - 7
    port.atomic(remote, 16, ayre.Atomic(AtomicOp.OR, 6, width=4), Classes.REQUESTER)
    assert port.wait_notification(10.0).operation == Operation.ATOMIC
    assert loop.region.atomic(16, ayre.Atomic(AtomicOp.ADD, 1)) == (6, True)
    note = ayre.Atomic(AtomicOp.COMPARE_SWAP, 1, compare=2)
    port.fetch(remote, 24, note, Classes.REQUESTER)
    assert port.wait_notification(10.0).is_declined


def test_a_revoked_grant_is_a_fault(loop: Loop) -> None:
    assert loop.port.revoke(loop.grant) is False
    with pytest.raises(ayre.ClosedError):
        loop.port.revoke(loop.grant)
    with pytest.raises(ayre.RightsError) as refused:
        loop.port.get(loop.remote, 0, bytearray(8))
    assert refused.value.fault == Fault.STALE_KEY


def test_all_reasons_for_no_room_have_a_name(pair: Pair) -> None:
    near, _ = pair
    counters = near.counters()
    # Those of streams and groups come behind those that a port counts.
    counted = [reason for reason in Busy if reason < Busy.STREAM_FULL]
    assert [counters.busy(reason) for reason in counted] == [0] * len(counted)
    with pytest.raises(ayre.InvalidError, match="no such reason"):
        counters.busy(Busy.STREAM_FULL)


def test_a_message_waits_for_room(pair: Pair) -> None:
    near, far = pair
    sent = 0
    with pytest.raises(ayre.BusyError) as busy:  # noqa: PT012 - one of the sends raises
        while True:
            near.send(1, bytes(1024))
            sent += 1
    assert busy.value.reason == Busy.MESSAGE_LANE_FULL
    assert near.counters().busy(Busy.MESSAGE_LANE_FULL) == 1
    thread = threading.Thread(target=lambda: near.send_wait(1, b"last"))
    thread.start()
    for _ in range(sent):
        assert far.recv(10.0).data == bytes(1024)
    assert far.recv(10.0).data == b"last"
    thread.join()


def test_a_message_is_received_into_a_buffer(pair: Pair) -> None:
    near, far = pair
    near.send(1, b"four", tag=8)
    with pytest.raises(ayre.TooLongError) as long:
        far.recv_into(bytearray(3), 10.0)
    assert long.value.length == 4
    into = bytearray(6)
    assert far.recv_into(into, 10.0) == (0, 8, 4)
    assert into == b"four\0\0"
    assert far.try_recv_into(into) is None


def test_queues_have_many_producers(pair: Pair) -> None:
    near, far = pair
    queue = far.create_queue(4096)
    far.share_queue(0, queue, name=2)
    remote = near.accept_queue(1, 2)
    assert queue.producers == [0]
    assert remote.record_max == queue.record_max
    for size in (1, 100, remote.record_max):
        near.enqueue_wait(remote, bytes(size))
        record = far.dequeue_wait(queue, 10.0)
        assert (record.source, record.data) == (0, bytes(size))
    near.enqueue(remote, b"again")
    with pytest.raises(ayre.TooLongError):
        far.dequeue_into(queue, bytearray(2))
    into = bytearray(8)
    assert far.dequeue_into_wait(queue, into, 10.0) == (0, 5)
    assert far.dequeue(queue) is None
    with pytest.raises(TimeoutError):
        far.dequeue_wait(queue, 0.0)
    far.remove_producer(queue, 0)
    assert queue.producers == []


def test_a_batch_is_posted_together(loop: Loop) -> None:
    batch = ayre.Batch(loop.own)
    assert loop.port.release(batch) is None
    data = bytearray(b"abc")
    batch.put(loop.remote, 0, data)
    data[:] = b"xyz"
    batch.put_immediate(loop.remote, 8, 77)
    batch.atomic(loop.remote, 16, ayre.Atomic(AtomicOp.ADD, 2))
    batch.notify(ayre.PostOptions(value=4))
    assert len(batch) == 4
    assert loop.port.release(batch) is not None
    assert loop.port.wait_notification(10.0).value == 4
    loop.port.flush(loop.own)
    assert loop.region.read(0, 3) == b"abc"
    assert (loop.region.load(8), loop.region.load(16)) == (77, 2)
    batch.put(loop.remote, len(loop.remote), b"x")
    with pytest.raises(ayre.BoundsError):
        loop.port.release(batch)
    assert loop.region.load(16) == 2


def test_locks_exclude(loop: Loop) -> None:
    first = ayre.Lock(loop.port, loop.remote, 64, processes=4)
    second = ayre.Lock(loop.port, loop.remote, 64, processes=4, mode="shared")
    with first:
        assert first.held == "exclusive"
        assert not second.try_lock("shared")
        with pytest.raises(ValueError, match="contradicts"):
            first.lock()
    assert first.held is None
    with second:
        assert first.try_lock("shared")
        assert not ayre.Lock(loop.port, loop.remote, 64, processes=4).try_lock()
        first.unlock()
    first.lock()
    first.unlock()
    with pytest.raises(ValueError, match="contradicts"):
        first.unlock()


def test_epochs_take_turns(loop: Loop) -> None:
    def step(name: str) -> bool:
        return loop.port.try_epoch_step(loop.remote, 128, name)[1]  # type: ignore[arg-type]

    assert not step("start")
    assert [step(name) for name in ("post", "start", "complete", "wait")] == [True] * 4
    with pytest.raises(ValueError, match="epoch"):
        step("pause")


def test_narrow_handles_have_less(loop: Loop) -> None:
    narrow = loop.remote.narrow(64, 128, Rights.READ)
    assert (len(narrow), narrow.rights, narrow.key) == (64, Rights.READ, loop.remote.key)
    with pytest.raises(ayre.RightsError):
        loop.port.put(narrow, 0, b"x")
    with pytest.raises(ayre.BoundsError):
        narrow.narrow(0, 65)


def test_registered_memory_is_for_mediated_peers(pair: Pair) -> None:
    near, far = pair
    region = far.register(bytes(range(64)))
    if far.mode(0) == "mediated":
        far.share(0, region)
        remote = near.accept_region(1)
        into = bytearray(64)
        far.start_engine()
        near.get(remote, 0, into)
        assert into == bytes(range(64))
    else:
        with pytest.raises(ayre.InvalidError):
            far.share(0, region)
    with pytest.raises(ValueError, match="eight"):
        far.register(b"123")


def test_the_death_of_a_peer_ends_a_wait(pair: Pair) -> None:
    near, far = pair
    near.send(1, b"last")
    near.close()
    assert far.recv(10.0).data == b"last"
    with pytest.raises(ConnectionError) as died:
        far.recv(10.0)
    assert isinstance(died.value, ayre.PeerDiedError)
    assert died.value.peer == 0
    with pytest.raises(ConnectionError):
        far.send(0, b"more")
    with pytest.raises(ayre.TimedOutError):
        far.wait_notification(0.0)


def test_ports_reach_each_other_over_a_network() -> None:
    near, far = ayre.Port(number=0), ayre.Port(number=1)
    key = "42" * 32
    addresses = far.open_net(key)
    assert near.open_net(key)
    assert both(far.accept, lambda: near.connect_net(addresses)) == (0, 1)
    near.send(1, b"over the net")
    assert far.recv(10.0).data == b"over the net"
    with pytest.raises(ValueError, match="form"):
        near.connect_net(["nowhere"])
    near.close()
    far.close()


def test_a_port_leaves_at_the_end_and_closes_after_an_exception() -> None:
    with ayre.Port() as port:
        port.connect_loopback()
    assert port.is_closed
    with pytest.raises(RuntimeError, match="within"), ayre.Port() as other:
        raise RuntimeError("within")
    assert other.is_closed
    with ayre.Port() as early:
        early.close()
    early.close()
    assert repr(early) == "<ayre.Port, closed>"


@pytest.mark.parametrize(
    "error",
    [
        ayre.BusyError("b", Busy.QUEUE_FULL),
        ayre.BoundsError("f", Fault.BOUNDS),
        ayre.PeerDeadError("d", Fault.PEER_DEAD),
        ayre.PeerDiedError("p", 7),
        ayre.TooLongError("t", 99),
        ayre.SystemCallError("s", 13),
        ayre.TimedOutError("o"),
    ],
    ids=repr,
)
def test_exceptions_go_to_other_processes(error: ayre.Error) -> None:
    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
