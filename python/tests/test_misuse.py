"""Calls that no correct program makes get an exception that says what to do."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import ayre
from conftest import Loop


def foreign() -> Loop:
    """Give what another port has given out."""
    return Loop(ayre.Port())


def test_handles_of_another_port_are_refused(loop: Loop) -> None:
    other, port = foreign(), loop.port
    with pytest.raises(ayre.ArgumentError) as refused:
        port.put(loop.remote, 0, other.region.slice(0, 8))
    assert refused.value.fault == ayre.Fault.FOREIGN_HANDLE
    calls: list[Callable[[], object]] = [
        lambda: port.share(loop.own, other.region),
        lambda: port.deregister(other.region),
        lambda: port.revoke(other.grant),
        lambda: port.put(other.remote, 0, b"x"),
        lambda: port.get(other.remote, 0, bytearray(1)),
        lambda: port.share_queue(loop.own, other.port.create_queue(64)),
        lambda: ayre.Lock(port, other.remote).try_lock(),
    ]
    for call in calls:
        with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
            call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda it: it.port.send(it.own, b""), ValueError),
        (lambda it: it.port.send(it.own, bytes(1025)), ValueError),
        (lambda it: it.port.send(9, b"x"), ValueError),
        (lambda it: it.port.send(-1, b"x"), ValueError),
        (lambda it: it.port.send(1 << 70, b"x"), ValueError),
        (lambda it: it.port.send("0", b"x"), TypeError),
        (lambda it: it.port.send(None, b"x"), TypeError),
        (lambda it: it.port.put(it.remote, 1 << 16, b"x"), IndexError),
        (lambda it: it.port.put(it.remote, (1 << 64) - 1, b"x"), IndexError),
        (lambda it: it.port.put(it.remote, -1, b"x"), OverflowError),
        (lambda it: it.port.put(None, 0, b"x"), TypeError),
        (lambda it: it.port.put(it.region, 0, b"x"), TypeError),
        (lambda it: it.port.put(it.remote, 0, b"x", 64), ValueError),
        (lambda it: it.port.put(it.remote, 0, b"x", "all"), TypeError),
        (lambda it: it.port.put(it.remote, 0, b"x" * 8, rows=ayre.Strided(8, 9, 8, 8)), IndexError),
        (lambda it: it.port.put(it.remote, 0, b"x" * 8, rows=ayre.Strided(4, 2, 4, 1)), ValueError),
        (lambda it: it.port.get(it.remote, 0, bytearray(1 << 17)), IndexError),
        (lambda it: it.port.put_immediate(it.remote, 4, 0), ValueError),
        (lambda it: it.port.put_immediate(it.remote, 0, 1 << 64), OverflowError),
        (lambda it: it.port.fetch_add(it.remote, 3, 1), ValueError),
        (lambda it: ayre.Atomic(0, 1), ValueError),
        (lambda it: ayre.Atomic(12, 1), ValueError),
        (lambda it: ayre.Atomic(1, 1, width=2), ValueError),
        (lambda it: it.port.alloc(0), ValueError),
        (lambda it: it.port.alloc(-1), OverflowError),
        (lambda it: it.port.alloc(1 << 62), OSError),
        (lambda it: it.port.share(it.own, it.region, (4, 8)), ValueError),
        (lambda it: it.port.share(it.own, it.region, (8, 1 << 20)), ValueError),
        (lambda it: it.port.share(it.own, it.region, (16, 8)), ValueError),
        (lambda it: it.port.share(it.own, it.region, rights=64), ValueError),
        (lambda it: it.port.share(5, it.region), ValueError),
        (lambda it: it.region.read(0, 1 << 20), IndexError),
        (lambda it: it.region.read((1 << 64) - 1, 8), IndexError),
        (lambda it: it.region.write((1 << 16) - 4, b"12345678"), IndexError),
        (lambda it: it.region.load(4), ValueError),
        (lambda it: it.region.load(1 << 16), IndexError),
        (lambda it: it.region.slice(8, 4), IndexError),
        (lambda it: it.region.slice(0, (1 << 16) + 1), IndexError),
        (lambda it: it.region.atomic(2, ayre.Atomic(1, 1)), ValueError),
        (lambda it: it.region.array(1 << 20), ValueError),
        (lambda it: it.region.array((1 << 40, 1 << 40)), IndexError),
        (lambda it: it.region.array(4, object), ValueError),
        (lambda it: it.region.array(4, offset=1 << 17), ValueError),
        (lambda it: it.port.create_queue(0), ValueError),
        (lambda it: it.port.create_queue(1 << 40), ValueError),
        (lambda it: it.port.recv(-1), ValueError),
        (lambda it: it.port.recv(float("nan")), ValueError),
        (lambda it: it.port.recv("soon"), TypeError),
        (lambda it: it.port.recv_into(b"12345678", 0), BufferError),
        (lambda it: it.port.listen("/nonexistent/port"), OSError),
        (lambda it: it.port.connect("/nonexistent/port"), OSError),
        (lambda it: it.port.accept(), ValueError),
        (lambda it: it.port.open_net("short"), ValueError),
        (lambda it: it.port.disconnect(9), ValueError),
        (lambda it: it.port.mode(9), ValueError),
        (lambda it: it.port.flush(9), ValueError),
        (lambda it: it.port.counters().busy(9), ValueError),
        (lambda it: it.port.counters().faults(15), ValueError),
        (lambda it: it.port.release(ayre.Batch(9)), ValueError),
        (lambda it: ayre.Port(mode="fast"), ValueError),
        (lambda it: ayre.Port(spin="fast"), ValueError),
        (lambda it: ayre.Port(setup_timeout=-1), ValueError),
        (lambda it: ayre.Port(linger=1e300), ValueError),
        (lambda it: ayre.Port(number=1 << 16), OverflowError),
        (lambda it: ayre.Lock(it.port, it.remote, mode="both"), ValueError),
        (lambda it: ayre.Message(), TypeError),
        (lambda it: ayre.RemoteRegion(), TypeError),
    ],
)
def test_wrong_arguments_are_named(
    loop: Loop, call: Callable[[Loop], object], error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        call(loop)
    assert str(raised.value)


def test_a_closed_port_says_so(loop: Loop) -> None:
    port = loop.port
    port.close()
    calls: list[Callable[[], object]] = [
        port.recv,
        port.accept,
        port.barrier,
        port.leave,
        lambda: port.send(0, b"x"),
        lambda: port.put(loop.remote, 0, b"x"),
        lambda: port.alloc(8),
        lambda: port.rank,
        lambda: next(port.messages()),
    ]
    for call in calls:
        with pytest.raises(ayre.ClosedError):
            call()
    loop.region.write(0, b"memory stays")
    assert loop.region.read(0, 12) == b"memory stays"


def test_threads_that_share_a_port_get_an_exception(pair: tuple[ayre.Port, ayre.Port]) -> None:
    near, far = pair
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(near.recv().data))
    thread.start()
    is_refused = False
    while not is_refused:
        try:
            near.poll_notification()
        except ayre.InUseError:
            is_refused = True
    assert repr(near) == "<ayre.Port, in use>"
    with pytest.raises(ayre.InUseError):
        near.close()
    far.send(0, b"end")
    thread.join()
    assert found == [b"end"]
    assert near.poll_notification() is None


def test_objects_end_in_any_order() -> None:
    for order in range(4):
        loop = Loop(ayre.Port())
        parts = [loop.region, loop.remote, loop.grant, loop.port]
        array = loop.region.array(8)
        del loop
        parts = parts[order:] + parts[:order]
        while parts:
            parts.pop()
            gc.collect()
        array[:] = 1


def test_many_regions_leave_nothing_behind() -> None:
    port = ayre.Port()

    def in_use() -> tuple[int, int, int]:
        """Count descriptors, mappings, and kibibytes of memory."""
        maps, status = Path("/proc/self/maps").read_text(), Path("/proc/self/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        return len(os.listdir("/proc/self/fd")), maps.count("\n"), resident

    def use() -> None:
        region = port.alloc(4096)
        region.array(8)[:] = 1
        port.deregister(region)

    for _ in range(100):
        use()
    before = in_use()
    for _ in range(100_000):
        use()
    after = in_use()
    assert after[0] == before[0]
    assert after[1] <= before[1] + 16
    assert after[2] <= before[2] + 8192
