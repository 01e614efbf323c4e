//! The effects of acknowledgements on an end's own frames.
use super::super::frame::{CHANNELS, Channel, Header};
use super::super::path_mtu::Lengths;
use super::super::paths::{PathId, Paths};
use super::super::send::{Loss, SendEffects, Transmission};
use super::{Counters, End, EndEffects, Lane, Part};

/// How many frames have fared how.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) arrived: u32,
    /// By what arrived after them.
    pub(super) lost: u32,
    /// By the timeout.
    pub(super) late: u32,
}

/// The effects of a sender's step on its end.
pub(super) struct AckEffects<'a, F> {
    pub(super) channel: Channel,
    pub(super) now: u64,
    pub(super) timeout: u64,
    pub(super) paths: &'a mut Paths,
    pub(super) lengths: &'a mut Lengths,
    pub(super) counters: &'a mut Counters,
    pub(super) fx: &'a mut F,
    pub(super) tally: Tally,
}

impl<F: EndEffects> SendEffects for AckEffects<'_, F> {
    fn arrived(&mut self, _: u32, transmission: Transmission) {
        self.tally.arrived += 1;
        self.lengths.on_arrived(&transmission, self.now);
        if let Some(path) = PathId::new(transmission.path) {
            self.paths.on_delivered(path);
        }
    }

    fn freed(&mut self, seq: u32) {
        self.counters.arrived += 1;
        debug_assert!(self.counters.arrived <= self.counters.sent, "no frame arrives twice");
        self.fx.arrived(self.channel, seq);
    }

    fn lost(&mut self, _: u32, transmission: Transmission, why: Loss) {
        match why {
            Loss::Timeout => self.tally.late += 1,
            Loss::TooLong => {}
            _ => self.tally.lost += 1,
        }
        match why {
            Loss::Overtaken => self.counters.overtaken += 1,
            Loss::Nack => self.counters.asked_for += 1,
            Loss::Timeout => self.counters.timed_out += 1,
            Loss::TooLong => {
                self.counters.timed_out += 1;
                return;
            }
            Loss::Resync => {
                // That is no path's fault.
                self.counters.resynced += 1;
                return;
            }
        }
        if let Some(path) = PathId::new(transmission.path) {
            self.paths.on_lost(path, self.now, self.timeout);
        }
        self.lengths.on_lost(&transmission, self.now);
    }
}

impl End {
    pub(super) fn ack_effects<'a, F: EndEffects>(
        &'a mut self,
        (channel, now): (Channel, u64),
        fx: &'a mut F,
    ) -> (AckEffects<'a, F>, &'a mut [Lane; CHANNELS]) {
        let timeout = self.rtt.timeout();
        let Self { lanes, paths, lengths, counters, .. } = self;
        let tally = Tally::default();
        (AckEffects { channel, now, timeout, paths, lengths, counters, fx, tally }, lanes)
    }
}

/// Timeouts cause nothing outside.
pub(super) struct NoEffects;

impl EndEffects for NoEffects {
    fn transmit(&mut self, _: &Header) {}
    fn transmit_part(&mut self, _: &Header, _: &Part) {}
    fn arrived(&mut self, _: Channel, _: u32) {}
}
