//! The line between a test and a process that it started: words, both ways.
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// One end of the line.
#[derive(Debug)]
pub struct Line(UnixStream);

impl Line {
    /// Both ends.
    pub fn pair() -> (Self, Self) {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        (Self(near), Self(far))
    }

    /// The end of a process that was started: its standard input.
    pub fn to_parent() -> Self {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().expect("a line to the test");
        Self(stdin.into())
    }

    /// The standard input for a process.
    pub fn into_stdin(self) -> std::process::Stdio {
        std::os::fd::OwnedFd::from(self.0).into()
    }

    /// Says a word.
    pub fn say(&self, word: u64) {
        (&self.0).write_all(&word.to_le_bytes()).expect("the other end listens");
    }

    /// Sends a word to a process that may have died.
    pub fn try_say(&self, word: u64) {
        let _ = (&self.0).write_all(&word.to_le_bytes());
    }

    /// Waits for a word; none where the other end is gone.
    pub fn try_hear(&self) -> Option<u64> {
        let mut word = [0; 8];
        match (&self.0).read_exact(&mut word) {
            Ok(()) => Some(u64::from_le_bytes(word)),
            Err(error) => {
                let gone =
                    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset);
                assert!(gone, "the line broke: {error}");
                None
            }
        }
    }

    /// Waits for a word.
    #[track_caller]
    pub fn hear(&self) -> u64 {
        self.try_hear().expect("the other process has died or was killed by the watchdog")
    }

    /// Whether a word has come.
    pub fn has_word(&self) -> bool {
        self.0.set_nonblocking(true).expect("a socket");
        let mut byte = [0];
        let peeked = rustix::net::recv(&self.0, &mut byte, rustix::net::RecvFlags::PEEK);
        self.0.set_nonblocking(false).expect("a socket");
        peeked.is_ok()
    }
}
