//! What two ports say to each other before they are connected: Hello, Welcome, Refuse.
//!
//! Packets of all versions are equally long, and have their kind and the speaker's version in the
//! first two words. So who speaks another version can be refused in a way that it understands.
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

/// In place of a number, where there is none.
const NO_NUMBER: u64 = u64::MAX;
const _: () = assert!(NO_NUMBER > u16::MAX as u64, "no peer has this number");
const _: () = assert!(PEERS_MAX <= u16::MAX as usize, "each peer has a number");
/// What a caller is called of which no more than its number is known.
pub(super) const OF_NUMBER: &str = "port ";

/// One side's part of the handshake.
pub(super) struct Half {
    /// None of an endpoint, which goes by its name.
    pub(super) number: Option<PeerId>,
    pub(super) mode: Mode,
    pub(super) expedited: bool,
    pub(super) says: Says,
}

/// What only one of the two says.
pub(super) enum Says {
    /// Who connects: the endpoint's name, zeros for a port that is none.
    Hello(Name),
    /// Who accepts: what it has made.
    Welcome(LaneSizes),
}

impl Half {
    pub(super) fn words(&self) -> [u64; 7] {
        let number = self.number.map_or(NO_NUMBER, |number| u64::from(number.0));
        let mode = u64::from(self.mode == Mode::Mediated);
        let [a, b, c] = match self.says {
            Says::Hello(name @ [low, high]) => {
                let is_told_once = self.number.is_none() || name == Name::default();
                debug_assert!(is_told_once, "a name stands beside no number");
                [low, high, 0]
            }
            Says::Welcome(LaneSizes { paired, response, ring }) => {
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
            PacketKind::Welcome => Says::Welcome(checked_sizes(a, (b, c), mode)?),
            _ if number.is_some() && [a, b] != Name::default() => {
                return Err(SetupError::Protocol("a name beside a number"));
            }
            _ => Says::Hello([a, b]),
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
    /// The caller's, if it is an endpoint.
    pub(crate) fn name(&self) -> Option<Name> {
        match self.half.says {
            Says::Hello(name) if self.half.number.is_none() => Some(name),
            _ => None,
        }
    }
}

/// The Hello that a caller has said, if it has said anything.
// spec: LIFE-7
pub(crate) fn hear_hello(socket: BorrowedFd<'_>) -> Result<Option<Hello>, SetupError> {
    let Some(packet) = control::receive(socket).packet()? else { return Ok(None) };
    let half = match expect(&packet, PacketKind::Hello) {
        // No more than noise: ports of all versions hand over something.
        Err(SetupError::Version { ours, .. }) if packet.fds.is_empty() => {
            return Err(SetupError::rejected(Refusal::Version(ours)));
        }
        half => half?,
    };
    let [page] = <[Descriptor; 1]>::try_from(packet.fds)
        .map_err(|fds: Vec<_>| wrong_descriptors(&fds, socket))?;
    Ok(Some(Hello { half, page }))
}

/// What a packet of this kind says.
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

/// Tells a caller why it is not let in. It may have gone, and need not listen.
// spec: LIFE-27
pub(super) fn refuse(socket: BorrowedFd<'_>, why: Refusal) {
    let [code, detail] = why.to_words();
    let _ = control::send(socket, PacketKind::Refuse, [VERSION, code, detail, 0, 0, 0, 0], &[]);
}

/// What a caller is told of the error that welcoming it has met.
pub(super) fn refusal_of(error: &SetupError) -> Refusal {
    match error {
        SetupError::Rejected { why, .. } => *why,
        SetupError::Version { ours, .. } => Refusal::Version(*ours),
        SetupError::Os { errno, .. } => Refusal::Resources(errno.raw_os_error() as u32),
        SetupError::Exhausted(_) => Refusal::Full(PEERS_MAX as u64),
        // It has broken the formats, and knows why.
        _ => Refusal::Unknown,
    }
}

/// Why a packet has not brought the descriptors that it should: the kernel keeps back those that we
/// have no room for, in which case there is none for one more. Those that came are held meanwhile.
pub(super) fn wrong_descriptors(_held: &[Descriptor], socket: BorrowedFd<'_>) -> SetupError {
    match descriptor::copy(socket) {
        Ok(_) => SetupError::Protocol("descriptors of a packet"),
        Err(errno) => SetupError::Os { call: "descriptors of a packet", errno },
    }
}
