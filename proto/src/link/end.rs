//! One end of an open link: its channels and what drives them.
//!
//! ```text
//!                        new frames                      frames in order
//!                            |                                 ^
//!                 +----------v---------------------------------+---------+
//!  paths, pace -> | Sender x 3                         Receiver x 3      | <- buffers
//!                 +----------+---------------------------------^---------+
//!            on_time, frames v      header: ack, sack, limit   | on_header, then on_payload
//!                         network                           network
//! ```
//!
//! The owner keeps the payloads: of frames that it sends until they have arrived, and of frames
//! that came until its program has taken them. A header is acted on before the payload is checked;
//! a payload that turns out to be damaged counts as lost.
mod ack_effects;
mod headers;
mod repair;
mod transmit;

use self::repair::Stall;
use super::congestion::{self, Delay, Swift};
use super::frame::{CHANNELS, Channel, Digest, Flags, Header, Kind};
use super::life::{self, Life, State};
use super::path_mtu::Lengths;
use super::paths::{self, Paths};
use super::pieces::Piece;
use super::receive::{Arrival, Receiver};
use super::reminder::Reminder;
use super::replay::Replay;
use super::resync::Resync;
use super::rtt::{self, Rtt};
use super::send::Sender;
use super::{PATHS, Repair, WINDOW, slot};
use crate::heap;
use crate::lane::Malformed;
use alloc::boxed::Box;

/// The agreement of both sides at set-up, as this end uses it.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// The other side's index of the link, and ours.
    pub to: u32,
    /// Of the other side's port: one that was restarted has another.
    pub incarnation: u64,
    /// Our index of the link.
    pub own: u32,
    /// Of the link.
    pub generation: u32,
    /// The token that our frames carry.
    pub token: u64,
    /// The token that the other side's frames carry.
    pub own_token: u64,
    /// Numbers of the first frames, by channel: ours, and the other side's.
    pub first: [[u32; CHANNELS]; 2],
    /// How what was lost is sent again.
    pub repair: Repair,
    /// Paths, from the first on.
    pub paths: u8,
}

/// How an end drives its channels.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// Bounds of the retransmission timeout.
    pub timeout: rtt::Bounds,
    /// Congestion control.
    pub congestion: congestion::Config,
    /// Life and death of paths.
    pub paths: paths::Config,
    /// Life and death of the link.
    pub life: life::Config,
    /// Nanoseconds for which the acknowledgement of frames that have arrived may be delayed.
    pub max_ack_delay: u64,
}

impl Drive {
    /// For hosts of one rack.
    pub const RACK: Self = Self {
        timeout: rtt::Bounds::RACK,
        congestion: congestion::Config::RACK,
        paths: paths::Config::RACK,
        life: life::Config::RACK,
        max_ack_delay: 20_000,
    };
}

/// The effects of an end, called after it has changed itself.
pub trait EndEffects {
    /// Sends a frame. With a payload, it is that of the header's channel and number, which has not
    /// arrived yet.
    fn transmit(&mut self, header: &Header);
    /// Sends a frame whose payload is a part of that, or zeros. The header has its length; its CRC
    /// is still to be found.
    fn transmit_part(&mut self, header: &Header, part: &Part);
    /// A frame of ours has arrived, and all before it of its channel; its payload is needed no
    /// more. This is told once, and in order.
    fn arrived(&mut self, channel: Channel, seq: u32);
    /// Nothing is heard, and a probe is about to go. Returns whether the network has reported since
    /// the last probe that the other side's port is closed; this is not believed by itself.
    fn is_port_closed(&mut self) -> bool {
        false
    }
    /// Nothing was heard for the whole silence, for so long, and a probe is about to go.
    fn unheard(&mut self, silent: u64) {
        let _ = silent;
    }
}

/// The payload of a frame that has not all records of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A head, and the bytes behind the offset that it tells.
    Piece(Piece),
    /// Zeros.
    Padding,
}

/// The outcome of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderOutcome {
    /// Its payload is wanted: it is checked, and then [`End::on_payload`] is told.
    Payload,
    /// Its payload is a piece: it is checked, and then [`End::on_piece`] is told.
    Piece,
    /// There is nothing behind it.
    Nothing,
    /// It has come before: the network has repeated it, or somebody else.
    Repeated,
    /// It is not of this link, or of one that is no more.
    Foreign,
}

/// The counters of an end; all only ever grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// New frames with a payload.
    pub sent: u64,
    /// Frames that were sent again, by why they were taken for lost.
    pub overtaken: u64,
    /// As before: asked for.
    pub asked_for: u64,
    /// As before: nothing was heard of them, or they were too long for their path. Reminders are
    /// among them.
    pub timed_out: u64,
    /// As before: under way at a warm reset.
    pub resynced: u64,
    /// Warm resets that either side has begun.
    pub resyncs: u64,
    /// Frames of ours that arrived.
    pub arrived: u64,
    /// Frames without a payload.
    pub told: u64,
    /// Headers that came before.
    pub repeated: u64,
    /// Headers that are not of this link.
    pub foreign: u64,
    /// Frames that no correct peer sends.
    pub malformed: u64,
}

/// A frame without a payload: its kind, what it says with one bit, and its round.
type Empty = (Kind, Flags, u32);

/// Asks for a sign of life, and for room.
const PROBE: Empty = (Kind::Probe, Flags::empty(), 0);
/// Only what every header says.
const NOTHING: Empty = (Kind::Data, Flags::empty(), 0);

/// Both directions of a channel.
#[derive(Clone, Debug)]
struct Lane {
    out: Sender,
    inward: Receiver,
    /// Of the frames under way, by number modulo the window.
    sent: [(Digest, Flags); WINDOW as usize],
    /// The owner has something to send and found no room.
    wants: bool,
    /// It found room, and that it is too soon.
    is_early: bool,
    stall: Stall,
}

/// The part of the newest frame that is echoed.
#[derive(Clone, Copy, Debug)]
struct Newest {
    stamp: u32,
    path: u8,
    /// When it was found, and for how long it may have waited for that.
    at: u64,
    late: u8,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct End {
    agreed: Agreement,
    max_ack_delay: u64,
    /// Not in the value itself, which is moved over the stack when a link is made.
    lanes: Box<[Lane; CHANNELS]>,
    rtt: Rtt,
    /// The last one that an echo has told.
    delay: Option<Delay>,
    /// For how long answers were waited for in vain, at the first timeout that nobody has excused.
    waited: u64,
    congestion: Swift,
    paths: Paths,
    lengths: Lengths,
    /// Transmissions of each path.
    numbers: [u32; PATHS],
    packet: u64,
    seen: Replay,
    /// The newest frame.
    newest: Option<Newest>,
    /// The stamp that was echoed last.
    echoed: Option<u32>,
    asked_at: Option<u64>,
    reminder: Reminder,
    life: Life,
    /// Between two attempts to bring a frame to the other side, at most.
    attempts: u64,
    /// Another incarnation that has asked for a link in the other side's name, and the time since
    /// which this end waits for that side.
    restarted_as: Option<(u64, u64)>,
    resync: Resync,
    /// The channel whose sack is told next.
    turn: usize,
    counters: Counters,
}

impl End {
    /// An end of a link that both sides have agreed on; no channel has room yet. Until it hears the
    /// other side it probes: the opener's first frame confirms the link.
    // spec: OPEN-7
    pub fn new(agreed: Agreement, drive: &Drive, now: u64) -> Self {
        let lane = |index: usize| Lane {
            out: Sender::new(agreed.repair, agreed.first[0][index]),
            inward: Receiver::new(agreed.repair, agreed.first[1][index]),
            sent: [(Digest { len: 0, crc: 0 }, Flags::empty()); WINDOW as usize],
            wants: false,
            is_early: false,
            stall: Stall::default(),
        };
        let mut paths = Paths::new(drive.paths);
        for _ in 0..agreed.paths.max(1) {
            let _id = paths.add();
        }
        Self {
            agreed,
            max_ack_delay: drive.max_ack_delay,
            lanes: heap::array(lane),
            rtt: Rtt::new(drive.timeout),
            delay: None,
            waited: u64::MAX,
            congestion: Swift::new(drive.congestion),
            paths,
            lengths: Lengths::unlimited(),
            numbers: [0; PATHS],
            packet: 0,
            seen: Replay::new(),
            newest: None,
            echoed: None,
            asked_at: None,
            reminder: Reminder::new(),
            life: Life::new(drive.life, now),
            attempts: drive.timeout.ceiling.saturating_mul(2).max(drive.life.silence),
            restarted_as: None,
            resync: Resync::new(drive.life.quick()),
            turn: 0,
            counters: Counters::default(),
        }
    }

    /// Asserts what holds between two steps, whatever the other side has sent.
    fn check(&self) {
        let Counters { sent, told, arrived, .. } = self.counters;
        debug_assert!(sent.saturating_add(told) <= self.packet, "each frame has a packet's number");
        debug_assert!(self.paths.live() > 0, "frames find a path");
        if cfg!(debug_assertions) {
            let out = || self.lanes.iter().map(|lane| &lane.out);
            let kept: u32 = out().map(|out| out.next().wrapping_sub(out.oldest())).sum();
            debug_assert!(
                sent == arrived + u64::from(kept),
                "what was sent has arrived or is kept"
            );
            let is_torn = |lane: &Lane| lane.wants && lane.is_early;
            debug_assert!(!self.lanes.iter().any(is_torn), "for want of room, or of time: of one");
        }
    }

    /// The counters of this end.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The receiving end of a channel.
    pub const fn receiver(&self, channel: Channel) -> &Receiver {
        &self.lanes[channel.index()].inward
    }

    /// The sending end of a channel.
    pub const fn sender(&self, channel: Channel) -> &Sender {
        &self.lanes[channel.index()].out
    }

    /// The estimate of the round trip.
    pub const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The congestion window, in units of 1/[`ONE`](congestion::ONE) frame.
    pub const fn window(&self) -> u32 {
        self.congestion.window()
    }

    /// The paths and what happened on them.
    pub const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// When the other side was heard last.
    pub const fn heard_at(&self) -> u64 {
        self.life.heard_at()
    }

    /// Whether there is a link; asked after [`End::on_header`] and [`End::on_time`].
    pub const fn state(&self) -> State {
        self.life.state()
    }

    /// Whether a warm reset that this end has begun is under way.
    pub const fn is_resyncing(&self) -> bool {
        self.resync.is_open()
    }

    /// Gives a channel buffers for frames to come, at most as many as its receiver wants.
    // spec: LINK-4
    pub fn give(&mut self, channel: Channel, buffers: u32, now: u64) {
        self.lanes[channel.index()].inward.give(buffers, now);
    }

    /// The program has taken the oldest frames of a channel.
    pub fn take(&mut self, channel: Channel, frames: u32) {
        self.lanes[channel.index()].inward.take(frames);
    }

    /// Whether a new frame may be sent on a channel now. Where the receiver has no room for it, it
    /// is asked from here on until it has. Where it is too soon, [`End::deadline`] says when it is
    /// not.
    // spec: LINK-14
    pub fn may_send(&mut self, channel: Channel, now: u64) -> bool {
        let has_credit = self.lanes[channel.index()].out.room() > 0;
        // spec: LINK-28
        let under_way = self.lanes.iter().map(|lane| lane.out.under_way()).sum();
        let may_send = self.congestion.may_send(now, under_way);
        let lane = &mut self.lanes[channel.index()];
        (lane.wants, lane.is_early) = (!has_credit, has_credit && !may_send);
        has_credit && may_send && self.life.is_open()
    }

    /// Sends a new frame, which may be sent: its number. The owner keeps the payload until it has
    /// arrived.
    pub fn send(
        &mut self,
        channel: Channel,
        (digest, flags): (Digest, Flags),
        now: u64,
        fx: &mut impl EndEffects,
    ) -> u32 {
        let transmission = self.begin(now, digest.len);
        let lane = &mut self.lanes[channel.index()];
        let seq = lane.out.send(transmission);
        lane.sent[slot(seq)] = (digest, flags);
        self.counters.sent += 1;
        self.transmit(channel, seq, transmission, fx);
        self.check();
        seq
    }

    /// The owner has another reason to think that the other side knows nothing of the link.
    // spec: LINK-19
    pub fn on_reset_hint(&mut self, now: u64) {
        self.life.on_hint(now);
    }

    /// Somebody asks for a link in the other side's name. Returns whether that one has to wait,
    /// because this end's link may be one of before a restart. Then this end looks whether the
    /// other side is still there, and gives up sooner where the open `is_believed`. If the other
    /// side was heard since the open, nobody has to wait. An open can be recorded and sent again,
    /// so it ends nothing by itself.
    // spec: LINK-25
    pub fn on_open(&mut self, incarnation: u64, is_believed: bool, now: u64) -> bool {
        if incarnation == self.agreed.incarnation || !self.life.is_open() {
            return false;
        }
        let asked = self.restarted_as.filter(|(asked, _)| *asked == incarnation);
        if let Some((_, at)) = asked.filter(|(_, at)| self.life.heard_at() > *at) {
            // That it was there holds for a while.
            if now < at.saturating_add(self.life.interval()) {
                return false;
            }
            self.restarted_as = None;
        }
        if asked.is_none() || self.restarted_as.is_none() {
            self.restarted_as = Some((incarnation, now));
        }
        self.life.on_restart(is_believed, now);
        true
    }

    /// Leaves: nothing more is sent or taken. Frames that have not arrived are given up, so the
    /// owner waits for them before it calls this.
    // spec: LINK-20
    pub fn close(&mut self) {
        self.life.close();
    }

    /// Warm reset: the owner has lost the frames that it kept before their turn, which are all of a
    /// channel from [`Receiver::expected`] on. Both ends go on with what each of them expects.
    // spec: LINK-12, LINK-22
    pub fn resync(&mut self, now: u64, fx: &mut impl EndEffects) {
        if !self.life.is_open() {
            return;
        }
        self.lanes.iter_mut().for_each(|lane| lane.inward.resume(now));
        self.resync.begin();
        self.counters.resyncs += 1;
        self.ask_resync(now, fx);
        assert!(self.is_resyncing(), "the answer to a warm reset is waited for");
        self.check();
    }

    /// The payload of a frame is what its header says: the frame has arrived.
    ///
    /// # Errors
    /// [`Malformed`] where there was no credit for it.
    // spec: LINK-2, LINK-4
    pub fn on_payload(&mut self, header: &Header, now: u64) -> Result<Arrival, Malformed> {
        let receiver = &mut self.lanes[header.channel.index()].inward;
        receiver.on_frame(header.seq, now).inspect_err(|_| self.counters.malformed += 1)
    }

    /// The payload of a piece is what its header says. Whether its part is wanted; where the frame
    /// has arrived, that is said again.
    ///
    /// # Errors
    /// [`Malformed`] where there was no credit for the frame.
    // spec: FRAME-12
    pub fn on_piece(&mut self, header: &Header, now: u64) -> Result<bool, Malformed> {
        let is_wanted = self.lanes[header.channel.index()].inward.is_wanted(header.seq);
        if !is_wanted {
            self.on_payload(header, now)?;
        }
        Ok(is_wanted)
    }

    /// Does what is due: sends again what is lost, asks for room, says what has arrived, probes,
    /// gives up.
    pub fn on_time(&mut self, now: u64, fx: &mut impl EndEffects) {
        self.check();
        self.live(now, fx);
        if !self.life.is_open() {
            return;
        }
        self.ask_resync(now, fx);
        self.find_late(now);
        self.send_length_probes(now, fx);
        if !self.repair(now, fx) {
            return;
        }
        self.remind(now, fx);
        self.ask(now, fx);
        while let Some(path) = self.paths.probe_due(now) {
            self.transmit_empty(PROBE, path, now, fx);
        }
        if self.must_ack(now) {
            self.transmit_chosen(NOTHING, now, fx);
        }
        self.check();
    }

    /// When [`End::on_time`] has something to do next, or the owner may send what it could not yet,
    /// as far as is known.
    pub fn deadline(&self, now: u64) -> u64 {
        let (timeout, wait) = (self.rtt.timeout(), self.wait());
        let life = self.life.next(timeout);
        if !self.life.is_open() {
            return life.max(now);
        }
        // Where the window is full, what comes in is waited for, and no time.
        let pace = match self.congestion.may_send(now, self.in_flight()) {
            true => Some(now),
            false => self.congestion.next_send(now),
        };
        let lanes = self.lanes.iter().flat_map(|lane| {
            let asks = lane.wants && lane.out.in_flight() == 0;
            let ask = asks.then(|| self.asked_at.map_or(now, |at| at.saturating_add(timeout)));
            let resend = lane.out.lost().and(pace);
            let say = lane.inward.ack_due(self.max_ack_delay);
            [lane.out.deadline(wait), say, ask, resend].into_iter().flatten()
        });
        let is_early = self.lanes.iter().any(|lane| lane.is_early);
        let new = is_early.then(|| self.congestion.next_send(now)).flatten();
        let others = [self.reminds_at(), new, self.paths.next_probe(), self.resync.next(timeout)];
        let next = lanes.chain(others.into_iter().flatten()).min();
        next.map_or(life, |next| next.min(life)).min(self.lengths.due()).max(now)
    }

    /// Frames that were sent, are not taken for lost, and are not known to have arrived.
    pub fn in_flight(&self) -> u32 {
        self.lanes.iter().map(|lane| lane.out.in_flight()).sum()
    }
}
