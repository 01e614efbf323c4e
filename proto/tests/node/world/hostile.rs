//! Peers of the same host that store anything: what they may not reach stays as it is, and nobody
//! else notices.
use super::traffic::Node;
use super::wire::{LINES, Net, PATHS, link};
use super::{Program, id};
use crate::dice::{Dice, seeds};
use crate::pair::port::{BASE, LEN, NOTHING};
use ayre_netsim::{Network, Plan};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::command::Request;
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Fault;
use ayre_proto::lane::Kind;
use ayre_proto::limits::TABLE_SLOTS;
use ayre_proto::node::carrier::QUEUES_MAX;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::node::effects::{Host, LaneName, WordName};
use ayre_proto::node::initiator::Refused;
use ayre_proto::node::lane::Entry;
use ayre_proto::node::{Order, PostError};
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, Rights};
use ayre_proto::xlate::Cover;

/// The liar, and who is honest.
const LIAR: usize = 0;
const HONEST: usize = 1;

const KINDS: [Kind; 6] = [
    Kind::Message,
    Kind::Notification,
    Kind::Command,
    Kind::Response,
    Kind::Record,
    Kind::GatedMessage,
];

fn lane(dice: &mut Dice) -> (LaneName, Kind) {
    let all = [
        (LaneName::Commands, Kind::Command),
        (LaneName::Responses, Kind::Response),
        (LaneName::Messages, Kind::GatedMessage),
        (LaneName::Queue(dice.below(2) as usize), Kind::Record),
    ];
    let (lane, kind) = all[[0, 0, 0, 1, 2, 3][dice.below(6) as usize]];
    let is_right = dice.percent(98);
    (lane, if is_right { kind } else { KINDS[dice.below(6) as usize] })
}

/// A record that is nearly right.
fn record(dice: &mut Dice, key: Key) -> (LaneName, Entry) {
    let (lane, kind) = lane(dice);
    let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let actions = [Action::Put, Action::Get, Action::Notify, Action::Atomic(atomic)];
    let action = actions[dice.below(4) as usize];
    let offset = if dice.percent(80) { dice.below(LEN) & !7 } else { dice.word() & !7 };
    let classes = Classes::from_bits_truncate(dice.word() as u8);
    let len = if action == Action::Put { 0 } else { 8 };
    let claim = Claim { key, offset, len };
    let command = Command { action, classes, tag: 1, value: 2, claim };
    let mut words = Request { command, cookie: 0 }.encode();
    if dice.percent(20) {
        words[dice.below(6) as usize] ^= 1 << dice.below(64);
    }
    let len = if lane == LaneName::Commands { 48 } else { dice.below(49) as usize };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
    if action == Action::Put || dice.percent(5) {
        bytes.resize(len + dice.below(300) as usize, 0x55);
    }
    (lane, Entry { kind, tag: dice.word() as u32, bytes })
}

/// A notification for the liar, which may claim anything of it.
fn note(key: Key) -> Order<usize> {
    let claim = Claim { key, offset: 0, len: 0 };
    let (action, classes) = (Action::Notify, Classes::REQUESTER);
    let command = Command { action, classes, tag: 1, value: 2, claim };
    Order { command, shape: Shape::contiguous(0), local: None }
}

fn word(dice: &mut Dice) -> (WordName, u64) {
    let lines = WordName::Lines(lane(dice).0);
    let word = [WordName::Done, WordName::Noted, lines][dice.below(3) as usize];
    (word, if dice.percent(98) { dice.below(2) } else { dice.word() })
}

// spec: ERR-4, ERR-5, ERR-6, QUE-8, CAP-2, LANE-8, LANE-10, LIFE-18, WIRE-9
#[test]
fn a_hostile_local_peer_does_not_disturb_others() {
    let (mut ends, mut queues) = (0, 0);
    for seed in 0..seeds(200) {
        let mut dice = Dice(seed);
        let (mut node, mut program) = (Node::new(2, TABLE_SLOTS), Program::new(2));
        let ways = Network::new([(); PATHS].map(|()| Plan::NONE));
        let mut net = Net::new(ways, [2000; PATHS], Dice(seed));
        for peer in [LIAR, HONEST] {
            node.join(id(peer), &LINES);
            let number = node.offer_queue(id(peer), 7, 40).expect("a queue");
            assert_eq!(number, 0);
        }
        let (rights, len) = (Rights::all(), LEN);
        let cover = Cover { holder: id(LIAR), rights, region: LIAR as u16, base: BASE, len };
        let key = node.share(cover).expect("a free slot");
        let (mut last, mut closed) = (None, 0);
        for now in 0..300 {
            let mut wire = net.at(LIAR, now);
            let host = &mut Host { program: &mut program, wire: &mut wire };
            match dice.below(10) {
                0 => {
                    let (word, value) = word(&mut dice);
                    node.on_word(id(LIAR), word, value, host);
                }
                1 if dice.percent(10) => {
                    let lines = if dice.percent(50) { 40 } else { dice.word() };
                    let words = [7, lines, dice.below(3), 0, 0, 0, 0];
                    let kinds = [OfferKind::Queue, OfferKind::Region, OfferKind::Inlet];
                    let kind = kinds[dice.below(3) as usize];
                    node.on_offer(id(LIAR), Offer { kind, words }, host);
                }
                _ => {
                    let (lane, record) = record(&mut dice, key);
                    node.on_record(id(LIAR), lane, &record, host);
                }
            }
            node.on_time(now, host);
            let _ = node.receive(id(LIAR), host);
            let _ = node.notification();
            let before = node.malformed();
            let record = node.dequeue(id(LIAR), 0);
            assert!(record.is_none_or(|record| !record.is_empty()), "a record has bytes");
            closed += node.malformed() - before;
            let peer = node.peer(id(LIAR)).expect("it was connected");
            let executed = peer.ended().map(|_| peer.target().executed());
            assert!(last.is_none() || last == executed, "nothing is done for who has gone");
            last = executed;
            if dice.percent(10) {
                let _ = node.post(id(LIAR), note(key), &program);
            }
        }
        let gone = node.peer(id(LIAR)).expect("it was connected").ended();
        assert!(gone.is_none_or(|why| why == Fault::Malformed), "{gone:?}");
        assert!(closed <= 1, "of a queue that is bad nothing more is taken");
        assert_eq!(node.malformed(), u64::from(gone.is_some()) + closed);
        ends += u64::from(gone.is_some());
        queues += closed;
        assert_eq!(node.peer(id(HONEST)).expect("it was connected").ended(), None);
        assert_eq!(node.send(id(HONEST), 1, b"still here"), Ok(()));
        let memory = &program.shared[LIAR].memory;
        let (first, last) = (&memory[..BASE as usize], &memory[(BASE + LEN) as usize..]);
        let mut others = first.iter().chain(last).chain(&program.shared[HONEST].memory);
        assert!(others.all(|byte| *byte == NOTHING), "seed {seed}");
    }
    assert!(ends > seeds(200) / 10 && queues > 0, "{ends} connections ended, {queues} queues");
}

// spec: LIM-1, WIRE-9
#[test]
fn offers_are_bounded_while_the_peer_takes_none() {
    let mut node = Node::new(1, TABLE_SLOTS);
    node.connect(id(LIAR), &LINES, link(1, LIAR, [1, 1], 0));
    let region = Offer { kind: OfferKind::Region, words: [0; 7] };
    let refused = Err(PostError::Refused(Refused::NoRoom));
    let offered = (0..2 * QUEUES_MAX).take_while(|_| node.offer(id(LIAR), region) != refused);
    assert_eq!(offered.count(), QUEUES_MAX);
    assert_eq!(node.offer_queue(id(LIAR), 7, 40), Err(Fault::Malformed));
    let queue = Offer { kind: OfferKind::Queue, words: [0; 7] };
    assert_eq!(node.offer(id(LIAR), queue), Err(PostError::Fault(Fault::Malformed)));
}
