//! One end of one connection: it goes through the phases of its program.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::common::call::{
    self, close, error_name, option, poll, port_of, recv, send, set_nonblocking, set_option,
};
use crate::flow::Direction;
use crate::program::{Change, Flow, Phase, Quiet, Read, Side, Step, Wait, Write};
use crate::setting::{Place, Setting, pause, told};
use crate::wait::{Dispatcher, For, Waiter};

/// An end of a connection, in the process that has it now.
pub(crate) struct Strand {
    pub(crate) setting: &'static Setting,
    pub(crate) connection: usize,
    pub(crate) side: Side,
    pub(crate) fd: c_int,
    pub(crate) spare: Option<c_int>,
    pub(crate) reader: Waiter,
    pub(crate) writer: Waiter,
    pub(crate) dispatcher: &'static Dispatcher,
    pub(crate) phase: usize,
}

impl Strand {
    pub(crate) fn new(
        setting: &'static Setting,
        dispatcher: &'static Dispatcher,
        connection: usize,
        side: Side,
        fd: c_int,
    ) -> Self {
        let waiter = |direction| Waiter::new(setting, dispatcher, connection, side, direction);
        let (reader, writer) = (waiter(For::Read), waiter(For::Write));
        Self { setting, connection, side, fd, spare: None, reader, writer, dispatcher, phase: 0 }
    }

    pub(crate) fn place(&self) -> Place {
        Place::of(self.connection)
    }

    /// The direction in which a side writes.
    pub(crate) fn from(&self, writer: Side) -> Direction {
        Direction { setting: self.setting, connection: self.connection, writer }
    }

    pub(crate) fn fail(&self, text: &str) -> ! {
        self.from(self.side).fail(&format!("{:?}: {text}", self.side))
    }

    /// A fact of this end in this phase.
    pub(crate) fn fact(&self, text: &str) {
        let (connection, side, phase) = (self.connection, self.side, self.phase);
        self.setting.fact(&format!("{connection} {side:?} {phase} {text}"));
    }

    /// Gives a sign of this phase to the other end.
    pub(crate) fn signal(&self, number: usize) {
        self.setting.shared.set(self.place().sign(self.phase, number), 1);
    }

    /// Waits for a sign of the other end, without a call on the connection.
    pub(crate) fn await_signal(&self, number: usize) {
        let word = self.place().sign(self.phase, number);
        if !self.setting.shared.wait(|shared| shared.get(word) != 0) {
            self.fail(&format!("sign {number} of the other end did not come"));
        }
    }

    /// The phases from this one to another one, which it leaves out. Behind the last phase is the
    /// end of the connection.
    pub(crate) fn run(&mut self, to: usize) {
        let connection = &self.setting.program.connections[self.connection];
        while self.phase < to {
            let at = (self.phase as u64) << 32 | u64::from(std::process::id());
            self.setting.shared.set(self.place().at(self.side), at);
            match connection.phases.get(self.phase) {
                Some(phase) => self.do_phase(phase, to),
                None => self.finish(connection.end),
            }
            self.phase += 1;
        }
    }

    fn do_phase(&mut self, phase: &Phase, to: usize) {
        match phase {
            Phase::One(side, flow) => self.one(*side, flow),
            Phase::Both(first, second) => self.both(first, second),
            Phase::Talk(times, length) => self.talk(*times, *length),
            Phase::Change(side, change) if *side == self.side => self.change(*change, to),
            Phase::Change(_, Change::Move(how)) if how.leaves() => {
                self.signal(0);
                self.await_signal(1);
            }
            Phase::Quiet(side, quiet) => self.quiet(*side, *quiet),
            Phase::Loud(side, length) => self.loud(*side, *length),
            Phase::Stdio(side, length) => self.stdio(*side, *length),
            Phase::Urgent(side) => self.urgent(*side),
            Phase::CloseUnderRead(side, length) => self.close_under_read(*side, *length),
            Phase::TwoReaders(side, length) => self.two_readers(*side, *length),
            Phase::Change(..) => {}
        }
    }

    pub(crate) fn one(&mut self, writer: Side, flow: &Flow) {
        let direction = self.from(writer);
        if writer == self.side {
            direction.send(self.fd, flow, &mut self.writer);
        } else {
            direction.receive(self.fd, flow, &mut self.reader);
        }
    }

    /// A transfer with calls that block.
    pub(crate) fn plain(&mut self, writer: Side, length: u32) {
        let write = Step { how: Write::Write, length, wait: Wait::Block };
        let read = Step { how: Read::Read, length, wait: Wait::Block };
        self.one(writer, &Flow { length, writes: vec![write], reads: vec![read] });
    }

    fn both(&mut self, first: &Flow, second: &Flow) {
        let (mine, theirs) =
            if self.side == Side::Client { (first, second) } else { (second, first) };
        let (out, back) = (self.from(self.side), self.from(self.side.other()));
        let fd = self.fd;
        let (reader, writer) = (&mut self.reader, &mut self.writer);
        std::thread::scope(|scope| {
            scope.spawn(|| back.receive(fd, theirs, reader));
            out.send(fd, mine, writer);
        });
    }

    fn talk(&mut self, times: u8, length: u16) {
        for i in 0..u32::from(times) {
            self.plain(Side::Client, u32::from(length) + i);
            self.plain(Side::Server, u32::from(length) + 3 * i);
        }
    }

    /// Goes on with another descriptor of the same connection.
    fn become_fd(&mut self, fd: c_int) {
        self.leave();
        if fd != self.fd {
            self.expect(close(self.fd), "close");
        }
        self.fd = fd;
    }

    /// Takes the descriptor out of all epoll descriptors.
    pub(crate) fn leave(&mut self) {
        for waiter in [&mut self.reader, &mut self.writer] {
            if let Err(error) = waiter.leave(self.fd) {
                self.setting.violation(&format!("EPOLL_CTL_DEL told {}", error_name(error)));
            }
        }
    }

    pub(crate) fn expect(&self, result: Result<usize, i32>, name: &str) -> usize {
        result.unwrap_or_else(|error| self.fail(&format!("{name} told {}", told(Err(error)))))
    }

    fn change(&mut self, change: Change, to: usize) {
        let fd = self.fd;
        match change {
            Change::Dup => {
                let new = self.expect(call!(dup(fd)), "dup");
                self.become_fd(new as c_int);
            }
            Change::Dup2 | Change::Dup3 => {
                // The number is one that was in use.
                let old = self.expect(call!(dup(2)), "dup") as c_int;
                let new = match change {
                    Change::Dup2 => call!(dup2(fd, old)),
                    _ => call!(dup3(fd, old, libc::O_CLOEXEC)),
                };
                let new = self.expect(new, "dup2");
                self.become_fd(new as c_int);
            }
            Change::DupFd => {
                let new = self.expect(call!(fcntl(fd, libc::F_DUPFD_CLOEXEC, 100)), "F_DUPFD");
                self.become_fd(new as c_int);
            }
            Change::Spare if self.spare.is_none() => {
                let spare = call!(fcntl(fd, libc::F_DUPFD_CLOEXEC, 0));
                self.spare = Some(self.expect(spare, "F_DUPFD") as c_int);
            }
            Change::Spare => {}
            Change::CloseSpare => self.close_spare(),
            Change::Nonblocking(on) => {
                if let Err(error) = set_nonblocking(fd, on) {
                    self.fail(&format!("O_NONBLOCK told {}", error_name(error)));
                }
            }
            Change::NoDelay => {
                let one: c_int = 1;
                self.expect(set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &one), "NODELAY");
                let told = option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
                self.fact(&format!("TCP_NODELAY {told:?}"));
            }
            Change::Names => self.names(),
            Change::Move(how) => self.move_on(how, to),
        }
    }

    pub(crate) fn close_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            self.expect(close(spare), "close");
        }
    }

    fn names(&self) {
        let place = self.place();
        // The client may still be about to say which port it has.
        self.setting.shared.wait(|shared| shared.get(place.client_port()) != 0);
        let ports = [place.client_port(), place.port()].map(|word| self.setting.shared.get(word));
        let ports = ports.map(|port| Ok(port as u16));
        let mut told = [port_of(self.fd, false), port_of(self.fd, true)];
        if self.side == Side::Server {
            told.reverse();
        }
        if told != ports {
            self.fail(&format!("the names are {told:?} in place of {ports:?}"));
        }
    }

    /// This end has read all that the other one wrote, which writes nothing now.
    fn quiet(&mut self, side: Side, quiet: Quiet) {
        if side != self.side {
            // The other end must not go on before this one has looked.
            return self.await_signal(1);
        }
        // Where the last phase was this end's, the other end may still read. Its writes are over.
        let mut byte = [0; 8];
        let told = match quiet {
            Quiet::DontWait => recv(self.fd, &mut byte, libc::MSG_DONTWAIT),
            Quiet::Peek => recv(self.fd, &mut byte, libc::MSG_DONTWAIT | libc::MSG_PEEK),
            Quiet::Poll => poll(self.fd, libc::POLLIN, 3).map(|events| events as usize),
            Quiet::Select => self.select_now(),
            Quiet::Level => self.level_now(),
            Quiet::Timeout => {
                let nonblocking = set_nonblocking(self.fd, false);
                self.expect(call::set_receive_timeout(self.fd, 4), "SO_RCVTIMEO");
                let told = call::read(self.fd, &mut byte);
                self.expect(call::set_receive_timeout(self.fd, 0), "SO_RCVTIMEO");
                let _ = set_nonblocking(self.fd, nonblocking == Ok(true));
                told
            }
            Quiet::Available => {
                call::ioctl_number(self.fd, libc::FIONREAD).map(|number| number as usize)
            }
        };
        let reads = matches!(quiet, Quiet::DontWait | Quiet::Peek | Quiet::Timeout);
        let wanted = if reads { Err(libc::EAGAIN) } else { Ok(0) };
        if told != wanted {
            let told = crate::setting::told(told);
            self.fail(&format!("nothing is there to read, but {quiet:?} told {told}"));
        }
        self.signal(1);
    }

    fn select_now(&self) -> call::Outcome {
        let mut set = zeroed!(libc::fd_set);
        // SAFETY: descriptors of these tests are far below FD_SETSIZE.
        unsafe { libc::FD_SET(self.fd, &mut set) };
        let none = std::ptr::null_mut();
        let mut time = libc::timeval { tv_sec: 0, tv_usec: 3000 };
        call!(select(self.fd + 1, &mut set, none, none, &mut time))
    }

    /// The events that a new level-triggered epoll descriptor tells, twice in a row.
    fn level_now(&self) -> call::Outcome {
        let epoll = call!(epoll_create1(libc::EPOLL_CLOEXEC))? as c_int;
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 1 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, self.fd, &mut event))?;
        let first = call!(epoll_wait(epoll, &mut event, 1, 3))?;
        let second = call!(epoll_wait(epoll, &mut event, 1, 3))?;
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_DEL, self.fd, std::ptr::null_mut()))?;
        close(epoll)?;
        Ok(first + second)
    }

    fn loud(&mut self, writer: Side, length: u16) {
        let small = self.setting.program.connections[self.connection].small;
        let length = if small { length.min(80) } else { length };
        if writer == self.side {
            self.plain(writer, u32::from(length));
            self.signal(0);
            return self.await_signal(1);
        }
        self.await_signal(0);
        let fd = self.fd;
        match poll(fd, libc::POLLIN | libc::POLLPRI, 5000) {
            Ok(libc::POLLIN) => {}
            told => self.fail(&format!("bytes are there, but poll told {told:?}")),
        }
        // TCP may take a moment to bring all of them, or wait until there is room for more.
        let mut told = Ok(0);
        for _ in 0..100 {
            told = call::ioctl_number(fd, libc::FIONREAD);
            if told == Ok(c_int::from(length)) {
                break;
            }
            pause();
        }
        if !told.is_ok_and(|told| (1..=c_int::from(length)).contains(&told)) {
            self.fail(&format!("FIONREAD told {told:?} of {length} bytes"));
        }
        for (name, told) in [("select", self.select_now()), ("epoll", self.level_now())] {
            let wanted = if name == "select" { 1 } else { 2 };
            if told != Ok(wanted) {
                self.fail(&format!("bytes are there, but {name} told {told:?}, not {wanted}"));
            }
        }
        let mut bytes = vec![0; usize::from(length)];
        let mut taken = 0;
        while taken < bytes.len() {
            if taken > 0 && poll(fd, libc::POLLIN, 5000) != Ok(libc::POLLIN) {
                self.fail("poll did not tell of the rest of the bytes");
            }
            let count = recv(fd, &mut bytes[taken..], libc::MSG_DONTWAIT);
            let count = self.expect(count, "recv of bytes that are there");
            self.from(writer).took(&bytes[taken..taken + count]);
            taken += count;
        }
        self.signal(1);
    }

    fn urgent(&mut self, writer: Side) {
        let other = writer.other();
        if writer == self.side {
            let sent = send(self.fd, &[0xEE], libc::MSG_OOB);
            self.expect(sent, "send with MSG_OOB");
        } else {
            let told = poll(self.fd, libc::POLLPRI, 5000);
            if told != Ok(libc::POLLPRI) {
                self.fail(&format!("an urgent byte came, but poll told {told:?}"));
            }
            let mut byte = [0];
            let told = recv(self.fd, &mut byte, libc::MSG_OOB);
            if told != Ok(1) || byte != [0xEE] {
                self.fail(&format!("recv with MSG_OOB told {told:?}, {byte:?}"));
            }
        }
        self.plain(other, 1);
        self.plain(writer, 1);
    }

    fn close_under_read(&mut self, reader: Side, length: u16) {
        let writer = reader.other();
        if writer == self.side {
            self.await_signal(0);
            return self.plain(writer, u32::from(length));
        }
        let was = set_nonblocking(self.fd, false);
        let (fd, direction) = (self.fd, self.from(writer));
        let new = self.expect(call!(fcntl(fd, libc::F_DUPFD_CLOEXEC, 0)), "F_DUPFD") as c_int;
        self.leave();
        let thread = AtomicI32::new(0);
        let mut bytes = vec![0; usize::from(length)];
        let first = std::thread::scope(|scope| {
            let blocked = scope.spawn(|| {
                thread.store(call!(gettid()).unwrap_or(0) as i32, Ordering::SeqCst);
                call::read(fd, &mut bytes)
            });
            while !sleeps(thread.load(Ordering::SeqCst)) {
                pause();
            }
            self.expect(close(fd), "close while another thread reads");
            self.signal(0);
            blocked.join().unwrap_or(Err(0))
        });
        let first = self.expect(first, "a read whose descriptor another thread closed");
        if first == 0 {
            self.fail("a read whose descriptor another thread closed told the end");
        }
        direction.took(&bytes[..first]);
        self.fd = new;
        if u32::from(length) > first as u32 {
            self.plain(writer, u32::from(length) - first as u32);
        }
        let _ = set_nonblocking(self.fd, was == Ok(true));
    }

    fn two_readers(&mut self, writer: Side, length: u16) {
        if writer == self.side {
            self.plain(writer, u32::from(length));
            return self.await_signal(1);
        }
        let (fd, length) = (self.fd, u64::from(length));
        let (taken, sum) = (AtomicU64::new(0), AtomicU64::new(0));
        // By tickets for a byte each, whose reads block; or by polls that need not be true.
        let tickets = length % 2 == 1 && !call::is_nonblocking(fd);
        let read = || {
            let mut buffer = [0; 700];
            loop {
                let count = if tickets {
                    if taken.fetch_add(1, Ordering::SeqCst) >= length {
                        return;
                    }
                    call::read(fd, &mut buffer[..1])
                } else {
                    if taken.load(Ordering::SeqCst) >= length {
                        return;
                    }
                    let _ = poll(fd, libc::POLLIN, 2);
                    recv(fd, &mut buffer, libc::MSG_DONTWAIT)
                };
                match count {
                    Ok(0) => self.fail("one of two readers was told the end"),
                    Ok(count) => {
                        let bytes = buffer[..count].iter().map(|byte| u64::from(*byte));
                        sum.fetch_add(bytes.sum(), Ordering::SeqCst);
                        if !tickets {
                            taken.fetch_add(count as u64, Ordering::SeqCst);
                        }
                    }
                    Err(libc::EAGAIN) if !tickets => {}
                    Err(error) => self.fail(&format!("a reader was told {}", error_name(error))),
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(read);
            read();
        });
        let sum = sum.load(Ordering::SeqCst);
        let direction = self.from(writer);
        let wanted = direction.sum(length as usize);
        let taken = taken.load(Ordering::SeqCst);
        if sum != wanted || (!tickets && taken != length) {
            self.fail(&format!("two readers took {taken} bytes of {length}, sum {sum}, {wanted}"));
        }
        direction.skip(length as usize);
        self.signal(1);
    }
}

/// Whether a thread of this process sleeps in a call.
fn sleeps(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
}
