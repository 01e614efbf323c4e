"""Signals, forks, kills, and the end of the interpreter while operations are under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ayre
from conftest import Loop

WAITS = {
    "recv": "port.recv()",
    "recv_into": "port.recv_into(bytearray(8))",
    "wait_notification": "port.wait_notification()",
    "messages": "list(port.messages())",
    "dequeue_wait": "port.dequeue_wait(port.create_queue(64))",
    "accept": "port.accept()",
    "accept_region": "port.accept_region(own)",
    "accept_queue": "port.accept_queue(own)",
    "lock": "[ayre.Lock(port, remote, 0, 2).lock() for _ in range(2)]",
    "send_wait": "[port.send_wait(own, bytes(1024)) for _ in range(10**6)]",
    "connect": "ayre.Port(number=7).connect(sys.argv[1])",
}

PROGRAM = """
import signal, sys
import ayre

port = ayre.Port(spin="shared", setup_timeout=600)
own = port.connect_loopback()
port.listen(sys.argv[1])
remote_of = port.alloc(64)
port.share(own, remote_of, name=9)
remote = port.accept_region(own, 9)
try:
    print("ready", flush=True)
    {wait}
except KeyboardInterrupt:
    port.send(own, b"x") if {may_send} else None
    print("interrupted", flush=True)
    port.close()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program in Python, and wait until it is ready."""
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupt_ends_a_wait(wait: str, path: str) -> None:
    program = PROGRAM.format(wait=WAITS[wait], may_send=wait != "send_wait")
    process = start(program, path)
    until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("interrupted\n", 0)


# Waits for a peer that never answers.
UNANSWERED = {
    "flush": "port.notify(1); port.flush(1)",
    "get": "port.get(remote, 0, bytearray(64))",
    "get in pieces": "port.get(remote, 0, bytearray(1 << 20))",
    "get of rows": "port.get(remote, 0, np.zeros((64, 128))[:, :64])",
    "put in pieces": "port.put(remote, 0, bytes(1 << 20))",
    "fetch_add": "port.fetch_add(remote, 0, 1)",
    "fetch": "port.fetch(remote, 0, ayre.Atomic(ayre.AtomicOp.SWAP, 1))",
    "lock": "[ayre.Lock(port, remote).lock() for _ in range(2)]",
    "leave": "port.notify(1); port.leave()",
    "Messenger.wait": "messenger().wait()",
    "sync": "messenger().sync()",
    "call": "[messenger().call(1, 'no', payload=bytes(1000)) for _ in range(10**6)]",
    "long call": "messenger().call(1, 'no', payload=bytes(64 << 20))",
    "second long call": "[messenger().call(1, 'no', payload=bytes(2000)) for _ in range(10**6)]",
    "Messenger.flush": "flush_replies()",
    "Group.barrier": "messenger().group().barrier()",
    "short allreduce": "messenger().group().allreduce(np.ones(4))",
    "long allreduce": "messenger().group().allreduce(np.ones(1 << 20))",
    "gather": "messenger().group().gather(np.ones(1 << 20), root=1)",
    "Channel.call": "[channel().call(1, 'no', payload=bytes(999)) for _ in range(10**6)]",
    "stream": "messenger().stream((1, 'no'), (1, 'no'))",
    "set_entry": "messenger().set_entry(1, (0, 1), ayre.Entry(1, 1, 'no'))",
    "join": "messenger().join('group', 1)",
    "send_through": "messenger().send_through('group', 1, 'no')",
    "Endpoint.recv": "ayre.Endpoint(local=True).recv(8)",
    "Endpoint.send": "endpoint_send()",
    "Request.wait": "messenger().group().start('allreduce', np.ones(1 << 16)).wait()",
}

ALONE = """
import sys, threading
import ayre
import numpy as np

ports = [
    ayre.Port(mode=sys.argv[2], number=number, spin="shared", setup_timeout=600, linger=0)
    for number in range(2)
]
ports[1].listen(sys.argv[1])
waiter = threading.Thread(target=ports[1].accept)
waiter.start()
ports[0].connect(sys.argv[1])
waiter.join()
port = ports[0]
region = ports[1].alloc(1 << 20)
ports[1].share(0, region)
remote = port.accept_region(1)

def messenger():
    return ayre.Messenger(port)

def flush_replies():
    it, own = messenger(), port.connect_loopback()
    @it.handler("flood")
    def flood(call, payload):
        for _ in range(999):
            call.send(1, "no", payload=bytes(1000))
    it.call(own, "flood")
    it.poll()
    it.flush()

def channel():
    return messenger().channel(5)

def endpoint_send():
    near, far = ayre.Endpoint(local=True), ayre.Endpoint(local=True)
    near.send(near.remote(far.address), bytes(1 << 24))

try:
    print("ready", flush=True)
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if not port.is_closed and {goes_on}:
        # The port is as good as before: what was left comes, and what follows it.
        served = threading.Event()
        def progress():
            while not served.is_set():
                ports[1].progress()
        serve = threading.Thread(target=progress)
        serve.start()
        data = bytearray(6)
        port.flush(1)
        port.put(remote, 8, b"behind")
        port.get(remote, 8, data)
        port.flush(1)
        served.set()
        serve.join()
        print(bytes(data).decode(), flush=True)
    for one in ports:
        one.close()
"""


@pytest.mark.parametrize("mode", ["direct", "mediated"])
@pytest.mark.parametrize("wait", UNANSWERED)
def test_an_interrupt_ends_a_wait_for_a_peer(wait: str, mode: str, path: str) -> None:
    is_done_here = wait in ("flush", "leave") or wait.startswith(("get", "put", "fetch"))
    if mode == "direct" and is_done_here and wait != "gather":
        pytest.skip("it waits for nobody")
    goes_on = mode == "mediated" and is_done_here and wait != "leave"
    process = start(ALONE.format(wait=UNANSWERED[wait], goes_on=goes_on), path, mode)
    until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    expected = "interrupted\nbehind\n" if goes_on else "interrupted\n"
    assert (said, process.returncode) == (expected, 0)


def until_it_waits(pid: int) -> None:
    """Wait until the main thread of a process sleeps, or has polled for a tenth of a second."""
    first = None
    while True:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        used = int(words[11]) + int(words[12])
        first = used if first is None else first
        if words[0] in "SZ" or used > first + 10:
            return
        os.sched_yield()


def test_a_handler_may_not_use_the_port_that_it_interrupts(pair: tuple) -> None:
    near, far = pair
    found: list[object] = []

    def handler(_number: int, _frame: object) -> None:
        try:
            near.poll_notification()
        except ayre.InUseError as error:
            found.append(error)
        far.send(0, b"go on")

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.main_thread().ident
    assert main is not None
    thread = threading.Thread(target=lambda: signal.pthread_kill(main, signal.SIGUSR1))
    thread.start()
    assert near.recv(60.0).data == b"go on"
    thread.join()
    signal.signal(signal.SIGUSR1, before)
    assert len(found) <= 1


def test_a_forked_child_opens_a_port_of_its_own(loop: Loop) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            try:
                loop.port.send(loop.own, b"from the child")
            except ayre.InheritedError as error:
                said = str(error)
            loop.port.close()
            with ayre.Port(number=3) as port:
                port.connect_loopback()
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        assert told.read() == (
            "the port is the parent process's: a forked child opens one of its own"
        )
    loop.port.send(loop.own, b"still here")
    assert loop.port.recv(10.0).data == b"still here"


def test_a_child_is_forked_in_a_handler(loop: Loop) -> None:
    """The engine runs the handler: in the child it goes on with the parent's port."""
    messenger = ayre.Messenger(loop.port)
    parent, codes = os.getpid(), []

    @messenger.handler("fork")
    def fork(call: ayre.Call, payload: bytes) -> None:
        child = os.fork()
        if child > 0:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return
        try:
            loop.port.progress()
        except ayre.InheritedError:
            call.reply("fork")
            return
        os._exit(2)

    messenger.call(loop.own, "fork")
    while not codes:
        messenger.poll()
        if os.getpid() != parent:
            try:
                messenger.poll()
            except ayre.InheritedError:
                os._exit(0)
            os._exit(3)
    assert codes == [0]
    messenger.sync()


ENDS = {
    "a thread waits": "threading.Thread(target=port.recv, daemon=True).start()",
    "threads wait and compute": """
for number in range(4):
    other = ayre.Port(number=number)
    threading.Thread(target=other.recv, daemon=True).start()
threading.Thread(target=lambda: [x for x in iter(int, 1)], daemon=True).start()
""",
    "operations are posted": "port.send(own, bytes(64)); port.notify(own)",
    "views live": "array = region.array(8); view = memoryview(region)",
    "it exits inside": "with port: sys.exit(0)",
    "an endpoint waits": """
endpoint = ayre.Endpoint(local=True)
posted = endpoint.post_receive(8)
threading.Thread(target=endpoint.recv, args=(8,), daemon=True).start()
""",
    "a messenger is at work": """
messenger = ayre.Messenger(port)
messenger.handler("it")(lambda call, payload: None)
messenger.stage("it")(lambda flow, item: None)
messenger.call(own, "it", payload=bytes(500))
stream = messenger.stream((own, "it"))
stream.push(b"item")
member = messenger.found("group", lambda view: None)
request = messenger.group().start("allreduce", __import__("numpy").ones(1000))
""",
    "it is forced": "os._exit(0)",
}

END = """
import os, sys, threading
import ayre

port = ayre.Port(mode=sys.argv[1], spin="shared")
own = port.connect_loopback()
region = port.alloc(4096)
print("ready", flush=True)
{end}
"""


@pytest.mark.parametrize("mode", ["direct", "mediated"])
@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends(end: str, mode: str) -> None:
    process = start(END.format(end=ENDS[end]), mode)
    process.communicate(timeout=60)
    assert process.returncode == 0


PEER = """
import sys
import ayre

port = ayre.Port(number=1, spin="shared")
port.connect(sys.argv[1])
region = port.alloc(4096)
port.share(0, region)
print("ready", flush=True)
port.recv()
"""


def test_a_killed_peer_is_a_connection_error(path: str) -> None:
    port = ayre.Port(number=0, spin="shared")
    port.listen(path)
    waiter = threading.Thread(target=port.accept)
    waiter.start()
    process = start(PEER, path)
    waiter.join()
    remote = port.accept_region(1)
    process.kill()
    process.wait()
    with pytest.raises(ConnectionError):
        port.recv(60.0)
    with pytest.raises(ConnectionError):
        port.put(remote, 0, b"x")
    port.close()


def test_many_threads_have_a_port_each(tmp_path: Path) -> None:
    """Each of eight threads sends to the next one, and all take what comes."""
    count, rounds = 8, 200
    ports = [ayre.Port(number=number, spin="shared") for number in range(count)]
    for near in range(count):
        path = os.path.relpath(tmp_path / str(near))
        ports[near].listen(path)
        for far in range(near + 1, count):
            waiter = threading.Thread(target=ports[near].accept)
            waiter.start()
            ports[far].connect(path)
            waiter.join()
    sums = [0] * count

    def run(rank: int) -> None:
        for number in range(rounds):
            ports[rank].send_wait((rank + 1) % count, number.to_bytes(4, "little"))
            sums[rank] += int.from_bytes(ports[rank].recv().data, "little")

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(rounds))] * count
    for port in ports:
        port.close()
