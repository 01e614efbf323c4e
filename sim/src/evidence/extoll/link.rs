//! Rows of section 7.3 about the link.
use super::super::{Check, Value};
use crate::extoll::frame;
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
