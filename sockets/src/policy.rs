//! Which connections may go by rings, and which must. The environment is read before the program
//! has threads: a child that one forks while another one reads it would wait for ever.
use crate::far;
use crate::sys::memory;
use ayre::settings::check_sockets;
use ayre::socket::policy::{Act, Place, Policy, Question, Ruling, Verdict};
use ayre::socket::{Reason, user_named};
use rustix::io::write;
use rustix::net::{ipproto, sockopt};
use rustix::param::linux_execfn;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Where the policy is, if the user does not name a file.
const DEFAULT: &str = "/etc/ayre/sockets.policy";

/// Refusals that are told at most.
const TOLD_MOST: usize = 100;

/// Whether anything may.
pub(crate) fn is_on() -> bool {
    is_wanted() && !IS_OFF.load(Ordering::Relaxed)
}

/// Whether the user wants the library.
pub(crate) fn is_wanted() -> bool {
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = || std::env::var_os("AYRE_SOCKETS").is_none_or(|value| value != "off");
    *IS_WANTED.get_or_init(is_wanted)
}

static IS_OFF: AtomicBool = AtomicBool::new(false);

/// New connections of this process go by the kernel from now on.
pub(crate) fn turn_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// The folder where programs of several network namespaces meet, if the user has named one.
pub(crate) fn meeting_folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os("AYRE_SOCKETS_MEET").map(PathBuf::from);
    FOLDER.get_or_init(named).as_deref()
}

/// The policy of this process, which it has read as it started.
struct Own {
    policy: Policy,
    path: PathBuf,
    programs: [String; 2],
}

fn own() -> &'static Own {
    static OWN: OnceLock<Own> = OnceLock::new();
    OWN.get_or_init(|| {
        let named = std::env::var_os("AYRE_SOCKETS_POLICY");
        let path = PathBuf::from(named.clone().unwrap_or_else(|| OsString::from(DEFAULT)));
        let policy = read(&path, named.is_some());
        Own { policy, path, programs: programs() }
    })
}

/// The path of this program as it was started, which may be a link or a script, and without links.
fn programs() -> [String; 2] {
    let started = Path::new(OsStr::from_bytes(linux_execfn().to_bytes()));
    let started = std::path::absolute(started).unwrap_or_default();
    let found = std::env::current_exe().unwrap_or_default();
    [started, found].map(|path| path.to_string_lossy().into_owned())
}

/// Reads the policy, as the program starts: it may lose the rights to do so later. Tells of a
/// variable that the library does not have.
// spec: SOCK-32, SOCK-43
pub(crate) fn load() {
    if is_wanted() {
        if let Err(error) = check_sockets() {
            say(&error.to_string());
        }
        own();
        meeting_folder();
        far::load();
    }
}

fn read(path: &Path, is_named: bool) -> Policy {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => return Policy::default(),
        Err(error) => {
            say(&format!("{}: {error}: no connection is opened", path.display()));
            return Policy::unreadable();
        }
    };
    let (policy, faults) = Policy::read(&String::from_utf8_lossy(&text), user_named);
    if let Some(first) = faults.first() {
        let more = match faults.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        say(&format!("{}:{}: {first}{more}: no ring is used", path.display(), first.line));
    }
    policy
}

/// Says something in one line on standard error, unless the program has a connection there.
pub(crate) fn say(text: &str) {
    let errors = memory::borrowed(libc::STDERR_FILENO);
    if sockopt::socket_protocol(errors) != Ok(Some(ipproto::TCP)) {
        let _ = write(errors, format!("ayre sockets: {text}\n").as_bytes());
    }
}

fn judge(act: Act, at: Place<'_>, user: Option<u32>) -> Ruling {
    let own = own();
    own.policy.judge(&Question { act, at, programs: &own.programs, user })
}

/// Whether there is no line: no connection is judged.
pub(crate) fn is_empty() -> bool {
    own().policy.is_empty()
}

/// Whether a connection may go by rings with processes of some users.
pub(crate) fn allows_some(act: Act, at: Place<'_>) -> bool {
    let own = own();
    let question = Question { act, at, programs: &own.programs, user: None };
    own.policy.is_empty() || own.policy.allows_some(&question)
}

/// Whether a user has the rights of this process, or more: its processes need no line.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Whether a line names this user.
pub(crate) fn is_named(user: u32) -> bool {
    own().policy.names(user)
}

/// Whether a connection may go by rings with a process of this user. If so, whether the user is
/// trusted without a line.
// spec: SOCK-8, SOCK-30
pub(crate) fn check(act: Act, at: Place<'_>, user: u32) -> Result<bool, Reason> {
    let is_known = is_trusted(user);
    if is_known && is_empty() {
        return Ok(true);
    }
    match judge(act, at, Some(user)) {
        Ruling { verdict: Verdict::Never, .. } => Err(Reason::Policy),
        Ruling { names_user, .. } if is_known || names_user => Ok(is_known),
        _ => Err(Reason::OtherUser),
    }
}

/// Whether a connection that goes by no ring, for this reason, is refused. The line that says so
/// is told.
// spec: SOCK-31
pub(crate) fn refuses(act: Act, at: Place<'_>, user: Option<u32>, reason: Reason) -> bool {
    if is_empty() {
        return false;
    }
    let Ruling { verdict, line, .. } = judge(act, at, user);
    if verdict != Verdict::Must {
        return false;
    }
    if is_news((line, at.to_string())) {
        let (path, act) = (
            own().path.display(),
            match act {
                Act::Connect => "connection to",
                Act::Accept => "connection at",
            },
        );
        say(&format!(
            "{path}:{line}: {act} {at} refused, as it must go by a ring: {}",
            why(reason)
        ));
    }
    true
}

/// Whether a refusal was not told yet: a program may try again and again.
fn is_news(refusal: (u32, String)) -> bool {
    static TOLD: Mutex<BTreeSet<(u32, String)>> = Mutex::new(BTreeSet::new());
    // In a forked child the lock may stay locked.
    TOLD.try_lock().is_ok_and(|mut told| told.len() < TOLD_MOST && told.insert(refusal))
}

/// A reason in a sentence's part.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::NoPeer => "no process with the library is there",
        Reason::NoDoor => "the socket that listens has no door",
        Reason::OtherUser => "the peer is of another user, whom the line does not name",
        Reason::NotOwner => "the peer's user does not have the socket",
        Reason::NoOffer => "the peer has not offered it",
        Reason::NoRoom => "a bound is reached",
        Reason::IoUring => "the process has an io_uring",
        _ => "the policy does not allow it",
    }
}
