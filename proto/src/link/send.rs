//! Sender's end of a channel: numbers, credit, what is under way, what must be sent again.
//!
//! ```text
//!        acked              next            acked + WINDOW
//!          v                  v                   v
//!   -------|xx.xL.x..L.xxxxxxx|-------------------|----->  seq
//!          '-- . arrived, x in flight, L lost     limit is somewhere behind acked
//! ```
//!
//! A frame is found lost in three cases. Three later transmissions on its path have arrived, or one
//! and some time has passed. The receiver reports it missing. Or nothing was heard of it for the
//! timeout. It keeps its number; each transmission has a number of its own among those of its path.
use super::{PATHS, Repair, WINDOW, precedes, slot};
use crate::lane::Malformed;

/// Later transmissions of the same path that have arrived when one is taken for lost.
// spec: LINK-8
pub const OVERTAKEN: u32 = 3;

/// One transmission of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// When, in nanoseconds.
    pub at: u64,
    /// By which path, below [`super::frame::PATHS_MAX`].
    pub path: u8,
    /// The how many-th of that path, counted from one and wrapping.
    pub number: u32,
    /// Bytes of its longest datagram, as a frame: of the frame, or of a piece.
    pub len: u16,
}

/// How long a transmission is waited for, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// One that nothing was heard of.
    pub timeout: u64,
    /// One that a later one of its path has overtaken.
    pub overtaken: u64,
}

/// The acknowledgement of this channel in a frame from the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All frames before this one have arrived.
    pub ack: u32,
    /// Bit i: frame `ack + 1 + i` has arrived too.
    pub sack: u128,
    /// Frames before this one may be sent.
    pub limit: u32,
    /// The receiver misses frame `ack`, and should have seen what was sent before this time.
    pub nack: Option<u64>,
    /// The newest transmission that the receiver had got when it sent this, if it tells: by which
    /// path, and when it was sent. It speaks of no later transmission of that path.
    pub heard: Option<(u8, u64)>,
}

impl Ack {
    /// Whether it may speak of this transmission, and not only of an earlier one of the frame.
    // spec: LINK-27
    fn may_mean(&self, transmission: &Transmission) -> bool {
        self.heard.is_none_or(|(path, at)| path != transmission.path || transmission.at <= at)
    }
}

/// Why a frame is taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Later transmissions on its path have arrived.
    Overtaken,
    /// The receiver has asked for it.
    Nack,
    /// Nothing was heard of it for the timeout.
    Timeout,
    /// Both ends have begun anew with what the receiver expects.
    Resync,
    /// It was longer than its path takes.
    TooLong,
}

/// The fates of frames, told to the caller after the machine has changed.
pub trait SendEffects {
    /// A frame has arrived. The transmission is its last one. A receiver that has to forget frames
    /// kept before their turn gets them again.
    fn arrived(&mut self, seq: u32, transmission: Transmission);
    /// A frame and all before it have arrived, once and for all; its buffer is free.
    fn freed(&mut self, seq: u32);
    /// A transmission is taken for lost; [`Sender::lost`] will ask to send the frame again.
    fn lost(&mut self, seq: u32, transmission: Transmission, why: Loss);
}

/// Sender's end of a channel.
#[derive(Clone, Debug)]
pub struct Sender {
    repair: Repair,
    /// The number of the next new frame.
    next: u32,
    /// All before have arrived.
    acked: u32,
    /// The receiver has room for those before.
    limit: u32,
    /// Bit i of each: frame `acked + i`.
    arrived: u128,
    lost: u128,
    /// Frames before were under way when one was sent again.
    again: u32,
    /// By number modulo the window.
    last: [Transmission; WINDOW as usize],
    /// By path, the newest transmission that has arrived.
    newest: [u32; PATHS],
}

impl Sender {
    /// A channel on which nothing was sent, and for which the receiver has not given room yet. Both
    /// ends agree on the first number.
    // spec: LINK-3
    pub const fn new(repair: Repair, first: u32) -> Self {
        const NONE: Transmission = Transmission { at: 0, path: 0, number: 0, len: 0 };
        Self {
            repair,
            next: first,
            acked: first,
            limit: first,
            arrived: 0,
            lost: 0,
            again: first,
            last: [NONE; WINDOW as usize],
            newest: [0; PATHS],
        }
    }

    /// Asserts what holds between two steps, whatever the other side has sent.
    const fn check(&self) {
        let sent = self.next.wrapping_sub(self.acked);
        let given = self.limit.wrapping_sub(self.acked);
        debug_assert!(given <= WINDOW, "credit reaches no further than the window");
        debug_assert!(sent <= given, "what is under way was sent with credit");
        debug_assert!(self.arrived & !self.sent_mask() == 0, "only what was sent has arrived");
        debug_assert!(self.lost & !self.sent_mask() == 0, "only what was sent is lost");
        debug_assert!(self.arrived & self.lost == 0, "what has arrived is not lost");
    }

    /// New frames that may be sent now: as many as the receiver has room for, and as the window
    /// holds.
    // spec: LINK-4, LINK-6
    pub const fn room(&self) -> u32 {
        let sent = self.next.wrapping_sub(self.acked);
        let credit = self.limit.wrapping_sub(self.next);
        let window = WINDOW - sent;
        if credit < window { credit } else { window }
    }

    /// Frames that were sent, are not taken for lost, and are not known to have arrived.
    pub const fn in_flight(&self) -> u32 {
        self.under_way() - count(self.lost)
    }

    /// Frames that were sent and are not known to have arrived.
    pub const fn under_way(&self) -> u32 {
        self.next.wrapping_sub(self.acked) - count(self.arrived)
    }

    /// Whether all frames under way were sent once, in order, and nothing that was sent after the
    /// oldest has arrived. Then the oldest was sent first and is waited for longest, and none is
    /// overtaken. So it nearly always is, and nobody need look at each.
    const fn is_plain(&self) -> bool {
        self.arrived == 0 && self.lost == 0 && !precedes(self.acked, self.again)
    }

    /// Whether all that was sent has arrived.
    pub const fn is_idle(&self) -> bool {
        self.next == self.acked
    }

    /// The number that the next new frame will have.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// The number of the oldest frame that is not known to have arrived; the next one if all have.
    pub const fn oldest(&self) -> u32 {
        self.acked
    }

    /// Sends a new frame, for which there is room: its number.
    // spec: LINK-3
    pub const fn send(&mut self, transmission: Transmission) -> u32 {
        assert!(self.room() > 0, "a frame is sent only where there is room");
        let seq = self.next;
        self.next = seq.wrapping_add(1);
        self.last[slot(seq)] = transmission;
        self.check();
        seq
    }

    /// The oldest frame that must be sent again.
    pub const fn lost(&self) -> Option<u32> {
        match self.lost.trailing_zeros() {
            u128::BITS => None,
            ahead => Some(self.acked.wrapping_add(ahead)),
        }
    }

    /// Sends the frame again that [`Sender::lost`] named.
    // spec: LINK-7
    pub fn resend(&mut self, transmission: Transmission) {
        assert!(self.lost != 0, "only what is lost is sent again");
        let ahead = self.lost.trailing_zeros();
        self.lost &= !(1 << ahead);
        self.again = self.next;
        self.last[slot(self.acked.wrapping_add(ahead))] = transmission;
        debug_assert!(!self.is_plain(), "what was sent twice is looked at one by one");
        self.check();
    }

    /// The frame in flight that was sent before all others, and when.
    pub fn eldest(&self) -> Option<(u64, u32)> {
        if self.is_plain() {
            return (!self.is_idle()).then(|| (self.last[slot(self.acked)].at, self.acked));
        }
        let in_flight = numbers(self.acked, self.in_flight_mask());
        let sent = in_flight.map(|seq| (self.last[slot(seq)].at, seq));
        sent.min_by_key(|(at, _)| *at)
    }

    /// Sends a frame again that is in flight, and not taken for lost: its transmission of before.
    // spec: LINK-7, LINK-26
    pub fn repeat(&mut self, seq: u32, transmission: Transmission) -> Transmission {
        let ahead = seq.wrapping_sub(self.acked);
        assert!(ahead < WINDOW && self.in_flight_mask() >> ahead & 1 == 1, "it is in flight");
        self.again = self.next;
        core::mem::replace(&mut self.last[slot(seq)], transmission)
    }

    /// Takes in what the other side says.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where it speaks of frames that were never sent.
    // spec: LINK-5, LINK-11
    pub fn on_ack(&mut self, said: &Ack, fx: &mut impl SendEffects) -> Result<(), Malformed> {
        self.check();
        let Ack { ack, sack, limit, nack, .. } = *said;
        if (ack, limit, sack, nack) == (self.acked, self.limit, 0, None) {
            // Most frames say nothing new of most channels.
            return Ok(());
        }
        let Some(ahead) = self.ahead_of(said)? else { return Ok(()) };
        if precedes(self.limit, said.limit) {
            self.limit = said.limit;
        }
        // Relative to acked, as all masks are: those before `ack`, then those of the sack.
        let before = mask(ahead);
        let behind = if ahead + 1 < WINDOW { said.sack << (ahead + 1) } else { 0 };
        let news = (before | behind) & !self.arrived;
        self.arrived |= news;
        self.lost &= !self.arrived;
        let oldest = self.acked;
        self.acked = said.ack;
        self.arrived = shifted(self.arrived, ahead);
        self.lost = shifted(self.lost, ahead);
        for seq in numbers(oldest, news) {
            let transmission = self.last[slot(seq)];
            if said.may_mean(&transmission) {
                self.heard_of(&transmission);
            }
            fx.arrived(seq, transmission);
        }
        for seq in numbers(oldest, before) {
            fx.freed(seq);
        }
        self.find_overtaken(fx);
        if let Some(seen) = said.nack
            && !self.is_idle()
            && self.last[slot(self.acked)].at < seen
            && said.may_mean(&self.last[slot(self.acked)])
        {
            self.lose_from(0, Loss::Nack, fx);
        }
        self.check();
        Ok(())
    }

    /// When the first frame in flight has been waited for.
    pub fn deadline(&self, wait: Wait) -> Option<u64> {
        if self.is_plain() {
            return self.eldest().map(|(at, _)| at.saturating_add(wait.timeout));
        }
        let in_flight = numbers(self.acked, self.in_flight_mask());
        in_flight.map(|seq| self.waits_until(seq, wait)).min()
    }

    /// Takes every frame for lost that has been waited for.
    // spec: LINK-8
    pub fn on_time(&mut self, now: u64, wait: Wait, fx: &mut impl SendEffects) {
        self.check();
        if self.is_plain() && self.deadline(wait).is_none_or(|at| at > now) {
            return;
        }
        let is_late = |seq: &u32| self.waits_until(*seq, wait) <= now;
        let late = self.those(is_late);
        let overtaken = late & self.those(|seq| self.is_overtaken(*seq, 1));
        self.lose_those(late & !overtaken, Loss::Timeout, fx);
        self.lose_those(overtaken, Loss::Overtaken, fx);
        debug_assert!(late & self.in_flight_mask() == 0, "what is late is waited for no longer");
        self.check();
    }

    /// Takes all in flight for lost that went by a path in longer datagrams than it takes.
    // spec: MTU-7
    pub fn lose_longer(&mut self, path: u8, limit: u16, fx: &mut impl SendEffects) {
        let longer = self.those(|seq| {
            let last = &self.last[slot(*seq)];
            last.path == path && last.len > limit
        });
        self.lose_those(longer, Loss::TooLong, fx);
    }

    /// Goes on with what the receiver says that it expects, and sends all again that it has not
    /// got. If it has forgotten what it kept before its turn, only what it says now still holds.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where it speaks of frames that were never sent.
    // spec: LINK-12
    pub fn resume(
        &mut self,
        said: &Ack,
        has_forgotten: bool,
        fx: &mut impl SendEffects,
    ) -> Result<(), Malformed> {
        self.on_ack(said, fx)?;
        if has_forgotten {
            let is_newest = said.ack == self.acked;
            self.arrived &= if is_newest { said.sack << 1 } else { 0 };
        }
        self.lose(self.sent_mask() & !self.arrived & !self.lost, Loss::Resync, fx);
        debug_assert!(self.in_flight() == 0, "what had not arrived goes again");
        self.check();
        Ok(())
    }

    /// How far an acknowledgement goes beyond the last one; `None` for one that is older.
    fn ahead_of(&self, said: &Ack) -> Result<Option<u32>, Malformed> {
        let sent = self.next.wrapping_sub(self.acked);
        let ahead = said.ack.wrapping_sub(self.acked);
        if ahead > sent {
            // Frames overtake each other, so one that says less than we know is no lie; nor does it
            // need to be older than the window of numbers that it may name.
            let old = precedes(said.ack, self.acked);
            return if old { Ok(None) } else { Err(Malformed) };
        }
        let unsent = if ahead == sent { u128::MAX } else { !mask(sent - ahead - 1) };
        let room = said.limit.wrapping_sub(said.ack);
        let honest = said.sack & unsent == 0 && room <= WINDOW;
        if honest { Ok(Some(ahead)) } else { Err(Malformed) }
    }

    fn heard_of(&mut self, transmission: &Transmission) {
        let newest = &mut self.newest[usize::from(transmission.path) % PATHS];
        if precedes(*newest, transmission.number) {
            *newest = transmission.number;
        }
    }

    /// Whether the transmission this number behind it on its path, or a later one, has arrived.
    fn is_overtaken(&self, seq: u32, by: u32) -> bool {
        let Transmission { path, number, .. } = self.last[slot(seq)];
        let newest = self.newest[usize::from(path) % PATHS];
        !precedes(newest, number.wrapping_add(by))
    }

    fn waits_until(&self, seq: u32, wait: Wait) -> u64 {
        let wait = if self.is_overtaken(seq, 1) { wait.overtaken } else { wait.timeout };
        self.last[slot(seq)].at.saturating_add(wait)
    }

    fn find_overtaken(&mut self, fx: &mut impl SendEffects) {
        if self.is_plain() {
            return;
        }
        let overtaken = self.those(|seq| self.is_overtaken(*seq, OVERTAKEN));
        self.lose_those(overtaken, Loss::Overtaken, fx);
    }

    /// The frames in flight of which this is so.
    fn those(&self, is_so: impl FnMut(&u32) -> bool) -> u128 {
        let those = numbers(self.acked, self.in_flight_mask()).filter(is_so);
        those.fold(0, |mask, seq| mask | 1 << seq.wrapping_sub(self.acked))
    }

    /// Takes these frames in flight for lost; going back, all behind the first of them too.
    fn lose_those(&mut self, frames: u128, why: Loss, fx: &mut impl SendEffects) {
        if frames != 0 {
            match self.repair {
                Repair::Selective => self.lose(frames & self.in_flight_mask(), why, fx),
                Repair::GoBackN => self.lose_from(frames.trailing_zeros(), why, fx),
            }
        }
    }

    /// Takes the frame that lies so far behind the oldest one for lost; going back, all behind it
    /// too.
    fn lose_from(&mut self, ahead: u32, why: Loss, fx: &mut impl SendEffects) {
        let frames = match self.repair {
            Repair::GoBackN => self.sent_mask() & !mask(ahead),
            Repair::Selective if why == Loss::Nack => 1 << ahead,
            Repair::Selective => self.sent_mask(),
        };
        self.lose(frames & !self.arrived & !self.lost, why, fx);
    }

    fn lose(&mut self, frames: u128, why: Loss, fx: &mut impl SendEffects) {
        debug_assert!(frames & !self.in_flight_mask() == 0, "only what is in flight gets lost");
        self.lost |= frames;
        for seq in numbers(self.acked, frames) {
            fx.lost(seq, self.last[slot(seq)], why);
        }
    }

    /// Sent, not taken for lost, and not known to have arrived.
    const fn in_flight_mask(&self) -> u128 {
        self.sent_mask() & !self.arrived & !self.lost
    }

    const fn sent_mask(&self) -> u128 {
        mask(self.next.wrapping_sub(self.acked))
    }
}

/// Bits that are set, of masks that are nearly always empty: counting takes dozens of instructions
/// of what all processors have.
const fn count(mask: u128) -> u32 {
    if mask == 0 { 0 } else { mask.count_ones() }
}

/// The lowest `count` bits.
const fn mask(count: u32) -> u128 {
    if count >= u128::BITS { u128::MAX } else { (1 << count) - 1 }
}

const fn shifted(mask: u128, count: u32) -> u128 {
    if count >= u128::BITS { 0 } else { mask >> count }
}

/// The numbers behind `first` that a mask names.
fn numbers(first: u32, mut mask: u128) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let ahead = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (ahead < u128::BITS).then(|| first.wrapping_add(ahead))
    })
}
