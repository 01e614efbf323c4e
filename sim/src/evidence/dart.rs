//! Rows of the hybrid deposit model and DART.
use super::{Check, Value};
use crate::dart;
use crate::dart::append::Destination;
use crate::dart::emulation::{Cold, Emulation};
use crate::time::Time;

pub(super) fn checks() -> Vec<Check> {
    const ROUND_TRIP: f64 = 49.0;
    const SWITCH: f64 = 5.5;
    let period = |time: u64| dart::period(Time::from_nanos(time), worst()).nanos();
    vec![
        Check::new("DE-5-ow", "", |_| {
            let one_way = ROUND_TRIP / 2.0;
            vec![Value::exact(one_way, 24.5), Value::exact(one_way + SWITCH, 30.0)]
        }),
        Check::new("DE-5-rd", "The round trip of writes and the share of I/O are inputs.", |_| {
            vec![Value::near(Emulation::decstation().read().time().nanos() / 1e3, 45.0, 0.1)]
        }),
        Check::new(
            "DE-5-first",
            "The source counts no misses; those of a whole kernel path take 8 times a later trip. \
             Its section 6 says up to 10 times, so its first trip has more than misses in it.",
            |_| {
                let emulation = Emulation::decstation();
                let first = emulation.first_round_trip(&Cold::decstation()).time().nanos();
                let later = emulation.round_trip().time().nanos();
                vec![Value::within(first / later, 20.0, f64::INFINITY)]
            },
        ),
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
        Check::new("DE-2-msgs", "A fetch of the tail, its answer and the record; or one.", |_| {
            let (mut pure, mut hybrid) = (Destination::new(1), Destination::new(1));
            let done = pure.reserve().and_then(|at| pure.write(at)).and_then(|()| hybrid.append());
            vec![
                Value::exact(pure.messages().into(), 3.0),
                Value::exact(hybrid.messages().into(), 1.0),
                Value::holds(done.is_ok() && pure.places() == hybrid.places()),
            ]
        }),
    ]
}

fn worst() -> u64 {
    dart::all_work().map(|work| work.cycles()).max().unwrap_or(0)
}
