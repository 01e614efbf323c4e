//! A port of another process, as the suite's.
use super::EPOCH_STEPS;
use super::handles::{DrivenGrant, DrivenLock, DrivenQueue, DrivenRegion, DrivenRemote};
use super::words::{Answer, FOREIGN, Words, hex, place, time};
use crate::port::{Batch, Counted, Destination, Options, Port, RegionOptions, Slice, Source, Work};
use ayre::memory::{
    Atomic, AtomicOp, EpochStep, Fenced, Fetched, Key, Operation, Strided, Ticket, Width,
};
use ayre::message::Record;
use ayre::{
    Fault, Message, Mode, Notification, PeerId, PostError, ReceiveError, Rights, SetupError,
};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A process that runs a driver, and the line to it. When the last handle of its port is dropped
/// its input closes, and it ends by itself.
#[derive(Debug)]
struct Process {
    child: Child,
    /// None when there are no more calls.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn say(&mut self, call: &str) {
        let to = self.to.as_mut().expect("its port is there");
        writeln!(to, "{call}").expect("the driver listens");
    }

    fn hear(&mut self) -> Answer {
        Answer::read(&self.line())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the driver speaks text");
        assert!(!line.is_empty(), "the driver has ended, and says above why");
        line
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

/// A line that several handles use.
#[derive(Clone, Debug)]
pub(super) struct Way(Arc<Mutex<Process>>);

impl Way {
    fn process(&self) -> MutexGuard<'_, Process> {
        // A call that panicked leaves the process usable: it can still be ended.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ask(&self, call: &str) -> Answer {
        let mut process = self.process();
        process.say(call);
        process.hear()
    }

    /// Says something, and waits for what the driver says next, an answer or not.
    pub(super) fn exchange(&self, said: &str) -> String {
        let mut process = self.process();
        process.say(said);
        process.line()
    }

    /// How a handle is written in a call of this port's: another one's means nothing here.
    pub(super) fn handle(&self, way: &Self, number: usize) -> String {
        if Arc::ptr_eq(&self.0, &way.0) { number.to_string() } else { FOREIGN.into() }
    }
}

/// A port behind a driver.
#[derive(Debug)]
pub struct DrivenPort {
    way: Way,
    number: u16,
}

/// The port closes, and its memory can still be read. Nobody answers of a process that was killed.
impl Drop for DrivenPort {
    fn drop(&mut self) {
        let mut process = self.way.process();
        let Process { to, from, .. } = &mut *process;
        let said = to.as_mut().is_some_and(|to| writeln!(to, "close").is_ok());
        let _ = said.then(|| from.read_line(&mut String::new()));
    }
}

impl DrivenPort {
    pub(super) fn start(program: &str, number: u16, mode: Mode) -> Self {
        let mut command = Command::new(program);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.expect("the driver is there");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        let process = Process { child, to, from };
        let port = Self { way: Way(Arc::new(Mutex::new(process))), number };
        port.ask(&format!("open {number} {}", u8::from(mode == Mode::Mediated))).done();
        port
    }

    /// The process dies, whatever it is at.
    pub(super) fn kill(self) {
        let mut process = self.way.process();
        let _ = process.child.kill();
        let _ = process.child.wait();
    }

    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// Makes a call, and waits for what comes of it.
    pub(super) fn ask(&self, call: &str) -> Answer {
        self.way.ask(call)
    }

    /// Makes a call whose end is waited for later on.
    pub(super) fn begin(&self, call: &str) {
        self.way.process().say(call);
    }

    pub(super) fn end(&self) -> Answer {
        self.way.process().hear()
    }

    fn message(&self, call: &str, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        let Some(words) = self.ask(call).received()? else { return Ok(None) };
        let mut words = Words::of(&words);
        let (source, tag, len) = (words.peer(), words.number(), words.number());
        into[..len].copy_from_slice(&words.bytes());
        Ok(Some(Message { source, tag, len }))
    }

    fn record(&self, call: &str, into: &mut [u8]) -> Result<Option<Record>, ReceiveError> {
        let Some(words) = self.ask(call).received()? else { return Ok(None) };
        let mut words = Words::of(&words);
        let (source, len) = (words.peer(), words.number());
        into[..len].copy_from_slice(&words.bytes());
        Ok(Some(Record { source, len }))
    }

    fn notification(&self, call: &str) -> Result<Option<Notification>, ReceiveError> {
        let words = self.ask(call).received()?;
        Ok(words.map(|words| {
            let mut words = Words::of(&words);
            let source = words.peer();
            let [first, second]: [u64; 2] = [words.number(), words.number()];
            // A record that another port has raised never says that it is of a reply.
            let code = |what: Operation| (what as u64) << 24;
            let is_reply = first & 0xff << 24 == code(Operation::Reply);
            let swap = if is_reply { code(Operation::Reply) ^ code(Operation::Deposit) } else { 0 };
            let note = Notification::decode([first ^ swap, second], source);
            let note = note.expect("a notification");
            let operation = if is_reply { Operation::Reply } else { note.operation };
            Notification { operation, ..note }
        }))
    }

    /// Bytes come back behind the ticket, where the program has brought the buffer.
    fn got(&self, call: &str, into: Destination<'_, DrivenRegion>) -> Result<Ticket, PostError> {
        let words = self.ask(call).posted()?;
        let mut words = Words::of(&words);
        let ticket = Ticket(words.number());
        if let Destination::Bytes(bytes) = into {
            bytes.copy_from_slice(&words.bytes());
        }
        Ok(ticket)
    }

    pub(super) fn ticket(&self, call: &str) -> Result<Ticket, PostError> {
        Ok(Ticket(Words::of(&self.ask(call).posted()?).number()))
    }

    fn fetched(&self, call: &str) -> Result<Fetched, PostError> {
        Ok(fetched(&self.ask(call).posted()?))
    }
}

pub(super) fn fetched(words: &str) -> Fetched {
    let mut words = Words::of(words);
    Fetched { value: words.number(), success: words.flag() }
}

pub(super) fn options(options: Options) -> String {
    format!("{} {} {}", options.classes.bits(), options.tag, options.value)
}

pub(super) fn atomic(atomic: &Atomic) -> String {
    let Atomic { width, op, operand, compare } = *atomic;
    format!("{} {} {operand} {compare}", width as u8, op as u8)
}

fn rows(shape: Strided) -> String {
    let Strided { row_len, rows, local_stride, remote_stride } = shape;
    format!("{row_len} {rows} {local_stride} {remote_stride}")
}

fn part(way: &Way, slice: &Slice<'_, DrivenRegion>) -> String {
    let Slice { region, offset, len } = slice;
    format!("r{}:{offset}:{len}", way.handle(&region.way, region.number))
}

fn source(way: &Way, from: &Source<'_, DrivenRegion>) -> String {
    match from {
        Source::Bytes(bytes) => hex(bytes),
        Source::Region(slice) => part(way, slice),
    }
}

fn destination(way: &Way, into: &Destination<'_, DrivenRegion>) -> String {
    match into {
        Destination::Bytes(bytes) => hex(bytes),
        Destination::Region(slice) => part(way, slice),
    }
}

fn remote(way: &Way, of: &DrivenRemote) -> String {
    way.handle(&of.way, of.number)
}

fn queue(way: &Way, of: &DrivenQueue) -> String {
    way.handle(&of.way, of.number)
}

/// An operation of a batch, as it is called by itself.
fn work(way: &Way, (work, with): &(Work<'_, DrivenPort>, Options)) -> String {
    let with = options(*with);
    match work {
        Work::Put { to, offset, from } => {
            format!("put {} {offset} {} {with}", remote(way, to), source(way, from))
        }
        Work::Immediate { to, offset, value } => {
            format!("word {} {offset} {value} {with}", remote(way, to))
        }
        Work::Atomic { on, offset, atomic: what } => {
            format!("atomic {} {offset} {} {with}", remote(way, on), atomic(what))
        }
        Work::Notify => format!("notify {with}"),
    }
}

impl Port for DrivenPort {
    type Region = DrivenRegion;
    type RemoteRegion = DrivenRemote;
    type Grant = DrivenGrant;
    type Queue = DrivenQueue;
    type RemoteQueue = DrivenQueue;
    type Lock<'a> = DrivenLock;

    fn rank(&self) -> usize {
        self.number.into()
    }

    fn peers(&self) -> impl Iterator<Item = PeerId> {
        Words::of(&self.ask("peers").done()).numbers().into_iter().map(PeerId)
    }

    fn mode(&self, peer: PeerId) -> Result<Mode, Fault> {
        let words = self.ask(&format!("mode {}", peer.0)).ended()?;
        Ok(if Words::of(&words).flag() { Mode::Mediated } else { Mode::Direct })
    }

    fn is_alive(&self, peer: PeerId) -> bool {
        Words::of(&self.ask(&format!("alive {}", peer.0)).done()).flag()
    }

    fn connect_loopback(&mut self) -> Result<PeerId, SetupError> {
        Ok(Words::of(&self.ask("loopback").set_up()?).peer())
    }

    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.ask(&format!("disconnect {}", peer.0)).ended().map(drop)
    }

    fn leave(self) -> Result<(), Fault> {
        self.ask("leave").ended().map(drop)
    }

    fn progress(&mut self) {
        self.ask("progress").done();
    }

    fn count(&self, what: Counted) -> u64 {
        let what = match what {
            Counted::Busy(busy) => format!("busy {}", place(busy)),
            Counted::Fault(fault) => format!("fault {}", fault.code()),
            Counted::Malformed => "malformed".into(),
        };
        Words::of(&self.ask(&format!("count {what}")).done()).number()
    }

    fn alloc(&mut self, len: usize, options: RegionOptions) -> Result<DrivenRegion, SetupError> {
        let words = self.ask(&format!("alloc {len} {}", u8::from(options.sealed))).set_up()?;
        Ok(DrivenRegion { way: self.way.clone(), number: Words::of(&words).number(), len })
    }

    fn register(&mut self, words: Vec<u64>) -> Result<DrivenRegion, SetupError> {
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let answer = self.ask(&format!("register {}", hex(&bytes))).set_up()?;
        let (number, len) = (Words::of(&answer).number(), bytes.len());
        Ok(DrivenRegion { way: self.way.clone(), number, len })
    }

    fn deregister(&mut self, region: &DrivenRegion) -> Result<(), SetupError> {
        let region = self.way.handle(&region.way, region.number);
        self.ask(&format!("deregister {region}")).set_up().map(drop)
    }

    fn share(
        &mut self,
        peer: PeerId,
        region: &DrivenRegion,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<DrivenGrant, SetupError> {
        let Range { start, end } = part;
        let region = self.way.handle(&region.way, region.number);
        let rights = rights.bits();
        let call = format!("share {} {region} {start} {end} {rights} {name}", peer.0);
        let words = self.ask(&call).set_up()?;
        let mut words = Words::of(&words);
        let (number, slot, generation) = (words.number(), words.number(), words.number());
        let way = self.way.clone();
        Ok(DrivenGrant { way, number, peer, key: Key { slot, generation } })
    }

    fn accept_region(&mut self, peer: PeerId, name: u64) -> Result<DrivenRemote, SetupError> {
        let words = self.ask(&format!("remote {} {name}", peer.0)).set_up()?;
        Ok(DrivenRemote::read(&self.way, peer, &words))
    }

    fn revoke(&mut self, grant: DrivenGrant) -> Result<Fenced, SetupError> {
        let grant = self.way.handle(&grant.way, grant.number);
        let words = self.ask(&format!("revoke {grant}")).set_up()?;
        Ok(if Words::of(&words).flag() { Fenced::Moved } else { Fenced::Drained })
    }

    fn put<'a>(
        &mut self,
        to: &DrivenRemote,
        offset: u64,
        from: impl Into<Source<'a, DrivenRegion>>,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let (to, from) = (remote(&self.way, to), source(&self.way, &from.into()));
        self.ticket(&format!("put {to} {offset} {from} {}", options(with)))
    }

    fn put_strided<'a>(
        &mut self,
        to: &DrivenRemote,
        offset: u64,
        from: impl Into<Source<'a, DrivenRegion>>,
        shape: Strided,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let (to, rows) = (remote(&self.way, to), rows(shape));
        let from = source(&self.way, &from.into());
        self.ticket(&format!("puts {to} {offset} {from} {rows} {}", options(with)))
    }

    fn get<'a>(
        &mut self,
        from: &DrivenRemote,
        offset: u64,
        into: impl Into<Destination<'a, DrivenRegion>>,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let into = into.into();
        let (from, to) = (remote(&self.way, from), destination(&self.way, &into));
        self.got(&format!("get {from} {offset} {to} {}", options(with)), into)
    }

    fn get_strided<'a>(
        &mut self,
        from: &DrivenRemote,
        offset: u64,
        into: impl Into<Destination<'a, DrivenRegion>>,
        shape: Strided,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let into = into.into();
        let (from, to) = (remote(&self.way, from), destination(&self.way, &into));
        let (rows, with) = (rows(shape), options(with));
        self.got(&format!("gets {from} {offset} {to} {rows} {with}"), into)
    }

    fn put_immediate(
        &mut self,
        to: &DrivenRemote,
        offset: u64,
        value: u64,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let to = remote(&self.way, to);
        self.ticket(&format!("word {to} {offset} {value} {}", options(with)))
    }

    fn notify(&mut self, peer: PeerId, with: Options) -> Result<Ticket, PostError> {
        self.ticket(&format!("notify {} {}", peer.0, options(with)))
    }

    fn atomic(
        &mut self,
        on: &DrivenRemote,
        offset: u64,
        what: Atomic,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let (on, what) = (remote(&self.way, on), atomic(&what));
        self.ticket(&format!("atomic {on} {offset} {what} {}", options(with)))
    }

    fn fetch(
        &mut self,
        on: &DrivenRemote,
        offset: u64,
        what: Atomic,
        with: Options,
    ) -> Result<Fetched, PostError> {
        let (on, what) = (remote(&self.way, on), atomic(&what));
        self.fetched(&format!("fetch {on} {offset} {what} {}", options(with)))
    }

    fn fetch_add(&mut self, on: &DrivenRemote, offset: u64, add: u64) -> Result<u64, PostError> {
        let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: add, compare: 0 };
        Ok(self.fetch(on, offset, add, Options::new())?.value)
    }

    fn compare_swap(
        &mut self,
        on: &DrivenRemote,
        offset: u64,
        compare: u64,
        new: u64,
    ) -> Result<Fetched, PostError> {
        let op = AtomicOp::CompareSwap;
        let swap = Atomic { width: Width::W64, op, operand: new, compare };
        self.fetch(on, offset, swap, Options::new())
    }

    fn fcaa(
        &mut self,
        on: &DrivenRemote,
        offset: u64,
        compare: i64,
        add: i64,
    ) -> Result<Fetched, PostError> {
        let (operand, compare) = (add as u64, compare as u64);
        let fcaa = Atomic { width: Width::W64, op: AtomicOp::Fcaa, operand, compare };
        self.fetch(on, offset, fcaa, Options::new())
    }

    fn release(&mut self, batch: &Batch<'_, Self>) -> Result<Option<Ticket>, PostError> {
        let works: Vec<_> = batch.entries.iter().map(|one| work(&self.way, one)).collect();
        let call = format!("batch {} {} {}", batch.peer.0, works.len(), works.join(" "));
        Ok(Words::of(&self.ask(&call).posted()?).numbers().pop().map(Ticket))
    }

    fn flush(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.ask(&format!("flush {}", peer.0)).ended().map(drop)
    }

    fn is_flushed(&self, peer: PeerId) -> bool {
        Words::of(&self.ask(&format!("flushed {}", peer.0)).done()).flag()
    }

    fn barrier(&mut self) -> Result<(), Fault> {
        self.ask("barrier").ended().map(drop)
    }

    fn lock(on: &DrivenRemote, offset: u64, processes: u32) -> DrivenLock {
        let words = on.way.ask(&format!("lock {} {offset} {processes}", on.number)).done();
        DrivenLock { way: on.way.clone(), number: Words::of(&words).number() }
    }

    fn try_epoch_step(
        &mut self,
        on: &DrivenRemote,
        offset: u64,
        step: EpochStep,
    ) -> Result<Fetched, PostError> {
        let step = EPOCH_STEPS.iter().position(|one| *one == step).expect("all have a place");
        self.fetched(&format!("epoch {} {offset} {step}", remote(&self.way, on)))
    }

    fn poll_notification(&mut self) -> Option<Notification> {
        self.notification("note").expect("a look does not wait")
    }

    fn wait_notification(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Notification, ReceiveError> {
        let waited = self.notification(&format!("wait {}", time(timeout)))?;
        Ok(waited.expect("a wait has an end"))
    }

    fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        self.ask(&format!("send {} {tag} {}", to.0, hex(data))).posted().map(drop)
    }

    fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault> {
        self.ask(&format!("post {} {tag} {}", to.0, hex(data))).ended().map(drop)
    }

    fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        self.message(&format!("look {}", into.len()), into)
    }

    fn recv(
        &mut self,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Message, ReceiveError> {
        let call = format!("receive {} {}", into.len(), time(timeout));
        Ok(self.message(&call, into)?.expect("a wait has an end"))
    }

    fn create_queue(&mut self, capacity: usize) -> Result<DrivenQueue, SetupError> {
        let words = self.ask(&format!("queue {capacity}")).set_up()?;
        Ok(DrivenQueue::read(&self.way, PeerId(self.number), &words))
    }

    fn share_queue(
        &mut self,
        peer: PeerId,
        to: &mut DrivenQueue,
        name: u64,
    ) -> Result<(), SetupError> {
        let to = queue(&self.way, to);
        self.ask(&format!("producer {} {to} {name}", peer.0)).set_up().map(drop)
    }

    fn accept_queue(&mut self, peer: PeerId, name: u64) -> Result<DrivenQueue, SetupError> {
        let words = self.ask(&format!("produces {} {name}", peer.0)).set_up()?;
        Ok(DrivenQueue::read(&self.way, peer, &words))
    }

    fn remove_producer(&mut self, from: &mut DrivenQueue, peer: PeerId) {
        self.ask(&format!("remove {} {}", queue(&self.way, from), peer.0)).done();
    }

    fn enqueue(&mut self, to: &mut DrivenQueue, record: &[u8]) -> Result<(), PostError> {
        let to = queue(&self.way, to);
        self.ask(&format!("enqueue {to} {}", hex(record))).posted().map(drop)
    }

    fn dequeue(
        &mut self,
        from: &mut DrivenQueue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        self.record(&format!("dequeue {} {}", queue(&self.way, from), into.len()), into)
    }

    fn dequeue_wait(
        &mut self,
        from: &mut DrivenQueue,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Record, ReceiveError> {
        let from = queue(&self.way, from);
        let call = format!("take {from} {} {}", into.len(), time(timeout));
        Ok(self.record(&call, into)?.expect("a wait has an end"))
    }
}
