//! The way of commands from an operation to its peer: into frames of a link, or into a lane.
use super::carrier::channel_of;
use super::carrier::frames::{FRAMES_MAX, Memory};
use super::command_record::CommandRecord;
use super::effects::Program;
use super::initiator::{Bounds, Requests};
use super::linked::Linked;
use super::same_host::SameHost;
use crate::command::COMMAND_BYTES;
use crate::execute::Command;
use crate::lane::Kind;
use crate::limits::RECORD_MAX;
use crate::link::frame::Channel;
use crate::segment::Shape;
use alloc::boxed::Box;

/// An operation on a peer's memory, or a notification put.
#[derive(Clone, Copy, Debug)]
pub struct Order<L> {
    /// The operation, its place, and the notifications.
    pub command: Command,
    /// The layout of a put or a get at both ends; of another operation, the range that it reaches.
    pub shape: Shape,
    /// The source of a put's data, or the destination of a get's.
    pub local: Option<L>,
}

/// The connection between a node and a peer.
#[derive(Debug)]
pub(super) enum Way<M: Memory> {
    /// A link with another host.
    Linked(Box<Linked<M>>),
    /// Lanes of this host.
    SameHost(Box<SameHost>),
}

/// The source of a command's data.
pub(super) enum Source<'a, L> {
    /// There is no data.
    Nothing,
    /// The call has it.
    Call(&'a [u8]),
    /// The program has it.
    Local(&'a L),
}

/// The way of an operation's commands.
pub(super) struct Posting<'a, M: Memory, P: Program> {
    pub(super) way: &'a mut Way<M>,
    /// Bytes that the lane of answers holds.
    pub(super) responses: usize,
    /// The target's count of notifications taken.
    pub(super) taken: u64,
    pub(super) program: &'a P,
    pub(super) source: Source<'a, P::Local>,
    /// Whether anything has gone this way.
    pub(super) has_pushed: bool,
}

impl<M: Memory, P: Program> Requests for Posting<'_, M, P> {
    // spec: MTU-1, MTU-8
    fn bounds(&self) -> Bounds {
        let responses = self.responses;
        match &*self.way {
            Way::Linked(linked) => {
                let (most, worth) = (linked.frames().longest(), linked.frames().whole());
                Bounds { requests: None, responses, most, worth: worth.min(most) }
            }
            Way::SameHost(same_host) => {
                let requests = Some(same_host.commands.capacity());
                Bounds { requests, responses, most: RECORD_MAX, worth: RECORD_MAX }
            }
        }
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn has_room(&mut self, answered: bool, data: usize) -> bool {
        match self.way {
            Way::Linked(linked) => linked.frames().fits(channel_of(answered), COMMAND_BYTES + data),
            Way::SameHost(same_host) => same_host.commands.has_room(COMMAND_BYTES + data),
        }
    }

    fn push(&mut self, command: &impl CommandRecord, (at, len): (u64, usize)) {
        let Self { way, program, source, .. } = self;
        let fill = |bytes: &mut [u8]| match &*source {
            Source::Call(data) => bytes.copy_from_slice(&data[at as usize..][..len]),
            Source::Local(local) if len > 0 => program.load(local, at, bytes),
            Source::Local(_) | Source::Nothing => {
                debug_assert!(bytes.is_empty(), "data comes from somewhere");
            }
        };
        let has_gone = match way {
            Way::Linked(linked) => linked.post(command, (len, fill)).is_ok(),
            Way::SameHost(same_host) => {
                same_host.commands.push_with((Kind::Command, 0), command.words(), (len, fill))
            }
        };
        debug_assert!(has_gone, "room was made sure of");
        self.has_pushed = true;
    }

    fn reach(&self) -> u64 {
        match &*self.way {
            Way::Linked(_) => FRAMES_MAX as u64,
            Way::SameHost(same_host) => u64::from(same_host.commands.reach()),
        }
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        match self.way {
            Way::Linked(linked) => units <= linked.frames().left(Channel::Posted) as u64,
            Way::SameHost(same_host) => same_host.commands.has_lines(units),
        }
    }
}
