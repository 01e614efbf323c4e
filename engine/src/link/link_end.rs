//! One end of a link: the machine of `proto::link`, and what it acts on.
mod lengths;

pub(crate) use self::lengths::{DATAGRAM_LEAST, sealing};
use super::assembly::Assembly;
use super::carrier::Carrier;
use super::doubt::Doubt;
use super::frames::{Frames, frames, with_header};
use super::pool::{Pool, Share};
use super::seal::{Keys, PREFIX_BYTES, TAG_BYTES};
use super::ways::{Seen, Ways};
use crate::net::crc::crc32c;
use crate::net::datagram::{Outbox, Taps};
use crate::net::routes::Way;
use crate::peer::agreement::Name;
use crate::sync::AtomicU64;
use ayre_proto::lane::Malformed;
use ayre_proto::link::end::{End, EndEffects, Heard, Part};
use ayre_proto::link::frame::{
    Channel, Digest, Flags, Full, HEAD_BYTES, HEADER_BYTES, Header, Payload, RecordKind, Records,
};
use ayre_proto::link::life::State;
use ayre_proto::link::looks::Looks;
use ayre_proto::link::pieces::PIECE_HEAD_BYTES;
use ayre_proto::link::receive::Arrival;
use ayre_proto::node::ask::Ask;
use ayre_proto::node::carrier::frames::Kept;
use ayre_proto::node::carrier::pack::Pack;
use ayre_proto::node::carrier::{Taken, channel_of};
use ayre_proto::units::PeerId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Frames that are worth a system call before anybody asks for one.
const TRAIN: usize = 32;
/// One end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    pub(crate) peer: PeerId,
    /// The endpoint at the other side, if it is one.
    pub(crate) name: Option<Name>,
    /// That this side's frames carry.
    pub(crate) token: u64,
    pub(crate) machine: End,
    pub(crate) carrier: Carrier,
    line: Line,
    /// What has come in pieces.
    assembly: Assembly,
    /// Of the port's buffers.
    share: Share,
    /// Why it goes over a network to an endpoint of this host, if it does.
    pub(crate) detour: Option<Box<str>>,
    /// Frames whose data was put in place before their turn.
    pub(crate) early: u64,
    /// Bytes of each channel's oldest kept frame that were taken already.
    progress: [usize; Channel::ALL.len()],
    /// When there is something to do though nothing happens.
    deadline: u64,
    /// Channels on which something may not be sent yet, which the deadline takes into account.
    held_up: u8,
    /// The port has left.
    leaves: bool,
}

/// What the machine's effects need.
#[derive(Debug)]
struct Line {
    ways: Ways,
    frames: Frames,
    /// Bytes of the longest record that goes whole, for those who cut what they post.
    whole: Arc<AtomicU64>,
    keys: Option<Keys>,
    /// What sealed frames are told to, if they are written down.
    taps: Option<Taps>,
    doubt: Doubt,
}

impl LinkEnd {
    /// For frames of at most `frame_max` bytes, with buffers of the pool's; sealed, where there are
    /// keys.
    pub(crate) fn new(
        (peer, mut machine): (PeerId, End),
        carrier: Carrier,
        (keys, ways): (Option<Keys>, Vec<Way>),
        (frame_max, pool): (usize, &Arc<Pool>),
    ) -> Self {
        let share = Share::of(pool);
        let least = DATAGRAM_LEAST - sealing(keys.is_some());
        machine.limit_lengths(least as u16, frame_max as u16);
        for channel in Channel::ALL {
            machine.give(channel, share.least(), 0);
        }
        let frames = frames((frame_max - HEADER_BYTES) & !7);
        let whole = Arc::new(AtomicU64::new(frames.whole() as u64));
        let (ways, doubt) = (Ways::new(ways), Doubt::default());
        let line = Line { ways, frames, whole, keys, taps: None, doubt };
        Self {
            peer,
            name: None,
            token: 0,
            machine,
            carrier,
            line,
            assembly: Assembly::default(),
            share,
            detour: None,
            early: 0,
            progress: [0; 3],
            deadline: 0,
            held_up: 0,
            leaves: false,
        }
    }

    /// The port has taken the link for its connection with this peer.
    pub(crate) fn belong_to(&mut self, peer: PeerId) {
        self.peer = peer;
        self.carrier.belong_to(peer);
    }

    /// Where the paths lead is known. Until the other side has learned it, its frames of all paths
    /// come by one. Where they could lead as well, the link was asked for.
    pub(crate) fn know_ways(&mut self, asked: Vec<Way>) {
        self.line.ways.know(asked);
    }

    /// Frames are written down before they are sealed.
    pub(crate) fn write_down(&mut self, taps: Taps) {
        self.line.taps = Some(taps);
    }

    /// What opens the other side's frames, where they are sealed.
    pub(crate) fn keys(&mut self) -> Option<&mut Keys> {
        self.line.keys.as_mut()
    }

    /// Where each path leads.
    pub(crate) fn ways(&self) -> impl Iterator<Item = Way> {
        self.line.ways.iter()
    }

    /// Whether frames are sealed.
    pub(crate) fn is_sealed(&self) -> bool {
        self.line.keys.is_some()
    }

    /// Bytes of the longest record.
    pub(crate) fn record_max(&self) -> usize {
        self.line.frames.longest()
    }

    /// Bytes of the longest one that goes whole, as that changes.
    pub(crate) fn record_whole(&self) -> Arc<AtomicU64> {
        self.line.whole.clone()
    }

    /// Whether a command of `len` bytes finds room.
    pub(crate) fn has_room(&self, answered: bool, len: usize) -> bool {
        self.line.frames.fits(channel_of(answered), len)
    }

    /// Frames that can be made ready for commands without a response.
    pub(crate) fn room(&self) -> usize {
        self.line.frames.left(Channel::Posted)
    }

    /// Frames that are ready to go.
    pub(crate) fn ready(&self) -> usize {
        self.line.frames.ready()
    }

    /// Whether a train of frames is ready to go.
    pub(crate) fn is_laden(&self) -> bool {
        self.ready() >= TRAIN
    }

    /// See [`Carrier::post`].
    pub(crate) fn post(
        &mut self,
        request: &impl Ask,
        data: (usize, impl FnOnce(&mut [u8])),
    ) -> Result<(), Full> {
        self.carrier.post(request, data, &mut self.line.frames)
    }

    /// Whether the other side has answered.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.machine.rtt().smoothed().is_some()
    }

    /// Whether there is a link.
    pub(crate) fn state(&self) -> State {
        self.machine.state()
    }

    /// Leaves once everything that the port has published has arrived.
    pub(crate) fn leave(&mut self) {
        self.leaves = true;
        // What it has done is told before.
        self.carrier.machine().tell_now();
        self.deadline = 0;
    }

    /// Leaves at once.
    pub(crate) fn abort(&mut self) {
        self.machine.close();
        self.deadline = 0;
    }

    /// A reset has come: whether it is of this link.
    pub(crate) fn on_reset(&mut self, header: &Header, now: u64) -> bool {
        let is_ours = self.machine.on_reset(header, now);
        if is_ours {
            self.deadline = now;
        }
        is_ours
    }

    /// Somebody asks for a link in the peer's name: whether he has to wait; see [`End::on_open`].
    pub(crate) fn on_open(&mut self, incarnation: u64, is_believed: bool, now: u64) -> bool {
        self.deadline = now;
        self.machine.on_open(incarnation, is_believed, now)
    }

    /// Warm reset: what came before its turn is forgotten, and both ends go on with what each of
    /// them expects.
    pub(crate) fn resync(&mut self, now: u64, outboxes: &mut [Outbox]) {
        self.assembly.clear();
        self.machine.resync(now, &mut Sending { line: &mut self.line, outboxes });
        self.deadline = now;
    }

    /// When [`LinkEnd::serve`] has something to do next, though nothing happens.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.min(self.carrier.deadline().unwrap_or(u64::MAX))
    }

    /// Whether nothing of ours is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        Channel::ALL.iter().all(|channel| self.machine.sender(*channel).is_idle())
    }

    /// Whether everything that the port has published has arrived.
    pub(crate) fn is_idle(&self) -> bool {
        let all_sent = Channel::ALL.iter().all(|channel| {
            self.machine.sender(*channel).is_idle() && !self.line.frames.is_begun(*channel)
        });
        all_sent && self.carrier.is_drained()
    }

    /// Takes in what had no room before, and sends what the port has published and what is due.
    /// Returns whether there is something for the port: what was taken in, or room for commands
    /// where there was none.
    ///
    /// # Errors
    /// [`Malformed`] where the peer has said what no correct peer says.
    pub(crate) fn serve(&mut self, now: u64, outboxes: &mut [Outbox]) -> Result<bool, Malformed> {
        let was_full = self.line.frames.is_full();
        let (mut tried, mut moved, mut has_taken) = (0, false, false);
        loop {
            has_taken |= self.deliver_kept(now, outboxes)?;
            let (has_tried, has_sent) = self.gather(now, outboxes);
            tried |= has_tried;
            moved |= has_sent;
            // What could not be answered before may be now.
            if !has_sent || !self.holds_back() {
                break;
            }
        }
        if self.leaves && self.is_idle() {
            self.machine.close();
        }
        let is_due = self.deadline <= now;
        if is_due {
            let mut fx = Sending { line: &mut self.line, outboxes };
            self.machine.on_time(now, &mut fx);
            self.seek(now, outboxes);
            if self.line.frames.limit() != self.machine.frame_max() {
                self.change_length();
            }
        }
        // What may not go is tried in each poll. Until something comes or a time is over, that
        // changes nothing.
        if is_due || moved || tried & !self.held_up != 0 {
            self.deadline = self.machine.deadline(now);
        }
        self.held_up = if moved { 0 } else { tried };
        Ok(has_taken || was_full && !self.line.frames.is_full())
    }

    /// Sends what the port has published; the rest is left to [`LinkEnd::serve`].
    pub(crate) fn load(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let (has_tried, _) = self.gather(now, outboxes);
        if has_tried != 0 {
            self.deadline = now;
        }
    }

    /// Says what the other side has not been told, though there would be time.
    // spec: WIRE-15
    pub(crate) fn settle(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let has_news = self.carrier.machine().has_news();
        if has_news {
            self.carrier.machine().tell_now();
            self.gather(now, outboxes);
        }
        let mut fx = Sending { line: &mut self.line, outboxes };
        if self.machine.say_all(now, &mut fx) || has_news {
            self.deadline = self.machine.deadline(now);
        }
    }

    /// The channels on which it was tried to send something, and whether something was sent.
    fn gather(&mut self, now: u64, outboxes: &mut [Outbox]) -> (u8, bool) {
        let Self { machine, carrier, line, .. } = self;
        let executed = carrier.executed_there();
        let mut loading = Loading { machine, line, outboxes, now, executed, tried: 0 };
        carrier.gather(&mut loading);
        let has_sent = loading.send_begun();
        (loading.tried, has_sent)
    }

    /// Whether there are frames whose records have not all been taken.
    fn holds_back(&self) -> bool {
        Channel::ALL.iter().any(|channel| self.machine.receiver(*channel).held() > 0)
    }

    /// A frame has come. Returns whether it brought records.
    ///
    /// # Errors
    /// [`Malformed`] where the peer itself has said what no correct peer says.
    pub(crate) fn on_frame(
        &mut self,
        from: Way,
        frame: &[u8],
        header: &Header,
        looks: &Looks,
        outboxes: &mut [Outbox],
    ) -> Result<bool, Malformed> {
        let (now, mut fx) = (looks.now(), Sending { line: &mut self.line, outboxes });
        let heard = self.machine.on_header_found(header, looks, &mut fx)?;
        self.deadline = now;
        if heard != Heard::Foreign && !self.line.ways.is_usual(from, header.path, header.packet) {
            self.on_other_way(from, (header, frame.len(), heard != Heard::Repeated), now, outboxes);
        }
        let (whole, payload);
        let header = match heard {
            Heard::Payload => {
                payload = &frame[HEADER_BYTES..];
                header
            }
            Heard::Piece => {
                whole = self.on_piece(header, &frame[HEADER_BYTES..], now)?;
                let Some((header, bytes)) = &whole else { return Ok(false) };
                payload = bytes;
                header
            }
            Heard::Nothing | Heard::Repeated | Heard::Foreign => return Ok(false),
        };
        if payload.len() > self.line.frames.room() {
            return Err(Malformed);
        }
        if header.check_payload(payload, crc32c).is_err() {
            // Damaged on the way: as good as lost.
            return Ok(false);
        }
        let records = Payload::parse(payload)?;
        let arrival = self.machine.on_payload(header, now)?;
        if !self.assembly.is_empty() {
            // It may have come whole, or be of another credit.
            let machine = &self.machine;
            self.assembly.keep_those(|channel, seq| machine.receiver(channel).is_wanted(seq));
        }
        match arrival {
            Arrival::InOrder(_) => self.deliver(header, (payload, records), now, outboxes)?,
            Arrival::Ahead => self.keep_ahead(header, (payload, records)),
            Arrival::Dropped | Arrival::Duplicate => return Ok(false),
        }
        Ok(true)
    }

    /// A frame has come from elsewhere, or somewhere else was heard of lately.
    // spec: PATH-11, PATH-12
    #[cold]
    fn on_other_way(
        &mut self,
        from: Way,
        (header, len, is_new): (&Header, usize, bool),
        now: u64,
        outboxes: &mut [Outbox],
    ) {
        if self.line.ways.listens_no_more() {
            let whom = self.line.whom();
            self.line.doubt.end(whom);
        }
        let Header { path, packet, echo, .. } = *header;
        let seen = Seen { path, packet, echo: echo.map(|echo| echo.stamp), len, is_new };
        let timeout = self.machine.rtt().timeout();
        if let Some(to) = self.line.ways.on_frame(from, &seen, (now, timeout)) {
            self.challenge((path, to), now, outboxes);
        }
    }

    /// Where nothing is heard, a probe goes by another way, too.
    // spec: PATH-13
    fn seek(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let timeout = self.machine.rtt().timeout();
        if let Some(to) = self.line.ways.sought(now, timeout) {
            self.challenge((0, to), now, outboxes);
        }
    }

    /// Asks for a sign of life by a way that may become a path's.
    fn challenge(&mut self, (path, to): (u8, Way), now: u64, outboxes: &mut [Outbox]) {
        if self.machine.challenge(path, now, &mut Asking { line: &mut self.line, outboxes, to }) {
            self.line.ways.asked(path, to, now);
        }
    }

    /// A frame that came before its turn. Where its sender lets us, the data of its puts is put in
    /// place, and only what is to happen in its turn is kept. Whether the sender was right to, does
    /// not matter here: what a put may reach, its initiator may write at any time.
    // spec: WIRE-13
    fn keep_ahead(&mut self, header: &Header, (payload, records): (&[u8], Payload<'_>)) {
        let is_early = header.flags.contains(Flags::EARLY) && header.channel == Channel::Posted;
        let placed = if is_early { self.carrier.place(&records) } else { None };
        self.early += u64::from(placed.is_some());
        let is_placed = placed.is_some();
        let bytes = placed.map_or_else(|| payload.into(), Vec::into_boxed_slice);
        self.line.frames.keep(header.channel, header.seq, Kept { bytes, is_placed });
    }

    /// A frame whose turn has come: its records, and those of the frames kept behind it.
    fn deliver(
        &mut self,
        header: &Header,
        (payload, records): (&[u8], Payload<'_>),
        now: u64,
        outboxes: &mut [Outbox],
    ) -> Result<(), Malformed> {
        let Header { channel, seq, .. } = *header;
        let is_oldest = self.machine.receiver(channel).taken() == seq;
        let taken = match is_oldest {
            true => self.take_records((records.records(), false), now, outboxes)?,
            false => 0,
        };
        if is_oldest && taken == payload.len() {
            self.give_again(channel, now);
        } else {
            let kept = Kept { bytes: payload.into(), is_placed: false };
            self.line.frames.keep(channel, seq, kept);
            if is_oldest {
                self.progress[channel.index()] = taken;
            }
        }
        self.deliver_kept(now, outboxes).map(|_| ())
    }

    /// What one channel brings may be what another one's records wait for. Whether anything was
    /// taken.
    fn deliver_kept(&mut self, now: u64, outboxes: &mut [Outbox]) -> Result<bool, Malformed> {
        let (mut any, mut again) = (false, true);
        while again {
            again = false;
            for channel in Channel::ALL {
                while self.machine.receiver(channel).held() > 0
                    && self.deliver_oldest(channel, now, outboxes)?
                {
                    again = true;
                }
            }
            any |= again;
        }
        Ok(any)
    }

    /// Takes what can be taken of the oldest frame of a channel. Whether that was anything.
    fn deliver_oldest(
        &mut self,
        channel: Channel,
        now: u64,
        outboxes: &mut [Outbox],
    ) -> Result<bool, Malformed> {
        let seq = self.machine.receiver(channel).taken();
        let kept = self.line.frames.take_kept(channel, seq);
        let progress = self.progress[channel.index()];
        let records = Payload::parse(&kept.bytes[progress..])?.records();
        let taken = self.take_records((records, kept.is_placed), now, outboxes)?;
        if progress + taken < kept.bytes.len() {
            self.progress[channel.index()] = progress + taken;
            self.line.frames.keep(channel, seq, kept);
            return Ok(taken > 0);
        }
        self.progress[channel.index()] = 0;
        self.give_again(channel, now);
        Ok(true)
    }

    /// Hands records to the carrier, possibly those of a frame whose data is in place; how many
    /// bytes of them it took.
    fn take_records(
        &mut self,
        (records, is_placed): (Records<'_>, bool),
        now: u64,
        outboxes: &mut [Outbox],
    ) -> Result<usize, Malformed> {
        let Self { machine, carrier, line, .. } = self;
        let executed = carrier.executed_there();
        let mut loading = Loading { machine, line, outboxes, now, executed, tried: 0 };
        let mut taken = 0;
        for record in records {
            if carrier.take((&record, is_placed), &mut loading)? == Taken::NotYet {
                break;
            }
            taken += HEAD_BYTES + record.bytes.len().next_multiple_of(8);
        }
        Ok(taken)
    }

    /// The oldest frame of a channel was taken; its buffer is free for another one, which the other
    /// side may be waiting for.
    // spec: LINK-4
    fn give_again(&mut self, channel: Channel, now: u64) {
        self.deadline = now;
        self.machine.take(channel, 1);
        let receiver = self.machine.receiver(channel);
        self.line.frames.pass(channel, receiver.taken());
        let left = receiver.limit().wrapping_sub(receiver.taken());
        let more = self.share.renew(channel, left, now);
        self.machine.give(channel, more, now);
    }
}

/// Fills frames and sends them.
struct Loading<'a> {
    machine: &'a mut End,
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
    now: u64,
    /// Commands of ours that the other side has executed, as far as is known.
    executed: u64,
    /// Channels on which a frame was sent, or could not be.
    tried: u8,
}

impl Loading<'_> {
    /// Sends the oldest frame that was begun on a channel. False where none may be sent now.
    fn send(&mut self, channel: Channel) -> bool {
        self.tried |= 1 << channel.index();
        if !self.machine.may_send(channel, self.now) {
            return false;
        }
        let seq = self.machine.sender(channel).next();
        let first = self.line.frames.depart((channel, seq), self.executed);
        let mut fx = Sending { line: self.line, outboxes: self.outboxes };
        self.machine.send(channel, first, self.now, &mut fx);
        true
    }

    /// Sends what has been begun. Responses first: somebody waits for them. Whether that was
    /// anything.
    fn send_begun(&mut self) -> bool {
        let mut has_sent = false;
        for channel in Channel::ALL.into_iter().rev() {
            while self.line.frames.is_begun(channel) && self.send(channel) {
                has_sent = true;
            }
        }
        has_sent
    }
}

impl Pack for Loading<'_> {
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
        self.line.frames.append(channel, head, len, fill);
        Ok(())
    }

    fn longest(&self) -> usize {
        self.line.frames.longest()
    }

    fn whole(&self) -> usize {
        self.line.frames.whole()
    }

    fn share(&self, channel: Channel) -> usize {
        self.line.frames.share(channel)
    }

    fn has_room(&self, channel: Channel, len: usize) -> bool {
        self.line.frames.fits(channel, len)
    }

    fn begun(&self) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| self.line.frames.is_begun(*channel))
    }

    fn now(&self) -> u64 {
        self.now
    }
}

/// Puts frames on their way.
struct Sending<'a> {
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
}

impl EndEffects for Sending<'_> {
    fn transmit(&mut self, header: &Header) {
        if let Some(way) = self.line.ways.get(header.path) {
            self.line.send(header, way, self.outboxes);
        }
    }

    #[cold]
    fn transmit_part(&mut self, header: &Header, part: &Part) {
        if let Some(way) = self.line.ways.get(header.path) {
            self.line.send_part(header, part, way, self.outboxes);
        }
    }

    fn arrived(&mut self, channel: Channel, _seq: u32) {
        self.line.frames.arrived(channel);
    }

    fn is_port_closed(&mut self) -> bool {
        self.line.ways.seek();
        let ways = self.line.ways.iter();
        ways.fold(false, |closed, way| {
            let outbox = &mut self.outboxes[way.net];
            outbox.doubted = Some(way.to);
            outbox.hints.take_closed(way.to) | closed
        })
    }

    fn unheard(&mut self, silent: u64) {
        let whom = self.line.whom();
        if self.line.doubt.tell(whom, Duration::from_nanos(silent)) {
            self.line.ways.listen();
        }
    }
}

impl Line {
    /// Where the other side is.
    fn whom(&self) -> Option<SocketAddr> {
        self.ways.iter().next().map(|way| way.to)
    }

    /// Sends a frame by this way.
    fn send(&mut self, header: &Header, way: Way, outboxes: &mut [Outbox]) {
        let Self { frames, keys, taps, .. } = self;
        let outbox = &mut outboxes[way.net];
        let bytes = header.encode(crc32c);
        let mut frame = match header.payload.len {
            0 => None,
            _ => Some(frames.sent(header.channel, header.seq)),
        };
        if keys.is_none()
            && let Some(frame) = &mut frame
            && let Some(shared) = with_header(frame, &bytes)
        {
            return outbox.push_shared(way.to, shared, frame.frame_len());
        }
        let payload = frame.as_ref().map_or(&[][..], |frame| frame.payload());
        push((header, &bytes), payload, (keys, taps), (way, outbox));
    }

    /// Sends a frame that has a part of a payload, or zeros.
    // spec: FRAME-11, MTU-6
    fn send_part(&mut self, header: &Header, part: &Part, way: Way, outboxes: &mut [Outbox]) {
        let Self { frames, keys, taps, .. } = self;
        let len = usize::from(header.payload.len);
        let payload = match part {
            Part::Padding => vec![0; len],
            Part::Piece(piece) => {
                let whole = frames.sent(header.channel, header.seq).payload();
                let bytes = &whole[usize::from(piece.offset)..][..len - PIECE_HEAD_BYTES];
                [&piece.encode(), bytes].concat()
            }
        };
        let header = Header { payload: Digest::of(&payload, crc32c), ..*header };
        let bytes = header.encode(crc32c);
        push((&header, &bytes), &payload, (keys, taps), (way, &mut outboxes[way.net]));
    }
}

/// Puts a datagram with a frame into an outbox, sealed where there are keys.
fn push(
    (header, bytes): (&Header, &[u8; HEADER_BYTES]),
    payload: &[u8],
    (keys, taps): (&mut Option<Keys>, &Option<Taps>),
    (way, outbox): (Way, &mut Outbox),
) {
    outbox.push(way.to, |datagram| {
        let at = datagram.len();
        if keys.is_some() {
            datagram.extend_from_slice(&[0; PREFIX_BYTES]);
        }
        datagram.extend_from_slice(bytes);
        datagram.extend_from_slice(payload);
        if let Some(keys) = keys {
            if let Some(taps) = taps {
                taps[way.net].seals(way.to, &datagram[at + PREFIX_BYTES..]);
            }
            datagram.extend_from_slice(&[0; TAG_BYTES]);
            keys.seal(header.to, header.packet, &mut datagram[at..]);
        }
    });
}

/// Asks for a sign of life by a way that may be no path's.
struct Asking<'a> {
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
    to: Way,
}

impl EndEffects for Asking<'_> {
    fn transmit(&mut self, header: &Header) {
        self.line.send(header, self.to, self.outboxes);
    }

    fn transmit_part(&mut self, header: &Header, part: &Part) {
        self.line.send_part(header, part, self.to, self.outboxes);
    }

    fn arrived(&mut self, _: Channel, _: u32) {}
}
