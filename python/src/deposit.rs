//! Deposit messages: a small program at the destination places them.
use crate::buffer::Room;
use crate::error::{Failure, Misuse, Outcome, of_fault};
use crate::memory::LocalSlice;
use crate::port::Port;
use crate::value::{Options, Peer, Word, rights};
use ayre::deposit::{Form, Instruction, Protection, assemble as assembled};
use ayre::memory::Fenced;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// An instruction of a depot: `assemble` reads it from text.
///
/// `word` is the instruction, `operand` its operand where the message does not bring it, and
/// `enters` says whether messages may enter here.
#[pyclass(frozen, module = "ayre", name = "Stored")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored(ayre::deposit::Stored);

#[pymethods]
impl Stored {
    #[new]
    #[pyo3(signature = (word, operand=Word(0), enters=false))]
    fn new(word: u64, operand: Word, enters: bool) -> Outcome<Self> {
        let instruction = Instruction::parse(word)?;
        Ok(Self(ayre::deposit::Stored { instruction, operand: operand.0, enters }))
    }

    /// The instruction.
    #[getter]
    fn word(&self) -> u64 {
        self.0.instruction.word()
    }

    /// Its operand, where the message does not bring it.
    #[getter]
    fn operand(&self) -> u64 {
        self.0.operand
    }

    /// Whether messages may enter here.
    #[getter]
    fn enters(&self) -> bool {
        self.0.enters
    }
}

/// Reads instructions from text, one a line, such as
/// "entry; decline if r0 >= r2; write [r0 wrapped]; r0 += r1".
#[pyfunction]
pub(crate) fn assemble(text: &str) -> Outcome<Vec<Stored>> {
    let read = |line| match assembled(line) {
        Ok(stored) => stored.map(|stored| Ok(Stored(stored))),
        Err(why) => Some(Err(Failure::argument(format!("{line}: {}", why.0)))),
    };
    text.lines().filter_map(read).collect()
}

/// A depot: registers and stored instructions for deposit messages. `port.create_depot` makes it.
///
/// Its owner reads and changes it at any time, between messages. Calls that change it raise
/// BusyError where a message or another call has held it for long.
#[pyclass(frozen, module = "ayre", name = "Depot")]
#[derive(Debug)]
pub(crate) struct Depot(ayre::deposit::Depot);

#[pymethods]
impl Depot {
    /// Reads a register. The memory that the message wrote that has set it is visible.
    fn register(&self, register: u8) -> u64 {
        self.0.register(register)
    }

    /// Sets a register.
    fn set_register(&self, register: u8, value: Word) -> Outcome<()> {
        Ok(self.0.set_register(register, value.0)?)
    }

    /// Sets how messages may use the registers from `first` to `last` that they name: 1 to read
    /// and 2 to write, or-ed.
    fn protect(&self, first: u8, last: u8, protection: u8) -> Outcome<()> {
        let protection = Protection::from_bits(protection)
            .ok_or_else(|| Failure::argument("a protection is 1 (read) and 2 (write), or-ed"))?;
        Ok(self.0.protect(first..=last, protection)?)
    }

    /// Stores instructions, the first one at place `at`.
    fn store(&self, at: u8, instructions: Vec<Py<Stored>>) -> Outcome<()> {
        let stored: Vec<_> = instructions.iter().map(|one| one.get().0).collect();
        Ok(self.0.store(at, &stored)?)
    }

    /// Removes the instructions from place `first` to `last`.
    fn erase(&self, first: u8, last: u8) -> Outcome<()> {
        Ok(self.0.erase(first..=last)?)
    }

    /// Keeps all messages out until the hold is thawed: registers and memory stay as they are.
    fn freeze(&self) -> Outcome<Frozen> {
        Ok(Frozen(Mutex::new(Some(Hold::try_new(self.0.clone(), |depot| depot.freeze())?))))
    }
}

self_cell::self_cell!(
    /// A depot, and the hold on it.
    struct Hold {
        owner: ayre::deposit::Depot,
        #[covariant]
        dependent: Held,
    }
);

type Held<'a> = ayre::deposit::Frozen<'a>;

/// A depot that is frozen: no message changes it. As a context manager it is thawed at the end.
#[pyclass(frozen, module = "ayre", name = "Frozen")]
pub(crate) struct Frozen(Mutex<Option<Hold>>);

impl Frozen {
    fn with<T>(&self, call: impl FnOnce(&mut Hold) -> T) -> Outcome<T> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_mut().map(call).ok_or_else(|| Failure::closed("the depot was thawed"))
    }
}

#[pymethods]
impl Frozen {
    /// Reads a register.
    fn register(&self, register: u8) -> Outcome<u64> {
        self.with(|hold| hold.borrow_dependent().register(register))
    }

    /// Sets a register.
    fn set_register(&self, register: u8, value: Word) -> Outcome<()> {
        self.with(|hold| {
            hold.with_dependent_mut(|_, frozen| frozen.set_register(register, value.0));
        })
    }

    /// Lets messages in again. Thawing twice is allowed.
    fn thaw(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.thaw();
    }
}

/// The access that a peer gets to a depot.
///
/// `rights` are those of `Rights`: to write and read memory, to notify, and to carry instructions.
/// `registers` and `entries` are the first one that messages can name and the one behind the last.
/// `longest` is the most bytes of data. An inlet that `holds` stops at a message that faults.
#[pyclass(frozen, module = "ayre", name = "InletOptions")]
#[derive(Clone, Debug)]
pub(crate) struct InletOptions(ayre::deposit::InletOptions);

#[pymethods]
impl InletOptions {
    #[new]
    #[pyo3(signature = (rights=2, registers=(0, 0), entries=(0, 0), longest=1024, holds=false))]
    fn new(
        rights: u8,
        registers: (u16, u16),
        entries: (u16, u16),
        longest: u16,
        holds: bool,
    ) -> Outcome<Self> {
        let options = ayre::deposit::InletOptions::new()
            .rights(self::rights(rights)?)
            .registers(registers.0..registers.1)
            .entries(entries.0..entries.1)
            .longest(longest);
        Ok(Self(if holds { options.holds() } else { options }))
    }
}

/// A deposit message: `Deposit.enter` and `Deposit.carry` make it. Its data is copied then.
#[pyclass(frozen, module = "ayre", name = "Deposit")]
#[derive(Clone, Debug)]
pub(crate) struct Deposit {
    form: Form,
    operand: u64,
    mask: u64,
    data: Vec<u8>,
}

impl Deposit {
    fn new(form: Form, operand: Word, mask: u64, data: Option<&Bound<'_, PyAny>>) -> Outcome<Self> {
        let data =
            data.map_or(Ok(vec![]), |data| Ok::<_, Failure>(Room::new().bytes(data)?.to_vec()))?;
        Ok(Self { form, operand: operand.0, mask, data })
    }

    fn get(&self) -> ayre::deposit::Deposit<'_> {
        let deposit = match self.form {
            Form::Carried(instruction) => ayre::deposit::Deposit::carry(instruction),
            Form::Pointer { entry, registers } => {
                ayre::deposit::Deposit::enter(entry).registers(registers)
            }
            Form::Probe => ayre::deposit::Deposit::enter(0),
        };
        deposit.operand(self.operand).mask(self.mask).data(&self.data)
    }
}

#[pymethods]
impl Deposit {
    /// A message that enters a stored instruction, whose open registers are these.
    ///
    /// A bit of `mask` stands for each word of four bytes of the data that is written or read.
    #[staticmethod]
    #[pyo3(signature = (entry, registers=[0, 0, 0], operand=Word(0), mask=u64::MAX, data=None))]
    fn enter(
        entry: u16,
        registers: [u8; 3],
        operand: Word,
        mask: u64,
        data: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        Self::new(Form::Pointer { entry, registers }, operand, mask, data)
    }

    /// A message that carries an instruction, the `word` of a `Stored`.
    #[staticmethod]
    #[pyo3(signature = (word, operand=Word(0), mask=u64::MAX, data=None))]
    fn carry(
        word: u64,
        operand: Word,
        mask: u64,
        data: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        Self::new(Form::Carried(Instruction::parse(word)?), operand, mask, data)
    }
}

/// The reply to a deposit message, which is deposited at its sender's.
///
/// `message` goes over an inlet of this port's own, with the data that the answer brings, `wants`
/// bytes. With `takes_value` its operand is the value that the answer gives. `tag` and `value` are
/// those of the notification that its test raises.
#[pyclass(frozen, module = "ayre", name = "Reply")]
#[derive(Debug)]
pub(crate) struct Reply {
    inlet: Py<Inlet>,
    message: Deposit,
    wants: usize,
    takes_value: bool,
    noted: (u32, u64),
}

#[pymethods]
impl Reply {
    #[new]
    #[pyo3(signature = (inlet, message, wants=0, takes_value=false, tag=0, value=Word(0)))]
    fn new(
        inlet: Py<Inlet>,
        message: &Deposit,
        wants: usize,
        takes_value: bool,
        tag: u32,
        value: Word,
    ) -> Self {
        Self { inlet, message: message.clone(), wants, takes_value, noted: (tag, value.0) }
    }
}

/// One peer's access to a depot, at the depot's owner: `port.share_inlet` makes it.
#[pyclass(frozen, module = "ayre", name = "Inlet")]
#[derive(Debug)]
pub(crate) struct Inlet(Mutex<Option<ayre::deposit::Inlet>>);

impl Inlet {
    fn held(&self) -> MutexGuard<'_, Option<ayre::deposit::Inlet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T, E>(&self, call: impl FnOnce(&ayre::deposit::Inlet) -> Result<T, E>) -> Outcome<T>
    where
        Failure: From<E>,
    {
        let held = self.held();
        Ok(call(held.as_ref().ok_or_else(revoked)?)?)
    }
}

fn revoked() -> Failure {
    Failure::closed("the inlet was revoked")
}

#[pymethods]
impl Inlet {
    /// The peer that holds it.
    #[getter]
    fn peer(&self) -> Outcome<u16> {
        self.with(|inlet| Ok::<_, Failure>(inlet.peer().0))
    }

    /// The message at which the inlet has stopped; None while it runs.
    #[pyo3(name = "held")]
    fn held_message(&self) -> Outcome<Option<HeldMessage>> {
        Ok(self.with(ayre::deposit::Inlet::held)?.map(HeldMessage))
    }

    /// Executes the message at which the inlet has stopped, and lets the inlet run again unless
    /// that faults again. Returns whether a test of the message holds.
    fn resume(&self) -> Outcome<bool> {
        self.with(ayre::deposit::Inlet::resume)
    }

    /// Drops the message at which the inlet has stopped, and lets the inlet run again.
    fn skip(&self) -> Outcome<()> {
        self.with(ayre::deposit::Inlet::skip)
    }

    /// Drops the message at which the inlet has stopped, if it has. Sets the registers to 0 that
    /// messages may write, and lets the inlet run again.
    fn reset(&self) -> Outcome<()> {
        self.with(ayre::deposit::Inlet::reset)
    }
}

/// A message at which an inlet has stopped.
#[pyclass(frozen, module = "ayre", name = "HeldMessage")]
#[derive(Debug)]
pub(crate) struct HeldMessage(ayre::deposit::HeldMessage);

#[pymethods]
impl HeldMessage {
    /// The fault of the message, as an exception to look at or to raise.
    #[getter]
    fn cause(&self, py: Python<'_>) -> PyErr {
        of_fault(py, self.0.cause)
    }

    /// The instruction that it carries; None if it carries none.
    #[getter]
    fn carries(&self) -> Option<u64> {
        match self.0.message.form {
            Form::Carried(instruction) => Some(instruction.word()),
            _ => None,
        }
    }

    /// The stored instruction that it enters, and its registers; None if it enters none.
    #[getter]
    fn enters(&self) -> Option<(u16, (u8, u8, u8))> {
        match self.0.message.form {
            Form::Pointer { entry, registers } => Some((entry, registers.into())),
            _ => None,
        }
    }

    /// Its operand.
    #[getter]
    fn operand(&self) -> u64 {
        self.0.message.operand
    }

    /// Its mask.
    #[getter]
    fn mask(&self) -> u64 {
        self.0.message.mask.0
    }

    /// Bytes of its data, or those that it wants to read.
    #[getter]
    fn length(&self) -> u16 {
        self.0.message.len
    }

    /// Whether it brings data.
    #[getter]
    fn brings(&self) -> bool {
        self.0.message.brings
    }

    /// Whether its sender wants an answer.
    #[getter]
    fn is_answered(&self) -> bool {
        self.0.message.is_answered
    }

    /// The tag that its sender gave it.
    #[getter]
    fn tag(&self) -> u32 {
        self.0.tag
    }

    /// The value that its sender gave it.
    #[getter]
    fn value(&self) -> u64 {
        self.0.value
    }

    /// Its data.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.data)
    }
}

/// A peer's depot, as far as it lets this port send messages to it: `port.accept_inlet` gives it.
#[pyclass(frozen, module = "ayre", name = "RemoteInlet")]
#[derive(Debug)]
pub(crate) struct RemoteInlet(Mutex<ayre::deposit::RemoteInlet>);

impl RemoteInlet {
    fn held(&self) -> Outcome<MutexGuard<'_, ayre::deposit::RemoteInlet>> {
        match self.0.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let what = "the inlet is in use: one thread at a time calls it";
                Err(Failure::Misuse(Misuse::InUse, what.into()))
            }
        }
    }
}

#[pymethods]
impl Port {
    /// Makes a depot, with all registers 0 and no instructions. Does not block.
    fn create_depot(&self) -> Outcome<Depot> {
        Ok(Depot(self.with(ayre::Port::create_depot)?))
    }

    /// Lets a peer send messages to a depot, over a part of a region, under a name that it uses in
    /// `accept_inlet`.
    #[pyo3(signature = (peer, depot, part, options, name=0))]
    fn share_inlet(
        &self,
        peer: Peer,
        depot: &Depot,
        part: &LocalSlice,
        options: &InletOptions,
        name: u64,
    ) -> Outcome<Inlet> {
        let share = |port: &mut ayre::Port| {
            port.share_inlet(peer.0, &depot.0, part.parts(), &options.0, name)
        };
        Ok(Inlet(Mutex::new(Some(self.with(share)?))))
    }

    /// Takes an inlet back. No message comes by it after the call. Blocks as `revoke` does, and
    /// returns whether the contents of the region were moved.
    fn revoke_inlet(&self, py: Python<'_>, inlet: &Inlet) -> Outcome<bool> {
        let revoke = |port: &mut ayre::Port| -> Outcome<Fenced> {
            let held = inlet.held().take();
            Ok(port.revoke_inlet(held.ok_or_else(revoked)?)?)
        };
        Ok(self.wait(py, revoke)? == Fenced::Moved)
    }

    /// Accepts the inlet that a peer has shared, or shares soon, under a name. Blocks, at most for
    /// the set-up time.
    #[pyo3(signature = (peer, name=0))]
    fn accept_inlet(&self, py: Python<'_>, peer: Peer, name: u64) -> Outcome<RemoteInlet> {
        let inlet = self.wait(py, |port| port.accept_inlet(peer.0, name))?;
        Ok(RemoteInlet(Mutex::new(inlet)))
    }

    /// Lets an inlet that had stopped take messages again, after its owner has let it run. Blocks.
    fn rejoin_inlet(&self, py: Python<'_>, inlet: &RemoteInlet) -> Outcome<()> {
        let inlet = &mut *inlet.held()?;
        self.wait(py, |port| port.rejoin_inlet(inlet))
    }

    /// Sends a deposit message. Does not block. Returns the ticket.
    #[pyo3(signature = (inlet, message, options=Options::NONE))]
    fn deposit(&self, inlet: &RemoteInlet, message: &Deposit, options: Options) -> Outcome<u64> {
        let inlet = &*inlet.held()?;
        Ok(self.with(|port| port.deposit(inlet, &message.get(), options.0))?.0)
    }

    /// Sends a deposit message whose answer is deposited here. Does not block. Returns the ticket.
    #[pyo3(signature = (inlet, message, reply, options=Options::NONE))]
    fn deposit_reply(
        &self,
        inlet: &RemoteInlet,
        message: &Deposit,
        reply: &Reply,
        options: Options,
    ) -> Outcome<u64> {
        let inlet = &*inlet.held()?;
        let ticket = reply.inlet.get().with::<_, Failure>(|own| {
            let over = ayre::deposit::Reply::over(own, reply.message.get()).wants(reply.wants);
            let over = if reply.takes_value { over.operand_given() } else { over };
            let over = over.noted_as(reply.noted.0, reply.noted.1);
            self.with(|port| port.deposit_reply(inlet, &message.get(), &over, options.0))
        })?;
        Ok(ticket.0)
    }

    /// Sends a deposit message, and brings its answer: the value that the instruction gives, and
    /// the bytes that it reads, as many as `into` has. Blocks. Returns the value, and whether an
    /// instruction has declined the message.
    #[pyo3(signature = (inlet, message, into=None))]
    fn deposit_fetch(
        &self,
        py: Python<'_>,
        inlet: &RemoteInlet,
        message: &Deposit,
        into: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<(u64, bool)> {
        let mut room = Room::new();
        let bytes = into.map_or(Ok(&mut [][..]), |into| room.one_piece(into))?;
        let inlet = &*inlet.held()?;
        let answer = self.wait(py, |port| port.deposit_fetch(inlet, &message.get(), bytes))?;
        Ok((answer.value, answer.declined))
    }
}
