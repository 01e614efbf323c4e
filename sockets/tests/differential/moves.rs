//! An end goes on as another process.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use crate::common::call::{close, exit_now, fork, pass, take, wait_for};
use crate::common::launch::ROLE;
use crate::program::{Move, Side};
use crate::setting::Setting;
use crate::strand::Strand;
use crate::wait::Dispatcher;

/// The role of a program that goes on with an end.
pub(crate) const CONTINUES: &str = "continues";

/// The variable that tells it which end: connection, side, phase, last phase, descriptor, and
/// whether the descriptor is a Unix socket that brings the end's.
const END: &str = "AYRE_SOCKETS_TEST_END";

/// The arguments of `execve`, made before the fork.
struct Image {
    path: CString,
    variables: Vec<CString>,
}

impl Image {
    fn new(end: &str, plain: bool) -> Self {
        let path = std::env::current_exe().expect("the test knows its path");
        let path = CString::new(path.as_os_str().as_bytes()).expect("a path");
        let mut variables = vec![format!("{ROLE}={CONTINUES}"), format!("{END}={end}")];
        for (name, value) in std::env::vars() {
            let left_out = [ROLE, END].contains(&name.as_str()) || (plain && name == "LD_PRELOAD");
            if !left_out {
                variables.push(format!("{name}={value}"));
            }
        }
        let variables = variables.into_iter().map(|text| CString::new(text).expect("no zero byte"));
        Self { path, variables: variables.collect() }
    }

    fn pointers(&self) -> (Vec<*mut c_char>, Vec<*mut c_char>) {
        let end = std::iter::once(std::ptr::null_mut());
        let variables = self.variables.iter().map(|text| text.as_ptr().cast_mut());
        let arguments = std::iter::once(self.path.as_ptr().cast_mut());
        (arguments.chain(end.clone()).collect(), variables.chain(end).collect())
    }

    fn exec(&self) -> ! {
        let (arguments, variables) = self.pointers();
        let (arguments, variables) = (arguments.as_ptr().cast(), variables.as_ptr().cast());
        let _ = call!(execve(self.path.as_ptr(), arguments, variables));
        exit_now(5)
    }

    fn spawn(&self) -> Result<c_int, i32> {
        let (arguments, variables) = self.pointers();
        let (arguments, variables) = (arguments.as_ptr(), variables.as_ptr());
        let (actions, attributes) = (std::ptr::null(), std::ptr::null());
        let mut child = 0;
        let path = self.path.as_ptr();
        match call!(posix_spawn(&mut child, path, actions, attributes, arguments, variables)) {
            Ok(0) => Ok(child),
            Ok(error) => Err(error as i32),
            Err(error) => Err(error),
        }
    }
}

impl Strand {
    pub(crate) fn move_on(&mut self, how: Move, to: usize) {
        let phases = self.setting.program.connections[self.connection].phases.len();
        if how.leaves() {
            self.await_signal(0);
        }
        match how {
            Move::Fork => {
                self.close_spare();
                let child = self.fork_child(to);
                self.leave();
                self.expect(close(self.fd), "close after fork");
                self.finish_child(child, to);
            }
            Move::ForkBoth | Move::Lend => {
                let last = if how == Move::Lend { self.phase + 2 } else { phases };
                let last = last.min(phases).min(to);
                if last > self.phase + 1 {
                    let child = self.fork_child(last);
                    self.finish_child(child, last);
                }
            }
            Move::Exec | Move::ExecPlain | Move::Spawn => {
                self.close_spare();
                self.leave();
                self.expect(call!(fcntl(self.fd, libc::F_SETFD, 0)), "F_SETFD");
                let image = Image::new(&self.end_text(to, self.fd, 0), how == Move::ExecPlain);
                let child = if how == Move::Spawn { image.spawn() } else { fork() };
                if how != Move::Spawn && child == Ok(0) {
                    image.exec();
                }
                self.expect(close(self.fd), "close after fork");
                self.finish_child(child, to);
            }
            Move::Pass | Move::PassPlain => {
                self.close_spare();
                self.leave();
                let mut ends = [0; 2];
                let pair =
                    call!(socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()));
                self.expect(pair, "socketpair");
                let image = Image::new(&self.end_text(to, ends[1], 1), how == Move::PassPlain);
                let child = image.spawn();
                self.expect(close(ends[1]), "close");
                self.expect(pass(ends[0], self.fd), "sendmsg with SCM_RIGHTS");
                self.expect(close(self.fd), "close after SCM_RIGHTS");
                self.finish_child(child, to);
                self.expect(close(ends[0]), "close");
            }
        }
    }

    fn end_text(&self, to: usize, fd: c_int, passed: u32) -> String {
        let (connection, side, phase) = (self.connection, self.side as u32, self.phase + 1);
        format!("{connection} {side} {phase} {to} {fd} {passed}")
    }

    /// A child that does the next phases.
    fn fork_child(&mut self, to: usize) -> Result<c_int, i32> {
        let child = fork();
        if child == Ok(0) {
            let dispatcher = Dispatcher::start(self.setting, 1);
            self.dispatcher = dispatcher;
            self.reader.begin_in_child(dispatcher);
            self.writer.begin_in_child(dispatcher);
            self.phase += 1;
            self.run(to);
            exit_now(0);
        }
        child
    }

    /// Waits for the child, which has done the phases up to this one.
    fn finish_child(&mut self, child: Result<c_int, i32>, to: usize) {
        match child.and_then(wait_for) {
            Ok(0) => self.phase = to - 1,
            told => self.fail(&format!("the child that went on told {told:?}")),
        }
    }
}

/// The role of a program that goes on with an end.
pub(crate) fn go_on() -> ! {
    let setting = Setting::new();
    let text = std::env::var(END).expect("the end is named");
    let numbers: Vec<usize> = text.split(' ').map(|n| n.parse().expect("a number")).collect();
    let [connection, side, phase, to, fd, passed] = numbers[..] else { exit_now(6) };
    let side = if side == 0 { Side::Client } else { Side::Server };
    let mut fd = fd as c_int;
    if passed == 1 {
        let unix = fd;
        fd = take(unix).unwrap_or_else(|error| {
            setting.violation(&format!("recvmsg with SCM_RIGHTS told error {error}"))
        });
        let _ = close(unix);
    }
    let dispatcher = Dispatcher::start(setting, 1);
    let mut strand = Strand::new(setting, dispatcher, connection, side, fd);
    // The end has left the library in the phase before.
    strand.phase = phase - 1;
    strand.signal(1);
    strand.phase = phase;
    strand.run(to);
    exit_now(0)
}
