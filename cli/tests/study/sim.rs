//! Tests of `ayre sim`: what it prints and keeps, and its exit status.

use std::process::{Command, Stdio};

use roxmltree::{Document, Node, ParsingOptions};
use rustix::process::{Pid, Signal, kill_process};

use super::Folder;

/// The output of a call that ends with this status.
fn said(status: i32, arguments: &[&str]) -> String {
    super::said(status, &[&["sim"], arguments].concat())
}

const SHORT: [&str; 3] = ["packets=4000", "warmup=400", "replicas=2"];

#[test]
fn a_run_without_a_file_tells_all_of_one_point() {
    let text = said(0, &[&["run"], &SHORT[..]].concat());
    for part in ["verdict      stable", "packets = 4000", "99.9 % within", "on the move", "busiest"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Half of the rate of 2.5 Gb/s is offered.
    let rate = super::number(&text, "offered\n", "Gb/s to each node");
    assert!((rate - 1.25).abs() < 0.05, "{text}");
}

#[test]
fn results_that_were_kept_are_told_as_before() {
    let folder = Folder::new("sim-kept");
    let file = folder.file("loads.toml", "# A star\nload = [0.3, 0.6]\nnodes = [4, 8]\n");
    let [json, csv, again] = ["a.json", "a.csv", "b.csv"].map(|name| folder.0.join(name));
    let [json, csv, again] = [&json, &csv, &again].map(|path| path.to_str().unwrap());
    let kept = ["sweep", &file, "--json", json, "--csv", csv];
    let text = said(0, &[&kept[..], &SHORT].concat());
    assert_eq!(text.lines().count(), 2 + 4, "{text}");
    assert_eq!(text.matches("stable").count(), 4, "{text}");
    assert_eq!(said(0, &["report", json, "--csv", again]), text);
    let [csv, again] = [csv, again].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(csv, again);
    assert!(csv.starts_with("load,nodes,verdict,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 4);
    // One thread gives equal results.
    let one = ["sweep", &file, "--threads", "1"];
    assert_eq!(said(0, &[&one[..], &SHORT].concat()), text);
}

#[test]
fn the_course_of_a_script_is_told_in_all_forms() {
    let folder = Folder::new("sim-script");
    let text = "region data 64 1\nnode 0\n repeat 3\n fetch add data 0 1\n end\n";
    folder.file("count.script", text);
    let file = folder.file("script.toml", "work = 'script'\nscript = 'count.script'\n");
    let [json, csv, html] =
        ["a.json", "a.csv", "a.html"].map(|name| folder.0.join(name).display().to_string());
    let told = said(0, &["run", &file, "--json", &json, "--csv", &csv, "--html", &html]);
    for part in ["verdict      stable", "the script ends after", "3 x fetch: ", "node 0 ends after"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(said(0, &["report", &json]), told);
    let [csv, html] = [csv, html].map(|path| std::fs::read_to_string(path).unwrap());
    let mut lines = csv.lines().map(|line| line.rsplit(',').next().unwrap());
    let us = super::number(&told, "the script ends after", "us");
    let end: f64 = lines.nth(1).unwrap().parse().unwrap();
    assert!((end / 1e3 - us).abs() < 1e-3, "{end} ns in {csv}, {us} us");
    assert!(html.contains("The script") && html.contains("fetch"), "{html}");
    folder.file("count.script", &text.replace("repeat", "repeet"));
    let faulty = said(2, &["run", &file]);
    assert!(faulty.contains("count.script:3: "), "{faulty}");
    folder.file("count.script", "node 0\n receive 1\nnode 1\n compute 1 ns\n");
    let failed = said(3, &["run", &file]);
    assert!(failed.contains("count.script:2: node 0: `receive` waits for ever"), "{failed}");
}

#[test]
fn what_a_network_does_not_carry_has_a_status_of_its_own() {
    let text = said(3, &["sweep", "load=[0.2, 1.5]", "packets=20000", "warmup=2000"]);
    assert!(text.contains("0.2   stable") && text.contains("1.5   unstable"), "{text}");
    assert!(text.contains("point 2 (load = 1.5): "), "{text}");
}

#[test]
fn a_fault_of_the_input_is_told_with_its_place() {
    let folder = Folder::new("sim-faults");
    let faulty = folder.file("faulty.toml", "load = 0.5\n  bufer = '2 KiB'\n");
    let sweep = folder.file("sweep.toml", "seed = 4\nload = [0.1, 0.2]\n");
    let cut = folder.file("cut.json", "{\"format\": 1, \"name\": ");
    for (arguments, place, fault) in [
        (&["run", &faulty][..], format!("{faulty}:2:3"), "is `buffer` meant?"),
        (&["run", &sweep], format!("{sweep}:2:9"), "`load` is a list, which makes a sweep"),
        (&["run", "load=9"], "argument `load=9`".to_owned(), "out of range"),
        (&["run", &sweep, &faulty], faulty.clone(), "is another one"),
        (&["run", "none.toml"], "none.toml".to_owned(), "could not read"),
        (&["report", &cut], cut.clone(), "line 1 column 22"),
        (&["list", "lode"], "lode".to_owned(), "the groups are topology"),
        (
            &["run", "work=interface", "operation=load"],
            "argument `operation=load`".to_owned(),
            "extoll has no operation `load`; it has velo, ",
        ),
    ] {
        let said = said(2, arguments);
        assert!(said.starts_with("ayre: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(&place) && said.contains(fault), "{said}: {place}, {fault}");
    }
}

#[test]
fn a_trace_has_the_packets_on_links() {
    let folder = Folder::new("sim-trace");
    let trace = folder.0.join("trace.json");
    let text = said(0, &[&["run", "--trace", trace.to_str().unwrap()], &SHORT[..]].concat());
    let shown = super::number(&text, "trace", "packets on links");
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let slices = events.iter().filter(|event| event["ph"] == "X").count();
    assert!(slices > 0 && slices as f64 == shown, "{slices} {text}");
}

#[test]
fn an_interface_tells_its_latency_by_parts_and_its_stream() {
    let listed = said(0, &["list", "extoll"]);
    for part in ["put-notified", "1 B to 65536 B", "translation = hit", "section 6.4.1"] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    assert!(!listed.contains("topology") && said(0, &["list"]).contains("\n  grim: GRIM on"));
    let text = said(0, &["run", "work=interface", "operation=put"]);
    let of = |name: &str, unit: &str| super::number(&text, name, unit);
    // Table 9-1: 1990 ns within 5 %.
    assert!((of("latency", " us") / 1.99 - 1.0).abs() < 0.05, "{text}");
    assert!(text.contains(") network trip") && text.contains("initiator: requester is kept"));
    let folder = Folder::new("sim-interface");
    let [csv, html, trace] = ["a.csv", "a.html", "a.json"].map(|name| folder.0.join(name));
    let [csv, html, trace] = [&csv, &html, &trace].map(|path| path.to_str().unwrap());
    let sweep = ["sweep", "work=interface", "operation=get", "size=['8 B', '64 B', '4 KiB']"];
    let text = said(0, &[&sweep[..], &["--csv", csv, "--html", html]].concat());
    assert!(text.contains("bandwidth") && text.contains("network trip"), "{text}");
    let csv = std::fs::read_to_string(csv).unwrap();
    let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name| lines[0].iter().position(|other| *other == name).unwrap();
    for line in &lines[1..] {
        let number = |at: usize| line[at].parse::<u64>().unwrap();
        let parts = lines[0].iter().enumerate().filter(|(_, name)| name.ends_with(" ps"));
        let sum: u64 = parts.map(|(at, _)| number(at)).sum();
        assert_eq!(sum, number(column("latency_ps")), "{line:?}");
    }
    let page = std::fs::read_to_string(html).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let page = Document::parse_with_options(&page, options).unwrap();
    let titles = words(&page, "figcaption");
    assert_eq!(titles.len(), 4, "{titles:?}");
    assert_eq!(titles[0], "Latency of one alone by its parts");
    said(0, &["run", "work=interface", "operation=get", "--trace", trace]);
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().any(|event| event["args"]["name"] == name);
    assert!(named("initiator") && named("responder") && named("items"), "{events:?}");
}

/// All words of a page's elements of this name.
fn words(page: &Document<'_>, name: &str) -> Vec<String> {
    let all = page.descendants().filter(|node| node.tag_name().name() == name);
    let text = |node: Node<'_, '_>| {
        node.descendants().filter_map(|part| part.text().filter(|_| part.is_text())).collect()
    };
    all.map(text).collect()
}

#[test]
fn the_page_of_a_sweep_draws_curves_parts_and_a_look_at_each_point() {
    let folder = Folder::new("sim-page");
    let html = folder.0.join("page.html");
    let mesh = ["sweep", "topology=mesh", "sides=3x3", "size=64 B", "load=[0.2, 0.4]"];
    let drawn = ["--html", html.to_str().unwrap()];
    said(0, &[&mesh[..], &SHORT, &drawn].concat());
    let text = std::fs::read_to_string(&html).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let page = Document::parse_with_options(&text, options).unwrap();
    let titles = words(&page, "figcaption");
    let of_each = [
        "How many packets have which delay",
        "Delay that a share of packets does not exceed",
        "How busy each link is",
        "Packets on their way over time",
        "Links over time",
        "Queues of routers over time",
    ];
    for (title, count) in of_each.map(|title| (title, 2)).into_iter().chain([
        ("Mean delay", 1),
        ("Throughput", 1),
        ("The busiest link", 1),
        ("Mean delay of the stable points by its parts", 1),
    ]) {
        let found = titles.iter().filter(|other| *other == title).count();
        // Percentiles are a curve over all points, too.
        let more = usize::from(title.starts_with("Delay that"));
        assert_eq!(found, count + more, "{title} in {titles:?}");
    }
    // Routers are numbered, and each link of a mesh is drawn: four in each of three rows and
    // columns.
    let maps = page
        .descendants()
        .filter(|node| node.attribute("aria-label") == Some("How busy each link is"));
    for map in maps {
        let count = |name| map.descendants().filter(|node| node.tag_name().name() == name).count();
        assert_eq!((count("polyline"), count("text")), (24, 9));
    }
    let cells = words(&page, "td");
    assert!(cells.iter().any(|cell| cell == "3x3") && cells.iter().any(|cell| cell == "several"));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

/// Whether a process holds this signal back.
fn holds_back(process: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn a_run_that_is_interrupted_gives_what_there_is() {
    let child = Command::new(env!("CARGO_BIN_EXE_ayre"))
        .args(["sim", "sweep", "packets=10000000000", "load=[0.1,0.2]"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !holds_back(child.id(), Signal::INT) {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("stopped: there would be more\n"), "{text}");
    assert!(text.contains("replicas were stopped before their end"), "{text}");
}
