"""The calls of a driver, each of them a method of its name."""

from __future__ import annotations

from typing import Any, Optional, Union

import ayre
from words import Words, data, handle, joined, written

HOLDS: tuple[Any, ...] = ("shared", "exclusive")
STEPS: tuple[Any, ...] = ("post", "start", "complete", "wait")

Answer = Optional[str]
"""The words of an answer; None where there is nothing."""

Local = Union[ayre.LocalSlice, bytearray]
"""The local end of an operation."""


class Handles:
    """What a port has given out, by numbers; the first one of each kind is of another port."""

    def __init__(self) -> None:
        """Hold what another port has given out."""
        port = ayre.Port()
        own = port.connect_loopback()
        region = port.alloc(64)
        self.regions = [region]
        self.grants = [port.share(own, region, name=1)]
        self.remotes = [port.accept_region(own, 1)]
        queue = port.create_queue(64)
        port.share_queue(own, queue, 1)
        self.queues = [queue]
        self.produced = [port.accept_queue(own, 1)]
        self.locks: list[ayre.Lock] = []
        port.close()


def keep(kind: list[Any], thing: object) -> int:
    """Give the number of a new handle."""
    kind.append(thing)
    return len(kind) - 1


class Memory(Handles):
    """Calls about memory of this process and of peers."""

    port: ayre.Port

    def alloc(self, words: Words) -> Answer:
        return joined(keep(self.regions, self.port.alloc(words.number(), words.number() == 1)))

    def register(self, words: Words) -> Answer:
        return joined(keep(self.regions, self.port.register(words.data())))

    def deregister(self, words: Words) -> Answer:
        self.port.deregister(self.regions[words.handle()])
        return ""

    def read(self, words: Words) -> Answer:
        region = self.regions[words.handle()]
        return written(region.read(*words.numbers(2)))

    def write(self, words: Words) -> Answer:
        self.regions[words.handle()].write(words.number(), words.data())
        return ""

    def own(self, words: Words) -> Answer:
        region = self.regions[words.handle()]
        return joined(*region.atomic(words.number(), words.atomic()))

    def share(self, words: Words) -> Answer:
        peer, region = words.number(), self.regions[words.handle()]
        start, end, rights, name = words.numbers(4)
        grant = self.port.share(peer, region, (start, end), rights, name)
        return joined(keep(self.grants, grant), *grant.key)

    def remote(self, words: Words) -> Answer:
        return self.hold(self.port.accept_region(*words.numbers(2)))

    def narrow(self, words: Words) -> Answer:
        remote = self.remotes[words.handle()]
        return self.hold(remote.narrow(*words.numbers(3)))

    def hold(self, remote: ayre.RemoteRegion) -> str:
        number = keep(self.remotes, remote)
        return joined(number, len(remote), int(remote.rights), *remote.key)

    def revoke(self, words: Words) -> Answer:
        return joined(self.port.revoke(self.grants[words.handle()]))


class Operations(Memory):
    """Calls that access memory of peers."""

    def local(self, word: str) -> Local:
        """Read the local end of an operation: a part of a region, or bytes."""
        if not word.startswith("r"):
            return bytearray(data(word))
        region, offset, length = word[1:].split(":")
        return self.regions[handle(region)].slice(int(offset), int(offset) + int(length))

    def transfer(self, words: Words, is_put: bool, has_rows: bool) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        local = self.local(words.word())
        rows = ayre.Strided(*words.numbers(4)) if has_rows else None
        move = self.port.put if is_put else self.port.get
        ticket = move(remote, offset, local, words.options(), rows)
        if not is_put and isinstance(local, bytearray):
            return joined(ticket, written(local))
        return joined(ticket)

    def put(self, words: Words) -> Answer:
        return self.transfer(words, is_put=True, has_rows=False)

    def puts(self, words: Words) -> Answer:
        return self.transfer(words, is_put=True, has_rows=True)

    def get(self, words: Words) -> Answer:
        return self.transfer(words, is_put=False, has_rows=False)

    def gets(self, words: Words) -> Answer:
        return self.transfer(words, is_put=False, has_rows=True)

    def put_word(self, words: Words) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        return joined(self.port.put_immediate(remote, offset, words.number(), words.options()))

    def notify(self, words: Words) -> Answer:
        return joined(self.port.notify(words.number(), words.options()))

    def atomic(self, words: Words) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        return joined(self.port.atomic(remote, offset, words.atomic(), words.options()))

    def fetch(self, words: Words) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        return joined(*self.port.fetch(remote, offset, words.atomic(), words.options()))

    def batch(self, words: Words) -> Answer:
        batch = ayre.Batch(words.number())
        for _ in range(words.number()):
            self.prepare(batch, words)
        ticket = self.port.release(batch)
        return "" if ticket is None else joined(ticket)

    def prepare(self, batch: ayre.Batch, words: Words) -> None:
        call = words.word()
        if call == "notify":
            batch.notify(words.options())
            return
        remote, offset = self.remotes[words.handle()], words.number()
        if call == "put":
            batch.put(remote, offset, self.local(words.word()), words.options())
        elif call == "word":
            batch.put_immediate(remote, offset, words.number(), words.options())
        else:
            batch.atomic(remote, offset, words.atomic(), words.options())

    def epoch(self, words: Words) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        return joined(*self.port.try_epoch_step(remote, offset, STEPS[words.number()]))

    def flush(self, words: Words) -> Answer:
        self.port.flush(words.number())
        return ""

    def flushed(self, words: Words) -> Answer:
        return joined(self.port.is_flushed(words.number()))

    def barrier(self, _words: Words) -> Answer:
        self.port.barrier()
        return ""


class Locks(Operations):
    """Calls about locks."""

    def lock(self, words: Words) -> Answer:
        remote, offset = self.remotes[words.handle()], words.number()
        lock = ayre.Lock(self.port, remote, offset, words.number())
        return joined(keep(self.locks, lock))

    def held(self, words: Words) -> Answer:
        held = self.locks[words.number()].held
        return None if held is None else joined(HOLDS.index(held))

    def try_lock(self, words: Words) -> Answer:
        return joined(self.locks[words.number()].try_lock(HOLDS[words.number()]))

    def hold_lock(self, words: Words) -> Answer:
        self.locks[words.number()].lock(HOLDS[words.number()])
        return ""

    def unlock(self, words: Words) -> Answer:
        self.locks[words.number()].unlock()
        return ""


class Messages(Locks):
    """Calls about notifications, messages and queues."""

    def note(self, _words: Words) -> Answer:
        return noted(self.port.poll_notification())

    def wait(self, words: Words) -> Answer:
        return noted(self.port.wait_notification(words.seconds()))

    def send(self, words: Words) -> Answer:
        peer, tag = words.numbers(2)
        self.port.send(peer, words.data(), tag)
        return ""

    def post(self, words: Words) -> Answer:
        peer, tag = words.numbers(2)
        self.port.send_wait(peer, words.data(), tag)
        return ""

    def look(self, words: Words) -> Answer:
        into = bytearray(words.number())
        found = self.port.try_recv_into(into)
        return None if found is None else joined(*found, written(into[: found[2]]))

    def receive(self, words: Words) -> Answer:
        into = bytearray(words.number())
        found = self.port.recv_into(into, words.seconds())
        return joined(*found, written(into[: found[2]]))

    def queue(self, words: Words) -> Answer:
        queue = self.port.create_queue(words.number())
        return joined(keep(self.queues, queue), queue.record_max)

    def producer(self, words: Words) -> Answer:
        peer, queue = words.number(), self.queues[words.handle()]
        self.port.share_queue(peer, queue, words.number())
        return ""

    def produces(self, words: Words) -> Answer:
        queue = self.port.accept_queue(*words.numbers(2))
        return joined(keep(self.produced, queue), queue.record_max)

    def producers(self, words: Words) -> Answer:
        return joined(*self.queues[words.handle()].producers)

    def remove(self, words: Words) -> Answer:
        self.port.remove_producer(self.queues[words.handle()], words.number())
        return ""

    def enqueue(self, words: Words) -> Answer:
        self.port.enqueue(self.produced[words.handle()], words.data())
        return ""

    def dequeue(self, words: Words) -> Answer:
        queue, into = self.queues[words.handle()], bytearray(words.number())
        found = self.port.dequeue_into(queue, into)
        return None if found is None else joined(*found, written(into[: found[1]]))

    def take(self, words: Words) -> Answer:
        queue, into = self.queues[words.handle()], bytearray(words.number())
        found = self.port.dequeue_into_wait(queue, into, words.seconds())
        return joined(*found, written(into[: found[1]]))


def noted(note: ayre.Notification | None) -> Answer:
    """Write a notification."""
    return None if note is None else joined(note.source, *note.encode())
