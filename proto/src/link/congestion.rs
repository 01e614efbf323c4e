//! Congestion control: how many frames may be in flight, by the delay that they meet.
//!
//! This is Swift (Kumar et al., *Swift: Delay is Simple and Effective for Congestion Control in
//! the Datacenter*, SIGCOMM 2020) for one link:
//!
//! ```text
//!   delay < target delay    window += increase / window       for each frame acknowledged
//!   delay >= target delay   window *= 1 - beta (delay - target delay) / delay, once a round trip
//!   loss                    window *= 1 - share of a loss, for each frame, as far as to half
//!   timeout                 window *= 1 - largest decrease, once a round trip
//!   timeouts in a row       window  = smallest window
//!
//!   target delay = base + what the window's size earns
//!     ^ base + range ----.
//!     |                   `-.__                    like 1 / sqrt(window)
//!     | base                   `-----------
//!     +----------------+---------+--------> window
//!              scaling.start   scaling.end
//! ```
//!
//! Many links through one bottleneck have small windows each. The more there are, the deeper is the
//! queue that they make when their frames meet by chance. So the target delay grows as the square
//! root of their number. A link with less than its share aims higher than one with more, which
//! brings their shares together.
//!
//! A delay is what the network has taken of a round trip: what a host may have caused, because it
//! did not look, is known and taken off ([`looks`](super::looks)). As long as nothing is lost,
//! delays alone do not take the window below the amount that a modest network carries in a moment.
//! Where hosts are busy in ways that nobody sees, losses tell of a queue that is too long. Before
//! the first decrease each frame adds another one (slow start), where that is configured.
//!
//! A delay is not one less the shortest seen. A queue that is held at its target never empties, so
//! the shortest recent round trip creeps up with it. A new link, which has never seen the path
//! empty, would take the queue for distance. Swift's scaling of the target by hops is left out:
//! hosts of one rack are equally far from each other, and a configuration for others sets the base.
//!
//! Where Swift halves the window for a loss, each frame lost costs a small share of it, and all of
//! one round trip no more than that half. A queue that overflows loses frames by the dozen, and so
//! these losses halve the window. A single loss by chance says little about the queue. If each of
//! them halved the window, next to nothing of the throughput would be left. Many connections of the
//! classic kind would do the same together (MulTCP: Crowcroft and Oechslin, 1998). Where one frame
//! in n is lost, the window is about the root of n increases by that share.
//!
//! Windows are integers in units of 1/2^16 frame, and so are all ratios. A peer that lies about
//! delays makes the window anything between its bounds, and nothing else.
use crate::limits::ROUND_TRIP_MAX;

/// The window of one frame; also the ratio one.
pub const ONE: u32 = 1 << 16;

/// How the window reacts. Times are nanoseconds, windows and ratios in units of 1/[`ONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Target delay of a large window.
    pub base_target: u64,
    /// How a small window raises it.
    pub scaling: Scaling,
    /// The gain of a window in a round trip below the target delay.
    pub increase: u32,
    /// Whether it doubles in a round trip until it is decreased for the first time.
    pub slow_start: bool,
    /// Nanoseconds without a loss after which delays leave the calm window.
    pub calm_after: u64,
    /// How much of the excess delay's share a window gives up.
    pub beta: u32,
    /// The most that it gives up within a round trip, and what a timeout costs.
    pub decrease_max: u32,
    /// The share that the loss of a frame costs.
    pub loss: u32,
    /// Timeouts in a row after which it is the smallest one.
    pub timeouts_max: u32,
    /// The window's bounds, and what it is at first.
    pub window: Windows,
}

/// The range of windows over which the target delay falls, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// The target delay of the smallest windows above the base.
    pub range: u64,
    /// Windows up to this have all of it.
    pub start: u32,
    /// Windows from this on have nothing of it.
    pub end: u32,
}

/// Windows, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// At least this.
    pub min: u32,
    /// At least this where nothing was lost for a while.
    pub calm: u32,
    /// At first this.
    pub initial: u32,
    /// At most this.
    pub max: u32,
}

impl Config {
    /// For hosts of one rack.
    ///
    /// - Base target delay 50 us: above the round trip of an idle network, system calls included.
    ///   The rest is a queue of a few dozen frames, enough to keep the bottleneck busy.
    /// - Scaling range 50 us: the largest target delay is half of the least retransmission timeout.
    ///   It covers windows from an eighth of a frame, less than a share among a hundred, to 16
    ///   frames, which an idle path alone holds. A larger window needs no help.
    /// - Increase of a quarter of a frame: eight links together add two frames in a round trip, so
    ///   that they swing by little. A single one reaches its target from its initial window in
    ///   about 140 round trips, five milliseconds.
    /// - Beta 0.8 and largest decrease one half, as in the paper: less than the excess, so that
    ///   what all give up together does not empty the queue.
    /// - A 32nd for the loss of a frame: a queue that loses a quarter of a window of 64 halves it.
    ///   With one frame in a hundred lost by chance there are 28 under way, enough for 30 us.
    /// - Five timeouts in a row: by then the wait has grown thirtyfold, and the network is not
    ///   crowded but broken or broken down.
    /// - Windows from 1/1024 frame, a thousand links to one, whether or not anything is lost: an
    ///   adapter does not keep others waiting. Initially 8 frames, so that eight
    ///   newcomers at once fit a shallow buffer; at most 256, what two channels have in flight.
    pub const RACK: Self = Self {
        base_target: 50_000,
        scaling: Scaling { range: 50_000, start: ONE / 8, end: 16 * ONE },
        increase: ONE / 4,
        slow_start: false,
        calm_after: 1_000_000_000,
        beta: ONE / 5 * 4,
        decrease_max: ONE / 2,
        loss: ONE / 32,
        timeouts_max: 5,
        window: Windows { min: ONE / 1024, calm: ONE / 1024, initial: 8 * ONE, max: 256 * ONE },
    };

    /// The delay that a window of this size aims at.
    // spec: CONG-4
    const fn target_delay(&self, window: u32) -> u64 {
        let Scaling { range, start, end } = self.scaling;
        let (most, least) = (inverse_root(start), inverse_root(end));
        let window = if window < start { start } else { window };
        let own = inverse_root(if window > end { end } else { window });
        self.base_target + range * (own - least) / (most - least)
    }

    const fn assert_sound(&self) {
        let Windows { min, calm, initial, max } = self.window;
        assert!(0 < min && min <= initial && initial <= max, "windows are in order");
        assert!(min <= calm && calm <= max, "and so is the calm one");
        assert!(ONE <= max, "a whole frame fits the largest window");
        let Scaling { range, start, end } = self.scaling;
        assert!(0 < start, "a window that is scaled is not empty");
        assert!(inverse_root(start) > inverse_root(end), "the target falls between two windows");
        assert!(range <= ROUND_TRIP_MAX, "no range is longer than a round trip can be");
        assert!(0 < self.base_target && self.base_target <= ROUND_TRIP_MAX, "and no target is");
        assert!(self.beta <= ONE && self.decrease_max <= ONE, "a window gives up what it has");
    }
}

/// How long an answer took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// From the transmission until now, less what the peer says that it has held it.
    pub round_trip: u64,
    /// The part of it that neither host is known to have caused.
    pub network: u64,
}

impl Delay {
    /// All of it is the network's.
    pub const fn of_network(round_trip: u64) -> Self {
        Self { round_trip, network: round_trip }
    }
}

/// The congestion window of one link in one direction, and the pace where it is below a frame.
#[derive(Clone, Debug)]
pub struct Swift {
    config: Config,
    /// In units of 1/`ONE` frame, within its bounds.
    window: u32,
    /// The window that the target delay was found for, and that delay: roots take long, and most
    /// windows are what they were.
    aim: (u32, u64),
    /// The last one, from 1 to `ROUND_TRIP_MAX`.
    round_trip: u64,
    /// For a delay or a timeout.
    last_decrease: Option<u64>,
    /// The least that decreases of all kinds may leave of the window for a round trip, and since
    /// when.
    least: u32,
    bounded: Option<u64>,
    last_send: Option<u64>,
    /// When a frame was sent after which the window had no room for another.
    last_full: Option<u64>,
    /// Since the last acknowledgement.
    timeouts: u32,
    /// When a loss or a timeout was found last.
    last_loss: Option<u64>,
    /// It was never decreased.
    is_first: bool,
    /// The values of these and of the window before the first of the last timeouts in a row.
    before: Option<(u32, Option<u64>, bool)>,
}

impl Swift {
    /// The initial window, of which nothing is used.
    pub const fn new(config: Config) -> Self {
        config.assert_sound();
        Self {
            config,
            window: config.window.initial,
            aim: (config.window.initial, config.target_delay(config.window.initial)),
            round_trip: config.base_target,
            last_decrease: None,
            least: config.window.min,
            bounded: None,
            last_send: None,
            last_full: None,
            timeouts: 0,
            last_loss: None,
            is_first: true,
            before: None,
        }
    }

    /// Asserts what holds between two steps, whatever delays the peer reports.
    fn check(&self) {
        let Windows { min, max, .. } = self.config.window;
        debug_assert!((min..=max).contains(&self.window), "the window keeps its bounds");
        debug_assert!((min..=max).contains(&self.least), "what decreases leave keeps them, too");
        let round_trips = 1..=ROUND_TRIP_MAX;
        debug_assert!(round_trips.contains(&self.round_trip), "a round trip can be");
        let (window, target) = self.aim;
        debug_assert!(target == self.config.target_delay(window), "the target is its window's");
    }

    /// The window in units of 1/[`ONE`] frame.
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// The delay that the window aims at.
    pub const fn target_delay(&self) -> u64 {
        let (window, target) = self.aim;
        if window == self.window { target } else { self.config.target_delay(self.window) }
    }

    /// `frames` frames were acknowledged, none being allowed, the newest after `delay`: a round
    /// trip, as [`Rtt::on_sample`](super::rtt::Rtt::on_sample) takes it. One that cannot be counts
    /// as the nearest that can.
    // spec: CONG-1, CONG-2, CONG-3, CONG-8, CONG-10
    pub fn on_ack(&mut self, now: u64, frames: u32, delay: Delay) {
        self.round_trip = delay.round_trip.clamp(1, ROUND_TRIP_MAX);
        if frames > 0 {
            self.timeouts = 0;
        }
        let target = self.target_delay();
        self.aim = (self.window, target);
        let (network, least) = (delay.network.clamp(1, ROUND_TRIP_MAX), self.least_by_delay(now));
        if network < target || self.window < least {
            if self.was_full(now) {
                self.grow(frames);
            }
            return;
        }
        let excess = network - target;
        let share = u64::from(self.config.beta) * excess / network;
        self.shrink(now, (share as u32).min(self.config.decrease_max), least);
        self.check();
    }

    /// This number of frames were found lost by later arrivals.
    // spec: CONG-5
    pub fn on_loss(&mut self, now: u64, frames: u32) {
        let share = self.config.loss.saturating_mul(frames);
        (self.last_loss, self.before) = (Some(now), None);
        self.give_up(now, share.min(self.config.decrease_max), self.config.window.min);
        self.check();
    }

    /// Nothing was heard for a retransmission timeout.
    // spec: CONG-5, CONG-6
    pub fn on_timeout(&mut self, now: u64) {
        if self.timeouts == 0 {
            self.before = Some((self.window, self.last_loss, self.is_first));
        }
        self.timeouts = self.timeouts.saturating_add(1);
        (self.last_loss, self.is_first) = (Some(now), false);
        if self.timeouts >= self.config.timeouts_max {
            (self.window, self.least) = (self.config.window.min, self.config.window.min);
        } else {
            self.shrink(now, self.config.decrease_max, self.config.window.min);
        }
        self.check();
    }

    /// A host did not look for as long as the last timeouts took: they say nothing of the network.
    // spec: CONG-11
    pub fn on_excuse(&mut self) {
        if let Some((window, last_loss, is_first)) = self.before.take() {
            self.window = self.window.max(window);
            (self.last_loss, self.is_first) = (last_loss, is_first);
        }
        self.check();
    }

    /// Whether one more frame may be sent beside those in flight.
    // spec: CONG-1, CONG-7
    pub fn may_send(&self, now: u64, in_flight: u32) -> bool {
        self.has_room(in_flight) && self.next_send(now).is_none()
    }

    /// When the pace allows the next frame, if that is not yet: a window below one frame is one
    /// frame in more than a round trip. A round trip beyond all target delays counts as the
    /// largest of those: with nothing in flight no answer would correct one absurd delay.
    // spec: CONG-7
    pub fn next_send(&self, now: u64) -> Option<u64> {
        if self.window >= ONE {
            return None;
        }
        let longest = self.config.base_target + self.config.scaling.range;
        let gap = self.round_trip.min(longest) * u64::from(ONE) / u64::from(self.window);
        self.last_send.map(|last| last.saturating_add(gap)).filter(|next| *next > now)
    }

    /// A frame was sent beside `in_flight` others.
    pub fn on_send(&mut self, now: u64, in_flight: u32) {
        self.last_send = Some(now);
        if !self.has_room(in_flight.saturating_add(1)) {
            self.last_full = Some(now);
        }
    }

    fn has_room(&self, in_flight: u32) -> bool {
        in_flight < (self.window / ONE).max(1)
    }

    /// Whether the window was used up within the last two round trips: the second one is for the
    /// time for which a peer holds an acknowledgement back.
    fn was_full(&self, now: u64) -> bool {
        self.last_full.is_some_and(|full| now.saturating_sub(full) <= 2 * self.round_trip)
    }

    /// The least that delays leave of the window.
    // spec: CONG-10
    fn least_by_delay(&self, now: u64) -> u32 {
        let Windows { min, calm, .. } = self.config.window;
        let is_calm =
            self.last_loss.is_none_or(|at| now.saturating_sub(at) >= self.config.calm_after);
        if is_calm { calm } else { min }
    }

    /// A window below one frame gains all of the increase for a frame, as it sends less than one
    /// frame in a round trip.
    fn grow(&mut self, frames: u32) {
        let each = match self.config.slow_start && self.is_first {
            true => u64::from(ONE),
            false => {
                u64::from(self.config.increase) * u64::from(ONE) / u64::from(self.window.max(ONE))
            }
        };
        let gain = each.saturating_mul(u64::from(frames));
        let grown = gain.saturating_add(u64::from(self.window));
        let before = core::mem::replace(
            &mut self.window,
            grown.min(u64::from(self.config.window.max)) as u32,
        );
        debug_assert!(self.window >= before, "a window that grows is no smaller");
        self.check();
    }

    /// Gives up a share of the window for a delay or a timeout, unless it did within the last round
    /// trip. Acknowledgements that come until then are of frames that were sent before that had any
    /// effect.
    fn shrink(&mut self, now: u64, share: u32, least: u32) {
        let last = self.last_decrease;
        if last.is_some_and(|last| now.saturating_sub(last) < self.round_trip) {
            return;
        }
        self.give_up(now, share, least);
        self.last_decrease = Some(now);
    }

    /// Gives up a share of the window, at most the largest decrease. All that it has given up
    /// within the last round trip is no more than that either, so a part is left in any case.
    fn give_up(&mut self, now: u64, share: u32, least: u32) {
        self.is_first = false;
        let without = |share: u32| {
            let given_up = u64::from(self.window) * u64::from(share) / u64::from(ONE);
            (self.window - given_up as u32).max(self.config.window.min)
        };
        if self.bounded.is_none_or(|since| now.saturating_sub(since) >= self.round_trip) {
            self.least = without(self.config.decrease_max);
            self.bounded = Some(now);
        }
        let before = self.window;
        self.window = without(share).max(self.least).max(least.min(self.window));
        debug_assert!(self.window <= before, "who gives up has no more than before");
    }
}

/// 1 / sqrt(window), both in units of 1/`ONE`.
const fn inverse_root(window: u32) -> u64 {
    // The root of 2^16 w 2^32 is 2^24 times the root of w.
    (1 << 40) / ((window as u64) << 32).isqrt()
}
