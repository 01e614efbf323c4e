//! Tests of the findings of `ayre study` in recordings with planted effects, and of `ayre sim` and
//! `ayre net`.

#[path = "study/net.rs"]
mod net;
#[path = "study/sim.rs"]
mod sim;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use roxmltree::{Document, ParsingOptions};

const SVG: &str = "http://www.w3.org/2000/svg";
/// Members of the planted group.
const MEMBERS: usize = 6;
/// Calls of its recording.
const CALLS: usize = 2000;
/// Links whose load delays a call: how often in a hundred calls, and nanoseconds for each frame.
const PLANTED: [((usize, usize), u64, u64); 2] = [((1, 3), 15, 20_000), ((4, 0), 8, 300_000)];

fn study(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_ayre")).arg("study").args(arguments).output();
    command.unwrap()
}

fn found(arguments: &[&str]) -> String {
    let output = study(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The output of a call that ends with this status: with 2, the error.
fn said(status: i32, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ayre")).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(if status == 2 { output.stderr } else { output.stdout }).unwrap()
}

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ayre-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

fn others(own: usize) -> impl Iterator<Item = usize> {
    (0..MEMBERS).filter(move |to| *to != own)
}

/// The recordings of all members: all links have some traffic, most of them much; that of the
/// planted ones delays the calls, though others do without it then.
fn plant(folder: &Folder) -> Vec<String> {
    let mut dice = Dice(7);
    let head = |own| {
        let name = |what: &'static str| others(own).map(move |to| format!("\t{what}:{own}>{to}"));
        let columns: String = ["sent", "waiting"].into_iter().flat_map(name).collect();
        format!(
            "# ayre recording 1: member {own} of {MEMBERS}\n\
             number\tbegin_ns\ttime_ns\tcollective\tschedule\tbytes{columns}\n"
        )
    };
    let mut texts: Vec<_> = (0..MEMBERS).map(head).collect();
    for number in 0..CALLS {
        let mut time = 350_000 + dice.below(25_000);
        let mut sent = [[0; MEMBERS]; MEMBERS];
        sent.iter_mut().flatten().for_each(|sent| *sent = dice.below(400));
        for ((from, to), often, each) in PLANTED {
            let is_loaded = dice.below(100) < often;
            sent[from][to] = if is_loaded { 150 + dice.below(100) } else { dice.below(10) };
            time += if is_loaded { sent[from][to] * each } else { 0 };
        }
        for (own, text) in texts.iter_mut().enumerate() {
            let _ = write!(text, "{number}\t0\t{}\tAllreduce\tDoubling\t16384", time - own as u64);
            others(own).for_each(|to| write!(text, "\t{}", sent[own][to]).unwrap());
            others(own).for_each(|to| write!(text, "\t{}", sent[own][to] / 3).unwrap());
            text.push('\n');
        }
    }
    let texts = texts.iter().enumerate();
    texts.map(|(own, text)| folder.file(&format!("{own}.tsv"), text)).collect()
}

/// The number in the words behind a name, up to a unit.
fn number(text: &str, name: &str, unit: &str) -> f64 {
    let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("no `{name}` in {text}"));
    let number = rest.split(unit).next().unwrap().trim();
    number.parse().unwrap_or_else(|_| panic!("`{number}` behind `{name}`"))
}

#[test]
fn planted_links_are_found_and_no_others() {
    let folder = Folder::new("planted");
    let files = plant(&folder);
    let plots = folder.0.join("plots");
    let arguments: Vec<_> = files.iter().map(|file| &**file).collect();
    let html = folder.0.join("study.html");
    let drawn = ["--plots", plots.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let text = found(&[&arguments[..], &drawn].concat());
    check_page(&html);
    // The ranking: what is marked is of the planted links, all of it.
    let marked: BTreeSet<_> = text.lines().filter_map(|line| line.strip_prefix("* ")).collect();
    let names: BTreeSet<_> = marked.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let due = ["sent:1>3", "sent:4>0", "waiting:1>3", "waiting:4>0"];
    assert_eq!(names, BTreeSet::from(due), "{text}");
    // Nothing is to be seen of them in the traffic as a whole.
    let chance = number(&text, "beyond chance,", ")");
    assert!(number(&text, "all frames sent", "\n").abs() < chance, "{text}");
    // The median is of calls that are not delayed; the slowest 5 % are by the second link.
    assert!((350.0..376.0).contains(&number(&text, "\nmedian", "us")), "{text}");
    let tail = number(&text, "the others take", "%");
    assert!((50.0..75.0).contains(&tail), "{text}");
    // Clusters: the second link alone, with the first, the first alone.
    let clusters: Vec<_> = text.lines().filter(|line| line.contains("of the time: ")).collect();
    let loaded = |line: &&str| line.split("of the time: ").nth(1).unwrap().to_owned();
    let loaded: BTreeSet<_> = clusters.iter().map(loaded).collect();
    let both = "sent:1>3 waiting:1>3 sent:4>0 waiting:4>0".to_owned();
    let alone = ["sent:4>0 waiting:4>0", "sent:1>3 waiting:1>3"].map(str::to_owned);
    let [second, first] = alone;
    assert_eq!(loaded, BTreeSet::from([both, second, first]), "{text}");
    // Calls from which nothing was learned.
    assert_eq!(number(&text, "foretold for the last", "calls"), 500.0);
    for from in ["from all loads", "from what waits before"] {
        let line = text.lines().find(|line| line.contains(from)).unwrap();
        let [right, blind, error] = [from, "blind:", "within"].map(|name| number(line, name, "%"));
        assert!(right >= 97.0 && blind < 85.0 && error < 4.0, "{text}");
    }
    for name in ["times", "correlations", "slow-1", "slow-2", "slow-3"] {
        check_plot(&plots.join(name).with_extension("svg"));
    }
    // The loaded links come first.
    let first = fs::read_to_string(plots.join("slow-1.svg")).unwrap();
    let document = Document::parse(&first).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name((SVG, "text")));
    let texts = texts.filter_map(|node| node.text().map(str::trim));
    let links: Vec<_> = texts.filter(|text| text.contains('>')).collect();
    assert_eq!(BTreeSet::from([links[0], links[1]]), BTreeSet::from(["sent:4>0", "waiting:4>0"]));
}

/// The page has what is printed.
fn check_page(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&text, options).unwrap();
    let count =
        |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).count();
    assert_eq!((count("figure"), count("table")), (5, 8));
    // The planted links are slow in each of three ways, and all delayed calls are drawn.
    assert!(text.contains("sent:1&gt;3 waiting:1&gt;3 sent:4&gt;0 waiting:4&gt;0"));
    assert!(count("circle") > CALLS * 9 / 10, "{}", count("circle"));
}

/// The file is whole, and nothing is drawn where nobody sees it.
fn check_plot(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let document = Document::parse(&text).unwrap();
    let is_drawn = |name: &str| ["rect", "circle"].contains(&name);
    let drawn = document.descendants().filter(|node| is_drawn(node.tag_name().name()));
    assert!(drawn.count() > 3);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{}", path.display());
}

#[test]
fn calls_are_picked_by_name() {
    let folder = Folder::new("picked");
    let mut text = "# ayre recording 1: member 0 of 1\n\
                    number\tbegin_ns\ttime_ns\tcollective\tschedule\tbytes\n"
        .to_owned();
    for number in 0..100 {
        let (what, how) = if number < 50 { ("Barrier", "Tree") } else { ("Scan", "Ring") };
        let _ = writeln!(text, "{number}\t0\t{}\t{what}\t{how}\t8", 1000 * (1 + number));
    }
    let file = folder.file("one.tsv", &text);
    assert!(found(&[&file]).contains("\nscan-8: 50 calls\n"), "they took the most time");
    assert!(found(&[&file, "--calls", "Barrier-8"]).contains("\nbarrier-8: 50 calls\n"));
    let of_one_host = found(&[&file]);
    assert!(of_one_host.ends_with("no link is to blame\n"), "{of_one_host}");
    let refused = |arguments: &[&str]| {
        let output = study(arguments);
        assert!(output.status.code() == Some(125) && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let unknown = refused(&[&file, "--calls", "scan-9"]);
    assert_eq!(unknown, "ayre: no calls are `scan-9`; there are barrier-8, scan-8\n");
    let few = text.lines().take(30).fold(String::new(), |text, line| text + line + "\n");
    let few = refused(&[&folder.file("few.tsv", &few)]);
    assert_eq!(few, "ayre: barrier-8: 28 calls that all members have recorded; a study needs 40\n");
    let none = refused(&[&folder.file("none.tsv", "no recording\n")]);
    assert!(none.contains("none.tsv: is no recording"), "{none}");
    assert!(refused(&["/nowhere/at/all"]).starts_with("ayre: /nowhere/at/all: "));
}
