//! Reminders: what is sent last has nothing behind it whose arrival would tell that it is lost.
//!
//! Where nothing new was heard for a little more than an answer takes, one frame is sent again,
//! long before the timeout. It repairs the loss if that was the frame, and brings an answer that
//! tells of the others. This is the tail loss probe of RFC 8985, 7, and the probe timeout of RFC
//! 9002, 6.2. It says nothing of the network, so that neither the window nor a timeout follows from
//! it. Each further one waits twice as long, and none as long as the timeout: what silence lasts is
//! its business.
//!
//! ```text
//!   sent      s + max(4 v, s) + max_ack_delay   twice that              timeout
//!   |---------------------------|----------------------------|------->|
//!   nothing heard            reminder                     reminder    all is lost
//! ```
use super::rtt::Rtt;

/// When the next reminder is due.
#[derive(Clone, Debug)]
pub(super) struct Reminder {
    /// When the last frame was sent, or the last news heard.
    since: u64,
    /// Reminders since the last news.
    sent: u32,
}

impl Reminder {
    pub(super) const fn new() -> Self {
        Self { since: 0, sent: 0 }
    }

    /// A frame with a payload was sent.
    pub(super) const fn on_send(&mut self, now: u64) {
        self.since = now;
    }

    /// Frames have arrived that were not known to.
    pub(super) const fn on_news(&mut self, now: u64) {
        (self.since, self.sent) = (now, 0);
    }

    /// It was sent.
    pub(super) const fn done(&mut self) {
        self.sent += 1;
    }

    /// When it is due, while frames are in flight; none before a round trip is known, and where
    /// the timeout comes first. The other side may delay its acknowledgement by
    /// `max_ack_delay`.
    // spec: LINK-26
    pub(super) fn due(&self, rtt: &Rtt, max_ack_delay: u64) -> Option<u64> {
        let (smoothed, variation) = (rtt.smoothed()?, rtt.variation()?);
        let once = smoothed + smoothed.max(4 * variation) + max_ack_delay;
        // No timeout is as long as 2^31 of the shortest.
        let wait = once.saturating_mul(1 << self.sent.min(31));
        (wait < rtt.timeout()).then(|| self.since.saturating_add(wait))
    }
}
