//! Rows of DART, GRIM and the WHTRA collection.
use super::{Check, Value};
use crate::dart;
use crate::grim::{TranslationMiss, card, store_and_forward, video};
use crate::time::Time;
use crate::whtra::Centre;

pub(super) fn checks() -> Vec<Check> {
    let mut all = deposit();
    all.extend(interface());
    all.extend(faults());
    all.extend(sharing());
    all
}

fn deposit() -> Vec<Check> {
    const ROUND_TRIP: f64 = 49.0;
    const SWITCH: f64 = 5.5;
    let period = |time: u64| dart::period(Time::from_nanos(time), worst()).nanos();
    vec![
        Check::new("DE-5-ow", "", |_| {
            let one_way = ROUND_TRIP / 2.0;
            vec![Value::exact(one_way, 24.5), Value::exact(one_way + SWITCH, 30.0)]
        }),
        Check::new("DE-6.5-cyc", "The most of all instructions that differ in registers.", |_| {
            vec![Value::exact(worst() as f64, 9.0)]
        }),
        Check::new("DE-6.6-155", "34 bytes take 1.755 us; the source rounds up.", move |_| {
            let micros = dart::data_time(155e6) * 1e6;
            vec![Value::near(micros, 1.8, 0.03), Value::exact(period(1_800), 200.0)]
        }),
        Check::new("DE-6.6-622", "34 bytes take 437 ns; the source rounds up.", move |_| {
            let nanos = dart::data_time(622e6) * 1e9;
            vec![Value::near(nanos, 450.0, 0.03), Value::exact(period(450), 50.0)]
        }),
        Check::new("DE-4-cell", "", |_| {
            let control = dart::cell::ALL - dart::cell::HEADER - dart::cell::DATA;
            vec![Value::exact(dart::cell::ALL.into(), 53.0), Value::exact(control.into(), 16.0)]
        }),
    ]
}

fn worst() -> u64 {
    dart::all_work().map(|work| work.cycles()).max().unwrap_or(0)
}

fn interface() -> Vec<Check> {
    vec![
        Check::new("GR-T5.3-sum", "", |_| {
            vec![
                Value::exact(TranslationMiss::LANAI4.total(), 21.5),
                Value::exact(TranslationMiss::LANAI9.total(), 14.5),
            ]
        }),
        Check::new("GR-F5.7", "", |_| {
            let rate = store_and_forward(&[132.0, 160.0, 132.0]);
            vec![Value::near(1e3 / rate, 21.39, 0.001), Value::near(rate, 46.75, 0.001)]
        }),
        Check::new("GR-T6.2", "The source counts 1 kB as 1024 B in the frame.", |_| {
            let small = video(320, 240, 2, 30);
            let large = video(640, 480, 2, 30);
            vec![
                Value::exact(small / 30.0 / 1024.0, 150.0),
                Value::near(small / f64::from(1 << 20), 4.5, 0.03),
                Value::exact(large / 30.0 / 1024.0, 600.0),
                Value::near(large / f64::from(1 << 20), 18.0, 0.03),
                Value::near(100.0 * large / 132e6, 14.0, 0.03),
            ]
        }),
    ]
}

fn faults() -> Vec<Check> {
    let sum = |clocks: &[u32]| f64::from(clocks.iter().sum::<u32>());
    vec![
        Check::new("GR-T7.1-f", "", move |_| {
            let (save, restore) = (sum(&card::FUNCTION_SAVE), sum(&card::FUNCTION_RESTORE));
            vec![
                Value::exact(save, 10.0),
                Value::exact(save / card::CLOCK, 0.5),
                Value::exact(restore, 21.0),
                Value::exact(restore / card::CLOCK, 1.05),
            ]
        }),
        Check::new("GR-T7.1-t", "", |_| {
            vec![
                Value::near(card::function_fault(false), 154.36, 1e-4),
                Value::near(card::function_fault(true), 164.57, 1e-4),
            ]
        }),
        Check::new("GR-T7.2-f", "", move |_| {
            let (save, restore) = (sum(&card::PAGE_SAVE), sum(&card::PAGE_RESTORE));
            vec![
                Value::exact(save, 6.0),
                Value::exact(save / card::CLOCK, 0.3),
                Value::exact(restore, 10.0),
                Value::exact(restore / card::CLOCK, 0.5),
            ]
        }),
        Check::new("GR-T7.2-t", "", |_| vec![Value::near(card::page_fault(), 61.45, 1e-4)]),
        Check::new("GR-T7.3-t", "", |_| {
            let clocks = f64::from(card::Stage::PAGE.clocks());
            let micros = clocks / card::CLOCK;
            vec![
                Value::near(clocks, 3145.0, 0.02),
                Value::near(micros, 157.0, 0.02),
                Value::near(4096.0 / micros, 26.0, 0.02),
            ]
        }),
    ]
}

fn sharing() -> Vec<Check> {
    let centre = Centre::EXAMPLE;
    let dollars = move |kept: f64| centre.modules_saved(kept) * centre.module;
    let watts = "The power of a module is not in the source: the watts of the other row are taken \
                 as an input.";
    vec![
        Check::new("WH-B-save50", watts, move |_| {
            let watts = 12_750.0 * centre.modules_saved(0.5) / centre.modules_saved(0.25);
            vec![Value::exact(dollars(0.5), 750_000.0), Value::exact(watts, 8_500.0)]
        }),
        Check::new("WH-B-save75", watts, move |_| {
            let watts = 8_500.0 * centre.modules_saved(0.25) / centre.modules_saved(0.5);
            vec![Value::exact(dollars(0.25), 1_125_000.0), Value::exact(watts, 12_750.0)]
        }),
        Check::new("WH-B-gpu", "", |_| {
            let (dollars, watts, share) = Centre::EXAMPLE.accelerators_saved(2.0, 0.5);
            vec![
                Value::exact(dollars, 328_125.0),
                Value::exact(100.0 * share, 75.0),
                Value::exact(watts, 28_125.0),
            ]
        }),
    ]
}
