//! A peer made from raw parts: it speaks the handshake itself and writes into shared memory what it
//! likes. Uses nothing of the engine, so that nothing there keeps it from doing wrong.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use ayre_proto::lane::{Kind, Status, step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recvmsg, sendmsg, socket_with, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const VERSION: u64 = 8;
pub(crate) const HELLO: u64 = 1;
pub(crate) const WELCOME: u64 = 2;
pub(crate) const REFUSE: u64 = 3;
pub(crate) const OFFER_REGION: u64 = 4;
pub(crate) const OFFER_QUEUE: u64 = 5;
pub(crate) const BYE: u64 = 6;
pub(crate) const KICK: u64 = 8;

/// Bytes of a port's page.
pub(crate) const PAGE_BYTES: u64 = 8192;
const LINE: u64 = 64;
const CONTROL_LINES: u64 = 8;

/// Control lines of a direction.
pub(crate) const DONE: u64 = 3;
pub(crate) const BARRIER: u64 = 4;
pub(crate) const NOTED: u64 = 5;
pub(crate) const ACTIVE: u64 = 6;
pub(crate) const RING: u64 = 7;

/// Random numbers that are the same in each run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.word() >> 8) % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A word such as goes wrong in arithmetic, or any.
    pub(crate) fn nasty(&mut self) -> u64 {
        let around: u64 = self.pick(&[0, 1 << 12, 1 << 16, 1 << 31, 1 << 32, 1 << 48, 1 << 63]);
        match self.below(4) {
            0 => self.word(),
            1 => self.below(64),
            _ => around.wrapping_add(self.below(17)).wrapping_sub(8),
        }
    }
}

/// A memory file as an honest peer would make it: of a fixed size.
pub(crate) fn memory_file(len: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"attacker", flags).expect("a memory file");
    ftruncate(&file, len).expect("its length");
    fcntl_add_seals(&file, seals).expect("its seals");
    file
}

pub(crate) fn sealed_file(len: u64) -> OwnedFd {
    memory_file(len, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}

/// Two sockets that are connected with each other, of another kind than control channels are.
pub(crate) fn stream_pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .expect("a pair of sockets")
}

/// A mapped file, of which the attacker may read and write every word at any time.
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: u64,
}

// SAFETY: only atomics lead into the mapping, and any thread may use those.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn map(file: impl AsFd, len: u64) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let (at, len_bytes) = (std::ptr::null_mut(), len as usize);
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap(at, len_bytes, protection, MapFlags::SHARED, file, 0) };
        let base = NonNull::new(base.expect("a mapping").cast()).expect("an address");
        Self { base, len }
    }

    pub(crate) fn words(&self) -> u64 {
        self.len / 8
    }

    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len, "the attacker's own bounds");
        // SAFETY: in the mapping and aligned, just checked; an atomic may be shared with anybody.
        unsafe { self.base.add(offset as usize).cast().as_ref() }
    }

    pub(crate) fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::SeqCst);
    }

    pub(crate) fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::SeqCst)
    }

    /// Whether some word holds `value`.
    pub(crate) fn holds(&self, value: u64) -> bool {
        (0..self.words()).any(|index| self.load(index * 8) == value)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range is our own mapping, and no reference into it is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len as usize) };
    }
}

/// Where everything lies in a connection file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) paired: u64,
    pub(crate) response: u64,
    /// Bytes of the ring, which only endpoints have.
    pub(crate) ring: u64,
}

/// The lanes of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Messages = 0,
    Requests = 1,
    Responses = 2,
}

pub(crate) const LANES: [Lane; 3] = [Lane::Messages, Lane::Requests, Lane::Responses];

impl Layout {
    fn direction_bytes(self) -> u64 {
        self.ring_start() + self.ring
    }

    /// Where the ring of a direction begins.
    pub(crate) fn ring_start(self) -> u64 {
        (CONTROL_LINES + 2 * self.paired + self.response) * LINE
    }

    pub(crate) fn file_bytes(self) -> u64 {
        (2 * self.direction_bytes()).next_multiple_of(rustix::param::page_size() as u64)
    }

    fn lane_lines(self, lane: Lane) -> u64 {
        if lane == Lane::Responses { self.response } else { self.paired }
    }

    /// Offset of the line that is taken as the `turn`-th one, counted from none and round the ring.
    pub(crate) fn line(self, lane: Lane, turn: u64) -> u64 {
        let lines = self.lane_lines(lane);
        let index = turn % lines * u64::from(step(lines as u32)) % lines;
        let line = match lane {
            Lane::Messages => CONTROL_LINES + 2 * index,
            Lane::Requests => CONTROL_LINES + 2 * index + 1,
            Lane::Responses => CONTROL_LINES + 2 * self.paired + index,
        };
        line * LINE
    }
}

/// A socket of the kind that control channels are.
pub(crate) fn control_socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("a socket")
}

pub(crate) fn connect_to(path: &Path) -> OwnedFd {
    let socket = control_socket();
    connect(&socket, &SocketAddrUnix::new(path).expect("an address")).expect("a connection");
    socket
}

pub(crate) fn listen_at(path: &Path, backlog: i32) -> OwnedFd {
    let socket = control_socket();
    bind(&socket, &SocketAddrUnix::new(path).expect("an address")).expect("a bound socket");
    listen(&socket, backlog).expect("a listening socket");
    socket
}

pub(crate) fn accept_from(listener: &OwnedFd) -> OwnedFd {
    accept(listener).expect("the victim's connection")
}

/// Sends bytes and descriptors; whether the other end took them.
pub(crate) fn send_bytes(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags).is_ok()
}

pub(crate) fn send(socket: impl AsFd, words: [u64; 8], fds: &[BorrowedFd<'_>]) -> bool {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    send_bytes(socket, &bytes, fds)
}

/// Code and detail of the refusal that a caller gets, and then the end of the connection.
pub(crate) fn refusal_to(stranger: &OwnedFd) -> [u64; 2] {
    let heard: Vec<_> = std::iter::repeat_with(|| receive(stranger)).take(3).collect();
    let said: Vec<_> = heard.iter().flatten().map(|(words, _)| *words).collect();
    let &[[kind, version, code, detail, ..]] = &said[..] else { panic!("{said:?}") };
    assert_eq!((kind, version), (REFUSE, VERSION));
    assert!(heard[2].is_none(), "the victim closes");
    [code, detail]
}

/// Takes a packet that must be there; waits for it where the victim runs in another thread.
pub(crate) fn receive(socket: impl AsFd) -> Option<([u64; 8], Vec<OwnedFd>)> {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    if received.bytes != 64 {
        return None;
    }
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let fds = rights.flatten().collect();
    let word = |index: usize| bytes[index * 8..][..8].try_into().map_or(0, u64::from_le_bytes);
    Some((std::array::from_fn(word), fds))
}

/// The descriptors that a peer hands over in its introduction.
pub(crate) struct Parts {
    pub(crate) page: OwnedFd,
}

impl Parts {
    pub(crate) fn new() -> Self {
        Self { page: sealed_file(PAGE_BYTES) }
    }

    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 1] {
        [self.page.as_fd()]
    }
}

pub(crate) fn hello(number: u64, mediated: bool) -> [u64; 8] {
    [HELLO, VERSION, number, u64::from(mediated), 1, 0, 0, 0]
}

/// An attacker whose introduction is under way.
pub(crate) struct Begun {
    pub(crate) control: OwnedFd,
    number: u64,
    parts: Parts,
}

impl Begun {
    /// Introduces itself correctly. The victim accepts next.
    pub(crate) fn connect(path: &Path, number: u64, mediated: bool) -> Self {
        Self::connect_with(path, number, mediated, Parts::new())
    }

    /// As [`Begun::connect`], with parts of the attacker's choice.
    pub(crate) fn connect_with(path: &Path, number: u64, mediated: bool, parts: Parts) -> Self {
        Self::introduce(connect_to(path), hello(number, mediated), parts)
    }

    /// Says a Hello of the attacker's choice where it has connected.
    pub(crate) fn introduce(control: OwnedFd, hello: [u64; 8], parts: Parts) -> Self {
        assert!(send(&control, hello, &parts.fds()), "the victim listens");
        Self { control, number: hello[2], parts }
    }

    /// Whether the victim has said something, or has hung up.
    pub(crate) fn is_answered(&self) -> bool {
        let mut watched = [PollFd::new(&self.control, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Takes the victim's welcome.
    pub(crate) fn finish(self) -> Attacker {
        let (words, fds) = receive(&self.control).expect("a welcome");
        let [kind, version, _, mediated, _, paired, response, ring] = words;
        assert_eq!((kind, version), (WELCOME, VERSION));
        let layout = Layout { paired, response, ring };
        let [victim_page, file] =
            <[OwnedFd; 2]>::try_from(fds).expect("the descriptors of a welcome");
        Attacker {
            number: self.number,
            mediated: mediated == 1,
            control: self.control,
            page: Memory::map(&self.parts.page, PAGE_BYTES),
            memory: Memory::map(&file, layout.file_bytes()),
            file,
            layout,
            inward: 0,
            outward: layout.direction_bytes(),
            written: [0; 3],
            victim_page,
            parts: self.parts,
        }
    }
}

/// A connected attacker.
pub(crate) struct Attacker {
    pub(crate) number: u64,
    pub(crate) mediated: bool,
    pub(crate) control: OwnedFd,
    /// Memory that the victim may only read: the attacker can write it.
    pub(crate) page: Memory,
    pub(crate) memory: Memory,
    pub(crate) file: OwnedFd,
    pub(crate) layout: Layout,
    /// Start of the direction that the victim writes.
    pub(crate) inward: u64,
    /// Start of the direction that the victim reads.
    pub(crate) outward: u64,
    /// Lines written to each lane.
    pub(crate) written: [u64; 3],
    pub(crate) victim_page: OwnedFd,
    pub(crate) parts: Parts,
}

impl Attacker {
    /// Offset of a control word in the direction that the victim reads.
    pub(crate) fn control_out(&self, line: u64) -> u64 {
        self.outward + line * LINE
    }

    /// Offset of a control word in the direction that the victim writes: cursors and counts that
    /// the attacker keeps of it.
    pub(crate) fn control_in(&self, line: u64) -> u64 {
        self.inward + line * LINE
    }

    /// Offset of the line that the victim looks at next.
    pub(crate) fn next_line(&self, lane: Lane) -> u64 {
        self.outward + self.layout.line(lane, self.written[lane as usize])
    }

    /// The sequence number that makes the victim take that line.
    pub(crate) fn next_sequence(&self, lane: Lane) -> u16 {
        (self.written[lane as usize] + 1) as u16
    }

    /// Whether the connection has this lane.
    pub(crate) fn has(&self, lane: Lane) -> bool {
        self.layout.lane_lines(lane) > 0
    }

    /// Writes one line with a status word of the attacker's choice.
    pub(crate) fn put_line(&mut self, lane: Lane, status: u64, payload: &[u64]) {
        let at = self.next_line(lane);
        for (index, word) in payload.iter().take(7).enumerate() {
            self.memory.store(at + 8 + 8 * index as u64, *word);
        }
        self.memory.store(at, status);
        self.written[lane as usize] += 1;
    }

    /// Writes a record of one line with the right sequence number.
    pub(crate) fn put_record(&mut self, lane: Lane, kind: Kind, len: u32, payload: &[u64]) {
        let status = Status { sequence: self.next_sequence(lane), kind, len, tag: 0 };
        self.put_line(lane, status.encode(), payload);
    }

    /// As [`Attacker::put_record`], over as many lines as it takes.
    pub(crate) fn put_long(&mut self, lane: Lane, kind: Kind, payload: &[u64]) {
        self.put_claim(lane, (kind, payload.len() as u32 * 8, 0), payload);
    }

    /// A message with a length and a tag of the attacker's choice.
    pub(crate) fn put_claim(
        &mut self,
        lane: Lane,
        (kind, len, tag): (Kind, u32, u32),
        payload: &[u64],
    ) {
        let first = self.written[lane as usize];
        let mut chunks = payload.chunks(7);
        let head = chunks.next().unwrap_or(&[]);
        self.written[lane as usize] += 1;
        for chunk in chunks {
            self.put_record(lane, Kind::Continuation, 0, chunk);
        }
        let after = std::mem::replace(&mut self.written[lane as usize], first);
        let status = Status { sequence: self.next_sequence(lane), kind, len, tag };
        self.put_line(lane, status.encode(), head);
        self.written[lane as usize] = after;
    }

    /// The words behind the status word of a line of the victim's messages.
    pub(crate) fn heard(&self, line: u64) -> [u64; 7] {
        let at = self.inward + self.layout.line(Lane::Messages, line);
        std::array::from_fn(|index| self.memory.load(at + 8 + 8 * index as u64))
    }

    pub(crate) fn send(&self, words: [u64; 8], fds: &[BorrowedFd<'_>]) -> bool {
        send(&self.control, words, fds)
    }

    /// Wakes the victim. Whether there was room for that.
    pub(crate) fn kick(&self) -> bool {
        self.send([KICK, 0, 0, 0, 0, 0, 0, 0], &[])
    }

    /// The first two words behind the status word of a line of the victim's answers.
    pub(crate) fn answer(&self, line: u64) -> [u64; 2] {
        let at = self.inward + self.layout.line(Lane::Responses, line);
        [self.memory.load(at + 8), self.memory.load(at + 16)]
    }

    /// Takes the queue that the victim shares, as its lane's memory.
    pub(crate) fn take_queue(&self) -> Memory {
        let (words, files) = receive(&self.control).expect("an offer");
        assert_eq!((words[0], files.len()), (OFFER_QUEUE, 1));
        let bytes = (2 * LINE * (words[2] + 1)).next_multiple_of(PAGE_BYTES / 2);
        Memory::map(&files[0], bytes)
    }

    /// Offers memory under a name, with any numbers.
    pub(crate) fn offer_region(&self, offer: Offer, file: Option<BorrowedFd<'_>>) -> bool {
        let Offer { name, rights, base, len, mapped } = offer;
        let fds: Vec<_> = file.into_iter().collect();
        self.send([OFFER_REGION, name, rights << 16, 0, base, len, mapped, 0], &fds)
    }
}

/// The words of an offer of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) name: u64,
    pub(crate) rights: u64,
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) mapped: u64,
}

impl Offer {
    /// A truthful one, with all rights.
    pub(crate) fn of(name: u64, len: u64) -> Self {
        Self { name, rights: 31, base: 0, len, mapped: len }
    }
}
