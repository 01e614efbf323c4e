//! Rows of the WHTRA collection.
use super::{Check, Value};
use crate::whtra::Centre;

pub(super) fn checks() -> Vec<Check> {
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
