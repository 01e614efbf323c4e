//! Frames that are sent again: which were lost, and when that is in vain.
use super::super::frame::Channel;
use super::super::send::Wait;
use super::ack_effects::NoEffects;
use super::{End, EndEffects};

/// For how long a frame could not be brought to the other side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    /// The oldest one of its channel, and when it, or one behind it, was sent again last.
    oldest: u32,
    at: u64,
    lasts: u64,
}

impl Stall {
    /// A frame of the channel is about to be sent again: for how long the oldest one was tried
    /// while the other side was heard. Where more than `most` has passed since the last time,
    /// nothing was tried.
    fn go_on(&mut self, oldest: u32, is_heard: bool, (now, most): (u64, u64)) -> u64 {
        let since = now.saturating_sub(self.at);
        let more = if is_heard { since } else { 0 };
        let goes_on = oldest == self.oldest && since <= most;
        let lasts = if goes_on { self.lasts.saturating_add(more) } else { 0 };
        *self = Self { oldest, at: now, lasts };
        lasts
    }
}

impl End {
    pub(super) fn find_late(&mut self, now: u64) {
        let wait = self.wait();
        let (mut lost, mut late) = (0, 0);
        for channel in Channel::ALL {
            let fx = &mut NoEffects;
            let (mut heard, lanes) = self.ack_effects((channel, now), fx);
            lanes[channel.index()].out.on_time(now, wait, &mut heard);
            (lost, late) = (lost + heard.tally.lost, late + heard.tally.late);
        }
        if lost > 0 {
            self.congestion.on_loss(now, lost);
        }
        if late > 0 {
            self.waited = wait.timeout.min(self.waited);
            self.rtt.on_timeout();
            self.congestion.on_timeout(now);
        }
    }

    /// Frames of one path keep their order as a rule, so that one which was overtaken is waited for
    /// by a quarter more than a round trip.
    // spec: LINK-8
    pub(super) fn wait(&self) -> Wait {
        let timeout = self.rtt.timeout();
        let overtaken = self.rtt.smoothed().map_or(timeout, |smoothed| smoothed + smoothed / 4);
        Wait { timeout, overtaken: overtaken.min(timeout) }
    }

    /// Responses first: somebody waits for them. False where the link has ended by that.
    pub(super) fn repair(&mut self, now: u64, fx: &mut impl EndEffects) -> bool {
        for channel in Channel::ALL.into_iter().rev() {
            while let Some(seq) = self.lanes[channel.index()].out.lost() {
                if !self.congestion.may_send(now, self.in_flight()) {
                    return true;
                }
                if self.is_in_vain(channel, now) {
                    return false;
                }
                let transmission = self.begin(now, self.len_of(channel, seq));
                self.lanes[channel.index()].out.resend(transmission);
                self.transmit(channel, seq, transmission, fx);
            }
        }
        true
    }

    /// Whether the channel's oldest frame was sent again for the dead time, though the other side
    /// is heard: then the link has ended.
    // spec: LINK-30
    fn is_in_vain(&mut self, channel: Channel, now: u64) -> bool {
        let is_heard = !self.life.is_unheard(now);
        let lane = &mut self.lanes[channel.index()];
        let lasts = lane.stall.go_on(lane.out.oldest(), is_heard, (now, self.attempts));
        self.life.on_no_data(lasts);
        !self.life.is_open()
    }
}
