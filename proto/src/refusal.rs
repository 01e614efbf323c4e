//! The reason why a connection was refused, as it is told to the other side.
//!
//! It travels as two words, in the Refuse packet of a control channel and in the refusal of an
//! open. So both ends can report the reason to a person.

/// The reason of a refusal.
// spec: LIFE-27
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No reason that this version knows.
    Unknown,
    /// The other process belongs to another user; that one's number, as the refusing side sees
    /// it.
    User(u32),
    /// The refusing side speaks this version.
    Version(u64),
    /// One of the two is an endpoint, and the other one a port.
    Kind,
    /// A peer of the caller's number or name is connected already.
    Taken,
    /// No room for one more: the refusing side has as many peers as this.
    Full(u64),
    /// One of the two wants protected links, and the other one plain ones.
    Protection,
    /// The system refused the refusing side what a connection takes, with this errno.
    Resources(u32),
    /// The longest datagram that the network takes whole is shorter than a link needs.
    PathMtu(u32),
    /// The caller does not hold the refusing side's key.
    Key,
    /// The system refuses memory that cannot shrink to one of the two sides, and not to the other
    /// one.
    Memory,
}

impl Refusal {
    /// The code and the detail that travel.
    pub const fn to_words(self) -> [u64; 2] {
        let words = self.lay_out();
        debug_assert!(
            matches!(self, Self::Unknown) == matches!(Self::from_words(words), Self::Unknown),
            "the other side reads the reason"
        );
        words
    }

    const fn lay_out(self) -> [u64; 2] {
        match self {
            Self::Unknown => [0, 0],
            Self::User(user) => [1, user as u64],
            Self::Version(version) => [2, version],
            Self::Kind => [3, 0],
            Self::Taken => [4, 0],
            Self::Full(peers) => [5, peers],
            Self::Protection => [6, 0],
            Self::Resources(errno) => [7, errno as u64],
            Self::PathMtu(bytes) => [8, bytes as u64],
            Self::Key => [9, 0],
            Self::Memory => [10, 0],
        }
    }

    /// Inverse of [`Refusal::to_words`]; total: what is not defined is [`Refusal::Unknown`].
    pub const fn from_words([code, detail]: [u64; 2]) -> Self {
        let is_short = detail <= u32::MAX as u64;
        match code {
            1 if is_short => Self::User(detail as u32),
            2 => Self::Version(detail),
            3 => Self::Kind,
            4 => Self::Taken,
            5 => Self::Full(detail),
            6 => Self::Protection,
            7 if is_short => Self::Resources(detail as u32),
            8 if is_short => Self::PathMtu(detail as u32),
            9 => Self::Key,
            10 => Self::Memory,
            _ => Self::Unknown,
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the peer gave no reason"),
            Self::User(user) => {
                write!(f, "user {user} is neither the same one, nor root, nor in AYRE_GROUP")
            }
            Self::Version(theirs) => write!(f, "the peer speaks version {theirs} of the formats"),
            Self::Kind => f.write_str("one side is an endpoint, the other one a port"),
            Self::Taken => f.write_str("the peer has a connection of this number or name already"),
            Self::Full(peers) => write!(f, "the peer has no room beyond {peers} connections"),
            Self::Protection => f.write_str("one side wants encrypted links, the other plain ones"),
            Self::Resources(errno) => {
                let what = match errno {
                    12 => ": memory is short there",
                    23 => ": the machine has as many open files as it may (sysctl fs.file-max)",
                    24 => ": its process has as many descriptors as it may (raise `ulimit -n`)",
                    _ => "",
                };
                write!(f, "the peer's system refused it resources (errno {errno}){what}")
            }
            Self::Key => f.write_str("the two sides have different keys"),
            Self::Memory => f.write_str(
                "memfd_create is refused to one of the two processes, and not to the other one \
                 (the seccomp profile of a container or a service)",
            ),
            Self::PathMtu(bytes) => {
                write!(
                    f,
                    "the network takes datagrams of {bytes} bytes only, and a link needs 512: \
                     raise the MTU of the interface or the route"
                )
            }
        }
    }
}

impl core::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: LIFE-27
    #[test]
    fn a_refusal_survives_its_words() {
        let all = [
            Refusal::Unknown,
            Refusal::User(1000),
            Refusal::Version(4),
            Refusal::Kind,
            Refusal::Taken,
            Refusal::Full(1024),
            Refusal::Protection,
            Refusal::Resources(24),
            Refusal::PathMtu(400),
            Refusal::Key,
            Refusal::Memory,
        ];
        for refusal in all {
            assert_eq!(Refusal::from_words(refusal.to_words()), refusal);
        }
    }

    #[test]
    fn undefined_words_are_unknown() {
        for words in [[11, 0], [u64::MAX, 1], [1, 1 << 32], [7, u64::MAX], [8, 1 << 40]] {
            assert_eq!(Refusal::from_words(words), Refusal::Unknown, "{words:?}");
        }
    }
}
