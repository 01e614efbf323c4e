"""Waits in an event loop of asyncio: the methods of ports that are awaited.

No thread is started: the loop watches the descriptor of the port.

    task   takes what is there; sleeps if there is nothing
    loop   rests the port, and watches its descriptor; when it is readable, wakes all tasks

The port rests although something has come that no task awaits.

A task takes only when it runs, and returns what it has taken at once. So a cancelled task has taken
nothing, and what wakes one wakes them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

from ._ayre import Endpoint, Message, Notification, Port, Posted, Queue, Received, Record
from ._errors import ClosedError, InUseError, TimedOutError

_T = TypeVar("_T")

_AT_ONCE = 16
"""A port that will not rest is asked again at once, as often as this."""
_LATER = 0.001
"""Then after this time in seconds: its peers keep it at work."""

Kind = Literal["message", "notification", "other"]
"""What a task awaits: the port does not know of the others, which are looked for after a rest."""


class _Watcher:
    """The tasks that sleep at one port, and the loop that wakes them."""

    def __init__(self, port: Port | Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        """Begin without tasks."""
        self.port = port
        self.loop = loop
        self.sleepers: dict[asyncio.Future[None], Kind] = {}
        self.descriptor: int | None = None
        self.is_resting = False
        self.next_rest: asyncio.Handle | None = None
        self.refusals = 0

    async def sleep(self, kind: Kind) -> None:
        """Sleep until something may have come."""
        future = self.loop.create_future()
        self.sleepers[future] = kind
        self._plan()
        try:
            await future
        finally:
            self.sleepers.pop(future, None)

    def leave(self) -> None:
        """End the watch after the last task."""
        if self.sleepers:
            return
        if self.port._watcher is self:
            self.port._watcher = None
        self._unwatch()
        if self.is_resting:
            self.is_resting = False
            self.port.wake()

    def end(self) -> None:
        """End the watch of a port that closes. Another thread than the loop's may do so."""
        try:
            is_here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._fail(ClosedError("the port was closed"))
        elif not self.loop.is_closed():
            closed = ClosedError("the port was closed")
            self.loop.call_soon_threadsafe(self._fail, closed)

    def _unwatch(self) -> None:
        if self.next_rest is not None:
            self.next_rest.cancel()
            self.next_rest = None
        if self.descriptor is not None:
            self.loop.remove_reader(self.descriptor)
            self.descriptor = None

    def _plan(self) -> None:
        """See to it that the port rests once the tasks that run have taken what they want."""
        if self.is_resting or self.next_rest is not None:
            return
        if self.refusals < _AT_ONCE:
            self.next_rest = self.loop.call_soon(self._rest)
        else:
            self.next_rest = self.loop.call_later(_LATER, self._rest)

    def _rest(self) -> None:
        self.next_rest = None
        if not self.sleepers:
            return
        try:
            self.is_resting = self._rests()
            if self.is_resting and self.descriptor is None:
                self.descriptor = self.port.fileno()
                self.loop.add_reader(self.descriptor, self._come)
        except BaseException as error:
            self._fail(error)
            return
        self.refusals = 0 if self.is_resting else self.refusals + 1
        self._wake(only_looking=self.is_resting)

    def _rests(self) -> bool:
        """Prepare for a sleep, whatever has come that nobody awaits."""
        if isinstance(self.port, Endpoint):
            return self.port.rest()
        kinds = set(self.sleepers.values())
        return self.port.rest("message" in kinds, "notification" in kinds)

    def _come(self) -> None:
        """Take the rings of the descriptor, which is readable."""
        try:
            self.is_resting = False
            self.port.wake()
        except BaseException as error:
            self._fail(error)
            return
        self._wake(only_looking=False)

    def _wake(self, only_looking: bool) -> None:
        for future, kind in self.sleepers.items():
            if not future.done() and (kind != "message" or not only_looking):
                future.set_result(None)

    def _fail(self, error: BaseException) -> None:
        """Raise an exception in the task that has slept longest; in all if the port was closed."""
        if isinstance(error, ClosedError):
            self._unwatch()
            self.is_resting = False
        elif self.is_resting:
            self.is_resting = False
            self.refusals = 0
        for future in self.sleepers:
            if not future.done():
                future.set_exception(error)
                if not isinstance(error, ClosedError):
                    break
        self._wake(only_looking=False)


def _watcher(port: Port | Endpoint) -> _Watcher:
    loop = asyncio.get_running_loop()
    watcher: _Watcher | None = port._watcher
    if watcher is None or watcher.loop.is_closed():
        watcher = _Watcher(port, loop)
        port._watcher = watcher
    elif watcher.loop is not loop:
        raise InUseError("the port is in use: tasks of another event loop wait at it")
    return watcher


async def until(
    port: Port | Endpoint,
    poll: Callable[[], _T | None],
    look: Callable[[], _T | None],
    kind: Kind = "other",
) -> _T:
    """Wait until `poll` returns something of this kind.

    `look` is called after a sleep: it also raises that a peer has died.
    """
    found = poll()
    if found is not None:
        return found
    watcher = _watcher(port)
    try:
        while found is None:
            await watcher.sleep(kind)
            found = look()
    finally:
        watcher.leave()
    watcher.refusals = 0
    return found


def _unless_late(wait: Callable[[float], _T]) -> Callable[[], _T | None]:
    """Make a wait that takes no time, and returns None if nothing is there."""

    def look() -> _T | None:
        try:
            return wait(0.0)
        except TimedOutError:
            return None

    return look


async def recv(port: Port) -> Message:
    """Wait for the next message: `Port.recv_async`."""
    return await until(port, port.try_recv, _unless_late(port.recv), "message")


async def notification(port: Port) -> Notification:
    """Wait for the next notification: `Port.notification`."""
    look = _unless_late(port.wait_notification)
    return await until(port, port.poll_notification, look, "notification")


async def dequeue(port: Port, queue: Queue) -> Record:
    """Wait for the next record of a queue: `Port.dequeue_async`."""
    look = _unless_late(lambda timeout: port.dequeue_wait(queue, timeout))
    return await until(port, lambda: port.dequeue(queue), look)


async def finish(posted: Posted) -> Received | None:
    """Wait until a request of an endpoint has finished: `await posted`."""

    def look() -> bool | None:
        return posted.test() or None

    await until(posted.endpoint, look, look)
    return posted.wait()


async def next_message(port: Port, timeout: float | None) -> Message:
    """Wait for the next message of an iterator."""
    return await _in_time(_unless_late(port.recv), recv(port), timeout)


async def next_notification(port: Port, timeout: float | None) -> Notification:
    """Wait for the next notification of an iterator."""
    return await _in_time(_unless_late(port.wait_notification), notification(port), timeout)


async def _in_time(
    look: Callable[[], _T | None], wait: Coroutine[Any, Any, _T], timeout: float | None
) -> _T:
    """Wait for what is not there yet; end the iteration when the time is over."""
    if timeout == 0.0:
        wait.close()
        found = look()
        if found is None:
            raise StopAsyncIteration
        return found
    try:
        return await asyncio.wait_for(wait, timeout)
    except asyncio.TimeoutError:
        raise StopAsyncIteration from None
