//! Frames go in steps, so that the other side works on the first ones while the next are made.
use crate::plain_memory::{Heap, crc32c, frames};
use crate::port::PlainPort;
use crate::served::Served;
use ayre_proto::lane::Kind;
use ayre_proto::link::congestion::{Config, ONE, Windows};
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header};
use ayre_proto::link::looks::Looks;
use ayre_proto::link::{Repair, WINDOW};
use ayre_proto::node::carrier::frames::{Frame, Frames};
use ayre_proto::node::linked::{Linked, Network, StepContext, Transmit};
use ayre_proto::units::PeerId;

const LONGEST: usize = 1400;
const ROOM: usize = (LONGEST - HEADER_BYTES) & !7;

/// Frames that have been sent and not been taken.
#[derive(Default)]
struct Way(Vec<(Header, Vec<u8>)>);

impl Transmit<Heap> for Way {
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<Heap>>) {
        let payload = frame.map_or_else(Vec::new, |frame| frame.payload().to_vec());
        self.0.push((*header, payload));
    }

    fn transmit_part(&mut self, header: &Header, payload: &[u8]) {
        self.0.push((*header, payload.to_vec()));
    }
}

impl Network<Heap> for Way {
    fn renew(&mut self, _: Channel, left: u32, _: u64) -> u32 {
        WINDOW - left
    }

    fn on_length(&mut self, _: &Frames<Heap>, _: bool) {}
}

impl Way {
    /// Frames with a payload.
    fn laden(&self) -> usize {
        self.0.iter().filter(|(header, _)| header.payload.len > 0).count()
    }
}

/// One of two linked peers.
struct Side {
    linked: Linked<Heap>,
    port: PlainPort,
    target: Served,
    out: Way,
}

impl Side {
    /// With as many buffers, and as large a window, as there can be.
    fn new(own: u32) -> Self {
        let token = |from: u32| u64::from(from) + 10;
        let agreed = Agreement {
            to: 1 - own,
            own,
            incarnation: 1,
            generation: 5,
            token: token(own),
            own_token: token(1 - own),
            first: [[0; 3]; 2],
            repair: Repair::Selective,
            paths: 1,
        };
        let window = Windows { initial: WINDOW * ONE, ..Config::RACK.window };
        let congestion = Config { window, ..Config::RACK };
        let mut end = End::new(agreed, &Drive { congestion, ..Drive::RACK }, 0);
        end.limit_lengths(512, LONGEST as u16);
        end.on_host_limit(0, LONGEST as u16, 0);
        for channel in Channel::ALL {
            end.give(channel, WINDOW, 0);
        }
        let mut linked = Linked::new(end, frames(ROOM));
        linked.go_in_steps();
        let port = PlainPort::new([64, 64, 1 << 12]);
        let target = Served::new(PeerId(1 - own as u16));
        Self { linked, port, target, out: Way::default() }
    }

    /// Writes to the ring, and a message that names it.
    fn write(&mut self, bytes: &[u8]) {
        assert!(self.port.write_ring(bytes));
        assert!(self.port.messages.push(Kind::GatedMessage, 0, &[0; 16]));
    }

    fn serve(&mut self, now: u64) {
        let Self { linked, port, target, out } = self;
        let around = &mut StepContext { lanes: port, target, network: out };
        linked.serve(now, around).expect("an honest peer");
    }

    /// Hears all that the other side has sent.
    fn hear(&mut self, other: &mut Self, now: u64) {
        let Self { linked, port, target, out } = self;
        for (header, payload) in other.out.0.drain(..) {
            let header = Header::parse(&header.encode(crc32c), crc32c).expect("not damaged");
            let heard = linked.on_header(&header, &Looks::all_the_time(now), out).expect("honest");
            let around =
                &mut StepContext { lanes: &mut *port, target: &mut *target, network: &mut *out };
            linked.on_payload(heard, (&header, &payload), now, around).expect("honest");
        }
    }
}

/// Two of whom each knows what room the other one has.
fn sides() -> [Side; 2] {
    let mut sides = [0, 1].map(Side::new);
    for now in [1, 2] {
        let [near, far] = &mut sides;
        near.serve(now * 1000);
        far.serve(now * 1000);
        near.hear(far, now * 1000);
        far.hear(near, now * 1000);
    }
    sides.iter_mut().for_each(|side| side.out.0.clear());
    sides
}

/// Loads until there is no more: frames of each step.
fn steps(side: &mut Side, now: u64) -> Vec<usize> {
    let mut steps = vec![side.out.laden()];
    while side.linked.has_more() {
        let before = side.out.laden();
        side.linked.load(now, &mut side.port, &mut side.out);
        steps.push(side.out.laden() - before);
    }
    steps
}

// spec: WIRE-16
#[test]
fn a_long_record_is_sent_in_steps_within_one_poll() {
    let [mut near, mut far] = sides();
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| ((at * 7) >> 3) as u8).collect();
    near.write(&bytes);
    let now = 10_000;
    near.serve(now);
    assert!(near.linked.deadline() <= now, "nobody sleeps before the rest has gone");
    let steps = steps(&mut near, now);
    let [first, others @ .., _] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(*first, 8, "the other side has nothing to do: {steps:?}");
    assert!(!others.is_empty() && others.iter().all(|step| *step == 44), "{steps:?}");
    far.hear(&mut near, now);
    assert_eq!(far.port.ring_come.bytes, bytes);
    near.hear(&mut far, now);
}

// spec: WIRE-16
#[test]
fn steps_end_where_the_window_does_and_go_on_when_there_is_room() {
    let [mut near, mut far] = sides();
    let bytes = vec![3; 250_000];
    near.write(&bytes);
    let (mut now, mut sent) = (10_000, 0);
    for _ in 0..100 {
        near.serve(now);
        sent += steps(&mut near, now).iter().sum::<usize>();
        assert!(!near.linked.has_more(), "no room, or nothing more");
        assert!(near.linked.end().in_flight() <= WINDOW);
        far.hear(&mut near, now);
        far.serve(now);
        near.hear(&mut far, now);
        now += 30_000;
    }
    assert!(sent > WINDOW as usize, "{sent} frames");
    assert_eq!(far.port.ring_come.bytes, bytes);
}
