"""Ports that tests use: connected with themselves, and with each other in one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ayre

MODES = ["direct", "mediated"]


class Loop:
    """A port with a region that it has shared with itself."""

    def __init__(self, port: ayre.Port, length: int = 1 << 16) -> None:
        """Connect the port with itself."""
        self.port = port
        self.own = port.connect_loopback()
        self.region = port.alloc(length)
        self.grant = port.share(self.own, self.region)
        self.remote = port.accept_region(self.own)


@pytest.fixture(params=MODES)
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    """Give a port that is connected with itself."""
    port = ayre.Port(mode=request.param, spin="shared")
    yield Loop(port)
    port.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Give a path for a listener, short enough for a socket."""
    return os.path.relpath(tmp_path / "port")


def for_ever(call: Callable[[], object]) -> None:
    """Make a call again and again until it raises."""
    while True:
        call()


def connect(near: ayre.Port, far: ayre.Port, path: str) -> None:
    """Connect two ports, of which one waits in a thread."""
    far.listen(path)
    waiter = threading.Thread(target=far.accept)
    waiter.start()
    near.connect(path)
    waiter.join()


@pytest.fixture(params=MODES)
def pair(request: pytest.FixtureRequest, path: str) -> Iterator[tuple[ayre.Port, ayre.Port]]:
    """Give two connected ports, 0 and 1."""
    near = ayre.Port(mode=request.param, number=0, spin="shared", linger=0.05)
    far = ayre.Port(mode=request.param, number=1, spin="shared", linger=0.05)
    connect(near, far, path)
    yield near, far
    near.close()
    far.close()
