//! The lanes of a port, which the tests write and read, and their far side.
use super::*;
use crate::mem::fence::Fencing;
use crate::mem::layout::LaneSizes;
use crate::mem::page::{OwnPage, PeerPage};
use crate::peer::packet::Arrival;
use crate::sync::AtomicBool;
use crate::sys::bell::Bell;
use crate::target::Served;
use ayre_proto::command::Head;

const SIZES: LaneSizes = LaneSizes { paired: 32, response: 32, ring: 4096 };
const PEER: PeerId = PeerId(3);

/// A port's directions, the far side of them, and its responder, who knows the peer but no memory.
fn port() -> (Direction, Direction, (FarSide, Performer)) {
    let mapping = Arc::new(Mapping::of_words(vec![0; SIZES.file_len() / 8]));
    let (out, inward) = Direction::pair(&mapping, SIZES);
    let mail = Mail::new(&Arc::new(AtomicBool::new(false)));
    let responder = Arc::new(Mutex::new(Responder::new(Arc::default())));
    let link = Arc::new(link(mail.clone()));
    lock(&responder).add(Served::carried(PEER, link.clone(), &inward, Arc::default()));
    let lanes = FarSide::new((&out, &inward), mail);
    (out, inward, (lanes, Performer { peer: PEER, link, responder }))
}

fn link(mail: Mail) -> Link {
    let page = PeerPage::new(OwnPage::new().unwrap().file()).unwrap();
    let (control, waker) = (
        crate::peer::control::Channel::Mail(mail),
        crate::peer::contact::Waker::Bell(Bell::new().unwrap().into()),
    );
    Link { control, page, waker, fencing: Fencing::Symmetric }
}

/// Where each answer has room.
#[derive(Default)]
struct Answers(Vec<Head>);

impl Exchange for Answers {
    fn bring(&mut self, _: &mut [u8]) {}

    fn deposit(&mut self, _: usize, _: impl FnOnce(&[u8])) {}

    fn longest(&self) -> usize {
        1024
    }

    fn has_room(&mut self, _: usize) -> bool {
        true
    }

    fn answer(&mut self, head: Head, _: usize, _: impl FnOnce(&mut [u8])) {
        self.0.push(head);
    }
}

// spec: WIRE-2
#[test]
fn a_command_waits_until_its_connection_is_served() {
    let (_, inward, (lanes, mut performer)) = port();
    let (words, mut answers) = ([0; 6], Answers::default());
    lock(&performer.responder).remove(PEER);
    assert_eq!(performer.perform((&words, 0), &mut answers), Ok(false));
    let other = Arc::new(link(lanes.mail.clone()));
    let served = Served::carried(PEER, other.clone(), &inward, Arc::default());
    lock(&performer.responder).add(served);
    assert_eq!(performer.perform((&words, 0), &mut answers), Ok(false), "another's number");
    assert!(!performer.place((&words, &[])), "nor is its data put in place");
    performer.link = other;
    assert_eq!(performer.perform((&words, 0), &mut answers), Ok(true));
    assert_eq!(answers.0.len(), 1, "there is no such operation");
    assert_eq!(lanes.done(), 1);
}

// spec: WIRE-3
#[test]
fn lines_come_back_when_they_are_given_back() {
    let (out, _, (mut lanes, _)) = port();
    let mut messages = out.messages().sender();
    let mut send = || messages.push((Kind::GatedMessage, 4), [0], &[1]).is_ok();
    let sent = std::iter::repeat_with(&mut send).take_while(|sent| *sent).count();
    for _ in 0..sent {
        let status = lanes.head(TxLane::Messages).unwrap().unwrap();
        let mut bytes = [0; 9];
        lanes.copy(TxLane::Messages, &mut bytes);
        assert_eq!((status.tag, status.len, bytes[8]), (4, 9, 1));
        lanes.pass(TxLane::Messages, &status);
    }
    assert!(lanes.head(TxLane::Messages).is_none());
    assert!(!send(), "passed on is not given back");
    assert_eq!(lanes.give_back(TxLane::Messages, 8), Ok(()));
    assert_eq!(std::iter::repeat_with(&mut send).take(9).filter(|sent| *sent).count(), 8);
    assert_eq!(lanes.give_back(TxLane::Messages, 4), Err(Malformed), "given back stays so");
}

// spec: WIRE-3
#[test]
fn arriving_records_are_published_until_the_lane_is_full() {
    let (_, inward, (mut lanes, _)) = port();
    let mut answers = inward.responses().receiver();
    let mut publish = || lanes.publish(RxLane::Responses, (Kind::Response, 0), &[5; 16]);
    let had_room = std::iter::repeat_with(&mut publish).take_while(Result::is_ok).count();
    assert_eq!(had_room, SIZES.response as usize);
    for _ in 0..SIZES.response / 4 {
        let status = answers.peek().unwrap().unwrap();
        answers.consume(&status);
    }
    assert_eq!(publish(), Ok(()));
    let came = inward.messages().receiver();
    assert_eq!(lanes.publish(RxLane::Messages, (Kind::GatedMessage, 9), &[6; 9]), Ok(()));
    let status = came.peek().unwrap().unwrap();
    assert_eq!((status.tag, status.len), (9, 9));
    assert_eq!(lanes.given_back(RxLane::Messages), 0);
}

// spec: WIRE-14
#[test]
fn rings_are_passed_on_byte_for_byte_and_given_back_by_lines() {
    let (out, inward, (mut lanes, _)) = port();
    let mut ring = out.ring().unwrap().sender_of_all();
    assert_eq!((ring.write(&[7; 130]), ring.write(&[8; 10])), (Some(0), Some(192)));
    assert_eq!((lanes.ring_lines(), lanes.ring_left()), (64, 256), "each piece fills its lines");
    let mut bytes = [0; 256];
    lanes.pass_ring(&mut bytes);
    assert_eq!((&bytes[..130], &bytes[192..202]), (&[7; 130][..], &[8; 10][..]));
    assert!(lanes.ring_left() == 0 && lanes.give_back_ring(4).is_ok());
    assert_eq!(lanes.give_back_ring(5), Err(Malformed), "that was not passed on");
    assert_eq!(lanes.place_ring(&[3; 4096]), Ok(()));
    assert_eq!(lanes.place_ring(&[3]), Err(Malformed), "nothing was taken");
    let (mut reader, mut into) = (inward.ring().unwrap().receiver(), [0; 1024]);
    reader.take(0, 1024, &mut into).unwrap();
    assert_eq!((into, lanes.ring_given_back()), ([3; 1024], 16));
}

// spec: WIRE-4
#[test]
fn words_of_either_side_are_read_and_written_where_its_port_has_them() {
    let (out, inward, (mut lanes, _)) = port();
    let all = [(&inward, Control::Done), (&inward, Control::Noted), (&out, Control::Barrier)];
    for (number, (direction, control)) in (1..).zip(all) {
        // Relaxed: there is one thread.
        direction.control(control).store(number, Ordering::Relaxed);
    }
    assert_eq!((lanes.done(), lanes.noted(), lanes.barrier()), (1, 2, 3));
    lanes.set_done(4);
    lanes.set_noted(5);
    lanes.set_barrier(6);
    let all = [(&out, Control::Done), (&out, Control::Noted), (&inward, Control::Barrier)];
    // Relaxed: as above.
    let told = all.map(|(direction, word)| direction.control(word).load(Ordering::Relaxed));
    assert_eq!(told, [4, 5, 6]);
}

fn next(mail: &Mail) -> Packet {
    match mail.receive() {
        Arrival::Packet(packet) => packet,
        other => panic!("{other:?} instead of an offer"),
    }
}

/// A queue that a peer offers is made here, and its file handed to the port, as if it had come from
/// a peer of this host.
// spec: WIRE-5
#[test]
fn a_queue_is_made_where_its_producer_is_and_joined_where_its_consumer_is() {
    let (mut there, mut here) = (port().2.0, port().2.0);
    let offer = Offer { kind: OfferKind::Queue, words: [7, 64, 0, 0, 0, 0, 0] };
    assert!(here.make_queue(0, offer));
    let packet = next(here.mail());
    assert_eq!((packet.kind, packet.words), (PacketKind::OfferQueue, offer.words));
    let mapping = Mapping::foreign(packet.fds[0].as_fd(), queue::file_len(64), true).unwrap();
    let mut producer = queue::lane(&Arc::new(mapping), 64).sender();
    producer.push((Kind::Record, 0), [], &[1; 90]).unwrap();
    let lane = TxLane::Queue(0);
    assert_eq!(here.head(lane).unwrap().unwrap().len, 90);

    there.mail().send(packet).unwrap();
    assert_eq!(there.offer(), Some(offer));
    assert_eq!(there.offer(), Some(offer), "it stays until it is passed on");
    assert!(there.join_queue(0));
    there.pass_offer();
    assert_eq!(there.offer(), None);
    let lane = RxLane::Queue(0);
    assert_eq!(there.publish(lane, (Kind::Record, 0), &[2; 1000]), Ok(()));
    assert_eq!(there.given_back(lane), 0);
}

// spec: WIRE-1
#[test]
fn only_offers_pass_through_the_mailbox() {
    let (_, _, (mut lanes, _)) = port();
    let kinds = [PacketKind::Bye, PacketKind::OfferRegion, PacketKind::OfferInlet];
    for kind in kinds {
        lanes.mail().send(Packet { kind, words: [kind as u64; 7], fds: vec![] }).unwrap();
    }
    for (kind, packet) in [(OfferKind::Region, kinds[1]), (OfferKind::Inlet, kinds[2])] {
        let offer = Offer { kind, words: [packet as u64; 7] };
        assert_eq!(lanes.offer(), Some(offer));
        lanes.pass_offer();
        lanes.deliver(offer);
        let came = next(lanes.mail());
        assert_eq!((came.kind, came.words), (packet, offer.words));
    }
    assert_eq!(lanes.offer(), None);
}
