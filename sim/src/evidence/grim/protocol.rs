//! Rows of the protocol, of multicast, and of sockets (chapters 4 and 8).
use super::super::{Check, Value};
use crate::grim::firmware::Firmware;
use crate::grim::multicast::{self, Spread, Times};
use crate::grim::path::{Api, Cut, MOST, Way, pieces};
use crate::grim::platform::Platform;
use crate::grim::police::{Limit, knee, mean_cost};
use crate::grim::{HEADER, dma::Rate};
use crate::time::Time;

pub(super) fn checks() -> Vec<Check> {
    let mut all = policing();
    all.extend(groups());
    all.extend(sockets());
    all
}

/// The channels of the host with the unlimited burst: its own, those of two cards, and the recycle
/// queue of multicast. Reconstructed.
const CHANNELS: u32 = 4;
/// The memory of LANai 4 (appendix A).
const MEMORY: u32 = 1 << 20;

fn policing() -> Vec<Check> {
    vec![
        Check::new(
            "GR-4.3.4",
            "For a way of 10 us, the least that the source names; in multiples of 8, as the \
             numbers of channels that it measured.",
            |_| {
                let most = |firmware: Firmware| {
                    f64::from(firmware.most_channels(Time::from_nanos(10_000), 8))
                };
                vec![
                    Value::exact(most(Firmware::LANAI4), 8.0),
                    Value::exact(most(Firmware::LANAI9), 24.0),
                ]
            },
        ),
        Check::new(
            "GR-F4.6-knee",
            "Limits of 4, 8, 16, 32 and 64; then whether a higher limit never costs more.",
            |_| {
                let platform = Platform::p3_lanai4();
                let limits = [4, 8, 16, 32, 64];
                let knees = limits.map(|limit| {
                    let knee = knee(&platform, Limit::Returned(limit), 4 * limit);
                    let limit = f64::from(limit);
                    Value::within(knee.into(), limit - 1.0, limit + 1.0)
                });
                let is_monotone = (1..9).map(|power| 1 << power).all(|burst| {
                    let costs =
                        limits.map(|limit| mean_cost(&platform, Limit::Returned(limit), burst));
                    costs.is_sorted_by(|few, many| few >= many)
                });
                let mut values = knees.to_vec();
                values.push(Value::holds(is_monotone));
                values
            },
        ),
        Check::new(
            "GR-F4.6-inf",
            "The queue is a quarter of the memory: the source does not say how many channels \
             share it.",
            |_| {
                let platform = Platform { channels: CHANNELS, ..Platform::p3_lanai4() };
                let places = MEMORY / CHANNELS / HEADER;
                let knee = knee(&platform, Limit::Queued(places), 4 * places);
                let all = f64::from(2 * MEMORY / HEADER);
                vec![Value::within(knee.into(), 5_000.0, all)]
            },
        ),
    ]
}

/// A multicast between P4 with LANai 4, in fragments of the final setting.
fn spread(spread: Spread, hosts: usize, bytes: u32) -> Times {
    let fragments = pieces(bytes, Cut::LANAI4.fragment);
    multicast::run(&Platform::p4_lanai4(), spread, hosts, &fragments)
}

/// Sizes of messages: 4 B to 64 kB.
fn sizes() -> impl Iterator<Item = u32> {
    (2..=16).map(|power| 1 << power)
}

fn groups() -> Vec<Check> {
    let all = |holds: fn(&Times, &Times) -> bool| {
        [4, 8].map(|hosts| {
            Value::holds(sizes().all(|bytes| {
                let tree = spread(Spread::Tree, hosts, bytes);
                holds(&tree, &spread(Spread::Repeated, hosts, bytes))
            }))
        })
    };
    vec![
        Check::new("GR-F8.7-inj", "For 4 and for 8 hosts, 4 B to 64 kB.", move |_| {
            all(|tree, repeated| tree.injection < repeated.injection).to_vec()
        }),
        Check::new(
            "GR-F8.7-rt",
            "For 4 and for 8 hosts, 4 B to 64 kB. With 8 hosts and up to 64 B ours is lower: the \
             sender's interface takes longer to send seven messages than the tree to copy one.",
            move |_| all(|tree, repeated| tree.round_trip > repeated.round_trip).to_vec(),
        ),
        Check::new(
            "GR-F8.8",
            "The slowest of a class over its fastest, 2 and 3 hosts, then 4 to 7; then how far the \
             classes are apart. In ours the second child waits while the first one gets its last \
             fragment, of 16 kB. The source does not name its fragments here.",
            |_| {
                let time = |hosts| spread(Spread::Tree, hosts, 32 << 10).round_trip.0 as f64;
                let small = [2, 3].map(time);
                let large = [4, 5, 6, 7].map(time);
                let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
                let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
                vec![
                    Value::within(most(&small) / least(&small), 1.0, 1.05),
                    Value::within(most(&large) / least(&large), 1.0, 1.05),
                    Value::within(least(&large) / most(&small), 1.05, 4.0),
                ]
            },
        ),
    ]
}

/// Latency and bandwidth of sockets or of active messages.
fn figures(platform: &Platform, api: Api, cut: Cut) -> (f64, f64) {
    let way = Way { platform, api, cut };
    (way.time(4).nanos() / 1e3, way.most().0)
}

fn sockets() -> Vec<Check> {
    vec![
        Check::new(
            "GR-T8.1",
            "P3's bandwidth, P4's latency and bandwidth, then the ratios to active messages. P3's \
             latency is an input, from which the emulation's own cost comes.",
            |_| {
                let [three, four] =
                    [Platform::p3_lanai4(), Platform::p4_lanai4()].map(|platform| {
                        let sockets = figures(&platform, Api::Socket, Cut::SOCKETS);
                        let messages = figures(&platform, Api::Active, Cut::LANAI4);
                        (sockets, sockets.0 / messages.0, sockets.1 / messages.1)
                    });
                vec![
                    Value::near(three.0.1, 55.6, 0.15),
                    Value::near(four.0.0, 22.2, 0.15),
                    Value::near(four.0.1, 103.3, 0.15),
                    Value::near(three.2, 55.6 / 87.0, 0.1),
                    Value::near(four.1, 22.2 / 17.0, 0.1),
                    Value::near(four.2, 103.3 / 105.0, 0.1),
                ]
            },
        ),
        Check::new(
            "GR-F8.10",
            "Whether the rate falls behind the longest message of one fragment, and is higher \
             again at 128 kB; for P3 and P4.",
            |_| {
                [Platform::p3_lanai4(), Platform::p4_lanai4()]
                    .map(|platform| {
                        let way = Way { platform: &platform, api: Api::Socket, cut: Cut::SOCKETS };
                        let rate = |bytes| way.rate(bytes);
                        let behind = (MOST + 1..2 * MOST).step_by(1024).map(rate);
                        let least =
                            behind.fold(
                                Rate(f64::MAX),
                                |least, rate| {
                                    if rate < least { rate } else { least }
                                },
                            );
                        Value::holds(least < rate(MOST) && rate(128 << 10) > least)
                    })
                    .to_vec()
            },
        ),
    ]
}
