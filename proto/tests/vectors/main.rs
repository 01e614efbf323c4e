//! Golden vectors: every machine and format, step by step, as text that other languages can replay.
//!
//! Each module runs one machine through a fixed script and says what every line means. The files in
//! `vectors/` hold the outcome; `cargo xtask vectors` writes them. Here each line of each file is
//! replayed from its text alone, and the files are held against the scripts.
mod active;
mod alu;
mod carrier;
mod combine;
mod command;
mod deposit;
mod endpoint;
mod envelope;
mod frame;
mod group;
mod initiator;
mod lane;
mod lock;
mod matching;
mod names;
mod node;
mod notification;
mod opening;
#[path = "../common/paper.rs"]
mod paper;
mod paths;
mod pending;
#[path = "../common/plain_memory.rs"]
mod plain_memory;
#[path = "../common/port.rs"]
mod port;
mod receiver;
mod script;
mod segment;
mod sender;
#[path = "../common/served.rs"]
mod served;
mod status;
mod stream;
mod target;
mod touch;
mod xlate;

use std::fs;
use std::path::PathBuf;
use std::sync::Once;

use script::{Machine, Script, perform};

/// One file of vectors.
struct Vectors {
    name: &'static str,
    /// The subject of the file, and the columns of its lines.
    header: &'static str,
    machine: fn() -> Box<dyn Machine>,
    script: fn(&mut Script),
}

const ALL: &[Vectors] = &[
    Vectors { name: "lane", header: lane::HEADER, machine: lane::machine, script: lane::script },
    Vectors {
        name: "status",
        header: status::HEADER,
        machine: status::machine,
        script: status::script,
    },
    Vectors {
        name: "notification",
        header: notification::HEADER,
        machine: notification::machine,
        script: notification::script,
    },
    Vectors {
        name: "command",
        header: command::HEADER,
        machine: command::machine,
        script: command::script,
    },
    Vectors {
        name: "response",
        header: command::RESPONSE_HEADER,
        machine: command::machine,
        script: command::response_script,
    },
    Vectors {
        name: "xlate",
        header: xlate::HEADER,
        machine: xlate::machine,
        script: xlate::script,
    },
    Vectors { name: "alu", header: alu::HEADER, machine: alu::machine, script: alu::script },
    Vectors {
        name: "segment",
        header: segment::HEADER,
        machine: segment::machine,
        script: segment::script,
    },
    Vectors {
        name: "pending",
        header: pending::HEADER,
        machine: pending::machine,
        script: pending::script,
    },
    Vectors {
        name: "initiator",
        header: initiator::HEADER,
        machine: initiator::machine,
        script: initiator::script,
    },
    Vectors {
        name: "target",
        header: target::HEADER,
        machine: target::machine,
        script: target::script,
    },
    Vectors {
        name: "endpoint",
        header: endpoint::HEADER,
        machine: endpoint::machine,
        script: endpoint::script,
    },
    Vectors {
        name: "frame",
        header: frame::HEADER,
        machine: frame::machine,
        script: frame::script,
    },
    Vectors {
        name: "link-sender",
        header: sender::HEADER,
        machine: sender::machine,
        script: sender::script,
    },
    Vectors {
        name: "link-receiver",
        header: receiver::HEADER,
        machine: receiver::machine,
        script: receiver::script,
    },
    Vectors {
        name: "paths",
        header: paths::HEADER,
        machine: paths::machine,
        script: paths::script,
    },
    Vectors {
        name: "opening",
        header: opening::HEADER,
        machine: opening::machine,
        script: opening::script,
    },
    Vectors {
        name: "matching",
        header: matching::HEADER,
        machine: matching::machine,
        script: matching::script,
    },
    Vectors {
        name: "envelope",
        header: envelope::HEADER,
        machine: envelope::machine,
        script: envelope::script,
    },
    Vectors {
        name: "touch",
        header: touch::HEADER,
        machine: touch::machine,
        script: touch::script,
    },
    Vectors {
        name: "combine",
        header: combine::HEADER,
        machine: combine::machine,
        script: combine::script,
    },
    Vectors {
        name: "deposit",
        header: deposit::HEADER,
        machine: deposit::machine,
        script: deposit::script,
    },
    Vectors {
        name: "group",
        header: group::HEADER,
        machine: group::machine,
        script: group::script,
    },
    Vectors {
        name: "stream",
        header: stream::HEADER,
        machine: stream::machine,
        script: stream::script,
    },
    Vectors {
        name: "carrier",
        header: carrier::HEADER,
        machine: carrier::machine,
        script: carrier::script,
    },
    Vectors {
        name: "active",
        header: active::HEADER,
        machine: active::machine,
        script: active::script,
    },
    Vectors { name: "node", header: node::HEADER, machine: node::machine, script: node::script },
    Vectors { name: "lock", header: lock::HEADER, machine: lock::machine, script: lock::script },
];

impl Vectors {
    fn path(&self) -> PathBuf {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors");
        PathBuf::from(folder).join(self.name).with_extension("txt")
    }

    fn read(&self) -> String {
        let path = self.path();
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The whole file, from the script.
    fn text(&self) -> String {
        let mut script = Script::new((self.machine)(), self.header);
        (self.script)(&mut script);
        script.into_text()
    }
}

/// All files. With `AYRE_VECTORS=write` they are written anew, before any test reads one.
fn files() -> &'static [Vectors] {
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        let is_asked = std::env::var_os("AYRE_VECTORS").is_some_and(|what| what == "write");
        for vectors in ALL.iter().filter(|_| is_asked) {
            let path = vectors.path();
            let written = fs::write(&path, vectors.text());
            written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    });
    ALL
}

#[test]
fn state_machines_follow_the_vector_files() {
    for vectors in files() {
        let mut machine = (vectors.machine)();
        let mut steps = 0;
        for (index, line) in vectors.read().lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = format!("{}.txt:{}", vectors.name, index + 1);
            let Some((input, output)) = line.split_once(" -> ") else {
                panic!("{at}: no arrow");
            };
            assert_eq!(perform(machine.as_mut(), input), output, "{at}: {input}");
            steps += 1;
        }
        assert!(steps > 20, "{}.txt shows next to nothing", vectors.name);
    }
}

/// `cargo xtask vectors` runs this test with `AYRE_VECTORS=write`.
#[test]
fn vector_files_equal_the_output_of_the_scripts() {
    for vectors in files() {
        let current = vectors.read() == vectors.text();
        assert!(current, "{}.txt is out of date: `cargo xtask vectors`", vectors.name);
    }
}
