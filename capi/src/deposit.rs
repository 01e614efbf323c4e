//! Deposit messages: a small program at the destination places them.
use crate::access::{ayre_options, ayre_peer};
use crate::border::{self, Buffer, Bytes, In, Out, Text};
use crate::error::{self, Failure, Outcome, flag, number, posted, status};
use crate::memory::{ayre_range, ayre_region};
use crate::place::handle;
use crate::port::ayre_port;
use ayre::deposit::{
    Deposit, Depot, Form, Frozen, HeldMessage, Inlet, InletOptions, Instruction, Protection,
    RemoteInlet, Reply, Stored, assemble,
};
use ayre::memory::Fenced;
use ayre::{PeerId, Rights};
use std::ffi::c_int;

/// A depot: registers and stored instructions for deposit messages.
pub struct ayre_depot(#[allow(dead_code, reason = "opaque")] Owned);
handle!(ayre_depot of Owned);

/// One peer's access to a depot, at the depot's owner.
pub struct ayre_inlet(#[allow(dead_code, reason = "opaque")] Inlet);
handle!(ayre_inlet of Inlet);

/// A peer's depot, as far as it lets this port send messages to it.
pub struct ayre_remote_inlet(#[allow(dead_code, reason = "opaque")] RemoteInlet);
handle!(ayre_remote_inlet of RemoteInlet);

/// A depot, and the hold on it while it is frozen.
pub struct Owned {
    frozen: Option<Hold>,
    depot: Depot,
}

self_cell::self_cell!(
    /// A hold on a depot, with that depot.
    struct Hold {
        owner: Depot,
        #[covariant]
        dependent: Frozen,
    }
);

/// The holder may send messages that carry instructions of their own.
pub const AYRE_PROGRAM: u32 = 32;

/// Messages may use a register's value.
pub const AYRE_REGISTER_READ: u8 = 1;
/// Messages may change it.
pub const AYRE_REGISTER_WRITE: u8 = 2;

/// An instruction, as `ayre_assemble` gives it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_stored {
    /// The instruction.
    pub word: u64,
    /// Its operand, where the message does not bring it.
    pub operand: u64,
    /// 1 if messages may enter here.
    pub enters: c_int,
}

impl ayre_stored {
    fn stored(&self) -> Outcome<Stored> {
        let instruction = Instruction::parse(self.word)?;
        Ok(Stored { instruction, operand: self.operand, enters: self.enters != 0 })
    }
}

impl From<Stored> for ayre_stored {
    fn from(Stored { instruction, operand, enters }: Stored) -> Self {
        Self { word: instruction.word(), operand, enters: enters.into() }
    }
}

/// Reads instructions from text, one a line or with newlines between, such as
/// `entry; decline if r0 >= r2; write [r0 wrapped]; r0 += r1`. Writes at most `room` of them.
/// Returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_assemble(lines: Text, instructions: Out<ayre_stored>, room: usize) -> i64 {
    number(|| {
        let mut count = 0;
        for line in lines.text()?.lines() {
            let Some(stored) = assemble(line).map_err(|error| Failure::Argument(error.0))? else {
                continue;
            };
            if (count as usize) < room {
                instructions.fill_at(count as usize, stored)?;
            }
            count += 1;
        }
        Ok::<u32, Failure>(count)
    })
}

/// Makes a depot, with all registers 0 and no instructions.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_create_depot(port: Out<ayre_port>, depot: Out<*mut ayre_depot>) -> c_int {
    status(|| {
        depot.hand_out(|| {
            let depot = port.held()?.create_depot()?;
            Ok(Owned { frozen: None, depot })
        })
    })
}

/// Closes the handle of a depot; one that is frozen is thawed. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_close(depot: Out<ayre_depot>) -> c_int {
    border::closed(depot)
}

/// Reads a register. The memory that the message wrote that has set it is visible.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_register(
    depot: Out<ayre_depot>,
    register: u8,
    value: Out<u64>,
) -> c_int {
    status(|| {
        let depot = depot.held()?;
        let frozen = depot.frozen.as_ref().map(|hold| hold.borrow_dependent().register(register));
        value.fill(frozen.unwrap_or_else(|| depot.depot.register(register)));
        Ok(())
    })
}

/// Sets a register. `AYRE_BUSY_DEPOT` while the depot is frozen, or in use for long.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_set_register(
    depot: Out<ayre_depot>,
    register: u8,
    value: u64,
) -> c_int {
    status(|| Ok(depot.held()?.depot.set_register(register, value)?))
}

/// Sets how messages may use the registers from `first` to `last` that they name:
/// `AYRE_REGISTER_READ` and `AYRE_REGISTER_WRITE`, or-ed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_protect(
    depot: Out<ayre_depot>,
    first: u8,
    last: u8,
    protection: u8,
) -> c_int {
    status(|| {
        let protection = Protection::from_bits_truncate(protection);
        Ok(depot.held()?.depot.protect(first..=last, protection)?)
    })
}

/// Stores instructions, the first one at place `at`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_store(
    depot: Out<ayre_depot>,
    at: u8,
    instructions: In<ayre_stored>,
    count: usize,
) -> c_int {
    status(|| {
        let stored: Outcome<Vec<_>> =
            instructions.array(count)?.iter().map(ayre_stored::stored).collect();
        Ok(depot.held()?.depot.store(at, &stored?)?)
    })
}

/// Removes the instructions from place `first` to `last`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_erase(depot: Out<ayre_depot>, first: u8, last: u8) -> c_int {
    status(|| Ok(depot.held()?.depot.erase(first..=last)?))
}

/// Keeps all messages out until `ayre_depot_thaw`: registers and memory stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_freeze(depot: Out<ayre_depot>) -> c_int {
    status(|| {
        let mut depot = depot.held()?;
        let hold = Hold::try_new(depot.depot.clone(), Depot::freeze)?;
        depot.frozen = Some(hold);
        Ok(())
    })
}

/// Sets a register of a depot that is frozen.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_set_frozen(depot: Out<ayre_depot>, register: u8, value: u64) -> c_int {
    status(|| {
        let mut depot = depot.held()?;
        let hold = depot.frozen.as_mut().ok_or(Failure::Argument("the depot is not frozen"))?;
        hold.with_dependent_mut(|_, frozen| frozen.set_register(register, value));
        Ok(())
    })
}

/// Lets messages in again.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_depot_thaw(depot: Out<ayre_depot>) -> c_int {
    status(|| {
        depot.held()?.frozen = None;
        Ok(())
    })
}

/// The access that a peer gets to a depot.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_inlet_options {
    /// `AYRE_WRITE`, `AYRE_READ`, `AYRE_MAY_NOTIFY` and `AYRE_PROGRAM`, or-ed.
    pub rights: u32,
    /// The first register of those that the peer's messages may name, and the one behind the last.
    pub registers: [u16; 2],
    /// The first instruction of those that they may enter, and the one behind the last.
    pub entries: [u16; 2],
    /// The longest data in bytes.
    pub longest: u16,
    /// 1 if the inlet stops at a message that faults, so that the owner decides.
    pub holds: u16,
}

/// Lets a peer send messages to a depot, over a range of a region, under a name that it uses in
/// `ayre_accept_inlet`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_share_inlet(
    port: Out<ayre_port>,
    peer: ayre_peer,
    depot: Out<ayre_depot>,
    region: In<ayre_region>,
    range: ayre_range,
    access: In<ayre_inlet_options>,
    name: u64,
    inlet: Out<*mut ayre_inlet>,
) -> c_int {
    status(|| {
        let access = access.given()?;
        let ([first, end], [entry, behind]) = (access.registers, access.entries);
        let limits = InletOptions::new()
            .rights(Rights::from_bits_truncate(access.rights as u8))
            .registers(first..end)
            .entries(entry..behind)
            .longest(access.longest);
        let limits = if access.holds == 0 { limits } else { limits.holds() };
        let part = (region.shared()?, range.start..range.end);
        inlet.hand_out(|| {
            let (mut port, depot) = (port.held()?, depot.held()?);
            let inlet = port.share_inlet(PeerId(peer), &depot.depot, part, &limits, name)?;
            Ok(inlet)
        })
    })
}

/// Takes an inlet back, and closes it. No message comes by it after the call. Blocks for peers
/// inside an operation. Returns 1 if the region's contents were moved, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_revoke_inlet(port: Out<ayre_port>, inlet: Out<ayre_inlet>) -> c_int {
    flag(|| {
        let mut port = port.held()?;
        Ok(port.revoke_inlet(inlet.close()?)? == Fenced::Moved)
    })
}

/// Closes the handle of an inlet. The peer keeps its access. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_inlet_close(inlet: Out<ayre_inlet>) -> c_int {
    border::closed(inlet)
}

/// Accepts the inlet that a peer has shared, or shares soon, under a name. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_accept_inlet(
    port: Out<ayre_port>,
    peer: ayre_peer,
    name: u64,
    inlet: Out<*mut ayre_remote_inlet>,
) -> c_int {
    status(|| inlet.hand_out(|| Ok(port.held()?.accept_inlet(PeerId(peer), name)?)))
}

/// Lets an inlet that had stopped take messages again, after its owner has let it run. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_rejoin_inlet(port: Out<ayre_port>, inlet: Out<ayre_remote_inlet>) -> c_int {
    status(|| Ok(port.held()?.rejoin_inlet(&mut *inlet.held()?)?))
}

/// Closes the handle of a peer's inlet. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_inlet_close(inlet: Out<ayre_remote_inlet>) -> c_int {
    border::closed(inlet)
}

/// A deposit message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_deposit_message {
    /// 0: it enters a stored instruction. 1: it carries `instruction`.
    pub carries: c_int,
    /// The instruction that it carries: the `word` of an `ayre_stored`.
    pub instruction: u64,
    /// The stored instruction that it enters.
    pub entry: u16,
    /// The registers that it names for x, y and z.
    pub registers: [u8; 3],
    /// The operand that it brings.
    pub operand: u64,
    /// A bit for each word of four bytes of the data that is written or read; all ones for all.
    pub mask: u64,
    /// The data; may be NULL if there is none.
    pub data: Bytes,
    /// Its length in bytes.
    pub len: usize,
}

impl ayre_deposit_message {
    fn deposit<'a>(&self) -> Outcome<Deposit<'a>> {
        let form = match self.carries {
            0 => Deposit::enter(self.entry).registers(self.registers),
            _ => Deposit::carry(Instruction::parse(self.instruction)?),
        };
        let data = self.data.bytes(self.len)?;
        Ok(form.operand(self.operand).mask(self.mask).data(data))
    }
}

/// Sends a deposit message. Does not block: its data may be changed when the call returns. Returns
/// the ticket, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_deposit(
    port: Out<ayre_port>,
    to: Out<ayre_remote_inlet>,
    message: In<ayre_deposit_message>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let message = message.given()?.deposit()?;
        Ok(port.held()?.deposit(&*to.held()?, &message, with.options())?)
    })
}

/// The reply to a deposit message, which is deposited at its sender's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_deposit_reply {
    /// The inlet of this port over which it comes.
    pub inlet: Out<ayre_inlet>,
    /// The message. Its data is what the answer brings.
    pub message: ayre_deposit_message,
    /// Bytes that are read for it.
    pub len: usize,
    /// 1 if the value that the answer gives becomes its operand.
    pub takes_value: c_int,
    /// The tag of the notification that its test raises.
    pub tag: u32,
    /// The value of that notification.
    pub value: u64,
}

/// Sends a deposit message whose answer is deposited here. Does not block. Returns the ticket, or
/// an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_deposit_with_reply(
    port: Out<ayre_port>,
    to: Out<ayre_remote_inlet>,
    message: In<ayre_deposit_message>,
    reply: In<ayre_deposit_reply>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let (message, reply) = (message.given()?.deposit()?, reply.given()?);
        let inlet = reply.inlet.held()?;
        let over = Reply::over(&inlet, reply.message.deposit()?).wants(reply.len);
        let over = if reply.takes_value == 0 { over } else { over.operand_given() };
        let over = over.noted_as(reply.tag, reply.value);
        Ok(port.held()?.deposit_reply(&*to.held()?, &message, &over, with.options())?)
    })
}

/// Sends a deposit message, and brings its answer: the value that the instruction gives, and `len`
/// bytes that it reads. Blocks. Returns 1, or 0 if an instruction has declined the message.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_deposit_fetch(
    port: Out<ayre_port>,
    to: Out<ayre_remote_inlet>,
    message: In<ayre_deposit_message>,
    into: Buffer,
    len: usize,
    value: Out<u64>,
) -> c_int {
    flag(|| {
        let (message, into) = (message.given()?.deposit()?, into.buffer(len)?);
        let answer = port.held()?.deposit_fetch(&*to.held()?, &message, into)?;
        value.fill(answer.value);
        Ok(!answer.declined)
    })
}

/// A message at which an inlet has stopped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_held_message {
    /// The fault of the message.
    pub cause: c_int,
    /// 0: it enters a stored instruction. 1: it carries one. 2: it only asks whether the inlet
    /// runs.
    pub carries: c_int,
    /// The instruction that it carries.
    pub instruction: u64,
    /// The stored instruction that it enters.
    pub entry: u16,
    /// The registers that it names.
    pub registers: [u8; 3],
    /// 1 if it brings data.
    pub brings: u8,
    /// 1 if its sender wants an answer.
    pub is_answered: u8,
    /// Its operand.
    pub operand: u64,
    /// Its mask.
    pub mask: u64,
    /// The tag that its sender gave it.
    pub tag: u32,
    /// Bytes of its data, or that it wants to read.
    pub len: u16,
    /// The value that its sender gave it.
    pub value: u64,
}

/// The message at which an inlet has stopped, and its data, of which `room` bytes are copied to
/// `data`. Returns 1 if there is one, 0 while the inlet runs.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_inlet_held(
    inlet: Out<ayre_inlet>,
    message: Out<ayre_held_message>,
    data: Buffer,
    room: usize,
) -> c_int {
    flag(|| {
        message.given()?;
        let Some(found) = inlet.held()?.held()? else { return Ok(false) };
        let len = found.data.len().min(room);
        data.buffer(len)?.copy_from_slice(&found.data[..len]);
        message.fill(&found);
        Ok(true)
    })
}

impl From<&HeldMessage> for ayre_held_message {
    fn from(found: &HeldMessage) -> Self {
        let HeldMessage { cause, message, tag, value, .. } = found;
        let (carries, instruction, entry, registers) = match message.form {
            Form::Pointer { entry, registers } => (0, 0, entry, registers),
            Form::Carried(instruction) => (1, instruction.word(), 0, [0; 3]),
            Form::Probe => (2, 0, 0, [0; 3]),
        };
        Self {
            cause: error::fault(*cause),
            carries,
            instruction,
            entry,
            registers,
            brings: message.brings.into(),
            is_answered: message.is_answered.into(),
            operand: message.operand,
            mask: message.mask.0,
            tag: *tag,
            len: message.len,
            value: *value,
        }
    }
}

/// Executes the message at which an inlet has stopped, and lets the inlet run again unless that
/// faults again. Returns 1 if a test of the message holds, which replaces its notification, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_inlet_resume(inlet: Out<ayre_inlet>) -> c_int {
    flag(|| Ok(inlet.held()?.resume()?))
}

/// Drops the message at which an inlet has stopped, and lets the inlet run again.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_inlet_skip(inlet: Out<ayre_inlet>) -> c_int {
    status(|| Ok(inlet.held()?.skip()?))
}

/// Drops the message at which an inlet has stopped, if it has. Sets the registers to 0 that
/// messages may write, and lets the inlet run again.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_inlet_reset(inlet: Out<ayre_inlet>) -> c_int {
    status(|| Ok(inlet.held()?.reset()?))
}
