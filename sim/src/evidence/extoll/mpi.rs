//! Rows of sections 9.2 and 9.3 about MPI.
use super::super::{Check, Value};
use super::{HOST, nanos};
use crate::extoll::mpi::{Protocol, Put};
use crate::extoll::{Parameters, prototype_clock};

fn times() -> Parameters {
    Parameters::composed(&HOST, prototype_clock())
}

fn overlap(bytes: u32, is_one_sided: bool) -> f64 {
    100.0 * Put { bytes, is_one_sided }.overlap(&times())
}

pub(super) fn checks() -> Vec<Check> {
    let latency = |protocol: Protocol, bytes| nanos(protocol.latency(&times(), bytes));
    vec![
        Check::new(
            "EX-F9.6-max",
            "8 bytes to 4 KiB. Ours has no costs of OpenMPI's layers, which occupy the processor; \
             neither they nor the sizes of the figure are given.",
            |_| {
                let sizes = (3..=12).map(|power| overlap(1 << power, true));
                vec![Value::within(sizes.fold(0.0, f64::max), 70.0, 90.0)]
            },
        ),
        Check::new("EX-F9.6-32", "Two-sided emulation sends in the closing fence.", |_| {
            vec![
                Value::within(overlap(32, true), 30.0, 100.0),
                Value::within(overlap(32, false), 0.0, 5.0),
            ]
        }),
        Check::new(
            "EX-F9.7-small",
            "Each end of the medium protocol copies at 2 GB/s; 512 bytes, 1 KiB, 2 KiB.",
            move |_| {
                [512, 1024, 2048]
                    .map(|bytes| {
                        let ratio =
                            latency(Protocol::Medium, bytes) / latency(Protocol::Small, bytes);
                        Value::near(ratio, 1.0, 0.15)
                    })
                    .to_vec()
            },
        ),
        Check::new("EX-F9.8", "In steps of 64 bytes.", move |_| {
            let reaches =
                |bytes: &u32| latency(Protocol::Long, *bytes) <= latency(Protocol::Medium, *bytes);
            let first = (64..=4096).step_by(64).find(reaches).unwrap_or(4096);
            vec![Value::within(f64::from(first) / 1024.0, 1.5, 3.0)]
        }),
    ]
}
