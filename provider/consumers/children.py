"""Processes of `multiprocessing`, by each of its ways, beside messages of the program that starts
them: the children compute, their parent goes on to send and receive.

Prints a line for each way.
"""

import multiprocessing
import sys


def square(number):
    return number * number


def main():
    # Here, as a spawned child imports this module and is no rank.
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    other = world.rank ^ 1
    large = bytes(range(256)) * 4096
    for way in ("fork", "spawn", "forkserver"):
        # A receive and a send are under way while the children begin, work and end.
        receiving = world.irecv(2 << 20, source=other)
        sending = world.isend(large, dest=other)
        with multiprocessing.get_context(way).Pool(2) as pool:
            for _ in range(20):
                assert pool.map(square, range(40)) == [n * n for n in range(40)]
                assert world.allreduce(world.rank) == world.size * (world.size - 1) // 2
        assert receiving.wait() == large
        sending.wait()
        world.barrier()
        if world.rank == 0:
            print(way, flush=True)


if __name__ == "__main__":
    sys.exit(main())
