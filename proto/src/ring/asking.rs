//! Messages that could be read where they lie, and go into the ring without a question, because
//! their receiver has wanted them so.

/// Messages in a row that were wanted by the ring, until more go without asking: more than a
/// receiver tries by one method before it has decided (INJ-8).
pub const ENOUGH: u32 = 65;
/// Messages that go so until as many ask again, in case the receiver has changed its mind. They ask
/// together: one that asks among others that do not is wanted behind all of those, and its receiver
/// would find the ring slow.
pub const SPARED_MAX: u32 = 1024;

/// A receiver's choice for messages that offer both: by the ring, or read in the sender's memory.
/// The sender learns it from the answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking {
    wanted: u32,
    unasked: u32,
}

impl Asking {
    /// Whether the next one goes without asking.
    pub const fn is_spared(self) -> bool {
        debug_assert!(self.wanted <= ENOUGH, "more are not counted");
        self.wanted == ENOUGH
    }

    /// A message has gone without asking.
    pub const fn on_gone(&mut self) {
        self.unasked += 1;
        if self.unasked == SPARED_MAX {
            *self = Self { wanted: 0, unasked: 0 };
        }
        debug_assert!(self.unasked < SPARED_MAX, "as many ask again");
    }

    /// A message that has asked is wanted by the ring; or it was read, or is not wanted.
    pub const fn on_answer(&mut self, by_ring: bool) {
        self.wanted = match by_ring {
            true if self.wanted < ENOUGH => self.wanted + 1,
            true => ENOUGH,
            false => 0,
        };
    }
}
