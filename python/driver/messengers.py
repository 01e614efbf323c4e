"""Calls about messengers: the suite runs their handlers, stages and watchers meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ayre
from calls import Answer, keep
from deposits import Deposits
from words import Words, failure, joined, say, written

Make = Callable[[str, Words], Answer]


class PanickedError(Exception):
    """The suite's function has panicked."""


class Functions(Deposits):
    """Functions of the suite, which run when the package calls them."""

    def __init__(self) -> None:
        """Have run nothing yet."""
        super().__init__()
        self.ran = 0

    def run(self, due: str, make: Make) -> None:
        """Have the suite run something, and answer its calls until it has."""
        self.ran += 1
        say(f"run {due}")
        while True:
            words = Words(sys.stdin.readline())
            call = words.word()
            if call == "ran":
                return
            if call == "panicked":
                raise PanickedError
            try:
                if call in ("read", "write", "own"):
                    made: Answer = getattr(self, call)(words)
                else:
                    made = make(call, words)
            except ayre.Error as error:
                say(failure(call, error))
            else:
                say("none" if made is None else f"ok {made}")

    def handler_of(self, number: int) -> Callable[..., None]:
        """Give a handler of the suite."""

        def run(call: ayre.Call, *given: Any) -> None:
            *arguments, payload = given
            due = joined(number, call.source, len(arguments), *arguments, written(payload))
            self.run(due, lambda name, words: self.by_token(call, name, words))

        return run

    def by_token(self, token: ayre.Call, name: str, words: Words) -> Answer:
        raise NotImplementedError

    def stage_of(self, number: int) -> Callable[..., None]:
        """Give a stage of the suite."""

        def run(flow: ayre.Flow, item: bytes | None) -> None:
            end: object = flow.end
            if item is not None:
                end = f"item {written(item)}"
            elif flow.failure is not None:
                end = f"failed {int(flow.failure.reason)} {flow.failure.peer}"

            def make(_name: str, words: Words) -> Answer:
                flow.emit(words.data())
                return ""

            self.run(joined(number, *flow.name, *flow.arguments, end), make)

        return run

    def watcher_of(self, number: int) -> Callable[[ayre.View | None], None]:
        """Give a watcher of the suite."""

        def make(name: str, _words: Words) -> Answer:
            sys.exit(f"driver: no watcher calls {name}")

        def run(view: ayre.View | None) -> None:
            due: object = "ended"
            if view is not None:
                members, joiners = view.members, view.joined
                lists = (len(members), *members, len(joiners), *joiners)
                due = joined("view", view.number, view.ticket, *lists)
            self.run(joined(number, due), make)

        return run


class Messengers(Functions):
    """Calls of messengers, and of their channels."""

    port: ayre.Port
    messages: ayre.Messenger

    def __init__(self) -> None:
        """Hold nothing yet."""
        super().__init__()
        self.channels: dict[int, ayre.Channel] = {}
        self.streams: list[ayre.Stream] = []
        self.memberships: list[ayre.Membership] = []

    def by_token(self, token: ayre.Call, name: str, words: Words) -> Answer:
        if name == "cast":
            to, handler = self.memberships[words.number()], words.number()
            arguments, payload = words.message()
            token.multicast(to, handler, *arguments, payload=payload)
            return ""
        peer, by, handler = words.numbers(3)
        arguments, payload = words.message()
        token.send(peer, handler, *arguments, payload=payload, channel=by or None)
        return ""

    def by(self, number: int) -> ayre.Channel:
        """Give a channel. One that the suite has not opened is as the package opens it."""
        if number not in self.channels:
            self.channels[number] = ayre.Channel(self.messages, number)
        return self.channels[number]

    def messenger(self, words: Words) -> Answer:
        self.messages = ayre.Messenger(self.port, words.limit(), words.limit(), words.limit())
        return ""

    def into_port(self, _words: Words) -> Answer:
        self.messages.stop()
        return ""

    def handler(self, words: Words) -> Answer:
        run, arguments, name = self.handler_of(words.number()), words.number(), words.word()
        named = bytes.fromhex(name[1:]).decode() if name.startswith("x") else int(name)
        return joined(self.messages.register(named, run, arguments))

    def announced(self, words: Words) -> Answer:
        peer, handler, arguments = words.numbers(3)
        return joined(self.messages.is_announced(peer, handler, arguments))

    def forget(self, words: Words) -> Answer:
        self.port.disconnect(words.number())
        return ""

    def call(self, words: Words) -> Answer:
        return self.sends(words, waits=True)

    def try_call(self, words: Words) -> Answer:
        return self.sends(words, waits=False)

    def sends(self, words: Words, *, waits: bool) -> Answer:
        peer, by, handler = words.numbers(3)
        arguments, payload = words.message()
        on = self.by(by) if by else self.messages
        send = on.call if waits else on.try_call
        send(peer, handler, *arguments, payload=payload)
        return ""

    def counted(self, call: Callable[[], int]) -> Answer:
        """Make a call that counts the handlers that it has run, also where one panics."""
        before = self.ran
        try:
            return joined(call())
        except PanickedError:
            return joined(self.ran - before)

    def poll(self, _words: Words) -> Answer:
        return self.counted(self.messages.poll)

    def serve(self, words: Words) -> Answer:
        time = words.seconds()
        return self.counted(lambda: self.messages.wait(time))

    def drain(self, _words: Words) -> Answer:
        self.messages.flush()
        return ""

    def sync(self, _words: Words) -> Answer:
        self.messages.sync()
        return ""

    def failures(self, _words: Words) -> Answer:
        causes = ("unknown", "malformed", "failed")
        told = self.messages.failures()
        return joined(
            *(joined(it.peer, it.handler, causes.index(it.cause) + 1, it.is_ours) for it in told)
        )

    def channel(self, words: Words) -> Answer:
        number, limits = words.number(), [words.limit() for _ in range(3)]
        usual = (0, 1, 1 << 20)
        options = [it if limit is None else limit for limit, it in zip(limits, usual)]
        self.channels[number] = ayre.Channel(self.messages, number, *options)
        return ""

    def hold_channel(self, words: Words) -> Answer:
        self.by(words.number()).hold()
        return ""

    def release_channel(self, words: Words) -> Answer:
        self.by(words.number()).release()
        return ""

    def poll_only(self, words: Words) -> Answer:
        return self.counted(self.by(words.number()).poll)

    def backlog(self, words: Words) -> Answer:
        peer, number = words.numbers(2)
        return joined(self.by(number).backlog(peer))


class Groups(Messengers):
    """Calls about streams and multicast groups."""

    def stage(self, words: Words) -> Answer:
        run = self.stage_of(words.number())
        return joined(self.messages.register_stage(words.text(), run))

    def set_entry(self, words: Words) -> Answer:
        at, peer, number, to, there = words.numbers(5)
        # The suite names stages by their names.
        stage, arguments, goes_on = words.text(), words.numbers(4), words.number() == 1
        entry = ayre.Entry(to, there, stage, arguments, goes_on=goes_on)
        self.messages.set_entry(at, (peer, number), entry)
        return ""

    def clear_entry(self, words: Words) -> Answer:
        at, peer, number = words.numbers(3)
        self.messages.clear_entry(at, (peer, number))
        return ""

    def let_set_entries(self, words: Words) -> Answer:
        self.messages.let_peers_set_entries(words.number() == 1)
        return ""

    def open_stream(self, words: Words) -> Answer:
        return joined(keep(self.streams, self.messages.open_stream(words.number())))

    def stream(self, words: Words) -> Answer:
        count = words.number()
        hops = [(words.number(), words.text(), *words.numbers(4)) for _ in range(count)]
        return joined(keep(self.streams, self.messages.stream(*hops)))

    def push(self, words: Words) -> Answer:
        self.streams[words.number()].push(words.data())
        return ""

    def try_push(self, words: Words) -> Answer:
        self.streams[words.number()].try_push(words.data())
        return ""

    def close_stream(self, words: Words) -> Answer:
        self.streams[words.number()].close()
        return ""

    def cancel(self, words: Words) -> Answer:
        self.streams[words.number()].cancel()
        return ""

    def found(self, words: Words) -> Answer:
        watch, name = self.watcher_of(words.number()), words.text()
        member = self.messages.found(name, watch, **words.bounds())
        return joined(keep(self.memberships, member))

    def join(self, words: Words) -> Answer:
        watch, name, door = self.watcher_of(words.number()), words.text(), words.number()
        member = self.messages.join(name, door, watch, **words.bounds())
        return joined(keep(self.memberships, member))

    def multicast(self, words: Words) -> Answer:
        to, handler = self.memberships[words.number()], words.number()
        arguments, payload = words.message()
        to.send(handler, *arguments, payload=payload)
        return ""

    def try_multicast(self, words: Words) -> Answer:
        to, handler = self.memberships[words.number()], words.number()
        arguments, payload = words.message()
        to.try_send(handler, *arguments, payload=payload)
        return ""

    def multicast_through(self, words: Words) -> Answer:
        name, door, handler = words.text(), words.number(), words.number()
        arguments, payload = words.message()
        self.messages.send_through(name, door, handler, *arguments, payload=payload)
        return ""

    def leave_group(self, words: Words) -> Answer:
        self.memberships[words.number()].leave()
        return ""

    def members(self, words: Words) -> Answer:
        return joined(*self.memberships[words.number()].members)
