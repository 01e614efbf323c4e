//! The names that the files use for what travels as codes.
use ayre_proto::alu::{AtomicOp, Width};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Kind;
use ayre_proto::link::send::Loss;
use ayre_proto::link::{Repair, frame};
use ayre_proto::notify::Operation;

pub(crate) const KINDS: &[(&str, Kind)] = &[
    ("message", Kind::Message),
    ("gated-message", Kind::GatedMessage),
    ("notification", Kind::Notification),
    ("command", Kind::Command),
    ("response", Kind::Response),
    ("record", Kind::Record),
    ("continuation", Kind::Continuation),
];

pub(crate) const OPERATIONS: &[(&str, Operation)] = &[
    ("put", Operation::Put),
    ("get", Operation::Get),
    ("immediate-put", Operation::ImmediatePut),
    ("notification-put", Operation::NotificationPut),
    ("atomic", Operation::Atomic),
    ("fetch-atomic", Operation::FetchAtomic),
    ("deposit", Operation::Deposit),
];

pub(crate) const ATOMICS: &[(&str, AtomicOp)] = &[
    ("add", AtomicOp::Add),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
    ("umin", AtomicOp::MinUnsigned),
    ("umax", AtomicOp::MaxUnsigned),
    ("smin", AtomicOp::MinSigned),
    ("smax", AtomicOp::MaxSigned),
    ("swap", AtomicOp::Swap),
    ("cswap", AtomicOp::CompareSwap),
    ("fcaa", AtomicOp::Fcaa),
];

pub(crate) const WIDTHS: &[(&str, Width)] = &[("w32", Width::W32), ("w64", Width::W64)];

pub(crate) const STATUSES: &[(&str, Status)] = &[
    ("ok", Status::Ok),
    ("declined", Status::Declined),
    ("unknown-key", Status::Fault(Fault::UnknownKey)),
    ("stale-key", Status::Fault(Fault::StaleKey)),
    ("rights", Status::Fault(Fault::Rights)),
    ("bounds", Status::Fault(Fault::Bounds)),
    ("alignment", Status::Fault(Fault::Alignment)),
    ("peer-dead", Status::Fault(Fault::PeerDead)),
    ("malformed", Status::Fault(Fault::Malformed)),
    ("too-long", Status::Fault(Fault::TooLong)),
    ("foreign-handle", Status::Fault(Fault::ForeignHandle)),
    ("peer-restarted", Status::Fault(Fault::PeerRestarted)),
    ("stopped", Status::Fault(Fault::Stopped)),
    ("held", Status::Fault(Fault::Held)),
    ("exception", Status::Fault(Fault::Exception)),
    ("refused", Status::Fault(Fault::Refused)),
];

pub(crate) const FRAME_KINDS: &[(&str, frame::Kind)] = &[
    ("data", frame::Kind::Data),
    ("open", frame::Kind::Open),
    ("accept", frame::Kind::Accept),
    ("resync", frame::Kind::Resync),
    ("reset", frame::Kind::Reset),
    ("probe", frame::Kind::Probe),
    ("close", frame::Kind::Close),
    ("piece", frame::Kind::Piece),
];

pub(crate) const CHANNELS: &[(&str, frame::Channel)] = &[
    ("posted", frame::Channel::Posted),
    ("non-posted", frame::Channel::NonPosted),
    ("response", frame::Channel::Response),
];

pub(crate) const RECORD_KINDS: &[(&str, frame::RecordKind)] = &[
    ("command", frame::RecordKind::Command),
    ("response", frame::RecordKind::Response),
    ("message", frame::RecordKind::Message),
    ("queue", frame::RecordKind::Queue),
    ("control", frame::RecordKind::Control),
    ("queue-part", frame::RecordKind::QueuePart),
    ("filler", frame::RecordKind::Filler),
    ("ring", frame::RecordKind::Ring),
];

pub(crate) const REPAIRS: &[(&str, Repair)] =
    &[("go-back-n", Repair::GoBackN), ("selective", Repair::Selective)];

pub(crate) const LOSSES: &[(&str, Loss)] = &[
    ("overtaken", Loss::Overtaken),
    ("asked", Loss::Nack),
    ("late", Loss::Timeout),
    ("resync", Loss::Resync),
];

/// The name of a value.
pub(crate) fn name<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, named)| named == value).expect("every value has a name").0
}

/// The value of a name.
pub(crate) fn value<T: Copy>(names: &[(&str, T)], name: &str) -> T {
    let found = names.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name} names nothing")).1
}

/// The name of a fault.
pub(crate) fn fault(fault: Fault) -> &'static str {
    name(STATUSES, &Status::Fault(fault))
}
