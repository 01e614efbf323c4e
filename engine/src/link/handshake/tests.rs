//! Handshakes between holders of a key, senders without it, and an attacker that changes datagrams
//! under way.
use super::super::seal::{PREFIX_BYTES, TAG_BYTES};
use super::*;
use crate::net::chance::Chance;
use ayre_proto::link::frame::HEADER_BYTES;
use proptest::prelude::*;
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::cell::Cell;

thread_local! {
    /// Key exchanges and key pairs that handshakes of this thread have computed.
    static CURVE: Cell<u32> = const { Cell::new(0) };
    /// Messages 1 that were deciphered by hand, and handshakes that were begun.
    static READS: Cell<u32> = const { Cell::new(0) };
    static BEGUN: Cell<u32> = const { Cell::new(0) };
}

pub(super) fn count_read() {
    READS.set(READS.get() + 1);
}

pub(super) fn with_primitives(protocol: NoiseParams) -> Builder<'static> {
    BEGUN.set(BEGUN.get() + 1);
    Builder::with_resolver(protocol, Box::new(Counting))
}

/// Gives what handshakes are computed with, and counts what is dear of it.
struct Counting;

impl CryptoResolver for Counting {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        DefaultResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(CountingDh(DefaultResolver.resolve_dh(choice)?)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

struct CountingDh(Box<dyn Dh>);

impl Dh for CountingDh {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, private: &[u8]) {
        self.0.set(private);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        CURVE.set(CURVE.get() + 1);
        self.0.generate(rng)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        CURVE.set(CURVE.get() + 1);
        self.0.dh(public, out)
    }
}

/// Operations on the curve that `work` computes.
pub(crate) fn curve_operations(work: impl FnOnce()) -> u32 {
    let before = CURVE.get();
    work();
    CURVE.get() - before
}

/// Both ends of a link, and the messages that made them.
fn shake(key: &Terms) -> ([Keys; 2], [Vec<u8>; 2]) {
    let (mut opening, first) = Opening::begin(key, b"ours");
    let (theirs, answer) = respond(key, &first).expect("one key");
    assert_eq!(theirs, b"ours");
    let (second, there) = answer.answer(b"theirs and longer");
    let (theirs, here) = opening.finish(&second).expect("one key");
    assert_eq!(theirs, b"theirs and longer");
    ([here, there], [first, second])
}

/// A frame of nothing but what its prefix repeats, in a datagram.
fn datagram(packet: u64) -> Vec<u8> {
    let mut bytes = vec![0; PREFIX_BYTES + HEADER_BYTES + TAG_BYTES];
    bytes[16 + 24..16 + 32].copy_from_slice(&packet.to_le_bytes());
    bytes
}

fn are_joined(from: &mut Keys, to: &mut Keys, packet: u64) -> bool {
    let mut bytes = datagram(packet);
    from.seal(0, packet, &mut bytes);
    to.open(&mut bytes).is_ok()
}

// spec: SEAL-7
#[test]
fn both_sides_get_set_up_and_keys() {
    let key = Terms::from(JobKey::random());
    let ([mut here, mut there], messages) = shake(&key);
    assert!(are_joined(&mut here, &mut there, 1));
    assert!(are_joined(&mut there, &mut here, 1));
    assert_eq!(messages.map(|message| message.len() - OVERHEAD_BYTES), [4, 17]);
}

// spec: SEAL-7
#[test]
fn links_of_one_job_have_keys_of_their_own() {
    let key = Terms::from(JobKey::random());
    let ([mut here, mut there], _) = shake(&key);
    let ([mut other, mut another], _) = shake(&key);
    assert!(!are_joined(&mut here, &mut another, 1));
    assert!(!are_joined(&mut other, &mut there, 1));
    assert!(are_joined(&mut here, &mut there, 2));
}

// spec: SEAL-7
#[test]
fn set_up_does_not_travel_in_the_clear() {
    let set_up = [0xa5; 24];
    let (_, first) = Opening::begin(&Terms::from(JobKey::random()), &set_up);
    assert!(!first.windows(4).any(|bytes| bytes == [0xa5; 4]));
}

// spec: SEAL-8
#[test]
fn a_set_up_cannot_be_opened_with_another_key() {
    let (mut opening, first) = Opening::begin(&Terms::from(JobKey::random()), b"ours");
    let stranger = Terms::from(JobKey::random());
    assert_eq!(respond(&stranger, &first).expect_err("another key"), Forged);
    let (_, for_stranger) = Opening::begin(&stranger, b"");
    let (_, answer) = respond(&stranger, &for_stranger).expect("one key");
    let (second, _) = answer.answer(b"");
    assert_eq!(opening.finish(&second).expect_err("another key"), Forged);
}

const SET_UP: [u8; SETUP_BYTES] = [0xa5; SETUP_BYTES];

// spec: SEAL-7, SEAL-9
#[test]
fn an_open_is_read_without_an_operation_on_the_curve() {
    let key = Terms::from(JobKey::random());
    let reader = OpenReader::new(&key);
    let (_, first) = Opening::begin(&key, &SET_UP);
    assert_eq!(first.len(), MESSAGE_BYTES);
    let mut read = None;
    assert_eq!(curve_operations(|| read = reader.read(&first).ok()), 0);
    assert_eq!(read, Some(Said { set_up: SET_UP, by: None }));
    let mut answer = None;
    let to_read = curve_operations(|| answer = respond(&key, &first).ok());
    let (theirs, answer) = answer.expect("one key");
    assert_eq!(theirs, SET_UP, "as the library reads it");
    let to_answer = curve_operations(|| drop(answer.answer(&SET_UP)));
    assert_eq!((to_read, to_answer), (0, 2), "a key pair and an exchange: the count counts");
}

/// A sender without the key costs at most the decryption of one message of the length of an open,
/// whatever it sends. No handshake is begun for it.
// spec: SEAL-9
#[test]
fn a_stranger_costs_a_look_at_the_length_or_a_tag() {
    let key = Terms::from(JobKey::random());
    let reader = OpenReader::new(&key);
    let (_, foreign) = Opening::begin(&Terms::from(JobKey::random()), &SET_UP);
    let (_, mut damaged) = Opening::begin(&key, &SET_UP);
    damaged[40] ^= 1;
    let strange = [foreign, damaged, vec![0xff; MESSAGE_BYTES]];
    let begun = BEGUN.get();
    for message in strange {
        assert_eq!(reader.read(&message), Err(Forged));
    }
    let reads = READS.get();
    let lengths = [0, 48, SETUP_BYTES, MESSAGE_BYTES - 1, MESSAGE_BYTES + 1, 1400, MESSAGE_MAX];
    for len in lengths {
        assert_eq!(reader.read(&vec![0; len]), Err(Forged));
    }
    assert_eq!(READS.get(), reads, "another length is not looked at");
    assert_eq!(BEGUN.get(), begun, "no handshake for a stranger");
}

/// An endpoint, and what one asks that calls it.
fn endpoint(key: &JobKey) -> (Terms, Arc<StaticKey>) {
    let own = Arc::new(StaticKey::new(&Chance::System));
    (Terms::of_endpoint(key.clone(), Some(own.clone())), own)
}

/// Both ends hold what makes of an address: each proves besides who it is.
// spec: SEAL-9, SEAL-18
#[test]
fn endpoints_prove_their_identity_to_each_other() {
    let (caller, own) = endpoint(&JobKey::random());
    let (callee, called) = endpoint(&JobKey::random());
    let terms = caller.to_call(&callee, called.fingerprint());
    let (mut opening, first) = Opening::begin(&terms, &SET_UP);
    assert_eq!(first.len(), MUTUAL_BYTES);
    let said = Said { set_up: SET_UP, by: Some(own.fingerprint()) };
    let reader = OpenReader::new(&callee);
    let mut read = Err(Forged);
    assert_eq!(curve_operations(|| read = reader.read(&first)), 0);
    assert_eq!(read, Ok(said));
    let (theirs, answer) = respond(&callee, &first).expect("one key");
    assert_eq!(theirs, SET_UP, "as the library reads it");
    let mut answered = None;
    assert_eq!(curve_operations(|| answered = Some(answer.answer(&SET_UP))), 4);
    let (second, mut there) = answered.expect("an answer");
    assert_eq!(second.len(), first.len(), "no answer is longer than what it answers");
    let (theirs, mut here) = opening.finish(&second).expect("who was called");
    assert_eq!(theirs, SET_UP);
    assert!(are_joined(&mut here, &mut there, 1) && are_joined(&mut there, &mut here, 1));
    for bit in 0..8 * first.len() {
        let mut changed = first.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(reader.read(&changed), Err(Forged), "bit {bit}");
    }
}

/// Somebody has read the address, and so has the key that is made of it; he sees the open, and his
/// answer comes first.
// spec: SEAL-8, SEAL-18
#[test]
fn knowing_an_address_does_not_allow_answering_for_its_endpoint() {
    let key = JobKey::random();
    let (caller, _) = endpoint(&JobKey::random());
    let (callee, called) = endpoint(&key);
    let (reader, _) = endpoint(&key);
    let (mut opening, first) =
        Opening::begin(&caller.to_call(&callee, called.fingerprint()), &SET_UP);
    let (read, forged) = respond(&reader, &first).expect("he can read what it says");
    assert_eq!(read, SET_UP);
    let (forged, _) = forged.answer(&SET_UP);
    for _ in 0..2 {
        assert_eq!(opening.finish(&forged).expect_err("another key"), Forged);
    }
    let (_, answer) = respond(&callee, &first).expect("one key");
    let (second, mut there) = answer.answer(&SET_UP);
    let (_, mut here) = opening.finish(&second).expect("the true one");
    assert!(are_joined(&mut here, &mut there, 1) && are_joined(&mut there, &mut here, 1));
    assert!(opening.finish(&second).is_err(), "there is no second link from one handshake");
}

/// A caller must have the key that it names: the keys of the link are made with it.
// spec: SEAL-18
#[test]
fn knowing_a_public_key_does_not_allow_a_link_in_its_name() {
    let key = JobKey::random();
    let (callee, called) = endpoint(&key);
    let (caller, own) = endpoint(&JobKey::random());
    // The true one's open, sent again by somebody who can read it and has all but its key.
    let (_, first) = Opening::begin(&caller.to_call(&callee, called.fingerprint()), &SET_UP);
    let (_, answer) = respond(&callee, &first).expect("one key");
    let (second, mut there) = answer.answer(&SET_UP);
    assert_eq!(
        OpenReader::new(&callee).read(&first).map(|said| said.by),
        Ok(Some(own.fingerprint()))
    );
    let (thief, _) = endpoint(&key);
    let (mut opening, _) = Opening::begin(&thief.to_call(&callee, called.fingerprint()), &SET_UP);
    assert!(opening.finish(&second).is_err());
    assert!(there.open(&mut datagram(1)).is_err());
}

// spec: SEAL-9, OPEN-27
#[test]
fn an_open_of_the_other_kind_is_not_deciphered() {
    let key = JobKey::random();
    let (endpoint, called) = endpoint(&key);
    let port = Terms::from(key);
    let (_, of_port) = Opening::begin(&port, &SET_UP);
    let (_, of_endpoint) =
        Opening::begin(&endpoint.to_call(&endpoint, called.fingerprint()), &SET_UP);
    let reads = READS.get();
    assert_eq!(OpenReader::new(&endpoint).read(&of_port), Err(Forged));
    assert_eq!(OpenReader::new(&port).read(&of_endpoint), Err(Forged));
    assert_eq!(READS.get(), reads);
}

// spec: OPEN-23
#[test]
fn a_proof_is_of_one_key_one_open_and_one_answer() {
    let key = JobKey::from_bytes([7; KEY_BYTES]);
    let true_one = proof(&key, 1, [2, 3]);
    let others = [
        proof(&JobKey::from_bytes([8; KEY_BYTES]), 1, [2, 3]),
        proof(&key, 2, [2, 3]),
        proof(&key, 1, [3, 3]),
        proof(&key, 1, [2, 2]),
    ];
    assert!(others.iter().all(|other| other[0] != true_one[0] && other[1] != true_one[1]));
    // As any other tool computes it.
    assert_eq!(true_one, [0xfee1_49c4_7ba8_e6db, 0x769c_90fc_c75e_0796]);
}

// spec: SEAL-8
#[test]
fn a_forged_accept_does_not_spoil_the_opening() {
    let key = Terms::from(JobKey::random());
    let (mut opening, first) = Opening::begin(&key, b"ours");
    let (_, answer) = respond(&key, &first).expect("one key");
    let (second, mut there) = answer.answer(b"theirs");
    let mut flipped = second.clone();
    flipped[3] ^= 4;
    let mut cut = second.clone();
    cut.pop();
    let forged = [vec![], vec![0; 47], flipped, cut, first, vec![7; 48], vec![7; MESSAGE_MAX + 1]];
    for message in &forged {
        assert_eq!(opening.finish(message).expect_err("forged"), Forged);
    }
    let (theirs, mut here) = opening.finish(&second).expect("the true one");
    assert_eq!(theirs, b"theirs");
    assert!(are_joined(&mut here, &mut there, 1) && are_joined(&mut there, &mut here, 1));
    assert!(opening.finish(&second).is_err(), "there is no second link from one handshake");
}

// spec: SEAL-7
#[test]
fn an_open_that_is_answered_anew_has_other_keys() {
    let key = Terms::from(JobKey::random());
    let (mut opening, first) = Opening::begin(&key, b"ours");
    let (_, kept) = respond(&key, &first).expect("one key");
    let (_, replayed) = respond(&key, &first).expect("one key");
    let (second, mut there) = kept.answer(b"theirs");
    let (_, mut elsewhere) = replayed.answer(b"theirs");
    let (_, mut here) = opening.finish(&second).expect("one key");
    assert!(!are_joined(&mut here, &mut elsewhere, 1), "who replays an open gets no link");
    assert!(are_joined(&mut here, &mut there, 2));
}

#[test]
fn a_key_converts_to_hex_and_debug_output_hides_it() {
    let key = JobKey::random();
    let text = key.to_hex();
    let read = JobKey::from_hex(&text).expect("what was written");
    assert_eq!(read.0, key.0);
    assert_eq!(JobKey::from_hex(&text.to_uppercase()).expect("either case").0, key.0);
    assert_ne!(JobKey::random().0, key.0);
    let terms = Terms::from(key.clone());
    let (opening, first) = Opening::begin(&terms, b"");
    let (_, answer) = respond(&terms, &first).expect("one key");
    let printed = format!("{key:?} {terms:?} {opening:?} {answer:?} {:?}", OpenReader::new(&terms));
    let digits: Vec<_> = key.0.iter().map(|byte| byte.to_string()).collect();
    assert!(!printed.contains(&*text) && !printed.contains(&digits.join(", ")), "{printed}");
}

#[test]
fn a_malformed_key_is_refused() {
    let text = JobKey::random().to_hex();
    let mut other_letter = text.to_string();
    other_letter.replace_range(10..11, "g");
    let not_ascii = format!("{}é", &text[2..]);
    for wrong in ["", &text[1..], &text[2..], &format!("{}00", *text), &other_letter, &not_ascii] {
        assert!(JobKey::from_hex(wrong).is_none(), "{wrong}");
    }
    assert!(JobKey::from_hex(&format!("+{}", &text[1..])).is_none(), "a sign is no digit");
}

proptest! {
    // spec: SEAL-8
    #[test]
    fn any_change_of_a_message_is_noticed(bit in 0usize..8 * 52, second in any::<bool>()) {
        let key = Terms::from(JobKey::from_hex(&"5a".repeat(32)).expect("a key"));
        let (mut opening, mut first) = Opening::begin(&key, b"ours");
        if second {
            let (_, answer) = respond(&key, &first).expect("one key");
            let (mut accept, _) = answer.answer(b"them");
            accept[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(opening.finish(&accept).is_err());
        } else {
            first[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(respond(&key, &first).is_err());
        }
    }

    // spec: SEAL-8, SEAL-9
    #[test]
    fn the_gate_accepts_the_same_opens_as_the_library(
        bit in prop::option::of(0usize..8 * MESSAGE_BYTES),
        set_up in prop::array::uniform32(any::<u8>()),
    ) {
        let key = Terms::from(JobKey::from_hex(&"5a".repeat(32)).expect("a key"));
        let set_up: [u8; SETUP_BYTES] = set_up.repeat(4).try_into().expect("four times");
        let (_, mut first) = Opening::begin(&key, &set_up);
        if let Some(bit) = bit {
            first[bit / 8] ^= 1 << (bit % 8);
        }
        let read = OpenReader::new(&key).read(&first);
        prop_assert_eq!(read.is_ok(), bit.is_none());
        let respond = respond(&key, &first).map(|(read, _)| read);
        prop_assert_eq!(respond.ok(), read.ok().map(|read| read.set_up.to_vec()));
    }

    // spec: SEAL-8
    #[test]
    fn reading_is_total(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let key = Terms::from(JobKey::from_hex(&"5a".repeat(32)).expect("a key"));
        prop_assert!(respond(&key, &bytes).is_err() && OpenReader::new(&key).read(&bytes).is_err());
        let (mut opening, _) = Opening::begin(&key, b"ours");
        prop_assert!(opening.finish(&bytes).is_err());
    }
}
