//! One end of a link: the linked peer of `proto::node`, and what it acts on.
mod lengths;

pub(crate) use self::lengths::{DATAGRAM_LEAST, sealing};
use super::carrier::{FarSide, Performer};
use super::frames::{Frames, Trains, frames, with_header};
use super::pool::{Pool, Share};
use super::seal::{Keys, PREFIX_BYTES, TAG_BYTES};
use super::silence_log::SilenceLog;
use super::ways::{Seen, Ways};
use crate::net::crc::crc32c;
use crate::net::datagram::{Outbox, Taps};
use crate::net::routes::Way;
use crate::peer::agreement::Name;
use crate::peer::contact::Link;
use crate::peer::mail::Mail;
use crate::sync::AtomicU64;
use ayre_proto::lane::Malformed;
use ayre_proto::link::WINDOW;
use ayre_proto::link::end::{End, HeaderOutcome};
use ayre_proto::link::frame::{Channel, Full, HEADER_BYTES, Header};
use ayre_proto::link::life::State;
use ayre_proto::link::looks::Looks;
use ayre_proto::link::open::FRAME_LEAST;
use ayre_proto::node::carrier::channel_of;
use ayre_proto::node::carrier::frames::Frame;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::node::linked::{Linked, Network, StepContext, Transmit};
use ayre_proto::units::PeerId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Frames that are worth a system call before anybody asks for one.
const TRAIN: usize = 32;
const _: () = assert!(TRAIN <= WINDOW as usize, "a train can be under way");

/// One end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    pub(crate) peer: PeerId,
    /// The endpoint at the other side, if it is one.
    pub(crate) name: Option<Name>,
    /// That this side's frames carry.
    pub(crate) token: u64,
    linked: Linked<Trains>,
    lanes: FarSide,
    performer: Performer,
    line: Line,
    /// Why it goes over a network to an endpoint of this host, if it does.
    pub(crate) detour: Option<Box<str>>,
}

/// The way and the keys of frames.
#[derive(Debug)]
struct Line {
    ways: Ways,
    /// Of the port's buffers.
    share: Share,
    /// Bytes of the longest record that goes whole, for those who cut what they post.
    whole: Arc<AtomicU64>,
    keys: Option<Keys>,
    /// The capture that sealed frames are told to, if they are written down.
    taps: Option<Taps>,
    silence_log: SilenceLog,
}

impl LinkEnd {
    /// For frames of at most `frame_max` bytes, with buffers of the pool's; sealed, where there are
    /// keys.
    pub(crate) fn new(
        mut end: End,
        (lanes, performer): (FarSide, Performer),
        (keys, ways): (Option<Keys>, Vec<Way>),
        (frame_max, pool): (usize, &Arc<Pool>),
    ) -> Self {
        assert!(frame_max >= usize::from(FRAME_LEAST), "both sides take frames of that length");
        let share = Share::of(pool);
        let least = DATAGRAM_LEAST - sealing(keys.is_some());
        end.limit_lengths(least as u16, frame_max as u16);
        for channel in Channel::ALL {
            end.give(channel, share.least(), 0);
        }
        let frames = frames((frame_max - HEADER_BYTES) & !7);
        let whole = Arc::new(AtomicU64::new(frames.whole() as u64));
        let (ways, silence_log) = (Ways::new(ways), SilenceLog::default());
        let line = Line { ways, share, whole, keys, taps: None, silence_log };
        let (peer, mut linked) = (performer.peer, Linked::new(end, frames));
        if line.keys.is_some() {
            linked.go_in_steps();
        }
        Self { peer, name: None, token: 0, linked, lanes, performer, line, detour: None }
    }

    /// The port has taken the link for its connection with this peer.
    pub(crate) fn belong_to(&mut self, peer: PeerId) {
        self.peer = peer;
        self.performer.peer = peer;
    }

    /// Whether it carries this connection.
    pub(crate) fn is_of(&self, link: &Arc<Link>) -> bool {
        Arc::ptr_eq(&self.performer.link, link)
    }

    pub(crate) fn mail(&self) -> &Mail {
        self.lanes.mail()
    }

    /// The machine of `proto::link`.
    pub(crate) fn machine(&self) -> &End {
        self.linked.end()
    }

    /// Frames whose data was put in place before their turn.
    pub(crate) fn early(&self) -> u64 {
        self.linked.early()
    }

    /// The port waits for everything that it has posted.
    pub(crate) fn ask(&mut self) {
        self.linked.carrier().ask();
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

    /// The keys that open the other side's frames, where they are sealed.
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
        self.linked.frames().longest()
    }

    /// Bytes of the longest one that goes whole, as that changes.
    pub(crate) fn record_whole(&self) -> Arc<AtomicU64> {
        self.line.whole.clone()
    }

    /// Whether a command of `len` bytes finds room.
    pub(crate) fn has_room(&self, answered: bool, len: usize) -> bool {
        self.linked.frames().fits(channel_of(answered), len)
    }

    /// Frames that can be made ready for commands without a response.
    pub(crate) fn room(&self) -> usize {
        self.linked.frames().left(Channel::Posted)
    }

    /// Frames that are ready to go.
    pub(crate) fn ready(&self) -> usize {
        self.linked.frames().ready()
    }

    /// Whether a train of frames is ready to go.
    pub(crate) fn is_laden(&self) -> bool {
        self.ready() >= TRAIN
    }

    /// A command of the port's own, with this number of bytes of data, which are written into a
    /// frame.
    pub(crate) fn post(
        &mut self,
        request: &impl CommandRecord,
        data: (usize, impl FnOnce(&mut [u8])),
    ) -> Result<(), Full> {
        debug_assert!(data.0 <= self.record_max(), "what is longer is cut before");
        self.linked.post(request, data)
    }

    /// Whether the other side has answered.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.machine().rtt().smoothed().is_some()
    }

    /// Whether there is a link.
    pub(crate) fn state(&self) -> State {
        self.machine().state()
    }

    /// Leaves once everything that the port has published has arrived.
    pub(crate) fn leave(&mut self) {
        self.linked.leave();
    }

    /// Leaves at once.
    pub(crate) fn abort(&mut self) {
        self.linked.abort();
    }

    /// A reset has come: whether it is of this link.
    pub(crate) fn on_reset(&mut self, header: &Header, now: u64) -> bool {
        self.linked.on_reset(header, now)
    }

    /// Somebody asks for a link in the peer's name: whether he has to wait; see [`End::on_open`].
    pub(crate) fn on_open(&mut self, incarnation: u64, is_believed: bool, now: u64) -> bool {
        self.linked.on_open(incarnation, is_believed, now)
    }

    /// Warm reset; see [`Linked::resync`].
    pub(crate) fn resync(&mut self, now: u64, outboxes: &mut [Outbox]) {
        self.linked.resync(now, &mut Sending { line: &mut self.line, outboxes });
    }

    /// When [`LinkEnd::serve`] has something to do next, though nothing happens.
    pub(crate) fn deadline(&self) -> u64 {
        self.linked.deadline()
    }

    /// Whether nothing of ours is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.linked.is_quiet()
    }

    /// Takes in what had no room before, and sends what the port has published and what is due.
    /// Returns whether there is something for the port: what was taken in, or room for commands
    /// where there was none.
    ///
    /// # Errors
    /// [`Malformed`] where the peer has said what no correct peer says.
    pub(crate) fn serve(&mut self, now: u64, outboxes: &mut [Outbox]) -> Result<bool, Malformed> {
        let Self { linked, lanes, performer, line, .. } = self;
        let network = &mut Sending { line, outboxes: &mut *outboxes };
        let served = linked.serve(now, &mut StepContext { lanes, target: performer, network })?;
        if served.was_due {
            self.seek(now, outboxes);
        }
        Ok(served.has_news)
    }

    /// See [`Linked::has_more`].
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.linked.has_more()
    }

    /// Sends what the port has published; the rest is left to [`LinkEnd::serve`].
    pub(crate) fn load(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let Self { linked, lanes, line, .. } = self;
        linked.load(now, lanes, &mut Sending { line, outboxes });
    }

    /// Says what the other side has not been told, though there would be time.
    pub(crate) fn settle(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let Self { linked, lanes, line, .. } = self;
        linked.settle(now, lanes, &mut Sending { line, outboxes });
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
        let (now, Self { linked, line, .. }) = (looks.now(), &mut *self);
        let heard =
            linked.on_header(header, looks, &mut Sending { line, outboxes: &mut *outboxes })?;
        if heard != HeaderOutcome::Foreign
            && !self.line.ways.is_usual(from, header.path, header.packet)
        {
            self.on_other_way(
                from,
                (header, frame.len(), heard != HeaderOutcome::Repeated),
                now,
                outboxes,
            );
        }
        let Self { linked, lanes, performer, line, .. } = self;
        let network = &mut Sending { line, outboxes };
        let around = &mut StepContext { lanes, target: performer, network };
        linked.on_payload(heard, (header, &frame[HEADER_BYTES..]), now, around)
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
            let peer_address = self.line.peer_address();
            self.line.silence_log.end(peer_address);
        }
        let Header { path, packet, echo, .. } = *header;
        let seen = Seen { path, packet, echo: echo.map(|echo| echo.stamp), len, is_new };
        let timeout = self.machine().rtt().timeout();
        if let Some(to) = self.line.ways.on_frame(from, &seen, (now, timeout)) {
            self.challenge((path, to), now, outboxes);
        }
    }

    /// Where nothing is heard, a probe goes by another way, too.
    // spec: PATH-13
    fn seek(&mut self, now: u64, outboxes: &mut [Outbox]) {
        let timeout = self.machine().rtt().timeout();
        if let Some(to) = self.line.ways.sought(now, timeout) {
            self.challenge((0, to), now, outboxes);
        }
    }

    /// Asks for a sign of life by a way that may become a path's.
    fn challenge(&mut self, (path, to): (u8, Way), now: u64, outboxes: &mut [Outbox]) {
        let network = &mut Asking { line: &mut self.line, outboxes, to };
        if self.linked.challenge(path, now, network) {
            self.line.ways.asked(path, to, now);
        }
    }
}

/// Puts frames on their way.
struct Sending<'a> {
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
}

impl Transmit<Trains> for Sending<'_> {
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<Trains>>) {
        if let Some(way) = self.line.ways.get(header.path) {
            self.line.send((header, frame), way, self.outboxes);
        }
    }

    #[cold]
    fn transmit_part(&mut self, header: &Header, payload: &[u8]) {
        if let Some(way) = self.line.ways.get(header.path) {
            self.line.send_part(header, payload, way, self.outboxes);
        }
    }
}

impl Network<Trains> for Sending<'_> {
    fn renew(&mut self, channel: Channel, left: u32, now: u64) -> u32 {
        self.line.share.renew(channel, left, now)
    }

    #[cold]
    fn on_length(&mut self, frames: &Frames, is_first: bool) {
        self.line.on_length(frames, is_first);
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
        let peer_address = self.line.peer_address();
        if self.line.silence_log.tell(peer_address, Duration::from_nanos(silent)) {
            self.line.ways.listen();
        }
    }
}

impl Line {
    /// Where the other side is.
    fn peer_address(&self) -> Option<SocketAddr> {
        self.ways.iter().next().map(|way| way.to)
    }

    /// Sends a frame by this way.
    fn send(
        &mut self,
        (header, mut frame): (&Header, Option<&mut Frame<Trains>>),
        way: Way,
        outboxes: &mut [Outbox],
    ) {
        let Self { keys, taps, .. } = self;
        let outbox = &mut outboxes[way.net];
        let bytes = header.encode(crc32c);
        if keys.is_none()
            && let Some(frame) = &mut frame
            && let Some(shared) = with_header(frame, &bytes)
        {
            return outbox.push_shared(way.to, shared, frame.frame_len());
        }
        let payload = frame.as_ref().map_or(&[][..], |frame| frame.payload());
        debug_assert!(
            payload.len() == usize::from(header.payload.len),
            "a header tells its payload"
        );
        push((header, &bytes), payload, (keys, taps), (way, outbox));
    }

    /// Sends a frame that has a part of a payload, or zeros.
    fn send_part(&mut self, header: &Header, payload: &[u8], way: Way, outboxes: &mut [Outbox]) {
        let Self { keys, taps, .. } = self;
        let bytes = header.encode(crc32c);
        push((header, &bytes), payload, (keys, taps), (way, &mut outboxes[way.net]));
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
        let frame = datagram.len() - at - sealing(keys.is_some());
        debug_assert_eq!(
            frame,
            HEADER_BYTES + payload.len(),
            "a datagram is a frame, and its seal"
        );
    });
}

/// Asks for a sign of life by a way that may be no path's.
struct Asking<'a> {
    line: &'a mut Line,
    outboxes: &'a mut [Outbox],
    to: Way,
}

impl Transmit<Trains> for Asking<'_> {
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<Trains>>) {
        self.line.send((header, frame), self.to, self.outboxes);
    }

    fn transmit_part(&mut self, header: &Header, payload: &[u8]) {
        self.line.send_part(header, payload, self.to, self.outboxes);
    }
}
