//! The transmissions of an end: the header of every frame, and frames without a payload.
use super::super::frame::{
    CHANNELS, Channel, Digest, Echo, Flags, HEADER_BYTES, Header, Kind, Sack,
};
use super::super::life::Due;
use super::super::path_mtu::{Lengths, Look};
use super::super::paths::PathId;
use super::super::pieces::{self, PIECE_HEAD_BYTES, Piece};
use super::super::resync::Call;
use super::super::send::Transmission;
use super::super::slot;
use super::ack_effects::NoEffects;
use super::{Empty, End, EndEffects, Lane, NOTHING, Newest, PROBE, Part};

impl End {
    /// The eldest frame in flight is sent again, beside those that the window allows: it counts as
    /// the same frame still.
    // spec: LINK-26, CONG-7
    pub(super) fn remind(&mut self, now: u64, fx: &mut impl EndEffects) {
        if self.reminds_at().is_none_or(|at| at > now) || self.congestion.next_send(now).is_some() {
            return;
        }
        let eldest = Channel::ALL.into_iter().filter_map(|channel| {
            let (at, seq) = self.lanes[channel.index()].out.eldest()?;
            Some((at, channel, seq))
        });
        let Some((_, channel, seq)) = eldest.min_by_key(|(at, ..)| *at) else { return };
        let transmission = self.begin(now, self.len_of(channel, seq));
        let before = self.lanes[channel.index()].out.repeat(seq, transmission);
        let name = |one: &Transmission| (one.path, one.number);
        debug_assert!(name(&before) != name(&transmission), "each transmission has its number");
        if let Some(path) = PathId::new(before.path) {
            // If it was not lost, what comes by this path tells.
            self.paths.on_lost(path, now, self.rtt.timeout());
        }
        self.lengths.on_lost(&before, now);
        self.reminder.done();
        self.counters.timed_out += 1;
        self.transmit(channel, seq, transmission, fx);
    }

    /// When [`End::remind`] is due.
    pub(super) fn reminds_at(&self) -> Option<u64> {
        let at = self.reminder.due(&self.rtt, self.max_ack_delay)?;
        let at = self.congestion.next_send(at).unwrap_or(at);
        (self.in_flight() > 0).then_some(at)
    }

    /// Asks for a sign of life on a path, by a way of the owner's choice: the answer echoes the
    /// time. False where there is no such path or no link.
    // spec: PATH-11
    pub fn challenge(&mut self, path: u8, now: u64, fx: &mut impl EndEffects) -> bool {
        let path = PathId::new(path).filter(|_| path < self.agreed.paths && self.life.is_open());
        if let Some(path) = path {
            self.transmit_empty(PROBE, path, now, fx);
        }
        path.is_some()
    }

    // spec: LINK-14
    pub(super) fn ask(&mut self, now: u64, fx: &mut impl EndEffects) {
        let is_wanted = self.lanes.iter().any(|lane| lane.wants && lane.out.in_flight() == 0);
        let is_due = self.asked_at.is_none_or(|at| at.saturating_add(self.rtt.timeout()) <= now);
        if is_wanted && is_due {
            self.asked_at = Some(now);
            self.transmit_chosen(PROBE, now, fx);
        }
    }

    pub(super) fn live(&mut self, now: u64, fx: &mut impl EndEffects) {
        match self.life.due(now, self.rtt.timeout()) {
            Due::Nothing => {}
            Due::Probe => {
                self.on_unanswered(now, fx);
                self.transmit_chosen(PROBE, now, fx);
            }
            Due::Close => self.transmit_chosen((Kind::Close, Flags::empty(), 0), now, fx),
        }
    }

    // spec: LINK-17, LINK-29
    fn on_unanswered(&mut self, now: u64, fx: &mut impl EndEffects) {
        if fx.is_port_closed() {
            self.life.on_port_closed();
        }
        if self.life.is_unheard(now) {
            fx.unheard(now.saturating_sub(self.life.heard_at()));
        }
    }

    /// Each close is answered, also by an end that is closed: the answer may have been lost.
    // spec: LINK-20
    pub(super) fn on_close(&mut self, header: &Header, now: u64, fx: &mut impl EndEffects) {
        self.life.on_close();
        if !header.flags.contains(Flags::ANSWER) {
            self.transmit_chosen((Kind::Close, Flags::ANSWER, 0), now, fx);
        }
    }

    /// It is answered on the path that it came by: what is to be learned is whether that one is
    /// whole, and the live ones may not be.
    // spec: LINK-17, PATH-6, PATH-7, MTU-6
    pub(super) fn on_probe(&mut self, header: &Header, now: u64, fx: &mut impl EndEffects) {
        let Header { path, flags, seq, .. } = *header;
        if flags.contains(Flags::ANSWER) {
            return self.lengths.on_answer(path, seq, now);
        }
        let answer = if seq == 0 { NOTHING } else { (Kind::Probe, Flags::ANSWER, seq) };
        match PathId::new(path).filter(|_| path < self.agreed.paths) {
            Some(path) => self.transmit_empty(answer, path, now, fx),
            None => self.lanes.iter_mut().for_each(|lane| lane.inward.ask(now)),
        }
    }

    // spec: LINK-22
    pub(super) fn ask_resync(&mut self, now: u64, fx: &mut impl EndEffects) {
        if let Some(round) = self.resync.due(now, self.rtt.timeout()) {
            self.transmit_chosen((Kind::Resync, Flags::empty(), round), now, fx);
        }
    }

    // spec: LINK-22, LINK-23
    pub(super) fn on_resync(
        &mut self,
        header: &Header,
        call: Call,
        now: u64,
        fx: &mut impl EndEffects,
    ) {
        self.resync.done(call, header, now);
        self.counters.resyncs += u64::from(call == Call::Asked);
        if matches!(call, Call::Asked | Call::Again) {
            self.transmit_chosen((Kind::Resync, Flags::ANSWER, header.seq), now, fx);
        }
    }

    /// The smoothed round trip, or else the retransmission timeout.
    // spec: LINK-10
    pub(super) fn round_trip(&self) -> u64 {
        self.rtt.smoothed().unwrap_or_else(|| self.rtt.timeout())
    }

    /// Sends acknowledgements that could still wait, because the owner is about to sleep. Returns
    /// whether there were any.
    // spec: LINK-13
    pub fn flush_acks(&mut self, now: u64, fx: &mut impl EndEffects) -> bool {
        let has_news = self.lanes.iter().any(|lane| lane.inward.ack_due(0).is_some());
        let says = has_news && self.life.is_open();
        if says {
            self.transmit_chosen(NOTHING, now, fx);
        }
        says
    }

    pub(super) fn must_ack(&self, now: u64) -> bool {
        let round_trip = self.round_trip();
        self.lanes.iter().any(|lane| {
            lane.inward.ack_due(self.max_ack_delay).is_some_and(|by| by <= now)
                || lane.inward.nack_due(now, round_trip)
        })
    }

    /// Begins a transmission of so long a payload on the path whose turn it is.
    pub(super) fn begin(&mut self, now: u64, len: u16) -> Transmission {
        let in_flight = self.in_flight();
        self.congestion.on_send(now, in_flight);
        self.reminder.on_send(now);
        let path = self.paths.choose(now).map_or(0, PathId::number);
        debug_assert!(path < self.agreed.paths.max(1), "both sides have agreed on the path");
        let number = &mut self.numbers[usize::from(path)];
        *number = number.wrapping_add(1);
        let len = frame_len(len).min(self.lengths.limit(path));
        Transmission { at: now, path, number: *number, len }
    }

    /// Bytes of the payload of a frame that was sent.
    pub(super) fn len_of(&self, channel: Channel, seq: u32) -> u16 {
        self.lanes[channel.index()].sent[slot(seq)].0.len
    }

    pub(super) fn transmit(
        &mut self,
        channel: Channel,
        seq: u32,
        transmission: Transmission,
        fx: &mut impl EndEffects,
    ) {
        let (payload, flags) = self.lanes[channel.index()].sent[slot(seq)];
        if frame_len(payload.len) > transmission.len {
            return self.transmit_pieces((channel, seq), transmission, fx);
        }
        let header = self.header(transmission.path, transmission.at);
        let flags = header.flags | flags;
        fx.transmit(&Header { kind: Kind::Data, channel, flags, seq, payload, ..header });
    }

    /// Sends a frame that is longer than its path takes.
    // spec: MTU-1, FRAME-11
    #[cold]
    fn transmit_pieces(
        &mut self,
        (channel, seq): (Channel, u32),
        transmission: Transmission,
        fx: &mut impl EndEffects,
    ) {
        let (whole, flags) = self.lanes[channel.index()].sent[slot(seq)];
        for (offset, len) in pieces::parts(whole.len, transmission.len) {
            let header = self.header(transmission.path, transmission.at);
            let payload = Digest { len: PIECE_HEAD_BYTES as u16 + len, crc: 0 };
            let flags = header.flags | flags;
            let header = Header { kind: Kind::Piece, channel, flags, seq, payload, ..header };
            fx.transmit_part(&header, &Part::Piece(Piece { whole, offset }));
        }
    }

    /// Sends the probes that find out how long a frame may be.
    // spec: MTU-3, MTU-5, MTU-6
    #[inline]
    pub(super) fn send_length_probes(&mut self, now: u64, fx: &mut impl EndEffects) {
        if self.lengths.due() <= now {
            self.send_due_length_probes(now, fx);
        }
    }

    #[cold]
    fn send_due_length_probes(&mut self, now: u64, fx: &mut impl EndEffects) {
        while let Some(look) = self.lengths.next(now, self.rtt.timeout()) {
            let Look { path, len, number, is_pair } = look;
            let Some(id) = PathId::new(path).filter(|_| path < self.agreed.paths) else { continue };
            if is_pair {
                self.transmit_empty(PROBE, id, now, fx);
            }
            let header = self.header(path, now);
            let payload = Digest { len: len.saturating_sub(HEADER_BYTES as u16), crc: 0 };
            let header = Header { kind: Kind::Probe, seq: number, payload, ..header };
            self.counters.told += 1;
            fx.transmit_part(&header, &Part::Padding);
        }
        self.on_limit_lowered(now);
    }

    /// Frames under way that are too long are lost, which says nothing of how much a path carries.
    /// They go again in pieces.
    // spec: MTU-7
    fn on_limit_lowered(&mut self, now: u64) {
        while let Some(path) = self.lengths.take_lowered() {
            let limit = self.lengths.limit(path);
            for channel in Channel::ALL {
                let fx = &mut NoEffects;
                let (mut heard, lanes) = self.ack_effects((channel, now), fx);
                lanes[channel.index()].out.lose_longer(path, limit, &mut heard);
            }
            self.congestion.on_excuse();
        }
    }

    /// Frames have at most `most` bytes, header and payload, and `least` go by any path: from here
    /// on those that are longer than their path takes go in pieces.
    // spec: MTU-1
    pub fn limit_lengths(&mut self, least: u16, most: u16) {
        self.lengths.begin(least, most, self.agreed.paths);
    }

    /// Bytes of the longest frame that goes whole, by whichever path.
    #[inline]
    pub const fn frame_max(&self) -> u16 {
        self.lengths.of_all()
    }

    /// How long frames may be on each path.
    pub const fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// Whether [`End::asks_host`] names a path.
    #[inline]
    pub const fn has_question(&self) -> bool {
        self.lengths.has_question()
    }

    /// A path of which the owner asks its host how long a frame may be, and then tells
    /// [`End::on_host_limit`].
    // spec: MTU-3
    pub fn asks_host(&mut self) -> Option<u8> {
        self.lengths.asks_host()
    }

    /// The host takes a frame of `most` bytes for this path, as far as it knows.
    // spec: MTU-1, MTU-3
    pub fn on_host_limit(&mut self, path: u8, most: u16, now: u64) {
        self.lengths.on_host_limit(path, most, now);
        self.on_limit_lowered(now);
    }

    /// The host has refused a frame for this path, as it was longer than this.
    // spec: MTU-2
    pub fn on_refused(&mut self, path: u8, most: u16, now: u64) {
        self.lengths.on_refused(path, most, now);
        self.on_limit_lowered(now);
    }

    /// Sends a frame without a payload on the path whose turn it is.
    pub(super) fn transmit_chosen(&mut self, what: Empty, now: u64, fx: &mut impl EndEffects) {
        if let Some(path) = self.paths.choose(now) {
            self.transmit_empty(what, path, now, fx);
        }
    }

    pub(super) fn transmit_empty(
        &mut self,
        (kind, flags, seq): Empty,
        path: PathId,
        now: u64,
        fx: &mut impl EndEffects,
    ) {
        let header = self.header(path.number(), now);
        let flags = header.flags | flags;
        self.counters.told += 1;
        fx.transmit(&Header { kind, flags, seq, ..header });
    }

    /// The header of a frame: it acknowledges the other direction.
    // spec: LINK-13
    pub(super) fn header(&mut self, path: u8, now: u64) -> Header {
        let round_trip = self.round_trip();
        let missing = |index: &usize| {
            let receiver = &self.lanes[*index].inward;
            receiver.sack() != 0 || receiver.nack_due(now, round_trip)
        };
        let turn = (1..=CHANNELS).map(|step| (self.turn + step) % CHANNELS).find(missing);
        self.turn = turn.unwrap_or(self.turn);
        let nack = self.lanes[self.turn].inward.nack_due(now, round_trip);
        self.packet += 1;
        let header = Header {
            kind: Kind::Data,
            channel: Channel::Posted,
            flags: if nack { Flags::NACK } else { Flags::empty() },
            path,
            to: self.agreed.to,
            generation: self.agreed.generation,
            token: self.agreed.token,
            packet: self.packet,
            seq: 0,
            stamp: now as u32,
            ack: core::array::from_fn(|index| self.lanes[index].inward.expected()),
            limit: core::array::from_fn(|index| self.lanes[index].inward.limit()),
            sack: Sack {
                channel: Channel::ALL[self.turn],
                arrived: self.lanes[self.turn].inward.sack(),
            },
            echo: self.newest.map(|Newest { stamp, path, at, late }| Echo {
                stamp,
                held: u32::try_from(now.saturating_sub(at)).unwrap_or(u32::MAX),
                path,
                late,
            }),
            payload: Digest { len: 0, crc: 0 },
        };
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            // What came before its turn on another channel is still to be told.
            if index == self.turn || lane.inward.sack() == 0 {
                lane.inward.on_ack_sent(now, nack && index == self.turn);
            }
        }
        let is_told = |lane: &Lane| lane.inward.sack() != 0 || lane.inward.ack_due(0).is_none();
        debug_assert!(self.lanes.iter().all(is_told), "what a frame says is not said again");
        header
    }
}

/// Bytes of a frame with so long a payload.
const fn frame_len(payload: u16) -> u16 {
    payload.saturating_add(HEADER_BYTES as u16)
}
