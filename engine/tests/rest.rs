//! Ports whose programs sleep in event loops of their own: everything that comes makes the port's
//! descriptor readable, and no wake-up is lost.
mod common;

use ayre::{Config, Fault, Messenger, PeerId, Port, PostOptions, ReceiveError};
use ayre::{RegionOptions, Rights};
use common::net::{self, Protection};
use common::ports::post;
use common::watchdog::Watchdog;
use common::{Executor, iterations};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::AsFd;
use rustix::io::{read, write};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Whether a descriptor is readable now.
fn is_readable(fd: impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() > 0
}

/// Sleeps until a descriptor is readable.
fn sleep(fd: impl AsFd) {
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
}

/// Has a port rest whose program has taken everything.
fn rest(port: &mut Port) {
    while !port.rest() {
        port.progress();
    }
}

fn pair(executor: Executor) -> (Port, Port) {
    let config = |number| Config::new().number(number).mode(executor.mode());
    let (near, mut far) = Port::pair(config(0), config(1)).unwrap();
    if executor == Executor::Thread {
        far.start_engine().unwrap();
    }
    (near, far)
}

/// Has the far port rest, and wakes it by `cause`; `take` takes what has come, if it has.
fn wakes(
    (near, far): (&mut Port, &mut Port),
    cause: impl FnOnce(&mut Port),
    mut take: impl FnMut(&mut Port) -> bool,
) {
    rest(far);
    assert!(!is_readable(&*far) && !take(far), "nothing has come yet");
    cause(near);
    sleep(&*far);
    far.wake();
    while !take(far) {
        far.progress();
    }
    rest(far);
    far.wake();
}

// spec: WAIT-6
#[test]
fn everything_that_comes_wakes_the_program_of_a_resting_port() {
    let mut watchdog = Watchdog::start(0);
    for executor in Executor::ALL {
        let (mut near, mut far) = pair(executor);
        let (to, from) = (PeerId(1), PeerId(0));
        let region = far.alloc(4096, RegionOptions::new()).unwrap();
        let mut queue = far.create_queue(4096).unwrap();
        far.share(from, &region, 0..4096, Rights::all(), 0).unwrap();
        far.share_queue(from, &mut queue, 0).unwrap();
        let remote = near.accept_region(to, 0).unwrap();
        let mut records = near.accept_queue(to, 0).unwrap();
        let mut bytes = [0; 8];
        wakes(
            (&mut near, &mut far),
            |near| near.send(to, 0, &[1]).unwrap(),
            |far| far.try_recv(&mut bytes).unwrap().is_some(),
        );
        wakes(
            (&mut near, &mut far),
            |near| {
                near.put(&remote, 0, &[1; 8], PostOptions::new().completer()).unwrap();
            },
            |far| far.poll_notification().is_some(),
        );
        wakes(
            (&mut near, &mut far),
            |near| near.enqueue(&mut records, &[1]).unwrap(),
            |far| far.dequeue(&mut queue, &mut bytes).unwrap().is_some(),
        );
        wakes(
            (&mut near, &mut far),
            |near| {
                let _last = std::mem::replace(near, Port::open(Config::new()).unwrap());
            },
            |far| match far.recv(&mut bytes, Some(Duration::ZERO)) {
                Err(ReceiveError::PeerDied(_)) => true,
                other => {
                    assert_eq!(other, Err(ReceiveError::TimedOut));
                    !far.is_alive(from)
                }
            },
        );
    }
    assert!(!watchdog.stop());
}

// spec: WAIT-6
#[test]
fn a_port_does_not_rest_while_something_is_to_be_taken() {
    for executor in [Executor::Direct, Executor::Progress] {
        let (mut near, mut far) = pair(executor);
        let mut bytes = [0; 8];
        near.send(PeerId(1), 0, &[1]).unwrap();
        assert!(!far.rest() && !far.rest());
        far.try_recv(&mut bytes).unwrap().unwrap();
        near.notify(PeerId(1), PostOptions::new()).unwrap();
        assert!(!far.rest() && !far.rest());
        far.poll_notification().unwrap();
        rest(&mut far);
        far.wake();
    }
}

/// Calls of a program that rests, as tasks of one thread make them.
// spec: WAIT-6
#[test]
fn calls_during_a_rest_do_not_lose_what_comes() {
    let (mut near, mut far) = pair(Executor::Direct);
    let (to, from) = (PeerId(1), PeerId(0));
    let region = near.alloc(4096, RegionOptions::new()).unwrap();
    near.share(to, &region, 0..4096, Rights::READ, 0).unwrap();
    let remote = far.accept_region(from, 0).unwrap();
    let mut bytes = [0; 8];
    rest(&mut far);
    // A call takes the ring, another one sleeps.
    near.send(to, 0, &[1]).unwrap();
    far.progress();
    assert!(is_readable(&far));
    assert!(matches!(far.wait_notification(Some(Duration::ZERO)), Err(ReceiveError::TimedOut)));
    assert!(is_readable(&far));
    far.wake();
    far.try_recv(&mut bytes).unwrap().unwrap();
    // One that sleeps leaves the port at rest.
    rest(&mut far);
    assert!(matches!(far.wait_notification(Some(Duration::ZERO)), Err(ReceiveError::TimedOut)));
    far.progress();
    assert!(is_readable(&far), "the program looks again");
    far.wake();
    rest(&mut far);
    let waited = far.recv(&mut bytes, Some(Duration::from_micros(1)));
    assert_eq!(waited, Err(ReceiveError::TimedOut));
    near.send(to, 0, &[2]).unwrap();
    far.wake();
    far.try_recv(&mut bytes).unwrap().unwrap();
    // Notifications of the program's own operations.
    rest(&mut far);
    assert!(!is_readable(&far));
    far.get(&remote, 0, &mut bytes, PostOptions::new().requester()).unwrap();
    assert!(is_readable(&far));
    far.wake();
    far.poll_notification().unwrap();
    rest(&mut far);
    let put = far.put(&remote, 0, &[1], PostOptions::new());
    assert_eq!(put.unwrap_err(), Fault::Rights.into());
    far.wake();
}

/// One port of the crowd: sends a word, and goes on when it has been answered.
fn ask(mut port: Port, count: u64, by_notification: bool) {
    let owner = PeerId(0);
    for number in 0..count {
        if by_notification {
            let options = PostOptions::new().value(number);
            post(&mut port, |port| port.notify(owner, options)).unwrap();
        } else {
            port.send_wait(owner, 0, &number.to_le_bytes()).unwrap();
        }
        let mut word = [0; 8];
        port.recv(&mut word, None).unwrap();
        assert_eq!(u64::from_le_bytes(word), number);
    }
    port.leave().unwrap();
}

/// Answers everybody's questions from an event loop with another descriptor in it.
fn answer(port: &mut Port, bell: impl AsFd, (mut questions, mut rings): (u64, u64)) {
    let mut word = [0; 8];
    while questions > 0 || rings > 0 {
        while let Some(message) = port.try_recv(&mut word).unwrap() {
            port.send_wait(message.source, 0, &word).unwrap();
            questions -= 1;
        }
        while let Some(note) = port.poll_notification() {
            port.send_wait(note.source, 0, &note.value.to_le_bytes()).unwrap();
            questions -= 1;
        }
        if questions > 0 && !port.rest() {
            continue;
        }
        let mut fds = [PollFd::new(port, PollFlags::IN), PollFd::new(&bell, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        let has_rung = !fds[1].revents().is_empty();
        port.wake();
        if has_rung {
            let mut count = [0; 8];
            read(&bell, &mut count).unwrap();
            rings -= u64::from_ne_bytes(count);
        }
    }
}

/// Each asks again only when it was answered, so a lost wake-up would leave all asleep.
// spec: WAIT-6, WAIT-3
#[test]
fn no_wake_up_of_a_resting_port_is_lost() {
    const ASKERS: u16 = 4;
    const COUNT: u64 = 1000;
    let mut watchdog = Watchdog::start(0);
    for executor in iterations(3).map(Executor::of) {
        let directory = common::Directory::new();
        let config = |number| Config::new().number(number).spin(ayre::Spin::SHARED);
        let mut port = common::ports::owner(&directory, "owner", executor, config(0));
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        std::thread::scope(|scope| {
            for number in 1..=ASKERS {
                let path = directory.join("owner");
                scope.spawn(move || {
                    let config = config(number).mode(executor.mode());
                    let mut port = Port::open(config).unwrap();
                    port.connect(path).unwrap();
                    ask(port, COUNT, number % 2 == 0);
                });
                port.accept().unwrap();
            }
            let ringer = &bell;
            scope.spawn(move || {
                for _ in 0..COUNT {
                    write(ringer, &1u64.to_ne_bytes()).unwrap();
                    std::thread::yield_now();
                }
            });
            answer(&mut port, &bell, (COUNT * u64::from(ASKERS), COUNT));
        });
    }
    assert!(!watchdog.stop());
}

/// Datagrams are lost, and only the clock says that they are to be sent again.
// spec: WAIT-6, ENV-9
#[test]
fn a_resting_port_serves_its_links_in_time() {
    let mut watchdog = Watchdog::start(0);
    for (protection, engine) in [(Protection::Sealed, false), (Protection::Plain, true)] {
        let options = |seed| {
            let plan = format!("loss=20%,seed={seed}").parse().unwrap();
            protection.options().faults(plan)
        };
        let (mut near, _) = net::open_at(0, options(1));
        let (mut far, at) = net::open_at(1, options(2));
        let (to, _) = net::connect(&mut near, &mut far, at);
        if engine {
            near.start_engine().unwrap();
        }
        let (done, is_done) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut word = [0; 8];
                for _ in 0..50 {
                    far.recv(&mut word, None).unwrap();
                    far.send_wait(PeerId(0), 0, &word).unwrap();
                }
                // What it has sent is sent again until it has come.
                while is_done.try_recv().is_err() {
                    let waited = far.recv(&mut word, Some(Duration::from_millis(1)));
                    assert_eq!(waited, Err(ReceiveError::TimedOut));
                }
            });
            let mut word = [0; 8];
            for number in 0..50_u64 {
                near.send_wait(to, 0, &number.to_le_bytes()).unwrap();
                while near.try_recv(&mut word).unwrap().is_none() {
                    if near.rest() {
                        sleep(&near);
                        near.wake();
                    }
                }
                assert_eq!(word, number.to_le_bytes());
            }
            done.send(()).unwrap();
        });
    }
    assert!(!watchdog.stop());
}

/// Runs a messenger in an event loop while a condition holds.
fn serve(messenger: &mut Messenger<u64>, state: &mut u64, holds: impl Fn(u64) -> bool) {
    while holds(*state) {
        if messenger.rest(state) {
            sleep(&*messenger);
            messenger.wake();
        } else if holds(*state) {
            let waited = messenger.wait(state, Some(Duration::ZERO));
            assert!(matches!(waited, Ok(_) | Err(ReceiveError::TimedOut)), "{waited:?}");
        }
    }
}

/// Handlers answer with more than a lane holds, so that some is kept.
// spec: WAIT-6, AM-8
#[test]
fn messengers_in_event_loops_run_handlers_and_send_what_was_kept() {
    const ROUNDS: u64 = 2000;
    const EACH: u64 = 8;
    let mut watchdog = Watchdog::start(0);
    let (near, far) = pair(Executor::Direct);
    let [mut near, mut far] = [near, far].map(Messenger::<u64>::new);
    let register = |messenger: &mut Messenger<u64>| {
        let count = messenger.register("count", |count: &mut u64, _, [], _| *count += 1).unwrap();
        messenger
            .register("ask", move |asked: &mut u64, call, [], _| {
                *asked += 1;
                for _ in 0..EACH {
                    call.reply(count, [], &[7; 900]).unwrap();
                }
            })
            .unwrap()
    };
    let ask = register(&mut near);
    register(&mut far);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut asked = 0;
            serve(&mut far, &mut asked, |asked| asked < ROUNDS);
            far.flush(&mut asked);
            // Its port stays until everything was taken.
            while far.wait(&mut asked, None).is_ok() {}
        });
        let mut answers = 0;
        for round in 1..=ROUNDS {
            near.call(&mut answers, PeerId(1), ask, [], &[]).unwrap();
            if round % 100 == 0 {
                serve(&mut near, &mut answers, |answers| answers < round * EACH);
            }
        }
        assert_eq!(answers, ROUNDS * EACH);
        drop(near);
    });
    assert!(!watchdog.stop());
}
