//! Sealed frames come out as they went in, and nothing else comes out.
use super::*;
use proptest::prelude::*;

const SHORTEST: usize = PREFIX_BYTES + HEADER_BYTES + TAG_BYTES;
const TURN: u64 = 1 << EPOCH_BITS;
const TO: u32 = 7;

/// Both ends of a link.
fn pair() -> (Keys, Keys) {
    pair_of(1)
}

fn pair_of(link: u8) -> (Keys, Keys) {
    let secrets = [[link; KEY_BYTES], [link ^ 0x80; KEY_BYTES]];
    (Keys::new(&secrets[0], &secrets[1]), Keys::new(&secrets[1], &secrets[0]))
}

/// A frame with this payload.
fn frame(packet: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x5c; HEADER_BYTES];
    frame[FRAME_TO..FRAME_TO + 4].copy_from_slice(&TO.to_le_bytes());
    frame[FRAME_PACKET..FRAME_PACKET + 8].copy_from_slice(&packet.to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn sealed(keys: &mut Keys, packet: u64, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; PREFIX_BYTES];
    datagram.extend_from_slice(&frame(packet, payload));
    datagram.extend_from_slice(&[0; TAG_BYTES]);
    keys.seal(TO, packet, &mut datagram);
    datagram
}

/// Whether the frame comes out as it went in.
fn opens(keys: &mut Keys, packet: u64, mut datagram: Vec<u8>) -> bool {
    match keys.open(&mut datagram) {
        Ok(opened) => {
            assert_eq!(*opened, frame(packet, b"payload"));
            true
        }
        Err(Forged) => false,
    }
}

/// Seals packets, and what has been sealed under each number.
fn sealed_all(keys: &mut Keys, packets: &[u64]) -> Vec<Vec<u8>> {
    packets.iter().map(|packet| sealed(keys, *packet, b"payload")).collect()
}

// spec: SEAL-1
#[test]
fn a_datagram_has_the_bytes_of_the_specification() {
    let (mut here, _) = pair();
    let datagram = sealed(&mut here, 0x0102, b"payload");
    assert_eq!(datagram.len(), SHORTEST + 7);
    assert_eq!(datagram[..16], [2, 0, 0, 0, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sealed_for(&datagram), Some(TO));
}

/// Opens a datagram by another implementation. Its features are those that handshakes need: the
/// library would be compiled twice otherwise, with tests and without.
fn opened(secret: [u8; KEY_BYTES], number: u64, datagram: &[u8]) -> Option<Vec<u8>> {
    use aes_gcm::aead::{AeadInPlace, KeyInit};
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    let (aad, sealed) = datagram.split_at(PREFIX_BYTES);
    let (content, tag) = sealed.split_at(sealed.len() - TAG_BYTES);
    let mut content = content.to_vec();
    let cipher = aes_gcm::Aes256Gcm::new(&secret.into());
    cipher.decrypt_in_place_detached(&nonce.into(), aad, &mut content, tag.into()).ok()?;
    Some(content)
}

// spec: SEAL-2
#[test]
fn another_implementation_opens_it() {
    let (mut here, _) = pair();
    let datagram = sealed(&mut here, 5, b"payload");
    assert_eq!(opened([1; KEY_BYTES], 5, &datagram), Some(frame(5, b"payload")));
    assert_eq!(opened([2; KEY_BYTES], 5, &datagram), None);
}

// spec: SEAL-5
#[test]
fn the_next_key_is_that_of_noise() {
    use aes_gcm::aead::{AeadInPlace, KeyInit};
    let mut nonce = [0; 12];
    nonce[4..].fill(0xff);
    let mut next = [0; KEY_BYTES];
    let first = aes_gcm::Aes256Gcm::new(&[1; KEY_BYTES].into());
    first.encrypt_in_place_detached(&nonce.into(), &[], &mut next).expect("short");
    let (mut here, _) = pair();
    let datagram = sealed(&mut here, TURN, b"payload");
    assert_eq!(opened(next, TURN, &datagram), Some(frame(TURN, b"payload")));
}

// spec: SEAL-3
#[test]
fn a_direction_does_not_open_its_own_datagrams() {
    let (mut here, mut there) = pair();
    let datagram = sealed(&mut here, 1, b"payload");
    assert!(!opens(&mut here, 1, datagram.clone()), "reflected");
    assert!(opens(&mut there, 1, datagram));
}

// spec: SEAL-3
#[test]
fn a_link_does_not_open_those_of_another() {
    let (mut here, _) = pair();
    let (_, mut other) = pair_of(2);
    assert!(!opens(&mut other, 1, sealed(&mut here, 1, b"payload")));
}

// spec: SEAL-4
#[test]
fn a_header_that_contradicts_its_prefix_is_refused() {
    let (_, mut there) = pair();
    let key = Key::new(&[1; KEY_BYTES]);
    for (to, packet, is_right) in [(TO, 4, true), (TO + 1, 4, false), (TO, 5, false)] {
        let prefix = prefix(TO, 4);
        let mut frame = frame(packet, b"");
        frame[FRAME_TO..FRAME_TO + 4].copy_from_slice(&to.to_le_bytes());
        let tag = key.seal(4, prefix, &mut frame);
        let mut datagram = [&prefix[..], &frame, &tag].concat();
        assert_eq!(there.open(&mut datagram).is_ok(), is_right, "{to} {packet}");
    }
}

#[test]
#[should_panic(expected = "never comes twice")]
fn a_packet_number_that_comes_twice_is_a_mistake() {
    let (mut here, _) = pair();
    sealed(&mut here, 1, b"payload");
    sealed(&mut here, 1, b"another");
}

// spec: SEAL-4
#[test]
fn a_datagram_too_short_for_a_seal_is_refused() {
    let (mut here, mut there) = pair();
    let datagram = sealed(&mut here, 1, b"payload");
    for len in 0..datagram.len() {
        assert_eq!(there.open(&mut datagram[..len].to_vec()), Err(Forged));
        assert_eq!(sealed_for(&datagram[..len]).is_some(), len >= SHORTEST);
    }
    let longer = [&datagram[..], &[0]].concat();
    assert!(!opens(&mut there, 1, longer));
    assert!(opens(&mut there, 1, datagram), "refusing changes nothing");
}

// spec: SEAL-1
#[test]
fn a_bare_frame_is_not_taken_for_a_sealed_one() {
    let (_, mut there) = pair();
    for kind in 0..16 {
        let mut bare = frame(1, &[0; 64]);
        bare[0] = 1 | kind << 4;
        assert_eq!(sealed_for(&bare), None);
        assert_eq!(there.open(&mut bare), Err(Forged));
    }
}

// spec: SEAL-5
#[test]
fn keys_turn_over_in_both_directions() {
    let (mut here, mut there) = pair();
    for packet in [1, TURN - 1, TURN, TURN + 1, 2 * TURN, 3 * TURN - 1, 3 * TURN + 9] {
        let datagram = sealed(&mut here, packet, b"payload");
        assert!(opens(&mut there, packet, datagram), "{packet}");
    }
    assert_eq!((there.inward.epoch, epoch(there.outward.last)), (3, 0), "each for itself");
    for packet in [2, TURN, 2 * TURN] {
        let datagram = sealed(&mut there, packet, b"payload");
        assert!(opens(&mut here, packet, datagram), "{packet}");
    }
}

// spec: SEAL-5
#[test]
fn packets_may_overtake_each_other_round_the_turn() {
    let (mut here, mut there) = pair();
    let packets = [TURN - 2, TURN - 1, TURN, TURN + 1, TURN + REPLAY_WINDOW - 1];
    let datagrams = sealed_all(&mut here, &packets);
    for index in [2, 0, 4, 1, 3] {
        assert!(opens(&mut there, packets[index], datagrams[index].clone()), "{index}");
    }
}

// spec: SEAL-6
#[test]
fn a_former_key_is_forgotten_once_the_link_is_past_it() {
    let (mut here, mut there) = pair();
    let packets = [TURN - 1, TURN, TURN + REPLAY_WINDOW];
    let [former, first, past] = <[_; 3]>::try_from(sealed_all(&mut here, &packets)).expect("three");
    assert!(opens(&mut there, packets[1], first));
    assert!(opens(&mut there, packets[0], former.clone()), "it may come late");
    assert!(opens(&mut there, packets[2], past));
    assert!(!opens(&mut there, packets[0], former));
    assert!(there.inward.former.is_none() && there.inward.next.is_none());
}

// spec: SEAL-5
#[test]
fn only_an_authentic_packet_turns_the_epoch() {
    let (mut here, mut there) = pair();
    let datagrams = sealed_all(&mut here, &[1, TURN - 1, TURN]);
    for claimed in [TURN, TURN + 1, 2 * TURN, 1 << 40, REKEY - 1, REKEY] {
        let mut forged = datagrams[0].clone();
        forged[8..PREFIX_BYTES].copy_from_slice(&claimed.to_le_bytes());
        assert!(!opens(&mut there, claimed, forged), "{claimed}");
        assert_eq!(there.inward.epoch, 0);
    }
    for (packet, datagram) in [1, TURN - 1, TURN].into_iter().zip(datagrams) {
        assert!(opens(&mut there, packet, datagram));
    }
    assert_eq!(there.inward.epoch, 1);
}

// spec: SEAL-5
#[test]
fn a_datagram_two_epochs_ahead_is_refused() {
    let (mut here, mut there) = pair();
    let datagrams = sealed_all(&mut here, &[1, TURN, 2 * TURN]);
    assert!(!opens(&mut there, 2 * TURN, datagrams[2].clone()), "the one between has not come");
    assert!(opens(&mut there, TURN, datagrams[1].clone()));
    assert!(opens(&mut there, 2 * TURN, datagrams[2].clone()));
    assert!(!opens(&mut there, 1, datagrams[0].clone()));
}

#[test]
fn keys_are_not_printed_and_move_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (here, _) = pair();
    assert_eq!(format!("{:?}", is_send(here)), "Keys { epochs: (0, 0), .. }");
}

proptest! {
    // spec: SEAL-2, SEAL-3
    #[test]
    fn a_sealed_datagram_opens_to_the_same_frame(
        payload in prop::collection::vec(any::<u8>(), 0..9000),
        packet in 1..2 * TURN,
    ) {
        let (mut here, mut there) = pair();
        let mut datagram = sealed(&mut here, packet, &payload);
        prop_assert_eq!(datagram.len(), SHORTEST + payload.len());
        prop_assert_eq!(there.open(&mut datagram), Ok(&mut frame(packet, &payload)[..]));
    }

    // spec: SEAL-2, SEAL-4
    #[test]
    fn any_flipped_bit_is_noticed(
        len in 0usize..200,
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let (mut here, mut there) = pair();
        let datagram = sealed(&mut here, 3, &vec![0xee; len]);
        let mut damaged = datagram.clone();
        damaged[at.index(datagram.len())] ^= 1_u8 << bit;
        prop_assert_eq!(there.open(&mut damaged), Err(Forged));
        prop_assert!(there.open(&mut datagram.clone()).is_ok());
    }

    // spec: SEAL-4
    #[test]
    fn opening_is_total(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        is_near in any::<bool>(),
    ) {
        let (_, mut there) = pair();
        if is_near && bytes.len() >= PREFIX_BYTES {
            bytes[..PREFIX_BYTES].copy_from_slice(&prefix(TO, 5));
        }
        prop_assert_eq!(there.open(&mut bytes), Err(Forged));
    }
}
