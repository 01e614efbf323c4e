//! The scenario files that teach: each is run in short, and shows what its comment says.
use ayre_sim::extoll::{atu, prototype_clock};
use ayre_sim::host::Host;
use ayre_sim::host::pcie::{Generation, Pcie};
use ayre_sim::report::{Interface, Point, Results, Verdict};
use ayre_sim::scenario::Scenario;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Runs a file with these arguments.
fn run(name: &str, arguments: &[&str]) -> Vec<Point> {
    let path = folder().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let scenario = Scenario::read(&path.display().to_string(), &text, arguments);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let command = if scenario.swept().is_empty() { "run" } else { "sweep" };
    let command = format!("ayre sim {command} sim/scenarios/{name}.toml");
    assert!(text.contains(&command), "{name}: {command}");
    let Results { points, .. } = scenario.run();
    points
}

fn saturation(point: &Point) -> f64 {
    point.saturation.expect("it is looked for").mean
}

fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{got} where {expected} is expected");
}

#[test]
fn every_file_is_run_here() {
    let own = include_str!("lessons.rs");
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap());
    let files: Vec<_> = files.filter(|file| file.file_type().unwrap().is_file()).collect();
    for file in &files {
        let path = file.path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(own.contains(&format!("run(\"{name}\"")), "{name}");
    }
    assert_eq!(files.len(), 17);
}

#[test]
fn one_link() {
    for (point, load) in run("one-link", &["packets=50000"]).iter().zip([0.5, 0.7, 0.9]) {
        close(point.delay_ns.mean / 1638.4, 1.0 + load / (2.0 * (1.0 - load)), 0.08);
    }
}

#[test]
fn shared_counter() {
    let points = run("shared-counter", &[]);
    let course = |point: &Point| point.script.clone().expect("the course of a script");
    let [atomic, lock, queue] = [0, 1, 2].map(|point| course(&points[point]));
    let count = &atomic.operations[0];
    assert_eq!((count.operation.as_str(), count.count), ("fetch", 70));
    // Counts of different nodes overlap: ten round trips are all.
    close(atomic.end_ns, 10.0 * count.mean_ns, 0.1);
    let least = |word| {
        let found = lock.operations.iter().find(|times| times.operation == word);
        found.expect("it is done").least_ns
    };
    // Turns do not overlap. Half of the lock's way and half of the unlock's are the next one's.
    let turn = least("get") + least("atomic") + least("unlock");
    let times = lock.end_ns / (70.0 * turn);
    assert!((1.0..1.1).contains(&times), "{lock:?}");
    assert!(queue.end_ns < atomic.end_ns, "{queue:?} {atomic:?}");
}

#[test]
fn allreduce() {
    let points = run("allreduce", &[]);
    let mean = |at: usize| points[at].script.as_ref().unwrap().operations[0].mean_ns;
    let [[doubling, spread, ring], long] = [0, 3].map(|from| [0, 1, 2].map(|at| mean(from + at)));
    assert!(spread < doubling && 5.0 * doubling < ring, "{doubling} {spread} {ring}");
    let [doubling, spread, ring] = long;
    assert!(2.0 * spread < doubling && ring < doubling, "{doubling} {spread} {ring}");
}

#[test]
fn head_of_line() {
    let points = run("head-of-line", &["packets=40000", "warmup=20000", "replicas=2"]);
    let carried: Vec<_> = points.iter().map(saturation).collect();
    // The resolution is 1 / 128.
    assert!((carried[0] - 0.592).abs() < 0.02 && carried[1] > 0.95, "{carried:?}");
}

#[test]
fn credits() {
    let points = run("credits", &["packets=4000", "warmup=500", "replicas=1"]);
    let carried: Vec<_> = points.iter().map(saturation).collect();
    let unit = 512.0 * 3.2;
    for (carried, packets) in carried.iter().zip([1.0, 1.0, 2.0, 3.0, 4.0, 8.0]) {
        let expected = f64::min(packets * unit / (unit + 4000.0), 1.0);
        assert!((carried - expected).abs() < 0.03, "{carried} {expected}");
    }
}

#[test]
fn cut_through() {
    let points = run("cut-through", &["packets=20000", "replicas=2"]);
    let delays: Vec<_> = points.iter().map(|point| point.delay_ns.mean).collect();
    // A node's own router is passed, too.
    let routers = points[0].hops + 1.0;
    close(delays[1] - delays[0], routers * 51.2, 0.05);
}

#[test]
fn torus_deadlock() {
    let points = run("torus-deadlock", &["packets=30000", "replicas=1"]);
    let verdicts: Vec<_> = points.iter().map(|point| point.verdict.clone()).collect();
    assert_ne!(verdicts[0], Verdict::Deadlocked);
    assert_eq!(verdicts[1], Verdict::Deadlocked);
}

#[test]
fn tornado() {
    let points = run("tornado", &["packets=20000", "warmup=5000", "replicas=2"]);
    let carried: Vec<_> = points.iter().map(saturation).collect();
    assert!((0.75..=1.02).contains(&(7.0 * carried[0])), "{carried:?}");
    assert!(carried[1] > 1.2 * carried[0], "{carried:?}");
    assert!(points[1].hops > points[0].hops, "{} {}", points[0].hops, points[1].hops);
}

#[test]
fn tree_permutation() {
    let points = run("tree-permutation", &["packets=15000", "warmup=5000", "replicas=1"]);
    let carried: Vec<_> = points.iter().map(saturation).collect();
    let [neighbors, others] = [&carried[..2], &carried[2..]];
    assert!(neighbors.iter().all(|carried| *carried > 0.9), "{carried:?}");
    assert!(others.chunks(2).all(|pair| pair[1] > 1.2 * pair[0]), "{carried:?}");
}

#[test]
fn dragonfly() {
    let points = run("dragonfly", &["packets=15000", "warmup=5000", "replicas=1"]);
    let [uniform, uniform_valiant, shift, shift_valiant] =
        [0, 1, 2, 3].map(|at| saturation(&points[at]));
    close(shift, 1.0 / 8.0, 0.1);
    assert!(shift_valiant > 1.5 * shift, "{shift_valiant}");
    assert!(uniform > uniform_valiant, "{uniform} {uniform_valiant}");
}

#[test]
fn hotspot() {
    let points = run("hotspot", &["packets=20000", "warmup=10000", "replicas=2"]);
    let carried: Vec<_> = points.iter().map(saturation).collect();
    for (carried, share) in carried[1..].iter().zip([0.05, 0.1]) {
        let full = 1.0 / (64.0 * share + 1.0 - share);
        assert!((carried - full).abs() < 0.03, "{carried} {full}");
    }
    assert!(carried[0] > 1.5 * carried[1], "{carried:?}");
}

#[test]
fn crossbar() {
    let point = &run("crossbar", &["packets=100000", "warmup=50000"])[0];
    assert_eq!(point.verdict, Verdict::Stable, "{:?}", point.notes);
    let [queued, waited, _] = point.parts.mean_ns(point.packets);
    assert!(queued < 2.0 * waited && waited < 2.0 * queued, "{queued} {waited}");
}

#[test]
fn dissemination() {
    let points = run("dissemination", &[]);
    let ends: Vec<_> =
        points.iter().map(|point| point.schedule.as_ref().unwrap().end_ns.mean).collect();
    for (end, rounds) in ends[..4].iter().zip(3..) {
        assert_eq!(*end, 5542.0 * f64::from(rounds));
    }
    let steps: Vec<_> = ends[4..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Each further round goes further up the tree.
    assert!(steps.iter().all(|step| *step > 3000.0), "{steps:?}");
}

#[test]
fn window() {
    let points = run("window", &["packets=10000", "warmup=2000", "replicas=2"]);
    let carried: Vec<_> = points.iter().map(|point| point.accepted.mean).collect();
    close(carried[1], 2.0 * carried[0], 0.1);
    assert!(carried[6] < 1.1 * carried[4], "{carried:?}");
    for (point, window) in points.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]) {
        let expected = window * 1638.4 / (point.delay_ns.mean + 10_000.0);
        close(point.accepted.mean, expected, 0.02);
    }
}

fn interfaces(points: &[Point]) -> Vec<&Interface> {
    points.iter().map(|point| point.interface.as_ref().unwrap()).collect()
}

#[test]
fn translation_miss() {
    let points = run("translation-miss", &[]);
    for (three, host) in interfaces(&points).chunks(3).zip([Host::HT400, Host::HT1000]) {
        let [hit, miss, kernel] = [three[0], three[1], three[2]];
        let clock = prototype_clock();
        let longer = atu::miss(clock, host.device_read) - clock.span(atu::HIT);
        let picos = miss.latency_ps - hit.latency_ps;
        // Times are whole picoseconds.
        assert!(picos.abs_diff(2 * longer.0) <= 2, "{picos} where 2 x {longer} is expected");
        assert_eq!(miss.part_ps("translation") - hit.part_ps("translation"), picos);
        assert!(kernel.latency_ps > hit.latency_ps && kernel.part_ps("translation") == 0);
        assert!(miss.rate < hit.rate && kernel.rate < miss.rate);
    }
}

#[test]
fn issue() {
    let points = run("issue", &[]);
    let all = interfaces(&points);
    let [trigger, transactional, queue, kernel] = [all[0], all[1], all[2], all[3]];
    let host = Host::HT400;
    let more = |one: &Interface, other: &Interface| one.latency_ps - other.latency_ps;
    assert_eq!(more(trigger, queue), host.device_read.0 + 10_000);
    assert_eq!(more(kernel, queue), host.system_call.0);
    assert!(transactional.latency_ps > queue.latency_ps);
    // The processor has half of the software, and what the command holds it for.
    let half = 150_000.0;
    for (told, held) in [
        (trigger, 2 * host.to_device.0),
        (transactional, 2 * host.to_device.0),
        (queue, host.store.0),
        (kernel, host.store.0 + host.system_call.0),
    ] {
        close(told.rate, 1e12 / (half + held as f64), 1e-3);
    }
}

#[test]
fn pcie() {
    let points = run("pcie", &[]);
    let all = interfaces(&points);
    let at = |generation: usize, long: usize, tags: usize| all[4 * generation + 2 * long + tags];
    let short = |generation| at(generation, 0, 0).latency_ps;
    assert!(short(0) < 2 * short(4) && short(0) > short(4));
    // With many tags each of the first generations doubles the bandwidth.
    for generation in [1, 2] {
        let [before, now] = [generation - 1, generation].map(|one| at(one, 1, 1).bandwidth);
        close(now / before, 2.0, 0.05);
    }
    // With few, a round trip moves 8 reads of 512 B, whatever the generation.
    for (number, generation) in Generation::ALL.into_iter().enumerate().skip(2) {
        let link = Pcie { generation, ..Pcie::GEN3_X16 };
        let trip = link.read_time(512, Host::HT400.memory);
        let few = at(number, 1, 0).bandwidth;
        close(few, 8.0 * 512.0 * 1e12 / trip.0 as f64, 0.01);
        assert!(at(number, 1, 1).bandwidth > 1.4 * few);
    }
}
