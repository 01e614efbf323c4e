"""Thousands of messages, or receives, that wait: in each of the ways in which a program may leave
them unmatched. Every message says which it is. Ends by itself, should one wait for ever."""

import signal
import struct

from mpi4py import MPI

MANY = 20_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def send_all(to, tags, comm=world):
    return [comm.Isend(struct.pack("i", tag), to, tag) for tag in tags]


def receive_all(source, tags, comm=world):
    rooms = {tag: bytearray(4) for tag in tags}
    return rooms, [comm.Irecv(room, source, tag) for tag, room in rooms.items()]


def check(rooms, requests=()):
    MPI.Request.Waitall(list(requests))
    for tag, room in rooms.items():
        assert struct.unpack("i", room) == (tag,), f"message {tag} says {bytes(room)}"


def backwards(count=MANY):
    return range(count - 1, -1, -1)


def reverse():
    """Received from the last to the first, one by one."""
    if rank == 0:
        MPI.Request.Waitall(send_all(1, range(MANY)))
    elif rank == 1:
        for tag in backwards():
            rooms, requests = receive_all(0, [tag])
            check(rooms, requests)


def ahead():
    """Receives are posted before anything is sent, and the last one's message comes first."""
    rooms, requests = receive_all(0, range(MANY)) if rank == 1 else ({}, [])
    world.Barrier()
    if rank == 0:
        MPI.Request.Waitall(send_all(1, backwards()))
    check(rooms, requests)


def both():
    """Both send all, and only then receive."""
    if rank < 2:
        sent = send_all(1 - rank, range(MANY))
        check(*receive_all(1 - rank, backwards()))
        MPI.Request.Waitall(sent)


def oneself():
    """All to oneself, and only then received."""
    sent = send_all(0, range(MANY), MPI.COMM_SELF)
    check(*receive_all(0, backwards(), MPI.COMM_SELF))
    MPI.Request.Waitall(sent)


def crowd():
    """From all others at once."""
    if rank > 0:
        return MPI.Request.Waitall(send_all(0, range(MANY // (size - 1))))
    for source in range(1, size):
        check(*receive_all(source, backwards(MANY // (size - 1))))


def held():
    """Long ones are held while short ones pass."""
    long = [bytes([at]) * (20_000 + 400 * at) for at in range(200)]
    if rank == 0:
        sent = [world.Isend(each, 1, MANY + at) for at, each in enumerate(long)]
        MPI.Request.Waitall(send_all(1, range(MANY)) + sent)
    elif rank == 1:
        check(*receive_all(0, backwards()))
        for at in backwards(len(long)):
            room = bytearray(len(long[at]))
            world.Recv(room, 0, MANY + at)
            assert room == long[at], f"long message {at}"


signal.alarm(600)
for case in [reverse, ahead, both, oneself, crowd, held]:
    start = MPI.Wtime()
    case()
    world.Barrier()
    if rank == 0:
        print(f"{case.__name__}: {MPI.Wtime() - start:.3f} s", flush=True)
