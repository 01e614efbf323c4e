//! Automatic progress: data move while the program does not call. Peers' access to its memory goes
//! on then even where the program has not asked for that.

mod common;

#[allow(dead_code, reason = "the engine's tests use more")]
#[allow(unreachable_pub, reason = "a test binary exports nothing")]
#[path = "common/processes.rs"]
mod processes;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use processes::container::{Container, may_make};
use processes::{Line, Process, with_processes};
use std::ffi::c_void;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::{env, fs, thread};

/// Milliseconds after which a sleeper that nobody has woken fails its test.
const PATIENCE: i32 = 60_000;

/// Longer than what goes without being asked for.
const LONG: usize = 1 << 20;

fn automatic() -> Wishes {
    Wishes { data_progress: PROGRESS_AUTO, ..Wishes::default() }
}

/// An end whose program calls, and one that is left to its thread; each has the other as number 0.
fn strangers(near: &Opened, far: &Opened, far_wishes: &Wishes) -> [End; 2] {
    let ends = [End::new(near, &Wishes::default()), End::new(far, far_wishes)];
    let names = ends.each_ref().map(|end| name(end.ep));
    ends[0].insert(&[names[1]]);
    ends[1].insert(&[names[0]]);
    ends
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
}

fn recv(end: &End, into: &mut [u8], context: usize) {
    let (start, at) = (into.as_mut_ptr().cast(), context as *mut c_void);
    let posted = call!(end.ep, msg.recv(start, into.len(), null_mut(), ADDR_UNSPEC, at));
    assert_eq!(posted, 0);
}

fn piece(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Sends so that the message has ended only when it is where it belongs.
fn send_delivered(end: &End, bytes: &[u8], all: &[End]) {
    let iov = piece(bytes);
    let message = Msg { msg_iov: (&raw const iov).cast(), iov_count: 1, addr: 0, ..blank() };
    let send = || call!(end.ep, msg.sendmsg(&message, DELIVERY_COMPLETE | COMPLETION));
    assert_eq!(until_taken(all, send), 0);
}

/// Threads of ours in this process, by their folders.
fn mover_folders() -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let name = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap_or_default();
    tasks.filter(move |task| name(task) == "ayre-mover\n")
}

fn movers() -> usize {
    mover_folders().count()
}

/// Returns when the system has forgotten the threads that have ended with their domain: it shows
/// them a moment longer than their ends are waited for.
fn until_movers_have_gone() {
    while movers() != 0 {
        thread::yield_now();
    }
}

/// How often our thread of this process, of which there is one, has gone to sleep.
fn sleeps() -> u64 {
    let status = fs::read_to_string(mover_folders().next().unwrap().join("status")).unwrap();
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
        .unwrap()
}

#[test]
fn a_message_arrives_while_the_receiver_sleeps_elsewhere() {
    let (manual, auto) = (Wishes::default().opened(), automatic().opened());
    let [near, far] = strangers(&manual, &auto, &automatic());
    let (bytes, mut room) = (pattern(LONG, 3), vec![0; LONG]);
    recv(&far, &mut room, 5);
    let (mut bell, mut sleeper) = UnixStream::pair().unwrap();
    let program = thread::spawn(move || sleeper.read_exact(&mut [0]).is_ok());
    let near = [near];
    send_delivered(&near[0], &bytes, &near);
    assert_eq!(next(&near[0], &near).0.flags & SEND, SEND);
    bell.write_all(&[1]).unwrap();
    assert!(program.join().unwrap());
    assert!(room == bytes, "it has arrived");
    let (told, _) = next(&far, &near);
    assert_eq!((told.op_context as usize, told.len), (5, LONG));
    let [near] = near;
    near.close();
    far.close();
}

#[test]
fn a_message_leaves_while_the_sender_sleeps_elsewhere() {
    let (manual, auto) = (Wishes::default().opened(), automatic().opened());
    let [near, far] = strangers(&manual, &auto, &automatic());
    let near = [near];
    for round in 0..40 {
        let (bytes, mut room) = (pattern(LONG << 2, round), vec![0; LONG << 2]);
        // What lies in pieces nobody reads where it lies.
        let pieces: Vec<_> = bytes.chunks(bytes.len() / (1 + round % 2)).map(piece).collect();
        let (iov, count) = (pieces.as_ptr().cast(), pieces.len());
        let send = || call!(far.ep, msg.sendv(iov, null_mut(), count, 0, null_mut()));
        assert_eq!(until_taken(&near, send), 0);
        recv(&near[0], &mut room, round);
        let (told, _) = next(&near[0], &[]);
        assert_eq!((told.op_context as usize, told.len), (round, bytes.len()));
        assert!(room == bytes, "round {round}");
    }
    // None of them was read, which would have made progress.
    for _ in 0..40 {
        assert_eq!(next(&far, &near).0.flags & SEND, SEND);
    }
    let [near] = near;
    near.close();
    far.close();
}

#[test]
fn a_receive_that_is_posted_late_is_filled_while_its_program_sleeps_elsewhere() {
    let (manual, auto) = (Wishes::default().opened(), automatic().opened());
    let [near, far] = strangers(&manual, &auto, &automatic());
    let near = [near];
    for round in 0..60 {
        let (bytes, mut room) = (pattern(LONG, round), vec![0; LONG]);
        let iov = piece(&bytes);
        let message = MsgTagged { msg_iov: (&raw const iov).cast(), iov_count: 1, ..blank() };
        let send = || call!(near[0].ep, tagged.sendmsg(&message, DELIVERY_COMPLETE | COMPLETION));
        assert_eq!(until_taken(&near, send), 0);
        // What is sent later and has arrived says that the long one waits there.
        recv(&far, &mut [0], round);
        send_delivered(&near[0], &[1], &near);
        assert_eq!(next(&near[0], &near).0.flags & TAGGED, 0);
        let (start, none) = (room.as_mut_ptr().cast(), null_mut());
        assert_eq!(call!(far.ep, tagged.recv(start, LONG, none, ADDR_UNSPEC, 0, 0, null_mut())), 0);
        assert_eq!(next(&near[0], &near).0.flags & TAGGED, TAGGED);
        assert!(room == bytes, "round {round}");
    }
    let [near] = near;
    near.close();
    far.close();
}

#[test]
fn an_endpoint_that_is_not_polled_is_served_beside_a_polled_one() {
    let (manual, auto) = (Wishes::default().opened(), automatic().opened());
    let [near, far] = strangers(&manual, &auto, &automatic());
    let polled = [near, End::new(&auto, &automatic())];
    for round in 0..200 {
        let len = [8, 700, 9000, 100_000, LONG][round % 5];
        let (bytes, mut room) = (pattern(len, round), vec![0; len]);
        recv(&far, &mut room, round);
        send_delivered(&polled[0], &bytes, &polled);
        next(&polled[0], &polled);
        let (told, _) = next(&far, &[]);
        assert_eq!((told.op_context as usize, told.len), (round, len));
        assert!(room == bytes, "round {round}");
    }
    polled.into_iter().for_each(End::close);
    far.close();
}

#[test]
fn blocked_readers_are_woken_and_polling_readers_are_served() {
    let (manual, auto) = (Wishes::default().opened(), automatic().opened());
    let wishes = Wishes { wait_obj: WAIT_FD, ..automatic() };
    let [near, far] = strangers(&manual, &auto, &wishes);
    let near = [near];
    for round in 0..200 {
        let len = [8, 700, 9000, 100_000][round % 4];
        let (bytes, mut room) = (pattern(len, round), vec![0; len]);
        recv(&far, &mut room, round);
        send_delivered(&near[0], &bytes, &near);
        let told = if round % 3 == 0 {
            next(&far, &near).0
        } else {
            next(&near[0], &near);
            let mut told: Told = blank();
            let place = (&raw mut told).cast();
            assert_eq!(call!(far.cq, ops.sread(place, 1, null(), PATIENCE)), 1);
            told
        };
        assert_eq!((told.op_context as usize, told.len), (round, len));
        assert!(room == bytes, "round {round}");
        if round % 3 == 0 {
            next(&near[0], &near);
        }
    }
    let [near] = near;
    near.close();
    far.close();
}

/// Set for a program that ends without closing anything.
const LEAVES: &str = "AYRE_TEST_LEAVES";

#[test]
fn threads_are_there_on_request_and_end_with_their_domain() {
    if env::var_os(LEAVES).is_some() {
        return;
    }
    // Other tests have theirs: so this one counts in a process of its own.
    let child = |what: &str| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "a_program_of_its_own"]).env(LEAVES, what);
        command.output().unwrap()
    };
    for (what, code) in [("closes", 3), ("exits", 4)] {
        let output = child(what);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

/// There is a thread from when there are both an endpoint and memory that peers may work on.
fn offers_memory() {
    let (wishes, memory) = (Wishes::remote(), [0; 8]);
    for memory_comes_first in [false, true] {
        let opened = wishes.opened();
        let register = || register(&opened, &memory, REMOTE_READ, 1).unwrap();
        let (end, mr) = if memory_comes_first {
            let mr = register();
            assert_eq!(movers(), 0);
            (End::new(&opened, &wishes), mr)
        } else {
            let end = End::new(&opened, &wishes);
            assert_eq!(movers(), 0);
            (end, register())
        };
        while movers() == 0 {
            thread::yield_now();
        }
        assert_eq!(close(mr), 0);
        end.close();
        drop(opened);
        until_movers_have_gone();
    }
}

#[test]
fn a_program_of_its_own() {
    let Some(what) = env::var_os(LEAVES) else { return };
    let manual = Wishes::default().opened();
    let end = End::new(&manual, &Wishes::default());
    let memory = [0; 8];
    let own = register(&manual, &memory, SEND | RECV, 1).unwrap();
    assert_eq!((close(own), movers()), (0, 0));
    end.close();
    offers_memory();
    let auto = automatic().opened();
    let ends = End::pair(&auto, &automatic());
    // It is there before it has said what it is called.
    while movers() == 0 {
        thread::yield_now();
    }
    assert_eq!(movers(), 1, "one for a domain");
    if what == "closes" {
        ends.into_iter().for_each(End::close);
        drop(auto);
        until_movers_have_gone();
        std::process::exit(3);
    }
    // SAFETY: it runs the handlers of the libraries, with everything open.
    unsafe { libc::exit(4) };
}

/// The key of the memory that peers access.
const KEY: u64 = 0x4b45_5900;

const DATA: u64 = 0xda7a;

/// Bytes of the writes, on both sides of borders in the engine.
const WRITES: [usize; 4] = [8, 700, 9000, LONG];

/// A program that computes while its peers work on its memory.
#[derive(Clone, Copy, Debug)]
struct Computing {
    threading: u32,
    data_progress: u32,
    /// It has said that it would sleep until something comes, and does not.
    is_armed: bool,
    /// The system refuses barriers.
    has_no_barriers: bool,
    /// It is another user's, so that its peers come by a link.
    is_linked: bool,
}

/// It makes its calls one at a time, and has not asked for anything.
const SERIAL: Computing = Computing {
    threading: THREAD_DOMAIN,
    data_progress: PROGRESS_MANUAL,
    is_armed: false,
    has_no_barriers: false,
    is_linked: false,
};

const COMPUTING: [Computing; 7] = [
    SERIAL,
    Computing { threading: THREAD_SAFE, ..SERIAL },
    Computing { data_progress: PROGRESS_AUTO, ..SERIAL },
    Computing { is_armed: true, ..SERIAL },
    Computing { threading: THREAD_SAFE, is_armed: true, ..SERIAL },
    Computing { has_no_barriers: true, ..SERIAL },
    Computing { is_linked: true, ..SERIAL },
];

/// Each of two processes tells the other its endpoint's name.
fn introduce(end: &End, line: &Line) {
    name(end.ep).as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
    let mut other = [0; 64];
    for word in other.as_chunks_mut().0 {
        *word = line.hear().to_le_bytes();
    }
    end.insert(&[other]);
}

/// Becomes somebody whom root does not let in.
fn become_another_user() {
    // The library is loaded by who may read it.
    core();
    // SAFETY: changes who this process is of.
    let changed =
        unsafe { libc::setgroups(0, null()) == 0 && libc::setresuid(4001, 4001, 4001) == 0 };
    assert!(changed, "root may become anybody");
}

/// A program that makes no call from when it has told its name until its peer has done all.
fn compute(computing: &Computing, line: &Line) {
    if computing.is_linked {
        become_another_user();
    }
    let Computing { threading, data_progress, .. } = *computing;
    let wishes = Wishes { threading, data_progress, wait_obj: WAIT_FD, ..Wishes::remote() };
    let opened = wishes.opened();
    let end = End::new(&opened, &wishes);
    let counter = open_cntr(&opened, WAIT_NONE);
    assert_eq!(bind(end.ep, counter, REMOTE_WRITE), 0);
    let (memory, mut room) = (vec![0_u8; LONG], vec![0; LONG]);
    let mr = register(&opened, &memory, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
    recv(&end, &mut room, 5);
    introduce(&end, line);
    if computing.is_armed {
        let mut queue = fid(end.cq);
        assert_eq!(call!(opened.fabric, ops.trywait(&mut queue, 1)), 0);
    }
    let others = line.hear();
    assert_eq!(others, 1, "the peer has done all");
    assert!(std::hint::black_box(&memory)[8..] == pattern(LONG, 3)[8..]);
    let first = u64::from_ne_bytes(*memory.first_chunk().unwrap());
    let written = u64::from_ne_bytes(*pattern(LONG, 3).first_chunk().unwrap());
    assert_eq!(first, written.wrapping_add(7));
    let (told, _) = next(&end, &[]);
    assert_eq!((told.op_context as usize, told.len), (5, LONG));
    assert!(room == pattern(LONG, 9));
    let (told, _) = next(&end, &[]);
    assert_eq!((told.flags & REMOTE_CQ_DATA, told.data), (REMOTE_CQ_DATA, DATA));
    assert_eq!(call!(counter, ops.read()), WRITES.len() as u64 + 1);
    assert_eq!((close(mr), close(end.ep), close(counter)), (0, 0, 0));
    assert_eq!((close(end.cq), close(end.av)), (0, 0));
    line.say(1);
}

/// One operation, from its posting to its end.
fn done(end: &End, post: impl FnMut() -> isize) {
    assert_eq!(until_taken(std::slice::from_ref(end), post), 0);
    assert_eq!(next(end, &[]).0.op_context as usize, 3);
}

fn work_on(process: &Process) {
    let wishes = Wishes { tx_flags: DELIVERY_COMPLETE, ..Wishes::remote() };
    let opened = wishes.opened();
    let end = End::new(&opened, &wishes);
    introduce(&end, &process.line);
    let (none, at) = (null_mut(), 3 as *mut c_void);
    let message = pattern(LONG, 9);
    let start = message.as_ptr().cast();
    done(&end, || call!(end.ep, msg.send(start, LONG, none, 0, at)));
    let (bytes, mut old) = (pattern(LONG, 3), [0_u64; 1]);
    let start: *const c_void = bytes.as_ptr().cast();
    for len in WRITES {
        done(&end, || call!(end.ep, rma.write(start, len, none, 0, 0, KEY, at)));
    }
    done(&end, || call!(end.ep, rma.writedata(start, 8, none, DATA, 0, 0, KEY, at)));
    let into = vec![0_u8; LONG];
    let place: *mut c_void = into.as_ptr().cast_mut().cast();
    done(&end, || call!(end.ep, rma.read(place, LONG, none, 0, 0, KEY, at)));
    assert!(std::hint::black_box(&into) == &bytes);
    let (seven, old_at) = ([7_u64], old.as_mut_ptr().cast::<c_void>());
    let (ep, operand) = (end.ep, seven.as_ptr().cast());
    done(&end, || {
        call!(ep, atomic.readwrite(operand, 1, none, old_at, none, 0, 0, KEY, UINT64, SUM, at))
    });
    assert_eq!(std::hint::black_box(old), [u64::from_ne_bytes(*bytes.first_chunk().unwrap())]);
    process.line.say(1);
    assert_eq!(process.line.hear(), 1);
    end.close();
}

// spec: ENV-41
#[test]
fn peers_work_on_the_memory_of_a_program_that_makes_no_calls() {
    with_processes(
        |number, line| compute(&COMPUTING[number as usize], &line),
        |family| {
            // To become another user takes root.
            let is_root = may_make();
            for computing in COMPUTING.into_iter().filter(|it| !it.is_linked || is_root) {
                let container = match computing.has_no_barriers {
                    true => Container::none().denying(libc::EPERM, &[libc::SYS_membarrier]),
                    false => Container::none(),
                };
                let process = container.start(family, |_| {});
                work_on(&process);
            }
        },
    );
}

/// For how many nanoseconds this thread has run, and for how many it was ready to.
fn time_of_this_thread() -> [u64; 2] {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap());
    [(); 2].map(|()| numbers.next().unwrap())
}

/// Polls for this many milliseconds of processor time. Returns the milliseconds that others took
/// meanwhile.
fn poll_for(end: &End, milliseconds: u64) -> u64 {
    let [start, before] = time_of_this_thread();
    loop {
        (0..1000).for_each(|_| give_time(end));
        let [now, waited] = time_of_this_thread();
        if now - start > milliseconds * 1_000_000 {
            return (waited - before) / 1_000_000;
        }
    }
}

/// A program that polls for as long as it would be served in many times, if it did not. The thread
/// comes only while the program is kept from polling, by others that are let run.
fn poll_for_long(line: &Line) {
    let wishes = Wishes { threading: THREAD_DOMAIN, ..Wishes::remote() };
    let opened = wishes.opened();
    let (end, memory) = (End::new(&opened, &wishes), [0; 8]);
    let mr = register(&opened, &memory, REMOTE_READ, KEY).unwrap();
    while movers() == 0 {
        thread::yield_now();
    }
    // It comes once, for the program to know of it.
    poll_for(&end, 30);
    let before = sleeps();
    let away = poll_for(&end, 150);
    let woken = sleeps() - before;
    // It would come every 2 ms; the machine as a whole may stand still at times.
    assert!(woken < 20 + away, "woken {woken} times, and the program was kept away for {away} ms");
    assert_eq!(close(mr), 0);
    end.close();
    line.say(woken);
}

// spec: ENV-41
#[test]
fn a_program_that_polls_is_not_disturbed() {
    with_processes(
        |_, line| poll_for_long(&line),
        |family| {
            let process = family.start();
            process.line.hear();
        },
    );
}
