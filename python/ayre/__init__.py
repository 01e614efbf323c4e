"""Ayre: a network interface in software.

Processes put and get each other's memory, perform atomics on it, and send each other messages: on
one host through shared memory, between hosts over Ethernet.

    import ayre

    with ayre.join() as port:  # started by `ayre run -n 2 -- python3 program.py`
        peer = port.rank ^ 1
        region = port.alloc(4096)
        port.share(peer, region)
        remote = port.accept_region(peer)
        port.put(remote, 0, b"hello, neighbour", ayre.Classes.COMPLETER)
        port.wait_notification()
        print(region.read(0, 16))
"""

from ._ayre import (
    Atomic,
    Batch,
    Counters,
    Grant,
    LocalSlice,
    Lock,
    Message,
    Messages,
    Notification,
    Notifications,
    Port,
    PostOptions,
    Queue,
    Record,
    Region,
    RemoteQueue,
    RemoteRegion,
    Strided,
    is_launched,
)
from ._errors import (
    AddressInUseError,
    ArgumentError,
    BoundsError,
    BufferAccessError,
    BusyError,
    ClosedError,
    Error,
    ExhaustedError,
    FaultError,
    InheritedError,
    InUseError,
    InvalidError,
    NoBufferError,
    NoMemoryError,
    PeerDeadError,
    PeerDiedError,
    PeerLeftError,
    RefusedError,
    RejectedError,
    RightsError,
    SetupError,
    SystemCallError,
    TimedOutError,
    TooLongError,
)
from ._names import AtomicOp, Busy, Classes, Fault, Operation, Rights

join = Port.join

__all__ = [
    "AddressInUseError",
    "ArgumentError",
    "Atomic",
    "AtomicOp",
    "Batch",
    "BoundsError",
    "BufferAccessError",
    "Busy",
    "BusyError",
    "Classes",
    "ClosedError",
    "Counters",
    "Error",
    "ExhaustedError",
    "Fault",
    "FaultError",
    "Grant",
    "InUseError",
    "InheritedError",
    "InvalidError",
    "LocalSlice",
    "Lock",
    "Message",
    "Messages",
    "NoBufferError",
    "NoMemoryError",
    "Notification",
    "Notifications",
    "Operation",
    "PeerDeadError",
    "PeerDiedError",
    "PeerLeftError",
    "Port",
    "PostOptions",
    "Queue",
    "Record",
    "RefusedError",
    "Region",
    "RejectedError",
    "RemoteQueue",
    "RemoteRegion",
    "Rights",
    "RightsError",
    "SetupError",
    "Strided",
    "SystemCallError",
    "TimedOutError",
    "TooLongError",
    "is_launched",
    "join",
]
