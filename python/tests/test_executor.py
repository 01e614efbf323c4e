"""Tasks for the ranks of a job."""

from __future__ import annotations

import pytest

from test_jobs import TOOL, run

pytestmark = pytest.mark.skipif(TOOL is None, reason="there is no tool `ayre`")

HEAD = """
import os, signal, sys, threading
from concurrent.futures import BrokenExecutor, CancelledError, wait
import numpy as np
import ayre

def square(x):
    return x * x

def rank_of(_):
    return os.getpid()

def fails(x):
    raise KeyError(x)

class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__("odd")

def fails_oddly():
    raise Unpicklable(1, 2)

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

def long(n):
    return bytes(n)

messenger = ayre.Messenger(ayre.join(spin="shared"))
if messenger.port.rank != 0:
    try:
        ayre.Executor.work(messenger)
    except ConnectionError:
        print("alone\\n", end="", flush=True)
    messenger.port.close()
    sys.exit()
"""

GOOD = (
    HEAD
    + """
with ayre.Executor(messenger) as executor:
    assert list(executor.map(square, range(500))) == [x * x for x in range(500)]
    pids = set(executor.map(rank_of, range(200)))
    assert len(pids) == 3 and os.getpid() not in pids
    array = np.arange(1 << 17, dtype=float)
    assert (executor.submit(square, array).result() == array * array).all()
    error = executor.submit(fails, "key").exception()
    assert type(error) is KeyError and error.args == ("key",)
    assert "in fails" in str(error.__cause__)
    odd = executor.submit(fails_oddly).exception()
    assert type(odd) is RuntimeError and "Unpicklable" in str(odd)
    late = executor.submit(long, 65 << 20).exception()
    assert isinstance(late, ValueError), late
    early = executor.submit(square, bytes(65 << 20)).exception()
    assert isinstance(early, ValueError), early
    try:
        executor.submit(lambda: 1)
    except Exception as error:
        assert "pickle" in str(error)
    assert executor.submit(square, x=4).result() == 16
try:
    executor.submit(square, 1)
except RuntimeError as error:
    assert "shut down" in str(error)
executor.shutdown()
assert messenger.port.rank == 0, "the port is the program's again"
messenger.port.close()
print("good", flush=True)
"""
)

CANCELLED = (
    HEAD
    + """
executor = ayre.Executor(messenger, ahead=1)
futures = [executor.submit(square, x) for x in range(1000)]
cancelled = [future for future in futures if future.cancel()]
assert cancelled
executor.shutdown(wait=False, cancel_futures=True)
executor.shutdown()
for x, future in enumerate(futures):
    assert future.cancelled() or future.result() == x * x
messenger.port.close()
print("good", flush=True)
"""
)

BROKEN = (
    HEAD
    + """
with ayre.Executor(messenger) as executor:
    killed = executor.submit(dies)
    others = [executor.submit(square, x) for x in range(200)]
    assert isinstance(killed.exception(), BrokenExecutor)
    broken = [one for one in others if one.exception() is not None]
    assert len(broken) <= 1 and all(isinstance(it.exception(), BrokenExecutor) for it in broken)
    assert executor.submit(square, 3).result() == 9
    others = [executor.submit(dies) for _ in range(5)]
    wait(others)
    assert all(isinstance(it.exception(), BrokenExecutor) for it in others)
    try:
        executor.submit(square, 1)
    except BrokenExecutor as error:
        print("broken", error, flush=True)
messenger.port.close()
"""
)

DEAD = (
    HEAD
    + """
executor = ayre.Executor(messenger)
assert executor.submit(square, 2).result() == 4
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def said(ranks: int, program: str, *options: str) -> tuple[str, int]:
    job = run(ranks, program, *options)
    text, _ = job.communicate(timeout=120)
    return text, job.returncode


def test_tasks_run_on_the_other_ranks() -> None:
    assert said(4, GOOD) == ("good\n", 0)


def test_tasks_that_have_not_begun_are_cancelled() -> None:
    assert said(3, CANCELLED) == ("good\n", 0)


def test_a_workers_death_breaks_its_tasks_alone() -> None:
    text, _ = said(3, BROKEN, "--keep-going")
    assert text == "broken the job has no other rank that is alive\n"


def test_workers_learn_of_the_executors_death() -> None:
    text, _ = said(3, DEAD, "--keep-going")
    assert text == "alone\n" * 2
