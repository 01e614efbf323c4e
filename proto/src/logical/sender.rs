//! A sender's end of all channels to one peer.
use super::{NUMBERS, PART_MAX, PART_MIN, PLACES, SHORT_MAX, Turns, WINDOW, cost};
use crate::lane::Malformed;
use alloc::boxed::Box;

/// Which channel sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number.
    pub number: u8,
    /// Bytes that a part of a long message has at most.
    pub most: u64,
}

/// The room of each channel, and the channel that is next. The messages lie elsewhere.
#[derive(Clone, Debug)]
pub struct ChannelSender {
    turns: Turns,
    lines: Box<[Line; PLACES]>,
    /// Bit by bit, channels that wait for room in the landing.
    stalled: [u64; PLACES / 64],
}

#[derive(Clone, Copy, Debug)]
struct Line {
    sent: u64,
    /// Cost that the receiver has given back.
    returned: u64,
    /// The cost of the next part; 0 if nothing waits.
    needs: u64,
}

impl Line {
    const fn free(&self) -> u64 {
        WINDOW - (self.sent - self.returned)
    }
}

/// The cost of the next part of a message of `total` bytes of which `left` are left.
// spec: CHAN-4, CHAN-8
fn need(left: u64, total: u64) -> u64 {
    if total > SHORT_MAX as u64 { cost(left.min(PART_MIN)) } else { cost(left) }
}

impl Default for ChannelSender {
    fn default() -> Self {
        Self::new()
    }
}

impl ChannelSender {
    /// Nothing was sent.
    pub fn new() -> Self {
        let line = Line { sent: 0, returned: 0, needs: 0 };
        Self { turns: Turns::new(), lines: Box::new([line; PLACES]), stalled: [0; _] }
    }

    /// Invariants that hold between two steps, for all input of the receiver.
    #[inline]
    fn check(&self, number: u8) {
        let Line { sent, returned, .. } = self.lines[usize::from(number)];
        debug_assert!(returned <= sent, "only what was sent is given back");
        debug_assert!(sent - returned <= WINDOW, "what is under way fits the window");
    }

    /// See [`Turns::set`].
    pub fn set(&mut self, number: u8, priority: u8, weight: u8) {
        self.turns.set(number, priority, weight);
    }

    /// Sends a message of `bytes` bytes at once, if no channel waits for a turn, nothing waits on
    /// this one, and it has room. Returns whether it was sent.
    // spec: CHAN-4
    #[inline]
    pub fn send_at_once(&mut self, number: u8, bytes: u64) -> bool {
        let line = &mut self.lines[usize::from(number)];
        let may = self.turns.is_empty() && line.needs == 0 && line.free() >= cost(bytes);
        if may {
            line.sent += cost(bytes);
        }
        self.check(number);
        may
    }

    /// The message that was counted was not sent after all.
    pub fn take_back(&mut self, number: u8, bytes: u64) {
        self.lines[usize::from(number)].sent -= cost(bytes);
        self.check(number);
    }

    /// The first message that waits on a channel has `bytes` bytes.
    pub fn offer(&mut self, number: u8, bytes: u64) {
        self.await_turn(number, need(bytes, bytes));
    }

    fn await_turn(&mut self, number: u8, needs: u64) {
        let line = &mut self.lines[usize::from(number)];
        line.needs = needs;
        let is_stalled = self.stalled[usize::from(number) / 64] >> (number % 64) & 1 == 1;
        if needs > 0 && line.free() >= needs && !is_stalled {
            self.turns.ready(number);
        } else {
            self.turns.rest(number);
        }
    }

    /// The channel that is next.
    // spec: CHAN-5, CHAN-6
    pub fn next(&self) -> Option<Turn> {
        let (number, left) = self.turns.next()?;
        let free = self.lines[usize::from(number)].free();
        Some(Turn { number, most: free.min(left.max(PART_MIN)).min(PART_MAX) })
    }

    /// The channel that is next has sent `bytes` bytes of a message of `total`, of which `left` are
    /// left. `then` is the length of the next message of the channel, if there is one.
    // spec: CHAN-3, CHAN-6
    pub fn sent(&mut self, bytes: u64, (left, total): (u64, u64), then: Option<u64>) {
        let Some((number, _)) = self.turns.next() else { return };
        self.lines[usize::from(number)].sent += cost(bytes);
        self.turns.did(cost(bytes));
        let needs = if left > 0 { need(left, total) } else { then.map_or(0, |len| need(len, len)) };
        self.await_turn(number, needs);
        self.check(number);
    }

    /// Nothing waits any more on any channel. Messages that were sent still count.
    pub fn clear(&mut self) {
        NUMBERS.for_each(|number| self.await_turn(number, 0));
    }

    /// The landing has no room for what this channel is to send: others have their turns.
    // spec: CHAN-5
    pub fn stall(&mut self, number: u8) {
        self.stalled[usize::from(number) / 64] |= 1 << (number % 64);
        self.turns.rest(number);
    }

    /// The landing has room again.
    pub fn resume(&mut self) {
        for word in 0..self.stalled.len() {
            let mut bits = core::mem::take(&mut self.stalled[word]);
            while bits != 0 {
                let number = (64 * word) as u8 + bits.trailing_zeros() as u8;
                bits &= bits - 1;
                self.await_turn(number, self.lines[usize::from(number)].needs);
            }
        }
    }

    /// The receiver says how much of a channel it has given back in all.
    // spec: CHAN-3, CHAN-9
    pub fn on_back(&mut self, number: u8, returned: u64) -> Result<(), Malformed> {
        let line = &mut self.lines[usize::from(number)];
        if number == 0 || returned < line.returned || returned > line.sent {
            return Err(Malformed);
        }
        line.returned = returned;
        let needs = line.needs;
        self.check(number);
        if needs > 0 {
            self.await_turn(number, needs);
        }
        Ok(())
    }
}
