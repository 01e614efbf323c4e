//! What all members of a group get: a handler's number, its arguments and the payload, one behind
//! the other.
use arrayvec::ArrayVec;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that are cheaper to copy than to share.
const SHORT_MAX: usize = 64;

/// The bytes of a message, which several may need for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Short(ArrayVec<u8, SHORT_MAX>),
    Long(Arc<Vec<u8>>),
}

impl Content {
    /// These parts, one behind the other.
    #[inline(always)]
    pub(super) fn of<const N: usize>(parts: [&[u8]; N]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum();
        let mut short = ArrayVec::new();
        if len <= SHORT_MAX && parts.iter().all(|part| short.try_extend_from_slice(part).is_ok()) {
            return Self::Short(short);
        }
        let mut long = Vec::with_capacity(len);
        parts.iter().for_each(|part| long.extend_from_slice(part));
        Self::from(long)
    }

    /// What can be shared, if it is long.
    pub(super) fn shared(&self) -> Option<Arc<Vec<u8>>> {
        match self {
            Self::Short(_) => None,
            Self::Long(bytes) => Some(bytes.clone()),
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Long(Arc::new(bytes))
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Long(bytes) => bytes,
        }
    }
}
