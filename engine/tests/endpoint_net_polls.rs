//! What polls do to the program that makes them, where an endpoint has links: alone in its process,
//! since whoever else polls here counts for a crowd.
mod common;
#[path = "endpoint_net/sides.rs"]
mod sides;

use common::system::sleeps;
use common::watchdog::Watchdog;
use sides::{Side, apart, pass};

/// Polls after which an endpoint of a crowd would have slept, many times.
const POLLS: u32 = 1 << 16;

/// A program may poll a thousand times between two messages because it computes in between.
// spec: ENV-5
#[test]
fn who_polls_links_in_vain_is_never_put_to_sleep() {
    let mut watchdog = Watchdog::start(0);
    let [mut near, mut far] = [(); 2].map(|()| Side::open(&apart(true)));
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 0);
    let before = sleeps();
    for _ in 0..POLLS {
        near.poll();
        far.poll();
    }
    let slept = sleeps() - before;
    assert!(slept < 100, "{slept} times in {POLLS} polls");
    pass([&mut near, &mut far], to_far, 1);
    assert!(!watchdog.stop());
}
