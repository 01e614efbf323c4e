//! The fingerprint of an endpoint's key, which its address has, and the name that follows from it.
use crate::peer::agreement::Name;
use sha2::{Digest, Sha256};
use std::fmt;

/// Keep what is made of keys apart from what others may make of them.
const FINGERPRINT_LABEL: &[u8] = b"ayre identity 1";
const _: () = assert!(size_of::<Name>() == size_of::<Fingerprint>(), "a name is a digest, too");
const NAME_LABEL: &[u8] = b"ayre name 1";

/// The digest of an endpoint's key in its address. Its holder can tell the endpoint from all
/// others, and may call it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(pub(crate) [u8; 16]);

impl Fingerprint {
    /// That of a key.
    // spec: ENV-10
    pub(super) fn of(public: &[u8; 32]) -> Self {
        Self(digest(FINGERPRINT_LABEL, public))
    }

    /// The name of its endpoint. Those who may look at the sockets of its host see the name, and
    /// cannot tell the fingerprint.
    // spec: ENV-10
    pub(crate) fn name(&self) -> Name {
        let name = digest(NAME_LABEL, &self.0);
        let (words, _) = name.as_chunks();
        [words[0], words[1]].map(u64::from_le_bytes)
    }
}

/// The holder of all of it may call, so it is not printed.
// spec: SEAL-15
impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprint").finish_non_exhaustive()
    }
}

fn digest(label: &[u8], bytes: &[u8]) -> [u8; 16] {
    let digest = Sha256::new().chain_update(label).chain_update(bytes).finalize();
    *digest.first_chunk().expect("32 bytes")
}
