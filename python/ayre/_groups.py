"""Collectives of a group, on arrays of numpy's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _ayre
from ._errors import BufferAccessError, InvalidError
from .aio import until

Array = np.ndarray[Any, np.dtype[Any]]
Op = Literal["min", "max", "sum", "prod", "lor", "land", "bor", "band", "lxor", "bxor"]
_Form = tuple[str, str, int, int]

_NUMBERS = frozenset(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"))
_OPS: dict[str, int] = {
    "min": 1,
    "max": 2,
    "sum": 3,
    "prod": 4,
    "lor": 5,
    "land": 6,
    "bor": 7,
    "band": 8,
    "lxor": 9,
    "bxor": 10,
}


class Request:
    """A collective that was started. It goes on whenever the messenger polls or waits.

    `await request` waits in the running loop of asyncio, and gives the array.
    """

    __slots__ = ("_array", "_group", "_pending")

    def __init__(self, group: Group, pending: _ayre.Pending, array: Array | None) -> None:
        """Keep the array for the result."""
        self._group = group
        self._pending = pending
        self._array = array

    def test(self) -> bool:
        """Whether it has ended at this member. Makes progress, and runs handlers."""
        return self._pending.test()

    def wait(self) -> Array | None:
        """Wait until it has ended at this member, and give the array, with the result in it.

        Blocks, and runs handlers meanwhile. Once for each request.
        """
        if self._array is None:
            self._pending.wait()
            return None
        packed = _packed(self._array)
        self._pending.wait(packed)
        _unpack(packed, self._array)
        return self._array

    def __await__(self) -> Generator[Any, None, Array | None]:
        """Wait in the running loop."""
        return self._finish().__await__()

    async def _finish(self) -> Array | None:
        def look() -> bool | None:
            return self.test() or None

        await until(self._group.messenger.port, look, look)
        return self.wait()


class Group(_ayre.Group):
    """A group of processes that do collectives together, at one of its members.

    All members begin the collectives of a group in the same order, with arrays of equal length and
    dtype: integers of 8 to 64 bits, float32 and float64, in the byte order of the machine. Other
    dtypes are a TypeError. Arrays that are not in one piece are packed and unpacked.

    Each method blocks until the collective is done at this member, and runs handlers meanwhile. It
    raises PeerDiedError, MismatchError or GivenUpError; then the group does no further collective.
    """

    __slots__ = ()

    def barrier(self) -> None:
        """Wait until all members have called this."""
        self._do(("barrier", "u1", 0, 0))

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Copy the array of the member `root` to all members, in place. Gives the array."""
        return self._change("broadcast", array, 0, root)

    def reduce(self, array: Array, op: Op = "sum", root: int = 0) -> Array:
        """Combine the arrays of all members, number by number, in place at the member `root`.

        The arrays of the others are undefined afterwards. Gives the array.
        """
        return self._change("reduce", array, _op(op), root)

    def allreduce(self, array: Array, op: Op = "sum") -> Array:
        """Combine the arrays of all members, number by number, in place at all of them.

        Integers wrap. Gives the array.
        """
        return self._change("allreduce", array, _op(op), 0)

    def scan(self, array: Array, op: Op = "sum") -> Array:
        """Combine the arrays of the members up to each one, its own included, in place."""
        return self._change("scan", array, _op(op), 0)

    def reduce_scatter(self, array: Array, op: Op = "sum") -> Array:
        """Combine the arrays of all members, and give each member its part, a view of its array.

        Of n members and v numbers, member m gets those from m v / n to (m + 1) v / n. The rest of
        the array, which has one dimension, is undefined afterwards.
        """
        if array.ndim != 1:
            raise InvalidError("the array of a reduce_scatter has one dimension")
        changed = self._change("reduce_scatter", array, _op(op), 0)
        own, count = self._own(), len(self)
        return changed[own * array.size // count : (own + 1) * array.size // count]

    def gather(self, own: Array, root: int = 0, into: Array | None = None) -> Array | None:
        """Copy each member's array to the member `root`, in the order of the members.

        There it gives `into`, or a new array, whose first dimension is that of the members; None at
        the others.
        """
        if self._own() != root:
            self._read("gather", own, None, root)
            return None
        into = np.empty((len(self), *own.shape), own.dtype) if into is None else into
        return self._read("gather", own, into, root)

    def scatter(self, array: Array | None, into: Array, root: int = 0) -> Array:
        """Copy a part of the array of the member `root` to each member, in their order.

        The others give None for it. Gives `into`.
        """
        if array is None or self._own() != root:
            array = np.empty(0, into.dtype)
        self._read("scatter", array, into, root)
        return into

    def allgather(self, own: Array, into: Array | None = None) -> Array:
        """Copy each member's array to all members, in the order of the members.

        Gives `into`, or a new array, whose first dimension is that of the members.
        """
        into = np.empty((len(self), *own.shape), own.dtype) if into is None else into
        self._read("allgather", own, into, 0)
        return into

    def alltoall(self, out: Array, into: Array | None = None) -> Array:
        """Exchange equal parts: part m of `out` goes to member m, part m of the result is its.

        Gives `into`, or a new array of the shape of `out`.
        """
        into = np.empty_like(out, order="C", subok=False) if into is None else into
        self._read("alltoall", out, into, 0)
        return into

    def start(self, collective: str, array: Array | None = None, **options: Any) -> Request:
        """Start a collective, by the name of its method and with its array and options.

        Does not block. The numbers are copied; the result is in the array once the request was
        waited for. Options: `op`, `root`, and `into` where the method has it, which is not made
        here.
        """
        into: Array | None = options.pop("into", None)
        root, op = options.pop("root", 0), options.pop("op", None)
        if options:
            raise InvalidError(f"no collective has the option {min(options)}")
        if collective == "barrier":
            return Request(self, self._start((collective, "u1", 0, 0)), None)
        combines = collective in ("reduce", "allreduce", "scan", "reduce_scatter")
        form = (_op(op or "sum") if combines else 0, root)
        if combines or collective == "broadcast":
            if array is None:
                raise InvalidError(f"a {collective} has an array")
            changed = _packed(array)
            pending = self._start((collective, _number(array), *form), None, changed)
            return Request(self, pending, array)
        number = _number(array if array is not None else into)
        own = None if array is None else _packed(array)
        # The contents of the array for the result are of no account.
        room = None if into is None else np.zeros(into.shape, into.dtype)
        return Request(self, self._start((collective, number, *form), own, room), into)

    def _own(self) -> int:
        return self.members.index(self.messenger.port.rank)

    def _change(self, collective: str, array: Array, op: int, root: int) -> Array:
        number = _number(array)
        if not array.flags.writeable:
            raise BufferAccessError("the array is read-only")
        packed = _packed(array)
        self._do((collective, number, op, root), None, packed)
        _unpack(packed, array)
        return array

    def _read(self, collective: str, own: Array, into: Array | None, root: int) -> Array | None:
        number = _number(own)
        if into is None:
            self._do((collective, number, 0, root), _packed(own), None)
            return None
        if _number(into) != number:
            raise InvalidError("both arrays have the same dtype")
        if not into.flags.writeable:
            raise BufferAccessError("the array for the result is read-only")
        packed = _packed(into)
        self._do((collective, number, 0, root), _packed(own), packed)
        _unpack(packed, into)
        return into


def _packed(array: Array) -> Array:
    """Give the array, or a copy in one piece."""
    return np.require(array, None, ["C", "A"])


def _unpack(packed: Array, array: Array) -> None:
    if packed is not array and not np.may_share_memory(packed, array):
        array[...] = packed


def _op(op: str) -> int:
    try:
        return _OPS[op]
    except KeyError:
        raise InvalidError(f"there is no operation {op!r}: {', '.join(_OPS)}") from None


def _number(array: npt.NDArray[Any] | None) -> str:
    if not isinstance(array, np.ndarray):
        raise TypeError("a collective takes arrays of numpy's")
    number = str(array.dtype.str[1:])
    if number not in _NUMBERS or not array.dtype.isnative:
        raise TypeError(
            f"collectives have no numbers of dtype {array.dtype}: integers of 8 to 64 bits, "
            "float32 and float64, in the byte order of the machine"
        )
    return number
