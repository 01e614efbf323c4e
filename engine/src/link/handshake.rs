//! The handshake of a link: both sides prove that they hold the job's key, and agree on keys that
//! nobody can work out later, not even from that key. Endpoints prove besides who they are.
//!
//! It is `Noise_NNpsk0_25519_AESGCM_SHA256`, of endpoints `Noise_IXpsk0_25519_AESGCM_SHA256`: two
//! messages, each with a set-up message inside.
//!
//! ```text
//!  opener                                            the other side
//!  begin(set-up)   -- 1: psk, e, (s), [set-up] --------------->  respond: a stranger ends here
//!  finish          <-- 2: e, ee, (se, s, es), [set-up] --------  answer(set-up)
//!  Keys            <== sealed datagrams ======================>  Keys
//! ```
use super::fingerprint::Fingerprint;
use super::identity::{PUBLIC_BYTES, PublicKey, StaticKey};
use super::seal::{Forged, KEY_BYTES, Keys, TAG_BYTES};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use ayre_proto::link::open::SETUP_BYTES;
use snow::{Builder, HandshakeState};
use std::fmt;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The protection of a port's links.
#[derive(Clone, Debug)]
pub(crate) enum Protection {
    /// Every frame is encrypted and authenticated, with keys that only those get who meet these
    /// terms.
    Sealed(Terms),
    /// For closed networks: nothing but tokens that nobody can guess.
    Plain,
}

/// Bytes that a message has beyond its set-up: a public key and a tag.
const OVERHEAD_BYTES: usize = PUBLIC_BYTES + TAG_BYTES;
/// Bytes that one has in which its sender says who he is: his key and a tag.
const STATIC_BYTES: usize = PUBLIC_BYTES + TAG_BYTES;
/// Bytes of a message with a set-up, of ports and of endpoints.
pub(crate) const MESSAGE_BYTES: usize = SETUP_BYTES + OVERHEAD_BYTES;
pub(crate) const MUTUAL_BYTES: usize = MESSAGE_BYTES + STATIC_BYTES;
/// Longest message, as Noise has it.
const MESSAGE_MAX: usize = 65535;
const _: () = assert!(MUTUAL_BYTES <= MESSAGE_MAX, "Noise takes each message");
const _: () = assert!(SETUP_BYTES < MESSAGE_BYTES, "a length tells whether there is a key");
const _: () = assert!(MESSAGE_BYTES < MUTUAL_BYTES, "and whether an endpoint says who it is");
const PROTOCOL: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const MUTUAL: &str = "Noise_IXpsk0_25519_AESGCM_SHA256";
const _: () = assert!(PROTOCOL.len() == 32 && MUTUAL.len() == 32, "a name is as long as a hash");
/// Keeps messages apart from those of whatever else may use the key.
const PROLOGUE: &[u8] = b"ayre link 2";
/// Keeps the proof of an answer apart from whatever else is made of the key.
const ANSWER_LABEL: &[u8] = b"ayre answer 1";

/// Keeps what tells keys apart from whatever else is made of them.
const CHECK_LABEL: &[u8] = b"ayre key check 1";

/// The secret of a job's ports; or of an endpoint and those that may call it.
#[derive(Clone)]
pub(crate) struct JobKey([u8; KEY_BYTES]);

impl JobKey {
    /// A new one.
    #[cfg(test)]
    pub(crate) fn random() -> Self {
        Self(crate::random::bytes())
    }

    /// The key that is derived from an endpoint's address.
    pub(crate) const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Tells two keys apart, most likely, and says nothing else of them; never 0.
    // spec: ENV-10
    pub(crate) fn check(&self) -> u16 {
        let mut digest = digest::Context::new(&SHA256);
        digest.update(CHECK_LABEL);
        digest.update(&self.0);
        let digest = digest.finish();
        u16::from_le_bytes(*digest.as_ref().first_chunk().expect("32 bytes")).max(1)
    }

    /// The bytes from which other keys are derived.
    pub(super) const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Reads 64 hexadecimal digits; nothing may stand around them. None if that is not so.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return None;
        }
        let mut key = Self([0; KEY_BYTES]);
        for (byte, [high, low]) in key.0.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(key)
    }

    /// 64 hexadecimal digits, which are overwritten when they are dropped.
    #[cfg(test)]
    pub(crate) fn to_hex(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        for byte in self.0 {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(digit.into(), 16).expect("four bits are a digit"));
            }
        }
        text
    }
}

impl Drop for JobKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobKey").finish_non_exhaustive()
    }
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}

/// One side's terms of a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The key that both hold.
    key: JobKey,
    /// Of an endpoint: who it is.
    own: Option<Arc<StaticKey>>,
    /// The endpoint that an opener calls, if it is one.
    other: Option<Fingerprint>,
}

impl Terms {
    /// Those of an endpoint.
    pub(crate) fn of_endpoint(key: JobKey, own: Option<Arc<StaticKey>>) -> Self {
        Self { key, own, other: None }
    }

    /// Those on which the endpoint of these calls one with which it takes others.
    // spec: SEAL-14, SEAL-18
    pub(crate) fn to_call(&self, theirs: &Self, other: Fingerprint) -> Self {
        Self { key: theirs.key.clone(), own: self.own.clone(), other: Some(other) }
    }

    pub(crate) const fn key(&self) -> &JobKey {
        &self.key
    }

    const fn protocol(&self) -> &'static str {
        if self.own.is_some() { MUTUAL } else { PROTOCOL }
    }

    /// Bytes of a message with a set-up.
    pub(crate) const fn message_bytes(&self) -> usize {
        if self.own.is_some() { MUTUAL_BYTES } else { MESSAGE_BYTES }
    }

    const fn overhead(&self) -> usize {
        self.message_bytes() - SETUP_BYTES
    }
}

impl From<JobKey> for Terms {
    /// The terms of a port: a holder of the key belongs to the job.
    fn from(key: JobKey) -> Self {
        Self { key, own: None, other: None }
    }
}

/// The opener's half-done handshake.
pub(crate) struct Opening {
    state: HandshakeState,
    overhead: usize,
    /// Of an endpoint.
    call: Option<Call>,
}

/// The callee, and the means to begin the same handshake once more: if somebody else has answered,
/// the first state is spoilt.
struct Call {
    terms: Terms,
    other: Fingerprint,
    ephemeral: Zeroizing<[u8; KEY_BYTES]>,
    set_up: Zeroizing<Vec<u8>>,
}

impl Opening {
    /// Begins one, with this side's set-up message; also gives message 1, which is sent as often as
    /// it takes.
    // spec: SEAL-7, SEAL-18
    pub(crate) fn begin(terms: &Terms, set_up: &[u8]) -> (Self, Vec<u8>) {
        let overhead = terms.overhead();
        assert!(terms.other.is_none() || terms.own.is_some(), "who calls an endpoint is one");
        let Some(other) = terms.other else {
            let mut state = builder(terms).build_initiator().expect("no key of the other side");
            let message = write(&mut state, set_up, overhead);
            return (Self { state, overhead, call: None }, message);
        };
        let ephemeral = Zeroizing::new(crate::random::bytes());
        let (terms, set_up) = (terms.clone(), Zeroizing::new(set_up.to_vec()));
        let call = Call { terms, other, ephemeral, set_up };
        let (state, message) = call.begin();
        (Self { state, overhead, call: Some(call) }, message)
    }

    /// Takes message 2: the other side's set-up message, and the keys. A forged message changes
    /// nothing, nor does one of somebody else than is called, so that the true one may follow;
    /// after that, whatever comes is forged. Each call costs a key exchange.
    // spec: SEAL-7, SEAL-8, SEAL-18
    pub(crate) fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Keys), Forged> {
        let set_up = read(&mut self.state, message, self.overhead)?;
        if let Some(call) = &self.call
            && other_of(&self.state).map(|public| Fingerprint::of(&public)) != Some(call.other)
        {
            (self.state, _) = call.begin();
            return Err(Forged);
        }
        let (ours, theirs) = split(&mut self.state);
        Ok((set_up, Keys::new(&ours, &theirs)))
    }
}

impl Call {
    /// Each time the same, to the bit.
    fn begin(&self) -> (HandshakeState, Vec<u8>) {
        // The key is random and of this handshake alone: the library has no other way to keep it.
        let builder = builder(&self.terms).fixed_ephemeral_key_for_testing_only(&*self.ephemeral);
        let mut state = builder.build_initiator().expect("it has its own static key");
        let message = write(&mut state, &self.set_up, self.terms.overhead());
        (state, message)
    }
}

/// The key of the other side, where it has told one.
fn other_of(state: &HandshakeState) -> Option<PublicKey> {
    state.get_remote_static()?.try_into().ok()
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

/// Reads message 1 before anything is made for its sender. It keeps the state of Noise behind the
/// token `psk`, which is the same for all messages under one key. A forged message costs some
/// hashes of a few lines and a tag, whatever its sender does.
// spec: SEAL-9
pub(crate) struct OpenReader {
    chaining: Zeroizing<Hash>,
    hash: Hash,
    /// Openers say who they are.
    is_mutual: bool,
}

/// The contents of message 1, of a holder of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) set_up: [u8; SETUP_BYTES],
    /// The key's fingerprint, of an endpoint: not proved before the link is confirmed.
    pub(crate) by: Option<Fingerprint>,
}

type Hash = [u8; 32];

impl OpenReader {
    pub(crate) fn new(terms: &Terms) -> Self {
        let name: Hash = terms.protocol().as_bytes().try_into().expect("a name of 32 characters");
        let [chaining, mixed, _] = derive(&name, &terms.key.0);
        let hash = hash([&hash([&name, PROLOGUE]), &*mixed]);
        Self { chaining, hash, is_mutual: terms.own.is_some() }
    }

    /// The contents of message 1, if it comes from a holder of the key. No operation on the curve.
    // spec: SEAL-8, SEAL-9
    pub(crate) fn read(&self, message: &[u8]) -> Result<Said, Forged> {
        let len = if self.is_mutual { MUTUAL_BYTES } else { MESSAGE_BYTES };
        if message.len() != len {
            return Err(Forged);
        }
        #[cfg(test)]
        tests::count_read();
        let (public, sealed) = message.split_at(PUBLIC_BYTES);
        let [_, key, _] = derive(&self.chaining, public);
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &*key).expect("256 bits"));
        let heard = hash([&self.hash, public]);
        if !self.is_mutual {
            return Ok(Said { set_up: open(&key, 0, heard, sealed)?, by: None });
        }
        let (who, sealed) = sealed.split_at(STATIC_BYTES);
        let by = open::<PUBLIC_BYTES>(&key, 0, heard, who)?;
        let set_up = open(&key, 1, hash([&heard, who]), sealed)?;
        Ok(Said { set_up, by: Some(Fingerprint::of(&by)) })
    }
}

/// The contents of a part of a message: the n-th one under a key.
fn open<const N: usize>(
    key: &LessSafeKey,
    nth: u8,
    heard: Hash,
    sealed: &[u8],
) -> Result<[u8; N], Forged> {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 1] = nth;
    let mut bytes = Zeroizing::new(sealed.to_vec());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let opened = key.open_in_place(nonce, Aad::from(heard), &mut bytes[..]).map_err(|_| Forged)?;
    (&*opened).try_into().map_err(|_| Forged)
}

impl fmt::Debug for OpenReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenReader").finish_non_exhaustive()
    }
}

fn hash<const N: usize>(parts: [&[u8]; N]) -> Hash {
    let mut context = digest::Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().try_into().expect("32 bytes")
}

/// Noise's HKDF with its three outputs.
fn derive(chaining: &Hash, input: &[u8]) -> [Zeroizing<Hash>; 3] {
    let keyed = |key: &[u8], parts: [&[u8]; 2]| {
        let mut context = hmac::Context::with_key(&hmac::Key::new(HMAC_SHA256, key));
        parts.iter().for_each(|part| context.update(part));
        Zeroizing::new(Hash::try_from(context.sign().as_ref()).expect("32 bytes"))
    };
    let secret = keyed(chaining, [input, &[]]);
    let first = keyed(&*secret, [&[1], &[]]);
    let second = keyed(&*secret, [&*first, &[2]]);
    let third = keyed(&*secret, [&*second, &[3]]);
    [first, second, third]
}

/// The proof that an answer to the open of this nonce comes from a holder of the key.
// spec: OPEN-23
pub(crate) fn proof(key: &JobKey, nonce: u64, words: [u64; 2]) -> [u64; 2] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(HMAC_SHA256, &key.0));
    context.update(ANSWER_LABEL);
    [nonce, words[0], words[1]].iter().for_each(|word| context.update(&word.to_le_bytes()));
    let tag = context.sign();
    let (words, _) = tag.as_ref().as_chunks();
    [words[0], words[1]].map(u64::from_le_bytes)
}

/// Takes message 1, which [`OpenReader::read`] has found to be of a holder of the key.
// spec: SEAL-8, SEAL-9
pub(crate) fn respond(terms: &Terms, message: &[u8]) -> Result<(Vec<u8>, Answer), Forged> {
    let mut state = builder(terms).build_responder().expect("no key of the other side");
    let overhead = terms.overhead();
    let set_up = read(&mut state, message, overhead)?;
    Ok((set_up, Answer { state, overhead }))
}

/// The acceptor's half-done handshake.
pub(crate) struct Answer {
    state: HandshakeState,
    overhead: usize,
}

impl Answer {
    /// Gives message 2, with this side's set-up message, and the keys. Another call of [`respond`]
    /// for the same message 1 would give others: what was answered once is kept and repeated.
    // spec: SEAL-7
    pub(crate) fn answer(mut self, set_up: &[u8]) -> (Vec<u8>, Keys) {
        let message = write(&mut self.state, set_up, self.overhead);
        let (theirs, ours) = split(&mut self.state);
        (message, Keys::new(&ours, &theirs))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

fn builder(terms: &Terms) -> Builder<'_> {
    let protocol = terms.protocol().parse().expect("a protocol that Noise knows");
    let builder = with_primitives(protocol)
        .psk(0, &terms.key.0)
        .and_then(|builder| builder.prologue(PROLOGUE))
        .expect("neither was given before");
    match &terms.own {
        Some(own) => builder.local_private_key(own.private()).expect("nor was this"),
        None => builder,
    }
}

#[cfg(not(test))]
fn with_primitives(protocol: snow::params::NoiseParams) -> Builder<'static> {
    Builder::new(protocol)
}

#[cfg(test)]
use tests::with_primitives;

/// The next message.
fn write(state: &mut HandshakeState, set_up: &[u8], overhead: usize) -> Vec<u8> {
    let mut message = vec![0; set_up.len() + overhead];
    let len = state.write_message(set_up, &mut message).expect("a set-up message is short");
    debug_assert_eq!(len, message.len(), "a message has its length");
    message
}

/// The set-up that the next message carries. A failure leaves the state as it was.
fn read(state: &mut HandshakeState, message: &[u8], overhead: usize) -> Result<Vec<u8>, Forged> {
    let len = message.len().checked_sub(overhead).ok_or(Forged)?;
    if message.len() > MESSAGE_MAX {
        return Err(Forged);
    }
    let mut set_up = vec![0; len];
    state.read_message(message, &mut set_up).map_err(|_| Forged)?;
    Ok(set_up)
}

/// The keys of the opener's direction and of the other one.
type Split = (Zeroizing<[u8; KEY_BYTES]>, Zeroizing<[u8; KEY_BYTES]>);

fn split(state: &mut HandshakeState) -> Split {
    debug_assert!(state.is_handshake_finished(), "keys come of both messages");
    let (opener, other) = state.dangerously_get_raw_split();
    debug_assert_ne!(opener, other, "each direction has a key of its own");
    (Zeroizing::new(opener), Zeroizing::new(other))
}

#[cfg(test)]
pub(crate) mod tests;
