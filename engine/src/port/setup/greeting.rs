//! The packets of the handshake between two ports of a host: Hello, Welcome, Refuse.
//!
//! Packets of all versions have the same length, and have their kind and the sender's version in
//! the first two words. So a port can refuse one of another version in a way that it understands.
use crate::error::SetupError;
use crate::mem::layout::LaneSizes;
use crate::peer::agreement::{Name, VERSION, checked_sizes};
use crate::peer::control;
use crate::peer::packet::{Packet, PacketKind};
use crate::settings::choice::Mode;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use rustix::fd::BorrowedFd;

/// Stands for a missing number.
const NO_NUMBER: u64 = u64::MAX;
const _: () = assert!(NO_NUMBER > u16::MAX as u64, "no peer has this number");
const _: () = assert!(PEERS_MAX <= u16::MAX as usize, "each peer has a number");
/// The name of a caller of which only the number is known.
pub(super) const OF_NUMBER: &str = "port ";

/// One side's part of the handshake.
pub(super) struct Half {
    /// None for an endpoint, which has a name.
    pub(super) number: Option<PeerId>,
    pub(super) mode: Mode,
    pub(super) expedited: bool,
    pub(super) says: SideSpecific,
}

/// The part that only one side sends.
pub(super) enum SideSpecific {
    /// The connecting side: the endpoint's name, zeros for a port that is no endpoint.
    Hello(Name),
    /// The accepting side: the sizes of the lanes that it has made.
    Welcome(LaneSizes),
}

impl Half {
    pub(super) fn words(&self) -> [u64; 7] {
        let number = self.number.map_or(NO_NUMBER, |number| u64::from(number.0));
        let mode = u64::from(self.mode == Mode::Mediated);
        let [a, b, c] = match self.says {
            SideSpecific::Hello(name @ [low, high]) => {
                let is_told_once = self.number.is_none() || name == Name::default();
                debug_assert!(is_told_once, "a name stands beside no number");
                [low, high, 0]
            }
            SideSpecific::Welcome(LaneSizes { paired, response, ring }) => {
                [paired, response, ring].map(u64::from)
            }
        };
        [VERSION, number, mode, u64::from(self.expedited), a, b, c]
    }

    // spec: LIFE-7
    fn parse(words: &[u64; 7], kind: PacketKind) -> Result<Self, SetupError> {
        let [version, number, mode, expedited, a, b, c] = *words;
        if version != VERSION {
            let speaker = SetupError::version(version, VERSION);
            return Err(match usize::try_from(number) {
                Ok(number) if number < PEERS_MAX => speaker.of(format!("{OF_NUMBER}{number}")),
                _ => speaker,
            });
        }
        let number = match number {
            NO_NUMBER => None,
            _ => {
                let number = u16::try_from(number);
                Some(PeerId(number.map_err(|_| SetupError::Protocol("peer number"))?))
            }
        };
        let mode = if mode == 0 { Mode::Direct } else { Mode::Mediated };
        let says = match kind {
            PacketKind::Welcome => SideSpecific::Welcome(checked_sizes(a, (b, c), mode)?),
            _ if number.is_some() && [a, b] != Name::default() => {
                return Err(SetupError::Protocol("a name beside a number"));
            }
            _ => SideSpecific::Hello([a, b]),
        };
        Ok(Self { number, mode, expedited: expedited == 1, says })
    }
}

/// A caller's Hello.
pub(crate) struct Hello {
    pub(super) half: Half,
    pub(super) page: Descriptor,
}

impl Hello {
    /// The caller's name, if it is an endpoint.
    pub(crate) fn name(&self) -> Option<Name> {
        match self.half.says {
            SideSpecific::Hello(name) if self.half.number.is_none() => Some(name),
            _ => None,
        }
    }
}

/// Reads a caller's Hello, if it has sent something.
// spec: LIFE-7
pub(crate) fn hear_hello(socket: BorrowedFd<'_>) -> Result<Option<Hello>, SetupError> {
    let Some(packet) = control::receive(socket).packet()? else { return Ok(None) };
    let half = match expect(&packet, PacketKind::Hello) {
        // Not a Hello of another version: in all versions it brings descriptors.
        Err(SetupError::Version { ours, .. }) if packet.fds.is_empty() => {
            return Err(SetupError::rejected(Refusal::Version(ours)));
        }
        half => half?,
    };
    let [page] = <[Descriptor; 1]>::try_from(packet.fds)
        .map_err(|fds: Vec<_>| wrong_descriptors(&fds, socket))?;
    Ok(Some(Hello { half, page }))
}

/// Parses a packet that should have this kind.
pub(super) fn expect(packet: &Packet, kind: PacketKind) -> Result<Half, SetupError> {
    match packet.kind {
        PacketKind::Refuse => {
            let [theirs, code, detail, ..] = packet.words;
            Err(match Refusal::from_words([code, detail]) {
                Refusal::Version(_) => SetupError::version(theirs, VERSION),
                why => SetupError::refused(why),
            })
        }
        found if found == kind => Half::parse(&packet.words, kind),
        _ => Err(SetupError::Protocol("packet out of turn")),
    }
}

/// Sends a caller the reason why it is not admitted. It may have gone, and need not read it.
// spec: LIFE-27
pub(super) fn refuse(socket: BorrowedFd<'_>, why: Refusal) {
    let [code, detail] = why.to_words();
    let _ = control::send(socket, PacketKind::Refuse, [VERSION, code, detail, 0, 0, 0, 0], &[]);
}

/// The refusal that tells a caller of this error.
pub(super) fn refusal_of(error: &SetupError) -> Refusal {
    match error {
        SetupError::Rejected { why, .. } => *why,
        SetupError::Version { ours, .. } => Refusal::Version(*ours),
        SetupError::Os { errno, .. } => Refusal::Resources(errno.raw_os_error() as u32),
        SetupError::Exhausted(_) => Refusal::Full(PEERS_MAX as u64),
        // The caller has broken the formats, and needs no explanation.
        _ => Refusal::Unknown,
    }
}

/// The error for a packet without the descriptors that it should bring. The kernel withholds
/// descriptors for which this process has no room; then not even one more can be made. `_held`
/// keeps those that came open during the check.
pub(super) fn wrong_descriptors(_held: &[Descriptor], socket: BorrowedFd<'_>) -> SetupError {
    match descriptor::copy(socket) {
        Ok(_) => SetupError::Protocol("descriptors of a packet"),
        Err(errno) => SetupError::Os { call: "descriptors of a packet", errno },
    }
}
