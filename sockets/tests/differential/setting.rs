//! The knowledge of all ends of a program: its text, the shared memory, and how to report a
//! violation.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use crate::common::call::{exit_now, outcome};
use crate::common::shared::Shared;
use crate::program::{Program, Side};

/// The variable that names the folder of the program, `program` in it, and the shared memory.
pub(crate) const FOLDER: &str = "AYRE_SOCKETS_TEST_FOLDER";

/// The variable that names a planted fault.
pub(crate) const FAULT: &str = "AYRE_SOCKETS_TEST_FAULT";

/// The code of a process that has seen a violation.
const VIOLATION: i32 = 3;

/// Mistakes that the interpreter makes on purpose, as a bad library would, so that a test can show
/// that the model finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A byte is lost.
    Drop,
    /// Two bytes change their places.
    Reorder,
    /// A read tells the end although more comes.
    Early,
    /// A wait misses what it waits for.
    Deaf,
    /// A wait tells of bytes that are not there.
    Untrue,
    /// A read brings bytes of before once more.
    Repeat,
}

pub(crate) const FAULTS: [Fault; 6] =
    [Fault::Drop, Fault::Reorder, Fault::Early, Fault::Deaf, Fault::Untrue, Fault::Repeat];

/// The knowledge of all ends.
pub(crate) struct Setting {
    pub(crate) program: Program,
    pub(crate) shared: Shared,
    pub(crate) folder: PathBuf,
    pub(crate) fault: Option<Fault>,
}

impl Setting {
    /// The setting of this process, from its environment.
    pub(crate) fn new() -> &'static Self {
        let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder is named"));
        let text = std::fs::read_to_string(folder.join("program")).expect("there is a program");
        let fault = std::env::var(FAULT).ok();
        let fault = FAULTS.into_iter().find(|f| Some(format!("{f:?}")) == fault);
        let shared = Shared::open(&folder.join("shared"));
        Box::leak(Box::new(Self { program: Program::parse(&text), shared, folder, fault }))
    }

    /// Writes a line that must be the same with the library and without it.
    pub(crate) fn fact(&self, text: &str) {
        self.append("facts", text);
    }

    /// Reports that something happened that TCP does not allow, and ends the process.
    pub(crate) fn violation(&self, text: &str) -> ! {
        self.append("violations", text);
        exit_now(VIOLATION)
    }

    fn append(&self, name: &str, text: &str) {
        let mut file = OpenOptions::new();
        let file = file.create(true).append(true).open(self.folder.join(name));
        let written = file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        if written.is_err() {
            exit_now(VIOLATION + 1);
        }
    }
}

/// In the word of a port: it is known. Unix sockets that connect have port 0.
pub(crate) const CAME: u64 = 1 << 16;

/// The numbers of one connection in the shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Place(usize);

/// Numbers of a connection.
const NUMBERS: usize = 512;

impl Place {
    pub(crate) fn of(connection: usize) -> Self {
        Self(64 + connection * NUMBERS)
    }

    /// The port of the listener.
    pub(crate) fn port(self) -> usize {
        self.0
    }

    /// The client's port, with [`CAME`].
    pub(crate) fn client_port(self) -> usize {
        self.0 + 1
    }

    /// The descriptor that an accepting thread hands to the server's end, plus one.
    pub(crate) fn accepted(self) -> usize {
        self.0 + 2
    }

    /// Bytes that this end has begun to write.
    pub(crate) fn begun(self, writer: Side) -> usize {
        self.0 + 8 + 4 * writer as usize
    }

    /// Bytes that its writes have returned.
    pub(crate) fn done(self, writer: Side) -> usize {
        self.0 + 9 + 4 * writer as usize
    }

    /// Bytes of this writer that have been read.
    pub(crate) fn read(self, writer: Side) -> usize {
        self.0 + 10 + 4 * writer as usize
    }

    /// The phase of an end, and its process.
    pub(crate) fn at(self, side: Side) -> usize {
        self.0 + 24 + side as usize
    }

    /// Signs that the ends give each other in a phase.
    pub(crate) fn sign(self, phase: usize, number: usize) -> usize {
        let word = 32 + 8 * phase + number;
        assert!(word < NUMBERS, "a connection has fewer phases");
        self.0 + word
    }
}

/// The outcome of a call, for a message.
pub(crate) fn told(result: Result<usize, i32>) -> String {
    match result {
        Ok(number) => number.to_string(),
        Err(error) => crate::common::call::error_name(error),
    }
}

/// Waits a few milliseconds for a condition that nothing rings for.
pub(crate) fn pause() {
    let _ = outcome(call!(poll(std::ptr::null_mut(), 0, 2)).unwrap_or(0) as isize);
}
