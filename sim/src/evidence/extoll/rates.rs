//! Rows of chapter 9 about rates, ping-pong and streams, and of tables 7-7 and 7-10.
use super::super::{Check, Value};
use super::{HOST, nanos};
use crate::extoll::layers::{HT, Layers, NETWORK, NIC, PHYSICAL};
use crate::extoll::{Operation, Parameters, Transfer, prototype_clock};
use crate::machine::Part;
use crate::time::Clock;

pub(super) fn checks() -> Vec<Check> {
    let mut all = addressing();
    all.extend(rates());
    all.extend(curves());
    all.push(layers());
    all
}

/// The prototype.
fn user() -> Parameters {
    Parameters::composed(&HOST, prototype_clock())
}

/// The prototype without its ATU.
fn kernel() -> Parameters {
    user().by_kernel(&HOST)
}

const PUT: Operation = Operation::Put { notified: false };
const PAGE: u32 = 4096;
const LONG: u32 = 64 * 1024;

/// Megabytes per second of a stream.
fn stream(times: Parameters, transfer: Transfer, bytes: u32) -> f64 {
    times.stream(transfer, bytes) / 1e6
}

/// Megabytes per second of a ping-pong.
fn ping_pong(times: Parameters, transfer: Transfer, bytes: u32) -> f64 {
    f64::from(bytes) * 1e3 / nanos(times.latency(transfer, bytes))
}

/// The lengths of cache lines up to a page.
fn lines() -> impl Iterator<Item = u32> {
    (64..=PAGE).step_by(64)
}

/// Virtual and physical addresses: tables 7-7 and 7-10.
fn addressing() -> Vec<Check> {
    let put = |times: Parameters| nanos(times.alone(PUT, 8));
    let half = |times: Parameters| {
        let most = stream(times, Transfer::Put, PAGE);
        let reached = |bytes: &u32| ping_pong(times, Transfer::Put, *bytes) >= most / 2.0;
        f64::from(lines().find(reached).unwrap_or(PAGE))
    };
    vec![
        Check::new("EX-T7.7-latv", "A put of 8 bytes, seen by its data.", move |_| {
            vec![Value::near(put(user()), 1990.0, 0.05)]
        }),
        Check::new(
            "EX-T7.7-latp",
            "The cost of a kernel call is that of section 6.2, the tables are those of 5.2.2.",
            move |_| {
                vec![
                    Value::near(put(kernel()), 2590.0, 0.05),
                    Value::near(put(kernel()) - put(user()), 600.0, 0.1),
                ]
            },
        ),
        Check::new("EX-T7.7-bwv", "Puts of 4 KiB in a row.", |_| {
            vec![Value::near(stream(user(), Transfer::Put, PAGE), 275.0, 0.05)]
        }),
        Check::new(
            "EX-T7.7-bwp",
            "The driver is taken to have one put under way: it waits for the requester.",
            |_| vec![Value::near(stream(kernel(), Transfer::Put, PAGE), 264.0, 0.05)],
        ),
        Check::new(
            "EX-T7.7-nhalf",
            "600 ns of the kernel move the half by some 100 bytes. The thesis does not say why it \
             moves by 448.",
            move |_| {
                vec![
                    Value::near(half(user()), 576.0, 0.25),
                    Value::near(half(kernel()), 1024.0, 0.25),
                    Value::holds(half(user()) < half(kernel())),
                ]
            },
        ),
        Check::new("EX-T7.10-156", "Start-up of VELO, bandwidth of puts.", |_| {
            vec![
                Value::near(nanos(user().alone(Operation::Velo, 8)), 1300.0, 0.05),
                Value::near(stream(user(), Transfer::Put, PAGE), 274.0, 0.05),
            ]
        }),
    ]
}

/// Table 9-3. The rate of notification puts is an input: the turnaround of RMA's units.
fn rates() -> Vec<Check> {
    let millions = |operation| user().rate(operation, 8) / 1e6;
    vec![
        Check::new(
            "EX-T9.3-velo",
            "A message costs a processor half of the 300 ns of software, and a store.",
            move |_| vec![Value::near(millions(Operation::Velo), 5.5, 0.1)],
        ),
        Check::new(
            "EX-T9.3-put",
            "The rate of notification puts is an input here: it gives the turnaround of a unit.",
            move |_| vec![Value::near(millions(Operation::Put { notified: true }), 1.375, 0.15)],
        ),
    ]
}

/// Figures 9-1, 9-4 and 9-5.
fn curves() -> Vec<Check> {
    // VELO moves 64 bytes at a time.
    let velo = || stream(user(), Transfer::Velo, 64);
    let above = move |transfer| {
        let velo = velo();
        let first = lines().find(|bytes| stream(user(), transfer, *bytes) > velo);
        f64::from(first.unwrap_or(PAGE))
    };
    let powers = || (3..=6).map(|power| 1 << power);
    vec![
        Check::new("EX-F9.1", "In steps of 64 bytes; puts are seen by their data.", |_| {
            let is_faster = |bytes: &u32| {
                user().latency(Transfer::Put, *bytes) < user().latency(Transfer::Velo, *bytes)
            };
            let first = lines().find(is_faster).unwrap_or(PAGE);
            vec![Value::within(first.into(), 256.0, 512.0)]
        }),
        Check::new("EX-F9.4", "Messages of 64 KiB.", move |_| {
            let [velo, put, get] = [Transfer::Velo, Transfer::Put, Transfer::Get]
                .map(|transfer| ping_pong(user(), transfer, LONG));
            let most = stream(user(), Transfer::Put, PAGE);
            vec![
                Value::within(velo / most, 0.0, 0.95),
                Value::within(put / most, 0.95, 1.0),
                Value::within(get / put, 0.95, 1.0),
            ]
        }),
        Check::new(
            "EX-F9.5-velo",
            "Powers of two. 56 bytes would be faster than 64, which take a second slot.",
            move |_| {
                let rate = |bytes: &u32| stream(user(), Transfer::Velo, *bytes);
                let best = powers().max_by(|one, other| rate(one).total_cmp(&rate(other)));
                vec![Value::exact(best.unwrap_or(0).into(), 64.0)]
            },
        ),
        Check::new("EX-F9.5-put", "In steps of 64 bytes.", move |_| {
            vec![Value::within(above(Transfer::Put), 256.0, 512.0)]
        }),
        Check::new("EX-F9.5-get", "In steps of 64 bytes.", move |_| {
            let [put, get] = [Transfer::Put, Transfer::Get].map(above);
            vec![Value::within(get, 384.0, 768.0), Value::holds(get >= put)]
        }),
        Check::new("EX-F9.5-max", "A put or a get has 4 KiB at most.", |_| {
            [Transfer::Put, Transfer::Get]
                .map(|transfer| {
                    let rate = |bytes| stream(user(), transfer, bytes);
                    let most = lines().map(rate).fold(0.0, f64::max);
                    Value::within(100.0 * rate(PAGE) / most, 95.0, 100.0)
                })
                .to_vec()
        }),
        Check::new("EX-F9.5-nhalf", "Powers of two.", move |_| {
            let most = stream(user(), Transfer::Put, PAGE);
            let reached = |bytes: &u32| stream(user(), Transfer::Velo, *bytes) >= most / 2.0;
            vec![Value::within(powers().find(reached).unwrap_or(0).into(), 24.0, 48.0)]
        }),
    ]
}

/// Figure 7-15: the prototype at its clock and at that of the ASIC.
fn layers() -> Check {
    let note = "The thesis gives no parts of the network trip; it is divided evenly over stages.";
    Check::new("EX-F7.15", note, |_| {
        let megahertz = |rate: u64| Clock::new(rate * 1_000_000).expect("a sound rate");
        let [slow, fast] =
            [150, 600].map(|rate| Layers::prototype(megahertz(rate), megahertz(200)));
        let time = |layers: &Layers, part: Part| {
            let passage = layers.pass();
            let found = passage.parts.iter().find(|(other, _)| *other == part);
            found.map_or(0.0, |(_, time)| nanos(*time))
        };
        let ratio = |part| time(&slow, part) / time(&fast, part);
        let sum: f64 = [PHYSICAL, NETWORK, NIC, HT].map(|part| time(&slow, part)).iter().sum();
        vec![
            Value::exact(sum, nanos(slow.pass().time())),
            Value::near(ratio(NETWORK), 4.0, 1e-3),
            Value::near(ratio(NIC), 4.0, 1e-3),
            Value::exact(ratio(PHYSICAL), 1.0),
        ]
    })
}
