//! The messages between members of a group.
use super::requests::What;
use super::view::{SEATS_MAX, Seat, Standing, View};
use super::{Label, Member, Options};
use crate::lane::Malformed;
use arrayvec::ArrayVec;

/// A message of a group. The payload comes behind what [`Message::encode`] makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a, P> {
    /// To a door: its sender wants to be a member, with these bounds.
    Join(Options),
    /// To the root: a request to order this.
    Request {
        /// Requests of a member count from one.
        number: u64,
        /// The request.
        what: What<P>,
    },
    /// Along the tree: the next message.
    Tree {
        /// The view that it belongs to.
        view: u64,
        /// All members have everything up to this ticket.
        stable: u64,
        /// Which message it is.
        label: Label,
        /// The payload.
        payload: P,
    },
    /// Back along the tree: the sender and all behind it have everything up to this ticket.
    Ack {
        /// The view.
        view: u64,
        /// The ticket.
        ticket: u64,
    },
    /// From the root: this view ends; say what you have, and take nothing from the tree any more.
    Stop {
        /// The view.
        view: u64,
    },
    /// To the leader: the sender has stopped, and has everything up to this ticket.
    Have {
        /// The ticket.
        ticket: u64,
    },
    /// From a leader after a death: members that have gone are to say so; the others will report
    /// their messages anyway.
    Seek,
    /// From the leader: it lacks the messages after this ticket.
    Fetch {
        /// The ticket.
        after: u64,
    },
    /// A message that was lacking.
    Fill {
        /// All members have everything up to this ticket.
        stable: u64,
        /// Which message it is.
        label: Label,
        /// The payload.
        payload: P,
    },
    /// A view.
    View {
        /// Its ticket.
        ticket: u64,
        /// The view.
        view: &'a View,
    },
    /// From the leader: all members have everything, this view included.
    Go {
        /// The view.
        view: u64,
    },
    /// The sender is no member any more, or will not be one.
    Gone,
    /// The receiver is no member, or will not be one.
    Out,
    /// To a door, from an outsider: a message for all members.
    Ask {
        /// The payload.
        payload: P,
    },
    /// From a door: the message has been ordered, and will be delivered by all.
    Done,
    /// From a door: nothing has happened, and it may be asked again.
    Refused,
}

const JOIN: u8 = 1;
const REQUEST_MESSAGE: u8 = 2;
const REQUEST_JOIN: u8 = 3;
const REQUEST_LEAVE: u8 = 4;
const TREE: u8 = 5;
const ACK: u8 = 6;
const STOP: u8 = 7;
const HAVE: u8 = 8;
const SEEK: u8 = 9;
const FETCH: u8 = 10;
const FILL: u8 = 11;
const VIEW: u8 = 12;
const GO: u8 = 13;
const GONE: u8 = 14;
const OUT: u8 = 15;
const ASK: u8 = 16;
const DONE: u8 = 17;
const REFUSED: u8 = 18;

/// Group, kind, and five words at most in front of a payload or of seats.
const HEAD_BYTES: usize = 8 + 5 * 8;
/// A member and a number.
const SEAT_BYTES: usize = 12;
/// A message without its payload.
pub const MESSAGE_BYTES: usize = HEAD_BYTES + SEATS_MAX * SEAT_BYTES;
/// The bytes of one.
pub type Bytes = ArrayVec<u8, MESSAGE_BYTES>;

const _: () = assert!(MESSAGE_BYTES <= crate::limits::EAGER_MAX, "it fits one short message");

impl<'a, P> Message<'a, P> {
    /// The view that the message is about, for messages that all living members have to know it.
    pub(super) const fn view(&self) -> Option<u64> {
        match *self {
            Self::Tree { view, .. } | Self::Ack { view, .. } => Some(view),
            Self::Stop { view } | Self::Go { view } => Some(view),
            _ => None,
        }
    }

    /// Its bytes, and the payload that comes behind them.
    // spec: GRP-21
    pub fn encode(&self, group: u32) -> (Bytes, Option<&P>) {
        let (kind, words, payload): (_, [u64; 5], _) = match self {
            Self::Join(options) => (JOIN, [options.word(), 0, 0, 0, 0], None),
            Self::Request { number, what: What::Message(origin, payload) } => {
                (REQUEST_MESSAGE, [*number, origin.0.into(), 0, 0, 0], Some(payload))
            }
            Self::Request { number, what: What::Join(joiner) } => {
                (REQUEST_JOIN, [*number, joiner.0.into(), 0, 0, 0], None)
            }
            Self::Request { number, what: What::Leave } => {
                (REQUEST_LEAVE, [*number, 0, 0, 0, 0], None)
            }
            Self::Tree { view, stable, label, payload } => {
                let [ticket, number, who] = label.words();
                (TREE, [*view, *stable, ticket, number, who], Some(payload))
            }
            Self::Ack { view, ticket } => (ACK, [*view, *ticket, 0, 0, 0], None),
            Self::Stop { view } => (STOP, [*view, 0, 0, 0, 0], None),
            Self::Have { ticket } => (HAVE, [*ticket, 0, 0, 0, 0], None),
            Self::Seek => (SEEK, [0; 5], None),
            Self::Fetch { after } => (FETCH, [*after, 0, 0, 0, 0], None),
            Self::Fill { stable, label, payload } => {
                let [ticket, number, who] = label.words();
                (FILL, [*stable, ticket, number, who, 0], Some(payload))
            }
            Self::View { ticket, view } => {
                let [leave, join] = masks(view);
                (VIEW, [*ticket, view.number, leave, join, view.branches.into()], None)
            }
            Self::Go { view } => (GO, [*view, 0, 0, 0, 0], None),
            Self::Gone => (GONE, [0; 5], None),
            Self::Out => (OUT, [0; 5], None),
            Self::Ask { payload } => (ASK, [0; 5], Some(payload)),
            Self::Done => (DONE, [0; 5], None),
            Self::Refused => (REFUSED, [0; 5], None),
        };
        let mut bytes = Bytes::new();
        debug_assert!(words[words_of(kind)..].iter().all(|word| *word == 0), "no word is left out");
        let mut put = |some: &[u8]| bytes.try_extend_from_slice(some).expect("it fits");
        put(&group.to_le_bytes());
        put(&u32::from(kind).to_le_bytes());
        words[..words_of(kind)].iter().for_each(|word| put(&word.to_le_bytes()));
        if let Self::View { view, .. } = self {
            for seat in &view.seats {
                put(&seat.member.0.to_le_bytes());
                put(&seat.ordered.to_le_bytes());
            }
        }
        (bytes, payload)
    }

    /// Reads what a peer says, and the group that it says it to: total. A view goes into `scratch`,
    /// and a payload is what the caller makes of its bytes.
    // spec: GRP-21
    pub fn parse(
        bytes: &[u8],
        scratch: &'a mut View,
        payload: impl FnOnce(&[u8]) -> P,
    ) -> Result<(u32, Self), Malformed> {
        let (head, rest) = bytes.split_first_chunk::<8>().ok_or(Malformed)?;
        let [a, b, c, d, kind, 0, 0, 0] = *head else { return Err(Malformed) };
        let (words, rest) = rest.split_at_checked(8 * words_of(kind)).ok_or(Malformed)?;
        let mut words =
            words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).chain([0; 5]);
        let mut word = || words.next().unwrap_or_default();
        let has_rest = matches!(kind, REQUEST_MESSAGE | TREE | FILL | VIEW | ASK);
        if !has_rest && !rest.is_empty() {
            return Err(Malformed);
        }
        let message = match kind {
            JOIN => Self::Join(Options::read(word())?),
            REQUEST_MESSAGE => {
                let (number, origin) = (counter(word())?, member(word())?);
                Self::Request { number, what: What::Message(origin, payload(rest)) }
            }
            REQUEST_JOIN => {
                Self::Request { number: counter(word())?, what: What::Join(member(word())?) }
            }
            REQUEST_LEAVE => Self::Request { number: counter(word())?, what: What::Leave },
            TREE => {
                let (view, stable) = (counter(word())?, counter(word())?);
                let label = Label::read([word(), word(), word()])?;
                Self::Tree { view, stable, label, payload: payload(rest) }
            }
            ACK => Self::Ack { view: counter(word())?, ticket: counter(word())? },
            STOP => Self::Stop { view: counter(word())? },
            HAVE => Self::Have { ticket: counter(word())? },
            SEEK => Self::Seek,
            FETCH => Self::Fetch { after: counter(word())? },
            FILL => {
                let stable = counter(word())?;
                let label = Label::read([word(), word(), word()])?;
                Self::Fill { stable, label, payload: payload(rest) }
            }
            VIEW => {
                let ticket = counter(word())?;
                read_view(counter(word())?, [word(), word(), word()], rest, scratch)?;
                Self::View { ticket, view: scratch }
            }
            GO => Self::Go { view: counter(word())? },
            GONE => Self::Gone,
            OUT => Self::Out,
            ASK => Self::Ask { payload: payload(rest) },
            DONE => Self::Done,
            REFUSED => Self::Refused,
            _ => return Err(Malformed),
        };
        Ok((u32::from_le_bytes([a, b, c, d]), message))
    }
}

const fn words_of(kind: u8) -> usize {
    match kind {
        SEEK | GONE | OUT | ASK | DONE | REFUSED => 0,
        REQUEST_MESSAGE | REQUEST_JOIN | ACK => 2,
        FILL => 4,
        TREE | VIEW => 5,
        _ => 1,
    }
}

/// Counts below 2^63: what is added to them never overflows.
const fn counter(word: u64) -> Result<u64, Malformed> {
    if word >> 63 == 0 { Ok(word) } else { Err(Malformed) }
}

fn member(word: u64) -> Result<Member, Malformed> {
    u32::try_from(word).map(Member).map_err(|_| Malformed)
}

impl Options {
    fn word(&self) -> u64 {
        u64::from(self.window) | u64::from(self.requests) << 16
    }

    fn read(word: u64) -> Result<Self, Malformed> {
        let (window, requests) = (word as u16, (word >> 16) as u16);
        let sound = word >> 32 == 0 && window > 0 && requests > 0;
        if sound { Ok(Self { window, requests }) } else { Err(Malformed) }
    }
}

impl Label {
    fn words(&self) -> [u64; 3] {
        [self.ticket, self.number, u64::from(self.sender.0) | u64::from(self.origin.0) << 32]
    }

    fn read([ticket, number, who]: [u64; 3]) -> Result<Self, Malformed> {
        let (sender, origin) = (Member(who as u32), Member((who >> 32) as u32));
        Ok(Self { ticket: counter(ticket)?, number: counter(number)?, sender, origin })
    }
}

/// Bits by seat: leavers, and joiners.
fn masks(view: &View) -> [u64; 2] {
    debug_assert!(!view.seats.is_empty(), "somebody is in a view that is told");
    let mask = |standing| {
        let bits = view.seats.iter().zip(0..).filter(|(seat, _)| seat.standing == standing);
        bits.fold(0, |mask, (_, bit)| mask | 1 << bit)
    };
    [mask(Standing::Leaves), mask(Standing::Joins)]
}

/// Each member has one seat; joiners have the last ones and have ordered nothing.
// spec: GRP-21
fn read_view(
    number: u64,
    [leave, join, branches]: [u64; 3],
    bytes: &[u8],
    view: &mut View,
) -> Result<(), Malformed> {
    let (seats, rest) = bytes.as_chunks::<SEAT_BYTES>();
    if !rest.is_empty() || seats.is_empty() || seats.len() > SEATS_MAX {
        return Err(Malformed);
    }
    let all = u64::MAX >> (SEATS_MAX - seats.len());
    let are_last = join == 0 || all & !join == all & ((join & join.wrapping_neg()) - 1);
    let is_tree = (1..=SEATS_MAX as u64).contains(&branches);
    if (leave | join) & !all != 0 || leave & join != 0 || !are_last || !is_tree {
        return Err(Malformed);
    }
    view.number = number;
    view.branches = branches as u8;
    view.seats.clear();
    for (seat, bit) in seats.iter().zip(0..) {
        let [a, b, c, d, ordered @ ..] = *seat;
        let member = Member(u32::from_le_bytes([a, b, c, d]));
        let ordered = counter(u64::from_le_bytes(ordered))?;
        let standing = match (leave >> bit & 1, join >> bit & 1) {
            (0, 0) => Standing::Stays,
            (0, _) => Standing::Joins,
            _ => Standing::Leaves,
        };
        if view.find(member).is_some() || standing == Standing::Joins && ordered > 0 {
            return Err(Malformed);
        }
        view.seats.push(Seat { member, standing, ordered });
    }
    Ok(())
}
