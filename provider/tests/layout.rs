//! The declarations beside what a C compiler says of libfabric's own headers: every structure,
//! member, table and constant, in every generation that is at hand.
//!
//! `tests/layouts/` holds what the headers of several versions say, as figures, so that more is
//! checked than what is installed. `AYRE_LIBFABRIC_INCLUDE` names more folders with headers, as
//! `PATH` does, and `AYRE_RECORD_LAYOUTS` a folder to write their figures to.

use ayre_fi::abi::{errno, flags, layouts};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The figures of one set of headers.
struct Figures {
    version: u32,
    lines: BTreeSet<String>,
}

#[test]
fn declarations_agree_with_the_installed_headers() {
    let here = Path::new("/usr/include");
    assert!(here.join("rdma/fi_domain.h").exists(), "install libfabric-dev");
    check(&ask_compiler(here), "installed");
}

#[test]
fn declarations_agree_with_headers_that_are_named() {
    let folders = env::var_os("AYRE_LIBFABRIC_INCLUDE").unwrap_or_default();
    for folder in env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()) {
        let figures = ask_compiler(&folder);
        check(&figures, &folder.display().to_string());
        if let Some(record) = env::var_os("AYRE_RECORD_LAYOUTS") {
            let name = format!("{}.{}.txt", figures.version >> 16, figures.version & 0xffff);
            let text: String = figures.lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(Path::new(&record).join(name), text).unwrap();
        }
    }
}

#[test]
fn declarations_agree_with_recorded_generations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layouts");
    let mut generations = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let figures = read(&fs::read_to_string(entry.unwrap().path()).unwrap());
        check(&figures, "recorded");
        generations.insert(figures.version);
    }
    assert!(generations.len() >= 2, "two generations at least");
}

/// Whether a wrong declaration would be found.
#[test]
fn a_wrong_figure_is_noticed() {
    let layout = layouts().find(|layout| layout.name == "fi_domain_attr").unwrap();
    let (old, new) = ((1 << 16) | 17, (2 << 16) | 6);
    assert_eq!(layout.size_at(old), 192);
    assert_eq!(layout.size_at(new), 224);
    let lines = expected(old);
    assert!(lines.contains("size fi_domain_attr 192"));
    assert!(!lines.iter().any(|line| line.contains("max_ep_auth_key")));
    assert!(expected(new).contains("member fi_domain_attr max_ep_auth_key 192 8"));
}

fn check(figures: &Figures, whose: &str) {
    let (major, minor) = (figures.version >> 16, figures.version & 0xffff);
    let ours = expected(figures.version);
    let wrong: Vec<_> = ours.difference(&figures.lines).collect();
    let theirs: Vec<_> = figures.lines.difference(&ours).collect();
    assert!(wrong.is_empty(), "{whose} {major}.{minor}\nours: {wrong:#?}\ntheirs: {theirs:#?}");
    println!("{whose} headers of {major}.{minor}: {} figures agree", ours.len());
}

/// The expected figures of a version's headers.
fn expected(version: u32) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for layout in layouts() {
        lines.insert(format!("size {} {}", layout.name, layout.size_at(version)));
        for member in layout.members.iter().filter(|member| member.since <= version) {
            let (name, offset, size) = (plain(member.name), member.offset, member.size);
            lines.insert(format!("member {} {name} {offset} {size}", layout.name));
        }
    }
    let errors = errno::ALL.iter().map(|(name, value)| format!("value {name} {value}"));
    lines.extend(errors);
    lines.extend(flags::ALL.iter().map(|(name, value)| format!("value {name} {value}")));
    lines
}

fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

fn ask_compiler(include: &Path) -> Figures {
    let tag = include.to_string_lossy().replace('/', "_");
    let folder = env::temp_dir().join(format!("ayre-layout-{}{tag}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("ask.c"), folder.join("ask"));
    fs::write(&source, questions()).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-w").arg("-I").arg(include).arg("-o").arg(&program).arg(&source);
    let status = compiler.status().expect("a C compiler");
    assert!(status.success(), "{} does not compile with these headers", source.display());
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success());
    fs::remove_dir_all(&folder).ok();
    read(&String::from_utf8(output.stdout).unwrap())
}

fn read(text: &str) -> Figures {
    let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let version = lines.iter().find_map(|line| line.strip_prefix("version "));
    let version = version.expect("figures name their version").parse().unwrap();
    Figures { version, lines }
}

/// A C program that prints all figures.
fn questions() -> String {
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n#include <poll.h>\n");
    for header in [
        "fabric",
        "fi_domain",
        "fi_endpoint",
        "fi_eq",
        "fi_cm",
        "fi_tagged",
        "fi_rma",
        "fi_atomic",
        "fi_collective",
        "fi_errno",
        "providers/fi_prov",
        "providers/fi_log",
    ] {
        writeln!(text, "#include <rdma/{header}.h>").unwrap();
    }
    text += "#define OURS ((FI_MAJOR_VERSION << 16) | FI_MINOR_VERSION)\nint main(void) {\n";
    text += "printf(\"version %d\\n\", OURS);\n";
    for layout in layouts() {
        let name = layout.name;
        writeln!(text, "printf(\"size {name} %zu\\n\", sizeof(struct {name}));").unwrap();
        for member in layout.members {
            let field = plain(member.name);
            writeln!(
                text,
                "#if OURS >= {}\nprintf(\"member {name} {field} %zu %zu\\n\", \
                 offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}));\n#endif",
                member.since
            )
            .unwrap();
        }
    }
    for name in errno::ALL.iter().map(|(name, _)| name).chain(flags::ALL.iter().map(|(n, _)| n)) {
        writeln!(text, "printf(\"value {name} %llu\\n\", (unsigned long long)(0 ? 0 : {name}));")
            .unwrap();
    }
    text + "return 0;\n}\n"
}
