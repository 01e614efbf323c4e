//! The handshake of a link: both sides prove that they hold the job's key, and agree on keys that
//! nobody can work out later, not even from that key.
//!
//! It is `Noise_NNpsk0_25519_AESGCM_SHA256`: two messages, each with a set-up message inside.
//!
//! ```text
//!  opener                                            the other side
//!  begin(set-up)   -- 1: psk, e, [set-up] ------------>  respond: a stranger ends here
//!  finish          <-- 2: e, ee, [set-up] -------------  answer(set-up)
//!  Keys            <== sealed datagrams ==============>  Keys
//! ```
use super::seal::{Forged, KEY_BYTES, Keys};
use aws_lc_rs::digest::{Context, SHA256};
use snow::{Builder, HandshakeState};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Bytes that a message has beyond its set-up: a public key and a tag.
const OVERHEAD_BYTES: usize = 32 + 16;
/// Longest message, as Noise has it.
const MESSAGE_MAX: usize = 65535;
const PROTOCOL: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Keeps messages apart from those of whatever else may use the key.
const PROLOGUE: &[u8] = b"ayre link 1";

/// Keeps what tells keys apart from whatever else is made of them.
const CHECK_LABEL: &[u8] = b"ayre key check 1";

/// What all ports of a job hold, and nobody else; or an endpoint and who may call it.
#[derive(Clone)]
pub(crate) struct JobKey([u8; KEY_BYTES]);

impl JobKey {
    /// A new one.
    #[cfg(test)]
    pub(crate) fn random() -> Self {
        Self(crate::random::bytes())
    }

    /// What is made of an endpoint's secret.
    pub(crate) const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Tells two keys apart, most likely, and says nothing else of them; never 0.
    // spec: ENV-10
    pub(crate) fn check(&self) -> u16 {
        let mut digest = Context::new(&SHA256);
        digest.update(CHECK_LABEL);
        digest.update(&self.0);
        let digest = digest.finish();
        u16::from_le_bytes(*digest.as_ref().first_chunk().expect("32 bytes")).max(1)
    }

    /// What other keys are made of together with it.
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

/// The opener's half-done handshake.
pub(crate) struct Opening(HandshakeState);

impl Opening {
    /// Begins one, with this side's set-up message; also gives message 1, which is sent as often as
    /// it takes.
    // spec: SEAL-7
    pub(crate) fn begin(key: &JobKey, set_up: &[u8]) -> (Self, Vec<u8>) {
        let mut state = builder(key).build_initiator().expect("a pattern without static keys");
        let message = write(&mut state, set_up);
        (Self(state), message)
    }

    /// Takes message 2: the other side's set-up message, and the keys. A forged message changes
    /// nothing, so that the true one may follow; after that, whatever comes is forged. Each call
    /// costs a key exchange.
    // spec: SEAL-7, SEAL-8
    pub(crate) fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Keys), Forged> {
        let set_up = read(&mut self.0, message)?;
        let (ours, theirs) = split(&mut self.0);
        Ok((set_up, Keys::new(&ours, &theirs)))
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

/// Takes message 1: the opener's set-up message. Who does not hold the key is refused by the
/// message's tag, before any key exchange, and leaves nothing behind.
// spec: SEAL-8, SEAL-9
pub(crate) fn respond(key: &JobKey, message: &[u8]) -> Result<(Vec<u8>, Answer), Forged> {
    let mut state = builder(key).build_responder().expect("a pattern without static keys");
    let set_up = read(&mut state, message)?;
    Ok((set_up, Answer(state)))
}

/// The other side's half-done handshake.
pub(crate) struct Answer(HandshakeState);

impl Answer {
    /// Gives message 2, with this side's set-up message, and the keys. Another call of [`respond`]
    /// for the same message 1 would give others: what was answered once is kept and repeated.
    // spec: SEAL-7
    pub(crate) fn answer(mut self, set_up: &[u8]) -> (Vec<u8>, Keys) {
        let message = write(&mut self.0, set_up);
        let (theirs, ours) = split(&mut self.0);
        (message, Keys::new(&ours, &theirs))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

fn builder(key: &JobKey) -> Builder<'_> {
    let protocol = PROTOCOL.parse().expect("a protocol that Noise knows");
    with_primitives(protocol)
        .psk(0, &key.0)
        .and_then(|builder| builder.prologue(PROLOGUE))
        .expect("neither was given before")
}

#[cfg(not(test))]
fn with_primitives(protocol: snow::params::NoiseParams) -> Builder<'static> {
    Builder::new(protocol)
}

#[cfg(test)]
use tests::with_primitives;

/// The next message.
fn write(state: &mut HandshakeState, set_up: &[u8]) -> Vec<u8> {
    let mut message = vec![0; set_up.len() + OVERHEAD_BYTES];
    let len = state.write_message(set_up, &mut message).expect("a set-up message is short");
    debug_assert_eq!(len, message.len());
    message
}

/// What the next message carries. A failure leaves the state as it was.
fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, Forged> {
    let len = message.len().checked_sub(OVERHEAD_BYTES).ok_or(Forged)?;
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
    let (opener, other) = state.dangerously_get_raw_split();
    (Zeroizing::new(opener), Zeroizing::new(other))
}

#[cfg(test)]
mod tests;
