"""The driver: one port, which does what the lines of its standard input say."""

from __future__ import annotations

import sys

import ayre
from peers import Driver
from words import Words, failure, say


def main() -> None:
    """Open the port, then make the calls."""
    words = Words(sys.stdin.readline())
    if words.word() != "open":
        sys.exit("driver: a driver is one port, which is opened first")
    number, is_mediated = words.numbers(2)
    driver = Driver(
        ayre.Port(
            mode="mediated" if is_mediated else "direct",
            number=number,
            spin="shared",
            linger=0.05,
        )
    )
    say("ok")
    for line in sys.stdin:
        words = Words(line)
        call = words.word()
        try:
            made = driver.make(call, words)
        except ayre.Error as error:
            say(failure(call, error))
        else:
            say("none" if made is None else f"ok {made}")


if __name__ == "__main__":
    main()
