"""Collectives on arrays: results, dtypes, strides, started ones, and errors."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ayre

COUNT = 3
NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[list[ayre.Group]]:
    """Give a group of three messengers, at each of its members."""
    ports = [ayre.Port(number=number, spin="shared", linger=0.05) for number in range(COUNT)]
    for near in range(COUNT):
        path = os.path.relpath(tmp_path / str(near))
        ports[near].listen(path)
        for far in range(near + 1, COUNT):
            waiter = threading.Thread(target=ports[near].accept)
            waiter.start()
            ports[far].connect(path)
            waiter.join()
    yield [ayre.Messenger(port).group("three") for port in ports]
    for port in ports:
        port.close()


def each(groups: list[ayre.Group], act: Callable[[int, ayre.Group], Any]) -> list[Any]:
    """Let all members act at a time. Raise the exception of the first one that has failed."""
    found: list[Any] = [None] * len(groups)

    def run(own: int) -> None:
        try:
            found[own] = act(own, groups[own])
        except BaseException as error:
            found[own] = error

    threads = [threading.Thread(target=run, args=(own,)) for own in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found


@pytest.mark.parametrize("size", [0, 1, 100, 40_000])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_arrays_of_all_dtypes_are_summed(groups: list[ayre.Group], dtype: str, size: int) -> None:
    def act(own: int, group: ayre.Group) -> Any:
        array = (np.arange(size) % 40 + own).astype(dtype)
        assert group.allreduce(array) is array
        return array

    expected = (np.arange(size) % 40 * 3 + 3).astype(dtype)
    for array in each(groups, act):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("min", 1), ("max", 6), ("sum", 10), ("prod", 18), ("lor", 1), ("land", 1),
        ("bor", 7), ("band", 0), ("lxor", 1), ("bxor", 4),
    ],
)  # fmt: skip
def test_numbers_are_combined(groups: list[ayre.Group], op: Any, expected: int) -> None:
    given = [1, 3, 6]
    found = each(groups, lambda own, group: group.allreduce(np.array([given[own]]), op)[0])
    assert found == [expected] * COUNT


VIEWS: dict[str, Callable[[Any], Any]] = {
    "every other": lambda whole: whole[::2],
    "backwards": lambda whole: whole[::-1],
    "a column": lambda whole: whole.reshape(6, 10)[:, 3],
    "columns": lambda whole: whole.reshape(6, 10)[:, 3:6],
    "transposed": lambda whole: whole.reshape(6, 10).T,
    "Fortran's": lambda whole: np.asfortranarray(whole.reshape(6, 10)),
    "misaligned": lambda whole: np.frombuffer(bytearray(61 * 8), np.uint8)[3:-5].view("f8"),
    "no dimension": lambda whole: whole[7:8].reshape(()),
}


@pytest.mark.parametrize("view", VIEWS)
def test_arrays_of_any_strides_are_changed_in_place(groups: list[ayre.Group], view: str) -> None:
    def act(own: int, group: ayre.Group) -> None:
        whole = np.arange(60, dtype="f8")
        array = VIEWS[view](whole)
        array[...] = np.arange(array.size).reshape(array.shape) + own
        others = whole.sum() - array.sum() if np.shares_memory(whole, array) else 0.0
        group.allreduce(array)
        expected = np.arange(array.size).reshape(array.shape) * 3 + 3
        np.testing.assert_array_equal(array, expected)
        if np.shares_memory(whole, array):
            assert whole.sum() - array.sum() == others
        into = np.empty((COUNT, *array.shape)).T[::-1].T
        np.testing.assert_array_equal(group.allgather(array, into)[own], expected)

    each(groups, act)


def test_each_collective_does_what_it_says(groups: list[ayre.Group]) -> None:
    def act(own: int, group: ayre.Group) -> None:
        group.barrier()
        assert (len(group), group.members) == (COUNT, [0, 1, 2])
        array = np.arange(4) if own == 1 else np.zeros(4, int)
        np.testing.assert_array_equal(group.broadcast(array, root=1), np.arange(4))
        reduced = group.reduce(np.full(2, own + 1.0), "prod", root=2)
        if own == 2:
            np.testing.assert_array_equal(reduced, [6.0, 6.0])
        assert group.scan(np.array([own + 1]))[0] == [1, 3, 6][own]
        part = group.reduce_scatter(np.arange(7.0))
        np.testing.assert_array_equal(part, 3.0 * np.arange(7.0)[own * 7 // 3 : (own + 1) * 7 // 3])
        rows = group.gather(np.array([own, 10 * own]), root=1)
        if own == 1:
            np.testing.assert_array_equal(rows, [[0, 0], [1, 10], [2, 20]])
        else:
            assert rows is None
        whole = np.arange(6).reshape(3, 2) if own == 0 else None
        np.testing.assert_array_equal(
            group.scatter(whole, np.zeros(2, int)), [2 * own, 2 * own + 1]
        )
        np.testing.assert_array_equal(group.allgather(np.array([own])), [[0], [1], [2]])
        exchanged = group.alltoall(np.arange(3) + 10 * own)
        np.testing.assert_array_equal(exchanged, [own, 10 + own, 20 + own])

    each(groups, act)


@pytest.mark.parametrize("size", [3, 30_000])
def test_started_collectives_end_in_any_order(groups: list[ayre.Group], size: int) -> None:
    def act(own: int, group: ayre.Group) -> None:
        whole = np.full(2 * size, own + 1, dtype="i8")
        total = group.start("allreduce", whole[::2], op="sum")
        copied = np.zeros(size) + 5.0 * own
        broadcast = group.start("broadcast", copied, root=2)
        rows = np.empty((COUNT, 2))
        gathered = group.start("allgather", np.full(2, own, float), into=rows)
        barrier = group.start("barrier")
        while not (barrier.test() and total.test() and gathered.test()):
            pass
        assert barrier.wait() is None
        assert gathered.wait() is rows
        np.testing.assert_array_equal(rows, [[0, 0], [1, 1], [2, 2]])
        broadcast.wait()
        np.testing.assert_array_equal(copied, np.full(size, 10.0))
        total.wait()
        np.testing.assert_array_equal(whole[::2], np.full(size, 6))
        np.testing.assert_array_equal(whole[1::2], np.full(size, own + 1))
        with pytest.raises(ayre.ClosedError):
            total.wait()

    each(groups, act)


def test_collectives_are_awaited(groups: list[ayre.Group]) -> None:
    async def member(own: int, group: ayre.Group) -> Any:
        # The members begin one after the other, so that the first ones sleep.
        for _ in range(100 * own):
            await asyncio.sleep(0)
        found = []
        for _ in range(20):
            found.append(int((await group.start("allreduce", np.array([own])))[0]))
        return found

    async def work() -> list[Any]:
        return await asyncio.gather(*(member(own, one) for own, one in enumerate(groups)))

    assert asyncio.run(work()) == [[3] * 20] * COUNT


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, bool), np.zeros(3, ">f8"), np.zeros(3, "c16"), np.zeros(3, "f2"),
        np.zeros(3, "M8[s]"), np.zeros(3, object), np.zeros(3, "S4"), [1, 2, 3], 7,
    ],
    ids=repr,
)  # fmt: skip
def test_other_dtypes_are_type_errors(groups: list[ayre.Group], array: Any) -> None:
    with pytest.raises(TypeError):
        groups[0].allreduce(array)
    with pytest.raises(TypeError):
        groups[0].start("allreduce", array)


def test_bad_collectives_are_refused(groups: list[ayre.Group]) -> None:
    group, array = groups[0], np.zeros(4)
    locked = np.zeros(4)
    locked.flags.writeable = False
    with pytest.raises(BufferError):
        group.allreduce(locked)
    with pytest.raises(BufferError):
        group.allgather(array, np.broadcast_to(np.zeros(1), (12,)))
    for bad in (
        lambda: group.allreduce(array, "mean"),  # type: ignore[arg-type]
        lambda: group.allreduce(array, "bor"),
        lambda: group.broadcast(array, root=3),
        lambda: group.broadcast(array, root=-1),
        lambda: group.allgather(array, np.zeros(5)),
        lambda: group.allgather(array, np.zeros(12, int)),
        lambda: group.alltoall(array),
        lambda: group.scatter(array, np.zeros(4)),
        lambda: group.reduce_scatter(np.zeros((2, 2))),
        lambda: group.start("sum", array),
        lambda: group.start("allreduce"),
        lambda: group.start("allreduce", array, order=1),
        lambda: group.messenger.group("other", [0, 0]),  # type: ignore[attr-defined]
        lambda: group.messenger.group("other", [1]),  # type: ignore[attr-defined]
    ):
        with pytest.raises((ValueError, OverflowError)):
            bad()
    # None of them has begun anything.
    found = each(groups, lambda own, group: group.allreduce(np.array([own]))[0])
    assert found == [3] * COUNT


def test_members_that_differ_are_told(groups: list[ayre.Group]) -> None:
    def act(own: int, group: ayre.Group) -> Any:
        with pytest.raises((ayre.MismatchError, ayre.GivenUpError)) as differs:
            group.allreduce(np.zeros(2 if own == 1 else 5000))
        return type(differs.value), differs.value.peer

    found = each(groups, act)
    assert ayre.MismatchError in [kind for kind, _ in found]


def test_a_dead_member_ends_a_collective(groups: list[ayre.Group]) -> None:
    groups[2].messenger.port.close()

    def act(own: int, group: ayre.Group) -> None:
        with pytest.raises((ayre.PeerDiedError, ayre.GivenUpError)):
            group.allreduce(np.zeros(5000))

    each(groups[:2], act)
