//! A peer of another host as a node has it: the link's end, the carrier, and the frames between.
//!
//! ```text
//!   lanes, commands --> carrier --> frames --> end --> network
//!   lanes, target   <-- carrier <-- frames <-- end <--
//! ```
//!
//! Every step is short and never blocks. A step takes a frame, serves timers, or passes records on.
//! It works on a [`StepContext`].
mod load;

use self::load::{Asking, FIRST_STEP, Loading, STEP, Sending, Sent};
use super::carrier::frames::{Frame, Frames, Kept, Memory};
use super::carrier::lanes::Lanes;
use super::carrier::{Carrier, Perform, Taken};
use super::command_record::CommandRecord;
use crate::lane::Malformed;
use crate::link::assembly::{Assembly, Whole};
use crate::link::end::{End, HeaderOutcome};
use crate::link::frame::{CHANNELS, Channel, Flags, Full, HEAD_BYTES, Header, Payload, Records};
use crate::link::looks::Looks;
use crate::link::receive::Arrival;
use alloc::vec::Vec;

/// The sender of frames.
pub trait Transmit<M: Memory> {
    /// Sends a frame; one with a payload has it behind its header's place.
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<M>>);
    /// Sends a frame whose payload is a part of one, or zeros.
    fn transmit_part(&mut self, header: &Header, payload: &[u8]);
}

/// The services that a link's end needs of its host: the network, buffers and news of the peer.
pub trait Network<M: Memory>: Transmit<M> {
    /// Makes buffers for frames on a channel that has `left` of them. Returns the number of new
    /// ones.
    // spec: WIRE-12
    fn renew(&mut self, channel: Channel, left: u32, now: u64) -> u32;
    /// Frames may be longer than before, or have to be shorter; or it is known for the first time.
    // spec: MTU-1
    fn on_length(&mut self, frames: &Frames<M>, is_first: bool);
    /// See [`EndEffects::is_port_closed`](crate::link::end::EndEffects::is_port_closed).
    fn is_port_closed(&mut self) -> bool {
        false
    }
    /// See [`EndEffects::unheard`](crate::link::end::EndEffects::unheard).
    fn unheard(&mut self, silent: u64) {
        let _ = silent;
    }
}

/// The things that a step works on.
#[derive(Debug)]
pub struct StepContext<'a, L, T, N> {
    /// The far side of the connection's lanes.
    pub lanes: &'a mut L,
    /// The target, which performs the peer's commands.
    pub target: &'a mut T,
    /// The sender of frames.
    pub network: &'a mut N,
}

/// The result of [`Linked::serve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Whether there is something for the port: input, or new room for commands.
    pub has_news: bool,
    /// Something was due.
    pub was_due: bool,
}

/// A linked peer.
#[derive(Debug)]
pub struct Linked<M: Memory> {
    end: End,
    carrier: Carrier,
    frames: Frames<M>,
    /// The frames that are coming in pieces.
    assembly: Assembly,
    /// Number of frames whose data was placed before their turn.
    early: u64,
    /// Bytes of each channel's oldest kept frame that were taken already.
    progress: [usize; CHANNELS],
    /// The time when there is something to do, if nothing happens before.
    deadline: u64,
    /// Channels on which something may not be sent yet, which the deadline takes into account.
    held_up: u8,
    /// Frames go in steps; as many were sent as go at a time, and there may be more.
    is_stepwise: bool,
    has_more: bool,
    /// The port has left.
    leaves: bool,
}

impl<M: Memory> Linked<M> {
    /// A linked peer with the end of an open link, whose channels have buffers.
    pub fn new(end: End, frames: Frames<M>) -> Self {
        Self {
            end,
            carrier: Carrier::new(),
            frames,
            assembly: Assembly::default(),
            early: 0,
            progress: [0; CHANNELS],
            deadline: 0,
            held_up: 0,
            is_stepwise: false,
            has_more: false,
            leaves: false,
        }
    }

    /// Invariants that hold between two steps, for all input of the other side.
    fn check(&self) {
        debug_assert!(self.progress.iter().all(|taken| taken % 8 == 0), "records end at a word");
        debug_assert!(self.held_up < 1 << CHANNELS, "of each channel one bit");
        if cfg!(debug_assertions) {
            let is_kept = |channel: Channel| self.frames.kept(channel) > 0;
            let mut begun = Channel::ALL.iter().filter(|of| self.progress[of.index()] > 0);
            debug_assert!(begun.all(|of| is_kept(*of)), "what was taken in part is kept");
            let held = |channel: Channel| self.end.receiver(channel).held() as usize;
            let mut all = Channel::ALL.iter();
            let is_there = |of: &Channel| held(*of) <= self.frames.kept(*of);
            debug_assert!(all.all(is_there), "what is in order and not taken is kept");
        }
    }

    /// The link's end.
    #[inline]
    pub const fn end(&self) -> &End {
        &self.end
    }

    /// The end, for its other reports and requests; see [`Linked::wake`].
    #[inline]
    pub const fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    /// The carrier, for what needs no lanes.
    #[inline]
    pub const fn carrier(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// The frames.
    #[inline]
    pub const fn frames(&self) -> &Frames<M> {
        &self.frames
    }

    /// Number of frames whose data was placed before their turn.
    pub const fn early(&self) -> u64 {
        self.early
    }

    /// There may be something to do now.
    #[inline]
    pub const fn wake(&mut self, now: u64) {
        self.deadline = now;
    }

    /// The time when [`Linked::serve`] has something to do next, if nothing happens before.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.deadline.min(self.carrier.deadline().unwrap_or(u64::MAX))
    }

    /// See [`Carrier::post`].
    ///
    /// # Errors
    /// [`Full`] where the frames have no room for it.
    #[inline]
    pub fn post(
        &mut self,
        request: &impl CommandRecord,
        data: (usize, impl FnOnce(&mut [u8])),
    ) -> Result<(), Full> {
        self.carrier.post(request, data, &mut self.frames)
    }

    /// Leaves once all records that the port has published have arrived. Progress is reported
    /// before.
    pub const fn leave(&mut self) {
        self.leaves = true;
        self.carrier.tell_now();
        self.deadline = 0;
    }

    /// Leaves at once.
    pub fn abort(&mut self) {
        self.end.close();
        self.deadline = 0;
    }

    /// A reset has come: whether it is of this link.
    pub fn on_reset(&mut self, header: &Header, now: u64) -> bool {
        let is_ours = self.end.on_reset(header, now);
        if is_ours {
            self.deadline = now;
        }
        is_ours
    }

    /// Somebody asks for a link in the peer's name: whether he has to wait; see [`End::on_open`].
    pub fn on_open(&mut self, incarnation: u64, is_believed: bool, now: u64) -> bool {
        self.deadline = now;
        self.end.on_open(incarnation, is_believed, now)
    }

    /// Warm reset: frames kept before their turn are forgotten, and both ends go on with the next
    /// frames that they expect.
    // spec: WIRE-11
    pub fn resync(&mut self, now: u64, network: &mut impl Network<M>) {
        self.assembly.clear();
        self.end.resync(now, &mut Sending { frames: &mut self.frames, network });
        self.deadline = now;
    }

    /// Asks for a sign of life by a way that may become a path's. False where there is no such
    /// path.
    // spec: PATH-11
    pub fn challenge(&mut self, path: u8, now: u64, network: &mut impl Transmit<M>) -> bool {
        let asks = self.end.challenge(path, now, &mut Asking { frames: &mut self.frames, network });
        self.deadline = self.deadline.min(self.end.deadline(now));
        asks
    }

    /// Whether nothing that this end has sent is under way.
    pub fn is_quiet(&self) -> bool {
        Channel::ALL.iter().all(|channel| self.end.sender(*channel).is_idle())
    }

    /// Whether everything that the port has published has arrived.
    pub fn is_idle(&self, lanes: &impl Lanes) -> bool {
        let is_begun = |channel: &Channel| self.frames.is_begun(*channel);
        self.is_quiet() && !Channel::ALL.iter().any(is_begun) && self.carrier.is_drained(lanes)
    }

    /// Takes in what had no room before, and sends what the port has published and what is due.
    ///
    /// # Errors
    /// [`Malformed`] where the peer has said what no correct peer says.
    pub fn serve<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<Served, Malformed> {
        let was_full = self.frames.is_full();
        let (mut tried, mut moved, mut has_taken) = (0, false, false);
        loop {
            has_taken |= self.deliver_kept(now, context)?;
            let (has_tried, sent) = self.gather(now, context.lanes, context.network);
            tried |= has_tried;
            moved |= sent != Sent::Nothing;
            // What could not be answered before may be now.
            if sent != Sent::All || !self.holds_back() {
                break;
            }
        }
        if self.leaves && self.is_idle(context.lanes) {
            self.end.close();
        }
        let was_due = self.deadline <= now;
        if was_due {
            let StepContext { network, .. } = context;
            self.end.on_time(now, &mut Sending { frames: &mut self.frames, network: *network });
            self.follow_length(*network);
        }
        // What may not go is tried in each poll. Until something comes or a time is over, that
        // changes nothing.
        if was_due || moved || tried & !self.held_up != 0 {
            self.deadline = if self.has_more { now } else { self.end.deadline(now) };
        }
        self.held_up = if moved { 0 } else { tried };
        self.check();
        Ok(Served { has_news: has_taken || was_full && !self.frames.is_full(), was_due })
    }

    // spec: MTU-1
    fn follow_length(&mut self, network: &mut impl Network<M>) {
        if self.frames.limit() != self.end.frame_max() {
            let is_first = self.frames.limit() == u16::MAX;
            self.frames.set_limit(self.end.frame_max());
            network.on_length(&self.frames, is_first);
        }
    }

    /// Sending takes as long here as on the network, so frames go in steps.
    // spec: WIRE-16
    pub const fn go_in_steps(&mut self) {
        self.is_stepwise = true;
    }

    /// Whether as many frames were sent as go at a time: what may go besides goes with the next
    /// [`Linked::load`], which is to be called when those have left.
    // spec: WIRE-16
    #[inline]
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    /// Sends what the port has published; the rest is left to [`Linked::serve`].
    // spec: WIRE-6
    #[inline]
    pub fn load(&mut self, now: u64, lanes: &mut impl Lanes, network: &mut impl Network<M>) {
        let (has_tried, _) = self.gather(now, lanes, network);
        if has_tried != 0 {
            self.deadline = now;
        }
    }

    /// Sends all pending reports now, before they are due.
    // spec: WIRE-15
    pub fn settle(&mut self, now: u64, lanes: &mut impl Lanes, network: &mut impl Network<M>) {
        let has_news = self.carrier.has_news();
        if has_news {
            self.carrier.tell_now();
            self.gather(now, lanes, network);
        }
        let has_said = self.end.flush_acks(now, &mut Sending { frames: &mut self.frames, network });
        if has_said || has_news {
            self.deadline = if self.has_more { now } else { self.end.deadline(now) };
        }
    }

    /// The channels on which it was tried to send something, and what was sent.
    fn gather(
        &mut self,
        now: u64,
        lanes: &mut impl Lanes,
        network: &mut impl Network<M>,
    ) -> (u8, Sent) {
        let step = match self.is_stepwise {
            false => usize::MAX,
            true if self.is_quiet() => FIRST_STEP,
            true => STEP,
        };
        let Self { end, carrier, frames, .. } = self;
        let executed = carrier.executed_there();
        let mut loading = Loading { end, frames, network, now, executed, tried: 0, step };
        carrier.gather(lanes, &mut loading);
        let (sent, tried) = (loading.send_begun(), loading.tried);
        self.has_more = sent == Sent::Step;
        (tried, sent)
    }

    /// Whether there are frames whose records have not all been taken.
    fn holds_back(&self) -> bool {
        Channel::ALL.iter().any(|channel| self.end.receiver(*channel).held() > 0)
    }

    /// Takes the header that a look has found. Its result goes to [`Linked::on_payload`].
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer says that.
    #[inline]
    pub fn on_header(
        &mut self,
        header: &Header,
        looks: &Looks,
        network: &mut impl Network<M>,
    ) -> Result<HeaderOutcome, Malformed> {
        let mut fx = Sending { frames: &mut self.frames, network };
        let heard = self.end.on_header_found(header, looks, &mut fx)?;
        self.deadline = looks.now();
        Ok(heard)
    }

    /// Takes the payload of a header. Returns whether it brought records.
    ///
    /// # Errors
    /// [`Malformed`] where the peer itself has said what no correct peer says.
    #[inline]
    pub fn on_payload<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        heard: HeaderOutcome,
        (header, payload): (&Header, &[u8]),
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<bool, Malformed> {
        match heard {
            HeaderOutcome::Payload => self.on_assembled(header, payload, now, context),
            HeaderOutcome::Piece => match self.on_piece(header, payload, now)? {
                Some((header, payload)) => self.on_assembled(&header, &payload, now, context),
                None => Ok(false),
            },
            HeaderOutcome::Nothing | HeaderOutcome::Repeated | HeaderOutcome::Foreign => Ok(false),
        }
    }

    #[inline]
    fn on_assembled<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<bool, Malformed> {
        if payload.len() > self.frames.room() {
            return Err(Malformed);
        }
        if header.check_payload(payload, M::crc).is_err() {
            // Damaged on the way: as good as lost.
            return Ok(false);
        }
        let records = Payload::parse(payload)?;
        let arrival = self.end.on_payload(header, now)?;
        if !self.assembly.is_empty() {
            // It may have come whole, or be of another credit.
            let end = &self.end;
            self.assembly.keep_those(|channel, seq| end.receiver(channel).is_wanted(seq));
        }
        match arrival {
            Arrival::InOrder(_) => self.deliver(header, (payload, records), now, context)?,
            Arrival::Ahead => self.keep_ahead(header, (payload, records), context.target),
            Arrival::Dropped | Arrival::Duplicate => return Ok(false),
        }
        self.check();
        Ok(true)
    }

    /// A piece has come: the frame, if it is whole with it.
    // spec: FRAME-12
    #[cold]
    fn on_piece(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: u64,
    ) -> Result<Option<Whole>, Malformed> {
        if header.check_payload(payload, M::crc).is_err() || !self.end.on_piece(header, now)? {
            return Ok(None);
        }
        self.assembly.add(header, payload, self.frames.room())
    }

    /// A frame has come before its turn. If its sender allows it, the data of its puts is placed,
    /// and only the rest is kept for its turn. It does not matter whether the sender was right: its
    /// initiator may write to the memory that a put may reach at any time.
    // spec: WIRE-13
    fn keep_ahead(
        &mut self,
        header: &Header,
        (payload, records): (&[u8], Payload<'_>),
        target: &mut impl Perform,
    ) {
        let is_early = header.flags.contains(Flags::EARLY) && header.channel == Channel::Posted;
        let placed = if is_early { self.carrier.place(&records, target) } else { None };
        let is_placed = placed.is_some();
        self.early += u64::from(is_placed);
        let bytes = placed.map_or_else(|| payload.into(), Vec::into_boxed_slice);
        self.frames.keep(header.channel, header.seq, Kept { bytes, is_placed });
    }

    /// Takes the records of a frame whose turn has come, and those of the frames kept behind it.
    fn deliver<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        header: &Header,
        (payload, records): (&[u8], Payload<'_>),
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<(), Malformed> {
        let Header { channel, seq, .. } = *header;
        let is_oldest = self.end.receiver(channel).taken() == seq;
        let taken = match is_oldest {
            true => self.take_records((records.records(), false), now, context)?,
            false => 0,
        };
        debug_assert!(taken <= payload.len(), "no more is taken than has come");
        if is_oldest && taken == payload.len() {
            self.give_again(channel, now, context.network);
        } else {
            let kept = Kept { bytes: payload.into(), is_placed: false };
            self.frames.keep(channel, seq, kept);
            if is_oldest {
                self.progress[channel.index()] = taken;
            }
        }
        self.deliver_kept(now, context).map(|_| ())
    }

    /// Delivers kept frames of all channels, since the records of one may wait for those of
    /// another. Returns whether anything was taken.
    fn deliver_kept<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<bool, Malformed> {
        let (mut any, mut again) = (false, true);
        while again {
            again = false;
            for channel in Channel::ALL {
                while self.end.receiver(channel).held() > 0
                    && self.deliver_oldest(channel, now, context)?
                {
                    again = true;
                }
            }
            any |= again;
        }
        Ok(any)
    }

    /// Takes what can be taken of the oldest frame of a channel. Whether that was anything.
    fn deliver_oldest<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        channel: Channel,
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<bool, Malformed> {
        let seq = self.end.receiver(channel).taken();
        let kept = self.frames.take_kept(channel, seq);
        let progress = self.progress[channel.index()];
        debug_assert!(progress <= kept.bytes.len(), "no more was taken than was kept");
        let records = Payload::parse(&kept.bytes[progress..])?.records();
        let taken = self.take_records((records, kept.is_placed), now, context)?;
        if progress + taken < kept.bytes.len() {
            self.progress[channel.index()] = progress + taken;
            self.frames.keep(channel, seq, kept);
            return Ok(taken > 0);
        }
        self.progress[channel.index()] = 0;
        self.give_again(channel, now, context.network);
        Ok(true)
    }

    /// Hands records to the carrier, possibly those of a frame whose data is in place. Returns the
    /// number of bytes that it took.
    fn take_records<L: Lanes, T: Perform, N: Network<M>>(
        &mut self,
        (records, is_placed): (Records<'_>, bool),
        now: u64,
        context: &mut StepContext<'_, L, T, N>,
    ) -> Result<usize, Malformed> {
        let Self { end, carrier, frames, .. } = self;
        let StepContext { lanes, target, network } = context;
        let executed = carrier.executed_there();
        let network = &mut **network;
        let mut loading =
            Loading { end, frames, network, now, executed, tried: 0, step: usize::MAX };
        let mut taken = 0;
        for record in records {
            let became = match is_placed {
                true => carrier.take_placed(&record, *lanes, *target, &mut loading)?,
                false => carrier.take(&record, *lanes, *target, &mut loading)?,
            };
            if became == Taken::NotYet {
                break;
            }
            taken += HEAD_BYTES + record.bytes.len().next_multiple_of(8);
        }
        Ok(taken)
    }

    /// The oldest frame of a channel was taken; its buffer is free for another one, which the other
    /// side may be waiting for.
    // spec: LINK-4
    fn give_again(&mut self, channel: Channel, now: u64, network: &mut impl Network<M>) {
        self.deadline = now;
        self.end.take(channel, 1);
        let receiver = self.end.receiver(channel);
        self.frames.pass(channel, receiver.taken());
        let left = receiver.limit().wrapping_sub(receiver.taken());
        let more = network.renew(channel, left, now);
        self.end.give(channel, more, now);
    }
}
