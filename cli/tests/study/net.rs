//! Tests of `ayre net route`: ways that lead to their ends, deadlocks, and faults of files.

use std::collections::HashMap;
use std::fmt::Write;

use ayre_sim::topology::{Named, Topology};

use super::Folder;

/// The output of a call that ends with this status.
fn said(status: i32, arguments: &[&str]) -> String {
    super::said(status, &[&["net", "route"], arguments].concat())
}

/// A ring of routers `r0`, `r1` and so on: port 0 leads up, port 1 down, port 2 to `n0`, `n1` ...
fn ring(count: usize) -> String {
    let mut text = String::new();
    (0..count).for_each(|router| writeln!(text, "router r{router}").unwrap());
    for router in 0..count {
        writeln!(text, "link r{router}:0 r{}:1", (router + 1) % count).unwrap();
        writeln!(text, "node n{router} r{router}:2").unwrap();
    }
    text + "end\n"
}

/// The number behind a letter.
fn number(name: &str) -> usize {
    name[1..].parse().unwrap()
}

#[test]
fn tables_and_strings_lead_from_each_node_to_each_other() {
    let folder = Folder::new("net-tables");
    let count = 6;
    let file = folder.file("ring.net", &ring(count));
    let text = said(0, &[&file, "--policy", "up-down"]);
    let mut parts = text.split("\n\n").skip(1);
    let mut table = HashMap::new();
    for line in parts.next().unwrap().lines().skip(1) {
        let mut words = line.split_whitespace();
        let (router, port) = (number(words.next().unwrap()), words.next().unwrap());
        words.for_each(|to| assert!(table.insert((router, number(to)), port).is_none(), "{line}"));
    }
    let strings: Vec<_> = parts.next().unwrap().lines().skip(1).collect();
    assert_eq!(strings.len(), count * (count - 1));
    for line in strings {
        let words: Vec<_> = line.split_whitespace().collect();
        let [from, to] = [0, 1].map(|word| number(words[word]));
        // The ports that the tables take, and those of the string.
        let (mut at, mut taken) = (from, vec![]);
        while taken.last() != Some(&"2") {
            taken.push(table[&(at, to)]);
            let step = HashMap::from([("0", 1), ("1", count - 1), ("2", 0)])[taken.last().unwrap()];
            at = (at + step) % count;
        }
        assert_eq!(at, to, "{line}");
        let runs = words[3..].iter().map(|run| run.split([':', '+']).collect::<Vec<_>>());
        let hops = runs.flat_map(|run| vec![run[0]; run[1].parse().unwrap()]);
        assert_eq!(hops.collect::<Vec<_>>(), taken, "{line}");
    }
    let one = said(0, &[&file, "--policy", "up-down", "--of", "n4"]);
    assert_eq!(one.matches("\nr4 ").count(), 3, "{one}");
    assert_eq!(one.matches("\nn4 ").count(), count - 1, "{one}");
    assert!(!one.contains("\nr3 ") && !one.contains("\nn3 "), "{one}");
}

/// Dally and Seitz 1987: shortest ways round a ring wait for each other, and do not when it is cut
/// or when they go up and down a tree.
#[test]
fn a_ring_may_deadlock_unless_it_is_cut() {
    let folder = Folder::new("net-ring");
    let file = folder.file("ring.net", &ring(5));
    let text = said(3, &[&file]);
    assert!(text.contains("possible, 5 channels wait in a ring"), "{text}");
    assert_eq!(text.matches(", channel 0\n").count(), 5, "{text}");
    let text = said(3, &[&file, "--channels", "2"]);
    assert!(text.contains("with 2 virtual channels: possible"), "{text}");
    assert!(text.contains("with 1 virtual channel: possible"), "{text}");
    for (arguments, links) in [
        (&["--without", "r4--r0"][..], "8 links that go one way each, 2 failed"),
        (&["--without", "r2:0"], "8 links that go one way each, 2 failed"),
        (&["--policy", "up-down"], "10 links that go one way each, 0 failed"),
    ] {
        let text = said(0, &[&[&*file], arguments].concat());
        assert!(text.contains("with 1 virtual channel: none") && text.contains(links), "{text}");
    }
    // Two cuts make two parts, of two routers and of three.
    let text = said(3, &[&file, "--without", "r4--r0,r2:1"]);
    assert!(text.contains("no way       12 pairs of nodes: n0 to n2 is the first"), "{text}");
}

/// Dally and Seitz 1987: dimension order deadlocks in the rings of a torus, and does not with a
/// second virtual channel behind one link of each.
#[test]
fn the_rings_of_a_torus_need_a_second_virtual_channel() {
    let folder = Folder::new("net-torus");
    let torus = Named::by_number(Topology::torus(&[5, 5]).unwrap());
    let file = folder.file("torus.net", &torus.to_text());
    let policy = ["--policy", "dimension-order", "--channels", "2"];
    let text = said(0, &[&[&*file], &policy[..]].concat());
    assert!(text.contains("with 2 virtual channels: none"), "{text}");
    assert!(text.contains("with 1 virtual channel: possible, 5 channels wait"), "{text}");
    // From column 0 over the last link of its row: a hop on each channel, then to the node.
    let line = text.lines().find(|line| line.starts_with("n0  ") && line.contains("n3  "));
    assert!(line.is_some_and(|line| line.ends_with("1:1+1 4:1+0")), "{line:?}");
    let text = said(2, &[&*file, "--policy", "dimension-order"]);
    assert!(text.contains("needs at least 2 virtual channels"), "{text}");
    // A torus that lacks a link is none.
    let cut = [&policy[..], &["--without", "r0:0"]].concat();
    let text = said(2, &[&[&*file], &cut[..]].concat());
    assert!(text.contains("does not fit this topology"), "{text}");
}

/// Each link of a line carries the pairs of the nodes before it and behind it.
#[test]
fn loads_are_as_counted_by_hand() {
    let folder = Folder::new("net-loads");
    let file = folder.file("ring.net", &ring(6));
    let text = said(0, &[&file, "--without", "r5--r0"]);
    assert!(text.contains("9 ways over r2:0 -> r3:1; 7.00 in the mean, 5 at least"), "{text}");
    assert!(text.contains("ways         30, of 2.33 links in the mean, 5 at most"), "{text}");
}

#[test]
fn a_topology_written_as_dot_is_the_same() {
    let folder = Folder::new("net-dot");
    let file = folder.file("ring.net", &ring(5));
    let dot = folder.file("ring.txt", &said(0, &[&file, "--dot"]));
    let [one, other] = [&file, &dot].map(|file| said(3, &[file]).replace(file.as_str(), ""));
    assert_eq!(one, other);
}

#[test]
fn a_fault_of_the_input_is_told_with_its_place() {
    let folder = Folder::new("net-faults");
    let text = folder.file("a.net", "router a\nlink a b\nend\n");
    let dot = folder.file("a.dot", "graph {\n a -- b\n a -- \n}\n");
    let ring = folder.file("ring.net", &ring(4));
    for (arguments, fault) in [
        (&[&*text][..], format!("{text}:2: there is no router b up to this line")),
        (&[&dot], format!("{dot}:4: a vertex is expected")),
        (&["none.net"], "could not read none.net".to_owned()),
        (&[&ring, "--without", "r0--r2"], "--without: there is no link `r0--r2`".to_owned()),
        (&[&ring, "--without", "r0"], "`r0` names no link".to_owned()),
        (&[&ring, "--without", "r9:1"], "there is no router `r9`".to_owned()),
        (&[&ring, "--of", "n7"], "--of: there is no node `n7`".to_owned()),
        (&[&ring, "--policy", "west-first"], "west-first does not fit this topology".to_owned()),
    ] {
        let said = said(2, arguments);
        assert!(said.starts_with("ayre: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(&fault), "{said}: {fault}");
    }
}
