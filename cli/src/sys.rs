//! The few system calls that rustix does not offer; no other `unsafe` outside of `perf/raw/`.

use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// A signal that arrived, and whether the kernel itself sent it: then a terminal did, and to the
/// whole process group.
pub(crate) struct Caught {
    pub(crate) signal: Signal,
    pub(crate) from_terminal: bool,
}

/// Signals as readable events: until this is dropped, they are blocked for this thread and for the
/// threads that it starts.
pub(crate) struct SignalFd {
    fd: OwnedFd,
    /// The signals that were blocked before.
    before: libc::sigset_t,
}

impl SignalFd {
    /// Blocks `signals` and opens a descriptor that delivers them.
    pub(crate) fn new(signals: &[Signal]) -> io::Result<Self> {
        let set = signal_set(signals);
        let before = change_mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: `set` is initialised and only read during the call; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created `fd` for this call, so nobody else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// Takes the next signal that has arrived, without waiting.
    pub(crate) fn take(&self) -> io::Result<Option<Caught>> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.fd, &mut record) {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let field = |at: usize| {
            i32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let signal = Signal::from_named_raw(field(offset_of!(libc::signalfd_siginfo, ssi_signo)))
            .ok_or_else(|| io::Error::other("a signal arrived that was not asked for"))?;
        let code = field(offset_of!(libc::signalfd_siginfo, ssi_code));
        Ok(Some(Caught { signal, from_terminal: code == libc::SI_KERNEL }))
    }
}

impl Drop for SignalFd {
    /// Signals that have arrived meanwhile and were not taken act as they did before.
    fn drop(&mut self) {
        // The mask is one that the kernel itself reported, so it cannot be refused.
        let _ = change_mask(libc::SIG_SETMASK, &self.before);
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether this process was started with `signal` ignored, as `nohup` does with SIGHUP.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action only queries; the kernel fills `action`, which is read only when
    // the call succeeded.
    unsafe {
        libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Makes ended children wait for their status to be read, whatever the parent process left behind:
/// with SIGCHLD ignored the kernel would discard the status.
pub(crate) fn keep_child_status() {
    // SAFETY: SIG_DFL installs no handler, so no code of this process can run because of this call.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Stops this process as an uncaught SIGTSTP does; returns when somebody continues it.
///
/// The default action is taken rather than SIGSTOP because it spares a process group that nobody
/// could continue.
pub(crate) fn stop_self() -> io::Result<()> {
    rustix::process::kill_process(rustix::process::getpid(), Signal::TSTP)?;
    let set = signal_set(&[Signal::TSTP]);
    change_mask(libc::SIG_UNBLOCK, &set)?;
    change_mask(libc::SIG_BLOCK, &set)?;
    Ok(())
}

/// Has the child start with the signals blocked that were blocked before `signals` were. Has the
/// kernel kill it as soon as its starting thread ends: no rank outlives a killed launcher.
pub(crate) fn prepare_rank(command: &mut Command, signals: &SignalFd) {
    let launcher = rustix::process::getpid();
    let mask = signals.before;
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The launcher may have died before the line above took effect; the child then has another
        // parent.
        if rustix::process::getppid() != Some(launcher) {
            return Err(Errno::SRCH.into());
        }
        change_mask(libc::SIG_SETMASK, &mask)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. `prepare` makes plain
    // system calls (pthread_sigmask is on the list of POSIX, the others do not go through libc),
    // allocates nothing, takes no lock, touches no shared state, and its errors are bare numbers.
    unsafe { command.pre_exec(prepare) };
}

/// Whether this process may read the memory of `process`. It asks for a word at an address of its
/// own: the kernel checks the permission before it looks at the address.
pub(crate) fn cross_memory_attach_works(process: Pid) -> bool {
    let source = 0_u64;
    let mut target = 0_u64;
    let local = libc::iovec { iov_base: (&raw mut target).cast(), iov_len: size_of::<u64>() };
    let remote =
        libc::iovec { iov_base: (&raw const source).cast_mut().cast(), iov_len: size_of::<u64>() };
    // SAFETY: the kernel writes at most 8 bytes into `target`, which outlives the call, and only
    // reads at `remote`; an address that the other process lacks is reported as an error.
    let read = unsafe { libc::process_vm_readv(process.as_raw_pid(), &local, 1, &remote, 1, 0) };
    read >= 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Whether a socket for datagrams takes this option of UDP, as the wire sets it.
pub(crate) fn udp_option_works(option: libc::c_int, value: libc::c_int) -> bool {
    let Ok(socket) = std::net::UdpSocket::bind("127.0.0.1:0") else { return false };
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` lives, and the kernel reads `len`
    // bytes at the address of `value`, which has as many.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), len)
    };
    set == 0
}

fn signal_set(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it; the signal numbers are
    // valid by their type.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// Changes this thread's blocked signals and returns what was blocked before.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: `set` is initialised and only read; `before` is large enough by its type, and is read
    // only after the call has filled it.
    unsafe {
        match libc::pthread_sigmask(how, set, before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}
