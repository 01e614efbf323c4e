"""Calls about depots, inlets and deposit messages."""

from __future__ import annotations

import ayre
from calls import Answer, Messages, keep
from words import Words, data, joined, written


def message(words: Words) -> ayre.Deposit:
    """Read a message."""
    if words.word() == "c":
        word, operand, mask = words.numbers(3)
        return ayre.Deposit.carry(word, operand, mask, words.data())
    entry, *registers = words.numbers(4)
    operand, mask = words.numbers(2)
    return ayre.Deposit.enter(entry, registers, operand, mask, words.data())


def held(found: ayre.HeldMessage) -> str:
    """Write a message at which an inlet has stopped."""
    form: tuple[object, ...] = ("p",)
    if found.carries is not None:
        form = ("c", found.carries)
    elif found.enters is not None:
        form = ("e", found.enters[0], *found.enters[1])
    of = (found.operand, found.mask, found.length, found.brings, found.is_answered)
    return joined(int(found.cause.fault), *form, *of, found.tag, found.value, written(found.data))


class Deposits(Messages):
    """Calls of a port that has depots, and that knows inlets."""

    def __init__(self) -> None:
        """Hold what another port has given out."""
        super().__init__()
        port = ayre.Port()
        own = port.connect_loopback()
        region, depot = port.alloc(64), port.create_depot()
        access = ayre.InletOptions()
        self.depots = [depot]
        self.inlets = [port.share_inlet(own, depot, region.slice(0, 64), access, 1)]
        self.entered = [port.accept_inlet(own, 1)]
        self.frozen: list[ayre.Frozen] = []
        port.close()

    def depot(self, _words: Words) -> Answer:
        return joined(keep(self.depots, self.port.create_depot()))

    def has(self, words: Words) -> Answer:
        return joined(self.depots[words.handle()].register(words.number()))

    def set(self, words: Words) -> Answer:
        self.depots[words.handle()].set_register(*words.numbers(2))
        return ""

    def protect(self, words: Words) -> Answer:
        self.depots[words.handle()].protect(*words.numbers(3))
        return ""

    def store(self, words: Words) -> Answer:
        depot, at = self.depots[words.handle()], words.number()
        instructions = []
        for _ in range(words.number()):
            word, operand, enters = words.numbers(3)
            instructions.append(ayre.Stored(word, operand, enters == 1))
        depot.store(at, instructions)
        return ""

    def freeze(self, words: Words) -> Answer:
        return joined(keep(self.frozen, self.depots[words.handle()].freeze()))

    def kept(self, words: Words) -> Answer:
        return joined(self.frozen[words.number()].register(words.number()))

    def keep_register(self, words: Words) -> Answer:
        self.frozen[words.number()].set_register(*words.numbers(2))
        return ""

    def thaw(self, words: Words) -> Answer:
        self.frozen[words.number()].thaw()
        return ""

    def inlet(self, words: Words) -> Answer:
        peer, depot = words.number(), self.depots[words.handle()]
        region = self.regions[words.handle()]
        part = region.slice(*words.numbers(2))
        rights, first, end, entry, behind, longest, holds = words.numbers(7)
        access = ayre.InletOptions(rights, (first, end), (entry, behind), longest, holds == 1)
        inlet = self.port.share_inlet(peer, depot, part, access, words.number())
        return joined(keep(self.inlets, inlet))

    def enters(self, words: Words) -> Answer:
        peer, name = words.numbers(2)
        return joined(keep(self.entered, self.port.accept_inlet(peer, name)))

    def shut(self, words: Words) -> Answer:
        return joined(self.port.revoke_inlet(self.inlets[words.handle()]))

    def rejoin(self, words: Words) -> Answer:
        self.port.rejoin_inlet(self.entered[words.handle()])
        return ""

    def deposit(self, words: Words) -> Answer:
        to = self.entered[words.handle()]
        return joined(self.port.deposit(to, message(words), words.options()))

    def reply(self, words: Words) -> Answer:
        to, request = self.entered[words.handle()], message(words)
        inlet, answer = self.inlets[words.handle()], message(words)
        wants, takes, tag, value = words.numbers(4)
        reply = ayre.Reply(inlet, answer, wants, takes == 1, tag, value)
        return joined(self.port.deposit_reply(to, request, reply, words.options()))

    def answer(self, words: Words) -> Answer:
        to, request = self.entered[words.handle()], message(words)
        into = bytearray(data(words.word()))
        return joined(*self.port.deposit_fetch(to, request, into), written(into))

    def stopped(self, words: Words) -> Answer:
        found = self.inlets[words.handle()].held()
        return None if found is None else held(found)

    def resume(self, words: Words) -> Answer:
        return joined(self.inlets[words.handle()].resume())

    def skip(self, words: Words) -> Answer:
        self.inlets[words.handle()].skip()
        return ""

    def reset(self, words: Words) -> Answer:
        self.inlets[words.handle()].reset()
        return ""
