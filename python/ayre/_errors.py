"""Exceptions. Each text says what has happened, and what to do.

Error is the base of all. Where Python has a class for the kind of the error, it is a base, too.
"""

from __future__ import annotations

from ._names import Busy, EntryAnswer, FailureReason, Fault


class Error(Exception):
    """The base of all exceptions of this package."""


class BusyError(Error):
    """There is no room now. The call has had no effect: make progress and try again."""

    def __init__(self, message: str = "", reason: Busy = Busy.MESSAGE_LANE_FULL) -> None:
        """Keep the reason."""
        super().__init__(message)
        self.reason = reason


class FaultError(Error):
    """The operation can never succeed as it is."""

    def __init__(self, message: str = "", fault: Fault = Fault.MALFORMED) -> None:
        """Keep the fault."""
        super().__init__(message)
        self.fault = fault


class PeerDeadError(FaultError, ConnectionError):
    """The peer of the operation has left or died, or was started anew."""


class BoundsError(FaultError, IndexError):
    """The range leaves the memory."""


class RightsError(FaultError):
    """The handle lacks the right that the operation needs, or it was revoked."""


class ArgumentError(FaultError, ValueError):
    """An argument is wrong: too long, empty, not aligned, or of another port."""


class PeerDiedError(Error, ConnectionError):
    """A wait has ended with the death of a peer. Each peer is reported once."""

    def __init__(self, message: str = "", peer: int = 0) -> None:
        """Keep the number of the peer."""
        super().__init__(message)
        self.peer = peer


class TimedOutError(Error, TimeoutError):
    """The time of the call is over."""


class TooLongError(Error, ValueError):
    """The next message or record is longer than the buffer. It stays where it is."""

    def __init__(self, message: str = "", length: int = 0) -> None:
        """Keep the length in bytes."""
        super().__init__(message)
        self.length = length


class SetupError(Error):
    """A port, a connection or memory could not be set up."""


class SystemCallError(SetupError, OSError):
    """A system call has failed: `errno` has its number."""

    def __init__(self, message: str = "", errno: int = 0) -> None:
        """Keep the number of the error."""
        super().__init__(message)
        self.errno = errno


class InvalidError(SetupError, ValueError):
    """The call contradicts itself or a stated limit, or the environment is wrong."""


class RefusedError(SetupError, ConnectionError):
    """The peer has refused the connection, or refuses as the member of a group."""

    def __init__(self, message: str = "", peer: int | None = None) -> None:
        """Keep the number of the member."""
        super().__init__(message)
        self.peer = peer


class RejectedError(SetupError, ConnectionError):
    """This side has refused the connection."""


class PeerLeftError(SetupError, ConnectionError):
    """The peer has left or died during set-up."""


class AddressInUseError(SetupError, OSError):
    """Another process listens at the path, or the file there is no socket."""


class NoMemoryError(SetupError, MemoryError):
    """There is too little memory."""


class ExhaustedError(SetupError):
    """A table is full."""


class MismatchError(Error, ValueError):
    """Members of a group do different collectives, or with different numbers of bytes."""

    def __init__(self, message: str = "", peer: int = 0) -> None:
        """Keep the number of the other member."""
        super().__init__(message)
        self.peer = peer


class GivenUpError(Error):
    """A member has given the group up: its own exception says why."""

    def __init__(self, message: str = "", peer: int = 0) -> None:
        """Keep the number of the member."""
        super().__init__(message)
        self.peer = peer


class NoMemberError(Error):
    """The port is no member of the group, or is leaving it."""


class UnreachableError(Error, ConnectionError):
    """A member is not connected with this port, or the door has died or is no peer."""

    def __init__(self, message: str = "", peer: int = 0) -> None:
        """Keep the number of the door."""
        super().__init__(message)
        self.peer = peer


class UnknownOutcomeError(Error, ConnectionError):
    """The door has gone: the message may have been delivered, or not."""

    def __init__(self, message: str = "", peer: int = 0) -> None:
        """Keep the number of the door."""
        super().__init__(message)
        self.peer = peer


class StreamFailedError(Error):
    """The stream has failed."""

    def __init__(
        self,
        message: str = "",
        reason: FailureReason = FailureReason.STAGE_FAILED,
        peer: int = 0,
    ) -> None:
        """Keep the reason, and the port where it has failed: after a death, the one that died."""
        super().__init__(message)
        self.reason = reason
        self.peer = peer


class EntryRefusedError(Error):
    """A port refuses to change its directory of entries."""

    def __init__(
        self, message: str = "", reason: EntryAnswer = EntryAnswer.DENIED, peer: int = 0
    ) -> None:
        """Keep the reason, and the port."""
        super().__init__(message)
        self.reason = reason
        self.peer = peer


class InUseError(Error, RuntimeError):
    """The object is in use: by another thread, or by the call that a handler has interrupted."""


class InheritedError(Error, RuntimeError):
    """The port is the parent process's. A forked child opens one of its own."""


class ClosedError(Error, ValueError):
    """The object was closed or revoked."""


class BufferAccessError(Error, BufferError):
    """The buffer is read-only, or in use."""


class NoBufferError(Error, TypeError):
    """The object has no bytes that could be sent or written."""


_FAULTS: dict[Fault, type[FaultError]] = {
    Fault.UNKNOWN_KEY: RightsError,
    Fault.STALE_KEY: RightsError,
    Fault.RIGHTS: RightsError,
    Fault.BOUNDS: BoundsError,
    Fault.ALIGNMENT: ArgumentError,
    Fault.PEER_DEAD: PeerDeadError,
    Fault.MALFORMED: ArgumentError,
    Fault.TOO_LONG: ArgumentError,
    Fault.FOREIGN_HANDLE: ArgumentError,
    Fault.PEER_RESTARTED: PeerDeadError,
}


def busy(message: str, reason: int) -> BusyError:
    """Make the exception of a reason for no room."""
    return BusyError(message, Busy(reason))


def fault(message: str, code: int) -> FaultError:
    """Make the exception of a fault."""
    why = Fault(code)
    return _FAULTS.get(why, FaultError)(message, why)


def stream_failed(message: str, reason: int, peer: int) -> StreamFailedError:
    """Make the exception of a stream's failure."""
    return StreamFailedError(message, FailureReason(reason), peer)


def entry_refused(message: str, reason: int, peer: int) -> EntryRefusedError:
    """Make the exception of a refused entry."""
    return EntryRefusedError(message, EntryAnswer(reason), peer)
