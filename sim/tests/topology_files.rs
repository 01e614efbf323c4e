//! Topologies in files: whatever is written is read as it was, and what is wrong has its line.
use ayre_sim::topology::{Dragonfly, FileFault, Named, Shape, Topology};
use proptest::prelude::*;

fn sorted(topology: &Topology) -> Topology {
    let mut topology = topology.clone();
    topology.links.sort_by_key(|link| (link.from.router, link.from.port));
    topology
}

fn same(read: &Named, written: &Named) {
    assert_eq!(read.routers, written.routers);
    assert_eq!(read.nodes, written.nodes);
    let (mut one, other) = (sorted(&read.topology), sorted(&written.topology));
    one.shape.clone_from(&other.shape);
    assert_eq!(one, other);
}

#[test]
fn topologies_are_read_as_they_were_written() {
    for topology in [
        Topology::ladder(4),
        Topology::star(5),
        Topology::switch(3),
        Topology::torus(&[3, 4]),
        Topology::mesh(&[2, 3, 2]),
        Topology::tree(2, 3),
        Topology::full(4, 2),
        Topology::dragonfly(Dragonfly { routers: 3, nodes: 1, globals: 1 }),
    ] {
        let named = Named::by_number(topology.unwrap());
        same(&Named::from_text("t", &named.to_text()).unwrap(), &named);
        same(&Named::from_dot("t", &named.to_dot()).unwrap(), &named);
    }
}

#[test]
fn regular_topologies_are_recognised_until_a_link_is_missing_or_elsewhere() {
    for topology in [
        Topology::star(5),
        Topology::torus(&[3, 4]),
        Topology::torus(&[2, 5]),
        Topology::mesh(&[4]),
        Topology::mesh(&[2, 3, 2]),
        Topology::hypercube(5),
        Topology::tree(2, 3),
        Topology::tree(4, 2),
        Topology::full(4, 2),
        Topology::dragonfly(Dragonfly { routers: 3, nodes: 1, globals: 1 }),
        Topology::dragonfly(Dragonfly { routers: 4, nodes: 2, globals: 2 }),
    ] {
        let named = Named::by_number(topology.unwrap());
        let read = Named::from_text("t", &named.to_text()).unwrap();
        assert_eq!(read.topology.shape, named.topology.shape);
        let read = Named::from_dot("t", &named.to_dot()).unwrap();
        assert_eq!(read.topology.shape, named.topology.shape);
        let cut = Named { topology: named.topology.without(&[0]), ..named.clone() };
        let read = Named::from_text("t", &cut.to_text()).unwrap();
        assert_eq!(read.topology.shape, Shape::Table);
        // Two links exchange their ends.
        let mut crossed = named.clone();
        let links = &mut crossed.topology.links;
        let last = links.len() - 1;
        (links[0].to, links[last].to) = (links[last].to, links[0].to);
        if links[0].from.router != links[0].to.router
            && links[last].from.router != links[last].to.router
        {
            let read = Named::from_text("t", &crossed.to_text()).unwrap();
            assert_eq!(read.topology.shape, Shape::Table);
        }
    }
    let ladder = Named::by_number(Topology::ladder(4).unwrap());
    let read = Named::from_text("t", &ladder.to_text()).unwrap();
    assert_eq!(read.topology.shape, Shape::Table);
}

#[test]
fn the_form_of_the_documentation_is_read() {
    let source = include_str!("../src/topology/named/mod.rs");
    let block = source.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = block.unwrap().replace("/// ", "").replace("///", "");
    let named = Named::read("t", &text).unwrap();
    // `right` has outputs 2, 5, 6, 7 by name and 0 as the lowest that is free.
    assert_eq!(named.topology.ports, [8, 8, 2]);
    let ports = |number: usize| {
        let node = named.topology.nodes[number];
        [(node.inject.router, node.inject.port), (node.eject.router, node.eject.port)]
    };
    assert_eq!(ports(0), [(0, 1), (0, 1)]);
    assert_eq!(ports(1), [(1, 2), (1, 2)]);
    assert_eq!(ports(2), [(0, 5), (1, 5)]);
    assert_eq!(named.router("right"), Some(1));
}

#[test]
fn a_graph_without_shapes_is_routers_with_a_node_each() {
    let dot = "graph { // a ring\n a -- b -- c [label=\"x\"]; c -- a\n node [color=red] }";
    let named = Named::from_dot("ring.dot", dot).unwrap();
    assert_eq!(named.routers, ["a", "b", "c"]);
    assert_eq!(named.nodes, ["a", "b", "c"]);
    assert_eq!(named.topology.links.len(), 6);
    // Routers and nodes of one name come back.
    same(&Named::from_dot("t", &named.to_dot()).unwrap(), &named);
}

/// A file of two routers and this line as its third.
fn with(line: &str) -> String {
    format!("router a\nrouter b 2\n{line}\nnode x a\nnode y a\nend\n")
}

#[test]
fn a_wrong_line_is_named() {
    let fault = |text: &str| Named::from_text("net", text).unwrap_err().to_string();
    for (line, error) in [
        ("lnik a b", "\"lnikab\" is no statement: those are `router`, `link`, `node` and `end`"),
        ("link a", "the statement is to be `link ROUTER[:PORT] [->] ROUTER[:PORT]`"),
        ("link a c", "there is no router c up to this line"),
        ("link a a", "the link leads from router a to itself"),
        ("link a:64 b", "\"64\" is no number of a port from 0 to 63"),
        ("link a:x b", "\"x\" is no number of a port from 0 to 63"),
        ("link a b:2", "router b has no free port left of its 2"),
        ("router a", "there is a router a already"),
        ("router c 65", "\"65\" is no number of ports from 0 to 64"),
        (
            "router -c",
            "\"-c\" is no name: 1 to 64 letters, digits and `_`, `.`, `-`, the first one no `-`",
        ),
    ] {
        assert_eq!(fault(&with(line)), format!("net:3: {error}"));
    }
    let late = |line: &str, more: &str| fault(&with(&format!("{line}\n{more}")));
    let parallel = "there is a link from b to a already; parallel links all have to name ports";
    assert_eq!(late("link a b", "link b:0 -> a:9"), format!("net:4: {parallel}"));
    assert_eq!(late("link a:3 b:1", "link b:1 a:2"), "net:4: port 1 of router b is taken");
    assert_eq!(
        late("node p b\nnode q b", "node r b"),
        "net:5: router b has no free port left of its 2"
    );
    assert_eq!(late("node p b", "node p a"), "net:4: there is a node p already");
    assert_eq!(
        fault("router a\nnode x a\nend\n"),
        "net:3: there are 1 nodes, and there have to be at least 2"
    );
    assert_eq!(fault("router a\nend\nrouter b"), "net:3: there is something behind the end");
    assert_eq!(fault(""), "net:1: the file was cut: its last line is to be `end`");
    let dot = |text: &str| Named::from_dot("net", text).unwrap_err().to_string();
    assert_eq!(dot("graph {\n a -- \n-- b }"), "net:3: a vertex is expected, and there is \"--\"");
    assert_eq!(dot("graph {\n a -- b"), "net:2: the file was cut: its last line is to be `}`");
    assert_eq!(
        dot("graph {\n subgraph c { a } }"),
        "net:2: a vertex or an edge outside of subgraphs is expected, and there is \"subgraph\""
    );
    assert_eq!(
        dot("digraph {\n a [shape=box]\n x [shape=ellipse]\n x -> a }"),
        "net:3: an edge from the node to a router and back is expected, and there is \"x\""
    );
}

#[test]
fn a_cut_file_is_found_out_wherever_it_was_cut() {
    let named = Named::by_number(Topology::ladder(1).unwrap());
    let text = named.to_text();
    for length in 0..text.len() - 1 {
        assert!(Named::from_text("t", &text[..length]).is_err(), "{length}");
    }
    let dot = named.to_dot();
    for length in 0..dot.len() - 1 {
        assert!(Named::from_dot("t", &dot[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_router_that_nothing_uses_can_be_written_and_read() {
    let text = "router a 2\nrouter alone\nnode x a\nnode y a\nend\n";
    let named = Named::from_text("t", text).unwrap();
    assert_eq!(named.topology.ports, [2, 0]);
    assert_eq!(Named::from_text("t", &named.to_text()), Ok(named.clone()));
    assert_eq!(Named::from_dot("t", &named.to_dot()), Ok(named));
}

#[test]
fn numbers_have_limits() {
    assert!(Topology::full(65, 1).is_err());
    assert!(Topology::full(u32::MAX, u32::MAX).is_err());
    assert!(Topology::dragonfly(Dragonfly { routers: 64, nodes: 64, globals: 64 }).is_err());
    let most = u32::MAX;
    assert!(Topology::dragonfly(Dragonfly { routers: most, nodes: most, globals: most }).is_err());
    assert!(Topology::ladder(62).is_err());
    let mut text = String::from("router hub\n");
    for number in 0..65 {
        text += &format!("node n{number} hub\n");
    }
    text += "end\n";
    let error = Named::from_text("t", &text).unwrap_err();
    assert_eq!(error.line, 66);
    assert_eq!(error.fault, FileFault::Ports { router: "hub".into(), ports: 64 });
}

proptest! {
    /// No text makes the readers panic, and an error is in a line that there is. A topology that
    /// was read can be written in both forms and read again.
    #[test]
    fn no_text_breaks_the_readers(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "router", "node", "link", "end", "a", "b", "a:1", "b:63", "->", "--", "{", "}", "[",
                "]", "=", "graph", "digraph", "shape", "box", "ellipse", "dir", "both", "headlabel",
                "taillabel", "\"", "\"a\"", "3", ";", "\n", "\n", "#", "/*", "*/", "//", "é",
            ]),
            0..60,
        ),
        gaps in any::<bool>(),
    ) {
        let text = words.join(if gaps { " " } else { "" });
        let lines = text.lines().count().max(1);
        for result in [Named::from_text("t", &text), Named::from_dot("t", &text)] {
            match result {
                Ok(named) => {
                    let written = Ok(named.to_text());
                    let text = Named::from_text("t", &named.to_text()).map(|it| it.to_text());
                    prop_assert_eq!(&text, &written);
                    let dot = Named::from_dot("t", &named.to_dot()).map(|it| it.to_text());
                    prop_assert_eq!(&dot, &written);
                }
                Err(error) => prop_assert!((1..=lines).contains(&error.line)),
            }
        }
    }
}
