//! Results as texts.
use super::*;
use crate::scenario::Scenario;
use std::collections::BTreeMap;

fn results() -> Results {
    let text = "topology = 'mesh'\nsides = '3x3'\nsize = '64 B'\nload = [0.2, 0.4]\n\
                packets = 2000\nwarmup = 200\nreplicas = 3";
    Scenario::from_toml(text).unwrap().run()
}

#[test]
fn json_comes_back() {
    let mut all = results();
    // One replica of few packets has no interval.
    all.points[0].accepted.half_width = f64::INFINITY;
    let text = all.to_json().unwrap();
    assert!(Results::from_json(&text).unwrap() == all, "{text}");
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(matches!(Results::from_json(&newer), Err(ReportError::Format(2))));
    assert!(Results::from_json(&text[..text.len() / 2]).is_err());
}

#[test]
fn csv_has_a_cell_for_each_column() {
    let csv = results().to_csv().unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').count());
    let columns = lines.next().unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), [columns, columns]);
    assert!(csv.starts_with("load,verdict,replicas,packets,delay_ns,"), "{csv}");
    let first = csv.lines().nth(1).unwrap();
    assert!(first.starts_with("0.2,stable,3,"), "{csv}");
    // A run goes on to the end of a window of time, in which a node has a few packets at most.
    let packets: u64 = first.split(',').nth(3).unwrap().parse().unwrap();
    assert!((6000..6000 + 3 * 9 * 4).contains(&packets), "{packets}");
}

#[test]
fn a_point_adds_up() {
    for point in results().points {
        let parts = point.parts;
        assert_eq!(parts.queued_ps + parts.waited_ps + parts.moved_ps, parts.delay_ps);
        let mean = parts.delay_ps as f64 / 1e3 / point.packets as f64;
        assert!((mean / point.delay_ns.mean - 1.0).abs() < 1e-3, "{mean} {:?}", point.delay_ns);
        let binned: u64 = point.histogram.iter().map(|bin| bin.packets).sum();
        let share = binned as f64 / point.packets as f64;
        assert!((0.998..=1.0).contains(&share), "{share}");
        // What is offered is carried, and links are as busy as hops and load demand: each node of
        // 9 sends `load` over `hops` of 24 links.
        let load = point.offered.mean;
        assert!((point.accepted.mean / load - 1.0).abs() < 0.02, "{point:?}");
        let busy = load * 9.0 * point.hops / 24.0;
        assert!((point.links.mean / busy - 1.0).abs() < 0.1, "{} {busy}", point.links.mean);
        assert_eq!((point.links.routers.len(), point.links.each.len()), (9, 24));
        // So are windows, of which the last one is left out.
        let queues = point.queues;
        let count = point.windows.len() as f64;
        let mean = point.windows.iter().map(|window| window.queue_mean).sum::<f64>() / count;
        assert!((mean / queues.mean - 1.0).abs() < 0.1, "{mean} {queues:?}");
        let most = point.windows.iter().map(|window| window.queue_most).max().unwrap();
        assert!(queues.most >= most, "{most} {queues:?}");
        let longest = queues.longest.unwrap();
        assert!(longest.mean >= queues.mean && longest.most <= queues.most, "{queues:?}");
        let ends = point.links.each.iter().map(|link| (link.from, link.to));
        assert!(ends.clone().any(|ends| ends == (longest.from, longest.router)), "{queues:?}");
        for (across, down) in point.links.routers {
            assert!((0.0..=1.0).contains(&across) && (0.0..=1.0).contains(&down));
        }
    }
}

#[test]
fn a_trace_is_json_and_says_what_it_leaves_out() {
    let text = "packets = 500\nwarmup = 100";
    let trace = Scenario::from_toml(text).unwrap().trace(0, 200, &());
    assert_eq!(trace.slices().len(), 200);
    // A star has two links on each way.
    assert!(trace.missed() >= 2 * 500 - 200 - 100, "{}", trace.missed());
    let mut json = Vec::new();
    trace.write(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 200);
    // No link carries two packets at once.
    let mut slices = trace.slices().to_vec();
    slices.sort_by_key(|slice| (slice.router, slice.port, slice.from));
    for pair in slices.windows(2) {
        let [one, other] = [pair[0], pair[1]];
        let same = (one.router, one.port) == (other.router, other.port);
        assert!(!same || one.to <= other.from, "{one:?} {other:?}");
    }
}

/// The values of each counter of a trace, by its router and name.
fn counters(trace: &Trace) -> BTreeMap<(u64, String), Vec<(f64, u64)>> {
    let mut json = Vec::new();
    trace.write(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let mut counters = BTreeMap::<_, Vec<_>>::new();
    for event in json["traceEvents"].as_array().unwrap() {
        if event["ph"] == "C" {
            let name = (event["pid"].as_u64().unwrap(), event["name"].as_str().unwrap().to_owned());
            let value = (event["ts"].as_f64().unwrap(), event["args"]["bytes"].as_u64().unwrap());
            counters.entry(name).or_default().push(value);
        }
    }
    counters
}

#[test]
fn counters_of_a_trace_that_is_cut_say_what_those_of_the_whole_say() {
    let text = "topology = 'torus'\nsides = '4x4'\nload = 0.5\npackets = 2000\nwarmup = 500";
    let scenario = Scenario::from_toml(text).unwrap();
    let [whole, cut] = [1 << 20, 3000].map(|slices| counters(&scenario.trace(0, slices, &())));
    assert_eq!(whole.len(), 16);
    let mut told = 0;
    for (name, values) in &cut {
        assert_eq!(values[..], whole[name][..values.len()], "{name:?}");
        told += values.len();
    }
    assert!(told > 1000, "{told}");
}

#[test]
fn counters_of_a_run_to_its_end_go_up_from_nothing_and_back() {
    let text = "work = 'goal'\ntopology = 'torus'\nsides = '4x4'\nschedule = 'all-to-all'";
    let counters = counters(&Scenario::from_toml(text).unwrap().trace(0, 1 << 20, &()));
    assert_eq!(counters.len(), 16);
    for values in counters.values() {
        assert!(values.len() > 2 && values.last().unwrap().1 == 0, "{values:?}");
    }
}
