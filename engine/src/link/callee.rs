//! The means to call an endpoint of another host: its name, and the fingerprint of its key, which
//! its address has.
use super::fingerprint::Fingerprint;
use super::handshake::{JobKey, Protection, Terms};
use super::identity::StaticKey;
use super::seal::KEY_BYTES;
use crate::peer::agreement::Name;
use aws_lc_rs::digest::{Context, SHA384};
use std::fmt;
use std::sync::Arc;

/// Those that may open links.
pub(crate) trait Names: fmt::Debug + Send + Sync {
    /// Whether this is one of them.
    fn has(&self, name: Name) -> bool;
}

/// Keeps what is made of an address apart from what others may make of it.
const LABEL: &[u8] = b"ayre endpoint 1";
const _: () = assert!(KEY_BYTES + size_of::<Pass>() == 48, "a digest is a key and a pass");

/// The proof that a caller knows an address, without the address itself.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pass(pub(crate) [u64; 2]);

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// An endpoint that opens links for those who have its address.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) name: Name,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) pass: Pass,
    /// The protection that it asks of callers.
    pub(crate) protection: Protection,
}

impl Callee {
    /// The endpoint of a fingerprint, and of a job that has a key, if it has; its links are plain,
    /// if it has said so.
    pub(crate) fn new(fingerprint: Fingerprint, key: Option<&JobKey>, is_plain: bool) -> Self {
        Self::of((fingerprint, None), key, is_plain)
    }

    /// This process's own endpoint.
    pub(crate) fn own(own: StaticKey, key: Option<&JobKey>, is_plain: bool) -> Self {
        Self::of((own.fingerprint(), Some(Arc::new(own))), key, is_plain)
    }

    // spec: SEAL-14, SEAL-16
    fn of(
        (fingerprint, own): (Fingerprint, Option<Arc<StaticKey>>),
        key: Option<&JobKey>,
        is_plain: bool,
    ) -> Self {
        let name = fingerprint.name();
        let mut digest = Context::new(&SHA384);
        digest.update(LABEL);
        name.iter().for_each(|word| digest.update(&word.to_le_bytes()));
        digest.update(&fingerprint.0);
        digest.update(key.map_or(&[][..], |key| key.as_bytes()));
        let digest = digest.finish();
        let (key, pass) = digest.as_ref().split_first_chunk::<KEY_BYTES>().expect("48 bytes");
        let (words, _) = pass.as_chunks();
        let pass = Pass([words[0], words[1]].map(u64::from_le_bytes));
        let protection = match is_plain {
            true => Protection::Plain,
            false => Protection::Sealed(Terms::of_endpoint(JobKey::from_bytes(*key), own)),
        };
        Self { name, fingerprint, pass, protection }
    }

    /// The protection of a link that a port of this protection opens to it.
    // spec: SEAL-14, SEAL-18
    pub(super) fn protection_for(&self, own: &Protection) -> Protection {
        match (&self.protection, own) {
            (Protection::Sealed(theirs), Protection::Sealed(own)) => {
                Protection::Sealed(own.to_call(theirs, self.fingerprint))
            }
            (protection, _) => protection.clone(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: SEAL-14, SEAL-16
    #[test]
    fn derived_secrets_depend_on_the_whole_address_and_the_key() {
        let fingerprint = Fingerprint(*b"0123456789abcdef");
        let callee = Callee::new(fingerprint, None, true);
        let other = Callee::new(Fingerprint(*b"0123456789abcdeg"), None, true);
        let key = JobKey::from_bytes([7; KEY_BYTES]);
        let keyed = Callee::new(fingerprint, Some(&key), true);
        assert!(callee.pass != other.pass && callee.pass != keyed.pass);
        // As any other tool computes it.
        assert_eq!(callee.pass, Pass([0xfb6e_b9c2_4e27_fbd8, 0xef1e_5372_8005_542a]));
    }
}
