//! The identity that an endpoint proves: a key pair, of which its address has a digest.
use super::fingerprint::Fingerprint;
use crate::net::chance::Chance;
use aws_lc_rs::agreement::{PrivateKey, X25519};
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a key on the curve.
pub(super) const PUBLIC_BYTES: usize = 32;
const PRIVATE_BYTES: usize = 32;

/// The key by which others know an endpoint again.
pub(super) type PublicKey = [u8; PUBLIC_BYTES];

/// A key pair of an endpoint, which is its own as long as the endpoint lives.
pub(crate) struct StaticKey {
    private: Zeroizing<[u8; PRIVATE_BYTES]>,
    fingerprint: Fingerprint,
}

impl StaticKey {
    /// A new one.
    pub(crate) fn new(chance: &Chance) -> Self {
        let mut private = Zeroizing::new([0; PRIVATE_BYTES]);
        chance.fill(&mut *private);
        let key = PrivateKey::from_private_key(&X25519, &*private).expect("32 bytes are a key");
        let public = key.compute_public_key().expect("each has a public one");
        let public = public.as_ref().try_into().expect("32 bytes");
        Self { private, fingerprint: Fingerprint::of(public) }
    }

    pub(super) fn private(&self) -> &[u8] {
        &*self.private
    }

    /// The fingerprint of its public key, which others know.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticKey").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ENV-10
    #[test]
    fn a_fingerprint_is_of_one_key_and_a_name_of_one_fingerprint() {
        let [one, other] = [0, 1].map(|_| StaticKey::new(&Chance::System));
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(one.fingerprint().name(), other.fingerprint().name());
        // As any other tool computes it.
        assert_eq!(
            Fingerprint::of(&[7; 32]).0,
            [
                0x30, 0x66, 0x0f, 0x03, 0x30, 0xce, 0xa3, 0x87, 0xcd, 0xca, 0x0c, 0x56, 0x1a, 0x94,
                0xec, 0x9f
            ]
        );
        let name = Fingerprint(*b"0123456789abcdef").name();
        assert_eq!(name, [0x99a0_c0a8_c005_22b0, 0x99a5_5d89_151f_5c30]);
        assert!(!format!("{one:?} {:?}", Fingerprint([42; 16])).contains("42"));
    }
}
