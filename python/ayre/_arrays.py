"""Arrays in memory that processes share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _ayre
from ._errors import InvalidError, NoBufferError, SetupError
from ._groups import Group
from ._spawning import Given, state_of

Array = np.ndarray[Any, np.dtype[Any]]

_LINE = 64


class SharedArray:
    """An array of numpy's in memory that processes share, with locks.

        counts = ayre.SharedArray(1000, int)
        Process(target=work, args=(counts,)).start()
        with counts.lock:
            counts.array[7] += 1

    A child gets it when it is started, by fork, spawn or forkserver; the ranks of a job make one
    together by `of_group`. Elements are zero at first. Any process may write any element at any
    time: a lock, a queue or a barrier orders accesses.

    A lock is held by one thread of all processes, and released when its process dies: then
    `was_abandoned` is true for the next holder.
    """

    def __init__(
        self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *, locks: int = 1
    ) -> None:
        """Make an array of zeros, and a number of locks: one for each row, for example."""
        form = _Form(shape, dtype, locks)
        self._open(_ayre.Region.shared(form.bytes), form, made=False)

    @classmethod
    def of_group(
        cls,
        group: Group,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike = np.float64,
        *,
        locks: int = 1,
    ) -> SharedArray:
        """Make an array together with all members of a group, each by the same call.

        Blocks until all have it. Raises InvalidError at all members where one cannot open the
        memory: they must be processes of one user on one host.
        """
        form = _Form(shape, dtype, locks)
        is_first = group._own() == 0
        made = cls.__new__(cls)
        where = np.zeros(4, np.int64)
        region: _ayre.Region | None = None
        if is_first:
            region = _ayre.Region.shared(form.bytes)
            mark = np.frombuffer(os.urandom(16), np.int64)
            where[:] = os.getpid(), region.to_file(), *mark
            region.array(2, np.int64)[:] = mark
            made._open(region, form, made=False)
        try:
            group.broadcast(where, 0)
            region = region or _opened(where, form)
            all_have = group.allreduce(np.array([region is not None], np.int64), "min")[0]
        finally:
            if is_first:
                os.close(where[1])
        if region is None or not all_have:
            raise InvalidError(
                "a member cannot open the memory: the members of a shared array are processes of "
                "one user on one host"
            )
        if not is_first:
            made._open(region, form, made=True)
        return made

    def _open(self, region: _ayre.Region, form: _Form, *, made: bool) -> None:
        self._region = region
        self._form = form
        self.array: Array = region.array(form.shape, form.dtype, form.start)
        self.locks = [
            _ayre.SharedLock(region, _LINE * (1 + number), made) for number in range(form.locks)
        ]

    @property
    def lock(self) -> _ayre.SharedLock:
        """The first lock."""
        return self.locks[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Give the array itself, where neither another dtype nor a copy is asked for."""
        if dtype is None or np.dtype(dtype) == self.array.dtype:
            return self.array.copy() if copy else self.array
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return self.array.astype(dtype)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        """Give elements, or a view of them."""
        return self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write elements."""
        self.array[index] = value

    def __repr__(self) -> str:
        """Say what it is."""
        return f"<ayre.SharedArray {self._form.shape} of {self._form.dtype}>"

    def __getstate__(self) -> Any:
        """Give the memory to a child."""
        return state_of(self, self._region), self._form

    def __setstate__(self, state: Any) -> None:
        """Open the memory in a child."""
        with Given(state[0]) as path:
            region = _ayre.Region.of_file(path)
        self._open(region, state[1], made=True)


class _Form:
    """The shape of the array, and where it lies behind the mark and the locks."""

    def __init__(self, shape: int | Sequence[int], dtype: npt.DTypeLike, locks: int) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise NoBufferError("an array of objects holds references, which no process shares")
        if locks < 1:
            raise InvalidError("a shared array has one lock or more")
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(length < 0 for length in self.shape):
            raise InvalidError("no length of an array is negative")
        self.locks = locks
        self.start = _LINE * (1 + locks)
        count = 1
        for length in self.shape:
            count *= int(length)
        self.bytes = self.start + count * self.dtype.itemsize


def _opened(where: npt.NDArray[np.int64], form: _Form) -> _ayre.Region | None:
    """Open the memory of the first member, if this is it."""
    try:
        region = _ayre.Region.of_file(f"/proc/{where[0]}/fd/{where[1]}")
    except SetupError:
        return None
    if len(region) < form.bytes:
        return None
    return region if bool((region.array(2, np.int64) == where[2:]).all()) else None
