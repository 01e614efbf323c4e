//! Rows of chapter 6 about ways of giving a command, and of section 8.5 about the kernel.
use super::super::{Check, Value};
use super::{HOST, nanos};
use crate::extoll::issue::Method;
use crate::host::Host;
use crate::host::combine::{Interrupts, Stores};
use crate::random::Random;
use crate::stats::across;

pub(super) fn checks() -> Vec<Check> {
    let mut all = methods();
    all.push(splits());
    all
}

/// Figure 6-5. Each value is the mean of five seeds.
fn splits() -> Check {
    let note = "1,000 interrupts of devices a second on one core, 250 of the timer on each; stores \
                of 16 bytes, then of 8.";
    Check::new("EX-F6.5", note, |_| {
        let share = |interrupts: Interrupts, store| {
            across(5, |seed| {
                interrupts.split(&Stores::opteron(store), 100_000, &mut Random::new(seed, 0))
            })
        };
        let [all, other, narrow] =
            [(Interrupts::ALL, 16), (Interrupts::TIMER, 16), (Interrupts::ALL, 8)]
                .map(|(interrupts, store)| share(interrupts, store));
        vec![
            Value::within(all.0 * 1e6, 0.0, 10.0).give_or_take(all.1 * 1e6),
            Value::within(other.0 / all.0, 0.0, 1.0),
            Value::within(all.0 / narrow.0, 0.0, 1.0),
        ]
    })
}

fn methods() -> Vec<Check> {
    let start = |method: Method| nanos(method.start(&HOST));
    let period = |method: Method| nanos(method.period(&HOST));
    vec![
        Check::new("EX-6.4.1-start", "", move |_| {
            vec![Value::exact(start(Method::TriggerPage), 380.0)]
        }),
        Check::new("EX-6.4.1-tx", "", move |_| {
            let rest = nanos(HOST.device_read);
            let whole = |translation: f64| start(Method::TriggerPage) + rest + translation;
            vec![Value::within(whole(50.0), 710.0, 720.0), Value::within(whole(60.0), 710.0, 720.0)]
        }),
        Check::new(
            "EX-6.4.1-pcie",
            "The device's read is taken to be as long as the processor's.",
            move |_| {
                let ratio =
                    nanos(Method::TriggerPage.start(&Host::PCIE_FPGA)) / start(Method::TriggerPage);
                vec![Value::within(ratio, 3.0, 10.0)]
            },
        ),
        Check::new("EX-6.4.2", "", move |_| {
            let ratio = period(Method::Transactional) / period(Method::TriggerPage);
            vec![
                Value::near(start(Method::Transactional), 200.0, 0.1),
                Value::near(ratio, 1.0, 0.02),
            ]
        }),
        Check::new(
            "EX-6.4.3",
            "A posted store is taken to hold the processor for 20 ns.",
            move |_| {
                vec![
                    Value::within(start(Method::FlowControlled), 0.0, 99.9),
                    Value::holds(period(Method::FlowControlled) < period(Method::Transactional)),
                ]
            },
        ),
        Check::new("EX-6.4.5", "", move |_| {
            let added = start(Method::ThroughKernel) - start(Method::FlowControlled);
            vec![Value::exact(added, 170.0)]
        }),
        Check::new(
            "EX-8.5",
            "A whole call of the kernel is taken from section 6.2: 250 to 300 ns.",
            move |_| {
                let end = nanos(HOST.kernel_path());
                [(end, 300.0), (end, 300.0), (end + end, 600.0)]
                    .map(|(ours, theirs)| Value::near(ours, theirs, 0.1))
                    .to_vec()
            },
        ),
        Check::new(
            "EX-8.5-int",
            "Polling against an interrupt whose handler loads the message; no other thread runs.",
            move |_| {
                let added = HOST.interrupting_write() - HOST.device_write();
                vec![Value::within(nanos(added), 700.0, 2000.0)]
            },
        ),
    ]
}
