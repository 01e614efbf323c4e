//! A port's window: a socket at which processes of the same user can look at its links while its
//! program runs.
//!
//! A client that connects gets one report as JSON, and the end of the stream. The progress thread
//! serves it; nothing here waits for anybody.
use super::report::WireReport;
use crate::clock;
use crate::folder::Folder;
use crate::sys::descriptor::Descriptor;
use crate::sys::{credentials, descriptor};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, listen, send,
};
use rustix::process::geteuid;
use std::time::{Duration, Instant};

const BACKLOG: i32 = 16;
/// A visitor who has not taken everything by then is sent away.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Names that are tried: processes of several containers may share a folder and have one number.
const NAMES_MAX: u64 = 16;

/// Where a port can be looked at.
#[derive(Debug)]
pub(crate) struct StatsSocket {
    /// Where its socket has a file, and the name of that.
    file: Option<(Folder, String)>,
    socket: Descriptor,
    visitor: Option<StatsClient>,
    /// Nobody could be let in: it makes a pause.
    pauses: bool,
}

/// The client, and the text that is left to be sent.
#[derive(Debug)]
struct StatsClient {
    socket: Descriptor,
    text: Vec<u8>,
    told: usize,
    until: Instant,
}

impl StatsSocket {
    /// A window of this process's port of this identity; none where there is no place for it.
    // spec: WIRE-10
    pub(crate) fn open(identity: u64) -> Option<Self> {
        let folder = Folder::make()?;
        let socket = stream().ok()?;
        let name = name(&folder, &socket, (std::process::id(), identity))?;
        Some(Self { file: Some((folder, name)), socket, visitor: None, pauses: false })
    }

    /// A window at a name without a file: nothing of it stays, however the process ends. Anybody
    /// may call there; clients of other users are not answered.
    // spec: WIRE-10
    pub(crate) fn open_unfiled(identity: u64) -> Option<Self> {
        let socket = stream().ok()?;
        let name = format!("{}{}-{identity}", unfiled(), std::process::id());
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?).ok()?;
        listen(&socket, BACKLOG).ok()?;
        Some(Self { file: None, socket, visitor: None, pauses: false })
    }

    /// The descriptor to wait for.
    pub(super) fn watched(&mut self) -> Option<PollFd<'_>> {
        if std::mem::take(&mut self.pauses) {
            return None;
        }
        Some(match &self.visitor {
            Some(visitor) => PollFd::new(&visitor.socket, PollFlags::OUT),
            None => PollFd::new(&self.socket, PollFlags::IN),
        })
    }

    /// Tells who has come, one at a time, as much as he takes now.
    // spec: WIRE-10
    pub(super) fn serve(&mut self, report: impl FnOnce() -> WireReport) {
        if self.visitor.is_none() {
            self.visitor = self.admit(report);
        }
        if let Some(visitor) = &mut self.visitor
            && visitor.is_done()
        {
            self.visitor = None;
        }
    }

    fn admit(&mut self, report: impl FnOnce() -> WireReport) -> Option<StatsClient> {
        debug_assert!(self.visitor.is_none(), "one looks at a time");
        let socket = match descriptor::accept(&self.socket, SocketFlags::NONBLOCK) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return None,
            Err(_) => {
                self.pauses = true;
                return None;
            }
        };
        if !is_ours(&socket) {
            return None;
        }
        let text = serde_json::to_vec(&report()).ok()?;
        Some(StatsClient { socket, text, told: 0, until: clock::now() + TIMEOUT })
    }
}

/// How the names without a file of this user's windows begin.
pub(super) fn unfiled() -> String {
    format!("ayre-window-{}-", geteuid().as_raw())
}

pub(super) fn stream() -> Result<Descriptor, Errno> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::NONBLOCK);
    descriptor::socket(AddressFamily::UNIX, kind, flags, None)
}

/// Binds the socket, listens at it and then shows it: one that does not listen would be taken for
/// what a killed process has left. Returns its name.
fn name(folder: &Folder, socket: &Descriptor, (process, identity): (u32, u64)) -> Option<String> {
    let hidden = format!(".{process}-{identity}");
    folder.remove(&hidden);
    bind(socket, &folder.address(&hidden).ok()?).ok()?;
    let mut names = (0..NAMES_MAX).map(|step| match step {
        0 => format!("{process}-{identity}.sock"),
        step => format!("{process}-{identity}-{step}.sock"),
    });
    let is_shown = |name: &String| folder.rename(&hidden, name).is_ok();
    let name = listen(socket, BACKLOG).ok().and_then(|()| names.find(is_shown));
    if name.is_none() {
        folder.remove(&hidden);
    }
    name
}

impl Drop for StatsSocket {
    fn drop(&mut self) {
        if let Some((folder, name)) = &self.file {
            folder.remove(name);
        }
    }
}

impl StatsClient {
    /// Tells what he takes now. Whether that was all, or he is not worth waiting for.
    fn is_done(&mut self) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while self.told < self.text.len() {
            match send(self.socket.as_fd(), &self.text[self.told..], flags) {
                Ok(told) => {
                    self.told += told;
                    assert!(self.told <= self.text.len(), "no more is told than there is");
                }
                Err(Errno::AGAIN) => return clock::now() >= self.until,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        true
    }
}

/// Whether it is of the same user, or of root.
pub(super) fn is_ours(socket: &Descriptor) -> bool {
    let theirs = credentials::of_peer(socket.as_fd());
    theirs.is_ok_and(|theirs| theirs.uid == geteuid().as_raw() || theirs.uid == 0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::link::wire_reports;
    use crate::port::connection::identity;
    use rustix::net::connect;

    /// Longer than any socket holds.
    const LONG: usize = 1 << 24;

    fn report(program: String) -> WireReport {
        WireReport {
            format: 1,
            process: std::process::id(),
            program,
            number: 0,
            clock_ns: 0,
            links: Vec::new(),
            nets: Vec::new(),
            buffers: crate::link::BuffersReport::default(),
            refused: 0,
            malformed: 0,
            restarted: 0,
        }
    }

    fn visit(window: &StatsSocket) -> Descriptor {
        let flags = SocketFlags::CLOEXEC;
        let kind = SocketType::STREAM;
        let socket = descriptor::socket(AddressFamily::UNIX, kind, flags, None).unwrap();
        let (folder, name) = window.file.as_ref().unwrap();
        connect(&socket, &folder.address(name).unwrap()).unwrap();
        socket
    }

    // spec: WIRE-10
    #[test]
    fn a_visitor_that_does_not_read_is_closed_and_another_served() {
        let mut window = StatsSocket::open(identity()).unwrap();
        let silent = visit(&window);
        let make = || report("a name ".repeat(LONG / 7));
        window.serve(make);
        // Nobody waits for him, and the next one is not let in yet.
        let first = window.visitor.as_mut().expect("he has not taken all");
        assert!(0 < first.told && first.told < first.text.len());
        let told = first.told;
        window.serve(|| unreachable!("one at a time"));
        let first = window.visitor.as_mut().expect("his time is not over");
        assert_eq!(first.told, told);
        first.until = Instant::now();
        window.serve(make);
        assert!(window.visitor.is_none());
        drop(silent);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| wire_reports(Duration::from_secs(60)).unwrap());
            while !looking.is_finished() {
                window.serve(make);
                std::thread::yield_now();
            }
            let seen = looking.join().unwrap().reports;
            assert!(seen.iter().any(|report| *report == make()));
        });
    }

    // spec: WIRE-10
    #[test]
    fn a_name_that_is_taken_is_left_to_its_owner() {
        let identity = identity();
        let [mut first, second] = [(); 2].map(|()| StatsSocket::open(identity).unwrap());
        let name = |window: &StatsSocket| window.file.as_ref().unwrap().1.clone();
        assert_ne!(name(&first), name(&second));
        let _visitor = visit(&first);
        first.serve(|| report("first".to_owned()));
        let former = name(&first);
        drop(first);
        let names = second.file.as_ref().unwrap().0.ports();
        assert!(!names.contains(&former) && names.contains(&name(&second)), "{names:?}");
    }

    // spec: WIRE-10
    #[test]
    fn a_stats_socket_without_a_file_is_found_by_its_user() {
        let mut window = StatsSocket::open_unfiled(identity()).unwrap();
        let make = || report("an endpoint".to_owned());
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| wire_reports(Duration::from_secs(60)).unwrap());
            while !looking.is_finished() {
                window.serve(make);
                std::thread::yield_now();
            }
            let seen = looking.join().unwrap().reports;
            assert!(seen.iter().any(|report| *report == make()));
        });
        drop(window);
        assert!(!wire_reports(Duration::from_secs(60)).unwrap().reports.contains(&make()));
    }
}
