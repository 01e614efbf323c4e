//! Two processes that share memory for their connections.
use crate::mem::socket::{BELLS, BellMemory, OFFER_WORDS, PairMemory, Side, SlotMemory};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::fork::Shared;
use crate::sys::hidden::Hidden;
use arc_swap::ArcSwapOption;
use ayre_proto::socket::Wants;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::{Errno, IoSlice, IoSliceMut, read, write};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock, Weak};

/// Bells that each side passes on when it makes or takes a pair. Processes that its peer forks
/// later have these, too.
pub(super) const FIRST_BELLS: usize = 2;

/// The bell of all proxies of a pair, which are the other side.
pub(super) const PROXY: u16 = 0;

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
        if self.memory.sleep().disturb() {
            wake(self.fd());
        }
    }
}

/// Wakes one that sleeps at a counter. A full one wakes as well.
fn wake(counter: BorrowedFd<'_>) {
    let _ = write(counter, &1u64.to_ne_bytes());
}

/// The counter of a bell of the other side, with its edition.
#[derive(Debug)]
struct Counter {
    edition: u32,
    counter: Hidden,
}

/// The proxies on the other side of a pair whose peer is on another host.
pub(super) trait Proxies: Debug + Send + Sync {
    /// They were rung for.
    fn pump(&self);

    /// The program has offered a connection of this name in a slot.
    fn offered(&self, program: &Pair, offer: (u32, [u64; OFFER_WORDS]));

    /// Whether no byte can come by the ring of a slot, unless the program's reader wants that
    /// again.
    fn is_settled(&self, program: &Pair, slot: u32) -> bool;

    /// Calls `act` while they tell the program nothing.
    fn hold(&self, act: &mut dyn FnMut());

    /// This thread looks for bytes from now on, by [`Self::look`].
    fn begin_looks(&self);

    /// Looks whether something has come.
    fn look(&self);

    /// Others look for bytes from now on.
    fn end_looks(&self);

    /// This thread is about to sleep, and has nothing to do for other hosts: it serves the proxies
    /// when the descriptor that this returns is readable. None where others serve them.
    fn rest(&self) -> Option<RawFd>;

    /// That descriptor is readable.
    fn serve(&self);

    /// Whether they are not those of a parent that has forked.
    fn is_of_this_process(&self) -> bool;
}

/// This process's part in a pair.
#[derive(Debug)]
pub struct Pair {
    memory: PairMemory,
    /// The connection of the two processes for descriptors.
    control: Hidden,
    /// The process that the peer is, or was forked from.
    peer: Option<Process>,
    /// The counters of the other side's bells, as far as they were passed on. A bell that a living
    /// process has claimed behind a dead one has another counter than before.
    theirs: Vec<ArcSwapOption<Counter>>,
    /// Bells that the peer has, and that nobody of this process uses.
    first: Shared<Vec<Bell>>,
    /// The number that the maker shows in the SYN of each connection; 0: not known yet.
    code: AtomicU64,
    /// The peer has shown that it is not to be trusted, or has gone.
    is_over: AtomicBool,
    /// Those on the other side, if the peer is on another host.
    far: OnceLock<FarSide>,
}

/// The other side of a pair whose peer is on another host.
#[derive(Debug)]
struct FarSide {
    proxies: Weak<dyn Proxies>,
    /// The link is not encrypted.
    is_plain: bool,
    /// The far process has told of a connection.
    is_met: AtomicBool,
}

/// A message on the control connection: the number of a bell and the edition of its counter, which
/// comes with it.
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
        let this = Arc::new(Self::unlisted(memory, control, code)?);
        let mut pairs = PAIRS.lock();
        pairs.retain(|known| known.strong_count() > 0);
        pairs.push(Arc::downgrade(&this));
        Ok(this)
    }

    /// A side of a pair that no connection of this process has.
    pub(super) fn unlisted(memory: PairMemory, control: OwnedFd, code: u16) -> Result<Self, Errno> {
        Ok(Self {
            memory,
            peer: process_of(control.as_fd()),
            control: Hidden::new(control)?,
            theirs: (0..BELLS).map(|_| ArcSwapOption::empty()).collect(),
            first: Shared::new(Vec::new()),
            code: AtomicU64::new(code.into()),
            is_over: AtomicBool::new(false),
            far: OnceLock::new(),
        })
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

    /// The maker's: its first bells, whose counters it has passed on with the memory.
    pub(super) fn keep_first(&self, counters: Vec<OwnedFd>) -> Result<(), Errno> {
        for counter in counters {
            let number = self.memory.claim_bell().ok_or(Errno::MFILE)?;
            let edition = self.memory.new_edition();
            self.first.lock().push(self.own((number, edition), Hidden::new(counter)?));
        }
        Ok(())
    }

    /// The taker's: the maker's first bells.
    pub(super) fn keep_their_first(&self, counters: Vec<OwnedFd>) -> Result<(), Errno> {
        (0..).zip(counters).try_for_each(|(number, counter)| {
            self.keep_theirs((number, u32::from(number) + 1), counter)
        })
    }

    fn keep_theirs(&self, (number, edition): (u16, u32), counter: OwnedFd) -> Result<(), Errno> {
        let place = self.theirs.get(usize::from(number)).ok_or(Errno::INVAL)?;
        place.store(Some(Arc::new(Counter { edition, counter: Hidden::new(counter)? })));
        Ok(())
    }

    /// A bell that this process has claimed, and whose counter it has passed on.
    fn own(&self, (number, edition): (u16, u32), counter: Hidden) -> Bell {
        let memory = self.memory.bell(self.side(), number);
        memory.begin(edition);
        Bell { number, memory, counter }
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

    /// Whether the pair is known to be of no use any more. Of a peer that has died, the kernel has
    /// to be asked: [`Self::is_hung_up`].
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.memory.is_ended_by_peer()
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

    /// Whether the peer has closed its end: all its processes have ended. Takes what it has passed
    /// on, so that there is always room for more.
    pub fn is_hung_up(&self) -> bool {
        let mut looked = [PollFd::from_borrowed_fd(self.control.fd(), PollFlags::IN)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_told = poll(&mut looked, Some(&none)).is_ok_and(|found| found > 0);
        let is_over = is_told && looked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        if is_told && !is_over {
            self.take_theirs();
        }
        is_over
    }

    pub(super) fn slot(&self, number: u32) -> Option<SlotMemory> {
        self.memory.slot(number)
    }

    /// The maker's: offers a connection from this port. None where there is no room for it.
    pub(super) fn offer(&self, port: u16, words: [u64; OFFER_WORDS]) -> Option<(u32, SlotMemory)> {
        let (number, slot) = self.memory.claim()?;
        slot.offer(words);
        self.memory.tell_of_port(port, number);
        if let Some(far) = self.far() {
            far.offered(self, (number, words));
        }
        Some((number, slot))
    }

    /// The proxy's: makes this a pair with another host.
    pub(super) fn set_far(&self, proxies: Weak<dyn Proxies>, is_plain: bool) {
        let _ = self.far.set(FarSide { proxies, is_plain, is_met: AtomicBool::new(false) });
    }

    /// The proxy's: the far process has told of a connection.
    pub(super) fn be_met(&self) {
        self.far.get().iter().for_each(|far| far.is_met.store(true, Ordering::Relaxed));
    }

    /// Those on the other side, if the peer is on another host, and has met this process. Before
    /// that, nothing can come from there.
    #[inline]
    fn met(&self) -> Option<Arc<dyn Proxies>> {
        if self.is_met() { self.far() } else { None }
    }

    /// Whether the peer is on another host, and its process has met this one.
    #[inline]
    pub fn is_met(&self) -> bool {
        self.far.get().is_some_and(|far| far.is_met.load(Ordering::Relaxed))
    }

    /// Those on the other side, if the peer is on another host.
    #[inline]
    pub(super) fn far(&self) -> Option<Arc<dyn Proxies>> {
        let proxies = self.far.get()?.proxies.upgrade();
        proxies.filter(|far| far.is_of_this_process())
    }

    /// Whether the peer is on another host, and the link with it is not encrypted. Then the kernel
    /// carries bulk as well, and faster: it hands large pieces to the network.
    #[inline]
    pub(super) fn has_plain_link(&self) -> bool {
        self.far.get().is_some_and(|far| far.is_plain)
    }

    /// Whether the peer is on another host.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.far.get().is_some()
    }

    /// The number of the slot where a connection from this port is offered, and its state's word.
    pub(super) fn offered(&self, port: u16, words: [u64; OFFER_WORDS]) -> Option<(u32, u64)> {
        let number = self.memory.told_of_port(port)?;
        Some((number, self.slot(number)?.found(words)?))
    }

    /// This side uses a slot no longer.
    pub(super) fn leave(&self, number: u32, slot: &SlotMemory) {
        self.memory.leave(number, slot);
        self.ring_far(number);
    }

    /// Has the other host be told of words that a process of this host would look at by itself.
    pub(super) fn ring_far(&self, slot: u32) {
        if self.is_far() {
            self.ring(PROXY, slot);
        }
    }

    /// A thread looks for bytes from now on, and does not sleep.
    #[inline]
    pub(super) fn begin_looks(&self) {
        self.met().iter().for_each(|far| far.begin_looks());
    }

    /// Looks whether another host has sent something.
    #[inline]
    pub(super) fn look(&self) {
        self.met().iter().for_each(|far| far.look());
    }

    /// Others than this thread look for bytes from now on. A thread that sleeps by
    /// [`rest`](Self::rest) does not need this.
    pub fn end_looks(&self) {
        self.met().iter().for_each(|far| far.end_looks());
    }

    /// Before this thread sleeps, behind all looks: where it is the one that serves the links with
    /// other hosts, the descriptor at which it sleeps besides its bell. When that is readable,
    /// [`serve`](Self::serve) is called. It is one for all pairs of the process.
    // spec: SOCK-71
    pub fn rest(&self) -> Option<RawFd> {
        self.met()?.rest()
    }

    /// Something has come at the descriptor of [`rest`](Self::rest).
    pub fn serve(&self) {
        self.met().iter().for_each(|far| far.serve());
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
        if self.peer_has_forked() {
            return None;
        }
        let number = self.memory.claim_bell()?;
        let bell = self.pass_new(number);
        // A fork of the peer meanwhile: nobody knows which process has taken it.
        let bell = bell.filter(|_| !self.peer_has_forked());
        if bell.is_none() {
            self.memory.give_back_bell(number);
        }
        bell
    }

    /// Passes the counter of a bell on, which this process has claimed.
    fn pass_new(&self, number: u16) -> Option<Bell> {
        let counter = Hidden::new(Bell::counter().ok()?).ok()?;
        let edition = self.memory.new_edition();
        let message = u64::from(edition) << 16 | u64::from(number);
        send_with(self.control.fd(), &message.to_le_bytes(), &[counter.fd()]).ok()?;
        Some(self.own((number, edition), counter))
    }

    fn peer_has_forked(&self) -> bool {
        self.memory.processes(self.side().other()).load(Ordering::Relaxed) > 1
    }

    /// Takes a bell back that nobody uses any more.
    pub fn keep(&self, bell: Bell) {
        bell.hush();
        self.first.lock().push(bell);
    }

    /// Rings a bell of the other side for a slot. False where it was never passed on.
    pub(super) fn ring(&self, bell: u16, slot: u32) -> bool {
        if self.is_far() && bell == PROXY {
            self.memory.bell(self.side().other(), bell).mark(slot);
            self.far().iter().for_each(|far| far.pump());
            return true;
        }
        if bell >= BELLS {
            return false;
        }
        let memory = self.memory.bell(self.side().other(), bell);
        memory.mark(slot);
        if !memory.sleep().disturb() {
            return true;
        }
        // The one that sleeps has said before which counter is its own.
        let counter = self.counter((bell, memory.edition()));
        match &counter {
            Some(counter) => wake(counter.counter.fd()),
            None => memory.sleep().begin(),
        }
        counter.is_some()
    }

    /// The counter of a bell of the other side.
    fn counter(&self, (bell, edition): (u16, u32)) -> Option<Arc<Counter>> {
        let known = || self.theirs[usize::from(bell)].load_full();
        let is_its = |counter: &Arc<Counter>| counter.edition == edition;
        known().filter(is_its).or_else(|| {
            self.take_theirs();
            known().filter(is_its)
        })
    }

    /// Takes the counters that the peer has passed on.
    fn take_theirs(&self) {
        // A thread that finds nothing to take finds what others have taken.
        let _one_at_a_time = self.first.lock();
        let mut message = [0; MESSAGE_BYTES];
        while let Ok((MESSAGE_BYTES, mut counters)) =
            receive_with(self.control.fd(), &mut message, 1)
        {
            let message = u64::from_le_bytes(message);
            if let Some(counter) = counters.pop() {
                let _ = self.keep_theirs((message as u16, (message >> 16) as u32), counter);
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

impl Drop for Pair {
    fn drop(&mut self) {
        self.memory.end();
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
