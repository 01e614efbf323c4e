//! The sending end of a virtual channel: its credits.

/// The sending end of a virtual channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// Bytes that may be sent now.
    pub(super) credits: u32,
    /// The router that sends by this channel, and the output there.
    pub(super) router: u32,
    pub(super) port: u8,
    /// A packet waits for credits: the output is to be looked at when some come.
    pub(super) starved: bool,
}

/// The credits of a lane to a node: they never run out.
const ENDLESS: u32 = u32::MAX;

impl Lane {
    /// A lane with a buffer of `bytes` at its other end.
    pub(super) fn new(router: u32, port: u16, bytes: u32) -> Self {
        Self { credits: bytes, router, port: port as u8, starved: false }
    }

    /// A lane to a node, which takes everything.
    pub(super) fn to_node(router: u32, port: u16) -> Self {
        Self::new(router, port, ENDLESS)
    }

    /// Takes credits for a packet.
    #[inline]
    pub(super) fn spend(&mut self, bytes: u32) {
        if self.credits != ENDLESS {
            self.credits -= bytes;
        }
    }

    /// Whether all credits are here.
    pub(super) fn has_all(&self, bytes: u32) -> bool {
        self.credits == bytes || self.credits == ENDLESS
    }
}
