//! Members on one host, whose root has a shared log. One thread drives them step by step.
use super::effects::OWED_MAX;
use super::names::member_at;
use super::*;
use crate::active::{Call, Handler, Messenger, id_of};
use crate::port::Port;
use crate::port::config::Config;
use crate::port::connection::identity;
use ayre_proto::group::{Member, Message, Options};
use ayre_proto::units::PeerId;

const NAME: &str = "all";

/// The numbers and payloads that a member has seen.
type Seen = Vec<(u64, Vec<u8>)>;

/// Messages go to a root and two others.
struct Trio {
    members: Vec<Messenger<Seen>>,
    groups: Vec<Membership>,
    seen: Vec<Seen>,
    hear: Handler<1>,
}

fn connected(count: u16) -> Vec<Port> {
    // Tests of one process run side by side.
    let name = format!("ayre-trio-{}-{}", std::process::id(), identity());
    let path = std::env::temp_dir().join(name);
    let open = |number| Port::open(Config::new().number(number)).expect("a port");
    let mut ports: Vec<_> = (0..count).map(open).collect();
    for first in 0..ports.len() - 1 {
        let (one, others) = ports[first..].split_first_mut().expect("there is one");
        one.listen(&path).expect("listens");
        for other in others {
            std::thread::scope(|scope| {
                scope.spawn(|| other.connect(&path).expect("connects"));
                one.accept().expect("accepts");
            });
        }
        let _ = std::fs::remove_file(&path);
    }
    ports
}

fn messenger(port: Port) -> Messenger<Seen> {
    let mut messenger = Messenger::new(port);
    let hear = |seen: &mut Seen, _: &mut Call<'_>, [number]: [u64; 1], payload: &[u8]| {
        seen.push((number, payload.to_vec()));
    };
    messenger.register("hear", hear).expect("a new name");
    messenger
}

impl Trio {
    fn new() -> Self {
        let mut members: Vec<_> = connected(3).into_iter().map(messenger).collect();
        let options = MulticastOptions::new();
        let founded = members[0].multicast().found(NAME, options, |_, _| ()).expect("a new name");
        let mut trio = Self {
            members: Vec::new(),
            groups: vec![founded],
            seen: vec![Seen::new(); 3],
            hear: Handler::named("hear"),
        };
        let joining = members.split_off(1);
        trio.members = members;
        for mut member in joining {
            let join = std::thread::spawn(move || {
                let joined =
                    member.multicast().join(&mut vec![], NAME, PeerId(0), options, |_, _| ());
                (member, joined.expect("there is room"))
            });
            while !join.is_finished() {
                trio.poll(0..trio.members.len());
            }
            let (member, group) = join.join().expect("a member");
            trio.members.push(member);
            trio.groups.push(group);
        }
        // A member begins to read the log after a first message in another way.
        trio.members[0].multicast().try_send(founded, trio.hear, [0], &[]).expect("there is room");
        while !trio.members[0].out.group_members().list[0]
            .log
            .as_ref()
            .is_some_and(|one| one.is_read())
        {
            trio.poll(0..3);
        }
        trio.poll_until(0..3, 1);
        trio
    }

    fn poll(&mut self, which: std::ops::Range<usize>) {
        let all = self.members.iter_mut().zip(&mut self.seen);
        for (member, seen) in all.skip(which.start).take(which.len()) {
            // Otherwise deaths are noticed only from time to time.
            member.port().progress();
            member.poll(seen);
        }
        std::thread::yield_now();
    }

    /// Polls all members until each of them has seen `count` messages.
    fn poll_until(&mut self, which: std::ops::Range<usize>, count: usize) {
        while self.seen[which.clone()].iter().any(|seen| seen.len() < count) {
            self.poll(which.clone());
        }
    }

    /// Sends a message whose payload follows from its number and length.
    fn send(&mut self, from: usize, number: u64, len: usize) -> Result<(), MulticastError> {
        let payload = payload(number, len);
        self.members[from].multicast().try_send(self.groups[from], self.hear, [number], &payload)
    }
}

fn payload(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at * 7 + number) as u8).collect()
}

/// A message of any length is the same at all members. It may run at once or later, and its sender
/// may be the root or another member.
// spec: GRP-9, GRP-25, GRP-26
#[test]
fn messages_of_all_lengths_are_delivered_by_the_shared_log() {
    let mut trio = Trio::new();
    let lens = [0, 1, 8, 44, 980, 981, 4000, 70_000, 300_000, 1 << 20];
    let lens = || lens.iter().map(|len| (*len).min(PAYLOAD_MAX - 8));
    let mut count = 1;
    for (number, len) in (1..).zip(lens().chain(lens())) {
        let from = number as usize % 3;
        if from == 0 {
            // The handler runs here before the call returns.
            let (group, hear) = (trio.groups[0], trio.hear);
            let (root, seen) = (&mut trio.members[0], &mut trio.seen[0]);
            let sent = root.multicast().send(seen, group, hear, [number], &payload(number, len));
            sent.expect("a member");
            assert_eq!(trio.seen[0].len(), count + 1);
        } else {
            trio.send(from, number, len).expect("there is room");
        }
        count += 1;
        trio.poll_until(0..3, count);
        let expected = (number, payload(number, len));
        assert!(trio.seen.iter().all(|seen| seen.last() == Some(&expected)), "{len} of {from}");
    }
}

/// A member that reads nothing stops the root, and the root overwrites nothing.
// spec: GRP-20, GRP-25, GRP-26
#[test]
fn a_root_waits_for_room() {
    for (len, least, most) in [(8, 64, 80), (60_000, 12, 17)] {
        let mut trio = Trio::new();
        let mut sent = 0;
        loop {
            match trio.send(0, sent, len) {
                Ok(()) => sent += 1,
                Err(why) => break assert_eq!(why, MulticastError::Busy),
            }
            trio.poll(0..2);
            assert!(sent < 1000, "{len} bytes: nobody holds it up");
        }
        assert!((least..=most).contains(&sent), "{sent} of {len} bytes");
        trio.poll_until(0..3, 1 + sent as usize);
        // All messages were read, so there is room without further messages.
        trio.poll(0..3);
        trio.send(0, sent, len).expect("all have read");
        trio.poll_until(0..3, 2 + sent as usize);
        for seen in &trio.seen {
            let expected = (0..=sent).map(|number| (number, payload(number, len)));
            assert!(seen[1..].iter().cloned().eq(expected), "{len} bytes");
        }
    }
}

/// A message that a dead root had written, and one survivor has read, reaches the other survivor.
// spec: GRP-9, GRP-10, GRP-25
#[test]
fn the_shared_log_of_a_dead_root_reaches_all_survivors() {
    let lens = [8, 500, 70_000, 20, 990];
    let mut trio = Trio::new();
    for (number, len) in (1..).zip(lens) {
        trio.send(0, number, len).expect("there is room");
    }
    trio.poll_until(1..2, 1 + lens.len());
    // This member does not read the log any more.
    trio.members[2].out.group_members().list[0].reading = None;
    assert_eq!(trio.seen[2].len(), 1);
    drop(trio.members.remove(0));
    trio.seen.remove(0);
    trio.poll_until(0..2, 1 + lens.len());
    let expected = (1..).zip(lens).map(|(number, len)| (number, payload(number, len)));
    assert!(trio.seen[1][1..].iter().cloned().eq(expected));
    assert_eq!(trio.seen[0], trio.seen[1]);
}

/// A root that writes a malformed log is cut off, and the others go on.
// spec: GRP-15, GRP-25
#[test]
fn a_root_that_writes_a_malformed_shared_log_is_excluded() {
    let mut trio = Trio::new();
    trio.send(0, 1, 8).expect("there is room");
    trio.poll_until(1..3, 2);
    let root = &mut trio.members[0].out.group_members().list[0];
    root.log.as_mut().expect("a log").scribble(root.machine.have() + 1);
    let root = PeerId(0);
    let trusts = |member: &mut Messenger<Seen>| member.port().is_alive(root);
    while trio.members[1..].iter_mut().any(trusts) {
        trio.poll(1..3);
    }
    trio.send(2, 2, 8).expect("there is room");
    trio.poll_until(1..3, 3);
    assert!(trio.seen[1..].iter().all(|seen| seen.last() == Some(&(2, payload(2, 8)))));
}

/// A peer that sends requests and takes no answers is cut off.
// spec: GRP-23
#[test]
fn a_member_that_reads_no_answers_is_disconnected() {
    let mut ports = connected(2).into_iter().map(messenger);
    let (mut far, _liar) = (ports.next().expect("one"), ports.next().expect("another"));
    far.multicast().found(NAME, MulticastOptions::new(), |_, _| ()).expect("a new name");
    let liar = PeerId(1);
    let ask = Message::<()>::Join(Options { window: 1, requests: 1 });
    let names = [Member(1 | 5 << 10).0, member_at(PeerId(0)).0].map(u32::to_le_bytes);
    let said = [names.as_flattened(), &ask.encode(id_of(NAME)).0].concat();
    for _ in 0..OWED_MAX {
        far.out.on_message(liar, &said, None).expect("it is no lie");
    }
    assert!(far.port().is_alive(liar), "there may be as many answers");
    for _ in 0..1000 {
        far.out.on_message(liar, &said, None).expect("it is no lie");
    }
    assert!(!far.port().is_alive(liar));
}
