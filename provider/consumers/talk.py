"""Ranks that say in a folder that they have begun, and talk until that fails, and when it has."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
world.allreduce(1)
with open(f"{sys.argv[1]}/{world.rank}.begins", "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
os.rename(f"{sys.argv[1]}/{world.rank}.begins", f"{sys.argv[1]}/{world.rank}")
try:
    while True:
        world.alltoall([bytes(5000)] * world.size)
finally:
    with open(f"{sys.argv[1]}/{world.rank}.told", "w", encoding="ascii"):
        pass
