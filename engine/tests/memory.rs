//! The memory of an idle peer, at most 16 KiB, and of peers that have gone, none.
//!
//! A process with one port, the hub, is connected to 256 ports of another process, and measures
//! itself before and after:
//!
//! - *heap*: bytes that the program's allocator has given out, counted by an allocator of this test
//!   that passes everything on to the system's;
//! - *files*: lengths of the memory files that it has mapped, by `/proc/self/maps`. They are those
//!   that the two ports of a connection share (`own`) and the read-only pages of its peers
//!   (`page`). Each page is a peer's own memory, made once for all ports that read it;
//! - *resident*: `Rss` and `Pss` of `/proc/self/smaps_rollup`; the second counts a page that two
//!   processes have mapped as half a page in each. That of programs and libraries is left out: it
//!   changes with every process that begins or ends.
//!
//! The cost of a peer is heap plus connection file, the whole file, although the other side has the
//! same bytes. So is the proportional resident memory held to the limit, which is what the machine
//! has less of.
//!
//! The pages of rings that endpoints have accessed are counted by `rings`.
mod common;
#[path = "memory/rings.rs"]
mod rings;

use ayre::endpoint::Address;
use ayre::endpoint::raw::{CompletionKind, OutgoingMessage, PostedReceive, RawEndpoint, Spans};
use ayre::{Config, EndpointOptions, Mode, NetOptions, Port, ReceiveError, Spin};
use common::system::{descriptors, memory_files};
use common::{Family, Line, with_processes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

const PEERS: u64 = 256;
const LIMIT: u64 = 16 << 10;

/// Counts what is allocated and not yet freed.
struct Counting;

static HEAP: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing else.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    /// As the trait says.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The resources of a process, in bytes.
#[derive(Clone, Copy, Debug)]
struct Usage {
    heap: u64,
    /// Mapped memory files that this process may write: those of connections.
    shared: u64,
    /// Pages of peers.
    pages: u64,
    rss: u64,
    pss: u64,
    descriptors: u64,
}

impl Usage {
    fn now() -> Self {
        let heap = HEAP.load(Ordering::Relaxed);
        let files = memory_files();
        let (own, theirs): (Vec<_>, Vec<_>) =
            files.iter().partition(|mapped| mapped.access.starts_with("rw"));
        let sum = |files: Vec<&common::system::Mapped>| files.iter().map(|f| f.len as u64).sum();
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let field = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            1024 * line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
        };
        let descriptors = descriptors().len() as u64;
        let (shared, pages) = (sum(own), sum(theirs));
        Self {
            heap,
            shared,
            pages,
            rss: field("Rss:"),
            pss: field("Pss_Anon:") + field("Pss_Shmem:"),
            descriptors,
        }
    }

    /// The growth since then, for each peer.
    fn per_peer_since(&self, before: &Self) -> Self {
        let per_peer = |now: u64, before: u64| now.saturating_sub(before).div_ceil(PEERS);
        Self {
            heap: per_peer(self.heap, before.heap),
            shared: per_peer(self.shared, before.shared),
            pages: per_peer(self.pages, before.pages),
            rss: per_peer(self.rss, before.rss),
            pss: per_peer(self.pss, before.pss),
            descriptors: per_peer(self.descriptors, before.descriptors),
        }
    }
}

/// Descriptors are what a port with many peers uses up first.
fn allow_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

fn mode() -> Mode {
    if std::env::var("MODE").unwrap() == "mediated" { Mode::Mediated } else { Mode::Direct }
}

fn path(number: u64) -> PathBuf {
    PathBuf::from(std::env::var("DIRECTORY").unwrap()).join(number.to_string())
}

/// The port that is measured. Half of the connections it accepts, the others it makes.
fn hub(line: &Line) {
    let mut port = Port::open(Config::new().mode(mode())).unwrap();
    port.listen(path(0)).unwrap();
    line.say(0);
    line.hear();
    let before = Usage::now();
    for number in 1..=PEERS {
        if number % 2 == 0 {
            port.accept().unwrap();
        } else {
            port.connect(path(number)).unwrap();
        }
    }
    port.progress();
    let after = Usage::now();
    let cost = after.per_peer_since(&before);
    eprintln!("{:?}, for each of {PEERS} peers: {cost:?}", mode());
    assert!(cost.heap + cost.shared <= LIMIT, "heap and connection file: {cost:?}");
    assert!(cost.pss <= LIMIT, "proportional resident memory: {cost:?}");
    assert_eq!(cost.descriptors, 2, "a control channel and a process: {cost:?}");
    line.say(0);
    line.hear();
    // spec: LIFE-17
    drop(port);
    assert!(memory_files().is_empty());
}

/// The peers, which say nothing.
fn crowd(line: &Line) {
    let open = |number| {
        let mut port = Port::open(Config::new().mode(mode()).number(number as u16)).unwrap();
        if number % 2 == 1 {
            port.listen(path(number)).unwrap();
        }
        port
    };
    let mut ports: Vec<_> = (1..=PEERS).map(open).collect();
    line.say(0);
    line.hear();
    for port in &mut ports {
        if port.rank() % 2 == 1 {
            port.accept().unwrap();
        } else {
            port.connect(path(0)).unwrap();
        }
    }
    line.say(0);
    line.hear();
}

fn measure(family: &Family, mode: &str) {
    let start = || {
        family.start_with(|command| {
            command.env("MODE", mode).env("DIRECTORY", family.directory().path());
        })
    };
    let [mut hub, mut crowd] = [start(), start()];
    // Both listen; then they connect; then the hub has measured, which needs the crowd to be there.
    for _ in 0..2 {
        hub.line.hear();
        crowd.line.hear();
        hub.line.say(0);
        crowd.line.say(0);
    }
    hub.succeeds();
    crowd.succeeds();
}

fn either(number: u64, line: &Line) {
    allow_descriptors();
    if number == 0 { hub(line) } else { crowd(line) }
}

// spec: LIM-2
#[test]
fn an_idle_direct_peer_costs_little() {
    with_processes(|number, line| either(number, &line), |family| measure(family, "direct"));
}

// spec: LIM-2
#[test]
fn an_idle_mediated_peer_costs_little() {
    with_processes(|number, line| either(number, &line), |family| measure(family, "mediated"));
}

/// Peers that come and go before the first count, and between that and the second one.
const GUESTS: [u64; 2] = [100, 1000];
/// Bytes of the heap that tables may have grown by.
const SLACK: u64 = 64 << 10;
/// Bytes by which an endpoint may have grown: it knows the last 1024 until it has to make room.
const REMOTES: u64 = 1 << 20;

/// Resources of a process that may belong to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    files: usize,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        Self { descriptors: descriptors().len(), files: memory_files().len(), threads }
    }
}

/// Has guests come and go; counts what is left of the first ones, and of all.
fn be_host<T>(
    line: &Line,
    (host, slack): (&mut T, u64),
    serve: impl Fn(&mut T),
    settle: impl Fn(&mut T),
) {
    let mut first = None;
    for count in GUESTS {
        (0..count).for_each(|_| serve(host));
        settle(host);
        let now = (Held::now(), HEAP.load(Ordering::Relaxed));
        let (held, heap) = *first.get_or_insert(now);
        assert_eq!(now.0, held, "of {count} guests that have gone");
        let more = now.1.saturating_sub(heap);
        eprintln!("{held:?}; {more} bytes more after {count} guests");
        assert!(more <= slack, "{more} bytes of {count} guests that have gone");
        line.say(0);
    }
}

/// Comes and goes, and waits until the host has counted.
fn be_guests(line: &Line, mut come_and_go: impl FnMut()) {
    for count in GUESTS {
        (0..count).for_each(|_| come_and_go());
        line.hear();
    }
}

fn open_port(number: u16) -> Port {
    Port::open(Config::new().number(number).mode(mode()).spin(Spin::SHARED)).unwrap()
}

fn open_endpoint() -> RawEndpoint {
    RawEndpoint::open_with(&EndpointOptions::new().spin(Spin::SHARED).local()).unwrap()
}

fn is_link() -> bool {
    std::env::var("WAY").unwrap() == "link"
}

fn net() -> NetOptions {
    NetOptions::plain().at("127.0.0.1:0".parse().unwrap())
}

fn host_of_ports(line: &Line) {
    let mut port = open_port(0);
    port.listen(path(0)).unwrap();
    line.say(if is_link() { port.open_net(&net()).unwrap()[0].port().into() } else { 0 });
    let serve = |port: &mut Port| {
        let peer = port.accept().unwrap();
        assert_eq!(port.recv(&mut [0; 8], None), Err(ReceiveError::PeerDied(peer)));
        port.disconnect(peer).unwrap();
    };
    be_host(line, (&mut port, SLACK), serve, |_| ());
}

fn be_ports(line: &Line) {
    let at = ([127, 0, 0, 1], line.hear() as u16).into();
    be_guests(line, || {
        let mut port = open_port(1);
        if is_link() {
            port.open_net(&net()).unwrap();
            port.connect_net(&[at]).unwrap();
        } else {
            port.connect(path(0)).unwrap();
        }
        port.leave().unwrap();
    });
}

fn host_of_endpoints(line: &Line) {
    let mut endpoint = open_endpoint();
    let address = endpoint.address().to_bytes();
    address.as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
    let alone = descriptors().len();
    let serve = |endpoint: &mut RawEndpoint| {
        let into = Spans::default();
        let any = PostedReceive { source: None, tag: None, into, context: 0, many: None };
        endpoint.receive(any).unwrap();
        let mut is_taken = false;
        while !is_taken {
            endpoint.wait(None, |end| {
                is_taken |= end.what != CompletionKind::Sent && end.result.is_ok()
            });
        }
    };
    // It hears of the last one's death by and by.
    be_host(line, (&mut endpoint, REMOTES), serve, |endpoint| {
        while descriptors().len() > alone {
            endpoint.wait(None, |_| ());
        }
    });
}

fn be_endpoints(line: &Line) {
    let mut address = [0; 64];
    address.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
    let address = Address::from_bytes(&address).unwrap();
    be_guests(line, || {
        let mut endpoint = open_endpoint();
        let to = endpoint.remote(&address).unwrap();
        let bytes = Spans::default();
        let message = OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: true };
        while endpoint.send(to, &message).is_err() {
            endpoint.wait(None, |_| ());
        }
        let mut is_sent = false;
        while !is_sent {
            endpoint.wait(None, |end| is_sent |= end.what == CompletionKind::Sent);
        }
    });
}

/// A host and its guests; the host first sends `words` words.
fn come_and_go(family: &Family, way: &str, words: usize) {
    let start = || {
        family.start_with(|command| {
            command.env("WAY", way).env("MODE", "direct");
            command.env("DIRECTORY", family.directory().path());
        })
    };
    let [mut host, mut guests] = [start(), start()];
    (0..words).for_each(|_| guests.line.say(host.line.hear()));
    for _ in GUESTS {
        host.line.hear();
        guests.line.say(0);
    }
    guests.succeeds();
    host.succeeds();
}

// spec: LIFE-17, LIM-1
#[test]
fn a_thousand_departed_ports_leave_no_memory_at_their_peer() {
    with_processes(
        |number, line| if number == 0 { host_of_ports(&line) } else { be_ports(&line) },
        |family| come_and_go(family, "port", 1),
    );
}

// spec: LIFE-17, LIM-1
#[test]
fn a_thousand_departed_links_leave_no_memory_at_their_peer() {
    with_processes(
        |number, line| if number == 0 { host_of_ports(&line) } else { be_ports(&line) },
        |family| come_and_go(family, "link", 1),
    );
}

// spec: LIFE-17, LIM-1
#[test]
fn a_thousand_departed_endpoints_leave_no_memory_at_their_peer() {
    with_processes(
        |number, line| if number == 0 { host_of_endpoints(&line) } else { be_endpoints(&line) },
        |family| come_and_go(family, "endpoint", 8),
    );
}
