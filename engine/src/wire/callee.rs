//! What it takes to call an endpoint of another host: where it is, what it is called, and its
//! secret.
use super::handshake::JobKey;
use super::opening::Protection;
use super::seal::KEY_BYTES;
use crate::connection::Name;
use aws_lc_rs::digest::{Context, SHA384};
use std::fmt;

/// Keeps what is made of a secret apart from what others may make of it.
const LABEL: &[u8] = b"ayre endpoint 1";

/// What an endpoint's address says, and who calls it has to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Secret(pub(crate) [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

/// What shows that a caller knows a secret, though he does not say it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pass(pub(crate) [u64; 2]);

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// An endpoint that opens links for whoever knows its secret.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) name: Name,
    pub(crate) pass: Pass,
    pub(crate) protection: Protection,
}

impl Callee {
    /// The endpoint of a name and a secret, and of a job that has a key, if it has; its links are
    /// plain, if it has said so.
    // spec: SEAL-14, SEAL-16
    pub(crate) fn new(
        name: Name,
        (Secret(secret), key): (&Secret, Option<&JobKey>),
        is_plain: bool,
    ) -> Self {
        let mut digest = Context::new(&SHA384);
        digest.update(LABEL);
        name.iter().for_each(|word| digest.update(&word.to_le_bytes()));
        digest.update(secret);
        digest.update(key.map_or(&[][..], |key| key.as_bytes()));
        let digest = digest.finish();
        let (key, pass) = digest.as_ref().split_first_chunk::<KEY_BYTES>().expect("48 bytes");
        let (words, _) = pass.as_chunks();
        let pass = Pass([words[0], words[1]].map(u64::from_le_bytes));
        let protection = match is_plain {
            true => Protection::Plain,
            false => Protection::Sealed(JobKey::from_bytes(*key)),
        };
        Self { name, pass, protection }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: SEAL-14, SEAL-16
    #[test]
    fn what_is_made_of_a_secret_depends_on_all_of_it_on_the_name_and_on_the_key() {
        let secret = Secret(*b"0123456789abcdef");
        let all = [
            Callee::new([1, 2], (&secret, None), true),
            Callee::new([2, 1], (&secret, None), true),
            Callee::new([1, 2], (&Secret(*b"0123456789abcdeg"), None), true),
        ];
        let key = JobKey::from_bytes([7; KEY_BYTES]);
        let keyed = Callee::new([1, 2], (&secret, Some(&key)), true);
        let passes = all.map(|callee| callee.pass);
        assert!(passes[0] != passes[1] && passes[0] != passes[2] && passes[1] != passes[2]);
        assert!(!passes.contains(&keyed.pass), "without the job's key");
        // As any other tool computes it.
        assert_eq!(passes[0], Pass([0xc165_e0af_56c7_d7a2, 0x4fea_1c42_a71a_e11c]));
    }
}
