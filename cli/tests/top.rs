//! Tests of the tool's view of links, beside the ports' own reports.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use ayre::network::{BuffersReport, LinkReport, WireReport};
use ayre::{Config, NetOptions, PeerId, Port};
use serde_json::Value;

/// A key that everybody knows.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn ayre(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ayre")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Two ports of this process with a link between them, over which something has gone.
fn linked(numbers: [u16; 2], options: &NetOptions) -> [Port; 2] {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let [mut near, mut far] = numbers.map(|number| {
        let mut port = Port::open(Config::new().number(number)).unwrap();
        let addresses = port.open_net(&options.clone().at(local)).unwrap();
        (port, addresses)
    });
    thread::scope(|scope| {
        scope.spawn(|| near.0.connect_net(&far.1).unwrap());
        far.0.accept().unwrap();
    });
    let [mut near, mut far] = [near.0, far.0];
    for _ in 0..100 {
        near.send(PeerId(numbers[1]), 0, b"what is counted").unwrap();
        while far.try_recv(&mut [0; 64]).unwrap().is_none() {
            near.progress();
        }
    }
    let is_at_rest = |port: &Port| port.links().iter().all(|link| link.in_flight == 0);
    while !is_at_rest(&near) || !is_at_rest(&far) {
        near.progress();
        far.progress();
    }
    [near, far]
}

/// The reports on this process's ports of these numbers.
fn shown(text: &str, numbers: [u16; 2]) -> [WireReport; 2] {
    let seen: Value = serde_json::from_str(text).unwrap();
    let ports: Vec<WireReport> = serde_json::from_value(seen["ports"].clone()).unwrap();
    numbers.map(|number| {
        let is_meant = |port: &&WireReport| {
            port.process == std::process::id() && port.number == usize::from(number)
        };
        ports.iter().find(is_meant).unwrap_or_else(|| panic!("no port {number} in {text}")).clone()
    })
}

/// The fields that do not change while nothing is posted.
fn lasting(link: &LinkReport) -> Value {
    let mut link = serde_json::to_value(link).unwrap();
    for field in ["told", "silent_ns", "round_trip_ns", "variation_ns", "timeout_ns", "window"] {
        assert!(link.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    for path in link["paths"].as_array_mut().unwrap() {
        // Those without a payload are chosen a path for, too.
        path.as_object_mut().unwrap().remove("sent");
    }
    link
}

fn folder() -> PathBuf {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| "/tmp".into(), PathBuf::from);
    let base = if base.is_dir() { base } else { "/tmp".into() };
    base.join(format!("ayre-{}", fs::metadata("/proc/self").unwrap().uid()))
}

fn windows() -> Vec<String> {
    let own = format!("{}-", std::process::id());
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.trim_start_matches('.').starts_with(&own)).collect()
}

// spec: WIRE-8, WIRE-10
#[test]
fn links_are_shown_as_the_ports_tell_them() {
    let numbers = [1, 2];
    let ports = linked(numbers, &NetOptions::sealed(KEY).unwrap());
    let own = || ports.each_ref().map(|port| port.links().iter().map(lasting).collect::<Vec<_>>());
    let is_same = |_: &i32| {
        let before = own();
        let seen = shown(&ayre(&["info", "--links", "--json"]), numbers);
        let seen = seen.map(|port| port.links.iter().map(lasting).collect::<Vec<_>>());
        // The keeper may have sent a last word on its way meanwhile.
        let is_quiet = before == own();
        assert!(!is_quiet || seen == before, "{seen:?} is shown of {before:?}");
        is_quiet
    };
    assert!((0..20).any(|round| is_same(&round)), "the link does not come to rest");
    let [near, far] = ports.each_ref().map(|port| port.links().remove(0));
    assert_eq!((near.peer, far.peer), (2, 1));
    assert!(near.is_sealed && near.sent >= 100 && near.arrived >= 100, "{near:?}");
    assert_eq!((near.paths[0].from, near.paths[0].to), (far.paths[0].to, far.paths[0].from));
    assert!(near.round_trip_ns.is_some() && near.window > 0.0 && near.credit[0].room > 0);
    let reports = ports.each_ref().map(|port| port.wire_report().unwrap());
    assert!(reports.iter().all(|port| port.nets[0].sent >= 100 || port.nets[0].received >= 100));
}

// spec: WIRE-8
#[test]
fn tables_have_a_line_for_each_link() {
    let numbers = [31, 32];
    let mut ports = linked(numbers, &NetOptions::plain());
    ports[0].resync(PeerId(numbers[1])).unwrap();
    let process = std::process::id().to_string();
    let pairs = [["31", "32"], ["32", "31"]];
    for arguments in [&["info", "--links"][..], &["top", "--once", "--interval", "0.2"]] {
        let text = ayre(arguments);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for (pair, port) in pairs.iter().zip(&ports) {
            let [rank, peer] = *pair;
            let state = row(&text, &["process", "program", "rank"], &[&process, "*", rank, peer]);
            assert_eq!(state[4..8], ["open,", "plain", "1", "live"], "{text}");
            let counts = row(&text, &["process", "rank"], &[&process, rank, peer]);
            let LinkReport { early, resyncs, .. } = port.links()[0];
            assert!(resyncs > 0, "either side has noticed");
            let BuffersReport { in_all, given, reserved, .. } = port.wire_report().unwrap().buffers;
            let buffers = format!("{given}/{reserved}/{}", in_all - given - reserved);
            // Credit lies between them.
            let told = [counts[counts.len() - 4], counts[counts.len() - 3]];
            assert_eq!(told, [resyncs.to_string(), early.to_string()], "{text}");
            assert_eq!(counts.last(), Some(&&*buffers), "{text}");
        }
    }
}

// spec: WIRE-8
#[test]
fn a_page_has_the_links() {
    let _ports = linked([71, 72], &NetOptions::plain());
    let path = std::env::temp_dir().join(format!("ayre-top-{}.html", std::process::id()));
    let told = ayre(&["top", "--interval", "0.05", "--html", path.to_str().unwrap()]);
    let html = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(told.is_empty(), "{told}");
    for link in [": 71 to 72<", ": 72 to 71<"] {
        assert!(html.contains(link), "{link} in {html}");
    }
    assert!(html.contains("<figcaption>Round trip</figcaption>"));
}

/// The words of the line that begins with these, in the table whose heads begin with those. A star
/// is any word.
fn row<'a>(text: &'a str, heads: &[&str], begins: &[&str]) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let below = lines.skip_while(|line| !line.starts_with(heads));
    let is_same = |(word, wanted): (&&str, &&str)| *wanted == "*" || word == wanted;
    let is_it =
        |line: &Vec<&str>| line.len() >= begins.len() && line.iter().zip(begins).all(is_same);
    below
        .take_while(|line| !line.is_empty())
        .find(is_it)
        .unwrap_or_else(|| panic!("{begins:?} in {text}"))
}

// spec: WIRE-10
#[test]
fn stats_sockets_of_closed_and_dead_ports_are_removed() {
    let ports = linked([41, 42], &NetOptions::plain());
    let folder_mode = fs::symlink_metadata(folder()).unwrap();
    assert_eq!(folder_mode.mode() & 0o170_777, 0o040_700, "a folder of one user");
    let left = format!("{}-999999.sock", std::process::id());
    // A process that is killed leaves as much.
    drop(UnixListener::bind(folder().join(&left)).unwrap());
    ayre(&["info", "--links", "--json"]);
    let during = windows();
    assert!(!during.contains(&left), "{during:?}");
    let identities = ports.each_ref().map(|port| port.wire_report().unwrap().number);
    assert_eq!(identities, [41, 42]);
    drop(ports);
    // Ports of other tests may have come and gone; these two have gone.
    let text = ayre(&["info", "--links", "--json"]);
    let seen: Value = serde_json::from_str(&text).unwrap();
    let is_ours = |port: &Value| {
        port["process"] == std::process::id() && identities.iter().any(|own| port["number"] == *own)
    };
    assert!(!seen["ports"].as_array().unwrap().iter().any(is_ours), "{text}");
    assert!(during.iter().filter(|name| !windows().contains(name)).count() >= 2);
}

// spec: WIRE-10
#[test]
fn a_silent_reader_of_statistics_does_not_delay_others() {
    let numbers = [51, 52];
    let mut ports = linked(numbers, &NetOptions::plain());
    let mine: Vec<_> = windows();
    // They connect everywhere, and read nothing, or leave at once.
    let connect = |name: &String| UnixStream::connect(folder().join(name));
    let _silent: Vec<_> = (0..3).flat_map(|_| mine.iter().map(connect)).collect();
    (0..3).for_each(|_| mine.iter().for_each(|name| drop(connect(name))));
    let text = (0..10).map(|_| ayre(&["info", "--links", "--json"]));
    let found = text.into_iter().find(|text| text.contains("\"number\": 51"));
    shown(&found.expect("the port answers again"), numbers);
    let [near, far] = &mut ports;
    near.send(PeerId(52), 0, b"all the while").unwrap();
    while far.try_recv(&mut [0; 64]).unwrap().is_none() {
        near.progress();
    }
}
