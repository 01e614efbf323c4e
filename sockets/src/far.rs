//! Connections with other hosts, where the user has chosen a key, or plain links.
use crate::policy;
use crate::stream::Stream;
use ayre::endpoint::EndpointOptions;
use ayre::error::SetupError;
use ayre::guest::fork::Shared;
use ayre::guest::hidden;
use ayre::socket::{Ends, Far, Party};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The time without a sign of life after which a far process counts as dead, if the user has set
/// none.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// This time where its host says that its port is closed. TCP tells of the death of a process at
/// once.
const SILENCE: Duration = Duration::from_secs(1);

/// For how long a process that ends waits until other hosts have what it has written.
const FINISH: Duration = Duration::from_secs(2);

/// Whether this process has its endpoint.
enum State {
    /// No connection has asked yet.
    New,
    Open(Arc<Far>),
    /// It could not be opened.
    Closed,
}

static STATE: Shared<State> = Shared::new(State::New);

/// The user's choice.
struct Chosen {
    options: EndpointOptions,
    /// Processes of this host count as those of other ones.
    is_apart: bool,
}

/// Reasons that the user was told.
static SAID: Shared<Vec<String>> = Shared::new(Vec::new());

/// The most of them.
const SAID_MOST: usize = 16;

static CHOSEN: OnceLock<Option<Chosen>> = OnceLock::new();

/// Reads what the user has chosen, as the program starts: it may lose the rights to read the key.
// spec: SOCK-60
pub(crate) fn load() {
    // The standard error is the program's.
    ayre::log::set_sink(|_, _| {});
    CHOSEN.get_or_init(|| {
        let words = std::env::var_os("AYRE_SOCKETS_HOSTS")?;
        let told = |error| policy::say(&format!("no connection with other hosts: {error}"));
        Chosen::of(words.as_bytes()).map_err(told).ok()
    });
}

impl Chosen {
    /// Reads `plain` or the path of a key, and perhaps `,apart`.
    fn of(words: &[u8]) -> Result<Self, SetupError> {
        let (protection, is_apart) = match words.strip_suffix(b",apart") {
            Some(protection) => (protection, true),
            None => (words, false),
        };
        let mut options = EndpointOptions::of_variables()?.apart();
        if std::env::var_os("AYRE_DEAD_AFTER").is_none() {
            options = options.dead_after(DEAD_AFTER);
        }
        if std::env::var_os("AYRE_SILENCE").is_none() {
            options = options.silence(SILENCE);
        }
        if is_apart {
            options = options.at(Ipv4Addr::LOCALHOST.into());
        }
        let options = match protection {
            b"plain" => options.plain(),
            path => options.key_file(OsStr::from_bytes(path))?,
        };
        Ok(Self { options, is_apart })
    }
}

fn chosen() -> Option<&'static Chosen> {
    CHOSEN.get()?.as_ref()
}

/// Whether there may be connections with other hosts.
pub(crate) fn is_wanted() -> bool {
    chosen().is_some()
}

/// Whether processes of this host count as those of other ones.
pub(crate) fn is_apart() -> bool {
    chosen().is_some_and(|chosen| chosen.is_apart)
}

/// Whether connections with a host may go by a link.
pub(crate) fn may_carry(ip: IpAddr) -> bool {
    chosen().is_some_and(|it| it.is_apart || !ip.is_loopback()) && !ip.is_unspecified()
}

/// Opens the endpoint of this process, if that was not done.
fn open() -> Option<Arc<Far>> {
    let options = &chosen()?.options;
    let mut state = STATE.lock();
    if matches!(*state, State::New) {
        // The program may close all numbers that it does not know.
        hidden::hide_all();
        *state = match Far::open(options) {
            Ok(far) => State::Open(far),
            Err(error) => {
                policy::say(&format!("no connection with other hosts: {error}"));
                State::Closed
            }
        };
    }
    match &*state {
        State::Open(far) => Some(far.clone()),
        _ => None,
    }
}

/// The code by which hosts invite this process.
pub(crate) fn code() -> Option<u16> {
    open().map(|far| far.code())
}

fn party(stream: &Arc<Stream>) -> Weak<dyn Party> {
    let stream: Weak<Stream> = Arc::downgrade(stream);
    stream
}

/// A connection that has shown the code, and may be invited.
pub(crate) fn expect(name: &Ends, stream: &Arc<Stream>) {
    if let Some(far) = open() {
        far.expect(name, party(stream));
    }
}

/// Invites the process from where a connection was accepted, and which shows this code.
// spec: SOCK-68
pub(crate) fn invite(name: &Ends, from: (SocketAddr, u16), stream: &Arc<Stream>) {
    if may_carry(from.0.ip())
        && let Some(far) = open()
    {
        far.invite(name, from, party(stream));
    }
}

/// Tells the user of a link that did not come about: each reason once.
// spec: SOCK-75
pub(crate) fn say_once(text: &str) {
    let mut said = SAID.lock();
    if said.len() < SAID_MOST && !said.iter().any(|known| known == text) {
        said.push(text.to_owned());
        policy::say(text);
    }
}

/// The process is about to end, or another program takes its place: other hosts get what it has
/// written.
pub(crate) fn finish() {
    let far = match &*STATE.lock() {
        State::Open(far) => far.clone(),
        _ => return,
    };
    far.finish(FINISH);
}

/// Before a fork.
pub(crate) fn lock() {
    STATE.before_fork();
    SAID.before_fork();
}

/// After a fork. The endpoint stays the parent's: a child opens its own.
pub(crate) fn unlock(is_child: bool) {
    SAID.after_fork(|_| {});
    STATE.after_fork(|state| {
        if is_child {
            std::mem::forget(std::mem::replace(state, State::New));
        }
    });
}
