"""Jobs of `ayre run`, where the tool is on the path."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ayre

TOOL = shutil.which("ayre")

pytestmark = pytest.mark.skipif(TOOL is None, reason="there is no tool `ayre`")

RING = """
import ayre
import numpy as np

with ayre.join() as port:
    left, right = (port.rank - 1) % port.size, (port.rank + 1) % port.size
    region = port.alloc(8 * 8)
    port.share(left, region)
    remote = port.accept_region(right)
    values = region.array(8)
    port.barrier()
    port.put(remote, 0, np.full((8, 2), float(port.rank))[:, 0], ayre.Classes.COMPLETER)
    assert port.wait_notification().source == left
    assert (values == left).all()
    for _ in range(100):
        port.barrier()
    print(f"{ayre.is_launched()} {port.rank} {port.size}\\n", end="", flush=True)
"""

INTERRUPTED = """
import os, signal
import ayre

port = ayre.join(spin="shared")
if port.rank == 0:
    try:
        print("waits", os.getpid(), flush=True)
        port.barrier()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    port.send_wait(1, b"come")
else:
    port.recv()
port.barrier()
port.leave()
print("met\\n", end="", flush=True)
"""

ORPHAN = """
import ayre

port = ayre.join()
if port.rank == 1:
    port.close()
else:
    try:
        port.barrier()
    except ConnectionError as error:
        assert isinstance(error, ayre.PeerDeadError)
        print("alone", flush=True)
"""


def run(ranks: int, program: str, *options: str) -> subprocess.Popen[str]:
    """Start a job of this program."""
    assert TOOL is not None
    command = [TOOL, "run", "-n", str(ranks), *options, "--", sys.executable, "-c", program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_ranks_exchange_arrays_in_a_ring() -> None:
    job = run(4, RING)
    said, _ = job.communicate(timeout=120)
    assert job.returncode == 0
    assert sorted(said.split("\n")[:-1]) == [f"True {rank} 4" for rank in range(4)]


def test_an_interrupted_barrier_goes_on() -> None:
    job = run(2, INTERRUPTED)
    assert job.stdout is not None
    words = job.stdout.readline().split()
    assert words[0] == "waits"
    pid = int(words[1])
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        os.sched_yield()
    os.kill(pid, signal.SIGINT)
    said, _ = job.communicate(timeout=120)
    assert job.returncode == 0
    assert said.split("\n")[:-1] == ["interrupted", "met", "met"]


def test_a_barrier_ends_when_a_rank_has_gone() -> None:
    job = run(2, ORPHAN)
    said, _ = job.communicate(timeout=120)
    assert "alone" in said


def test_outside_of_a_job_joining_says_so() -> None:
    assert not ayre.is_launched()
    with pytest.raises(ayre.Error, match="ayre run"):
        ayre.join()
