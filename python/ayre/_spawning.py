"""Objects that processes of multiprocessing share by a file: on their way to a started child."""

from __future__ import annotations

import os
import weakref
from multiprocessing import context, reduction
from typing import Any, Protocol


class _Shared(Protocol):
    def to_file(self) -> int: ...


def state_of(holder: object, shared: _Shared) -> Any:
    """Give the file of a shared object to the child that is about to be started.

    Raises RuntimeError outside of the start of a process, as multiprocessing does.
    """
    context.assert_spawning(holder)
    descriptor = vars(holder).get("_descriptor")
    if descriptor is None:
        descriptor = vars(holder)["_descriptor"] = shared.to_file()
        # The child gets it when the parent has pickled all, so it stays as long as the object.
        weakref.finalize(holder, os.close, descriptor)
    return reduction.DupFd(descriptor)


class Given:
    """The file that a parent has given, as a path. Leaving the context closes it."""

    def __init__(self, state: Any) -> None:
        """Take the descriptor."""
        self._descriptor: int = state.detach()

    def __enter__(self) -> str:
        """Give the path."""
        return f"/proc/self/fd/{self._descriptor}"

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        os.close(self._descriptor)
