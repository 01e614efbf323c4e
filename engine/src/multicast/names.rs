//! The names of members, which contain the number of the port.
use crate::port::Port;
use ayre_proto::group::Member;
use ayre_proto::units::PeerId;

/// The bits of a member's name: its port's number, then random bits, then a count.
// spec: GRP-2
const NUMBER_BITS: u32 = 10;
const CHANCE_BITS: u32 = 12;

const _: () = assert!(NUMBER_BITS + CHANCE_BITS < 32, "names are counted by the other bits");
const _: () = assert!(ayre_proto::limits::PEERS_MAX <= 1 << NUMBER_BITS, "a name has its number");

/// Returns the name that addresses any member at a port. It is used while the name of the door is
/// not known.
pub(super) fn member_at(port: PeerId) -> Member {
    Member(port.0.into())
}

pub(super) fn is_nameless(member: Member) -> bool {
    member.0 >> NUMBER_BITS == 0
}

/// Returns the port of a member.
pub(super) fn port_of(member: Member) -> PeerId {
    PeerId((member.0 & ((1 << NUMBER_BITS) - 1)) as u16)
}

/// A source of names that no membership has had, not even at a process with this port's number
/// before.
// spec: GRP-2
#[derive(Debug, Default)]
pub(super) struct Names {
    last: Option<u32>,
}

impl Names {
    pub(super) fn next(&mut self, port: &Port) -> Member {
        let chance = || port.clock.chance().number() as u32 % (1 << CHANCE_BITS);
        let last = self.last.unwrap_or_else(chance);
        // The count wraps around long after the first names are forgotten.
        let next = last.wrapping_add(1 << CHANCE_BITS) & (u32::MAX >> NUMBER_BITS);
        let next = if next == 0 { 1 << CHANCE_BITS } else { next };
        self.last = Some(next);
        let name = Member(u32::from(port.id.0) | next << NUMBER_BITS);
        debug_assert_eq!(port_of(name), port.id, "a name tells where its member is");
        debug_assert!(!is_nameless(name), "and is told from the port's number");
        name
    }
}
