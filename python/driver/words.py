"""The words of a line, read and written: see conformance/src/driver.rs."""

from __future__ import annotations

import sys

import ayre


class Words:
    """The words of a line that were not read yet."""

    def __init__(self, line: str) -> None:
        """Begin with the first word."""
        self.rest = iter(line.split())

    def word(self) -> str:
        """Read the next word."""
        return next(self.rest)

    def number(self) -> int:
        """Read a number."""
        return int(self.word())

    def numbers(self, count: int) -> list[int]:
        """Read several numbers."""
        return [self.number() for _ in range(count)]

    def handle(self) -> int:
        """Read the number of a handle: that of another port is the first one of its kind."""
        return handle(self.word())

    def data(self) -> bytes:
        """Read bytes."""
        return data(self.word())

    def seconds(self) -> float | None:
        """Read a time in microseconds."""
        word = self.word()
        return None if word == "-" else int(word) / 1e6

    def limit(self) -> int | None:
        """Read a number that may be left open."""
        word = self.word()
        return None if word == "-" else int(word)

    def text(self) -> str:
        """Read a name."""
        return self.data().decode()

    def message(self) -> tuple[list[int], bytes]:
        """Read the arguments and the payload of a message."""
        return self.numbers(self.number()), self.data()

    def bounds(self) -> dict[str, int]:
        """Read the bounds of a group, as far as they are said."""
        found = {"window": self.limit(), "requests": self.limit()}
        return {name: limit for name, limit in found.items() if limit is not None}

    def options(self) -> ayre.PostOptions:
        """Read the options of an operation."""
        return ayre.PostOptions(*self.numbers(3))

    def atomic(self) -> ayre.Atomic:
        """Read an atomic."""
        width, op, operand, compare = self.numbers(4)
        return ayre.Atomic(op, operand, compare, width)


def say(line: str) -> None:
    """Write an answer. A suite that has closed its end sends no further calls."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        sys.exit(0)


def handle(word: str) -> int:
    """Read a handle, which may be another port's."""
    return 0 if word == "*" else int(word)


def data(word: str) -> bytes:
    """Read hexadecimal digits behind an x."""
    return bytes.fromhex(word[1:])


def written(data: bytes | bytearray) -> str:
    """Write bytes."""
    return "x" + data.hex()


def joined(*words: object) -> str:
    """Write words; whether something is so is 1 or 0."""
    return " ".join(str(int(word)) if isinstance(word, bool) else str(word) for word in words)


def failure(call: str, error: ayre.Error) -> str:
    """Write the answer to a call that has raised an exception."""
    nothing = (ayre.Busy.STREAM_FULL, ayre.Busy.GROUP_FULL)
    if isinstance(error, ayre.BusyError) and error.reason in nothing:
        return "none"
    if isinstance(error, ayre.BusyError):
        return f"busy {int(error.reason)}"
    bounded = ("push", "try_push", "multicast", "try_multicast", "multicast_through", "cast")
    if (
        isinstance(error, ayre.FaultError)
        and error.fault == ayre.Fault.TOO_LONG
        and call in bounded
    ):
        return "error long"
    if isinstance(error, ayre.FaultError):
        if error.fault == ayre.Fault.TOO_LONG and call in bounded:
            return "error long"
        return f"fault {int(error.fault)}"
    if isinstance(error, ayre.TooLongError):
        return f"long {error.length}"
    if isinstance(error, ayre.PeerDiedError):
        return f"died {error.peer}"
    if isinstance(error, ayre.TimedOutError) and call in ("wait", "receive", "take", "serve"):
        return "late"
    if isinstance(error, ayre.SystemCallError):
        return f"error system {error.errno} {error}"
    if isinstance(error, ayre.StreamFailedError):
        return f"error stream {int(error.reason)} {error.peer}"
    if isinstance(error, ayre.EntryRefusedError):
        return f"error entry {int(error.reason)} {error.peer}"
    if isinstance(error, ayre.NoMemberError):
        return "error outside"
    if isinstance(error, ayre.UnreachableError):
        return f"error unreachable {error.peer}"
    if isinstance(error, ayre.UnknownOutcomeError):
        return f"error unknown {error.peer}"
    if isinstance(error, ayre.RefusedError) and error.peer is not None:
        return f"error refused {error.peer}"
    kinds: dict[type[ayre.Error], str] = {
        ayre.PeerLeftError: "left",
        ayre.ExhaustedError: "exhausted",
        ayre.RejectedError: "rejected",
    }
    return f"error {kinds.get(type(error), 'invalid')} {error}"
