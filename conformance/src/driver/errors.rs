//! Why calls of messengers have failed, read and written.
use super::words::{Answer, Words};
use ayre::collective::{CallMismatch, CallShape, Collective, GroupError, Schedule, Task};
use ayre::collective::{Combine, Number};
use ayre::multicast::MulticastError;
use ayre::stream::{self, FailureReason, StreamError, StreamFailure};

const WHYS: [FailureReason; 8] = [
    FailureReason::Panicked,
    FailureReason::UnknownStage,
    FailureReason::Nowhere,
    FailureReason::Taken,
    FailureReason::Full,
    FailureReason::Unreachable,
    FailureReason::PeerDied,
    FailureReason::Cancelled,
];

const ANSWERS: [stream::EntryAnswer; 5] = [
    stream::EntryAnswer::Done,
    stream::EntryAnswer::Denied,
    stream::EntryAnswer::Full,
    stream::EntryAnswer::Taken,
    stream::EntryAnswer::Unknown,
];

/// One of these, by the code that travels.
pub(super) fn coded<T: Copy>(all: &[T], code: impl Fn(T) -> u8, words: &mut Words<'_>) -> T {
    let travels: u8 = words.number();
    let found = all.iter().find(|one| code(**one) == travels);
    *found.unwrap_or_else(|| panic!("{travels} is no code of {}", std::any::type_name::<T>()))
}

pub(super) fn failure(failure: StreamFailure) -> String {
    format!("{} {}", failure.why as u8, failure.at.0)
}

impl Words<'_> {
    pub(super) fn failure(&mut self) -> StreamFailure {
        StreamFailure { why: coded(&WHYS, |why| why as u8, self), at: self.peer() }
    }

    pub(super) fn collective(&mut self) -> Collective {
        coded(&Collective::ALL, |one| one as u8, self)
    }

    pub(super) fn schedule(&mut self) -> Schedule {
        coded(&Schedule::ALL, |one| one as u8, self)
    }

    fn call(&mut self) -> CallShape {
        let (collective, schedule, root) = (self.collective(), self.schedule(), self.number());
        let (combine, number) = (self.number(), self.number());
        let operation = Combine::from_code(combine).zip(Number::from_code(number));
        CallShape { task: Task { collective, schedule, root }, operation, bytes: self.number() }
    }
}

fn call(call: &CallShape) -> String {
    let CallShape { task: Task { collective, schedule, root }, operation, bytes } = *call;
    let (combine, number) = operation.map_or((0, 0), |(one, of)| (one.code(), of.code()));
    format!("{} {} {root} {combine} {number} {bytes}", collective as u8, schedule as u8)
}

impl Answer {
    pub(super) fn streamed(self) -> Result<String, StreamError> {
        let Self::Failed(why) = self else { return Ok(self.done()) };
        let mut words = Words::of(&why);
        Err(match words.word() {
            "stream" => StreamError::Failed(words.failure()),
            "entry" => {
                let why = coded(&ANSWERS, |answer| answer as u8, &mut words);
                StreamError::Refused(words.peer(), why)
            }
            "long" => StreamError::TooLong,
            "interrupted" => StreamError::Interrupted,
            other => panic!("no stream fails by `{other}`"),
        })
    }

    pub(super) fn collected(self) -> Result<String, GroupError> {
        let why = match self {
            Self::Died(peer) => return Err(GroupError::PeerDied(peer)),
            Self::Failed(why) => why,
            other => return Ok(other.done()),
        };
        let mut words = Words::of(&why);
        Err(match words.word() {
            "mismatch" => {
                let (peer, bytes) = (words.peer(), [words.number(), words.number()]);
                let (ours, is_known) = (words.call(), words.clone().text() != "");
                let theirs = is_known.then(|| words.call());
                GroupError::Mismatch { peer, difference: CallMismatch { ours, theirs, bytes } }
            }
            "given_up" => GroupError::GivenUp(words.peer()),
            "interrupted" => GroupError::Interrupted,
            "invalid" => GroupError::Invalid(words.text().leak()),
            other => panic!("no collective fails by `{other}`"),
        })
    }

    pub(super) fn multicast(self) -> Result<String, MulticastError> {
        let why = match self {
            Self::Nothing => return Err(MulticastError::Busy),
            Self::Failed(why) => why,
            other => return Ok(other.done()),
        };
        let mut words = Words::of(&why);
        Err(match words.word() {
            "outside" => MulticastError::NoMember,
            "refused" => MulticastError::Refused(words.peer()),
            "unreachable" => MulticastError::Unreachable(words.peer()),
            "unknown" => MulticastError::Unknown(words.peer()),
            "long" => MulticastError::TooLong,
            "interrupted" => MulticastError::Interrupted,
            "invalid" => MulticastError::Invalid(words.text().leak()),
            other => panic!("no message to a group fails by `{other}`"),
        })
    }
}

impl From<StreamError> for Answer {
    fn from(error: StreamError) -> Self {
        Self::Failed(match error {
            StreamError::Failed(why) => format!("stream {}", failure(why)),
            StreamError::Refused(at, why) => format!("entry {} {}", why as u8, at.0),
            StreamError::TooLong => "long".into(),
            StreamError::Interrupted => "interrupted".into(),
        })
    }
}

impl From<GroupError> for Answer {
    fn from(error: GroupError) -> Self {
        Self::Failed(match error {
            GroupError::PeerDied(peer) => return Self::Died(peer),
            GroupError::Mismatch { peer, difference: CallMismatch { ours, theirs, bytes } } => {
                let theirs = theirs.as_ref().map_or_else(String::new, call);
                let [due, came] = bytes;
                format!("mismatch {} {due} {came} {} {theirs}", peer.0, call(&ours))
            }
            GroupError::GivenUp(peer) => format!("given_up {}", peer.0),
            GroupError::Interrupted => "interrupted".into(),
            GroupError::Invalid(why) => format!("invalid {why}"),
        })
    }
}

impl From<MulticastError> for Answer {
    fn from(error: MulticastError) -> Self {
        Self::Failed(match error {
            MulticastError::Busy => return Self::Nothing,
            MulticastError::NoMember => "outside".into(),
            MulticastError::Refused(peer) => format!("refused {}", peer.0),
            MulticastError::Unreachable(peer) => format!("unreachable {}", peer.0),
            MulticastError::Unknown(peer) => format!("unknown {}", peer.0),
            MulticastError::TooLong => "long".into(),
            MulticastError::Interrupted => "interrupted".into(),
            other => format!("invalid {other}"),
        })
    }
}
