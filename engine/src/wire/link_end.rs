//! One end of a link: the machine of `proto::link`, and what it acts on.
use super::carrier::{Carrier, Full, Pack, Taken};
use super::frames::Frames;
use super::net::Outbox;
use super::seal::{Keys, PREFIX_BYTES};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::link::end::{End, EndEffects, Heard};
use ayre_proto::link::frame::{
    Channel, Digest, Flags, HEADER_BYTES, Header, Payload, RecordKind, Records,
};
use ayre_proto::link::life::State;
use ayre_proto::link::receive::Arrival;
use ayre_proto::units::PeerId;
use std::net::SocketAddr;

/// Where a path leads: by which of our nets, to which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) net: usize,
    pub(crate) to: SocketAddr,
}

/// One end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    pub(crate) peer: PeerId,
    pub(crate) machine: End,
    pub(crate) carrier: Carrier,
    line: Line,
    /// Bytes of each channel's oldest kept frame that were taken already.
    progress: [usize; Channel::ALL.len()],
    /// When there is something to do though nothing happens.
    deadline: u64,
    /// The port has left.
    leaves: bool,
    /// Where the paths lead is learned from what comes.
    learns_ways: bool,
}

/// What the machine's effects need.
#[derive(Debug)]
struct Line {
    /// By path.
    ways: Vec<Way>,
    frames: Frames,
    keys: Option<Keys>,
}

impl LinkEnd {
    /// For frames of at most `frame_max` bytes; sealed, where there are keys.
    pub(crate) fn new(
        (peer, mut machine): (PeerId, End),
        carrier: Carrier,
        (keys, ways): (Option<Keys>, Vec<Way>),
        frame_max: usize,
    ) -> Self {
        for channel in Channel::ALL {
            let wanted = machine.receiver(channel).wants();
            machine.give(channel, wanted, 0);
        }
        let frames = Frames::new((frame_max - HEADER_BYTES) & !7);
        let line = Line { ways, frames, keys };
        Self {
            peer,
            machine,
            carrier,
            line,
            progress: [0; 3],
            deadline: 0,
            leaves: false,
            learns_ways: true,
        }
    }

    /// Where the paths lead is known. Until the other side has learned it, its frames of all paths
    /// come by one.
    pub(crate) fn keep_ways(&mut self) {
        self.learns_ways = false;
    }

    /// What opens the other side's frames, where they are sealed.
    pub(crate) fn keys(&mut self) -> Option<&mut Keys> {
        self.line.keys.as_mut()
    }

    /// Where each path leads.
    pub(crate) fn ways(&self) -> &[Way] {
        &self.line.ways
    }

    /// Whether frames are sealed.
    pub(crate) fn is_sealed(&self) -> bool {
        self.line.keys.is_some()
    }

    /// Bytes of the longest record that travels whole.
    pub(crate) fn record_max(&self) -> usize {
        self.line.frames.longest().min(RECORD_MAX & !7)
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
        self.carrier.leave();
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

    /// Sends what the port has published and what is due.
    pub(crate) fn serve(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let Self { machine, carrier, line, .. } = self;
        let mut loading = Loading { machine, line, outboxes, now, tried: false };
        carrier.gather(&mut loading);
        loading.send_begun();
        let tried = loading.tried;
        if self.leaves && self.is_idle() {
            self.machine.close();
        }
        let is_due = self.deadline <= now;
        if is_due {
            let mut fx = Sending { line: &mut self.line, outboxes };
            self.machine.on_time(now, &mut fx);
        }
        if is_due || tried {
            self.deadline = self.machine.deadline(now);
        }
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
        now: u64,
        outboxes: &mut [Outbox],
    ) -> Result<bool, Malformed> {
        let mut fx = Sending { line: &mut self.line, outboxes };
        let heard = self.machine.on_header(header, now, &mut fx)?;
        self.deadline = now;
        if matches!(heard, Heard::Payload | Heard::Nothing)
            && self.learns_ways
            && let Some(way) = self.line.ways.get_mut(usize::from(header.path))
        {
            // Where it comes from is where the peer is, behind whatever translates addresses.
            *way = from;
        }
        if heard != Heard::Payload {
            return Ok(false);
        }
        let payload = &frame[HEADER_BYTES..];
        if payload.len() > self.line.frames.room() {
            return Err(Malformed);
        }
        if header.check_payload(payload, super::crc::crc32c).is_err() {
            // Damaged on the way: as good as lost.
            return Ok(false);
        }
        let records = Payload::parse(payload)?;
        match self.machine.on_payload(header, now)? {
            Arrival::InOrder(_) => self.deliver(header, payload, records, now)?,
            Arrival::Ahead => self.line.frames.keep(header.channel, header.seq, payload),
            Arrival::Dropped | Arrival::Duplicate => return Ok(false),
        }
        Ok(true)
    }

    /// A frame whose turn has come: its records, and those of the frames kept behind it.
    fn deliver(
        &mut self,
        header: &Header,
        payload: &[u8],
        records: Payload<'_>,
        now: u64,
    ) -> Result<(), Malformed> {
        let Header { channel, seq, .. } = *header;
        let is_oldest = self.machine.receiver(channel).taken() == seq;
        let taken = if is_oldest { take_records(&mut self.carrier, records.records())? } else { 0 };
        if is_oldest && taken == payload.len() {
            self.give_again(channel, now);
        } else {
            self.line.frames.keep(channel, seq, payload);
            if is_oldest {
                self.progress[channel.index()] = taken;
            }
        }
        self.deliver_kept(now)
    }

    /// What one channel brings may be what another one's records wait for.
    fn deliver_kept(&mut self, now: u64) -> Result<(), Malformed> {
        let mut again = true;
        while again {
            again = false;
            for channel in Channel::ALL {
                while self.machine.receiver(channel).held() > 0
                    && self.deliver_oldest(channel, now)?
                {
                    again = true;
                }
            }
        }
        Ok(())
    }

    /// Takes what can be taken of the oldest frame of a channel. Whether that was anything.
    fn deliver_oldest(&mut self, channel: Channel, now: u64) -> Result<bool, Malformed> {
        let seq = self.machine.receiver(channel).taken();
        let payload = self.line.frames.take_kept(channel, seq);
        let progress = self.progress[channel.index()];
        let records = Payload::parse(&payload[progress..])?;
        let taken = take_records(&mut self.carrier, records.records())?;
        if progress + taken < payload.len() {
            self.progress[channel.index()] = progress + taken;
            self.line.frames.put_back(channel, seq, payload);
            return Ok(taken > 0);
        }
        self.progress[channel.index()] = 0;
        self.line.frames.recycle(payload);
        self.give_again(channel, now);
        Ok(true)
    }

    /// The oldest frame of a channel was taken; its buffer is free for another one.
    fn give_again(&mut self, channel: Channel, now: u64) {
        self.machine.take(channel, 1);
        let wanted = self.machine.receiver(channel).wants();
        self.machine.give(channel, wanted, now);
    }
}

/// Hands records to the carrier; how many bytes of them it took.
fn take_records(carrier: &mut Carrier, records: Records<'_>) -> Result<usize, Malformed> {
    let mut taken = 0;
    for record in records {
        if carrier.take(&record)? == Taken::NotYet {
            break;
        }
        taken += ayre_proto::link::frame::HEAD_BYTES + record.bytes.len().next_multiple_of(8);
    }
    Ok(taken)
}

/// Fills frames and sends them.
struct Loading<'a> {
    machine: &'a mut End,
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
    now: u64,
    /// A frame was sent, or could not be.
    tried: bool,
}

impl Loading<'_> {
    /// Sends the frame that is being filled. False where none may be sent now.
    fn send(&mut self, channel: Channel) -> bool {
        self.tried = true;
        if !self.machine.may_send(channel, self.now) {
            return false;
        }
        let seq = self.machine.sender(channel).next();
        let payload = self.line.frames.close(channel, seq);
        let digest = Digest::of(payload, super::crc::crc32c);
        let mut fx = Sending { line: self.line, outboxes: self.outboxes };
        self.machine.send(channel, (digest, Flags::empty()), self.now, &mut fx);
        true
    }

    /// Sends what has been begun. Responses first: somebody waits for them.
    fn send_begun(&mut self) {
        for channel in Channel::ALL.into_iter().rev() {
            if self.line.frames.is_begun(channel) {
                self.send(channel);
            }
        }
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
        let fits = self.line.frames.fits(channel, len);
        if !fits && !self.send(channel) {
            return Err(Full);
        }
        self.line.frames.append(channel, head, len, fill);
        Ok(())
    }

    fn longest(&self) -> usize {
        self.line.frames.longest()
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
        let Line { ways, frames, keys } = &mut *self.line;
        let Some(way) = ways.get(usize::from(header.path)) else { return };
        let payload = match header.payload.len {
            0 => &[][..],
            _ => frames.sent(header.channel, header.seq),
        };
        self.outboxes[way.net].push(way.to, |datagram| {
            let at = datagram.len();
            if keys.is_some() {
                datagram.extend_from_slice(&[0; PREFIX_BYTES]);
            }
            datagram.extend_from_slice(&header.encode(super::crc::crc32c));
            datagram.extend_from_slice(payload);
            if let Some(keys) = keys {
                keys.seal(header.to, header.packet, datagram, at);
            }
        });
    }

    fn arrived(&mut self, channel: Channel, seq: u32) {
        self.line.frames.arrived(channel, seq);
    }
}
