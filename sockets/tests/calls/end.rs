//! One end of the connection of a row, in a process of its own, and what it has seen.

use std::ffi::c_int;
use std::fmt::Debug;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::common::call::{self, connect_to, error_name, exit_now, family, listen_at, poll};
use crate::common::shared::Shared;

/// The variable that names the folder of a row.
pub(crate) const FOLDER: &str = "AYRE_SOCKETS_TEST_FOLDER";

/// The variable that says how many requests and answers go before the row.
pub(crate) const WARM: &str = "AYRE_SOCKETS_TEST_WARM";

/// Milliseconds after which a wait for bytes is in vain.
pub(crate) const TIME: c_int = 5000;

const PORT: usize = 1;
const CLIENT_CAME: usize = 2;
const SERVER_CAME: usize = 3;

pub(crate) struct End {
    pub(crate) server: bool,
    pub(crate) fd: c_int,
    pub(crate) shared: Shared,
    folder: PathBuf,
    seen: String,
}

impl End {
    /// An end without a connection.
    pub(crate) fn new(server: bool) -> Self {
        let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder is named"));
        let shared = Shared::open(&folder.join("shared"));
        Self { server, fd: -1, shared, folder, seen: String::new() }
    }

    /// Connects. Where the row is to find warm connections, requests and answers with reads that
    /// block have gone both ways.
    pub(crate) fn connect(&mut self) {
        self.connect_with(|_| {});
    }

    /// Connects, after something was done with the socket that listens or connects.
    pub(crate) fn connect_with(&mut self, prepare: impl FnOnce(c_int)) {
        self.open(prepare, |_| {});
        self.warm_up();
        self.meet();
    }

    /// Connects. The client does something before the server has accepted.
    pub(crate) fn connect_before_accept(&mut self, early: impl FnOnce(&mut Self)) {
        let early = |end: &mut Self| {
            if !end.server {
                early(end);
            }
            end.meet();
        };
        self.open(|_| {}, early);
    }

    /// Opens the connection; `early` is called before the server accepts.
    pub(crate) fn open(&mut self, prepare: impl FnOnce(c_int), early: impl FnOnce(&mut Self)) {
        let fd = call::socket(family(), 0).expect("a socket");
        prepare(fd);
        self.fd = if self.server {
            let port = listen_at(fd, 0).expect("a listener");
            self.shared.set(PORT, u64::from(port));
            early(self);
            let none = std::ptr::null_mut();
            let accepted = call!(accept(fd, none, std::ptr::null_mut())).expect("a connection");
            call::close(fd).expect("the listener closes");
            accepted as c_int
        } else {
            assert!(self.shared.wait(|shared| shared.get(PORT) != 0), "the server listens");
            match connect_to(fd, self.shared.get(PORT) as u16) {
                // The row waits for it.
                Ok(_) | Err(libc::EINPROGRESS) => {}
                Err(errno) => panic!("it does not connect: {}", error_name(errno)),
            }
            self.fd = fd;
            early(self);
            fd
        };
    }

    /// Where the row is to find a warm connection, requests and answers go both ways.
    pub(crate) fn warm_up(&mut self) {
        let turns = std::env::var(WARM).map_or(0, |turns| turns.parse().expect("a number"));
        for i in 0..turns {
            let mut bytes = vec![0; 100 + i % 50];
            if self.server {
                self.read_exactly(&mut bytes);
                call::write(self.fd, &bytes).expect("an answer goes");
            } else {
                call::write(self.fd, &bytes).expect("a request goes");
                self.read_exactly(&mut bytes);
            }
        }
    }

    /// The client sends a request of some bytes; the server has them all.
    pub(crate) fn bring(&mut self, length: usize) {
        if self.server {
            let told = poll(self.fd, libc::POLLIN, TIME);
            self.say("poll", told);
        } else {
            let sent = call::write(self.fd, &vec![b'a'; length]);
            self.told("write", sent);
        }
        self.meet();
    }

    pub(crate) fn read_exactly(&mut self, bytes: &mut [u8]) {
        let mut read = 0;
        while read < bytes.len() {
            match call::read(self.fd, &mut bytes[read..]) {
                Ok(count @ 1..) => read += count,
                told => panic!("{read} bytes of {} came, then {told:?}", bytes.len()),
            }
        }
    }

    /// Lets other users write into the folder of the row.
    pub(crate) fn open_folder(&self) {
        let all = Permissions::from_mode(0o777);
        std::fs::set_permissions(&self.folder, all).expect("the folder is the row's");
    }

    /// Writes down what a call told.
    pub(crate) fn say(&mut self, what: &str, told: impl Debug) {
        self.seen += &format!("{what}: {told:?}\n");
    }

    /// Writes down what a call told, errors by their names.
    pub(crate) fn told(&mut self, what: &str, told: Result<usize, i32>) {
        self.say(what, told.map_err(error_name));
    }

    /// Both ends have come here.
    pub(crate) fn meet(&self) {
        let (mine, other) =
            if self.server { (SERVER_CAME, CLIENT_CAME) } else { (CLIENT_CAME, SERVER_CAME) };
        let count = self.shared.add(mine, 1) + 1;
        assert!(self.shared.wait(|shared| shared.get(other) >= count), "the other end comes");
    }

    /// Puts all that the end has seen into a file.
    pub(crate) fn finish(self) -> ! {
        // No row sees the other end's exit, unless it closes the connection itself.
        self.meet();
        let name = if self.server { "server" } else { "client" };
        if std::fs::write(self.folder.join(name), &self.seen).is_err() {
            exit_now(4);
        }
        std::process::exit(0)
    }
}
