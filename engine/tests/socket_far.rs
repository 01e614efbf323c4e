//! Connections with other hosts: two endpoints of this process that meet over the network, each
//! with an end of a TCP connection.
mod common;
#[path = "socket/unlinked.rs"]
mod unlinked;
#[path = "socket/world.rs"]
mod world;

use ayre::endpoint::EndpointOptions;
use ayre::socket::{Addresses, Connection, Ends, Far, Pair, Party, RING, Ready};
use common::watchdog::Watchdog;
use proptest::prelude::*;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::RecvFlags;
use std::fmt::Display;
use std::io::Read;
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use world::{End, LONG, bytes, check, pair, readable_within, sockets};

/// A process with connections to other hosts.
fn host(is_plain: bool) -> Arc<Far> {
    Far::open(&if is_plain { options().plain() } else { options() }).unwrap()
}

fn options() -> EndpointOptions {
    let options = EndpointOptions::new().apart().at(Ipv4Addr::LOCALHOST.into());
    options.linger(Duration::ZERO).silence(Duration::from_secs(60))
}

/// An end that is to meet the other one.
#[derive(Debug)]
struct Meeting {
    connection: Arc<Connection>,
    pair: OnceLock<Arc<Pair>>,
    socket: OnceLock<TcpStream>,
    /// Why there is no link.
    why: OnceLock<String>,
}

impl Meeting {
    fn new() -> Arc<Self> {
        let connection = Arc::new(Connection::new().unwrap());
        let (pair, socket, why) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Arc::new(Self { connection, pair, socket, why })
    }

    fn weak(self: &Arc<Self>) -> Weak<dyn Party> {
        let this: Weak<Self> = Arc::downgrade(self);
        this
    }
}

impl Party for Meeting {
    fn meet(&self, pair: &Arc<Pair>, name: &Ends) {
        assert!(self.connection.offer(pair, name));
        self.pair.set(pair.clone()).expect("it meets once");
    }

    fn follow_reader(&self) {
        self.socket.get().iter().for_each(|socket| self.connection.follow_reader(socket.as_fd()));
    }

    fn has_no_link(&self, why: &dyn Display) {
        self.why.set(why.to_string()).expect("it is told once");
    }
}

/// A connection between two hosts.
struct World {
    hosts: [Arc<Far>; 2],
    ends: [End; 2],
    /// They live as long as their connections.
    _parties: [Arc<Meeting>; 2],
}

impl World {
    fn new(is_plain: bool) -> Self {
        let hosts = [(); 2].map(|()| host(is_plain));
        let (ends, _parties) = connect_after(&hosts, |_, _| {});
        Self { hosts, ends, _parties }
    }

    /// One whose ends both want bytes by the ring, and know that of each other.
    fn in_rings(is_plain: bool) -> Self {
        let this = Self::new(is_plain);
        for end in &this.ends {
            end.connection.want_bytes(Some(&end.bell));
        }
        for of in [0, 1] {
            begin_ring(&this.ends[of], &this.ends[1 - of]);
        }
        this
    }
}

/// Writes bytes that the other end reads, until one goes by the ring. The writer's host has told by
/// then how its reader wants bytes.
fn begin_ring(from: &End, to: &End) {
    until(|| {
        let before = from.connection.counts_out();
        from.write(&[7]).unwrap();
        until(|| to.read(&mut [0], RecvFlags::empty()) == Ok(1));
        from.connection.counts_out().ring > before.ring
    });
}

/// Looks until it is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let mut watchdog = Watchdog::start(0);
    while !is_so() {
        std::thread::yield_now();
    }
    assert!(!watchdog.stop());
}

/// A connection of two hosts, which both of their programs know.
fn connect(hosts: &[Arc<Far>; 2]) -> [End; 2] {
    connect_after(hosts, |_, _| {}).0
}

/// As [`connect`]; the end that accepts does something before.
fn connect_after(
    hosts: &[Arc<Far>; 2],
    act: impl FnOnce(&Arc<Connection>, &TcpStream),
) -> ([End; 2], [Arc<Meeting>; 2]) {
    let (sockets, name) = sockets();
    let meetings = [(); 2].map(|()| Meeting::new());
    for (meeting, socket) in meetings.iter().zip(&sockets) {
        meeting.socket.set(socket.try_clone().unwrap()).expect("one for each");
    }
    act(&meetings[1].connection, &sockets[1]);
    let from = sockets[0].local_addr().unwrap();
    hosts[1].invite(&name, (from, hosts[0].code()), meetings[1].weak());
    hosts[0].expect(&name, meetings[0].weak());
    until(|| meetings.iter().all(|meeting| meeting.pair.get().is_some()));
    let mut sockets = sockets.into_iter();
    let ends = meetings.each_ref().map(|meeting| {
        let pair = meeting.pair.get().unwrap();
        let [bell, room] = [(); 2].map(|()| pair.bell().expect("a bell"));
        let (connection, socket) = (meeting.connection.clone(), sockets.next().unwrap());
        End { connection, socket, bell, room }
    });
    (ends, meetings)
}

/// Writes as long as there is room. Returns the number of bytes.
fn fill(end: &End, at: u64) -> u64 {
    let mut len = 0;
    loop {
        match end.write(&bytes(at + len, 10_000)) {
            Ok(more) => len += more as u64,
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                return len;
            }
        }
    }
}

/// Reads what is there, and checks it. Returns the next position.
fn read_on(end: &End, at: u64, most: usize) -> u64 {
    let mut into = vec![0; most];
    match end.read(&mut into, RecvFlags::empty()) {
        Ok(len) => {
            check(at, &into[..len]);
            at + len as u64
        }
        Err(errno) => {
            assert_eq!(errno, Errno::AGAIN);
            at
        }
    }
}

// spec: SOCK-61, SOCK-62
#[test]
fn bytes_go_by_the_link_both_ways() {
    for is_plain in [true, false] {
        let world = World::in_rings(is_plain);
        let before = [0, 1].map(|of: usize| world.ends[of].connection.counts_out());
        for turn in 0..100 {
            for of in [0, 1] {
                let text = bytes(turn * 100, 100);
                assert_eq!(world.ends[of].write(&text), Ok(100));
                assert!(!world.ends[1 - of].kernel_is_readable());
                let mut at = turn * 100;
                until(|| {
                    at = read_on(&world.ends[1 - of], at, 200);
                    at == (turn + 1) * 100
                });
            }
        }
        for of in [0, 1] {
            let after = world.ends[of].connection.counts_out();
            assert_eq!(after.ring - before[of].ring, 10_000);
            assert_eq!(after.kernel, before[of].kernel);
        }
    }
}

#[test]
fn threads_with_little_stack_have_connections_with_other_hosts() {
    for is_plain in [true, false] {
        let work = move || drop(World::in_rings(is_plain));
        // As much as sysbench gives its threads.
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(work);
        thread.unwrap().join().unwrap();
    }
}

// spec: SOCK-61, SOCK-64
#[test]
fn a_ring_that_the_far_reader_leaves_full_stops_its_writer_until_it_reads() {
    let world = World::in_rings(false);
    let [near, far] = &world.ends;
    let (mut written, mut read) = (0, 0);
    for _ in 0..5 {
        let begun = written;
        // Of an eighth, the reader need not tell. Its words take a while.
        until(|| {
            written += fill(near, written);
            written - begun >= RING - RING / 8
        });
        assert!(written - read <= RING, "more than the ring has");
        until(|| {
            read = read_on(far, read, 50_000);
            read == written
        });
    }
}

// spec: SOCK-15, SOCK-64
#[test]
fn a_sleeper_at_its_bell_is_woken() {
    let world = World::in_rings(true);
    let [near, far] = &world.ends;
    for turn in 0..100 {
        far.connection.want_bytes(Some(&far.bell));
        assert!(!far.connection.is_readable());
        assert_eq!(near.write(&bytes(turn, 1)), Ok(1));
        assert!(readable_within(&[far.bell.fd()], LONG), "turn {turn}");
        far.bell.hush();
        until(|| far.connection.is_readable());
        assert_eq!(read_on(far, turn, 10), turn + 1);
    }
}

// spec: SOCK-71
#[test]
fn a_thread_that_sleeps_at_the_links_brings_the_bytes() {
    let world = World::in_rings(true);
    let [near, far] = &world.ends;
    let (pair, _) = far.connection.place().expect("both have met");
    for turn in 0..100 {
        far.connection.want_bytes(Some(&far.bell));
        let mut links = None;
        until(|| {
            links = pair.rest();
            links.is_some()
        });
        assert!(!far.connection.is_readable(), "turn {turn}");
        until(|| pair.rest().is_some());
        assert_eq!(near.write(&bytes(turn, 1)), Ok(1));
        // SAFETY: it is the endpoint's, which lives as long as the host.
        let links = unsafe { BorrowedFd::borrow_raw(links.expect("it rests")) };
        assert!(readable_within(&[links], LONG), "turn {turn}");
        until(|| {
            pair.serve();
            far.connection.is_readable()
        });
        assert_eq!(read_on(far, turn, 10), turn + 1);
    }
    // Where several threads use the links, none of them has to be there.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| pair.rest());
        assert_eq!(other.join().expect("no panic"), None);
    });
    assert_eq!(pair.rest(), None);
}

// spec: SOCK-72
#[test]
fn bulk_goes_by_tcp_where_the_link_is_plain() {
    let world = World::in_rings(true);
    let [near, far] = &world.ends;
    let (mut written, mut read, mut answers) = (0, 0, 0);
    for piece in [10_000, RING as usize, 10_000, 100] {
        let before = near.connection.counts_out();
        until(|| {
            written += near.write(&bytes(written, piece)).map_or(0, |len| len as u64);
            near.connection.counts_out().kernel > before.kernel
        });
        let by_ring = near.connection.counts_out().ring - before.ring;
        assert_eq!(by_ring > 0, piece < RING as usize, "{by_ring} by the ring, of {piece} at once");
        // With an answer, it is known that all was taken.
        until(|| {
            read = read_on(far, read, 1 << 20);
            let before = near.connection.counts_out();
            written += near.write(&bytes(written, 1)).map_or(0, |len| len as u64);
            until(|| {
                read = read_on(far, read, 1 << 20);
                read == written
            });
            assert_eq!(far.write(&bytes(answers, 1)), Ok(1));
            until(|| read_on(near, answers, 1) > answers);
            answers += 1;
            near.connection.counts_out().ring > before.ring
        });
    }
}

// spec: SOCK-63, SOCK-65
#[test]
fn a_reader_that_goes_back_to_the_kernel_is_settled_when_the_far_writer_has_followed() {
    let world = World::in_rings(true);
    let [near, far] = &world.ends;
    far.connection.want_kernel(None);
    let mut written = 0;
    until(|| {
        let before = near.connection.counts_out().kernel;
        written += near.write(&bytes(written, 1)).unwrap_or(0) as u64;
        near.connection.counts_out().kernel > before
    });
    let mut read = 0;
    until(|| {
        read = read_on(far, read, 1000);
        read == written
    });
    until(|| far.connection.is_settled());
}

// spec: SOCK-73
#[test]
fn a_reader_that_goes_gets_what_the_ring_has_though_the_writer_makes_no_call() {
    let World { hosts, ends: [near, far], _parties } = World::in_rings(false);
    assert_eq!(near.write(&bytes(0, 100)), Ok(100));
    far.connection.leave_reading();
    let mut got = Vec::new();
    while got.len() < 100 {
        assert!(readable_within(&[far.socket.as_fd()], LONG), "{} bytes came", got.len());
        let mut into = [0; 200];
        let len = (&far.socket).read(&mut into).unwrap();
        got.extend_from_slice(&into[..len]);
    }
    assert_eq!(got, bytes(0, 100));
    drop(hosts);
}

/// Leaves the link of an end for good.
fn leave_link(end: &End) {
    end.connection.leave_writing();
    end.connection.want_kernel(None);
    until(|| end.connection.has_left_link());
}

// spec: SOCK-65, SOCK-69
#[test]
fn bytes_of_a_link_that_was_left_precede_those_by_tcp() {
    for is_plain in [true, false] {
        let World { hosts, ends: [near, far], _parties } = World::in_rings(is_plain);
        let [_near_host, far_host] = hosts;
        assert_eq!(near.write(&bytes(0, 100)), Ok(100));
        // The writer makes no call.
        leave_link(&far);
        far_host.finish(LONG);
        drop(far_host);
        let (pair, _) = near.connection.place().expect("both have met");
        until(|| pair.is_over());
        assert_eq!(near.write(&bytes(100, 100)), Ok(100));
        assert!(readable_within(&[far.socket.as_fd()], LONG));
        assert_eq!(read_on(&far, 0, 1000), 100);
        assert_eq!(read_on(&far, 100, 1000), 200);
        near.socket.shutdown(Shutdown::Write).unwrap();
        assert!(readable_within(&[far.socket.as_fd()], LONG));
        assert_eq!(far.read(&mut [0], RecvFlags::empty()), Ok(0), "TCP's word holds");
    }
}

// spec: SOCK-64
#[test]
fn what_a_reader_took_before_it_closed_is_not_passed_on_again() {
    let World { hosts, ends: [near, far], _parties } = World::in_rings(false);
    assert_eq!(near.write(&bytes(0, 100)), Ok(100));
    let mut read = 0;
    until(|| {
        read = read_on(&far, read, 1000);
        read == 100
    });
    assert!(!far.close(), "nothing is unread");
    until(|| near.connection.writable() == Ready::AskKernel);
    near.settle().unwrap();
    assert!(!far.kernel_is_readable());
    assert_eq!(near.connection.unread_by_peer(), 0);
    drop(hosts);
}

// spec: SOCK-70
#[test]
fn a_writer_whose_far_reader_has_gone_outlives_the_link() {
    for _ in 0..20 {
        let world = World::new(false);
        let [near, far] = &world.ends;
        far.connection.want_bytes(None);
        begin_ring(near, far);
        far.connection.want_kernel(None);
        until(|| {
            let before = near.connection.counts_out();
            near.write(&[7]).unwrap_or(0);
            let _ = far.read(&mut [0], RecvFlags::empty());
            near.connection.counts_out().kernel > before.kernel
        });
        let written = near.connection.counts_out();
        until(|| {
            let _ = far.read(&mut [0], RecvFlags::empty());
            far.connection.counts_in() == written && far.connection.is_settled()
        });
        far.connection.want_bytes(None);
        until(|| near.connection.writable() == Ready::Yes);
        // It begins another ring as the reader goes.
        let mut written = near.write(&bytes(0, 100)).unwrap() as u64;
        far.connection.leave_reading();
        far.connection.leave_writing();
        until(|| far.connection.is_followed());
        let World { hosts: [_near_host, far_host], ends: [near, far], _parties } = world;
        far_host.finish(LONG);
        drop(far_host);
        let (pair, _) = near.connection.place().expect("both have met");
        until(|| pair.is_over());
        until(|| near.connection.writable() == Ready::AskKernel);
        written += near.write(&bytes(written, 100)).unwrap() as u64;
        let mut got = vec![0; written as usize];
        (&far.socket).read_exact(&mut got).unwrap();
        check(0, &got);
    }
}

// spec: SOCK-69
#[test]
fn a_link_that_is_left_has_brought_what_a_writer_wrote_before_it_closed() {
    let World { hosts, ends: [near, far], _parties } = World::in_rings(false);
    assert_eq!(near.write(&bytes(0, 100)), Ok(100));
    near.close();
    near.socket.shutdown(Shutdown::Write).unwrap();
    leave_link(&far);
    drop(hosts);
    assert_eq!(read_on(&far, 0, 1000), 100);
    assert!(readable_within(&[far.socket.as_fd()], LONG));
    assert_eq!(far.read(&mut [0], RecvFlags::empty()), Ok(0));
}

// spec: SOCK-65
#[test]
fn a_writer_without_room_is_woken_when_the_far_reader_goes_back_to_the_kernel() {
    let World { hosts, ends: [near, far], _parties } = World::in_rings(false);
    fill(&near, 0);
    far.connection.want_kernel(None);
    // Words of room that are still on their way ring the bell, too.
    until(|| {
        near.room.hush();
        near.connection.want_room(Some(&near.room));
        let is_told = || near.connection.writable() == Ready::AskKernel;
        is_told() || readable_within(&[near.room.fd()], LONG) && is_told()
    });
    drop(hosts);
}

// Between hosts, a link brings such bytes together with TCP's end.
// spec: SOCK-23, SOCK-24
#[test]
fn bytes_of_a_ring_that_begins_while_the_kernel_is_asked_precede_the_end() {
    for of_kernel in [Ok(0), Err(Errno::CONNRESET)] {
        let [near, far] = world::connect(&pair());
        far.connection.want_bytes(None);
        let mut into = [0; 16];
        let mut ask = |ask: &mut dyn FnMut() -> Result<usize, Errno>| {
            let pieces = &mut [IoSliceMut::new(&mut into)];
            let (socket, flags) = (far.socket.as_fd(), RecvFlags::empty());
            let got = far.connection.read_with(socket, pieces, flags, |_| ask());
            got.map(|len| into[..len].to_vec())
        };
        let got = ask(&mut || {
            assert_eq!(near.write(b"request"), Ok(7));
            near.close();
            of_kernel
        });
        assert_eq!(near.written_by_ring(), 7);
        assert_eq!(got, Ok(b"request".to_vec()), "before {of_kernel:?}");
        near.socket.shutdown(Shutdown::Write).unwrap();
        assert!(readable_within(&[far.socket.as_fd()], LONG));
        assert_eq!(ask(&mut || of_kernel), of_kernel.map(|_| vec![]));
    }
}

/// Ends the writing of an end.
fn end_writing(connection: &Connection, socket: &TcpStream) {
    connection.end_writing(socket.as_fd());
    socket.shutdown(Shutdown::Write).unwrap();
}

/// Checks that an end which the link is to tell gets that of the other one, and still writes.
fn check_half_closed([near, far]: &[End; 2]) {
    for end in [near, far] {
        end.connection.want_bytes(Some(&end.bell));
    }
    begin_ring(near, far);
    until(|| near.read(&mut [0], RecvFlags::empty()) == Ok(0));
    begin_ring(near, far);
}

// spec: SOCK-67
#[test]
fn an_end_of_writing_is_told_that_came_before_both_ends_met() {
    let hosts = [(); 2].map(|()| host(true));
    check_half_closed(&connect_after(&hosts, |near, socket| end_writing(near, socket)).0);
}

// spec: SOCK-67
#[test]
fn an_end_of_writing_is_told_that_comes_while_both_ends_meet() {
    let hosts = [(); 2].map(|()| host(true));
    for _ in 0..20 {
        let mut thread = None;
        let (ends, _parties) = connect_after(&hosts, |near, socket| {
            let (near, socket) = (near.clone(), socket.try_clone().unwrap());
            thread = Some(std::thread::spawn(move || end_writing(&near, &socket)));
        });
        thread.expect("it was started").join().unwrap();
        check_half_closed(&ends);
    }
}

// spec: SOCK-67
#[test]
fn an_end_that_tcp_tells_early_is_no_death() {
    let World { hosts, ends: [near, far], _parties } = World::in_rings(false);
    let before = far.connection.counts_out();
    let mut written = fill(&far, 0);
    near.socket.shutdown(Shutdown::Write).unwrap();
    assert!(readable_within(&[far.socket.as_fd()], LONG));
    written += fill(&far, written);
    near.end_writing();
    let mut read = 0;
    until(|| {
        if written < 2 * RING {
            written += fill(&far, written);
        }
        read = read_on(&near, read, 10_000);
        read >= 2 * RING && read == written
    });
    assert_eq!(far.connection.counts_out().kernel, before.kernel);
    drop(hosts);
}

// spec: SOCK-24
#[test]
fn a_reset_that_a_look_has_found_ends_the_writing_too() {
    let World { hosts, ends: [near, far], _parties } = World::new(false);
    [&near, &far].iter().for_each(|end| end.connection.want_bytes(Some(&end.bell)));
    begin_ring(&near, &far);
    rustix::net::connect_unspec(&far.socket).unwrap();
    assert!(readable_within(&[near.socket.as_fd()], LONG));
    assert!(!near.connection.is_end_early(near.socket.as_fd()), "it is no end in order");
    assert_eq!(near.read(&mut [0], RecvFlags::empty()), Err(Errno::CONNRESET));
    assert_eq!(near.write(&[1]), Err(Errno::PIPE));
    drop(hosts);
}

// spec: SOCK-70
#[test]
fn a_connection_whose_link_has_died_is_reset() {
    let World { hosts: [near_host, far_host], ends, _parties } = World::in_rings(true);
    drop(far_host);
    let mut watchdog = Watchdog::start(0);
    while ends[0].read(&mut [0; 10], RecvFlags::empty()) == Err(Errno::AGAIN) {
        std::thread::yield_now();
    }
    drop(near_host);
    assert!(!watchdog.stop());
    assert_eq!(ends[0].read(&mut [0; 10], RecvFlags::empty()), Err(Errno::CONNRESET));
    assert_eq!(ends[0].write(&[1]), Err(Errno::PIPE));
}

#[test]
fn closed_connections_give_their_slots_back() {
    let hosts = [(); 2].map(|()| host(true));
    let mut slots = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let ends = connect(&hosts);
        slots.insert(ends[0].connection.place().expect("a slot").1);
        drop(ends.map(|end| {
            end.close();
            end
        }));
    }
    // The link tells of an end before it tells of the next connection.
    assert!(slots.len() < 5, "{slots:?}");
}

// spec: SOCK-68
#[test]
fn an_invitation_is_taken_from_the_peers_address_only() {
    let hosts = [(); 2].map(|()| host(true));
    let (sockets, name) = sockets();
    let from = sockets[0].local_addr().unwrap();
    let Ends::Tcp(ends) = name else { unreachable!("it is of TCP") };
    let taker = (Ipv4Addr::new(127, 0, 0, 99), ends.taker.port()).into();
    let elsewhere = Ends::Tcp(Addresses { taker, ..ends });
    let meetings = [(); 2].map(|()| Meeting::new());
    hosts[0].expect(&elsewhere, meetings[0].weak());
    hosts[1].invite(&elsewhere, (from, hosts[0].code()), meetings[1].weak());
    // Invitations are taken in the order in which they come.
    drop(connect(&hosts));
    assert!(meetings.iter().all(|meeting| meeting.pair.get().is_none()));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    Read(usize),
    WantBytes,
    Sleep,
    WantKernel,
    Yield,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let len = || prop_oneof![3 => 1usize..200, 1 => 1usize..2 * RING as usize];
    let step = prop_oneof![
        8 => len().prop_map(Step::Write),
        8 => len().prop_map(Step::Read),
        2 => Just(Step::WantBytes),
        2 => Just(Step::Sleep),
        1 => Just(Step::WantKernel),
        10 => Just(Step::Yield),
    ];
    proptest::collection::vec((0..2usize, step), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    // spec: SOCK-61, SOCK-62, SOCK-63, SOCK-64, SOCK-65
    #[test]
    fn all_bytes_arrive_in_order_by_tcp_and_by_the_link(is_plain: bool, steps in steps()) {
        let world = World::new(is_plain);
        let (mut written, mut read) = ([0u64; 2], [0u64; 2]);
        for (of, step) in steps {
            let end = &world.ends[of];
            match step {
                Step::Write(len) => match end.write(&bytes(written[of], len)) {
                    Ok(len) => written[of] += len as u64,
                    Err(errno) => prop_assert_eq!(errno, Errno::AGAIN),
                },
                Step::Read(len) => read[of] = read_on(end, read[of], len),
                Step::WantBytes => end.connection.want_bytes(None),
                Step::Sleep => end.connection.want_bytes(Some(&end.bell)),
                Step::WantKernel => end.connection.want_kernel(Some(&end.bell)),
                Step::Yield => std::thread::yield_now(),
            }
        }
        until(|| {
            for of in [0, 1] {
                read[of] = read_on(&world.ends[of], read[of], 1 << 20);
            }
            read[0] == written[1] && read[1] == written[0]
        });
    }
}
