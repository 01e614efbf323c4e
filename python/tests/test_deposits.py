"""Deposit messages: a small program at the destination places them."""

from __future__ import annotations

import pytest

import ayre
from ayre import Rights
from conftest import Loop

PROGRAM = """
entry; write [r0]; r0 += r1
entry; decline if r0 >= r2; write [r0]; r0 += r1
"""
ALL = Rights.READ | Rights.WRITE | Rights.NOTIFY


def share(loop: Loop, holds: bool = False) -> tuple[ayre.Depot, ayre.Inlet, ayre.RemoteInlet]:
    """Make a depot with the program, which the port itself enters."""
    depot = loop.port.create_depot()
    depot.store(0, ayre.assemble(PROGRAM))
    depot.set_register(1, 8)
    depot.set_register(2, 16)
    access = ayre.InletOptions(ALL, entries=(0, 2), registers=(0, 3), holds=holds)
    inlet = loop.port.share_inlet(loop.own, depot, loop.region.slice(0, 64), access, 4)
    return depot, inlet, loop.port.accept_inlet(loop.own, 4)


def test_messages_place_themselves(loop: Loop) -> None:
    depot, _, remote = share(loop)
    for data in (b"the one ", b"the next"):
        loop.port.deposit(remote, ayre.Deposit.enter(0, data=data))
    loop.port.flush(loop.own)
    assert loop.region.read(0, 16) == b"the one the next"
    assert depot.register(0) == 16
    value, declined = loop.port.deposit_fetch(remote, ayre.Deposit.enter(1, data=b"too late"))
    assert declined
    assert value >= 0
    assert loop.region.read(16, 8) == bytes(8)


def test_a_frozen_depot_keeps_messages_out() -> None:
    loop = Loop(ayre.Port())
    depot, _, remote = share(loop)
    with depot.freeze() as frozen:
        frozen.set_register(0, 24)
        assert frozen.register(0) == 24
        with pytest.raises(ayre.BusyError) as busy:
            loop.port.deposit(remote, ayre.Deposit.enter(0, data=b"waits..."))
        assert busy.value.reason == ayre.Busy.DEPOT_LOCKED
    with pytest.raises(ayre.ClosedError):
        frozen.register(0)
    loop.port.deposit(remote, ayre.Deposit.enter(0, data=b"went on."))
    assert loop.region.read(24, 8) == b"went on."


def test_an_inlet_that_holds_stops_at_a_fault(loop: Loop) -> None:
    depot, inlet, remote = share(loop, holds=True)
    depot.set_register(0, 1000)
    loop.port.deposit(remote, ayre.Deposit.enter(0, data=b"outside!"))
    with pytest.raises(ayre.FaultError) as held:
        loop.port.flush(loop.own)
    assert held.value.fault == ayre.Fault.HELD
    found = inlet.held()
    assert found is not None
    assert isinstance(found.cause, IndexError)
    assert (found.data, found.enters, found.carries) == (b"outside!", (0, (0, 0, 0)), None)
    depot.set_register(0, 0)
    inlet.resume()
    assert loop.region.read(0, 8) == b"outside!"
    with pytest.raises(ayre.FaultError):
        inlet.skip()


def test_a_revoked_inlet_is_closed(loop: Loop) -> None:
    _, inlet, remote = share(loop)
    loop.port.revoke_inlet(inlet)
    with pytest.raises(ayre.ClosedError):
        inlet.held()
    with pytest.raises(ayre.FaultError):
        loop.port.deposit_fetch(remote, ayre.Deposit.enter(0, data=b"closed.."))


def test_wrong_instructions_are_named() -> None:
    with pytest.raises(ValueError, match="wrote"):
        ayre.assemble("wrote [r0]")
    with pytest.raises(ayre.FaultError):
        ayre.Stored(2**64 - 1)
    port = ayre.Port()
    depot = port.create_depot()
    with pytest.raises(ValueError, match="256"):
        depot.store(255, ayre.assemble(PROGRAM))
    with pytest.raises(OverflowError):
        depot.register(256)
    with pytest.raises(ValueError, match="protection"):
        depot.protect(0, 1, 4)
