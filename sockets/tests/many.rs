//! Many connections between two processes: by rings, within the bounds of memory and descriptors,
//! and with nothing left of those that were closed.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;
// Rows need more of it than these tests do.
#[allow(dead_code)]
#[path = "calls/end.rs"]
mod end;

use ayre::socket::{SeenEnd, SeenProcess};
use common::byte_at;
use common::call::{self, Family, UNIX};
use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use end::{End, FOLDER};
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Seconds after which a test hangs.
const DEADLINE: u64 = 300;

/// The variables that name the test of a process, and its number of connections.
const ACT: &str = "AYRE_SOCKETS_TEST_ROW";
const COUNT: &str = "AYRE_SOCKETS_TEST_COUNT";

/// Words of the shared memory.
const PORT: usize = 10;
const SERVER: usize = 11;
const NEXT: usize = 12;
const IN_BULK: usize = 13;

/// Connections that are made before both processes meet.
const AT_ONCE: usize = 50;

/// Descriptors of a process that are no connections, at most.
const OTHERS: usize = 100;

/// The descriptors of a process that may have few, and those of its peer's bells at most.
const FEW: usize = 256;
const FEW_BELLS: usize = FEW / 4;

/// Bells that a process passes on as it takes a pair.
const FIRST_BELLS: usize = 2;

/// Requests and answers of a connection at once, and the bytes of each.
const ROUNDS: usize = 6;
const SHORT: usize = 64;

/// Those that send many bytes, and their number each way.
const BULK_CONNECTIONS: usize = 1000;
const BULK: usize = 200 << 10;

const KIB: u64 = 1024;

/// The bounds of docs/sockets.md.
const NEW: u64 = 4 * KIB;
const IDLE: u64 = 64 * KIB;
/// Large rings that the two processes write, beyond the bytes of small ones.
const LARGE: u64 = 2 * 64 * (256 - 28) * KIB;
/// Memory of a closed connection that stays for the next one.
const CLOSED: u64 = KIB;
/// The first slots keep small rings.
const WARM: u64 = 64 * 2 * 28 * KIB;
/// Ends whose processes were killed, and that nobody has looked at yet.
const LEFT: usize = 4;
/// Headers, ports, bells.
const FIXED: u64 = 512 * KIB;

before_main! {
    let Ok(role) = std::env::var(ROLE) else { return };
    let count = std::env::var(COUNT).expect("the number is named");
    let count = count.parse().expect("it is a number");
    let act = std::env::var(ACT);
    match act.as_deref() {
        // Of a peer's bells, a process keeps as many as a quarter of this.
        Ok("by children in turn") => set_limit_of_descriptors(FEW),
        // A connection, and a bell of the child that serves it.
        _ => _ = limit_of_descriptors(Some(4 * count + OTHERS)),
    }
    let mut end = End::new(role == "server");
    let port = meet_at(&end);
    match act.as_deref() {
        Ok("at a time") => at_a_time(&mut end, port, count),
        Ok("by processes in turn") => by_processes_in_turn(&mut end, port, count),
        Ok("by ports in turn") => by_ports_in_turn(&mut end, port, count),
        Ok("by children in turn") => by_children(&mut end, port, (count, 1)),
        Ok("by children at a time") => by_children(&mut end, port, (count, count)),
        Ok("by killed children in turn") => by_killed_children_in_turn(&mut end, port, count),
        _ => in_turn(&mut end, port, count),
    }
    end.finish();
}

/// The listening socket of the server, or its port for the client.
fn meet_at(end: &End) -> c_int {
    if end.server {
        let (listener, port) = call::listener(call::family(), 0).expect("a listener");
        call!(listen(listener, 4096)).expect("it listens");
        end.shared.set(SERVER, u64::from(std::process::id()));
        end.shared.set(PORT, u64::from(port));
        return listener;
    }
    assert!(end.shared.wait(|shared| shared.get(PORT) != 0), "the server listens");
    end.shared.get(PORT) as c_int
}

/// How many descriptors a process may have. Raises that first, as far as the system allows.
fn limit_of_descriptors(wanted: Option<usize>) -> usize {
    let mut limit = zeroed!(libc::rlimit);
    call!(getrlimit(libc::RLIMIT_NOFILE, &mut limit)).expect("there is a limit");
    if let Some(wanted) = wanted {
        limit.rlim_cur = limit.rlim_cur.max((wanted as u64).min(limit.rlim_max));
        call!(setrlimit(libc::RLIMIT_NOFILE, &limit)).expect("it is allowed");
    }
    limit.rlim_max as usize
}

fn set_limit_of_descriptors(limit: usize) {
    let mut limits = zeroed!(libc::rlimit);
    call!(getrlimit(libc::RLIMIT_NOFILE, &mut limits)).expect("there is a limit");
    limits.rlim_cur = limit as u64;
    call!(setrlimit(libc::RLIMIT_NOFILE, &limits)).expect("it is allowed");
}

/// The next connection at either end.
fn connection(end: &End, at: c_int) -> c_int {
    if end.server {
        let none = std::ptr::null_mut();
        return call!(accept(at, none, std::ptr::null_mut())).expect("a connection") as c_int;
    }
    let fd = call::socket(call::family(), 0).expect("a socket");
    call::connect_to(fd, at as u16).expect("it connects");
    fd
}

fn connections(end: &End, at: c_int, count: usize) -> Vec<c_int> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let more = AT_ONCE.min(count - all.len());
        all.extend((0..more).map(|_| connection(end, at)));
        end.meet();
    }
    all
}

fn read_exactly(fd: c_int, bytes: &mut [u8]) {
    let mut done = 0;
    while done < bytes.len() {
        match call::read(fd, &mut bytes[done..]) {
            Ok(count @ 1..) => done += count,
            told => panic!("{done} bytes of {} came, then {told:?}", bytes.len()),
        }
    }
}

/// Requests of the client and answers of the server, whose bytes are checked.
fn talk(end: &End, fd: c_int, (rounds, length): (usize, usize)) {
    let of = |side: usize| (0..length as u64).map(move |i| byte_at(side as u32, i)).collect();
    let sent: [Vec<u8>; 2] = [of(0), of(1)];
    let mut came = vec![0; length];
    for turn in 0..2 * rounds {
        let is_mine = (turn % 2 == 1) == end.server;
        if is_mine {
            assert_eq!(call::write(fd, &sent[turn % 2]), Ok(length), "a blocking write");
        } else {
            read_exactly(fd, &mut came);
            assert!(came == sent[turn % 2], "the bytes are those that were sent");
        }
    }
}

fn inode(fd: c_int) -> u64 {
    let mut stat = zeroed!(libc::stat);
    call!(fstat(fd, &mut stat)).expect("it is open");
    stat.st_ino
}

/// Those of the client's connections of which this does not hold.
fn without(all: &[c_int], holds: impl Fn(&SeenEnd) -> bool) -> Vec<usize> {
    let seen = SeenProcess::look(std::process::id()).expect("the process has the library");
    let found: HashSet<u64> =
        seen.ends.iter().filter(|end| holds(end)).map(|end| end.socket).collect();
    (0..all.len()).filter(|i| !found.contains(&inode(all[*i]))).collect()
}

/// Those of the client's connections whose bytes have not gone by rings both ways yet.
fn without_rings(all: &[c_int]) -> Vec<usize> {
    without(all, |end| end.outward.counts.ring > 0 && end.inward.counts.ring > 0)
}

/// The client has the server talk by a connection.
fn talk_next(end: &End, all: &[c_int], i: usize, length: usize) {
    end.shared.set(IN_BULK, length as u64);
    end.shared.set(NEXT, i as u64 + 1);
    talk(end, all[i], (ROUNDS, length));
    assert!(end.shared.wait(|shared| shared.get(NEXT) == 0), "the server has talked, too");
}

/// Serves as the client asks, until it asks for what is not there.
fn serve(end: &End, all: &[c_int]) {
    loop {
        assert!(end.shared.wait(|shared| shared.get(NEXT) != 0), "the client asks");
        let Some(fd) = all.get(end.shared.get(NEXT) as usize - 1) else { break };
        let length = end.shared.get(IN_BULK) as usize;
        talk(end, *fd, (ROUNDS, length));
        end.shared.set(NEXT, 0);
    }
    end.shared.set(NEXT, 0);
}

/// Held by two processes: bytes in the files of pairs and families, descriptors, and bytes that
/// are each one's own.
#[derive(Clone, Copy, Debug)]
struct Held {
    files: u64,
    descriptors: usize,
    private: u64,
}

fn held(end: &End) -> Held {
    let processes = [u64::from(std::process::id()), end.shared.get(SERVER)];
    let (mut files, mut descriptors) = (HashMap::new(), 0);
    for process in processes {
        let folder = fs::read_dir(format!("/proc/{process}/fd")).expect("it may be looked at");
        for entry in folder.flatten() {
            descriptors += 1;
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if target.to_string_lossy().starts_with("/memfd:") {
                let of = fs::metadata(entry.path()).expect("it is open");
                files.insert(of.ino(), of.blocks() * 512);
            }
        }
    }
    let private = processes.map(|process| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.expect("the system tells") * KIB
    });
    Held { files: files.values().sum(), descriptors, private: private.iter().sum() }
}

/// Many connections at a time.
fn at_a_time(end: &mut End, at: c_int, count: usize) {
    // The first connection makes the pair.
    let first = connections(end, at, 1);
    let before = if end.server { None } else { Some(held(end)) };
    end.meet();
    let all = connections(end, at, count);
    let bulk = &all[..count.min(BULK_CONNECTIONS)];
    if end.server {
        end.meet();
        serve(end, &all);
        all.iter().chain(&first).for_each(|fd| _ = call::close(*fd).expect("it closes"));
        end.meet();
        return end.meet();
    }
    let before = before.expect("the client has looked");
    let new = held(end);
    end.meet();
    (0..count).for_each(|i| talk_next(end, &all, i, SHORT));
    let mut left = without_rings(&all);
    for _ in 0..20 {
        left.iter().for_each(|i| talk_next(end, &all, *i, SHORT));
        left = without_rings(&all);
    }
    end.say("not by rings", left.len());
    let used = held(end);
    (0..bulk.len()).for_each(|i| talk_next(end, &all, i, BULK));
    let idle = held(end);
    end.shared.set(NEXT, u64::MAX);
    all.iter().chain(&first).for_each(|fd| _ = call::close(*fd).expect("it closes"));
    end.meet();
    let closed = held(end);
    end.meet();

    let n = count as u64;
    end.say("bytes of a new connection", (new.files - before.files) / n);
    end.say("bytes of a used connection", (used.files - before.files) / n);
    end.say("bytes of an idle connection", (idle.files - before.files) / n);
    end.say("bytes of a closed connection", closed.files.saturating_sub(before.files) / n);
    end.say("descriptors", [before, new, idle, closed].map(|held| held.descriptors));
    assert!(new.files <= FIXED + NEW * n, "{new:?} with {n} new connections");
    assert!(used.files <= FIXED + 3 * NEW * n, "{used:?} behind short messages");
    let many = FIXED + 3 * NEW * n + LARGE + IDLE * bulk.len() as u64;
    assert!(idle.files <= many, "{idle:?} behind many bytes, and not {many}");
    assert!(closed.files <= FIXED + CLOSED * n + WARM, "{closed:?} when all are closed");
    // Bells stay with their threads, and both have closed the first connection, too. The client
    // takes the first bells of its peer at a later look.
    let before = before.descriptors + FIRST_BELLS;
    assert!(new.descriptors <= before + 2 * count, "{before} {new:?}");
    assert!(closed.descriptors <= before, "{before} {closed:?}");
}

/// One connection after the other, some of them at a time.
fn in_turn(end: &mut End, at: c_int, count: usize) {
    let mut before = None;
    for turn in 0..count / AT_ONCE {
        let all = connections(end, at, AT_ONCE);
        all.iter().for_each(|fd| talk(end, *fd, (ROUNDS, SHORT)));
        talk(end, all[0], (1, BULK));
        if end.server {
            // The client closes first.
            all.iter().for_each(|fd| assert_eq!(call::read(*fd, &mut [0]), Ok(0)));
        }
        all.iter().for_each(|fd| _ = call::close(*fd).expect("it closes"));
        end.meet();
        if turn == 9 && !end.server {
            before = Some(held(end));
        }
        if turn == 9 {
            end.meet();
        }
    }
    if end.server {
        return end.meet();
    }
    let (before, after) = (before.expect("there were turns"), held(end));
    end.meet();
    end.say("before", before);
    end.say("after", after);
    assert_eq!(after.descriptors, before.descriptors);
    // More ports are known.
    assert!(after.files <= before.files + FIXED, "{before:?} {after:?}");
    // If something of each connection stayed, it would be more than this.
    assert!(after.private <= before.private + 512 * KIB + 8 * count as u64, "{before:?} {after:?}");
}

/// One process after the other connects to a server that waits by epoll.
fn by_processes_in_turn(end: &mut End, at: c_int, count: usize) {
    if !end.server {
        (0..count).for_each(|_| connect_by_a_child(end, at));
        return end.meet();
    }
    let own = || fs::read_dir("/proc/self/fd").expect("it may be looked at").count();
    let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    let mut early = 0;
    for turn in 0..count {
        let fd = connection(end, at);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)).expect("it is added");
        let mut byte = [0];
        loop {
            call!(epoll_wait(epoll, &mut event, 1, -1)).expect("an event");
            if call::read(fd, &mut byte).expect("bytes, or the end") == 0 {
                break;
            }
            assert_eq!(call::write(fd, &byte), Ok(1));
        }
        call::close(fd).expect("it closes");
        if turn == count / 10 {
            early = own();
        }
    }
    let last = own();
    end.say("descriptors", [early, last]);
    assert!(last < early + count / 2, "those of processes that have gone stay: {early}, {last}");
    end.meet();
}

/// A child of this process connects, talks and ends.
fn connect_by_a_child(end: &End, at: c_int) {
    let child = call::fork().expect("a child");
    if child == 0 {
        let fd = connection(end, at);
        let mut byte = [7];
        for _ in 0..ROUNDS {
            assert_eq!(call::write(fd, &byte), Ok(1));
            read_exactly(fd, &mut byte);
        }
        call::exit_now(0);
    }
    assert_eq!(call::wait_for(child), Ok(0), "it ends well");
}

/// Each connection has a listening socket of its own, as the data of FTP has.
fn by_ports_in_turn(end: &mut End, _: c_int, count: usize) {
    let own = || fs::read_dir("/proc/self/fd").expect("it may be looked at").count();
    let mut early = 0;
    for turn in 0..count {
        // The next port is another one than the last.
        end.meet();
        if end.server {
            end.shared.set(PORT, 0);
        }
        end.meet();
        let at = meet_at(end);
        let fd = connection(end, at);
        talk(end, fd, (ROUNDS, SHORT));
        call::close(fd).expect("it closes");
        if end.server {
            call::close(at).expect("it closes");
        }
        if turn == count / 4 {
            early = own();
        }
    }
    let last = own();
    end.say("descriptors", [early, last]);
    assert!(last < early + count / 2, "those of ports that were closed stay: {early}, {last}");
    end.meet();
}

/// Each connection is served by a child of the server, of which this number live at a time.
fn by_children(end: &mut End, at: c_int, (count, at_once): (usize, usize)) {
    let mut by_kernel = 0;
    for _ in 0..count / at_once {
        if end.server {
            let children: Vec<c_int> = (0..at_once).map(|_| serve_by_a_child(end, at)).collect();
            children.iter().for_each(|child| assert_eq!(call::wait_for(*child), Ok(0)));
            continue;
        }
        let all: Vec<c_int> = (0..at_once).map(|_| connection(end, at)).collect();
        let mut left: Vec<usize> = (0..all.len()).collect();
        for _ in 0..20 {
            left.iter().for_each(|i| talk(end, all[*i], (ROUNDS, SHORT)));
            // The child has a bell. The client may find its bytes without ever waiting.
            left = without(&all, |end| end.outward.is_ring);
        }
        by_kernel += left.len();
        all.iter().for_each(|fd| _ = call::close(*fd).expect("it closes"));
    }
    if !end.server {
        end.say("not by rings", by_kernel);
    }
    end.meet();
}

/// A child of the server that answers until its connection ends.
fn serve_by_a_child(end: &End, at: c_int) -> c_int {
    let fd = connection(end, at);
    let child = call::fork().expect("a child");
    if child == 0 {
        let answer: Vec<u8> = (0..SHORT as u64).map(|i| byte_at(1, i)).collect();
        let mut came = [0; SHORT];
        while call::recv(fd, &mut came, libc::MSG_WAITALL) == Ok(SHORT) {
            assert_eq!(call::write(fd, &answer), Ok(SHORT));
        }
        call::exit_now(0);
    }
    call::close(fd).expect("it closes");
    child
}

/// Ends of this process and its children that have a place still.
fn ends() -> usize {
    SeenProcess::look(std::process::id()).expect("the process has the library").ends.len()
}

/// Each connection is served by a child of the server, which is killed.
fn by_killed_children_in_turn(end: &mut End, at: c_int, count: usize) {
    let mut early = None;
    for turn in 0..count {
        let fd = connection(end, at);
        if end.server {
            serve_by_a_killed_child(fd);
        } else {
            talk(end, fd, (ROUNDS, SHORT));
            // There is nothing that it has not read.
            assert_eq!(call::read(fd, &mut [0]), Ok(0), "the end");
            call::close(fd).expect("it closes");
        }
        if turn == count / 10 {
            end.meet();
            early = if end.server { None } else { Some(held(end)) };
            end.meet();
        }
    }
    end.meet();
    if end.server {
        end.say("ends", ends());
        assert!(ends() <= LEFT, "{} of {count} have their places still", ends());
        return end.meet();
    }
    let (early, last) = (early.expect("there were turns"), held(end));
    end.say("early", early);
    end.say("last", last);
    assert!(last.files <= early.files + FIXED, "{early:?} {last:?}");
    end.meet();
}

fn serve_by_a_killed_child(fd: c_int) {
    let child = call::fork().expect("a child");
    if child == 0 {
        for _ in 0..ROUNDS {
            let mut came = [0; SHORT];
            read_exactly(fd, &mut came);
            let answer: Vec<u8> = (0..SHORT as u64).map(|i| byte_at(1, i)).collect();
            assert_eq!(call::write(fd, &answer), Ok(SHORT));
        }
        call!(kill(libc::getpid(), libc::SIGKILL)).expect("it may");
    }
    call::close(fd).expect("it closes");
    assert_eq!(call::wait_for(child), Ok(128 + libc::SIGKILL));
}

/// The text of both ends, and the library's report.
fn outcome(family: Family, act: &str, count: usize) -> (String, String) {
    let folder = Folder::new();
    let mut crew = Crew::new();
    for role in ["server", "client"] {
        let mut command = Crew::command(&folder, role, Net::Library);
        let command = command.env(FOLDER, &folder.path).env(ACT, act);
        if family == Family::Unix {
            command.env(UNIX, "1");
        }
        if act.starts_with("by children") {
            // Without a bell, a child reads by the ring where it happens to look.
            command.env("AYRE_SOCKETS_SPIN", "0");
        }
        crew.start(command.env(COUNT, count.to_string()));
    }
    assert_eq!(crew.wait(DEADLINE), Ending::Well, "{}", folder.text("errors"));
    let text = folder.text("server") + &folder.text("client");
    let report = folder.text("report");
    println!("{count} connections {act}:\n{text}{report}");
    (text, report)
}

fn run(family: Family, act: &str, count: usize) {
    if library().is_none() {
        return;
    }
    let (text, report) = outcome(family, act, count);
    assert!(act != "at a time" || text.contains("not by rings: 0\n"), "{text}");
    // Of those in turn, some end before their reader ever waits.
    let by_rings = |line: &str| line.split_once(" rings=")?.1.split(' ').next()?.parse().ok();
    let by_rings: Vec<usize> = report.lines().filter_map(by_rings).collect();
    assert_eq!(by_rings.len(), 2, "{report}");
    assert!(by_rings.iter().all(|rings| 10 * rings >= 9 * count), "{report}");
}

// spec: SOCK-29, SOCK-40
#[test]
fn ten_thousand_connections_at_a_time_keep_to_the_bounds() {
    let most = limit_of_descriptors(None) - OTHERS;
    if most < 10_000 {
        println!("this system allows a process only {most} connections");
    }
    run(Family::Tcp, "at a time", most.min(10_000));
}

// spec: SOCK-40
#[test]
fn of_ten_thousand_connections_that_were_closed_nothing_stays() {
    run(Family::Tcp, "in turn", 10_000);
}

// spec: SOCK-40
#[test]
fn of_ten_thousand_connections_of_unix_sockets_that_were_closed_nothing_stays() {
    run(Family::Unix, "in turn", 10_000);
}

// spec: SOCK-40
#[test]
#[ignore = "takes half a minute"]
fn of_a_hundred_thousand_connections_that_were_closed_nothing_stays() {
    run(Family::Tcp, "in turn", 100_000);
}

// spec: SOCK-40
#[test]
fn of_processes_that_have_gone_no_descriptors_stay() {
    if library().is_none() {
        return;
    }
    const PROCESSES: usize = 200;
    let (_, report) = outcome(Family::Tcp, "by processes in turn", PROCESSES);
    let with_rings = report.lines().filter(|line| line.contains(" connections=1 rings=1 ")).count();
    assert!(with_rings > PROCESSES / 2, "{report}");
}

// spec: SOCK-45
#[test]
fn of_connections_whose_processes_were_killed_nothing_stays() {
    if library().is_none() {
        return;
    }
    const CONNECTIONS: usize = 200;
    let (_, report) = outcome(Family::Tcp, "by killed children in turn", CONNECTIONS);
    let by_rings = |line: &str| line.split_once(" rings=")?.1.split(' ').next()?.parse().ok();
    let most: usize = report.lines().filter_map(by_rings).max().unwrap_or(0);
    assert!(most > CONNECTIONS / 2, "{report}");
}

/// The number of connections of the client that have not gone by rings.
fn by_kernel(act: &str, count: usize) -> Option<usize> {
    library()?;
    let (text, _) = outcome(Family::Tcp, act, count);
    let left = text.lines().find_map(|line| line.strip_prefix("not by rings: ")?.parse().ok());
    Some(left.expect("the client has looked"))
}

// spec: SOCK-53
#[test]
fn children_that_serve_a_connection_each_in_turn_all_have_a_bell() {
    assert_eq!(by_kernel("by children in turn", 3 * FEW_BELLS).unwrap_or(0), 0);
}

// spec: SOCK-53
#[test]
#[ignore = "takes most of a minute"]
fn ten_thousand_children_in_turn_all_have_a_bell() {
    assert_eq!(by_kernel("by children in turn", 10_000).unwrap_or(0), 0);
}

// spec: SOCK-29, SOCK-53
#[test]
fn three_hundred_children_that_serve_at_a_time_all_have_a_bell() {
    assert_eq!(by_kernel("by children at a time", 300).unwrap_or(0), 0);
}

#[test]
fn of_ports_that_were_closed_no_descriptors_stay() {
    if library().is_none() {
        return;
    }
    const PORTS: usize = 300;
    for family in [Family::Tcp, Family::Unix] {
        let (_, report) = outcome(family, "by ports in turn", PORTS);
        let by_rings = |line: &str| line.split_once(" rings=")?.1.split(' ').next()?.parse().ok();
        let rings: Vec<usize> = report.lines().filter_map(by_rings).collect();
        assert!(rings.iter().all(|rings| 10 * rings >= 9 * PORTS), "{family:?}: {report}");
    }
}
