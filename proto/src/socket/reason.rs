//! Why bytes of a connection go by the kernel.

/// The reason for which an end does not use rings, as far as it has decided so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// There is none: where bytes go by the kernel all the same, their reader does not wait.
    #[default]
    None,
    /// The peer has not taken the offer yet.
    Opening,
    /// The other end's program does not have the library.
    NoPeer,
    /// The socket listens without a door: another one has it, or the library came too late.
    NoDoor,
    /// The peer is of a user that is not trusted.
    OtherUser,
    /// A Unix socket has the name of the address, but the user of its process does not have the
    /// TCP socket.
    NotOwner,
    /// A line of the policy says so.
    Policy,
    /// The peer has shown a code, but its offer was not found.
    NoOffer,
    /// A bound is reached.
    NoRoom,
    /// More than one thread, or more than one set of descriptors, waits for it.
    SeveralWaiters,
    /// Several processes have this end.
    Forked,
    /// The process has an `io_uring`.
    IoUring,
    /// Another program has inherited it.
    Executed,
    /// It was passed on to another process.
    Passed,
    /// The C library's streams read and write it.
    Stdio,
    /// An option, a signal or a kind of data that only the kernel has.
    Option,
    /// The other end is on another host, and the link with that did not come about.
    NoLink,
}

/// All reasons, in the order of their numbers.
const ALL: [Reason; 17] = [
    Reason::None,
    Reason::Opening,
    Reason::NoPeer,
    Reason::NoDoor,
    Reason::OtherUser,
    Reason::NotOwner,
    Reason::Policy,
    Reason::NoOffer,
    Reason::NoRoom,
    Reason::SeveralWaiters,
    Reason::Forked,
    Reason::IoUring,
    Reason::Executed,
    Reason::Passed,
    Reason::Stdio,
    Reason::Option,
    Reason::NoLink,
];

const _: () = {
    let mut number = 0;
    while number < ALL.len() {
        assert!(ALL[number] as usize == number, "reasons stand at their numbers");
        number += 1;
    }
};

impl Reason {
    /// As a number in memory.
    pub const fn to_word(self) -> u32 {
        self as u32
    }

    /// The meaning of a number. Those without one count as [`Reason::None`].
    pub fn of_word(word: u32) -> Self {
        ALL.get(word as usize).copied().unwrap_or_default()
    }

    /// In a few words; nothing for [`Reason::None`].
    pub const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Opening => "not taken yet",
            Self::NoPeer => "no peer",
            Self::NoDoor => "no door",
            Self::OtherUser => "other user",
            Self::NotOwner => "not the owner",
            Self::Policy => "policy",
            Self::NoOffer => "no offer",
            Self::NoRoom => "no room",
            Self::SeveralWaiters => "several waiters",
            Self::Forked => "forked",
            Self::IoUring => "io_uring",
            Self::Executed => "exec",
            Self::Passed => "passed on",
            Self::Stdio => "stdio",
            Self::Option => "option",
            Self::NoLink => "no link",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_meaning_is_no_reason() {
        assert_eq!(Reason::of_word(Reason::Policy.to_word()), Reason::Policy);
        assert_eq!(Reason::of_word(ALL.len() as u32), Reason::None);
        assert_eq!(Reason::of_word(u32::MAX), Reason::None);
    }
}
