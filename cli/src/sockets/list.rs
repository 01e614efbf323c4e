//! `ayre sockets list`: the connections of the processes of this user, or of all for root, that
//! have the library; which way their bytes go, and why.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use ayre::socket::{Reason, SeenEnd, SeenProcess, SeenWay};
use serde::{Serialize, Serializer};

use super::{tcp, unix};
use crate::info::tables::{aligned, number};

/// The arguments of `ayre sockets list`.
#[derive(clap::Args)]
#[command(after_help = "out, in: the way of the last bytes, and bytes by rings/by TCP up to now. \
    queued: bytes that stay in the rings, out/in. What the reasons mean: docs/sockets.md")]
pub(crate) struct Args {
    /// Print JSON for programs to read
    #[arg(long)]
    json: bool,
}

/// The address of an end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// The name of a Unix socket, if it has one, and its number.
    Unix(String, u64),
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(at) => f.pad(&at.to_string()),
            Self::Unix(name, _) => f.pad(if name.is_empty() { "*" } else { name }),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A socket that is, was or becomes connected.
#[derive(Clone, Debug)]
struct Socket {
    local: Address,
    remote: Address,
    state: &'static str,
}

/// All sockets of a process's network namespace, by their numbers. Of Unix sockets, only those of
/// this tool's namespace can be known.
fn sockets_of(process: u32, network: &Path) -> HashMap<u64, Socket> {
    let all = tcp::sockets(process).into_iter().filter(|(_, socket)| socket.is_connection());
    let of_tcp = |(number, socket): (u64, tcp::Socket)| {
        let [local, remote] = [socket.local, socket.remote].map(Address::Tcp);
        (number, Socket { local, remote, state: socket.state() })
    };
    let is_own = fs::read_link("/proc/self/ns/net").is_ok_and(|own| own == network);
    let unix = if is_own { unix::sockets() } else { HashMap::new() };
    let name = |number| unix.get(&number).map_or_else(String::new, |it| it.name.clone());
    let of_unix = |(number, socket): (&u64, &unix::Socket)| {
        let [local, remote] = [*number, socket.peer].map(|it| Address::Unix(name(it), it));
        (*number, Socket { local, remote, state: "ESTAB" })
    };
    all.map(of_tcp).chain(unix.iter().map(of_unix)).collect()
}

/// One end of a connection, at one process that has it.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) process: u32,
    pub(crate) program: String,
    pub(crate) local: Address,
    pub(crate) remote: Address,
    state: &'static str,
    pub(crate) out: Direction,
    #[serde(rename = "in")]
    pub(crate) inward: Direction,
    /// Why bytes go by TCP; empty: there is no reason.
    pub(crate) reason: &'static str,
}

/// One direction. Numbers that nobody knows are left out.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Direction {
    pub(crate) way: &'static str,
    pub(crate) ring_bytes: Option<u64>,
    pub(crate) tcp_bytes: Option<u64>,
    /// Bytes that stay in the ring; it takes both ends to know.
    queued: Option<u64>,
}

/// An end with the addresses of its socket.
struct Placed {
    process: u32,
    network: PathBuf,
    socket: Socket,
    end: Option<SeenEnd>,
    reason: Reason,
}

/// All connections of all processes that this user may look at, at a time.
struct Look {
    placed: Vec<Placed>,
    /// Where those with the same local and remote address are.
    places: HashMap<[Address; 2], Vec<usize>>,
}

/// Prints the table, or JSON.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let rows = rows();
    let text = match args.json {
        true => serde_json::to_string_pretty(&rows)? + "\n",
        false => table(&rows),
    };
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All connections of all processes that this user may look at.
pub(crate) fn rows() -> Vec<Row> {
    // Of bytes that are written and read all the time, no look has both ends at one moment. Those
    // that were written before the first look, and not read at the second, are in the ring.
    let [before, after] = [Look::take(), Look::take()];
    let mut rows: Vec<Row> = after.placed.iter().map(|at| row(at, &before, &after)).collect();
    rows.sort_by_cached_key(|row| (row.process, row.local.clone(), row.remote.clone()));
    rows
}

impl Look {
    fn take() -> Self {
        let mut networks: HashMap<PathBuf, HashMap<u64, Socket>> = HashMap::new();
        let mut placed = Vec::new();
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let Some(seen) = SeenProcess::look(process) else { continue };
            // The process may end meanwhile.
            let Ok(network) = fs::read_link(format!("/proc/{process}/ns/net")) else { continue };
            let sockets = networks.entry(network.clone());
            let sockets = sockets.or_insert_with(|| sockets_of(process, &network));
            placed.extend(of_process((process, &network), &seen, sockets));
        }
        Self::of(placed)
    }

    fn of(placed: Vec<Placed>) -> Self {
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, at) in placed.iter().enumerate() {
            let ends = [at.socket.local.clone(), at.socket.remote.clone()];
            places.entry(ends).or_default().push(place);
        }
        Self { placed, places }
    }

    /// The end with these addresses. Addresses such as those of loopback are in each network.
    fn end(&self, addresses: &[Address; 2], network: &Path) -> Option<SeenEnd> {
        let all = self.places.get(addresses)?.iter().map(|place| &self.placed[*place]);
        let near = all.clone().find(|at| at.network == network);
        near.or_else(|| all.clone().next())?.end
    }
}

fn of_process(
    (process, network): (u32, &Path),
    seen: &SeenProcess,
    sockets: &HashMap<u64, Socket>,
) -> Vec<Placed> {
    let ends: HashMap<u64, SeenEnd> = seen.ends.iter().map(|end| (end.socket, *end)).collect();
    // A socket may have several descriptors.
    let numbers: BTreeSet<u64> = seen.sockets.iter().copied().collect();
    let placed = |number: u64| {
        let socket = sockets.get(&number)?.clone();
        let end = ends.get(&number).copied();
        let reason = end.map_or_else(|| seen.reason(number), |end| end.reason);
        // Many Unix sockets are none that the library could know.
        let is_known = matches!(socket.local, Address::Tcp(_)) || reason != Reason::None;
        (is_known || end.is_some()).then(|| Placed {
            process,
            network: network.to_owned(),
            socket,
            end,
            reason,
        })
    };
    numbers.into_iter().filter_map(placed).collect()
}

fn row(at: &Placed, before: &Look, after: &Look) -> Row {
    let Socket { local, remote, state } = at.socket.clone();
    let own = [local.clone(), remote.clone()];
    let other = [remote.clone(), local.clone()];
    // From the writer's bytes to the reader's.
    let queued = |from: &[Address; 2], to: &[Address; 2]| {
        let (from, to) = (before.end(from, &at.network)?, after.end(to, &at.network)?);
        Some(from.outward.counts.ring.saturating_sub(to.inward.counts.ring))
    };
    Row {
        process: at.process,
        program: program(at.process),
        local,
        remote,
        state,
        out: Direction::of(at.end.map(|end| end.outward), queued(&own, &other)),
        inward: Direction::of(at.end.map(|end| end.inward), queued(&other, &own)),
        reason: at.reason.text(),
    }
}

impl Row {
    /// Bytes that stay in the rings, out and in.
    pub(crate) fn queued(&self) -> String {
        format!("{}/{}", told(self.out.queued), told(self.inward.queued))
    }
}

impl Direction {
    fn of(way: Option<SeenWay>, queued: Option<u64>) -> Self {
        Self {
            way: if way.is_some_and(|way| way.is_ring) { "ring" } else { "tcp" },
            ring_bytes: way.map(|way| way.counts.ring),
            tcp_bytes: way.map(|way| way.counts.kernel),
            queued,
        }
    }

    fn cell(&self) -> String {
        format!("{} {}/{}", self.way, told(self.ring_bytes), told(self.tcp_bytes))
    }
}

fn told(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), number)
}

/// The name of a process's program.
fn program(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no process of this user has a connection with the library\n".to_owned();
    }
    let heads = ["process", "program", "local", "remote", "state", "out", "in", "queued", "reason"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        vec![
            row.process.to_string(),
            row.program.clone(),
            row.local.to_string(),
            row.remote.to_string(),
            row.state.to_owned(),
            row.out.cell(),
            row.inward.cell(),
            row.queued(),
            row.reason.to_owned(),
        ]
    }));
    aligned(&lines)
}

#[cfg(test)]
pub(crate) mod tests {
    use ayre::socket::Counts;

    use super::*;

    /// A connection of a process that has written bytes by the ring, and by TCP.
    pub(crate) fn row_of(process: u32, ring: u64, kernel: u64) -> Row {
        let (outward, inward) = (way(ring, kernel, true), way(0, 0, false));
        let end = SeenEnd { socket: 1, reason: Reason::None, outward, inward };
        let at = placed(["127.0.0.1:1", "127.0.0.1:2"], "here", Some(end));
        let look = Look::of(vec![Placed { process, ..at }]);
        row(&look.placed[0], &look, &look)
    }

    fn way(ring: u64, kernel: u64, is_ring: bool) -> SeenWay {
        SeenWay { counts: Counts { ring, kernel }, is_ring }
    }

    fn placed([local, remote]: [&str; 2], network: &str, end: Option<SeenEnd>) -> Placed {
        let [local, remote] = [local, remote].map(|at| Address::Tcp(at.parse().unwrap()));
        let reason = end.map_or(Reason::NoPeer, |end| end.reason);
        let socket = Socket { local, remote, state: "ESTAB" };
        Placed { process: 7, network: network.into(), socket, end, reason }
    }

    // spec: SOCK-35
    #[test]
    fn the_ends_of_a_connection_find_each_other_in_their_network() {
        let (a, b) = ("127.0.0.1:80", "127.0.0.1:9000");
        let end = |outward, inward| SeenEnd { socket: 1, reason: Reason::None, outward, inward };
        let near = end(way(700, 10, true), way(50, 0, true));
        let far = end(way(90, 5, true), way(600, 10, true));
        let other = end(way(0, 0, false), way(0, 0, false));
        let placed = |near, far| {
            Look::of(vec![
                placed([b, a], "elsewhere", Some(other)),
                placed([a, b], "here", Some(near)),
                placed([b, a], "here", Some(far)),
            ])
        };
        let before = placed(near, far);
        let later = |end: SeenEnd| end.inward.counts.ring + 20;
        let (near_later, far_later) = (
            SeenEnd { inward: way(later(near), 0, true), ..near },
            SeenEnd { inward: way(later(far), 0, true), ..far },
        );
        let after = placed(near_later, far_later);
        let shown = row(&after.placed[1], &before, &after);
        assert_eq!((shown.out.queued, shown.inward.queued), (Some(80), Some(20)));
        assert_eq!(shown.out.cell(), "ring 700/10");
        let alone = Look::of(after.placed.into_iter().skip(1).take(1).collect());
        let shown = row(&alone.placed[0], &alone, &alone);
        assert_eq!(shown.out.queued, None, "its peer is another user's");
    }

    // spec: SOCK-36
    #[test]
    fn a_connection_without_rings_has_a_line_with_its_reason() {
        let look = Look::of(vec![placed(["10.0.0.1:5", "10.0.0.2:80"], "here", None)]);
        let shown = row(&look.placed[0], &look, &look);
        assert_eq!((shown.out.way, shown.reason), ("tcp", "no peer"));
        let text = table(&[shown]);
        assert!(
            text.lines().nth(1).unwrap().ends_with("tcp -/-  tcp -/-  -/-     no peer"),
            "{text}"
        );
        assert!(table(&[]).starts_with("no process"));
    }
}
