//! Two processes that share memory for their connections.
use crate::mem::socket::{BELLS, BellMemory, OFFER_WORDS, PairMemory, Side, SlotMemory};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::fork::Shared;
use crate::sys::hidden::Hidden;
use ayre_proto::socket::Wants;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice, IoSliceMut, read, write};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock, Weak};

/// Bells that each side passes on when it makes or takes a pair. Processes that its peer forks
/// later have these, too.
pub(super) const FIRST_BELLS: usize = 2;

/// A bell of this process: the kernel's counter. The peer of one pair can ring it.
#[derive(Debug)]
pub struct Bell {
    number: u16,
    memory: BellMemory,
    counter: Hidden,
}

impl Bell {
    pub(super) fn counter() -> Result<OwnedFd, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
    }

    /// The descriptor that is readable once the bell was rung.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.counter.fd()
    }

    /// Its number in the pair.
    pub fn number(&self) -> u16 {
        self.number
    }

    pub(super) fn wants(&self) -> Wants {
        Wants::Bell(self.number)
    }

    /// Forgets that it was rung. From now on it is to be rung again.
    pub fn hush(&self) {
        let _ = read(self.fd(), &mut [0; 8]);
        self.memory.sleep().begin();
    }

    /// Whether it was rung since it was hushed.
    pub fn is_rung(&self) -> bool {
        self.memory.sleep().is_over()
    }

    /// Its owner is awake, and looks at its marks before it sleeps again: nobody rings.
    pub fn wake_up(&self) {
        self.memory.sleep().end();
    }

    /// Its owner is about to sleep. It is to look at the marks behind that.
    pub fn lie_down(&self) {
        self.memory.sleep().begin();
    }

    /// Whether there are marks: slots for which it was, or would have been, rung.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.memory.is_marked()
    }

    /// Takes the marks, and calls `each` with their slots.
    pub fn take_marks(&self, each: impl FnMut(u32)) {
        self.memory.take_marks(each);
    }

    /// Rings it for a slot, from this process.
    pub fn ring(&self, slot: u32) {
        self.memory.mark(slot);
        self.ring_again();
    }

    /// Wakes its owner, if that sleeps, for the marks that there are.
    pub fn ring_again(&self) {
        wake(&self.memory, self.fd());
    }
}

/// Wakes a bell's owner if it sleeps. A full counter wakes as well.
fn wake(memory: &BellMemory, counter: BorrowedFd<'_>) {
    if memory.sleep().disturb() {
        let _ = write(counter, &1u64.to_ne_bytes());
    }
}

/// This process's part in a pair.
#[derive(Debug)]
pub struct Pair {
    memory: PairMemory,
    /// The connection of the two processes for descriptors.
    control: Hidden,
    /// The process that the peer is, or was forked from.
    peer: Option<Process>,
    /// The bells of the other side, as far as they were passed on.
    theirs: Vec<OnceLock<(BellMemory, Hidden)>>,
    /// Bells that the peer has, and that nobody of this process uses.
    first: Shared<Vec<Bell>>,
    /// The number that the maker shows in the SYN of each connection; 0: not known yet.
    code: AtomicU64,
    /// The peer has shown that it is not to be trusted, or has gone.
    is_over: AtomicBool,
}

/// A message on the control connection: the number of a bell, with its counter.
const MESSAGE_BYTES: usize = 8;

/// The pairs of this process.
static PAIRS: Shared<Vec<Weak<Pair>>> = Shared::new(Vec::new());

/// Before a fork.
pub(super) fn lock() {
    PAIRS.before_fork();
}

/// After a fork.
pub(super) fn unlock() {
    PAIRS.after_fork(|_| {});
}

impl Pair {
    pub(super) fn new(memory: PairMemory, control: OwnedFd, code: u16) -> Result<Arc<Self>, Errno> {
        let this = Arc::new(Self {
            memory,
            peer: process_of(control.as_fd()),
            control: Hidden::new(control)?,
            theirs: (0..BELLS).map(|_| OnceLock::new()).collect(),
            first: Shared::new(Vec::new()),
            code: AtomicU64::new(code.into()),
            is_over: AtomicBool::new(false),
        });
        let mut pairs = PAIRS.lock();
        pairs.retain(|known| known.strong_count() > 0);
        pairs.push(Arc::downgrade(&this));
        Ok(this)
    }

    /// The pair of this process that has this number.
    pub(super) fn of_number(number: u64) -> Option<Arc<Self>> {
        // A pair that ends here would lock the list.
        let known: Vec<Weak<Self>> = PAIRS.lock().clone();
        known.iter().filter_map(Weak::upgrade).find(|pair| pair.number() == number)
    }

    /// The pairs of this process whose makers show this code.
    pub fn with_code(code: u16) -> Vec<Arc<Self>> {
        let known: Vec<Weak<Self>> = PAIRS.lock().clone();
        let is_taker = |pair: &Arc<Self>| pair.side() == Side::Taker && pair.code() == code;
        known.iter().filter_map(Weak::upgrade).filter(is_taker).collect()
    }

    /// A number that no other pair of the host has.
    pub(super) fn number(&self) -> u64 {
        self.memory.number()
    }

    pub(super) fn keep_first(&self, counters: Vec<OwnedFd>) -> Result<(), Errno> {
        for counter in counters {
            let number = self.memory.next_bell().ok_or(Errno::MFILE)?;
            let bell = self.own(number, Hidden::new(counter)?);
            self.first.lock().push(bell);
        }
        Ok(())
    }

    pub(super) fn keep_theirs(&self, number: u16, counter: OwnedFd) -> Result<(), Errno> {
        let place = self.theirs.get(usize::from(number)).ok_or(Errno::INVAL)?;
        let memory = self.memory.bell(self.side().other(), number);
        let _ = place.set((memory, Hidden::new(counter)?));
        Ok(())
    }

    fn own(&self, number: u16, counter: Hidden) -> Bell {
        Bell { number, memory: self.memory.bell(self.side(), number), counter }
    }

    /// The side of this process.
    pub fn side(&self) -> Side {
        self.memory.side()
    }

    /// The code of the maker's SYNs.
    pub fn code(&self) -> u16 {
        self.code.load(Ordering::Relaxed) as u16
    }

    /// Tells that the peer shows this code.
    pub fn set_code(&self, code: u16) {
        self.code.store(code.into(), Ordering::Relaxed);
    }

    /// Whether the pair is of no use any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Gives the pair up: no new connection uses it.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The user whose process the peer is.
    pub fn user(&self) -> Option<u32> {
        self.peer.map(|peer| peer.user)
    }

    /// The process that has made the peer's end of the pair.
    pub fn peer(&self) -> Option<Process> {
        self.peer
    }

    /// Whether the peer has closed its end: all its processes have ended.
    pub fn is_hung_up(&self) -> bool {
        let mut looked = [PollFd::from_borrowed_fd(self.control.fd(), PollFlags::empty())];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut looked, Some(&none)).is_ok_and(|found| found > 0)
    }

    pub(super) fn slot(&self, number: u32) -> Option<SlotMemory> {
        self.memory.slot(number)
    }

    /// The maker's: offers a connection from this port. None where there is no room for it.
    pub(super) fn offer(&self, port: u16, words: [u64; OFFER_WORDS]) -> Option<(u32, SlotMemory)> {
        let (number, slot) = self.memory.claim()?;
        slot.offer(words);
        self.memory.tell_of_port(port, number);
        Some((number, slot))
    }

    /// The number of the slot where a connection from this port is offered, and its state's word.
    pub(super) fn offered(&self, port: u16, words: [u64; OFFER_WORDS]) -> Option<(u32, u64)> {
        let number = self.memory.told_of_port(port)?;
        Some((number, self.slot(number)?.found(words)?))
    }

    /// This side uses a slot no longer.
    pub(super) fn leave(&self, number: u32, slot: &SlotMemory) {
        self.memory.leave(number, slot);
    }

    /// A bell for a thread or an epoll of this process. None where the peer could not be given it.
    pub fn bell(&self) -> Option<Bell> {
        if let Some(bell) = self.first.lock().pop() {
            return Some(bell);
        }
        self.new_bell()
    }

    /// The taker's: passes its first bells on, before its peer may fork.
    pub(super) fn pass_first(&self) {
        let bells = (0..FIRST_BELLS).map_while(|_| self.new_bell()).collect();
        *self.first.lock() = bells;
    }

    fn new_bell(&self) -> Option<Bell> {
        // Several processes of the peer read from one control connection: the one that needs the
        // bell might not be the one that gets it.
        let is_one = self.memory.processes(self.side().other()).load(Ordering::Relaxed) <= 1;
        let number = if is_one { self.memory.next_bell()? } else { return None };
        let counter = Bell::counter().ok()?;
        self.pass_on(number, &[counter.as_fd()]).ok()?;
        // A fork of the peer meanwhile: nobody knows which process has taken it.
        let is_one = self.memory.processes(self.side().other()).load(Ordering::Relaxed) <= 1;
        let counter = Hidden::new(counter).ok()?;
        is_one.then(|| self.own(number, counter))
    }

    /// Takes a bell back that nobody uses any more.
    pub fn keep(&self, bell: Bell) {
        bell.hush();
        self.first.lock().push(bell);
    }

    fn pass_on(&self, number: u16, counters: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let message = u64::from(number).to_le_bytes();
        send_with(self.control.fd(), &message, counters)
    }

    /// Rings a bell of the other side for a slot. False where it was never passed on.
    pub(super) fn ring(&self, bell: u16, slot: u32) -> bool {
        let Some(place) = self.theirs.get(usize::from(bell)) else { return false };
        if place.get().is_none() {
            self.take_theirs();
        }
        let Some((memory, counter)) = place.get() else { return false };
        memory.mark(slot);
        wake(memory, counter.fd());
        true
    }

    /// Takes the bells that the peer has passed on.
    fn take_theirs(&self) {
        // A thread that finds nothing to take finds what others have taken.
        let _one_at_a_time = self.first.lock();
        let mut message = [0; MESSAGE_BYTES];
        while let Ok((MESSAGE_BYTES, mut counters)) =
            receive_with(self.control.fd(), &mut message, 1)
        {
            let number = u64::from_le_bytes(message);
            if let (Ok(number), Some(counter)) = (u16::try_from(number), counters.pop()) {
                let _ = self.keep_theirs(number, counter);
            }
        }
    }

    /// Before this process forks: the child has what the parent has, and no more.
    pub fn before_fork(&self) {
        self.memory.processes(self.side()).fetch_add(1, Ordering::SeqCst);
        self.take_theirs();
    }

    /// Locks the bells for a fork, after all that locks before them.
    pub fn lock_for_fork(&'static self) {
        self.first.before_fork();
    }

    /// After a fork. The bells that nobody uses stay the parent's.
    pub fn after_fork(&'static self, is_child: bool) {
        self.first.after_fork(|first| {
            if is_child {
                first.clear();
            }
        });
    }
}

/// A process at the other end of a Unix socket, as it was when it connected or began to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number; 0 where this process's namespace does not have it.
    pub number: i32,
    /// Its user.
    pub user: u32,
}

/// The process at the other end of a Unix socket.
pub fn process_of(socket: BorrowedFd<'_>) -> Option<Process> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(Process { number: peer.pid.as_raw_pid(), user: peer.uid.as_raw() })
}

/// The user whose process has the other end of a control connection.
pub(super) fn user_of(control: BorrowedFd<'_>) -> Option<u32> {
    process_of(control).map(|peer| peer.user)
}

/// Sends a message with descriptors; never blocks.
pub(super) fn send_with(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + FIRST_BELLS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)), "there is room for them");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, flags).map(|_| ())
}

/// Receives a message with at most `most` descriptors; never blocks.
pub(super) fn receive_with(
    socket: BorrowedFd<'_>,
    message: &mut [u8],
    most: usize,
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + FIRST_BELLS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(message)], &mut ancillary, flags)?;
    let brought = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds: Vec<OwnedFd> = brought.flatten().take(most).collect();
    Ok((received.bytes, fds))
}
