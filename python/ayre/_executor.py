"""Tasks for the ranks of a job, by the interface of concurrent.futures."""

from __future__ import annotations

import asyncio
import atexit
import pickle
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from concurrent.futures import Executor as Base
from typing import Any, TypeVar

from ._ayre import Call
from ._errors import PeerDiedError
from ._messengers import Messenger

T = TypeVar("T")

_TASK, _DONE, _STOP = "ayre.task", "ayre.done", "ayre.stop"


class RemoteError(Exception):
    """The cause of an exception that a task has raised: the text of its traceback."""

    def __str__(self) -> str:
        """Show the text."""
        return f"\n{self.args[0]}"


class Executor(Base):
    """Runs functions on the other ranks of a job, as executors of concurrent.futures do.

        messenger = ayre.Messenger(ayre.join())
        if messenger.port.rank == 0:
            with ayre.Executor(messenger) as executor:
                print(sum(executor.map(area, range(100))))
        else:
            ayre.Executor.work(messenger)

    One rank makes the executor; all other peers of its port are in `work` and run the tasks. Each
    pulls its next task when it is done with one. Functions, arguments and results are pickles of at
    most the messenger's `longest`, 64 MiB without one. A worker runs whatever its job's executor
    sends: take only jobs that you trust.

    A task that has not begun can be cancelled. The tasks of a worker that dies raise
    BrokenExecutor, and the others go on; without workers all do. A thread of the executor drives
    the messenger: the program leaves it and its port alone until `shutdown`. A messenger has one
    executor in its life.
    """

    def __init__(self, messenger: Messenger, *, ahead: int = 2) -> None:
        """Begin, together with the workers. Blocks until they are in `work`.

        A worker has `ahead` tasks at most, so that it does not wait for the next one.
        """
        if ahead < 1:
            raise ValueError("a worker has one task or more")
        self._messenger = messenger
        self._ahead = ahead
        self._lock = threading.Lock()
        self._pending: deque[tuple[Future[Any], bytes]] = deque()
        port = messenger.port
        self._running: dict[int, dict[int, Future[Any]]] = {
            peer: {} for peer in port.peers if peer != port.rank
        }
        self._next = 0
        self._ends = False
        messenger.register(_DONE, self._done, 2)
        messenger.sync()
        self._loop = asyncio.new_event_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._drive, name="ayre.Executor", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown)

    @staticmethod
    def work(messenger: Messenger, client: int = 0) -> None:
        """Run tasks of the executor at the rank `client`, until it shuts down. Blocks.

        Raises a ConnectionError where that rank has died.
        """
        _Worker(messenger, client).work()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a worker call `fn(*args, **kwargs)`. Gives the future of its result. Does not block.

        Raises what pickling raises, and BrokenExecutor if no worker is left.
        """
        payload = pickle.dumps((fn, args, kwargs), 5)
        future: Future[T] = Future()
        with self._lock:
            if self._ends:
                raise RuntimeError("the executor was shut down")
            if not self._running:
                raise BrokenExecutor("the job has no other rank that is alive")
            self._pending.append((future, payload))
        self._loop.call_soon_threadsafe(self._give)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and let the workers go when the last one is done.

        Blocks until then if `wait`. With `cancel_futures` those that have not begun are cancelled.
        """
        atexit.unregister(self.shutdown)
        with self._lock:
            is_first, self._ends = not self._ends, True
            pending = list(self._pending) if cancel_futures else []
        for future, _ in pending:
            future.cancel()
        if is_first or pending:
            self._call(self._give)
        if wait:
            self._thread.join()

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The thread has ended.
            return

    # The rest runs in the thread.

    def _drive(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        serving = asyncio.ensure_future(self._messenger.serve())
        while not self._over.done():
            await asyncio.wait({serving, self._over}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                error = serving.exception()
                if not isinstance(error, PeerDiedError):
                    self._break(f"the executor's messenger has failed: {error}", error)
                    return
                self._lose(error.peer)
                serving = asyncio.ensure_future(self._messenger.serve())
        serving.cancel()
        await asyncio.wait({serving})
        for peer in self._running:
            self._send(peer, _STOP)
        self._messenger.flush()

    def _give(self) -> None:
        """Give tasks to workers that have too few, and end after the last one."""
        while self._pending and (peer := self._idlest()) is not None:
            with self._lock:
                future, payload = self._pending.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            number = self._next
            self._next += 1
            self._running[peer][number] = future
            error = self._send(peer, _TASK, number, payload=payload)
            if error is not None and peer in self._running:
                self._running[peer].pop(number, None)
                future.set_exception(error)
        is_done = not self._pending and not any(self._running.values())
        if self._ends and is_done and not self._over.done():
            self._over.set_result(None)

    def _idlest(self) -> int | None:
        """Give the worker with the fewest tasks, if it has room for one."""
        peer = min(self._running, key=lambda peer: len(self._running[peer]), default=None)
        return peer if peer is not None and len(self._running[peer]) < self._ahead else None

    def _send(self, peer: int, handler: str, *arguments: int, payload: bytes = b"") -> Any:
        """Call a worker. Gives the exception of a call that was not made."""
        try:
            self._messenger.call(peer, handler, *arguments, payload=payload)
        except ConnectionError:
            self._lose(peer)
        except Exception as error:
            return error
        return None

    def _done(self, call: Call, number: int, is_good: int, payload: bytes) -> None:
        """Take the result of a task: a handler."""
        future = self._running.get(call.source, {}).pop(number, None)
        if future is None:
            return
        try:
            result = pickle.loads(payload)
        except Exception as error:
            future.set_exception(error)
        else:
            if is_good:
                future.set_result(result)
            else:
                raised, text = result
                raised.__cause__ = RemoteError(text)
                future.set_exception(raised)
        self._loop.call_soon(self._give)

    def _lose(self, peer: int) -> None:
        """Break the tasks of a worker that has died."""
        with self._lock:
            lost = self._running.pop(peer, {})
            is_last = not self._running
        for future in lost.values():
            future.set_exception(BrokenExecutor(f"rank {peer} has died while it had the task"))
        if is_last:
            self._break("the job has no other rank that is alive", None)
        self._loop.call_soon(self._give)

    def _break(self, why: str, error: BaseException | None) -> None:
        """Break all tasks."""
        with self._lock:
            broken = [future for tasks in self._running.values() for future in tasks.values()]
            broken += [it for it, _ in self._pending if it.set_running_or_notify_cancel()]
            self._pending.clear()
            self._running.clear()
        for future in broken:
            exception = BrokenExecutor(why)
            exception.__cause__ = error
            future.set_exception(exception)


class _Worker:
    """A rank that runs tasks."""

    def __init__(self, messenger: Messenger, client: int) -> None:
        self._messenger = messenger
        self._client = client
        self._tasks: deque[tuple[int, bytes]] = deque()
        self._is_over = False
        messenger.register(_TASK, self._take, 1)
        messenger.register(_STOP, self._stop, 0)
        messenger.sync()

    def _take(self, call: Call, number: int, payload: bytes) -> None:
        if call.source == self._client:
            self._tasks.append((number, payload))

    def _stop(self, call: Call, _payload: bytes) -> None:
        self._is_over = self._is_over or call.source == self._client

    def work(self) -> None:
        while not self._is_over:
            while self._tasks:
                self._run(*self._tasks.popleft())
            try:
                if not self._is_over:
                    self._messenger.wait()
            except PeerDiedError as error:
                if error.peer == self._client:
                    raise

    def _run(self, number: int, payload: bytes) -> None:
        try:
            function, arguments, named = pickle.loads(payload)
            answer = (1, pickle.dumps(function(*arguments, **named), 5))
        except Exception as error:
            answer = (0, _pickled(error))
        try:
            self._send(number, *answer)
        except ValueError as error:
            self._send(number, 0, _pickled(error))

    def _send(self, number: int, is_good: int, payload: bytes) -> None:
        self._messenger.call(self._client, _DONE, number, is_good, payload=payload)


def _pickled(error: Exception) -> bytes:
    """Pickle an exception, or one that says what it was."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        made = pickle.dumps((error, text), 5)
        pickle.loads(made)
    except Exception:
        made = pickle.dumps((RuntimeError(f"the exception has no pickle: {error!r}"), text), 5)
    return made
