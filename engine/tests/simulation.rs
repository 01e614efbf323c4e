//! Simulated networks: what they promise of time, and that a run can be repeated.
mod common;
#[path = "simulation/endpoints.rs"]
mod endpoints;
#[path = "simulation/ports.rs"]
mod ports;
#[path = "simulation/streams.rs"]
mod streams;
#[path = "simulation/waits.rs"]
mod waits;

use ayre::network::Partition;
use ayre::{Config, NetOptions, PeerId, Port, ReceiveError, SetupError, Simulation};
use common::watchdog::Watchdog;
use std::time::Duration;

const LATENCY: Duration = Duration::from_micros(3);
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Messages from each port to each.
const MESSAGES: u8 = 100;
/// Polls of both ports after which what does not come is taken never to.
const ROUNDS: usize = 1_000_000;

fn mesh(simulation: &Simulation, options: &NetOptions, count: u16) -> Vec<Port> {
    let configs = (0..count).map(|number| Config::new().number(number));
    simulation.mesh(options, configs).expect("all connect")
}

/// Takes all messages that have come; how many.
fn take(port: &mut Port, next: &mut [u8]) -> usize {
    let mut byte = [0; 8];
    let mut count = 0;
    while let Some(message) = port.try_recv(&mut byte).expect("it is long enough") {
        let next = &mut next[message.source.index()];
        assert_eq!(byte[0], *next, "in order, once");
        (*next, count) = (*next + 1, count + 1);
    }
    count
}

/// Sends from each port to each, polls all in turn until all has come, and says what the network
/// has done: its course, its time, its datagrams.
fn course_of(options: &NetOptions) -> (u64, Duration, u64) {
    let simulation = Simulation::new(LATENCY);
    let mut ports = mesh(&simulation, options, 4);
    let count = ports.len();
    let mut next = vec![vec![0; count]; count];
    let (mut sent, mut missing) = (0, count * (count - 1) * usize::from(MESSAGES));
    while missing > 0 {
        for (own, port) in ports.iter_mut().enumerate() {
            for to in (0..count as u16).filter(|to| usize::from(*to) != own && sent < MESSAGES) {
                port.send(PeerId(to), 0, &[sent]).expect("there is room");
            }
            port.progress();
            missing -= take(port, &mut next[own]);
        }
        sent = MESSAGES.min(sent + 1);
    }
    (simulation.course(), simulation.now(), simulation.datagrams())
}

// spec: NET-8, NET-9
#[test]
fn the_same_seeds_take_the_same_course() {
    let bad = "loss=10%,dup=3%,reorder=5%,corrupt=2%,jitter=20us,rate=1Gbit";
    for options in [NetOptions::plain(), NetOptions::sealed(KEY).expect("a key")] {
        let run = |seed: u64| {
            let plan = format!("{bad},seed={seed}").parse().expect("a plan");
            course_of(&options.clone().faults(plan))
        };
        let first = run(1);
        assert_eq!(first, run(1));
        assert_ne!(first, run(2));
    }
}

// spec: NET-8, NET-9
#[test]
fn only_datagrams_take_simulated_time() {
    let simulation = Simulation::new(LATENCY);
    let [mut near, mut far] = pair(&simulation, &NetOptions::plain());
    for _ in 0..100 {
        let (begin, before) = (simulation.now(), simulation.datagrams());
        near.send(PeerId(1), 0, b"now").expect("there is room");
        while simulation.datagrams() == before {
            assert!(simulation.now() < begin + LATENCY);
            near.progress();
            far.progress();
        }
        assert_eq!(simulation.now() - begin, LATENCY);
        let mut text = [0; 8];
        let come = (0..ROUNDS).find_map(|_| far.try_recv(&mut text).expect("it is long enough"));
        assert!(come.is_some_and(|come| come.len == 3));
        settle(&mut near, &mut far);
    }
}

fn pair(simulation: &Simulation, options: &NetOptions) -> [Port; 2] {
    let ports = mesh(simulation, options, 2);
    ports.try_into().expect("two ports")
}

/// Polls both until nothing more is posted, and what was said of it has been heard.
fn settle(near: &mut Port, far: &mut Port) {
    for _ in 0..32 {
        near.progress();
        far.progress();
    }
}

// spec: NET-9
#[test]
fn time_stands_still_while_a_port_has_to_look() {
    let simulation = Simulation::new(LATENCY);
    let [mut near, mut far] = pair(&simulation, &NetOptions::plain());
    settle(&mut near, &mut far);
    // Until something is due at the near port, of which there is always something: its link shows
    // that it is alive.
    for _ in 0..16 {
        far.progress();
    }
    let stands = simulation.now();
    for _ in 0..8 {
        far.progress();
        assert_eq!(simulation.now(), stands);
    }
    settle(&mut near, &mut far);
    assert!(simulation.now() > stands);
}

// spec: NET-10, WIRE-7
#[test]
fn a_peer_that_does_not_poll_is_not_declared_dead() {
    let silence = Duration::from_millis(50);
    let simulation = Simulation::new(LATENCY);
    let [mut near, mut far] = pair(&simulation, &NetOptions::plain().silence(silence));
    near.send(PeerId(1), 0, b"are you there?").expect("there is room");
    let end = simulation.now() + 4 * silence;
    while simulation.now() < end {
        near.progress();
        std::thread::yield_now();
    }
    assert!(near.is_alive(PeerId(1)), "others have looked for it");
    let mut text = [0; 32];
    let come = (0..ROUNDS).find_map(|_| far.try_recv(&mut text).expect("it is long enough"));
    assert!(come.is_some());
}

/// Nothing but signs of life, on a network that loses every fifth: for the fifty minutes that a
/// thousand silences are.
// spec: LINK-17
#[test]
fn an_idle_link_outlives_much_loss() {
    let simulation = Simulation::new(LATENCY);
    let options = NetOptions::plain().faults("loss=20%,seed=3".parse().expect("a plan"));
    let [mut near, mut far] = pair(&simulation, &options);
    while simulation.now() < Duration::from_secs(3000) {
        settle(&mut near, &mut far);
        assert!(near.is_alive(PeerId(1)) && far.is_alive(PeerId(0)), "{:?}", simulation.now());
    }
}

// spec: NET-9, LINK-17
#[test]
fn a_partitioned_peer_is_declared_dead_without_real_waiting() {
    let (simulation, cable) = (Simulation::new(LATENCY), Partition::new());
    let hour = Duration::from_secs(3600);
    let options = NetOptions::plain().silence(hour).partition(&cable);
    let [mut near, mut far] = pair(&simulation, &options);
    cable.cut();
    let begin = simulation.now();
    let is_over = |near: &Port, far: &Port| !near.is_alive(PeerId(1)) && !far.is_alive(PeerId(0));
    let over = (0..ROUNDS).find(|_| {
        near.progress();
        far.progress();
        is_over(&near, &far)
    });
    assert!(over.is_some(), "both notice");
    let after = simulation.now() - begin;
    assert!(
        after >= hour / 2 && after <= 2 * hour,
        "the silence is of the network's clock: {after:?}"
    );
}

#[test]
fn a_connect_to_an_unused_address_times_out() {
    let simulation = Simulation::new(LATENCY);
    let mut port = Port::open(Config::new()).expect("a port opens");
    let at = "10.0.0.1:7".parse().expect("an address");
    let options = NetOptions::plain().simulated(&simulation).at(at);
    assert_eq!(port.open_net(&options).expect("it is free"), [at]);
    let nobody = "10.0.0.2:7".parse().expect("an address");
    let asked = port.connect_net(&[nobody]);
    assert!(matches!(asked, Err(SetupError::TimedOut(_))), "{asked:?}");
}

#[test]
fn an_address_has_one_port_at_a_time() {
    let simulation = Simulation::new(LATENCY);
    let open = || {
        let mut port = Port::open(Config::new()).expect("a port opens");
        let at = "10.0.0.1:7".parse().expect("an address");
        port.open_net(&NetOptions::plain().simulated(&simulation).at(at)).map(|_| port)
    };
    let first = open().expect("it is free");
    assert!(matches!(open(), Err(SetupError::Os { .. })));
    drop(first);
    open().expect("it is free again");
}

/// The other one's program does not poll while this one waits; it is served for it.
// spec: NET-9
#[test]
fn waits_in_one_thread_end_at_the_same_times() {
    let run = || {
        let simulation = Simulation::new(LATENCY);
        let options = NetOptions::plain().faults("loss=20%,seed=5".parse().expect("a plan"));
        let [mut near, mut far] = pair(&simulation, &options);
        let (mut text, hour) = ([0; 8], Duration::from_secs(3600));
        let ends = [(); 20].map(|()| {
            near.send(PeerId(1), 0, b"ask").expect("there is room");
            far.recv(&mut text, Some(hour)).expect("it comes");
            far.send(PeerId(0), 0, b"tell").expect("there is room");
            near.recv(&mut text, Some(hour)).expect("it comes");
            near.flush(PeerId(1)).expect("nothing is under way");
            simulation.now()
        });
        (ends, simulation.course(), simulation.datagrams())
    };
    assert_eq!(run(), run());
}

/// The system's clock decides when that call returns, and not what the network has done by then.
// spec: NET-9, NET-17
#[test]
fn a_wait_that_times_out_lasts_its_real_duration() {
    let run = || {
        let simulation = Simulation::new(LATENCY);
        let options = NetOptions::plain().faults("loss=20%,seed=5".parse().expect("a plan"));
        let [mut near, mut far] = pair(&simulation, &options);
        let mut text = [0; 8];
        let ends = [1, 50, 999, 20_000].map(|micros| {
            near.send(PeerId(1), 0, b"ask").expect("there is room");
            let (begin, time) = (simulation.now(), Duration::from_micros(micros));
            let waited = near.recv(&mut text, Some(time));
            assert!(matches!(waited, Err(ReceiveError::TimedOut)), "{waited:?}");
            assert_eq!(simulation.now(), begin + time);
            let waited = far.wait_notification(Some(time));
            assert!(matches!(waited, Err(ReceiveError::TimedOut)), "{waited:?}");
            assert_eq!(simulation.now(), begin + 2 * time);
            far.recv(&mut text, None).expect("it comes");
            simulation.now()
        });
        (ends, simulation.course(), simulation.datagrams())
    };
    let first = run();
    (0..8).for_each(|_| assert_eq!(first, run()));
}

/// The network's time is at the end of the wait by then, and goes on for who sends.
// spec: NET-17
#[test]
fn a_message_sent_late_by_network_time_ends_a_wait() {
    let mut watchdog = Watchdog::start(0);
    let (simulation, hour) = (Simulation::new(LATENCY), Duration::from_secs(3600));
    let [mut near, mut far] = pair(&simulation, &NetOptions::plain().silence(2 * hour));
    let end = simulation.now() + hour;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while simulation.now() < end {
                std::thread::yield_now();
            }
            far.send(PeerId(0), 0, b"late").expect("there is room");
            far.flush(PeerId(0)).expect("it arrives");
        });
        let mut text = [0; 8];
        near.recv(&mut text, Some(hour)).expect("an hour has not passed for the system");
    });
    assert!(!watchdog.stop());
}

/// Each of several ports connects from a thread of its own, while the one that they connect with
/// accepts in this one; those that are connected are polled by nobody.
// spec: NET-10, NET-17
#[test]
fn ports_connect_from_threads_one_after_the_other() {
    let simulation = Simulation::new(LATENCY);
    let options = NetOptions::plain().simulated(&simulation);
    let open = |number| {
        let mut port = Port::open(Config::new().number(number)).expect("a port opens");
        let at = port.open_net(&options).expect("an address");
        (port, at)
    };
    let (mut target, at) = open(0);
    let mut others = Vec::new();
    for number in 1..4 {
        let connected = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                let (mut port, _) = open(number);
                port.connect_net(&at).map(|_| port)
            });
            let accepted = target.accept();
            (connecting.join().expect("no panic"), accepted)
        });
        assert_eq!(connected.1.expect("one connects"), PeerId(number));
        others.push(connected.0.expect("it is accepted"));
    }
}
