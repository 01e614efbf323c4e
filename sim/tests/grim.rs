//! The models of GRIM against closed forms.
use ayre_sim::grim::HEADER;
use ayre_sim::grim::dma::{Dma, Rate};
use ayre_sim::grim::path::{Api, Cut, MOST, Way};
use ayre_sim::grim::platform::Platform;
use ayre_sim::grim::reliable::{Endpoint, Sequence, Times, exchange};
use ayre_sim::time::Time;
use proptest::prelude::*;

const APIS: [Api; 3] = [Api::Active, Api::Virtual, Api::Physical];

fn platforms() -> [Platform; 4] {
    [Platform::p3_lanai4(), Platform::p3_lanai9(), Platform::p4_lanai4(), Platform::p4_lanai9()]
}

fn ways(platforms: &[Platform; 4], cut: Cut) -> impl Iterator<Item = Way<'_>> {
    platforms.iter().flat_map(move |platform| APIS.map(|api| Way { platform, api, cut }))
}

/// The sum of the steps of a message that each stage stores.
fn stored(way: &Way<'_>, bytes: u32) -> Time {
    let Platform { inject, software, firmware, channels, link, eject, write, .. } = way.platform;
    let [body, head] = [link.time(bytes + HEADER), link.rate.span(HEADER)];
    let send = firmware.scan(*channels) + firmware.mark;
    let translation = if way.api == Api::Virtual { firmware.hit } else { Time::ZERO };
    let decision = (firmware.decode + translation).max(body - head);
    let (moved, told) = match way.api {
        Api::Active => (eject.time(bytes + HEADER), firmware.move_pointer),
        _ => (write.time(bytes), if bytes > 4 { firmware.lock } else { Time::ZERO }),
    };
    *software + inject.best(bytes + HEADER).1 + send + head + decision + moved + told
}

#[test]
fn a_message_that_is_stored_takes_the_sum_of_its_steps() {
    let platforms = platforms();
    for way in ways(&platforms, Cut::WHOLE) {
        for bytes in [4, 5, 1000, 4096, MOST] {
            assert_eq!(way.time(bytes), stored(&way, bytes), "{:?}, {bytes}", way.api);
        }
    }
}

#[test]
fn the_parts_of_a_message_sum_to_its_time() {
    let platforms = platforms();
    for way in ways(&platforms, Cut::WHOLE) {
        let sum = way.parts(4096).into_iter().fold(Time::ZERO, |sum, part| sum + part.1);
        assert_eq!(sum, way.time(4096));
    }
}

/// Machines where one stage is far slower than the others.
#[test]
fn a_long_message_goes_at_the_rate_of_its_slowest_stage() {
    let fast = Dma { start: Time::ZERO, rate: Rate(10_000.0) };
    let slow = Dma { start: Time::ZERO, rate: Rate(20.0) };
    let mut quick = Platform::p3_lanai9();
    quick.inject.store = Rate(10_000.0);
    (quick.link, quick.write, quick.eject) = (fast, fast, fast);
    let slow_store = |mut platform: Platform| {
        platform.inject.store = Rate(20.0);
        (platform.inject.read, platform.inject.memory.copy) = (Rate(20.0), Rate(20.0));
        platform
    };
    let cases =
        [slow_store(quick), Platform { link: slow, ..quick }, Platform { write: slow, ..quick }];
    for platform in &cases {
        let cut = Cut { fragment: MOST, segment: Some(16 << 10), receiver: true };
        let rate = Way { platform, api: Api::Physical, cut }.rate(4 << 20).0;
        assert!(rate < 20.0 && rate > 0.97 * 20.0, "{rate}");
    }
}

#[test]
fn reception_and_ejection_share_the_time_of_the_receiver_without_cut_through() {
    let platforms = platforms();
    for platform in &platforms {
        let cut = Cut { fragment: MOST, segment: Some(16 << 10), receiver: true };
        let rate = Way { platform, api: Api::Virtual, cut }.rate(16 << 20).0;
        let serial = 1.0 / (1.0 / platform.link.rate.0 + 1.0 / platform.write.rate.0);
        // Starts and firmware take a few microseconds of a fragment's half millisecond or more.
        assert!(rate < serial && rate > 0.96 * serial, "{rate} of {serial}");
    }
}

#[test]
fn more_bytes_take_longer_and_cut_through_saves_time() {
    let platforms = platforms();
    for way in ways(&platforms, Cut { fragment: 4096, segment: None, receiver: false }) {
        let through = Way { cut: Cut { receiver: true, ..way.cut }, ..way };
        let mut last = Time::ZERO;
        for power in 2..18 {
            let bytes = 1 << power;
            let time = way.time(bytes);
            assert!(time > last, "{bytes}");
            assert!(through.time(bytes) <= time);
            last = time;
        }
    }
}

#[test]
fn the_free_parameters_are_those_that_one_machine_needs() {
    let platform = Platform::p3_lanai4();
    let cut = Cut::LANAI4;
    let published = [16.0, 18.0, 14.0];
    let ours = APIS.map(|api| Way { platform: &platform, api, cut }.time(4).nanos() / 1e3);
    let lack = ours.iter().zip(published).map(|(ours, theirs)| theirs - ours).sum::<f64>();
    assert!(lack.abs() / 3.0 < 0.05, "{lack}");
    let most = Way { platform: &platform, api: Api::Physical, cut }.most().0;
    assert!((most - 96.0).abs() < 0.2, "{most}");
}

fn times() -> Times {
    let micros = |time: u64| Time::from_nanos(1_000 * time);
    Times { period: micros(9), way: micros(14), back: micros(10) }
}

fn endpoint(room: u32, service: u64) -> Endpoint {
    Endpoint { room, service: Time::from_nanos(1_000 * service) }
}

proptest! {
    /// Each message is accepted once and in order, and each transmission is accounted for.
    #[test]
    fn the_protocol_delivers_in_order_and_exactly_once(
        messages in prop::collection::vec(0u32..4, 1..200),
        rooms in prop::collection::vec((1u32..6, 1u64..120), 4),
        per_channel: bool,
    ) {
        let endpoints: Vec<_> =
            rooms.into_iter().map(|(room, service)| endpoint(room, service)).collect();
        let sequence = if per_channel { Sequence::Channel } else { Sequence::Interface };
        let outcome = exchange(&times(), &endpoints, &messages, sequence);
        for (endpoint, accepted) in outcome.accepted.iter().enumerate() {
            let own = (0..).zip(&messages).filter(|(_, target)| **target as usize == endpoint);
            prop_assert!(own.map(|(place, _)| place).eq(accepted.iter().copied()));
        }
        let sent = outcome.sent.iter().sum::<u64>();
        prop_assert_eq!(sent, messages.len() as u64 + outcome.refused + outcome.dropped);
    }
}

#[test]
fn with_room_for_all_the_link_sets_the_pace() {
    let outcome = exchange(&times(), &[endpoint(3, 5)], &[0; 100], Sequence::Channel);
    assert_eq!(outcome.refused, 0);
    assert_eq!(outcome.ended[0], Time::from_nanos(1_000 * (99 * 9 + 14 + 5)));
}

#[test]
fn a_slow_endpoint_never_idles_while_its_queue_lasts_a_round_trip() {
    // Five messages of 20 us last longer than a refusal's round trip and two messages before it.
    let outcome = exchange(&times(), &[endpoint(5, 20)], &[0; 100], Sequence::Channel);
    assert!(outcome.refused > 0);
    assert_eq!(outcome.ended[0], Time::from_nanos(1_000 * (14 + 100 * 20)));
}

#[test]
fn a_full_endpoint_delays_others_only_if_they_share_its_sequence() {
    let messages: Vec<u32> = (0..100).map(|number| number % 2).collect();
    let endpoints = [endpoint(2, 500), endpoint(2, 1)];
    let of = |sequence| exchange(&times(), &endpoints, &messages, sequence);
    let (shared, own) = (of(Sequence::Interface), of(Sequence::Channel));
    assert_eq!(own.sent[1], 50, "nothing is repeated");
    assert!(shared.sent[1] > 50);
    assert!(own.ended[1].0 * 5 < shared.ended[1].0, "{:?}", (own.ended, shared.ended));
}
