//! Declarations beside what a C compiler says of headers, for tests: every structure, member and
//! constant. A disagreement panics.
//!
//! The figures of several generations are kept as text, so that more is checked than what is
//! installed.

use super::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The declarations of an interface, and how a program in C asks for them.
#[derive(Debug)]
pub struct Declared<'a> {
    /// The names of the headers, as `#include` takes them.
    pub headers: &'a [&'a str],
    /// An expression of C: the version of the headers, as [`super::version`] packs it.
    pub version: &'a str,
    /// The words before the name of a structure: `struct `, or none where names are of types.
    pub prefix: &'a str,
    /// The structures.
    pub layouts: Vec<&'static Layout>,
    /// Constants, their values, and the versions that have them first. One that has changed is
    /// there with each of its values, in their order.
    pub values: Vec<(&'static str, u64, u32)>,
}

/// The figures of one set of headers.
#[derive(Debug)]
pub struct Figures {
    /// The version that they name.
    pub version: u32,
    lines: BTreeSet<String>,
}

impl Figures {
    /// Reads recorded ones.
    pub fn read(text: &str) -> Self {
        let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let version = lines.iter().find_map(|line| line.strip_prefix("version "));
        let version = version.expect("figures name their version").parse().unwrap();
        Self { version, lines }
    }

    /// Records them in a folder, in a file named by the version.
    pub fn record(&self, folder: &Path) {
        let name = format!("{}.{}.txt", self.version >> 16, self.version & 0xffff);
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join(name), text).unwrap();
    }
}

impl Declared<'_> {
    /// Holds the declarations against figures. Prints how many agree.
    pub fn check(&self, figures: &Figures, whose: &str) {
        let (major, minor) = (figures.version >> 16, figures.version & 0xffff);
        let ours = self.expected(figures.version);
        let wrong: Vec<_> = ours.difference(&figures.lines).collect();
        let theirs: Vec<_> = figures.lines.difference(&ours).collect();
        assert!(wrong.is_empty(), "{whose} {major}.{minor}\nours: {wrong:#?}\ntheirs: {theirs:#?}");
        println!("{whose} headers of {major}.{minor}: {} figures agree", ours.len());
    }

    /// Holds them against all that is recorded in a folder: two generations at least.
    pub fn check_recorded(&self, folder: &Path) {
        let mut generations = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let figures = Figures::read(&fs::read_to_string(entry.unwrap().path()).unwrap());
            self.check(&figures, "recorded");
            generations.insert(figures.version);
        }
        assert!(generations.len() >= 2, "two generations at least");
    }

    /// Holds them against the headers in the folders that a variable names, as `PATH` does; the
    /// other variable names a folder to record the figures in.
    pub fn check_named(&self, include: &str, record: &str) {
        let folders = env::var_os(include).unwrap_or_default();
        for folder in env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()) {
            let figures = self.ask(&folder);
            self.check(&figures, &folder.display().to_string());
            if let Some(record) = env::var_os(record) {
                figures.record(Path::new(&record));
            }
        }
    }

    /// The expected figures of a version's headers.
    pub fn expected(&self, version: u32) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for layout in self.layouts.iter().filter(|layout| layout.since() <= version) {
            lines.insert(format!("size {} {}", layout.name, layout.size_at(version)));
            for member in layout.members.iter().filter(|member| member.since <= version) {
                let (name, offset, size) = (plain(member.name), member.offset, member.size);
                lines.insert(format!("member {} {name} {offset} {size}", layout.name));
            }
        }
        let there = self.values.iter().filter(|(.., since)| *since <= version);
        let latest: BTreeMap<_, _> = there.map(|(name, value, _)| (name, value)).collect();
        lines.extend(latest.iter().map(|(name, value)| format!("value {name} {value}")));
        lines
    }

    /// The figures that a C compiler gives with the headers of a folder.
    pub fn ask(&self, include: &Path) -> Figures {
        let tag = include.to_string_lossy().replace('/', "_");
        let folder = env::temp_dir().join(format!("ayre-layout-{}{tag}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("ask.c"), folder.join("ask"));
        fs::write(&source, self.questions()).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg("-w").arg("-I").arg(include).arg("-o").arg(&program).arg(&source);
        let status = compiler.status().expect("a C compiler");
        assert!(status.success(), "{} does not compile with these headers", source.display());
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success());
        fs::remove_dir_all(&folder).ok();
        Figures::read(&String::from_utf8(output.stdout).unwrap())
    }

    /// A C program that prints all figures.
    fn questions(&self) -> String {
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        for header in self.headers {
            writeln!(text, "#include <{header}>").unwrap();
        }
        writeln!(text, "#define OURS ({})\nint main(void) {{", self.version).unwrap();
        text += "printf(\"version %d\\n\", OURS);\n";
        let mut ask = |since: u32, what: &str, of: &str| {
            writeln!(text, "#if OURS >= {since}\nprintf(\"{what}\\n\", {of});\n#endif").unwrap();
        };
        for layout in &self.layouts {
            let (name, since) = (layout.name, layout.since());
            let structure = format!("{}{name}", self.prefix);
            ask(since, &format!("size {name} %zu"), &format!("sizeof({structure})"));
            for member in layout.members {
                let field = plain(member.name);
                let size = format!("sizeof((({structure} *)0)->{field})");
                let of = format!("offsetof({structure}, {field}), {size}");
                ask(member.since, &format!("member {name} {field} %zu %zu"), &of);
            }
        }
        for (name, _, since) in &self.values {
            let of = format!("(unsigned long long)(0 ? 0 : {name})");
            ask(*since, &format!("value {name} %llu"), &of);
        }
        text + "return 0;\n}\n"
    }
}

fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}
