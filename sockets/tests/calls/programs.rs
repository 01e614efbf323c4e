//! Rows with other programs and processes that inherit the connection, or are passed it.

use std::ffi::{CStr, c_char, c_int};

use crate::common::call::{
    self, Outcome, close, exit_now, fork, pass, poll, popen_to_end, socket_pair, take, wait_for,
};
use crate::end::{End, TIME};

/// The number of the connection in the programs.
const FD: c_int = 9;

const SHELL: &CStr = c"/bin/sh";
const OPTION: &CStr = c"-c";
/// Answers five bytes.
const ANSWER: &CStr = c"head -c 5 <&9 >&9";

fn arguments() -> [*const c_char; 4] {
    [SHELL.as_ptr(), OPTION.as_ptr(), ANSWER.as_ptr(), std::ptr::null()]
}

/// An environment without variables: the program has no library.
const NONE: [*const c_char; 1] = [std::ptr::null()];

/// Executes the shell in a child.
fn in_child(execute: fn() -> Outcome) -> Result<c_int, i32> {
    match fork()? {
        0 => {
            let _ = execute();
            exit_now(9)
        }
        child => wait_for(child),
    }
}

fn shell_file() -> c_int {
    call!(open(SHELL.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)).expect("a shell") as c_int
}

fn spawn(
    with: unsafe extern "C" fn(
        *mut c_int,
        *const c_char,
        *const libc::posix_spawn_file_actions_t,
        *const libc::posix_spawnattr_t,
        *const *mut c_char,
        *const *mut c_char,
    ) -> c_int,
) -> Result<c_int, i32> {
    let mut child = 0;
    let (arguments, none) = (arguments(), std::ptr::null());
    // SAFETY: the arguments live until the call returns, and end with null.
    let error = unsafe {
        let arguments = arguments.as_ptr().cast();
        with(&mut child, SHELL.as_ptr(), none, std::ptr::null(), arguments, NONE.as_ptr().cast())
    };
    if error != 0 { Err(error) } else { wait_for(child) }
}

/// A child of vfork only executes.
#[inline(never)]
fn vfork_and_execute() -> Result<c_int, i32> {
    let arguments = arguments();
    #[allow(deprecated, reason = "programs call it")]
    match call!(vfork())? {
        0 => {
            let _ = call!(execv(SHELL.as_ptr(), arguments.as_ptr()));
            exit_now(9)
        }
        child => wait_for(child as c_int),
    }
}

/// Has another program answer. Returns its status when it has ended.
type Way = fn() -> Result<c_int, i32>;

const WAYS: &[(&str, Way)] = &[
    ("execl", || {
        in_child(|| {
            let (shell, none) = (SHELL.as_ptr(), std::ptr::null::<c_char>());
            call!(execl(shell, shell, OPTION.as_ptr(), ANSWER.as_ptr(), none))
        })
    }),
    // More arguments than registers have.
    ("execl with many arguments", || {
        in_child(|| {
            let (shell, none) = (SHELL.as_ptr(), std::ptr::null::<c_char>());
            let script = c"test $0$1$2$3$4$5 = 123456 && head -c 5 <&9 >&9".as_ptr();
            let [one, two, three, four, five, six] = NUMBERS.map(CStr::as_ptr);
            let option = OPTION.as_ptr();
            call!(execl(shell, shell, option, script, one, two, three, four, five, six, none))
        })
    }),
    ("execle", || {
        in_child(|| {
            let (shell, none) = (SHELL.as_ptr(), std::ptr::null::<c_char>());
            call!(execle(shell, shell, OPTION.as_ptr(), ANSWER.as_ptr(), none, NONE.as_ptr()))
        })
    }),
    ("execlp", || {
        in_child(|| {
            let (shell, none) = (c"sh".as_ptr(), std::ptr::null::<c_char>());
            call!(execlp(shell, shell, OPTION.as_ptr(), ANSWER.as_ptr(), none))
        })
    }),
    ("execv", || in_child(|| call!(execv(SHELL.as_ptr(), arguments().as_ptr())))),
    ("execvp", || in_child(|| call!(execvp(c"sh".as_ptr(), arguments().as_ptr())))),
    ("execvpe", || {
        in_child(|| call!(execvpe(c"sh".as_ptr(), arguments().as_ptr(), NONE.as_ptr())))
    }),
    ("execve", || in_child(|| call!(execve(SHELL.as_ptr(), arguments().as_ptr(), NONE.as_ptr())))),
    ("fexecve", || in_child(|| call!(fexecve(shell_file(), arguments().as_ptr(), NONE.as_ptr())))),
    ("execveat", || {
        in_child(|| {
            let (arguments, none) = (arguments(), NONE);
            let (arguments, none) = (arguments.as_ptr().cast(), none.as_ptr().cast());
            call!(execveat(shell_file(), c"".as_ptr(), arguments, none, libc::AT_EMPTY_PATH))
        })
    }),
    ("syscall of execve", || {
        in_child(|| {
            let arguments = arguments();
            call!(syscall(libc::SYS_execve, SHELL.as_ptr(), arguments.as_ptr(), NONE.as_ptr()))
        })
    }),
    ("vfork", vfork_and_execute),
    ("posix_spawn", || spawn(libc::posix_spawn)),
    ("posix_spawnp", || spawn(libc::posix_spawnp)),
    ("system", || call!(system(ANSWER.as_ptr())).map(|status| status as c_int)),
    ("popen", || popen_to_end(ANSWER)),
];

const NUMBERS: [&CStr; 6] = [c"1", c"2", c"3", c"4", c"5", c"6"];

// spec: SOCK-20
/// Another program finds the bytes that came before it began, and the connection goes on behind it.
fn has_answered_by(end: &mut End, name: &str) {
    let (_, answer) = WAYS.iter().find(|(way, _)| *way == name).expect("there is such a way");
    let mut bytes = [0; 5];
    if end.server {
        let told = call!(dup2(end.fd, FD));
        end.told("dup2", told);
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        let told = answer();
        end.say(name, told);
        end.read_exactly(&mut bytes);
        end.say("bytes", bytes);
        let told = call::write(end.fd, b"last!");
        end.told("write", told);
    } else {
        for request in [b"first", b"again"] {
            let told = call::write(end.fd, request);
            end.told("write", told);
            end.read_exactly(&mut bytes);
            end.say("answer", bytes);
        }
    }
    end.meet();
}

macro_rules! ways {
    ($($row:ident $way:literal)*) => { $(
        pub(crate) fn $row(end: &mut End) {
            has_answered_by(end, $way);
        }
    )* };
}

ways! {
    program_by_execl "execl" program_by_execl_of_many "execl with many arguments"
    program_by_execle "execle" program_by_execlp "execlp" program_by_execv "execv"
    program_by_execvp "execvp" program_by_execvpe "execvpe" program_by_execve "execve"
    program_by_fexecve "fexecve" program_by_execveat "execveat"
    program_by_syscall "syscall of execve" program_by_vfork "vfork"
    program_by_posix_spawn "posix_spawn" program_by_posix_spawnp "posix_spawnp"
    program_by_system "system" program_by_popen "popen"
}

/// Answers the request of three bytes that comes next.
fn answer(end: &mut End) {
    let mut bytes = [0; 3];
    end.read_exactly(&mut bytes);
    let told = call::write(end.fd, &bytes);
    end.told("answer", told);
}

fn ask(end: &mut End, byte: u8) {
    let mut bytes = [0; 3];
    let told = call::write(end.fd, &[byte; 3]);
    end.told("request", told);
    end.read_exactly(&mut bytes);
    end.say("answer", bytes);
}

// spec: SOCK-22
/// A daemon's parent ends, and the daemon has its connections.
pub(crate) fn daemon(end: &mut End) {
    if end.server {
        match fork() {
            Ok(0) => {
                let is_daemon = call!(daemon(0, 0)) == Ok(0);
                if is_daemon {
                    (0..20).for_each(|_| answer(end));
                }
                exit_now(i32::from(!is_daemon))
            }
            child => {
                let told = close(end.fd);
                end.told("close", told);
                let told = child.and_then(wait_for);
                end.say("parent of the daemon", told);
            }
        }
    } else {
        (0..20).for_each(|i| ask(end, i));
        let told = call::read(end.fd, &mut [0; 3]);
        end.told("read", told);
    }
    end.meet();
}

// spec: SOCK-20
/// A process that is passed the connection answers, and then the one that passed it.
pub(crate) fn passed_on(end: &mut End) {
    if !end.server {
        (0..10).for_each(|i| ask(end, i));
        return;
    }
    let [near, far] = socket_pair().expect("a pair of sockets");
    match fork() {
        Ok(0) => {
            let _ = close(end.fd);
            end.fd = take(far).expect("a descriptor comes");
            (0..5).for_each(|_| answer(end));
            exit_now(0)
        }
        child => {
            let told = poll(end.fd, libc::POLLIN, TIME);
            end.say("poll", told);
            let told = pass(near, end.fd);
            end.told("pass", told);
            let told = child.and_then(wait_for);
            end.say("child", told);
            (0..5).for_each(|_| answer(end));
        }
    }
}

/// The process goes on while its peer makes no call, and reads what it has left.
// spec: SOCK-21
pub(crate) fn program_while_the_peer_sleeps(end: &mut End) {
    for round in 0..2 {
        end.bring(10);
        if end.server {
            let told = if round == 0 { call!(system(c"true".as_ptr())) } else { Ok(0) };
            end.told("system", told);
            let told = call::ioctl_number(end.fd, libc::FIONREAD);
            end.say("FIONREAD", told);
            let told = poll(end.fd, libc::POLLIN, TIME);
            end.say("poll", told);
            let mut bytes = [0; 10];
            end.read_exactly(&mut bytes);
            end.say("bytes", bytes);
        }
        end.meet();
    }
}

/// Its peer has ended, and so could not pass on what lies in the ring.
// spec: SOCK-21
pub(crate) fn program_while_bytes_are_unread(end: &mut End) {
    end.bring(10);
    if !end.server {
        let told = call!(shutdown(end.fd, libc::SHUT_WR));
        end.told("shutdown", told);
    }
    end.meet();
    if end.server {
        let told = call!(system(c"true".as_ptr()));
        end.told("system", told);
        for _ in 0..2 {
            let told = call::read(end.fd, &mut [0; 20]);
            end.told("read", told);
        }
    }
    end.meet();
}
