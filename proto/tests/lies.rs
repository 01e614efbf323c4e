//! A peer that lies to an end of a link. For all headers the end goes on, and no frame is reported
//! to have arrived that was not sent, and none twice.
#[path = "common/dice.rs"]
mod dice;

use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{CHANNELS, Channel, Digest, Echo, Flags, Header, Kind, Sack};
use ayre_proto::link::{Repair, WINDOW};
use dice::{Dice, seeds};
use std::collections::BTreeSet;

/// All messages of the peer.
const HEADERS: u64 = 400;
/// First numbers of the frames of either side.
const FIRST: [[u32; CHANNELS]; 2] = [[0, u32::MAX - 5, 7], [3, u32::MAX, 1 << 31]];

#[derive(Default)]
struct Wire {
    frames: u64,
    under_way: BTreeSet<(usize, u32)>,
}

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        self.frames += 1;
        let number = (header.channel.index(), header.seq);
        assert!(header.payload.len == 0 || self.under_way.contains(&number), "its payload is gone");
    }

    fn transmit_part(&mut self, _: &Header, _: &Part) {
        unreachable!("no path of these takes less than a frame");
    }

    fn arrived(&mut self, channel: Channel, seq: u32) {
        assert!(self.under_way.remove(&(channel.index(), seq)), "it was sent, and arrives once");
    }
}

/// A number near one that would be true, or any.
fn near(dice: &mut Dice, truth: u32) -> u32 {
    match dice.below(8) {
        0 => dice.word() as u32,
        1 => truth.wrapping_sub(dice.below(80) as u32),
        _ => truth.wrapping_add(dice.below(80) as u32),
    }
}

/// Anything that a peer can say that knows the link.
fn lie(dice: &mut Dice, packet: u64, end: &End, now: u64) -> Header {
    let kinds = [Kind::Data, Kind::Data, Kind::Data, Kind::Probe, Kind::Resync, Kind::Reset];
    let kind = if dice.below(HEADERS) == 0 { Kind::Close } else { kinds[dice.below(6) as usize] };
    let channel = Channel::ALL[dice.below(3) as usize];
    let stamp = now as u32;
    let echo = dice.percent(80).then(|| Echo {
        stamp: near(dice, stamp.wrapping_sub(50_000)),
        held: near(dice, 0),
        path: dice.below(4) as u8,
        late: dice.word() as u8,
    });
    let ack = Channel::ALL.map(|channel| near(dice, end.sender(channel).oldest()));
    Header {
        kind,
        channel,
        flags: Flags::from_bits_truncate(dice.word() as u8),
        path: dice.below(4) as u8,
        to: 1,
        generation: 1,
        token: 1,
        packet,
        seq: match kind {
            // Rounds, of which the first is 1.
            Kind::Resync => dice.below(packet + 1) as u32,
            _ => near(dice, end.receiver(channel).expected()),
        },
        stamp,
        ack,
        limit: ack.map(|ack| near(dice, ack)),
        sack: Sack {
            channel: Channel::ALL[dice.below(3) as usize],
            arrived: u128::from(dice.word()) << 64 >> dice.below(128),
        },
        echo,
        payload: Digest { len: dice.below(3) as u16, crc: 0 },
    }
}

fn lied_to(seed: u64) -> u64 {
    let mut dice = Dice(seed);
    let repair = if dice.percent(50) { Repair::GoBackN } else { Repair::Selective };
    let paths = 1 + dice.below(4) as u8;
    let agreed = Agreement {
        to: 2,
        own: 1,
        incarnation: 1,
        generation: 1,
        token: 2,
        own_token: 1,
        first: FIRST,
        repair,
        paths,
    };
    let mut end = End::new(agreed, &Drive::RACK, 0);
    let (mut wire, mut now, mut believed) = (Wire::default(), 0, 0);
    for packet in 1..=HEADERS {
        now += dice.below(100_000);
        for channel in Channel::ALL {
            let wants = end.receiver(channel).wants();
            end.give(channel, dice.below(u64::from(wants) + 1) as u32, now);
            while dice.percent(70) && end.may_send(channel, now) {
                wire.under_way.insert((channel.index(), end.sender(channel).next()));
                let digest = Digest { len: 1, crc: 0 };
                end.send(channel, (digest, Flags::empty()), now, &mut wire);
            }
        }
        let header = lie(&mut dice, packet, &end, now);
        if end.on_header(&header, now, &mut wire) == Ok(HeaderOutcome::Payload)
            && end.on_payload(&header, now).is_ok()
        {
            believed += 1;
        }
        end.on_reset(&Header { to: 0, token: 2, seq: 2, ..header }, now);
        if dice.percent(1) {
            end.resync(now, &mut wire);
        }
        let held = end.receiver(header.channel).held();
        end.take(header.channel, dice.below(u64::from(held) + 1) as u32);
        end.on_time(now, &mut wire);
        assert!(end.deadline(now) >= now);
        assert!(end.in_flight() as usize <= wire.under_way.len());
        for channel in Channel::ALL {
            let sent = wire.under_way.iter().filter(|(index, _)| *index == channel.index());
            assert!(sent.count() <= WINDOW as usize, "as many as the window holds");
        }
    }
    assert!(wire.frames <= 2 * HEADERS, "{} frames: a lie is no lever", wire.frames);
    believed
}

// spec: LINK-6, LINK-11, LINK-16, ERR-7
#[test]
fn a_hostile_peer_does_not_disturb_others() {
    let believed: u64 = (0..seeds(300)).map(lied_to).sum();
    assert!(believed > 0, "some of it might have been true");
}
