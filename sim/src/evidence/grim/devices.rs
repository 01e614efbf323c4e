//! Rows of devices (chapters 6 and 7).
use super::super::{Check, Value};
use crate::grim::card::{CLOCK, Stage};
use crate::grim::devices::{Camera, Pair};
use crate::grim::platform::Platform;
use crate::grim::police::STORE;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "GR-6.2.2",
            "The card's cost is the host's software at the clock of its processor.",
            |_| {
                let computing = Platform::p3_lanai4().software - STORE;
                let micros = Pair::i2o(computing).one_way().nanos() / 1e3;
                vec![Value::near(micros, 21.0, 0.15)]
            },
        ),
        Check::new(
            "GR-6.4.3",
            "Frames in a second, then the percent of a 32-bit bus that the camera takes. The \
             program injects pieces of 1 kB by stores on P3.",
            |_| {
                let inject = Platform::p3_lanai4().inject;
                let piece = 1 << 10;
                let stream = Camera::NTSC.stream(inject.read, piece, inject.best(piece).1);
                vec![
                    Value::near(stream.rate, 30.0, 0.001),
                    Value::within(100.0 * stream.camera, 0.0, 15.0),
                ]
            },
        ),
        Check::new(
            "GR-T7.3-f",
            "Fetching and storing, in clocks and in microseconds, from the words of a page. The \
             other clocks are inputs of GR-T7.3-t.",
            |_| {
                let moved = [Stage::PAGE.fetch(), Stage::PAGE.store()].map(f64::from);
                vec![
                    Value::exact(moved[0], 1024.0),
                    Value::exact(moved[0] / CLOCK, 51.2),
                    Value::exact(moved[1], 3072.0),
                    Value::exact(moved[1] / CLOCK, 153.6),
                ]
            },
        ),
    ]
}
