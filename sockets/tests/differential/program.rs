//! Programs: what each end of each connection does, phase by phase. Their text is one JSON value
//! in a line for each connection.

use crate::common::call::Family;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde::{Deserialize, Serialize};

/// Processes that a program starts with. Phases may start more.
pub(crate) const PROCESSES: u8 = 2;

/// Connections of a program, at most.
pub(crate) const CONNECTIONS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        if self == Self::Client { Self::Server } else { Self::Client }
    }
}

/// How an end learns that its call can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wait {
    /// The call itself blocks, unless the descriptor does not.
    Block,
    Poll,
    Select,
    /// An epoll descriptor of this end, level-triggered.
    Level,
    /// Edge-triggered.
    Edge,
    OneShot,
    /// An epoll descriptor of the whole process, edge-triggered, on which other threads wait.
    Shared,
    SharedOneShot,
    /// Read until `SO_RCVTIMEO` is over, again and again.
    Timeout,
}

// Calls have the names that they have in C.
#[allow(clippy::enum_variant_names)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Write {
    Write,
    Send,
    Writev,
    Sendmsg,
    Sendmmsg,
    Sendfile,
    Splice,
}

// Calls have the names that they have in C.
#[allow(clippy::enum_variant_names)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Read {
    Read,
    Recv,
    Readv,
    Recvmsg,
    Recvmmsg,
    Splice,
    /// First with `MSG_PEEK`, then for good: both must tell the same bytes.
    Peek,
    /// With `MSG_WAITALL`, where the call blocks.
    WaitAll,
}

/// One call of a transfer, repeated until the transfer is done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Step<How> {
    pub(crate) how: How,
    pub(crate) length: u32,
    pub(crate) wait: Wait,
}

/// The bytes of one direction, and how each end moves them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Flow {
    pub(crate) length: u32,
    pub(crate) writes: Vec<Step<Write>>,
    pub(crate) reads: Vec<Step<Read>>,
}

/// How an end goes on as another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Move {
    /// A child goes on; the parent closes its descriptor and waits for the child.
    Fork,
    /// A child goes on; the parent keeps its descriptor open meanwhile.
    ForkBoth,
    /// A child does the next phase, and then the parent goes on.
    Lend,
    /// The child executes another program.
    Exec,
    /// That program has no library.
    ExecPlain,
    /// `posix_spawn` starts the program.
    Spawn,
    /// The program gets the descriptor by a message.
    Pass,
    PassPlain,
}

impl Move {
    /// Whether the end goes on without the library. Bytes that it has not read then come in later
    /// calls of the other end, so none may be under way.
    pub(crate) fn leaves(self) -> bool {
        !matches!(self, Self::Fork | Self::ForkBoth | Self::Lend)
    }
}

/// A change at one end, which the other end must not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// The end goes on with a duplicate, and closes the old descriptor.
    Dup,
    Dup2,
    Dup3,
    DupFd,
    /// A duplicate stays open besides.
    Spare,
    CloseSpare,
    Nonblocking(bool),
    NoDelay,
    /// The names of both ends are right.
    Names,
    Move(Move),
}

/// A look of an end that has nothing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Quiet {
    DontWait,
    Peek,
    Poll,
    Select,
    Level,
    Timeout,
    Available,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// One end sends.
    One(Side, Flow),
    /// Both ends send at once, each with a thread for each direction: the flow of the client, and
    /// of the server.
    Both(Flow, Flow),
    /// Requests and answers of these lengths, with blocking reads.
    Talk(u8, u16),
    Change(Side, Change),
    Quiet(Side, Quiet),
    /// This end sends, and the other one looks before it reads.
    Loud(Side, u16),
    /// Both ends use streams of stdio; this end begins.
    Stdio(Side, u16),
    /// An urgent byte.
    Urgent(Side),
    /// A thread reads; meanwhile another one closes the descriptor, and has a duplicate.
    CloseUnderRead(Side, u16),
    /// Two threads of the other end read at once what this end sends.
    TwoReaders(Side, u16),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum End {
    /// This end shuts its half down; the other one still sends some bytes.
    Shutdown(Side, u32),
    /// This end closes, and the other one writes in vain.
    Close(Side, bool),
    /// `SO_LINGER` 0.
    Reset(Side),
    /// This end closes while bytes wait for it.
    CloseUnread(Side, u16),
    /// This end dies by a signal.
    Kill(Side),
    ShutdownRead(Side),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Opening {
    Block,
    /// A non-blocking `connect`, `poll` and `SO_ERROR`; a non-blocking `accept`.
    Poll,
    Level,
    /// One listener for all connections of the process, on which a thread waits.
    Shared,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Connection {
    /// The processes of the client and of the server.
    pub(crate) client: u8,
    pub(crate) server: u8,
    pub(crate) connect: Opening,
    pub(crate) accept: Opening,
    /// Small buffers of the sockets, so that writers wait.
    pub(crate) small: bool,
    /// Unix sockets in place of TCP.
    #[serde(default)]
    pub(crate) unix: bool,
    pub(crate) phases: Vec<Phase>,
    pub(crate) end: End,
}

impl Connection {
    pub(crate) fn family(&self) -> Family {
        if self.unix { Family::Unix } else { Family::Tcp }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) connections: Vec<Connection>,
}

impl Program {
    pub(crate) fn text(&self) -> String {
        let lines = self.connections.iter().map(|c| serde_json::to_string(c).expect("plain data"));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }

    /// Whether its facts hang on bytes that arrive at once: where an end dies, or closes while
    /// others come.
    pub(crate) fn is_of_one_host(&self) -> bool {
        let is_sudden = |c: &Connection| matches!(c.end, End::Kill(_) | End::CloseUnread(..));
        self.connections.iter().any(is_sudden)
    }

    /// A child has copies of all descriptors of its parent, also of other ends. So a close of
    /// those is no end: then the connections end by a shutdown.
    fn without_strays(mut self) -> Self {
        let forks = |c: &Connection| {
            let moves = |phase: &Phase| matches!(phase, Phase::Change(_, Change::Move(_)));
            matches!(c.end, End::Kill(_)) || c.phases.iter().any(moves)
        };
        let several = self.connections.len() > 1;
        let any = self.connections.iter().any(|c| forks(c) && (several || c.client == c.server));
        for connection in self.connections.iter_mut().filter(|_| any) {
            if !matches!(connection.end, End::Shutdown(..)) {
                connection.end = End::Shutdown(Side::Client, 100);
            }
        }
        self
    }

    /// TCP with small buffers sends a segment per 200 ms once it has met a closed window. So flows
    /// of these connections are short.
    fn without_long_waits(mut self) -> Self {
        const MOST: u32 = 20_000;
        for connection in self.connections.iter_mut().filter(|c| c.small) {
            for phase in &mut connection.phases {
                if let Phase::One(_, flow) = phase {
                    flow.length = flow.length.min(MOST);
                }
                if let Phase::Both(first, second) = phase {
                    first.length = first.length.min(MOST);
                    second.length = second.length.min(MOST);
                }
            }
            if let End::Shutdown(_, length) = &mut connection.end {
                *length = (*length).min(MOST);
            }
        }
        self
    }

    /// Unix sockets have no ports by which a listener of all knows its clients, and neither
    /// options nor resets of TCP. The writer sees that its reader has shut its half down.
    fn without_tcp(mut self) -> Self {
        for connection in self.connections.iter_mut().filter(|c| c.unix) {
            connection.phases.retain(|phase| {
                !matches!(phase, Phase::Urgent(_) | Phase::Change(_, Change::NoDelay))
            });
            if connection.accept == Opening::Shared {
                connection.accept = Opening::Block;
            }
            if let End::Reset(side) | End::ShutdownRead(side) = connection.end {
                connection.end = End::Shutdown(side, 100);
            }
        }
        self
    }

    /// A program of its text. Lines that begin with `#` are comments.
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let connections: Vec<_> =
            lines.map(|line| serde_json::from_str(line).expect("a connection's line")).collect();
        assert!(connections.len() <= CONNECTIONS, "a program has up to {CONNECTIONS} connections");
        Self { connections }
    }
}

fn side() -> impl Strategy<Value = Side> {
    select(vec![Side::Client, Side::Server])
}

/// Lengths of a call: odd ones, powers of two and their neighbours, a few large ones.
fn length(most: u32) -> impl Strategy<Value = u32> {
    let power = (0u32..=20, 0u32..3).prop_map(|(power, off)| ((1u32 << power) + off).max(2) - 1);
    prop_oneof![3 => 1u32..100, 3 => 1u32..5000, 2 => 1u32..200_000, 2 => power]
        .prop_map(move |length| length.clamp(1, most))
}

fn wait() -> impl Strategy<Value = Wait> {
    use Wait as W;
    let waits = [W::Poll, W::Select, W::Level, W::Edge, W::OneShot, W::Shared, W::SharedOneShot];
    prop_oneof![4 => Just(W::Block), 6 => select(waits.to_vec()), 1 => Just(W::Timeout)]
}

fn writes() -> impl Strategy<Value = Vec<Step<Write>>> {
    use Write as W;
    let hows = [W::Write, W::Send, W::Writev, W::Sendmsg, W::Sendmmsg, W::Sendfile, W::Splice];
    let hows = prop_oneof![2 => select(hows[..5].to_vec()), 1 => select(hows.to_vec())];
    let step = (hows, length(1 << 20), wait());
    vec(step.prop_map(|(how, length, wait)| Step { how, length, wait }), 1..4)
}

fn reads() -> impl Strategy<Value = Vec<Step<Read>>> {
    use Read as R;
    let hows =
        [R::Read, R::Recv, R::Readv, R::Recvmsg, R::Recvmmsg, R::WaitAll, R::Peek, R::Splice];
    let hows = prop_oneof![2 => select(hows[..5].to_vec()), 1 => select(hows.to_vec())];
    let step = (hows, length(1 << 20), wait());
    vec(step.prop_map(|(how, length, wait)| Step { how, length, wait }), 1..4)
}

fn flow(most: u32) -> impl Strategy<Value = Flow> {
    (length(most), writes(), reads()).prop_map(|(length, writes, mut reads)| {
        let mut writes = writes;
        // Thousands of calls for one transfer would only take time.
        for step in &mut writes {
            step.length = step.length.max(length / 300);
        }
        for step in &mut reads {
            step.length = step.length.max(length / 300);
        }
        Flow { length, writes, reads }
    })
}

fn change() -> impl Strategy<Value = Change> {
    use Change as C;
    use Move as M;
    let small = [C::Dup, C::Dup2, C::Dup3, C::DupFd, C::Spare, C::CloseSpare, C::NoDelay, C::Names];
    let moves = [M::Fork, M::ForkBoth, M::Lend, M::Exec, M::ExecPlain, M::Spawn, M::Pass];
    let moves = [&moves[..], &[M::PassPlain]].concat();
    prop_oneof![
        4 => select(small.to_vec()),
        2 => any::<bool>().prop_map(C::Nonblocking),
        2 => select(moves).prop_map(C::Move),
    ]
}

fn quiet() -> impl Strategy<Value = Quiet> {
    use Quiet as Q;
    let all = [Q::DontWait, Q::Peek, Q::Poll, Q::Select, Q::Level, Q::Timeout, Q::Available];
    select(all.to_vec())
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        6 => (side(), flow(1 << 20)).prop_map(|(side, flow)| Phase::One(side, flow)),
        2 => (flow(1 << 18), flow(1 << 18)).prop_map(|(one, other)| Phase::Both(one, other)),
        6 => (1u8..6, 1u16..3000).prop_map(|(times, length)| Phase::Talk(times, length)),
        6 => (side(), change()).prop_map(|(side, change)| Phase::Change(side, change)),
        2 => (side(), quiet()).prop_map(|(side, quiet)| Phase::Quiet(side, quiet)),
        2 => (side(), 1u16..20_000).prop_map(|(side, length)| Phase::Loud(side, length)),
        1 => (side(), 1u16..9000).prop_map(|(side, length)| Phase::Stdio(side, length)),
        1 => side().prop_map(Phase::Urgent),
        1 => (side(), 1u16..9000).prop_map(|(side, length)| Phase::CloseUnderRead(side, length)),
        1 => (side(), 1u16..9000).prop_map(|(side, length)| Phase::TwoReaders(side, length)),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => (side(), length(100_000)).prop_map(|(side, length)| End::Shutdown(side, length)),
        2 => (side(), any::<bool>()).prop_map(|(side, write)| End::Close(side, write)),
        1 => side().prop_map(End::Reset),
        1 => (side(), 1u16..9000).prop_map(|(side, length)| End::CloseUnread(side, length)),
        1 => side().prop_map(End::Kill),
        1 => side().prop_map(End::ShutdownRead),
    ]
}

fn opening() -> impl Strategy<Value = Opening> {
    select(vec![Opening::Block, Opening::Poll, Opening::Level, Opening::Shared])
}

fn connection() -> impl Strategy<Value = Connection> {
    let ends = prop_oneof![5 => Just((1, 0)), 4 => Just((0, 1)), 1 => Just((0, 0))];
    let small = prop_oneof![3 => Just(false), 1 => Just(true)];
    let unix = prop_oneof![2 => Just(false), 1 => Just(true)];
    (ends, opening(), opening(), small, unix, vec(phase(), 0..9), end()).prop_map(
        |((client, server), connect, accept, small, unix, phases, end)| Connection {
            client,
            server,
            connect,
            accept,
            small,
            unix,
            phases,
            end,
        },
    )
}

/// Any program.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    let count = prop_oneof![3 => Just(1..2usize), 2 => Just(2..CONNECTIONS + 1)];
    count.prop_flat_map(|count| vec(connection(), count)).prop_map(|connections| {
        Program { connections }.without_tcp().without_strays().without_long_waits()
    })
}
