//! Endpoints in containers of one host, and of several users: they share memory wherever a socket
//! and memory can be handed over, and say why where not.
use super::common::container::{Container, may_make, socket_of};
use super::common::{Family, Line, with_processes};
use ayre::endpoint::raw::{
    Completion, CompletionKind, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span,
};
use ayre::endpoint::{Address, RemoteId};
use ayre::error::{DisconnectReason, Refusal};
use ayre::{Busy, EndpointOptions, Fault, Port, PostError, Spin};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, socket_with};
use std::net::Ipv4Addr;
use std::process::Command;

/// More than goes at once: some of it is asked for.
const LEN: usize = 300_000;
const TAG: u64 = 7;
/// Says to a process that only processes of its host are to reach it.
pub(super) const LOCAL: &str = "AYRE_TEST_LOCAL";
const GROUP: u32 = 4100;

/// Containers whose processes share memory with those of the host.
fn kinds() -> Vec<Container> {
    let new = Container::none;
    vec![
        new().pid(),
        new().user(),
        new().mounts(),
        new().names_and_clocks(),
        new().no_proc(),
        new().user().pid().mounts().names_and_clocks(),
    ]
}

/// The outcome of a message and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    ByMemory,
    /// By a link, since this user was not let in.
    ByLink(u32),
    Refused(u32),
    /// Refused by the side that was to call.
    Rejected(u32),
    Failed,
    /// Nobody listens there on this host.
    Elsewhere,
    /// By a link, since one side has memory files and the other one has not.
    ByLinkForFiles,
    RefusedForFiles,
}

impl Outcome {
    fn words(self) -> [u64; 2] {
        match self {
            Self::ByMemory => [0, 0],
            Self::ByLink(user) => [1, user.into()],
            Self::Refused(user) => [2, user.into()],
            Self::Rejected(user) => [3, user.into()],
            Self::Failed => [4, 0],
            Self::Elsewhere => [5, 0],
            Self::ByLinkForFiles => [6, 0],
            Self::RefusedForFiles => [7, 0],
        }
    }

    fn of(words: [u64; 2]) -> Self {
        let all = [Self::ByLink, Self::Refused, Self::Rejected];
        match words {
            [0, _] => Self::ByMemory,
            [index @ 1..=3, user] => all[index as usize - 1](user as u32),
            [5, _] => Self::Elsewhere,
            [6, _] => Self::ByLinkForFiles,
            [7, _] => Self::RefusedForFiles,
            _ => Self::Failed,
        }
    }
}

/// An endpoint, and its memory.
struct Side {
    endpoint: RawEndpoint,
    bytes: Vec<u8>,
    ended: Vec<Completion>,
}

impl Side {
    fn open() -> Self {
        let options = EndpointOptions::new().spin(Spin::SHARED);
        let options = match std::env::var_os(LOCAL) {
            Some(_) => options.local(),
            None => options.at(Ipv4Addr::LOCALHOST.into()),
        };
        let endpoint = RawEndpoint::open_with(&options).expect("an endpoint");
        Self { endpoint, bytes: vec![0; LEN], ended: Vec::new() }
    }

    fn span(&mut self) -> Span {
        // SAFETY: the memory lives as long as the endpoint, and nobody touches it until what was
        // posted has ended.
        unsafe { Span::new(self.bytes.as_mut_ptr(), self.bytes.len()) }
    }

    fn go_on(&mut self) {
        self.endpoint.progress(|end| self.ended.push(end));
        std::thread::yield_now();
    }

    /// Sends all bytes; a fault ends it.
    fn send(&mut self, remote: RemoteId) -> Result<(), Fault> {
        let bytes = self.span().into();
        let tag = Some(TAG);
        let message = OutgoingMessage { tag, data: None, bytes, context: 1, delivered: false };
        loop {
            match self.endpoint.send(remote, &message) {
                Ok(Sent::Completed) => return Ok(()),
                Ok(_) => break,
                Err(PostError::Busy(_)) => self.go_on(),
                Err(PostError::Fault(fault)) => return Err(fault),
            }
        }
        self.until(|end| end.what == CompletionKind::Sent)
    }

    fn until(&mut self, is_it: impl Fn(&Completion) -> bool) -> Result<(), Fault> {
        loop {
            if let Some(index) = self.ended.iter().position(&is_it) {
                return self.ended.swap_remove(index).result;
            }
            self.go_on();
        }
    }

    /// Posts a receive for all bytes.
    fn post(&mut self) {
        self.bytes.fill(0);
        let (into, tag) = (self.span().into(), Some((TAG, 0)));
        let receive = PostedReceive { source: None, tag, into, context: 2, many: None };
        self.endpoint.receive(receive).expect("there is room");
    }

    fn has_come(&self) -> bool {
        self.ended.iter().any(|end| matches!(end.what, CompletionKind::Received(_)))
    }

    fn check(&mut self) {
        self.until(|end| matches!(end.what, CompletionKind::Received(_))).expect("a message");
        assert!(self.bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8), "its bytes");
    }

    fn outcome(&self, remote: RemoteId, sent: Result<(), Fault>) -> Outcome {
        let user = |why: Option<&DisconnectReason>| match why {
            Some(DisconnectReason::Refused(Refusal::User(user))) => Some(Outcome::Refused(*user)),
            Some(DisconnectReason::Rejected(Refusal::User(user))) => Some(Outcome::Rejected(*user)),
            Some(DisconnectReason::Refused(Refusal::Memory)) => Some(Outcome::RefusedForFiles),
            _ => None,
        };
        let detour = user(self.endpoint.detour(remote));
        // Who looks at the links is told the same, where the system lists what can be looked at.
        let seen =
            ayre::network::wire_reports(std::time::Duration::from_secs(1)).expect("it can wait");
        let own = seen.reports.iter().filter(|port| port.process == std::process::id());
        let told = own.flat_map(|port| &port.links).filter_map(|link| link.detour.as_deref());
        let (told, known): (Vec<_>, _) = (told.collect(), self.endpoint.detour(remote));
        assert!(told.is_empty() || known.map(ToString::to_string).as_deref() == Some(told[0]));
        match (sent, detour) {
            (Ok(()), None) => Outcome::ByMemory,
            (Ok(()), Some(Outcome::Refused(user) | Outcome::Rejected(user))) => {
                Outcome::ByLink(user)
            }
            (Ok(()), Some(Outcome::RefusedForFiles)) => Outcome::ByLinkForFiles,
            (Err(Fault::Refused), _) => {
                user(self.endpoint.reason(remote)).unwrap_or(Outcome::Failed)
            }
            _ => Outcome::Failed,
        }
    }
}

/// A process: meets the other one, and calls it or is called.
pub(super) fn talk(number: u64, line: &Line) {
    let mut side = Side::open();
    let own = side.endpoint.address().to_bytes();
    own.as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
    let mut bytes = [0; Address::BYTES];
    for word in bytes.as_chunks_mut().0 {
        *word = line.hear().to_le_bytes();
    }
    let address = Address::from_bytes(&bytes).expect("an address");
    let Ok(remote) = side.endpoint.remote(&address) else {
        if number.is_multiple_of(2) {
            Outcome::Elsewhere.words().into_iter().for_each(|word| line.say(word));
        }
        line.hear();
        return;
    };
    if number.is_multiple_of(2) {
        (0..LEN).for_each(|at| side.bytes[at] = at as u8);
        let sent = side.send(remote);
        let outcome = side.outcome(remote, sent);
        if sent.is_ok() {
            side.post();
            side.check();
        }
        outcome.words().into_iter().for_each(|word| line.say(word));
    } else {
        side.post();
        while !side.has_come() && !line.has_word() {
            side.go_on();
        }
        if side.has_come() {
            side.check();
            side.send(remote).expect("an answer");
        }
    }
    // Until the other one has what it was sent.
    while !line.has_word() {
        side.go_on();
    }
}

/// Two processes in these containers, of which the first one calls.
pub(super) fn meet(
    family: &Family,
    containers: [&Container; 2],
    environment: &[(&str, &str)],
) -> Outcome {
    let start = |container: &Container| {
        container.start(family, |command| {
            command.envs(environment.iter().copied());
        })
    };
    let mut processes = containers.map(start);
    let addresses = processes.each_ref().map(|process| {
        let words: Vec<_> = (0..Address::BYTES / 8).map(|_| process.line.hear()).collect();
        words
    });
    for (process, address) in processes.iter().zip(addresses.iter().rev()) {
        address.iter().for_each(|word| process.line.say(*word));
    }
    let outcome = Outcome::of([0, 1].map(|_| processes[0].line.hear()));
    for process in &mut processes {
        process.line.say(0);
    }
    processes.iter_mut().for_each(|process| process.succeeds());
    outcome
}

/// Each kind of container beside the host, and beside one like it, whichever calls.
fn all_share(family: &Family, host: &Container, containers: &[Container]) {
    for container in containers {
        for pair in [[container, host], [host, container], [container, container]] {
            let names = pair.map(Container::name);
            assert_eq!(meet(family, pair, &[(LOCAL, "")]), Outcome::ByMemory, "{names:?}");
        }
    }
}

// spec: LIFE-7, LIFE-31, ENV-32, ENV-38
#[test]
fn endpoints_share_memory_across_namespaces() {
    with_processes(
        |number, line| talk(number, &line),
        |family| {
            if !may_make() {
                return;
            }
            let new = Container::none;
            all_share(family, &new(), &[kinds(), vec![new().pid().no_proc()]].concat());
            let user = |container: Container| container.user_and_groups(4001, &[4001]);
            all_share(family, &user(new()), &[user(new().hidepid()), user(new().pid())]);
        },
    );
}

const RANKS: usize = 7;

/// A rank of a job of MPICH's launcher, all of whose ranks are on this host.
fn be_a_rank() {
    let mut port = Port::join().expect("a job");
    let (rank, size) = (port.rank(), port.size());
    assert_eq!(size, RANKS);
    for other in 0..size {
        let peer = port.peer(other).expect("a peer");
        port.send_wait(peer, rank as u32, &[rank as u8]).expect("it is there");
    }
    let mut heard: Vec<_> = (0..size)
        .map(|_| {
            let mut byte = [0];
            port.recv(&mut byte, None).expect("a message");
            byte[0]
        })
        .collect();
    heard.sort_unstable();
    assert!(heard.into_iter().eq(0..size as u8));
    assert_eq!(port.wire_report().map_or(0, |report| report.links.len()), 0, "links of one host");
    port.barrier().expect("all are there");
}

// spec: LIFE-7, LIFE-23, LIFE-24, LIFE-31
#[test]
fn ranks_of_a_launcher_share_memory_across_namespaces() {
    with_processes(
        |_, _| be_a_rank(),
        |family| {
            let launcher = "mpiexec.hydra";
            if !may_make() {
                return;
            }
            if Command::new(launcher).arg("--version").output().is_err() {
                eprintln!("LEFT OUT: no {launcher}, so NOTHING was tested with it");
                return;
            }
            let containers = [vec![Container::none()], kinds()].concat();
            assert_eq!(containers.len(), RANKS);
            let mut command = Command::new(launcher);
            for (rank, container) in containers.iter().enumerate() {
                command.args([":"].iter().skip(usize::from(rank == 0))).args(["-n", "1"]);
                command.args(container.words(family));
            }
            family
                .start_command(command, |command| {
                    command.env_remove("PMI_FD").env_remove("PMIX_RANK");
                })
                .succeeds();
        },
    );
}

// spec: LIFE-24, LIFE-31
#[test]
fn another_network_is_another_host_though_both_share_the_folder_of_names() {
    with_processes(
        |number, line| talk(number, &line),
        |family| {
            if !may_make() {
                return;
            }
            let (host, other) = (Container::none(), Container::none().network());
            for pair in [[&other, &host], [&host, &other], [&other, &other]] {
                assert_eq!(meet(family, pair, &[(LOCAL, "")]), Outcome::Elsewhere);
            }
        },
    );
}

/// Calls of the system that sandboxes refuse, and that Ayre can do without.
const REFUSED: &[i64] = &[
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_membarrier,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_ptrace,
    libc::SYS_mlock,
    libc::SYS_madvise,
    libc::SYS_mbind,
    libc::SYS_move_pages,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_io_uring_setup,
    libc::SYS_process_madvise,
    libc::SYS_prlimit64,
    libc::SYS_getcpu,
    libc::SYS_statx,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mremap,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
];

// spec: ENV-38
#[test]
fn endpoints_do_without_the_calls_that_sandboxes_refuse() {
    with_processes(
        |number, line| talk(number, &line),
        |family| {
            for errno in [libc::EPERM, libc::ENOSYS] {
                let host = Container::none();
                all_share(family, &host, &[host.clone().denying(errno, REFUSED)]);
            }
        },
    );
}

/// Two endpoints of one process where something is not to be had, and a message between them.
fn meet_alone(number: u64) {
    let options = EndpointOptions::new().spin(Spin::SHARED);
    let options = if number == 0 { options.at(Ipv4Addr::LOCALHOST.into()) } else { options };
    let ends = [0, 1].map(|_| RawEndpoint::open_with(&options).expect("an endpoint"));
    let [own, other] = ends.each_ref().map(RawEndpoint::address);
    let host = |address: &Address| address.to_bytes()[8..16].to_vec();
    assert_eq!(
        host(&own) != host(&other),
        number == 0,
        "who has no sockets here has no neighbours"
    );
    assert_eq!(own.reached_at().is_empty(), number == 2, "{:?}", own.reached_at());
    let sides = ends.map(|endpoint| Side { endpoint, bytes: vec![0; LEN], ended: Vec::new() });
    let [mut one, mut two] = sides;
    two.post();
    (0..LEN).for_each(|at| one.bytes[at] = at as u8);
    let remote = one.endpoint.remote(&other).expect("it is found");
    let bytes = one.span().into();
    let message =
        OutgoingMessage { tag: Some(TAG), data: None, bytes, context: 1, delivered: false };
    while one.endpoint.send(remote, &message).is_err_and(|why| why.is_busy()) {
        one.go_on();
        two.go_on();
    }
    while !two.has_come() {
        one.go_on();
        two.go_on();
    }
    two.check();
}

/// Without sockets of the host, endpoints take links; without leave to list the interfaces, the
/// addresses of their routes; and without a network, they are there for their host.
// spec: ENV-32, ENV-38
#[test]
fn endpoints_open_with_the_sockets_a_sandbox_permits() {
    with_processes(
        |number, _| meet_alone(number),
        |family| {
            let unix = [socket_of(libc::AF_UNIX)];
            let netlink = [socket_of(libc::AF_NETLINK)];
            let host = Container::none();
            let mut kinds = vec![host.clone().denying(libc::EAFNOSUPPORT, &unix)];
            kinds.push(host.denying(libc::EAFNOSUPPORT, &netlink));
            if may_make() {
                kinds.push(Container::none().network());
            }
            for container in kinds {
                container.start(family, |_| {}).succeeds();
            }
        },
    );
}

/// Whichever calls, the outcome is the same: other users are not let in, root only where it lets in
/// the other one.
// spec: LIFE-7, LIFE-27, ENV-34, ENV-38
#[test]
fn users_are_let_in_by_one_rule() {
    with_processes(
        |number, line| talk(number, &line),
        |family| {
            if !may_make() {
                return;
            }
            let user = |user| Container::none().user_and_groups(user, &[user, GROUP]);
            let (root, one, other) = (Container::none(), user(4001), user(4002));
            let local = [(LOCAL, "")];
            assert_eq!(meet(family, [&one, &one], &local), Outcome::ByMemory);
            assert_eq!(meet(family, [&one, &root], &local), Outcome::Refused(4001));
            assert_eq!(meet(family, [&root, &one], &local), Outcome::Rejected(4001));
            assert_eq!(meet(family, [&one, &other], &local), Outcome::Rejected(4002));
            // An address lets in everybody who has it.
            assert_eq!(meet(family, [&one, &root], &[]), Outcome::ByLink(4001));
            assert_eq!(meet(family, [&root, &one], &[]), Outcome::ByLink(4001));
            assert_eq!(meet(family, [&one, &other], &[]), Outcome::ByLink(4002));
            let group = GROUP.to_string();
            let open = [(LOCAL, ""), ("AYRE_GROUP", &*group)];
            for pair in [[&one, &root], [&root, &one], [&one, &other]] {
                assert_eq!(meet(family, pair, &open), Outcome::ByMemory, "{pair:?}");
            }
        },
    );
}

/// Fills the place for waiting callers of an endpoint's socket that has no file.
fn fill(name: &str) -> Vec<OwnedFd> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    let call = || {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::NONBLOCK);
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None).expect("a socket");
        match connect(&socket, &address) {
            Ok(()) => Some(socket),
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN, "it is full");
                None
            }
        }
    };
    std::iter::from_fn(call).collect()
}

/// The first process is called, the second one is unconnected, and others call.
fn be_called_in_a_crowd(number: u64, line: &Line) {
    if number == 1 {
        let words = [0; 8].map(|_| line.hear());
        let callers = fill(&format!("ayre-{:016x}{:016x}", words[2], words[3]));
        line.say(callers.len() as u64);
        line.hear();
        return;
    }
    let mut side = Side::open();
    if number == 0 {
        let own = side.endpoint.address().to_bytes();
        own.as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
        line.hear();
        for _ in CALLERS {
            side.post();
            side.check();
        }
        return;
    }
    let words = [0; 8].map(|_| line.hear());
    let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let address = Address::from_bytes(bytes[..].try_into().expect("64 bytes"));
    let remote = side.endpoint.remote(&address.expect("an address")).expect("a neighbour");
    (0..LEN).for_each(|at| side.bytes[at] = at as u8);
    let (bytes, tag) = (side.span().into(), Some(TAG));
    let message = OutgoingMessage { tag, data: None, bytes, context: 1, delivered: false };
    let sent = side.endpoint.send(remote, &message);
    line.say(u64::from(sent == Err(PostError::Busy(Busy::Connecting))));
    side.send(remote).expect("it lives");
    line.say(1);
}

const CALLERS: std::ops::Range<u64> = 2..4;

/// Another user takes all places for waiting callers of an endpoint that computes. A caller that
/// shares the user's folder is not affected, and others wait: none takes the endpoint for dead.
// spec: LIFE-31, ENV-38
#[test]
fn calls_of_another_user_do_not_block_an_endpoint() {
    with_processes(
        |number, line| be_called_in_a_crowd(number, &line),
        |family| {
            if !may_make() {
                return;
            }
            let (host, stranger) =
                (Container::none(), Container::none().user_and_groups(4003, &[4003]));
            let local = |command: &mut Command| {
                command.env(LOCAL, "");
            };
            let mut called = host.start(family, local);
            let mut stranger = stranger.start(family, local);
            let address = [0; 8].map(|_| called.line.hear());
            address.iter().for_each(|word| stranger.line.say(*word));
            assert!(stranger.line.hear() > 1000, "all places are taken");
            let mut callers = [host, Container::none().mounts()].map(|container| {
                let caller = container.start(family, local);
                address.iter().for_each(|word| caller.line.say(*word));
                assert_eq!(caller.line.hear(), 1, "it is told to try again: {}", container.name());
                caller
            });
            called.line.say(0);
            callers.iter_mut().for_each(|caller| {
                assert_eq!(caller.line.hear(), 1);
                caller.succeeds();
            });
            called.succeeds();
            stranger.line.say(0);
            stranger.succeeds();
        },
    );
}
