//! Filling frames and sending them.
use super::{Network, Transmit};
use crate::link::WINDOW;
use crate::link::end::{End, EndEffects, Part};
use crate::link::frame::{Channel, Digest, Full, Header, RecordKind};
use crate::link::pieces::PIECE_HEAD_BYTES;
use crate::node::carrier::frames::{Frames, Memory};
use crate::node::carrier::pack::Pack;
use alloc::vec;

/// Frames that go at a time, where they go in steps: about as many as a network takes with one
/// call. Where none is under way the other side waits, and hears of the first ones while the others
/// are made.
// spec: WIRE-16
pub(super) const STEP: usize = 44;
pub(super) const FIRST_STEP: usize = 8;
const _: () = assert!(FIRST_STEP < STEP && STEP < WINDOW as usize, "several steps fill the window");

/// Fills frames and sends them.
pub(super) struct Loading<'a, M: Memory, N> {
    pub(super) end: &'a mut End,
    pub(super) frames: &'a mut Frames<M>,
    pub(super) network: &'a mut N,
    pub(super) now: u64,
    /// Number of this port's commands that the other side has executed, as far as is known.
    pub(super) executed: u64,
    /// Channels on which a frame was sent, or could not be.
    pub(super) tried: u8,
    /// Frames that go at a time.
    pub(super) step: usize,
}

/// The frames that were sent, of those that were begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// None: there are none, or none may go now.
    Nothing,
    /// All that may.
    All,
    /// As many frames as go at a time.
    Step,
}

impl<M: Memory, N: Network<M>> Loading<'_, M, N> {
    /// Sends the oldest frame that was begun on a channel. False where none may be sent now.
    fn send(&mut self, channel: Channel) -> bool {
        self.tried |= 1 << channel.index();
        if !self.end.may_send(channel, self.now) {
            return false;
        }
        let seq = self.end.sender(channel).next();
        let first = self.frames.depart((channel, seq), self.executed);
        let mut fx = Sending { frames: self.frames, network: self.network };
        let sent = self.end.send(channel, first, self.now, &mut fx);
        debug_assert!(sent == seq, "the number is the next one");
        true
    }

    /// Sends what has been begun, as much as goes at a time. Responses first: somebody waits for
    /// them.
    // spec: WIRE-16
    #[inline]
    pub(super) fn send_begun(&mut self) -> Sent {
        let mut sent = 0;
        for channel in Channel::ALL.into_iter().rev() {
            while self.frames.is_begun(channel) && self.send(channel) {
                sent += 1;
                if sent == self.step {
                    return Sent::Step;
                }
            }
        }
        if sent == 0 { Sent::Nothing } else { Sent::All }
    }
}

impl<M: Memory, N> Pack for Loading<'_, M, N> {
    #[inline]
    fn pack(
        &mut self,
        channel: Channel,
        head: (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full> {
        if !self.has_room(channel, len) {
            return Err(Full);
        }
        self.frames.append(channel, head, len, fill);
        Ok(())
    }

    #[inline]
    fn longest(&self) -> usize {
        self.frames.longest()
    }

    #[inline]
    fn whole(&self) -> usize {
        self.frames.whole()
    }

    #[inline]
    fn share(&self, channel: Channel) -> usize {
        self.frames.share(channel)
    }

    #[inline]
    fn has_room(&self, channel: Channel, len: usize) -> bool {
        self.frames.fits(channel, len)
    }

    #[inline]
    fn is_laden(&self) -> bool {
        self.frames.ready() >= self.step
    }

    #[inline]
    fn begun(&self) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| self.frames.is_begun(*channel))
    }

    #[inline]
    fn now(&self) -> u64 {
        self.now
    }
}

/// Puts frames on their way.
pub(super) struct Sending<'a, M: Memory, N> {
    pub(super) frames: &'a mut Frames<M>,
    pub(super) network: &'a mut N,
}

impl<M: Memory, N: Network<M>> EndEffects for Sending<'_, M, N> {
    #[inline]
    fn transmit(&mut self, header: &Header) {
        transmit(header, self.frames, self.network);
    }

    #[cold]
    fn transmit_part(&mut self, header: &Header, part: &Part) {
        transmit_part(header, part, self.frames, self.network);
    }

    #[inline]
    fn arrived(&mut self, channel: Channel, _seq: u32) {
        self.frames.arrived(channel);
    }

    fn is_port_closed(&mut self) -> bool {
        self.network.is_port_closed()
    }

    fn unheard(&mut self, silent: u64) {
        self.network.unheard(silent);
    }
}

/// Asks for a sign of life by a way that may be no path's.
pub(super) struct Asking<'a, M: Memory, N> {
    pub(super) frames: &'a mut Frames<M>,
    pub(super) network: &'a mut N,
}

impl<M: Memory, N: Transmit<M>> EndEffects for Asking<'_, M, N> {
    fn transmit(&mut self, header: &Header) {
        transmit(header, self.frames, self.network);
    }

    fn transmit_part(&mut self, header: &Header, part: &Part) {
        transmit_part(header, part, self.frames, self.network);
    }

    fn arrived(&mut self, _: Channel, _: u32) {}
}

#[inline]
fn transmit<M: Memory>(header: &Header, frames: &mut Frames<M>, network: &mut impl Transmit<M>) {
    let frame = match header.payload.len {
        0 => None,
        _ => Some(frames.sent(header.channel, header.seq)),
    };
    network.transmit(header, frame);
}

// spec: FRAME-11, MTU-6
fn transmit_part<M: Memory>(
    header: &Header,
    part: &Part,
    frames: &mut Frames<M>,
    network: &mut impl Transmit<M>,
) {
    let len = usize::from(header.payload.len);
    let payload = match part {
        Part::Padding => vec![0; len],
        Part::Piece(piece) => {
            debug_assert!(len > PIECE_HEAD_BYTES, "a piece brings something");
            let whole = frames.sent(header.channel, header.seq).payload();
            let bytes = &whole[usize::from(piece.offset)..][..len - PIECE_HEAD_BYTES];
            [&piece.encode(), bytes].concat()
        }
    };
    let header = Header { payload: Digest::of(&payload, M::crc), ..*header };
    network.transmit_part(&header, &payload);
}
