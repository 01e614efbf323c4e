//! Which notifications an operation raises, where, and what they say.
use crate::data::pattern;
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::{FIRST, ManyToOne};
use crate::port::{Options, Port, Region, RemoteRegion};
use crate::world::{Memory, POLLS, World};
use ayre::error::Status;
use ayre::memory::{Atomic, AtomicOp, Classes, Operation, Strided, Width};
use ayre::{Fault, Notification, PeerId, PostError, ReceiveError};
use std::time::Duration;

/// A call that raises notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Put,
    LongPut,
    PutStrided,
    Get,
    LongGet,
    GetStrided,
    GetIntoRegion,
    Immediate,
    Notify,
    Atomic,
    Fetch,
    Swap,
    FailedSwap,
    Fcaa,
    FailedFcaa,
    UnfetchedFailure,
}

const CALLS: [Call; 16] = [
    Call::Put,
    Call::LongPut,
    Call::PutStrided,
    Call::Get,
    Call::LongGet,
    Call::GetStrided,
    Call::GetIntoRegion,
    Call::Immediate,
    Call::Notify,
    Call::Atomic,
    Call::Fetch,
    Call::Swap,
    Call::FailedSwap,
    Call::Fcaa,
    Call::FailedFcaa,
    Call::UnfetchedFailure,
];

const LONG: usize = 100_000;
const WORD: u64 = 10;
const TAG: u32 = 0xfeed_0042;
const VALUE: u64 = 0x0123_4567_89ab_cdef;
const ROWS: Strided = Strided { row_len: 5, rows: 3, local_stride: 10, remote_stride: 7 };

fn atomic(op: AtomicOp, compare: u64) -> Atomic {
    Atomic { width: Width::W64, op, operand: 7, compare }
}

fn perform<P: Port>(
    call: Call,
    port: &mut P,
    memory: &Memory<P>,
    sink: &P::Region,
    options: Options,
) -> Result<(), PostError> {
    let (remote, mut buffer) = (&memory.remote, vec![0; LONG]);
    match call {
        Call::Put => port.put(remote, 8, &[1; 20], options).map(drop),
        Call::LongPut => port.put(remote, 8, &buffer, options).map(drop),
        Call::PutStrided => port.put_strided(remote, 8, &[1; 25], ROWS, options).map(drop),
        Call::Get => port.get(remote, 8, &mut [0; 20], options).map(drop),
        Call::LongGet => port.get(remote, 8, &mut buffer, options).map(drop),
        Call::GetStrided => port.get_strided(remote, 8, &mut [0; 25], ROWS, options).map(drop),
        Call::GetIntoRegion => port.get(remote, 8, sink.slice(0..50), options).map(drop),
        Call::Immediate => port.put_immediate(remote, 8, 77, options).map(drop),
        Call::Notify => port.notify(remote.peer(), options).map(drop),
        Call::Atomic => port.atomic(remote, 0, atomic(AtomicOp::Add, 0), options).map(drop),
        Call::UnfetchedFailure => {
            port.atomic(remote, 0, atomic(AtomicOp::CompareSwap, WORD - 1), options).map(drop)
        }
        Call::Fetch => port.fetch(remote, 0, atomic(AtomicOp::Add, 0), options).map(drop),
        Call::Swap => port.fetch(remote, 0, atomic(AtomicOp::CompareSwap, WORD), options).map(drop),
        Call::FailedSwap => {
            port.fetch(remote, 0, atomic(AtomicOp::CompareSwap, WORD - 1), options).map(drop)
        }
        Call::Fcaa => port.fetch(remote, 0, atomic(AtomicOp::Fcaa, WORD), options).map(drop),
        Call::FailedFcaa => {
            port.fetch(remote, 0, atomic(AtomicOp::Fcaa, WORD - 1), options).map(drop)
        }
    }
}

/// A call with each combination of classes.
fn combinations(call: Call) -> impl Iterator<Item = (Call, Classes)> {
    (0..8).map(move |bits| (call, Classes::from_bits_truncate(bits)))
}

impl Call {
    fn operation(self) -> Operation {
        match self {
            Self::Put | Self::LongPut | Self::PutStrided => Operation::Put,
            Self::Get | Self::LongGet | Self::GetStrided | Self::GetIntoRegion => Operation::Get,
            Self::Immediate => Operation::ImmediatePut,
            Self::Notify => Operation::NotificationPut,
            Self::Atomic | Self::UnfetchedFailure => Operation::Atomic,
            _ => Operation::FetchAtomic,
        }
    }

    /// Classes raised at the initiator, and at the target: the table of combinations.
    fn classes(self, asked: Classes) -> [Classes; 2] {
        let (requester, completer, responder) =
            (Classes::REQUESTER, Classes::COMPLETER, Classes::RESPONDER);
        match self.operation() {
            Operation::Put | Operation::ImmediatePut => [asked & requester, asked & completer],
            Operation::NotificationPut | Operation::Deposit => [asked & requester, completer],
            Operation::Get | Operation::Atomic | Operation::FetchAtomic => {
                [asked & (requester | completer), asked & responder]
            }
            Operation::Reply => [completer, Classes::empty()],
        }
    }

    /// The notification of a class.
    fn note(self, source: PeerId, class: Classes) -> Notification {
        let completes = class == Classes::COMPLETER;
        let value = match self {
            Self::Fetch | Self::Swap | Self::FailedSwap | Self::FailedFcaa if completes => WORD,
            Self::Fcaa if completes => WORD + 7,
            _ => VALUE,
        };
        let failed = matches!(self, Self::FailedSwap | Self::FailedFcaa);
        let declined = failed && class != Classes::RESPONDER;
        let status = if declined { Status::Declined } else { Status::Ok };
        Notification { source, class, status, operation: self.operation(), tag: TAG, value }
    }
}

/// Every operation with every combination of classes raises exactly what the table says, at both
/// ends, with source, status, operation, tag and value.
// spec: NOTI-1, NOTI-2, NOTI-3, NOTI-5, NOTI-6, NOTI-10, NPUT-1, NPUT-2, ATOM-6, FCAA-2
pub fn notification_classes_raise_the_notifications_of_the_table<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let memory = world.memory(LONG + 64);
    let sink = world.own_memory(64);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    for (call, asked) in CALLS.into_iter().flat_map(combinations) {
        memory.region.store(0, WORD);
        let options = Options::new().notify(asked).tag(TAG).value(VALUE);
        let performed = world.drive(|port| perform(call, port, &memory, &sink, options));
        assert_eq!(performed, Ok(()), "{call:?}");
        let raised = world.raised();
        let [here, there] = call.classes(asked);
        let expected: Vec<_> = here.iter().map(|class| call.note(target, class)).collect();
        assert_eq!(raised.initiator, expected, "at the initiator: {call:?}, {asked:?}");
        let expected: Vec<_> = there.iter().map(|class| call.note(initiator, class)).collect();
        assert_eq!(raised.target, expected, "at the target: {call:?}, {asked:?}");
    }
}

/// A notification is two words, with the fields and codes of the tables.
// spec: NOTI-1, ERR-1
pub fn a_notification_is_128_bits<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let memory = world.memory(64);
    let (sink, target) = (world.own_memory(64), world.target_id());
    memory.region.store(0, WORD);
    let options = Options::new().requester().tag(TAG).value(VALUE);
    for (call, status, operation) in [(Call::Put, 0, 1), (Call::FailedFcaa, 15, 6)] {
        world.drive(|port| perform(call, port, &memory, &sink, options)).expect("no fault");
        let notes = world.raised().initiator;
        let word = u64::from(target.0) | 1 << 16 | status << 20 | operation << 24;
        let expected = [word | u64::from(TAG) << 32, VALUE];
        assert_eq!(notes.iter().map(Notification::encode).collect::<Vec<_>>(), [expected]);
    }
    let faults = [
        Fault::UnknownKey,
        Fault::StaleKey,
        Fault::Rights,
        Fault::Bounds,
        Fault::Alignment,
        Fault::PeerDead,
        Fault::Malformed,
        Fault::TooLong,
        Fault::ForeignHandle,
    ];
    assert_eq!(faults.map(Fault::code), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// A notification put needs no grant.
// spec: NPUT-1, NPUT-2
pub fn a_notification_needs_only_a_connection<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let peer = world.target_id();
    for value in [0, 1, u64::MAX, VALUE] {
        let options = Options::new().tag(!TAG).value(value);
        world.post(|port| port.notify(peer, options));
        let raised = world.raised();
        let expected = Call::Notify.note(world.initiator_id(), Classes::COMPLETER);
        assert_eq!(raised.target, [Notification { tag: !TAG, value, ..expected }]);
        assert_eq!(raised.initiator, []);
    }
}

/// A long put is one operation: it is notified once, when all of it is there.
// spec: PUT-4, NOTI-4, NOTI-6, ORD-2
pub fn a_long_put_is_notified_once_at_its_end<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(1 << 20);
    for (round, len) in [5000, 70_000, 1 << 20].into_iter().enumerate() {
        let data = pattern(round as u64, len);
        let options = Options::new().requester().completer().tag(round as u32);
        world.drive(|port| port.put(&remote, 0, &data, options)).expect("a put");
        let note = world.until("the completer", |world| {
            // With a loopback the requester's is in the same queue.
            world.target().poll_notification().filter(|note| note.class == Classes::COMPLETER)
        });
        assert_eq!((note.tag, note.operation), (round as u32, Operation::Put));
        let mut found = vec![0; len];
        region.read(0, &mut found);
        assert!(found == data, "a completer before its data");
        let raised = world.raised();
        assert_eq!(raised.target, [], "{len} bytes are notified once");
        assert!(raised.initiator.len() <= 1, "{len} bytes are notified once");
    }
}

/// At each port, notifications of one initiator's operations come in posted order.
// spec: NOTI-10, NOTI-12
pub fn notifications_come_in_posted_order<F: Fabric>(fabric: F) {
    const COUNT: u32 = 1000;
    let mut world = World::open(fabric);
    let Memory { remote, .. } = world.memory(64);
    let sink = world.own_memory(64);
    let (mut here, mut there) = (vec![], vec![]);
    for tag in 0..COUNT {
        let options = Options::new().notify(Classes::all()).tag(tag);
        world.until("room", |world| {
            let port = world.initiator();
            let posted = match tag % 3 {
                0 => port.put(&remote, 0, &[1; 8], options),
                1 => port.get(&remote, 0, sink.slice(0..8), options),
                _ => port.atomic(&remote, 8, atomic(AtomicOp::Add, 0), options),
            };
            if let Err(PostError::Busy(_)) = posted {
                let raised = world.raised();
                here.extend(raised.initiator);
                there.extend(raised.target);
            }
            posted.is_ok().then_some(())
        });
    }
    let raised = world.raised();
    here.extend(raised.initiator);
    there.extend(raised.target);
    let tags = |notes: &[Notification]| notes.iter().map(|note| note.tag).collect::<Vec<_>>();
    assert_eq!(tags(&there), (0..COUNT).collect::<Vec<_>>(), "at the target");
    let mut here = tags(&here);
    assert!(here.is_sorted(), "at the initiator");
    here.dedup();
    assert_eq!(here, (0..COUNT).collect::<Vec<_>>(), "at the initiator");
}

/// A bounded number of polls finds a pending notification; a poll that finds nothing returns.
// spec: NOTI-13, PROG-3
pub fn a_bounded_number_of_polls_finds_pending_notifications<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let peer = world.target_id();
    assert!((0..POLLS).all(|_| world.target().poll_notification().is_none()), "nothing yet");
    for tag in 0..20 {
        world.post(|port| port.notify(peer, Options::new().tag(tag)));
        world.settle();
        let found = (0..POLLS).find_map(|_| world.target().poll_notification());
        assert_eq!(found.map(|note| note.tag), Some(tag));
    }
}

/// A wait without time is a poll; its end is a result without any effect.
// spec: WAIT-1, WAIT-2
pub fn a_wait_without_time_is_a_poll<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let peer = world.target_id();
    let waited = world.target().wait_notification(Some(Duration::ZERO));
    assert_eq!(waited, Err(ReceiveError::TimedOut));
    world.post(|port| port.notify(peer, Options::new().tag(TAG)));
    world.settle();
    let waited = world.target().wait_notification(Some(Duration::ZERO));
    assert_eq!(waited.map(|note| note.tag), Ok(TAG));
    let waited = world.target().wait_notification(Some(Duration::ZERO));
    assert_eq!(waited, Err(ReceiveError::TimedOut));
}

/// An operation that was posted and faults raises one notification, of the requester, whatever was
/// asked for; a call that waited for its answer returns the fault as well.
// spec: NOTI-7, ERR-2, FLUSH-2, REV-1, KEY-2
pub fn a_fault_is_one_requester_notification<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let peer = world.target_id();
    let calls = CALLS.into_iter().filter(|call| *call != Call::Notify);
    for (call, asked) in calls.flat_map(combinations) {
        let mut memory = world.memory(LONG + 64);
        let sink = world.own_memory(64);
        let (_, dead) = world.grant(&memory.region, 0..8, ayre::Rights::all());
        let grant = std::mem::replace(&mut memory.grant, dead);
        world.target().revoke(grant).expect("a live grant is revoked");
        let options = Options::new().notify(asked).tag(TAG).value(VALUE);
        let performed = world.drive(|port| perform(call, port, &memory, &sink, options));
        let fetches = call.operation() == Operation::FetchAtomic;
        let waits = fetches || [Call::Get, Call::LongGet, Call::GetStrided].contains(&call);
        let stale = Fault::StaleKey;
        assert_eq!(performed, if waits { Err(stale.into()) } else { Ok(()) }, "{call:?}");
        let raised = world.raised();
        assert_eq!(raised.target, [], "{call:?}, {asked:?}");
        let status = Status::Fault(stale);
        let note = Notification { status, ..call.note(peer, Classes::REQUESTER) };
        assert_eq!(raised.initiator, [note], "{call:?}, {asked:?}");
        assert_eq!(world.initiator().flush(peer), Err(stale), "{call:?}, {asked:?}");
        assert_eq!(world.initiator().flush(peer), Ok(()), "a fault is reported once");
        let region = memory.region.clone();
        world.target().deregister(&region).expect("the region is the target's");
        world.initiator().deregister(&sink).expect("the region is the initiator's");
    }
}

/// A flush leaves notifications in their queue.
// spec: FLUSH-2
pub fn flush_takes_no_notifications<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { remote, .. } = world.memory(64);
    let options = Options::new().requester().completer();
    world.post(|port| port.put(&remote, 0, &[1; 8], options));
    world.settle_ok();
    world.settle_ok();
    let raised = world.raised();
    assert_eq!((raised.initiator.len(), raised.target.len()), (1, 1));
}

/// Polls for notifications and for messages in turn, and of one kind alone, find what every peer
/// has sent, within twice as many polls as there are peers.
// spec: NOTI-13, MSG-9
pub fn polls_in_turn_find_every_peer<F: Fabric>(fabric: F) {
    for peers in [1, 2, 3, 5] {
        let mut ports = ManyToOne::open(fabric, peers);
        let slots = usize::from(FIRST + peers);
        let wanted = u32::from(peers);
        for (tag, port) in (0..).zip(&mut ports.initiators) {
            port.notify(TARGET, Options::new().tag(tag)).expect("room");
            port.send(TARGET, tag, &[1]).expect("room");
        }
        let (mut notes, mut messages) = (0, 0);
        ports.until("all are there", |ports| {
            for _ in 0..2 * slots {
                notes += u32::from(ports.target.poll_notification().is_some());
                messages += u32::from(ports.target.try_recv(&mut [0]).expect("it fits").is_some());
            }
            ((notes, messages) == (wanted, wanted)).then_some(())
        });
    }
}
