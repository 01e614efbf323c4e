"""Messengers, and handlers as decorated functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import _ayre
from ._ayre import Channel
from ._errors import InvalidError, TimedOutError
from ._groups import Group
from .aio import until


class Handler:
    """A function that peers call. It can be called here as well, as the function that it is."""

    __slots__ = ("arguments", "function", "id", "name")

    def __init__(
        self, name: str | int, number: int, arguments: int, function: Callable[..., object]
    ) -> None:
        """Keep the function with its name, its id and its number of arguments."""
        self.name = name
        self.id = number
        self.arguments = arguments
        self.function = function

    def __call__(self, *arguments: Any, **named: Any) -> object:
        """Call the function here."""
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        """Show name and id."""
        return f"<ayre.Handler {self.name!r}, id {self.id}>"


class Messenger(_ayre.Messenger):
    """A port that calls handlers of its peers, and runs its own.

    Handlers run in the calls of the messenger that say so, on the thread of the caller. One that
    raises ends the call that ran it with its exception, and its peer learns that it has failed. If
    several raise in one call, the others go to `sys.unraisablehook`.
    """

    __slots__ = ()

    def handler(
        self, name: str | int, *, arguments: int | None = None
    ) -> Callable[[Callable[..., object]], Handler]:
        """Register a function as a handler: a decorator.

        `name` has 1 to 64 bytes, or is an id from 32 to 255 on which the processes have agreed. The
        function gets the call, its arguments, numbers of 64 bits without a sign, and the payload
        as bytes:

            @messenger.handler("add")
            def add(call, first, second, payload):
                call.reply("sum", first + second)

        `arguments` is their number, if the signature does not say it.
        """

        def register(function: Callable[..., object]) -> Handler:
            count = _count(function) if arguments is None else arguments
            return Handler(name, self.register(name, function, count), count, function)

        return register

    def stage(self, name: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Register a function as a stage of streams: a decorator.

        `name` has 1 to 64 bytes. The function gets the flow, by which it emits items, and an item
        as bytes; at the end of a stream it gets None:

            @messenger.stage("double")
            def double(flow, item):
                if item is not None:
                    flow.emit(2 * item)
        """

        def register(function: Callable[..., object]) -> Callable[..., object]:
            self.register_stage(name, function)
            return function

        return register

    def channel(
        self, number: int, *, priority: int = 0, weight: int = 1, room: int = 1 << 20
    ) -> Channel:
        """Open a channel, by which calls have an order and a priority of their own.

        Both ends open it under this number, from 1 to 255. The options are those of `Channel`.
        """
        return Channel(self, number, priority, weight, room)

    def group(self, name: str = "all", members: Sequence[int] | None = None) -> Group:
        """Make a group of these members, this port among them.

        Without `members` it has this port and all its peers, in the order of their numbers. All
        members make it under the same name, with the same members in the same order.
        """
        return Group(self, name, members)

    async def serve(self) -> None:
        """Run handlers as long as the task lives, in the running loop of asyncio.

        Raises what a handler has raised, and PeerDiedError once for each peer: call it again to go
        on.
        """

        def look() -> None:
            while self.wait(0.0):
                pass

        await until(self.port, lambda: None, _unless_late(look), "message")


def _unless_late(look: Callable[[], None]) -> Callable[[], None]:
    def looked() -> None:
        try:
            look()
        except TimedOutError:
            return

    return looked


def _count(function: Callable[..., object]) -> int:
    """Find out how many arguments a handler takes, beside the call and the payload."""
    kinds = [one.kind for one in inspect.signature(function).parameters.values()]
    allowed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(kinds) < 2 or any(kind not in allowed for kind in kinds):
        raise InvalidError("a handler takes (call, ..., payload); or say how many `arguments`")
    return len(kinds) - 2
