//! Rows of the way from host to host (chapter 5).
use super::super::{Check, Value};
use crate::grim::dma::Rate;
use crate::grim::path::{Api, Cut, MOST, Way};
use crate::grim::platform::Platform;
use crate::time::Time;

pub(super) fn checks() -> Vec<Check> {
    let mut all = stages();
    all.extend(fragments());
    all.extend(overall());
    all
}

const APIS: [Api; 3] = [Api::Active, Api::Virtual, Api::Physical];

fn way(platform: &Platform, api: Api, cut: Cut) -> Way<'_> {
    Way { platform, api, cut }
}

fn stages() -> Vec<Check> {
    vec![
        Check::new(
            "GR-F5.4",
            "Ours is at 3.8 kB. What a DMA takes besides its data is that of P3; the source does \
             not give P4's.",
            |_| {
                let [narrow, wide] =
                    [Platform::p4_lanai4(), Platform::p4_lanai9()].map(|platform| platform.inject);
                let wide_wins = |bytes: &u32| wide.best(*bytes).1 < narrow.best(*bytes).1;
                let crossover = (1..=16 << 10).find(wide_wins).unwrap_or(0);
                vec![
                    Value::within(crossover.into(), 4096.0, 8192.0),
                    Value::holds((crossover..=MOST).all(|bytes| wide_wins(&bytes))),
                ]
            },
        ),
        Check::new(
            "GR-F5.5-nhalf",
            "Appendix A has 3 us as LANai 4's least time and 1 us as LANai 9's. No start of a DMA \
             that these allow gives 256 B on all links.",
            |_| {
                let links = [
                    Platform::p3_lanai4().link,
                    Platform::p3_lanai9().link,
                    Platform::myrinet2000(),
                ];
                links.map(|link| Value::within(link.half_at(link.rate), 192.0, 384.0)).to_vec()
            },
        ),
        Check::new(
            "GR-F5.6-nhalf",
            "From the times of 32 B and of 64 kB. On the bus of 66 MHz a start takes half.",
            |_| {
                let ejects = [
                    Platform::p3_lanai4().eject,
                    Platform::p3_lanai9().eject,
                    Platform::p4_lanai4().eject,
                    Platform::p4_lanai9().eject,
                ];
                ejects.map(|dma| Value::within(dma.half_at(dma.rate), 192.0, 384.0)).to_vec()
            },
        ),
        Check::new(
            "GR-F5.8",
            "LANai 4 is 2 points beyond the tolerance. The source does not say how its message of \
             64 kB was injected; by stores it would be 39 MB/s.",
            |_| {
                let rate = |platform: &Platform, api| way(platform, api, Cut::WHOLE).rate(MOST).0;
                let (four, nine) = (Platform::p3_lanai4(), Platform::p3_lanai9());
                [Api::Active, Api::Physical]
                    .into_iter()
                    .flat_map(|api| {
                        [
                            Value::near(rate(&four, api), 39.0, 0.05),
                            Value::near(rate(&nine, api), 43.0, 0.05),
                        ]
                    })
                    .collect()
            },
        ),
    ]
}

/// Fragments of figure 5.10: 256 B to nearly 64 kB.
fn fragment_sizes() -> impl Iterator<Item = u32> {
    (8..16).map(|power| 1 << power).chain([MOST])
}

/// The rate of a message in fragments, which each stage stores.
fn stored(platform: &Platform, api: Api, fragment: u32, bytes: u32) -> f64 {
    way(platform, api, Cut { fragment, ..Cut::WHOLE }).rate(bytes).0
}

/// The fragment that is best for messages of 4 to 64 kB, by the geometric mean of their rates.
fn best_fragment(platform: &Platform, api: Api) -> f64 {
    let mean = |fragment: u32| {
        let sizes = (12..=16).map(|power| 1 << power);
        sizes.map(|bytes| libm::log(stored(platform, api, fragment, bytes))).sum::<f64>()
    };
    let best = fragment_sizes().max_by(|one, other| mean(*one).total_cmp(&mean(*other)));
    f64::from(best.unwrap_or(0))
}

/// The least message, of powers of two, that goes faster in fragments.
fn pays_from(platform: &Platform, api: Api) -> f64 {
    let pays = |bytes: &u32| {
        let best = fragment_sizes().filter(|fragment| fragment < bytes);
        let best = best.map(|fragment| stored(platform, api, fragment, *bytes));
        best.fold(0.0, f64::max) > stored(platform, api, MOST, *bytes)
    };
    f64::from((8..17).map(|power| 1 << power).find(pays).unwrap_or(0))
}

/// Whether a message that is a little longer than a fragment is slower than one of a fragment.
fn drops(platform: &Platform, api: Api, fragment: u32) -> bool {
    let whole = stored(platform, api, fragment, fragment);
    (1..=4)
        .any(|quarter| stored(platform, api, fragment, fragment + quarter * fragment / 4) < whole)
}

fn fragments() -> Vec<Check> {
    let both = || [Platform::p3_lanai4(), Platform::p3_lanai9()];
    vec![
        Check::new(
            "GR-F5.10-from",
            "The least message, of powers of two, from which all four panels of the figure gain. \
             Writes gain earlier: from 2 kB with LANai 4, from 1 kB with LANai 9.",
            move |_| {
                let apis = [Api::Active, Api::Physical];
                let all = both().map(|platform| apis.map(|api| pays_from(&platform, api)));
                let all = all.concat().into_iter().fold(0.0, f64::max);
                vec![Value::within(all, 2048.0, 8192.0)]
            },
        ),
        Check::new(
            "GR-F5.10-best",
            "For messages of 4 to 64 kB: the source does not name a size.",
            move |_| {
                let [four, nine] = both().map(|platform| {
                    [Api::Active, Api::Physical].map(|api| best_fragment(&platform, api))
                });
                let four = four.map(|best| Value::within(best, 1024.0, 8192.0));
                let nine = nine.map(|best| Value::within(best, 512.0, 4096.0));
                [four, nine].concat()
            },
        ),
        Check::new("GR-F5.10-am", "With fragments of 4 kB.", move |_| {
            both()
                .into_iter()
                .flat_map(|platform| {
                    [
                        Value::holds(drops(&platform, Api::Active, 4096)),
                        Value::holds(!drops(&platform, Api::Physical, 4096)),
                    ]
                })
                .collect()
        }),
        Check::new("GR-F5.12", "With messages of 4 to 64 kB.", move |_| {
            let ordered = |platform: &Platform, bytes: u32| {
                let rate = |segment, receiver| {
                    let cut = Cut { fragment: 4096, segment, receiver };
                    way(platform, Api::Physical, cut).rate(bytes).0
                };
                let [none, sender] = [rate(None, false), rate(Some(1024), false)];
                let [receiver, both] = [rate(None, true), rate(Some(1024), true)];
                both >= receiver && receiver > sender && sender > none
            };
            let all = |platform| (12..=16).all(|power| ordered(&platform, 1 << power));
            both().map(|platform| Value::holds(all(platform))).to_vec()
        }),
    ]
}

/// The machines of table 5.4 with their settings.
fn machines() -> [(Platform, Cut); 4] {
    [
        (Platform::p3_lanai4(), Cut::LANAI4),
        (Platform::p3_lanai9(), Cut::LANAI9),
        (Platform::p4_lanai4(), Cut::LANAI4),
        (Platform::p4_lanai9(), Cut::LANAI9),
    ]
}

fn latency(id: &'static str, note: &'static str, machine: usize, published: [f64; 3]) -> Check {
    Check::new(id, note, move |_| {
        let (platform, cut) = machines()[machine];
        let time = |api| way(&platform, api, cut).time(4);
        let ours = APIS.map(|api| time(api).nanos() / 1e3);
        ours.iter().zip(published).map(|(ours, theirs)| Value::near(*ours, theirs, 0.1)).collect()
    })
}

fn most(machine: usize) -> [f64; 3] {
    let (platform, cut) = machines()[machine];
    APIS.map(|api| way(&platform, api, cut).most().0)
}

fn bandwidth(id: &'static str, note: &'static str, machine: usize, published: [f64; 3]) -> Check {
    Check::new(id, note, move |_| {
        let near = |(ours, theirs)| Value::near(ours, theirs, 0.1);
        most(machine).into_iter().zip(published).map(near).collect()
    })
}

fn overall() -> Vec<Check> {
    const FITTED: &str = "The host's software is fitted on P3 with LANai 4, whose row is an input.";
    vec![
        latency("GR-T5.4-P3-9-lat", FITTED, 1, [10.0, 10.5, 9.5]),
        latency("GR-T5.4-P4-4-lat", FITTED, 2, [17.0, 18.5, 14.5]),
        latency(
            "GR-T5.4-P4-9-lat",
            "The virtual write is 1 point beyond the tolerance: the host's software is that of P3, \
             as the source says nothing about P4's.",
            3,
            [9.0, 8.5, 8.0],
        ),
        bandwidth(
            "GR-T5.4-P3-9-bw",
            "The physical write is half a point beyond the tolerance. It waits for the injection \
             of segments of 16 kB; the source has no number for that size.",
            1,
            [102.0, 69.0, 116.0],
        ),
        bandwidth(
            "GR-T5.4-P4-4-bw",
            "The rate of P3's stores is fitted on its physical write, whose row is an input. P4's \
             is given.",
            2,
            [105.0, 65.0, 108.0],
        ),
        bandwidth("GR-T5.4-P4-9-bw", "", 3, [144.0, 98.0, 146.0]),
        Check::new("GR-5.6-rmv", "A virtual write does not cut through the receiver.", |_| {
            let share = |[_, translated, physical]: [f64; 3]| 100.0 * translated / physical;
            (0..4).map(|machine| Value::within(share(most(machine)), 55.0, 75.0)).collect()
        }),
        Check::new("GR-5.6-link", "", |_| {
            let peak = Rate::of(160, Time::from_nanos(1_000)).0;
            vec![Value::within(100.0 * most(3)[2] / peak, 88.0, 94.0)]
        }),
    ]
}
