//! PMI, version 1: lines of text over a socket that the launcher has left open.
//!
//! MPICH's `mpiexec` and Slurm's `srun --mpi=pmi2`, whose server accepts both versions, speak it.
//! There is no standard. The sources are MPICH's `src/pmi/simple/simple_pmi.c` on the side of a
//! rank and `pmiserv_pmi_v1.c` on that of the launcher, and Slurm's `plugins/mpi/pmi2/pmi1.c`.
//!
//! ```text
//! cmd=init pmi_version=1 pmi_subversion=1     cmd=response_to_init rc=0 pmi_version=1 ...
//! cmd=get_maxes                               cmd=maxes rc=0 keylen_max=64 vallen_max=1024 ...
//! cmd=get_my_kvsname                          cmd=my_kvsname rc=0 kvsname=NAME
//! cmd=put kvsname=NAME key=KEY value=TEXT     cmd=put_result rc=0
//! cmd=barrier_in                              cmd=barrier_out
//! cmd=get kvsname=NAME key=KEY                cmd=get_result rc=0 value=TEXT
//! cmd=finalize                                cmd=finalize_ack
//! ```
use super::board::{Board, TEXT_CHARS_MAX};
use super::wrong;
use crate::clock::{self, poll_until};
use crate::error::SetupError;
use crate::sys::descriptor::Descriptor;
use crate::sys::inherited_socket;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::time::{Duration, Instant};

/// The longest answer: a value of 1024 bytes and its overhead.
const LINE_BYTES_MAX: usize = 4096;

/// A launcher that speaks PMI.
#[derive(Debug)]
pub(super) struct Pmi {
    socket: Descriptor,
    /// Bytes that have come after the last line.
    ahead: Vec<u8>,
    rank: usize,
    size: usize,
    space: String,
    /// The longest time for an answer, also for one that waits for other ranks.
    timeout: Duration,
}

impl Pmi {
    /// The launcher behind `PMI_FD`, if there is one.
    pub(super) fn find(timeout: Duration) -> Result<Option<Self>, SetupError> {
        let Some(socket) = socket() else { return Ok(None) };
        let place = [variable("PMI_RANK")?, variable("PMI_SIZE")?];
        Self::greet(socket, place, timeout).map(Some)
    }

    fn greet(
        socket: Descriptor,
        [rank, size]: [usize; 2],
        timeout: Duration,
    ) -> Result<Self, SetupError> {
        let (ahead, space) = (Vec::new(), String::new());
        let mut pmi = Self { socket, ahead, rank, size, space, timeout };
        pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let maxes = pmi.ask("cmd=get_maxes", "maxes")?;
        let longest = maxes.value("vallen_max").and_then(|text| text.parse().ok());
        if longest.is_none_or(|longest: usize| longest < TEXT_CHARS_MAX) {
            return Err(maxes.is_wrong());
        }
        let answer = pmi.ask("cmd=get_my_kvsname", "my_kvsname")?;
        pmi.space = answer.value("kvsname").ok_or_else(|| answer.is_wrong())?.to_owned();
        Ok(pmi)
    }

    /// Sends a request, and reads the answer of this name.
    fn ask(&mut self, request: &str, name: &str) -> Result<Answer, SetupError> {
        let deadline = clock::now() + self.timeout;
        self.send(request)?;
        let answer = Answer(self.line(deadline)?);
        let is_refused = answer.value("rc").is_some_and(|code| code != "0");
        match answer.value("cmd") == Some(name) && !is_refused {
            true => Ok(answer),
            false => Err(answer.is_wrong()),
        }
    }

    /// Names are shared by the whole job, so the rank is part of them.
    fn name(&self, rank: usize, name: &str) -> String {
        debug_assert!(!name.contains([' ', '=']), "a key is one word");
        format!("kvsname={} key={name}-{rank}", self.space)
    }

    fn send(&self, request: &str) -> Result<(), SetupError> {
        debug_assert!(!request.contains('\n'), "a request is a line");
        let line = format!("{request}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(SetupError::Os { call: "ask the launcher", errno }),
            }
        }
        Ok(())
    }

    /// The next line, without its line feed.
    fn line(&mut self, deadline: Instant) -> Result<String, SetupError> {
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let rest = self.ahead.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.ahead, rest);
                line.pop();
                return String::from_utf8(line)
                    .map_err(|_| wrong("the launcher answers what is no text"));
            }
            if self.ahead.len() > LINE_BYTES_MAX {
                return Err(wrong("the launcher answers without an end"));
            }
            self.receive(deadline)?;
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<(), SetupError> {
        poll_until(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(deadline))?;
        let mut bytes = [0; LINE_BYTES_MAX];
        match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(wrong("the launcher has hung up")),
            Ok((count, _)) => self.ahead.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if clock::now() < deadline => {}
            Err(Errno::AGAIN) => return Err(SetupError::timed_out("the launcher or a rank")),
            Err(errno) => return Err(SetupError::Os { call: "hear the launcher", errno }),
        }
        Ok(())
    }
}

impl Board for Pmi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn put(&mut self, name: &str, text: &str) -> Result<(), SetupError> {
        let name = self.name(self.rank, name);
        self.ask(&format!("cmd=put {name} value={text}"), "put_result").map(drop)
    }

    fn fence(&mut self) -> Result<(), SetupError> {
        self.ask("cmd=barrier_in", "barrier_out").map(drop)
    }

    fn get(&mut self, rank: usize, name: &str) -> Result<String, SetupError> {
        let name = self.name(rank, name);
        let answer = self.ask(&format!("cmd=get {name}"), "get_result")?;
        answer.value("value").map(str::to_owned).ok_or_else(|| answer.is_wrong())
    }

    fn finish(&mut self) {
        // A launcher that does not answer has no answer that would change anything.
        let _ = self.ask("cmd=finalize", "finalize_ack");
    }
}

/// A copy of the launcher's socket. None where there is none, or where the variable comes from an
/// outer launcher: then it names no socket of this process.
pub(super) fn socket() -> Option<Descriptor> {
    std::env::var("PMI_FD").ok()?.parse().ok().and_then(inherited_socket)
}

fn variable(name: &str) -> Result<usize, SetupError> {
    let text = std::env::var(name).map_err(|_| wrong(format!("PMI_FD is set, {name} is not")))?;
    text.parse().map_err(|_| wrong(format!("{name}={text} is no number")))
}

/// A line: words of the form `name=value`.
struct Answer(String);

impl Answer {
    fn value(&self, name: &str) -> Option<&str> {
        let words = self.0.split_ascii_whitespace();
        words.filter_map(|word| word.split_once('=')).find(|word| word.0 == name).map(|it| it.1)
    }

    /// An error without the value, which others have written.
    fn is_wrong(&self) -> SetupError {
        let told = self.0.split(" value=").next().unwrap_or_default();
        wrong(format!("the launcher answers `{}`", told.escape_debug()))
    }
}
