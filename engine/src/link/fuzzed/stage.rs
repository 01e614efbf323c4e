//! Three ports and the network between them, in memory and with a clock of their own. One is
//! attacked, one is its honest peer, and one is a neighbour whose datagrams the attacker sees.
use crate::link::drive::drive;
use crate::link::handshake::{JobKey, Protection};
use crate::link::links::{Identity, Links};
use crate::link::opening::{Destination, Request};
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::net::chance::Chance;
use crate::net::routes::Way;
use crate::peer::agreement::Agreement;
use crate::peer::packet::Arrival;
use crate::sync::AtomicBool;
use crate::sys::bell::Bell;
use crate::target::{Responder, Served, lock};
use ayre_proto::lane::Kind;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The ports, by their numbers, and somebody who has none.
pub(super) const VICTIM: usize = 0;
pub(super) const HONEST: usize = 1;
pub(super) const NEIGHBOUR: usize = 2;
pub(super) const ATTACKER: usize = 3;

/// The key of the job's ports, and the key of an attacker without it.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
pub(super) const OTHER_KEY: &str =
    "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 1400;
/// Least nanoseconds from one look at the links to the next.
const TICK: u64 = 100_000;
/// Datagrams that are remembered.
const SEEN_MAX: usize = 64;
/// For which a link goes on though its other side is kept from answering, in nanoseconds.
const TIMEOUT: u64 = 20_000_000_000;
/// Between two looks whether something has come.
const LOOK: u64 = 20_000_000;
/// Bytes of a message.
const MESSAGE: usize = 20;

/// A port, as far as its links go.
struct Side {
    links: Links,
    /// Performs what peers ask for; there is no memory that they could reach.
    responder: Arc<Mutex<Responder>>,
    /// By the number of the peer.
    ends: [Option<End>; 4],
}

impl Side {
    fn new(number: usize, is_sealed: bool) -> Self {
        let responder = Arc::new(Mutex::new(Responder::new(Arc::default())));
        let identity = identity(number, is_sealed, responder.clone());
        let links = Links::new(identity, 1, Chance::System, 0).expect("memory");
        Self { links, responder, ends: [const { None }; 4] }
    }

    fn take(&mut self, from: usize, agreed: Agreement) {
        let (link, taken) = (agreed.link.clone(), Arc::default());
        let served = Served::carried(agreed.peer, link, &agreed.inward, taken);
        lock(&self.responder).add(served);
        self.ends[from] = Some(End::new(agreed));
    }
}

/// The port's end of a connection.
struct End {
    agreed: Agreement,
    messages: LaneSender,
    came: LaneReceiver,
    responses: LaneReceiver,
    /// Messages that were sent and are to come here.
    expected: VecDeque<[u8; MESSAGE]>,
}

impl End {
    fn new(agreed: Agreement) -> Self {
        Self {
            messages: agreed.out.messages().sender(),
            came: agreed.inward.messages().receiver(),
            responses: agreed.inward.responses().receiver(),
            expected: VecDeque::new(),
            agreed,
        }
    }

    /// Takes all that has come; each message is the one that comes next, if it must.
    fn take(&mut self, is_exact: bool) {
        while let Some(status) = self.came.peek() {
            let status = status.expect("a carrier writes records");
            let mut bytes = vec![0; status.len as usize];
            self.came.copy(0, &mut bytes);
            self.came.consume(&status);
            if is_exact {
                let expected = self.expected.pop_front().expect("nobody has sent another");
                assert_eq!(bytes[8..], expected, "messages come as they were sent");
            }
        }
        while let Some(status) = self.responses.peek() {
            assert!(!is_exact, "there were messages only");
            self.responses.consume(&status.expect("a carrier writes records"));
        }
        while matches!(self.agreed.link.control.receive(), Arrival::Packet(_)) {}
    }
}

/// The three ports.
pub(super) struct Stage {
    sides: [Side; 3],
    pub(super) is_sealed: bool,
    pub(super) now: u64,
    /// All that the attacker sees, with its sender: most recent last.
    pub(super) seen: VecDeque<(usize, Vec<u8>)>,
    /// How many of the next datagrams to the victim, and to the neighbour, are lost.
    lost: [u32; 2],
    said: u64,
    /// The messages over the attacked link come as they should, whatever the attacker does.
    is_exact: bool,
    /// The neighbour has asked, and its link is not taken yet.
    asked: Option<usize>,
}

impl Stage {
    /// The victim is connected with its honest peer.
    pub(super) fn new(is_sealed: bool) -> Self {
        let side = |number| Side::new(number, is_sealed);
        let (seen, lost, said, asked) = (VecDeque::new(), [0; 2], 0, None);
        let sides = [side(VICTIM), side(HONEST), side(NEIGHBOUR)];
        let is_exact = is_sealed;
        let mut stage = Self { sides, is_sealed, now: 1, seen, lost, said, is_exact, asked };
        stage.accept_all_but(&[VICTIM]);
        let index = stage.ask(HONEST);
        stage.until(|stage| stage.join(HONEST, index), "the honest peer is let in");
        stage.accept_all_but(&[VICTIM, HONEST]);
        stage
    }

    /// The key of all ports of the job.
    pub(super) fn key(&self) -> &'static str {
        KEY
    }

    fn accept_all_but(&mut self, taken: &[usize]) {
        let taken = taken.iter().map(|number| *number as u16).collect();
        self.sides[VICTIM].links.acceptor.taken = Some(taken);
    }

    fn ask(&mut self, who: usize) -> usize {
        let ways = vec![Way { net: 0, to: address(VICTIM) }];
        let destination = Destination::Port((who == HONEST).then_some(VICTIM as u16));
        let request = Request::new(destination, (ways, false), DATAGRAM_MAX, u64::MAX);
        self.sides[who].links.ask_for(request, self.now).expect("an index")
    }

    /// The neighbour asks the victim for a link.
    pub(super) fn ask_neighbour(&mut self) {
        self.asked = Some(self.ask(NEIGHBOUR));
    }

    /// The neighbour is connected with the victim.
    pub(super) fn join_neighbour(&mut self) {
        self.ask_neighbour();
        self.until(Self::try_neighbour, "the neighbour is let in");
        self.accept_all_but(&[VICTIM, HONEST, NEIGHBOUR]);
    }

    fn try_neighbour(&mut self) -> bool {
        if let Some(index) = self.asked
            && self.join(NEIGHBOUR, index)
        {
            self.asked = None;
        }
        self.asked.is_none()
    }

    /// Whether both sides have taken the link that one has asked for.
    fn join(&mut self, who: usize, index: usize) -> bool {
        if self.sides[who].ends[VICTIM].is_none()
            && let Some(arrived) = self.sides[who].links.take_opened(index)
        {
            self.sides[who].take(VICTIM, arrived.connection);
        }
        self.take_arrived(VICTIM, who);
        self.sides[who].ends[VICTIM].is_some() && self.sides[VICTIM].ends[who].is_some()
    }

    /// Takes the links that others have opened.
    pub(super) fn take_arrived(&mut self, at: usize, from: usize) {
        while let Some(arrived) = self.sides[at].links.take_accepted() {
            self.sides[at].take(from, arrived.connection);
        }
    }

    /// The attacker sends something, perhaps as if the neighbour, or the victim, had sent it.
    pub(super) fn attack(&mut self, target: usize, is_disguised: bool, mut bytes: Vec<u8>) {
        let other = if target == VICTIM { NEIGHBOUR } else { VICTIM };
        let from = address(if is_disguised { other } else { ATTACKER });
        bytes.truncate(1 << 16);
        self.deliver(target, from, &mut bytes);
        self.carry();
    }

    /// Loses this number of the next datagrams to the victim, and to the neighbour.
    pub(super) fn lose(&mut self, count: [u32; 2]) {
        self.lost = count;
    }

    /// The neighbour and the victim say something to each other.
    pub(super) fn speak(&mut self) {
        self.speak_with(NEIGHBOUR);
    }

    fn speak_with(&mut self, who: usize) {
        let ends = [&self.sides[who].ends[VICTIM], &self.sides[VICTIM].ends[who]];
        if ends.iter().any(|end| end.is_none()) {
            return;
        }
        for (from, to) in [(who, VICTIM), (VICTIM, who)] {
            self.said += 1;
            let mut message = [0; MESSAGE];
            message[..8].copy_from_slice(&self.said.to_le_bytes());
            let sent = self.end(from, to).messages.push((Kind::GatedMessage, 1), [0], &message);
            if sent.is_ok() {
                self.end(to, from).expected.push_back(message);
            }
        }
    }

    fn end(&mut self, at: usize, with: usize) -> &mut End {
        self.sides[at].ends[with].as_mut().expect("both have taken the link")
    }

    /// Lets this number of nanoseconds pass.
    pub(super) fn pass(&mut self, span: u64) {
        let end = self.now + span;
        self.carry();
        while self.now < end {
            let due = self.sides.iter_mut().map(|side| side.links.deadline()).min();
            self.now = due.unwrap_or(end).clamp(self.now + TICK, end.max(self.now + TICK));
            self.carry();
        }
    }

    /// Everybody does what is to be done now, until there is nothing.
    fn carry(&mut self) {
        let mut moved = true;
        while moved {
            moved = false;
            for from in 0..self.sides.len() {
                let links = &mut self.sides[from].links;
                links.serve_all(self.now);
                let outbox = &mut links.outboxes[0];
                let sent: Vec<_> = outbox.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect();
                outbox.clear();
                for (to, bytes) in sent {
                    moved |= self.route(from, to, bytes);
                }
            }
            self.take_all();
        }
    }

    fn route(&mut self, from: usize, to: SocketAddr, mut bytes: Vec<u8>) -> bool {
        let to = (0..self.sides.len()).find(|number| address(*number) == to);
        let is_seen = from != HONEST && to != Some(HONEST);
        if is_seen {
            if self.seen.len() == SEEN_MAX {
                self.seen.pop_front();
            }
            self.seen.push_back((from, bytes.clone()));
            let lost = &mut self.lost[usize::from(to != Some(VICTIM))];
            if *lost > 0 {
                *lost -= 1;
                return false;
            }
        }
        if let Some(to) = to {
            self.deliver(to, address(from), &mut bytes);
        }
        to.is_some()
    }

    fn deliver(&mut self, to: usize, from: SocketAddr, bytes: &mut [u8]) {
        let way = Way { net: 0, to: from };
        let links = &mut self.sides[to].links;
        links.looks.look(self.now);
        links.looks.emptied();
        links.on_datagram((way, || DATAGRAM_MAX), bytes, self.now);
    }

    fn take_all(&mut self) {
        let is_exact = self.is_exact;
        for (number, side) in self.sides.iter_mut().enumerate() {
            for (peer, end) in side.ends.iter_mut().enumerate() {
                let is_attacked = number == NEIGHBOUR || peer == NEIGHBOUR || peer == ATTACKER;
                if let Some(end) = end {
                    end.take(!is_attacked || (is_exact && peer != ATTACKER));
                }
            }
        }
    }

    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool, what: &str) {
        let end = self.now + TIMEOUT;
        while !is_so(self) {
            assert!(self.now < end, "{what}");
            self.pass(LOOK);
        }
    }

    /// The honest peer's link is as good as ever.
    pub(super) fn check_honest(&mut self) {
        self.check(HONEST, "the honest peer is heard");
    }

    /// So is that of the neighbour, or it comes to be.
    pub(super) fn check_neighbour(&mut self) {
        self.lost = [0; 2];
        self.until(Self::try_neighbour, "the neighbour is let in");
        self.check(NEIGHBOUR, "the neighbour is heard");
    }

    fn check(&mut self, who: usize, what: &str) {
        self.speak_with(who);
        let is_awaited =
            |end: &Option<End>| end.as_ref().is_some_and(|end| !end.expected.is_empty());
        self.until(
            |stage| {
                let ends = [&stage.sides[who].ends[VICTIM], &stage.sides[VICTIM].ends[who]];
                assert!(ends.iter().all(|end| end.is_some()), "they are connected");
                !ends.into_iter().any(is_awaited)
            },
            what,
        );
    }
}

fn identity(number: usize, is_sealed: bool, responder: Arc<Mutex<Responder>>) -> Identity {
    let key = || JobKey::from_hex(KEY).expect("64 digits");
    Identity {
        number: number as u16,
        endpoint: None,
        ring: None,
        protection: if is_sealed { Protection::Sealed(key().into()) } else { Protection::Plain },
        drive: drive([3, 3].map(Duration::from_secs).into()),
        any_mail: Arc::new(AtomicBool::new(false)),
        responder,
        bell: Bell::new().expect("a counter").into(),
    }
}

fn address(number: usize) -> SocketAddr {
    ([10, 0, 0, number as u8 + 1], 7000).into()
}
