"""The words of a line, read and written: see conformance/src/driver.rs."""

from __future__ import annotations

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

    def options(self) -> ayre.PostOptions:
        """Read the options of an operation."""
        return ayre.PostOptions(*self.numbers(3))

    def atomic(self) -> ayre.Atomic:
        """Read an atomic."""
        width, op, operand, compare = self.numbers(4)
        return ayre.Atomic(op, operand, compare, width)


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
    if isinstance(error, ayre.BusyError):
        return f"busy {int(error.reason)}"
    if isinstance(error, ayre.FaultError):
        return f"fault {int(error.fault)}"
    if isinstance(error, ayre.TooLongError):
        return f"long {error.length}"
    if isinstance(error, ayre.PeerDiedError):
        return f"died {error.peer}"
    if isinstance(error, ayre.TimedOutError) and call in ("wait", "receive", "take"):
        return "late"
    if isinstance(error, ayre.SystemCallError):
        return f"error system {error.errno} {error}"
    kinds: dict[type[ayre.Error], str] = {
        ayre.PeerLeftError: "left",
        ayre.ExhaustedError: "exhausted",
        ayre.RejectedError: "rejected",
    }
    return f"error {kinds.get(type(error), 'invalid')} {error}"
