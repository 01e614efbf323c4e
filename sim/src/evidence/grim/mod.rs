//! Rows of the GRIM thesis.
mod devices;
mod path;
mod protocol;

use super::{Check, Value};
use crate::grim::{TranslationMiss, card, store_and_forward, video};

pub(super) fn checks() -> Vec<Check> {
    let mut all = interface();
    all.extend(path::checks());
    all.extend(protocol::checks());
    all.extend(devices::checks());
    all.extend(faults());
    all
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
