"""Finds clusters (k-means) in points that are spread over the ranks, by an allreduce in each step.

    ayre run -n 2 -- python3 python/examples/kmeans.py engine/examples/data/iris.csv 3

A line of the file is a point. Its first line is a heading, and its last column a label: both are
skipped. Rank 0 compares the clusters with those that it finds alone.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import ayre

Array = np.ndarray[Any, np.dtype[np.float64]]
STEPS_MAX = 100


def read_points(path: str) -> Array:
    """Read the points of a file, one for each row of the result."""
    with open(path, newline="") as file:
        rows = [row[:-1] for row in csv.reader(file) if row]
    return np.array(rows[1:], dtype=np.float64)


def sums(points: Array, centres: Array) -> Array:
    """Sum the points of each cluster; the last column counts them."""
    distances = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    members = np.eye(len(centres))[distances.argmin(axis=1)]
    return np.hstack([members.T @ points, members.sum(axis=0)[:, np.newaxis]])


def find(points: Array, centres: Array, total: Callable[[Array], Array]) -> tuple[Array, int]:
    """Move the centres until they rest. `total` sums an array over all ranks."""
    for step in range(1, STEPS_MAX + 1):
        found = total(sums(points, centres))
        counts = found[:, -1:]
        moved = np.where(counts > 0, found[:, :-1] / np.maximum(counts, 1), centres)
        if np.allclose(moved, centres, rtol=0, atol=1e-12):
            return moved, step
        centres = moved
    return centres, STEPS_MAX


def main() -> None:
    """Find the clusters of a file."""
    if len(sys.argv) != 3:
        sys.exit("usage: kmeans.py FILE CLUSTERS")
    points, clusters = read_points(sys.argv[1]), int(sys.argv[2])
    if not 0 < clusters <= len(points):
        sys.exit(f"kmeans: from 1 to {len(points)} clusters")
    first = points[np.linspace(0, len(points) - 1, clusters, dtype=int)]
    with ayre.join() as port:
        group = ayre.Messenger(port).group()
        own = points[port.rank :: port.size]
        centres, steps = find(own, first, lambda array: group.allreduce(array, "sum"))
        if port.rank == 0:
            alone, _ = find(points, first, lambda array: array)
            if not np.allclose(centres, alone, rtol=0, atol=1e-9):
                sys.exit("kmeans: these are not the clusters that one process finds")
            print(f"{len(points)} points, {port.size} ranks, {steps} steps; centres:")
            print(np.array2string(centres, precision=3))
            print("They are the clusters that one process finds.")
        group.barrier()


if __name__ == "__main__":
    main()
