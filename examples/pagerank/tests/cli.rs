//! The program as its user meets it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ayre-pagerank")).args(args).output().unwrap()
}

/// The output of a run that has to succeed.
fn stdout(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {stderr}");
    assert_eq!(stderr, "", "progress is drawn on terminals only");
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a run that has to fail.
fn complaint(args: &[&str]) -> String {
    let output = run(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A new, empty directory.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The rows of the table of ranks, without scores.
fn top(text: &str) -> Vec<&str> {
    let rows = text.lines().skip_while(|line| !line.ends_with("name")).skip(1);
    rows.take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().last())
        .collect()
}

#[test]
fn ranks_the_small_graph() {
    let text = stdout(&["--graph", "small", "--top", "5"]);
    assert!(text.contains("graph: 1566 vertices, 8280 edges, 142 dangling"), "{text}");
    assert_eq!(top(&text)[0], "libc6", "everything needs the C library");
    assert_eq!(top(&text).len(), 5);
    assert!(text.contains("rank in one process"), "{text}");
}

#[test]
fn ranks_an_edge_list() {
    let file = directory("edge-list").join("edges");
    fs::write(&file, "# a star\n1 3\n2 3\n").unwrap();
    let text =
        stdout(&["--graph", file.to_str().unwrap(), "--iterations", "500", "--tolerance", "0"]);
    assert_eq!(top(&text), ["3", "1", "2"]);
    assert!(text.contains("0.5744680851  3"), "2.7 / 4.7: {text}");
    assert!(text.contains("0.2127659574  1"), "1 / 4.7: {text}");
}

#[test]
fn merges_package_lists_and_writes_edges() {
    let lists = directory("lists");
    fs::write(
        lists.join("host_dists_stable_main_binary-amd64_Packages"),
        "Package: shell\nDepends: libc (>= 2), editor\n\nPackage: libc\n\nbroken\n",
    )
    .unwrap();
    fs::write(
        lists.join("host_dists_stable_contrib_binary-i386_Packages"),
        "Package: vi\nProvides: editor\nDepends: libc:any\nRecommends: shell\n",
    )
    .unwrap();
    let edges = lists.join("edges");
    let (lists, edges) = (lists.to_str().unwrap(), edges.to_str().unwrap());

    let text = stdout(&["--lists", lists, "--write-edges", edges]);
    assert!(text.contains("1 malformed"), "{text}");
    let expected = "# 3 vertices, 3 edges: source target\nlibc\nshell\nvi\n\
                    shell libc\nshell vi\nvi libc\n";
    assert_eq!(fs::read_to_string(edges).unwrap(), expected);

    let table = |args: &[&str]| top(&stdout(args)).join(" ");
    assert_eq!(table(&["--lists", lists]), "libc vi shell");
    assert_eq!(table(&["--graph", edges]), "libc vi shell");
    assert_eq!(table(&["--graph", edges, "--roots", "v*"]), "libc vi");

    stdout(&["--lists", lists, "--recommends", "--write-edges", edges]);
    assert!(fs::read_to_string(edges).unwrap().contains("vi shell"));
}

#[test]
fn errors_name_their_cause() {
    let directory = directory("complaints");
    let file = directory.join("edges");
    fs::write(&file, "a b\na b c\n").unwrap();
    let broken = directory.join("x_Packages.lz4");
    fs::write(&broken, "not compressed").unwrap();
    let (directory, file) = (directory.to_str().unwrap(), file.to_str().unwrap());
    let table: [(&[&str], &str); 7] = [
        (&["--graph", file], "edges: line 2: 'c' follows"),
        (&["--graph", "/nonexistent"], "/nonexistent: No such file"),
        (&["--graph", "small", "--roots", "nobody"], "no vertex has the name of a root"),
        (&["--graph", "small", "--tolerance=-1"], "between 0 and 2"),
        (&["--graph", "small", "--variant", "puts"], "ayre run"),
        (&["--graph", "small", "--write-edges", "/nonexistent/x"], "/nonexistent/x: No such file"),
        (&["--lists", directory], "x_Packages.lz4: "),
    ];
    for (args, expected) in table {
        let complaint = complaint(args);
        assert!(complaint.contains(expected), "{args:?}: {complaint}");
    }
}

#[test]
fn a_graph_without_vertices_is_no_error() {
    let file = directory("empty").join("edges");
    fs::write(&file, "# nothing\n").unwrap();
    let text = stdout(&["--graph", file.to_str().unwrap()]);
    assert!(text.contains("graph: 0 vertices, 0 edges"), "{text}");
}
