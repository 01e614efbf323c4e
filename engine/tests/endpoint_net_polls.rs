//! The effect of polls on the program that makes them, where an endpoint has links. The test is
//! alone in its process, since every other thread that polls here counts for a crowd.
mod common;
#[path = "endpoint_net/sides.rs"]
mod sides;

use common::system::sleeps;
use common::watchdog::Watchdog;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sides::{Side, apart, pass};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Polls after which an endpoint of a crowd would have slept, many times.
const POLLS: u32 = 1 << 16;

/// Keeps the calling thread, and its children, on one of its processors.
fn stay_on_one() {
    let all = sched_getaffinity(Pid::from_raw(0)).expect("a set");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("this one"));
    sched_setaffinity(Pid::from_raw(0), &one).expect("one of the former set");
}

/// For many times longer than a poll.
fn compute() {
    (0..20_000_u64).for_each(|step| _ = black_box(step));
}

/// A program may poll a thousand times between two messages because it computes in between. One
/// that waits sleeps, where another one computes on its processor: what comes wakes it, and it need
/// not wait for its next time slice.
// spec: ENV-5
#[test]
fn polls_of_links_sleep_where_a_program_waits_beside_one_that_computes() {
    let mut watchdog = Watchdog::start(0);
    let [mut near, mut far] = [(); 2].map(|()| Side::open(&apart(true)));
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 0);
    stay_on_one();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let before = sleeps();
        for _ in 0..POLLS / 4 {
            near.poll();
            far.poll();
            compute();
        }
        let slept = sleeps() - before;
        let mut rounds = 0;
        while sleeps() - before < slept + 100 && rounds < 100 {
            (0..POLLS / 4).for_each(|_| near.poll());
            rounds += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(slept < 100, "{slept} times while it computed");
        assert!(rounds < 100, "{} times while it waited", sleeps() - before - slept);
    });
    pass([&mut near, &mut far], to_far, 1);
    assert!(!watchdog.stop());
}
