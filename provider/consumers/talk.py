"""Ranks that say in a folder that they have begun, and talk until somebody ends them."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
world.allreduce(1)
with open(f"{sys.argv[1]}/{world.rank}.begins", "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
os.rename(f"{sys.argv[1]}/{world.rank}.begins", f"{sys.argv[1]}/{world.rank}")
while True:
    world.alltoall([bytes(5000)] * world.size)
