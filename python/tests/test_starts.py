"""Children that multiprocessing starts, each with a port of its own."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

import ayre
from conftest import MODES


def work(path: str, mode: str) -> None:
    """Double an array of the parent's, and send it a message."""
    with ayre.Port(mode=mode, number=1, spin="shared") as port:
        port.connect(path)
        remote = port.accept_region(0)
        array = np.zeros(1000)
        port.get(remote, 0, array)
        port.put(remote, 0, array * 2, ayre.Classes.COMPLETER)
        port.flush(0)
        port.send_wait(0, b"done")
        assert port.recv(60.0).data == b"end"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_child_has_a_port(how: str, mode: str, tmp_path: Path) -> None:
    path = str(tmp_path / "port") if how != "fork" else os.path.relpath(tmp_path / "port")
    port = ayre.Port(mode=mode, number=0, spin="shared", linger=0.05)
    port.listen(path)
    child = multiprocessing.get_context(how).Process(target=work, args=(path, mode))
    child.start()
    assert port.accept() == 1
    region = port.alloc(8000)
    region.array(1000)[:] = np.arange(1000)
    port.share(1, region)
    while port.poll_notification() is None:
        port.progress()
    assert port.recv(60.0).data == b"done"
    assert (region.array(1000) == 2 * np.arange(1000)).all()
    port.send(1, b"end")
    while child.is_alive():
        port.progress()
    child.join()
    assert child.exitcode == 0
    port.close()
