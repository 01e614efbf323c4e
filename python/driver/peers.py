"""The port of a driver, and the calls about its peers."""

from __future__ import annotations

from typing import ClassVar

import ayre
from calls import Answer
from messengers import Groups, PanickedError
from words import Words, joined


class Driver(Groups):
    """A port, what it has given out, and the calls about its peers."""

    names: ClassVar = {
        "word": "put_word",
        "try": "try_lock",
        "hold": "hold_lock",
        "keep": "keep_register",
    }
    """Calls whose names are words of Python, or of another call here."""

    def __init__(self, port: ayre.Port) -> None:
        """Hold handles of another port beside its own."""
        super().__init__()
        self.port = port

    def make(self, call: str, words: Words) -> Answer:
        """Make a call."""
        try:
            made: Answer = getattr(self, self.names.get(call, call))(words)
        except PanickedError:
            # The call has been made: it raises in the end what a function of the suite has raised.
            return ""
        return made

    def listen(self, words: Words) -> Answer:
        self.port.listen(words.word())
        return ""

    def connect(self, words: Words) -> Answer:
        return joined(self.port.connect(words.word()))

    def accept(self, _words: Words) -> Answer:
        return joined(self.port.accept())

    def loopback(self, _words: Words) -> Answer:
        return joined(self.port.connect_loopback())

    def peers(self, _words: Words) -> Answer:
        return joined(*self.port.peers)

    def mode(self, words: Words) -> Answer:
        return joined(self.port.mode(words.number()) == "mediated")

    def alive(self, words: Words) -> Answer:
        return joined(self.port.is_alive(words.number()))

    def disconnect(self, words: Words) -> Answer:
        self.port.disconnect(words.number())
        return ""

    def leave(self, _words: Words) -> Answer:
        self.port.leave()
        return ""

    def close(self, _words: Words) -> Answer:
        self.port.close()
        return ""

    def progress(self, _words: Words) -> Answer:
        self.port.progress()
        return ""

    def count(self, words: Words) -> Answer:
        counters, what = self.port.counters(), words.word()
        if what == "malformed":
            return joined(counters.malformed)
        counted = counters.busy if what == "busy" else counters.faults
        return joined(counted(words.number()))
