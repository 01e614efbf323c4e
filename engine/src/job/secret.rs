//! The transfer of the job's key from rank 0 to the others: sealed for each of them, because other
//! people than the job's can read a launcher's board.
//!
//! A rank publishes a public key on its card, to which rank 0 seals one message of Noise's pattern
//! N. A reader of the board learns nothing. An attacker who can change the board can hand out a key
//! of his own; there is no protection from him unless the ranks shared a secret before.
use super::board::TEXT_CHARS_MAX;
use super::wrong;
use crate::error::SetupError;
use crate::random::hex;
use snow::Builder;
use zeroize::Zeroizing;

const PROTOCOL: &str = "Noise_N_25519_AESGCM_SHA256";
/// Distinguishes these messages from other uses of the pattern.
const PROLOGUE: &[u8] = b"ayre key 1";
const PUBLIC_BYTES: usize = 32;
/// The length of the job's key in digits.
const KEY_CHARS: usize = 64;
const SEALED_BYTES: usize = PUBLIC_BYTES + KEY_CHARS + 16;
const _: () = assert!(2 * SEALED_BYTES <= TEXT_CHARS_MAX, "launchers take a sealed key");

/// A recipient of sealed keys.
pub(super) struct Recipient {
    public: String,
    private: Zeroizing<Vec<u8>>,
}

impl Recipient {
    pub(super) fn new() -> Result<Self, SetupError> {
        let pair = builder().generate_keypair().map_err(failed)?;
        debug_assert_eq!(pair.public.len(), PUBLIC_BYTES, "the pattern has such keys");
        Ok(Self { public: hex(&pair.public), private: Zeroizing::new(pair.private) })
    }

    /// The public key in 64 digits.
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// Opens a key that was sealed for this recipient; None if it was not, or was changed.
    pub(super) fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
        let sealed = bytes::<SEALED_BYTES>(sealed)?;
        let builder = builder().local_private_key(&self.private).ok()?;
        let mut key = Zeroizing::new([0; KEY_CHARS]);
        let len = builder.build_responder().ok()?.read_message(&sealed, &mut *key).ok()?;
        (len == KEY_CHARS).then_some(())?;
        Some(Zeroizing::new(str::from_utf8(&*key).ok()?.to_owned()))
    }
}

/// Seals the job's key for the owner of this public key.
pub(super) fn seal(key: &str, public: &str) -> Result<String, SetupError> {
    debug_assert_eq!(key.len(), KEY_CHARS, "the job's key has as many digits");
    let public = bytes::<PUBLIC_BYTES>(public).ok_or_else(|| wrong("a card has no public key"))?;
    let builder = builder().remote_public_key(&public).map_err(failed)?;
    let mut sealed = [0; SEALED_BYTES];
    let mut handshake = builder.build_initiator().map_err(failed)?;
    let len = handshake.write_message(key.as_bytes(), &mut sealed).map_err(failed)?;
    debug_assert_eq!(len, SEALED_BYTES, "there is no room for anything else");
    Ok(hex(&sealed[..len]))
}

fn builder() -> Builder<'static> {
    let protocol = PROTOCOL.parse().expect("a pattern that the library knows");
    Builder::new(protocol).prologue(PROLOGUE).expect("the first prologue")
}

fn failed(error: snow::Error) -> SetupError {
    wrong(format!("sealing the job's key: {error}"))
}

/// Parses N bytes from N pairs of digits, and nothing else.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let digit = |letter: u8| char::from(letter).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: SEAL-13
    #[test]
    fn only_the_recipient_opens_a_sealed_key_and_only_unchanged() {
        let (one, other) = (Recipient::new().unwrap(), Recipient::new().unwrap());
        let key = crate::random::secret::<32>();
        let sealed = seal(&key, one.public()).unwrap();
        assert_eq!(one.open(&sealed), Some(key.clone()));
        assert_eq!(other.open(&sealed), None);
        assert_ne!(sealed, seal(&key, one.public()).unwrap());
        assert!(!sealed.contains(key.as_str()));
        for place in 0..sealed.len() {
            let digit = if sealed.as_bytes()[place] == b'0' { "1" } else { "0" };
            let mut changed = sealed.clone();
            changed.replace_range(place..=place, digit);
            assert_eq!(one.open(&changed), None, "{place}");
        }
        for text in ["", &sealed[2..], &format!("{sealed}00"), &format!("{sealed}0"), "é"] {
            assert_eq!(one.open(text), None);
        }
        for public in ["", "00", &"g".repeat(64), &one.public()[1..]] {
            assert!(seal(&key, public).is_err());
        }
    }
}
