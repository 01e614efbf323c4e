"""Names of the numbers that the interface uses."""

from __future__ import annotations

import enum


class Rights(enum.IntFlag):
    """Rights on shared memory, or-ed."""

    READ = 1
    """Get."""
    WRITE = 2
    """Put."""
    ATOMIC = 4
    """Atomics."""
    ENQUEUE = 8
    """Records in a queue."""
    NOTIFY = 16
    """Notifications at the owner, along with an operation."""
    PROGRAM = 32
    """Deposit messages that carry instructions of their own."""
    ALL = 63
    """All rights."""


class Classes(enum.IntFlag):
    """Where an operation raises notifications, or-ed."""

    REQUESTER = 1
    """At the port that has posted it, when it has completed."""
    COMPLETER = 2
    """At the port where the data lands: the target of a put, or the origin of a get."""
    RESPONDER = 4
    """At the port where data was read: the target of a get or atomic."""


class Operation(enum.IntEnum):
    """The kind of an operation, in notifications."""

    PUT = 1
    GET = 2
    PUT_IMMEDIATE = 3
    NOTIFY = 4
    ATOMIC = 5
    FETCH = 6
    DEPOSIT = 7
    REPLY = 8


class AtomicOp(enum.IntEnum):
    """The effect of an atomic on the word."""

    ADD = 1
    AND = 2
    OR = 3
    XOR = 4
    MIN_UNSIGNED = 5
    MAX_UNSIGNED = 6
    MIN_SIGNED = 7
    MAX_SIGNED = 8
    SWAP = 9
    COMPARE_SWAP = 10
    """The word becomes the operand if it equals `compare`."""
    FCAA = 11
    """The operand is added if the word, signed, is at most `compare`. The result is the new one."""


class Busy(enum.IntEnum):
    """The reason why there is no room."""

    MESSAGE_LANE_FULL = 0
    REQUEST_LANE_FULL = 1
    NOTIFICATIONS_FULL = 2
    TOO_MANY_OUTSTANDING = 3
    QUEUE_FULL = 4
    CONNECTING = 5
    DEPOT_LOCKED = 6
    OVERFLOW_FULL = 7
    CHANNEL_FULL = 8
    STREAM_FULL = 9
    GROUP_FULL = 10


class Fault(enum.IntEnum):
    """The reason why an operation can never succeed."""

    UNKNOWN_KEY = 1
    STALE_KEY = 2
    RIGHTS = 3
    BOUNDS = 4
    ALIGNMENT = 5
    PEER_DEAD = 6
    MALFORMED = 7
    TOO_LONG = 8
    FOREIGN_HANDLE = 9
    PEER_RESTARTED = 10
    STOPPED = 11
    HELD = 12
    EXCEPTION = 13
    REFUSED = 14
    NO_MEMORY = 16
    INTERRUPTED = 17


class FailureReason(enum.IntEnum):
    """The reason why a stream has failed."""

    STAGE_FAILED = 2
    """A stage has raised an exception, or panicked."""
    UNKNOWN_STAGE = 3
    """There is no stage of this name."""
    NOWHERE = 4
    """No entry says where an item goes, or where the stream goes on."""
    TAKEN = 5
    """The next stream is fed already."""
    FULL = 6
    """There is no room for a stream."""
    UNREACHABLE = 7
    """The next port is not connected."""
    PEER_DIED = 8
    """A port has died."""
    CANCELLED = 9
    """Its source has given it up."""


class EntryAnswer(enum.IntEnum):
    """The reason why a port refuses to change its directory."""

    DENIED = 1
    """Only the port itself, or the one that has set the entry, may do this."""
    FULL = 2
    """There is no room for an entry."""
    TAKEN = 3
    """The destination is fed already, or the entry is in use."""
    UNKNOWN = 4
    """There is no such entry."""
