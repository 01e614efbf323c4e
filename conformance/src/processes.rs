//! A peer in another process, killed in the middle of whatever it does.
//!
//! The test program starts itself again: the child runs the test that calls [`child`], which does
//! nothing in an ordinary run.
use crate::Executor;
use crate::data::{assert_same, pattern};
use crate::engine::socket_path;
use crate::fabric::{INITIATOR, TARGET};
use crate::world::{insist, next_message, next_notification};
use ayre::{
    Fault, Port, PostError, PostOptions, Queue, ReceiveError, RegionOptions, RemoteQueue,
    RemoteRegion, Rights,
};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Tells the child whom to connect to.
const ADDRESS: &str = "AYRE_CONFORMANCE_ADDRESS";
/// Tells the child how: the executor's name.
const EXECUTOR: &str = "AYRE_CONFORMANCE_EXECUTOR";
/// Messages after which the child is killed.
const ENOUGH: u32 = 500;
const SLOT: usize = 128;
const SLOTS: u32 = 64;

/// The bytes of the `i`-th put, message and record.
fn data(i: u32) -> Vec<u8> {
    pattern(u64::from(i), 1 + i as usize % 100)
}

/// The reports to the parent so far.
#[derive(Debug, Default)]
struct Told {
    messages: u32,
    notes: u32,
    records: u32,
}

/// A process that is killed while it posts: what it published is whole and in order, nothing comes
/// twice, the survivor learns of the death and is not disturbed.
// spec: LIFE-6, LIFE-10, LIFE-11, LIFE-12, MSG-10, QUE-9, LANE-3, LANE-7, ORD-2, ORD-3
pub fn a_killed_process_leaves_whole_records(executor: Executor, test_of_child: &str) {
    for _ in 0..5 {
        let mut port = executor.open(TARGET.0);
        let path = socket_path();
        port.listen(&path).expect("a socket path");
        let mut child = start(test_of_child, &path, executor);
        port.accept().expect("the child connects");
        std::fs::remove_file(&path).expect("the socket is there");
        if executor == Executor::Engine {
            port.start_engine().expect("an engine starts");
        }
        let region = port.alloc(SLOT * SLOTS as usize, RegionOptions::new()).expect("memory");
        let mut queue = port.create_queue(8192).expect("a queue");
        port.share(INITIATOR, &region, 0..region.len(), Rights::all(), 1).expect("a grant");
        port.share_queue(INITIATOR, &mut queue, 2).expect("a producer");
        let mut told = Told::default();
        while told.messages < ENOUGH {
            take(&mut port, &mut queue, &mut told);
            port.progress();
        }
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        while port.is_alive(INITIATOR) {
            take(&mut port, &mut queue, &mut told);
            port.progress();
        }
        while take(&mut port, &mut queue, &mut told) {}
        assert_eq!(port.send(INITIATOR, 0, &[1]), Err(PostError::Fault(Fault::PeerDead)));
        let waited = port.recv(&mut [0; 8], Some(Duration::ZERO));
        assert_eq!(waited, Err(ReceiveError::PeerDied(INITIATOR)));
        assert!(told.notes > 0 && told.records > 0, "{told:?}");
    }
}

/// Starts this program again, where nothing but a test runs, which calls a function that asks for
/// its [`address`].
pub(crate) fn start(test_of_child: &str, path: &Path, executor: Executor) -> Child {
    let program = std::env::current_exe().expect("this test's own program");
    Command::new(program)
        .args([test_of_child, "--exact", "--nocapture"])
        .env(ADDRESS, path)
        .env(EXECUTOR, format!("{executor:?}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts again")
}

/// Where the parent listens; none in an ordinary run.
pub(crate) fn address() -> Option<String> {
    std::env::var(ADDRESS).ok()
}

/// How the parent wants to be connected with.
pub(crate) fn executor() -> Executor {
    match std::env::var(EXECUTOR).as_deref() {
        Ok("Direct") => Executor::Direct,
        Ok("Tuned") => Executor::Tuned,
        _ => Executor::Inline,
    }
}

/// Takes one of each kind, and checks that it is the next one, whole. Whether there was any.
fn take(port: &mut Port, queue: &mut Queue, told: &mut Told) -> bool {
    let (mut buffer, before) = ([0; 200], told.messages + told.notes + told.records);
    if let Some(message) = next_message(port, &mut buffer) {
        assert_eq!((message.source, message.tag), (INITIATOR, told.messages));
        assert_same(&buffer[..message.len], &data(told.messages), &message);
        told.messages += 1;
    }
    if let Some(note) = next_notification(port) {
        assert_eq!((note.source, note.tag), (INITIATOR, told.notes));
        told.notes += 1;
    }
    if let Some(record) = port.dequeue(queue, &mut buffer).expect("the buffer is long enough") {
        assert_eq!(record.source, INITIATOR);
        assert_same(&buffer[..record.len], &data(told.records), &record);
        told.records += 1;
    }
    told.messages + told.notes + told.records > before
}

/// The child's part: posts until it is killed. Returns at once where nobody has started it so.
///
/// # Panics
/// Where the parent does not answer.
pub fn child() {
    let Some(address) = address() else { return };
    let mut port = executor().open(INITIATOR.0);
    assert_eq!(port.connect(address).expect("the parent accepts"), TARGET);
    let remote = port.accept_region(TARGET, 1).expect("a region");
    let mut queue = port.accept_queue(TARGET, 2).expect("a queue");
    for i in 0.. {
        post(&mut port, &remote, &mut queue, i);
    }
}

/// Posts a put with its completer, a message and a record, each as soon as there is room.
fn post(port: &mut Port, remote: &RemoteRegion, queue: &mut RemoteQueue, i: u32) {
    let (data, options) = (data(i), PostOptions::new().completer().tag(i));
    let offset = u64::from(i % SLOTS) * SLOT as u64;
    insist(port, |port| port.put(remote, offset, &data, options));
    insist(port, |port| port.send(TARGET, i, &data));
    insist(port, |port| port.enqueue(queue, &data));
}
