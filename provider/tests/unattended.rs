//! Automatic progress: data move while the program does not call.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
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

/// Threads of ours in this process.
fn movers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name == "ayre-mover\n").count()
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
fn who_is_not_polled_is_served_beside_one_that_is() {
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
fn who_blocks_is_woken_and_who_polls_is_served() {
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

/// What a program does that ends without closing anything.
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

#[test]
fn a_program_of_its_own() {
    let Some(what) = env::var_os(LEAVES) else { return };
    let manual = Wishes::default().opened();
    let end = End::new(&manual, &Wishes::default());
    assert_eq!(movers(), 0);
    end.close();
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
        assert_eq!(movers(), 0);
        std::process::exit(3);
    }
    // SAFETY: it runs the handlers of the libraries, with everything open.
    unsafe { libc::exit(4) };
}
