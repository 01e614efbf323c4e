//! Headers that come: what they say of our frames, and of the round trip.
use super::super::congestion::Delay;
use super::super::frame::{Channel, Echo, Flags, Header, Kind};
use super::super::looks::{Looks, UNIT, UNITS_MAX};
use super::super::paths::PathId;
use super::super::resync::Call;
use super::super::send::Ack;
use super::{Agreement, End, EndEffects, HeaderOutcome, Newest};
use crate::lane::Malformed;

impl End {
    /// A header has come, to a host that looks all the time; see [`End::on_header_found`].
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer says that.
    pub fn on_header(
        &mut self,
        header: &Header,
        now: u64,
        fx: &mut impl EndEffects,
    ) -> Result<HeaderOutcome, Malformed> {
        self.on_header_found(header, &Looks::all_the_time(now), fx)
    }

    /// A header was found by a look: what it says of our frames is taken in.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer says that.
    // spec: LINK-5, LINK-11, LINK-15
    pub fn on_header_found(
        &mut self,
        header: &Header,
        looks: &Looks,
        fx: &mut impl EndEffects,
    ) -> Result<HeaderOutcome, Malformed> {
        self.check();
        let now = looks.now();
        let Agreement { own, own_token, generation, .. } = self.agreed;
        if (header.to, header.token, header.generation) != (own, own_token, generation) {
            self.counters.foreign += 1;
            return Ok(HeaderOutcome::Foreign);
        }
        if !self.seen.is_new(header.packet) {
            self.counters.repeated += 1;
            return Ok(HeaderOutcome::Repeated);
        }
        self.life.on_heard(now);
        if header.kind == Kind::Close {
            self.on_close(header, now, fx);
        }
        if !self.life.is_open() {
            return Ok(HeaderOutcome::Nothing);
        }
        let Header { stamp, path, .. } = *header;
        self.newest = Some(Newest { stamp, path, at: now, late: looks.late() });
        let is_sampled = self.on_echo(header, looks);
        let call = (header.kind == Kind::Resync)
            .then(|| self.resync.look(header, now, self.rtt.timeout()));
        self.on_acks(header, (is_sampled, call), now, fx)
            .inspect_err(|_| self.counters.malformed += 1)?;
        if header.kind == Kind::Probe {
            self.on_probe(header, now, fx);
        }
        if let Some(call) = call {
            self.on_resync(header, call, now, fx);
        }
        self.check();
        Ok(match header.kind {
            Kind::Data if header.payload.len > 0 => HeaderOutcome::Payload,
            Kind::Piece => HeaderOutcome::Piece,
            _ => HeaderOutcome::Nothing,
        })
    }

    /// A reset has come: whether it is of this link. If so the end looks whether the other side is
    /// still there, and gives up sooner.
    // spec: OPEN-12, LINK-19
    pub fn on_reset(&mut self, header: &Header, now: u64) -> bool {
        let Agreement { to, token, generation, .. } = self.agreed;
        let is_ours = (header.seq, header.token, header.generation) == (to, token, generation);
        let is_sent = 0 < header.packet && header.packet <= self.packet;
        let is_believed = header.kind == Kind::Reset && is_ours && is_sent;
        if is_believed {
            self.on_reset_hint(now);
        } else {
            self.counters.foreign += 1;
        }
        is_believed
    }

    /// Whether the header tells a new round trip.
    // spec: LINK-16
    fn on_echo(&mut self, header: &Header, looks: &Looks) -> bool {
        let (Some(Echo { stamp, held, path, late }), now) = (header.echo, looks.now()) else {
            return false;
        };
        if header.kind != Kind::Probe
            && let Some(id) = PathId::new(path)
            && self.echoed != Some(stamp)
        {
            self.paths.on_probe_answered(id, now);
        }
        self.lengths.on_echo(path, earlier(now, stamp), now);
        if self.echoed.replace(stamp) == Some(stamp) {
            return false;
        }
        let round_trip = u64::from((now as u32).wrapping_sub(stamp).wrapping_sub(held));
        // A time that cannot be is the other side's invention; it teaches nothing.
        if self.rtt.on_sample(now, round_trip).is_err() {
            return false;
        }
        // Most are short, and it does not matter whose they are.
        let is_short = round_trip < self.congestion.target_delay() && self.waited == u64::MAX;
        let hosts = if is_short { 0 } else { hosts_share(looks, (now, stamp), late) };
        self.delay = Some(Delay { round_trip, network: round_trip.saturating_sub(hosts) });
        if hosts >= self.waited {
            self.congestion.on_excuse();
            self.waited = u64::MAX;
        }
        true
    }

    fn on_acks(
        &mut self,
        header: &Header,
        (is_sampled, call): (bool, Option<Call>),
        now: u64,
        fx: &mut impl EndEffects,
    ) -> Result<(), Malformed> {
        let is_told = self.resync.holds(header.packet);
        let heard_of = header.echo.map(|echo| (echo.path, earlier(now, echo.stamp)));
        let (mut frames, mut lost) = (0, 0);
        for channel in Channel::ALL {
            let is_sacked = is_told && header.sack.channel == channel;
            let seen = now.saturating_sub(self.round_trip());
            let said = Ack {
                ack: header.ack[channel.index()],
                sack: if is_sacked { header.sack.arrived } else { 0 },
                limit: header.limit[channel.index()],
                nack: (is_sacked && header.flags.contains(Flags::NACK)).then_some(seen),
                heard: heard_of,
            };
            let (mut heard, lanes) = self.ack_effects((channel, now), fx);
            let out = &mut lanes[channel.index()].out;
            match call {
                Some(Call::Asked) => out.resume(&said, true, &mut heard)?,
                Some(Call::Answered) => out.resume(&said, false, &mut heard)?,
                _ => out.on_ack(&said, &mut heard)?,
            }
            frames += heard.tally.arrived;
            lost += heard.tally.lost;
        }
        if frames > 0 {
            self.reminder.on_news(now);
        }
        if frames > 0 || is_sampled {
            let delay = self.delay.unwrap_or(Delay::of_network(0));
            self.congestion.on_ack(now, frames, delay);
        }
        if lost > 0 {
            self.congestion.on_loss(now, lost);
        }
        Ok(())
    }
}

/// The part of a stamp's round trip that the two hosts may have caused by not polling.
// spec: RTT-8
fn hosts_share(looks: &Looks, (now, stamp): (u64, u32), late: u8) -> u64 {
    let theirs = if late == UNITS_MAX { u64::MAX } else { UNIT * u64::from(late) };
    looks.own_share(earlier(now, stamp)).saturating_add(theirs)
}

/// The time of which a stamp is the lower half, the last one before now.
const fn earlier(now: u64, stamp: u32) -> u64 {
    now.saturating_sub((now as u32).wrapping_sub(stamp) as u64)
}
