//! How long the datagrams of a link may be.
use super::{Line, LinkEnd};
use crate::link::frames::Frames;
use crate::link::seal::{PREFIX_BYTES, TAG_BYTES};
use crate::log::tell;
use crate::net::routes::Way;
use crate::sync::Ordering;
use ayre_proto::link::frame::HEADER_BYTES;

/// The length that every path of a link takes.
// spec: MTU-1
pub(crate) const DATAGRAM_LEAST: usize = 512;
const _: () = assert!(DATAGRAM_LEAST > sealing(true) + HEADER_BYTES, "a frame has a payload");

/// Bytes that a frame takes in a datagram beside its own.
pub(crate) const fn sealing(is_sealed: bool) -> usize {
    if is_sealed { PREFIX_BYTES + TAG_BYTES } else { 0 }
}

impl LinkEnd {
    /// Whether the host is to be asked how long datagrams may be.
    #[inline]
    pub(crate) fn has_question(&self) -> bool {
        self.machine().has_question()
    }

    /// Asks how long datagrams may be on paths that may have become others.
    // spec: MTU-3
    #[cold]
    pub(crate) fn ask_host(&mut self, datagram_max: impl Fn(Way) -> usize, now: u64) {
        while let Some(path) = self.linked.end_mut().asks_host() {
            if let Some(way) = self.line.ways.get(path) {
                let most = self.frame_in(datagram_max(way));
                self.linked.end_mut().on_host_limit(path, most, now);
            }
        }
        self.linked.wake(now);
    }

    /// The host has refused a datagram by this way, which takes this much at most.
    // spec: MTU-2
    #[cold]
    pub(crate) fn on_refused(&mut self, way: Way, datagram_max: usize, now: u64) {
        let most = self.frame_in(datagram_max);
        for (path, led) in (0..).zip(self.line.ways.iter()) {
            if led == way {
                self.linked.end_mut().on_refused(path, most, now);
                self.linked.wake(now);
            }
        }
    }

    /// Bytes of the longest frame in a datagram of this length.
    fn frame_in(&self, datagram_max: usize) -> u16 {
        datagram_max.saturating_sub(sealing(self.is_sealed())).min(usize::from(u16::MAX)) as u16
    }

    /// Bytes of the longest datagram that a path takes whole, and what that was at first.
    pub(crate) fn datagrams(&self, path: u8) -> [u32; 2] {
        let lengths = self.machine().lengths();
        let frames = [lengths.limit(path), lengths.limit_at_opening(path)];
        frames.map(|bytes| u32::from(bytes) + sealing(self.is_sealed()) as u32)
    }
}

impl Line {
    /// Datagrams may be longer than before, or have to be shorter.
    // spec: MTU-1
    pub(super) fn on_length(&mut self, frames: &Frames, is_first: bool) {
        debug_assert!(frames.whole() <= frames.longest(), "what goes whole is a record");
        if let Some(Way { to, .. }) = self.ways.get(0).filter(|_| !is_first) {
            let bytes = usize::from(frames.limit()) + sealing(self.keys.is_some());
            tell!(INFO, "datagrams to {to} have at most {bytes} bytes from here on");
        }
        // Relaxed: whoever goes by what was there before posts what goes in pieces.
        self.whole.store(frames.whole() as u64, Ordering::Relaxed);
    }
}
