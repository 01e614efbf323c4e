//! A peer of this host whose engine performs operations: it reads the lanes.
use super::Device;
use crate::mem::lane::LaneSender;
use crate::port::local::Piece;
use ayre_proto::lane::Kind;
use ayre_proto::node::command_record::CommandRecord;

/// Lanes in shared memory.
#[derive(Debug)]
pub(crate) struct Lanes {
    commands: LaneSender,
}

impl Lanes {
    pub(super) fn new(commands: LaneSender) -> Self {
        Self { commands }
    }
}

impl Device for Lanes {
    fn how(&self) -> &'static str {
        "in shared memory, mediated"
    }

    #[inline]
    fn command_lane(&self) -> Option<usize> {
        Some(self.commands.capacity())
    }

    #[inline]
    fn has_room(&mut self, _: bool, len: usize) -> bool {
        self.commands.reserve(len).is_ok()
    }

    #[inline]
    fn push(&mut self, command: &impl CommandRecord, mut data: Piece<'_>) {
        let pushed = self.commands.push((Kind::Command, 0), command.words(), data.bytes());
        debug_assert!(pushed.is_ok(), "room was made sure of");
    }

    fn reach(&self) -> u64 {
        u64::from(self.commands.reach())
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        debug_assert!(units <= self.reach(), "a batch that is too long is refused before");
        self.commands.reserve_lines(units as u32).is_ok()
    }
}
