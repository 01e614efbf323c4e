"""Queues between processes, in place of those of the standard multiprocessing.

    from multiprocessing import Process
    from ayre.multiprocessing import Queue

    queue = Queue()
    Process(target=work, args=(queue,)).start()
    queue.put(array)

Items lie in memory that the processes share. Each process that gets the queue when it is started
(by fork, spawn or forkserver) may put and get, and the one that has made the queue may end. There
is no thread and no buffer beside that memory: an item is there when `put` returns, and stays there
when its process ends or dies. A process that dies in a call harms no other.

Items are pickled: get only from processes that you trust. The memory of arrays, and of all that
pickles to buffers, is copied once into the queue and once out of it.
"""

from __future__ import annotations

import copyreg
import pickle
from multiprocessing.reduction import ForkingPickler
from queue import Empty, Full
from typing import Any, Generic, TypeVar

from . import _ayre
from ._spawning import Given, state_of

__all__ = ["CAPACITY", "Empty", "Full", "JoinableQueue", "Queue", "SimpleQueue"]

T = TypeVar("T")

CAPACITY = 1 << 30
"""Bytes of a queue that is made without `capacity`: they take memory only while items wait."""

# Their pickles are the same whatever reducers a program has registered.
_PLAIN = frozenset((bytes, str, int, float, bool, type(None)))
_NONE: list[Any] = []


class _Pickler:
    """A pickler that is used again and again: making one takes longer than most pickles."""

    __slots__ = ("_pickler", "_reducers", "buffers", "pieces", "write")

    def __init__(self) -> None:
        """Take the reducers of now."""
        self.pieces: list[Any] = []
        self.write = self.pieces.append
        self.buffers: list[Any] = []
        self._reducers = (_reducers(), dict(copyreg.dispatch_table))
        out: Any = self
        # A pickler's buffers are False, or None for "not in the pickle".
        self._pickler: Any = ForkingPickler(out, 5, True, self._keep)

    def _keep(self, buffer: pickle.PickleBuffer) -> None:
        self.buffers.append(buffer.raw())

    def is_current(self) -> bool:
        """Whether no reducers were registered since it was made."""
        extra, common = self._reducers
        return extra == ForkingPickler._extra_reducers and common == copyreg.dispatch_table  # type: ignore[attr-defined]

    def dump(self, item: object) -> None:
        """Pickle an item into pieces, and buffers beside them."""
        self._pickler.dump(item)

    def clear(self) -> None:
        """Forget the item."""
        self._pickler.clear_memo()
        self.pieces.clear()
        self.buffers.clear()


def _reducers() -> dict[type, Any]:
    return dict(ForkingPickler._extra_reducers)  # type: ignore[attr-defined]


_picklers: list[_Pickler] = []


def _put(ring: _ayre.SharedQueue, item: object, block: bool, timeout: float | None) -> bool:
    """Pickle an item and put it in. Whether there was room in the time."""
    if timeout is not None and timeout < 0:
        timeout = 0
    if type(item) in _PLAIN:
        return ring.put([pickle.dumps(item, 5)], _NONE, block, timeout)
    try:
        pickler = _picklers.pop()
    except IndexError:
        pickler = _Pickler()
    if not pickler.is_current():
        pickler = _Pickler()
    pickler.dump(item)
    done = ring.put(pickler.pieces, pickler.buffers, block, timeout)
    # After an exception it is not used again.
    pickler.clear()
    _picklers.append(pickler)
    return done


def _get(ring: _ayre.SharedQueue, block: bool, timeout: float | None) -> Any:
    """Take an item out. Raises Empty."""
    if timeout is not None and timeout < 0:
        timeout = 0
    found = ring.get(block, timeout)
    if isinstance(found, bytes):
        return pickle.loads(found)
    if found is None:
        raise Empty
    return pickle.loads(found[0], buffers=found[1])


class _Closed:
    """The memory of a queue that this process has closed."""

    def _refuse(self, *_arguments: object) -> Any:
        raise ValueError("the queue is closed")

    put = get = is_full = mark_done = wait_done = to_file = __len__ = _refuse


class SimpleQueue(Generic[T]):
    """A queue of any number of items, as multiprocessing's of this name."""

    def __init__(self, *, ctx: object = None, capacity: int = CAPACITY) -> None:
        """Make a queue.

        `capacity` is its size in bytes, as far as items wait: the longest item has a little less
        than half of it. `ctx` is taken as multiprocessing's queues take it, and not needed.
        """
        self._ring: Any = _ayre.SharedQueue(capacity, None)

    def put(self, item: T) -> None:
        """Put an item in. Blocks while `capacity` is used up."""
        _put(self._ring, item, True, None)

    def get(self) -> T:
        """Take an item out. Blocks until there is one."""
        item: T = _get(self._ring, True, None)
        return item

    def empty(self) -> bool:
        """Whether there is no item now."""
        return len(self._ring) == 0

    def close(self) -> None:
        """Let this process use it no more: calls raise ValueError. Items stay for the others."""
        self._ring = _Closed()

    def __getstate__(self) -> Any:
        """Give the memory to a child."""
        return state_of(self, self._ring)

    def __setstate__(self, state: Any) -> None:
        """Open the memory in a child."""
        with Given(state) as path:
            self._ring = _ayre.SharedQueue.of_file(path)


class Queue(Generic[T]):
    """A queue as multiprocessing's of this name.

    Items of one process come in their order. `close` ends this process's use. `join_thread` and
    `cancel_join_thread` do nothing, as no thread has items that are not in the queue yet.
    """

    def __init__(self, maxsize: int = 0, *, ctx: object = None, capacity: int = CAPACITY) -> None:
        """Make a queue of at most `maxsize` items; of any number, if that is 0 or less.

        `capacity` is its size in bytes, as far as items wait: the longest item has a little less
        than half of it. `ctx` is taken as multiprocessing's queues take it, and not needed.
        """
        self._ring: Any = _ayre.SharedQueue(capacity, maxsize if maxsize > 0 else None)

    def put(self, obj: T, block: bool = True, timeout: float | None = None) -> None:
        """Put an item in.

        Waits for room if `block`, for `timeout` seconds if there is one. Raises Full. Raises
        ayre.InvalidError, a ValueError, for an item that `capacity` never has room for.
        """
        if not _put(self._ring, obj, block, timeout):
            raise Full

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take an item out. Waits for one if `block`, for `timeout` seconds if there is one.

        Raises Empty.
        """
        item: T = _get(self._ring, block, timeout)
        return item

    def put_nowait(self, obj: T) -> None:
        """Put an item in, if there is room. Raises Full."""
        self.put(obj, False)

    def get_nowait(self) -> T:
        """Take an item out, if there is one. Raises Empty."""
        return self.get(False)

    def qsize(self) -> int:
        """Count the items in the queue now."""
        return len(self._ring)

    def empty(self) -> bool:
        """Whether there is no item now."""
        return len(self._ring) == 0

    def full(self) -> bool:
        """Whether there is no room now."""
        full: bool = self._ring.is_full()
        return full

    def close(self) -> None:
        """Let this process use it no more: calls raise ValueError. Items stay for the others."""
        self._ring = _Closed()

    def join_thread(self) -> None:
        """Do nothing: each item is in the queue when `put` returns."""

    def cancel_join_thread(self) -> None:
        """Do nothing: the end of this process waits for nothing."""

    def __getstate__(self) -> Any:
        """Give the memory to a child."""
        return state_of(self, self._ring)

    def __setstate__(self, state: Any) -> None:
        """Open the memory in a child."""
        with Given(state) as path:
            self._ring = _ayre.SharedQueue.of_file(path)


class JoinableQueue(Queue[T]):
    """A queue whose items are marked as done, as multiprocessing's of this name."""

    def task_done(self) -> None:
        """Say that an item which was taken out is done.

        Raises ValueError if all items are.
        """
        if not self._ring.mark_done():
            raise ValueError("task_done() called too many times")

    def join(self) -> None:
        """Wait until all items that were put in are done."""
        self._ring.wait_done()
