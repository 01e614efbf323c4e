//! Reports of a port about its links and networks: copies of its counters.
use super::link_end::LinkEnd;
use super::pool::Counts;
use super::{LinkLoad, Wire, WireCounters, lock};
use crate::net::datagram::{Net, NetCounters};
use ayre_proto::link::WINDOW;
use ayre_proto::link::congestion::ONE;
use ayre_proto::link::end::End;
use ayre_proto::link::frame::Channel;
use ayre_proto::link::life::State;
use ayre_proto::link::paths::{self, PathId, Paths};
use ayre_proto::units::PeerId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Mutex;

/// Of the report as text: raised when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// The report of a port about its links to other hosts, and the networks below them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WireReport {
    /// The version of the text format of this report.
    pub format: u32,
    /// The process number, in the process's own namespace.
    pub process: u32,
    /// The program's name.
    pub program: String,
    /// The port's number; in a job, its rank.
    pub number: usize,
    /// Nanoseconds since the port was opened to other hosts. Two reports give rates.
    pub clock_ns: u64,
    /// Links with ports of other hosts.
    pub links: Vec<LinkReport>,
    /// The networks that carry the frames, by path.
    pub nets: Vec<NetReport>,
    /// Buffers for arriving frames.
    #[serde(default)]
    pub buffers: BuffersReport,
    /// Datagrams that belong to no link, or are forged.
    pub refused: u64,
    /// Links that ended because the peer sent invalid frames.
    pub malformed: u64,
    /// Links that ended because the peer was started anew.
    #[serde(default)]
    pub restarted: u64,
}

/// One end of a link. Counts begin with the link, and never decrease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkReport {
    /// The number of the port at the other end.
    pub peer: usize,
    /// Whether it is open.
    pub state: LinkState,
    /// Whether its frames are encrypted and authenticated.
    pub is_sealed: bool,
    /// The reason why two endpoints of one host use this link and do not share memory.
    #[serde(default)]
    pub detour: Option<String>,
    /// The paths of its frames.
    pub paths: Vec<PathReport>,
    /// New frames with a payload that were sent.
    pub sent: u64,
    /// Sent frames that the peer has acknowledged.
    pub arrived: u64,
    /// Frames that were sent again.
    pub again: AgainReport,
    /// Warm resets that either side has begun.
    #[serde(default)]
    pub resyncs: u64,
    /// Frames without a payload that were sent.
    pub told: u64,
    /// Frames that arrived more than once.
    pub repeated: u64,
    /// Frames whose data was put in place before earlier frames had arrived.
    #[serde(default)]
    pub early: u64,
    /// Frames that arrived and do not belong to this link.
    pub foreign: u64,
    /// Frames that arrived and are not valid.
    pub malformed: u64,
    /// The smoothed round trip in nanoseconds; `None` before the first answer.
    pub round_trip_ns: Option<u64>,
    /// The variation of the round trip in nanoseconds; `None` before the first answer.
    pub variation_ns: Option<u64>,
    /// Retransmission timeout in nanoseconds.
    pub timeout_ns: u64,
    /// Congestion window in frames.
    pub window: f64,
    /// Frames that were sent and are neither acknowledged nor taken for lost.
    pub in_flight: u32,
    /// Room in each direction, by channel.
    pub credit: Vec<CreditReport>,
    /// Nanoseconds since the last frame of the peer.
    pub silent_ns: u64,
}

/// Whether a link is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkState {
    /// This side knows of the link, and has heard nothing over it yet.
    Opening,
    /// Both sides have been heard.
    Open,
    /// This side has left, and waits for the acknowledgement of the other side.
    Closing,
    /// There is no link any more.
    Closed,
}

/// Frames that were sent again, by the reason for which they were taken for lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgainReport {
    /// Later frames of the same path have arrived.
    pub overtaken: u64,
    /// The peer has asked for them.
    pub asked_for: u64,
    /// The retransmission timeout was over.
    pub timed_out: u64,
    /// They were under way at a warm reset.
    pub resynced: u64,
}

/// A path through the network, from an address of this port to an address of the peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathReport {
    /// The address of this port.
    pub from: SocketAddr,
    /// The peer's address.
    pub to: SocketAddr,
    /// Whether the path takes frames.
    pub state: PathState,
    /// Frames that were sent by this path.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// How often the path died.
    pub deaths: u64,
    /// How often the path came back.
    pub returns: u64,
    /// The length of the longest datagram that is known to pass whole, in bytes; 0 if unknown.
    #[serde(default)]
    pub datagram: u32,
    /// The length of the longest datagram when the link was opened.
    #[serde(default)]
    pub datagram_at_opening: u32,
}

/// Whether a path takes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathState {
    /// The path takes frames.
    Live,
    /// The path takes frames only because there is no better one.
    Suspect,
    /// The path takes no frames. It is probed until it answers again.
    Dead,
}

/// Room on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CreditReport {
    /// The channel.
    pub channel: LinkChannel,
    /// New frames that may be sent, as far as the receiver has room.
    pub room: u32,
    /// Buffers of this port that the peer may still fill.
    pub given: u32,
}

/// Numbers of buffers for arriving frames. All others are free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BuffersReport {
    /// Buffers of the port.
    pub in_all: u32,
    /// Buffers of links: credit that peers may use, and frames that were not taken yet.
    pub given: u32,
    /// Buffers that are kept for later links.
    pub reserved: u32,
}

/// A channel of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkChannel {
    /// Records that need nothing of the other side.
    Posted,
    /// Records that need a response.
    NonPosted,
    /// Responses.
    Response,
}

/// The counters of a net since it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetReport {
    /// The address that peers send to.
    pub address: SocketAddr,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Their payloads' bytes.
    pub sent_bytes: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Their payloads' bytes.
    pub received_bytes: u64,
    /// Datagrams that could not be sent, or that a plan of faults has lost.
    pub dropped: u64,
    /// System calls that sent, tried to send, received or found nothing.
    pub calls: u64,
    /// How often the system's send queue was full.
    pub full: u64,
    /// Errors that the system reported and that change nothing.
    pub hints: u64,
}

/// The port of the report.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(super) process: u32,
    pub(super) program: String,
    pub(super) number: PeerId,
}

impl Owner {
    /// This process's port of this number.
    pub(crate) fn this(number: PeerId) -> Self {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        let program = program.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self { process: std::process::id(), program, number }
    }

    /// The wire is locked for one link at a time, so that a reader holds nobody up.
    // spec: WIRE-8
    pub(crate) fn report(&self, wire: &Mutex<Wire>) -> WireReport {
        let links = links(wire);
        let wire = lock(wire);
        let WireCounters { refused, malformed, restarted } = wire.links.counters;
        WireReport {
            format: FORMAT,
            process: self.process,
            program: self.program.clone(),
            number: self.number.index(),
            clock_ns: wire.now(),
            links,
            nets: wire.nets.iter().map(|net| net_report(&**net)).collect(),
            buffers: buffers(&wire),
            refused,
            malformed,
            restarted,
        }
    }
}

fn buffers(wire: &Wire) -> BuffersReport {
    let Counts { in_all, given, reserved } = wire.links.pool.counts();
    debug_assert!(given + reserved <= in_all, "no buffer is promised twice");
    BuffersReport { in_all, given, reserved }
}

pub(crate) fn links(wire: &Mutex<Wire>) -> Vec<LinkReport> {
    let mut place = 0;
    let next = || {
        let (found, report) = lock(wire).report_from(place)?;
        place = found + 1;
        Some(report)
    };
    std::iter::from_fn(next).collect()
}

impl Wire {
    /// The load of the link with a peer; none where there is no link.
    pub(crate) fn load(&self, peer: PeerId) -> Option<LinkLoad> {
        self.links.open(peer).map(link_load)
    }

    /// The link at this place or at the next one that has one.
    fn report_from(&self, place: usize) -> Option<(usize, LinkReport)> {
        let (place, link) = self.links.open_from(place)?;
        Some((place, self.link_report(link)))
    }

    fn link_report(&self, link: &LinkEnd) -> LinkReport {
        let machine = link.machine();
        let counters = *machine.counters();
        debug_assert!(counters.arrived <= counters.sent, "what has arrived was sent");
        LinkReport {
            peer: link.peer.index(),
            state: link_state(link),
            is_sealed: link.is_sealed(),
            detour: link.detour.as_deref().map(str::to_owned),
            paths: self.paths(link),
            sent: counters.sent,
            arrived: counters.arrived,
            again: AgainReport {
                overtaken: counters.overtaken,
                asked_for: counters.asked_for,
                timed_out: counters.timed_out,
                resynced: counters.resynced,
            },
            resyncs: counters.resyncs,
            told: counters.told,
            repeated: counters.repeated,
            early: link.early(),
            foreign: counters.foreign,
            malformed: counters.malformed,
            round_trip_ns: machine.rtt().smoothed(),
            variation_ns: machine.rtt().variation(),
            timeout_ns: machine.rtt().timeout(),
            window: f64::from(machine.window()) / f64::from(ONE),
            in_flight: Channel::ALL.iter().map(|one| machine.sender(*one).in_flight()).sum(),
            credit: Channel::ALL.iter().map(|channel| credit(machine, *channel)).collect(),
            silent_ns: self.now().saturating_sub(machine.heard_at()),
        }
    }

    fn paths(&self, link: &LinkEnd) -> Vec<PathReport> {
        let paths = link.machine().paths();
        let report = |(number, way): (u8, crate::net::routes::Way)| {
            let id = PathId::new(number)?;
            let paths::Counters { sent, delivered, lost, deaths, returns } = paths.counters(id)?;
            let (from, to) = (self.nets.get(way.net)?.local(), way.to);
            let state = path_state(paths, id);
            let [datagram, datagram_at_opening] = link.datagrams(number);
            Some(PathReport {
                from,
                to,
                state,
                sent,
                delivered,
                lost,
                deaths,
                returns,
                datagram,
                datagram_at_opening,
            })
        };
        (0..).zip(link.ways()).filter_map(report).collect()
    }
}

fn link_load(link: &LinkEnd) -> LinkLoad {
    let machine = link.machine();
    let counters = machine.counters();
    let again = counters.overtaken + counters.asked_for + counters.timed_out + counters.resynced;
    LinkLoad {
        sent: counters.sent + again,
        waiting: machine.in_flight() + link.ready() as u32,
        window: (machine.window() / ONE).clamp(1, WINDOW),
        frame: link.record_max() as u32,
        round_trip_ns: machine.rtt().smoothed().unwrap_or(0),
        shortest_ns: machine.rtt().shortest().unwrap_or(0),
    }
}

fn link_state(link: &LinkEnd) -> LinkState {
    match link.state() {
        State::Open if link.is_confirmed() => LinkState::Open,
        State::Open => LinkState::Opening,
        State::Closing => LinkState::Closing,
        State::Closed(_) => LinkState::Closed,
    }
}

fn path_state(paths: &Paths, id: PathId) -> PathState {
    match (paths.is_live(id), paths.is_suspect(id)) {
        (true, false) => PathState::Live,
        (true, true) => PathState::Suspect,
        (false, _) => PathState::Dead,
    }
}

fn credit(machine: &End, channel: Channel) -> CreditReport {
    let receiver = machine.receiver(channel);
    let given = receiver.limit().wrapping_sub(receiver.expected());
    debug_assert!(given <= WINDOW, "credit reaches no further than the window");
    CreditReport {
        channel: match channel {
            Channel::Posted => LinkChannel::Posted,
            Channel::NonPosted => LinkChannel::NonPosted,
            Channel::Response => LinkChannel::Response,
        },
        room: machine.sender(channel).room(),
        given,
    }
}

fn net_report(net: &dyn Net) -> NetReport {
    let counted = net.counters();
    let NetCounters { sent, sent_bytes, received, received_bytes, .. } = counted;
    let NetCounters { dropped, calls, full, hints, .. } = counted;
    let address = net.local();
    NetReport { address, sent, sent_bytes, received, received_bytes, dropped, calls, full, hints }
}
