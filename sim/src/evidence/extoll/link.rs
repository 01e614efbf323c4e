//! Rows of section 7.3 about the link, and of tables 7-7 and 7-10.
use super::super::{Check, Value};
use super::HOST;
use super::operations::time_alone;
use crate::extoll::{Operation, Parameters, frame, prototype_clock};
use crate::routing::{Plan, Policy, RunLength};
use crate::topology::Topology;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "EX-7.3-velo",
            "13 phits around the payload: routing 4, header 4, start 1, CRC 2, credits 1, end 1.",
            |_| vec![Value::exact(frame::cycles(56, false).into(), 41.0)],
        ),
        Check::new(
            "EX-7.3-eff",
            "With the layout that gives 41 cycles, 4 KiB take 91 %; table 7-10 has 88 %.",
            |_| {
                vec![
                    Value::within(100.0 * frame::efficiency(56, false), 67.3, 69.3),
                    Value::within(100.0 * frame::efficiency(4096, true), 75.0, 85.0),
                ]
            },
        ),
        Check::new("EX-T7.7-bwv", "", |_| vec![Value::near(put_rate(4096), 275.0, 0.05)]),
        Check::new("EX-T7.10-156", "Start-up of VELO, bandwidth of puts.", |_| {
            let times = Parameters::composed(&HOST, prototype_clock());
            vec![
                Value::near(time_alone(Operation::Velo, &times), 1300.0, 0.05),
                Value::near(put_rate(4096), 274.0, 0.05),
            ]
        }),
        Check::new("EX-F9.5-max", "A put has 4 KiB at most.", |_| {
            let most = [512, 1024, 2048, 4096].map(put_rate).into_iter().fold(0.0, f64::max);
            vec![Value::within(100.0 * put_rate(4096) / most, 95.0, 100.0)]
        }),
        Check::new("EX-7.3-route", "All ways from one node are written as strings.", |_| {
            vec![Value::exact(f64::from(routes_that_fit(64)), 262_144.0)]
        }),
    ]
}

/// The nodes of a cubic torus whose ways from node 0 fit a routing string of 64 bits.
fn routes_that_fit(side: u32) -> u32 {
    let torus = Topology::torus(&[side; 3]).expect("a possible torus");
    let plan = Plan::new(&torus, Policy::DimensionOrder, 2).expect("a possible plan");
    let fits = |target| plan.way(0, target).is_some_and(|way| RunLength::new(&way).is_ok());
    (0..torus.nodes.len() as u32).map(|target| u32::from(fits(target))).sum()
}

/// Megabytes per second of puts in a row.
fn put_rate(bytes: u32) -> f64 {
    let clock = prototype_clock();
    Parameters::composed(&HOST, clock).put_rate(bytes, clock) / 1e6
}
