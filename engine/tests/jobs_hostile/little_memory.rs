//! Eight endpoints in a container with little memory, each of which sends to all others: through
//! memory, or over links as to other hosts.
use super::common::container::{Container, MemoryGroup};
use super::common::system::{memory_files, touched};
use super::common::{Family, Line, with_processes};
use ayre::endpoint::raw::{Completion, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span};
use ayre::endpoint::{Address, RemoteId};
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{EndpointOptions, PostError, Spin};
use std::net::Ipv4Addr;

const RANKS: usize = 8;
const MEMORY: u64 = 128 << 20;
/// Rings have an eighth of it together.
const RINGS: u64 = MEMORY / 8;
/// The memory that two endpoints share besides rings.
const LANES: u64 = 48 << 10;
/// Bytes to each of the others, so often that they would fill all rings if these had no budget.
const LEN: usize = 1 << 16;
const ROUNDS: usize = 100;
const ROUNDS_BY_LINK: usize = 20;
/// Says to a process that it meets the others as those of other hosts.
const APART: &str = "AYRE_TEST_APART";

/// The bytes that are sent in a round: each tells its sender and its round.
fn content(rank: usize, round: usize) -> u8 {
    (rank * 31 + round) as u8
}

fn addresses(line: &Line) -> Vec<Address> {
    let all = (0..RANKS).map(|_| {
        let words = [0; Address::BYTES / 8].map(|_| line.hear());
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Address::from_bytes(bytes[..].try_into().expect("64 bytes")).expect("an address")
    });
    all.collect()
}

/// One of the endpoints.
struct Rank {
    number: usize,
    endpoint: RawEndpoint,
    others: Vec<(usize, RemoteId)>,
    from: Vec<u8>,
    into: Vec<u8>,
}

impl Rank {
    fn join(number: usize, line: &Line) -> Self {
        let step = Step { from: 0, method: Method::Pipeline };
        let tuning = Tuning::new().with_steps(Use::Receive, vec![step]).expect("a step");
        let options = EndpointOptions::new().spin(Spin::SHARED).tuning(tuning);
        let options = match is_apart() {
            true => options.at(Ipv4Addr::LOCALHOST.into()).plain().apart(),
            false => options.local(),
        };
        let mut endpoint = RawEndpoint::open_with(&options).expect("an endpoint");
        let own = endpoint.address().to_bytes();
        own.as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
        let all = addresses(line).into_iter().enumerate().filter(|(rank, _)| *rank != number);
        let others: Vec<_> = all
            .map(|(rank, address)| (rank, endpoint.remote(&address).expect("a neighbour")))
            .collect();
        let (from, into) = (vec![0; LEN], vec![0; RANKS * LEN]);
        Self { number, endpoint, others, from, into }
    }

    /// Sends to all others, and receives from them.
    fn exchange(&mut self, round: usize) {
        self.from.fill(content(self.number, round));
        self.into.fill(0);
        let tag = round as u64;
        let mut unsent = Vec::new();
        for (rank, remote) in &self.others {
            let into = &mut self.into[rank * LEN..][..LEN];
            // SAFETY: the buffers are kept, and kept off, until what was posted has ended.
            let [into, from] = [into, &mut self.from[..]]
                .map(|bytes| unsafe { Span::new(bytes.as_mut_ptr(), LEN) }.into());
            let (source, many) = (Some(*remote), None);
            let receive = PostedReceive { source, tag: Some((tag, 0)), into, context: 1, many };
            self.endpoint.receive(receive).expect("there is room");
            let (data, delivered) = (None, false);
            let message =
                OutgoingMessage { tag: Some(tag), data, bytes: from, context: 2, delivered };
            unsent.push((*remote, message));
        }
        let mut due = 2 * unsent.len();
        while due > 0 {
            unsent.retain(|(remote, message)| match self.endpoint.send(*remote, message) {
                Ok(sent) => {
                    due -= usize::from(sent == Sent::Completed);
                    false
                }
                Err(PostError::Busy(_)) => true,
                Err(error) => panic!("{error}"),
            });
            let found = self.endpoint.progress(|Completion { result, .. }| {
                result.expect("all are there");
                due -= 1;
            });
            if !found {
                std::thread::yield_now();
            }
        }
        for (rank, _) in &self.others {
            let came = &self.into[rank * LEN..][..LEN];
            assert!(came.iter().all(|byte| *byte == content(*rank, round)), "{rank} in {round}");
        }
    }
}

fn is_apart() -> bool {
    std::env::var_os(APART).is_some()
}

fn be_a_rank(number: u64, line: &Line) {
    let mut rank = Rank::join(number as usize, line);
    let rounds = if is_apart() { ROUNDS_BY_LINK } else { ROUNDS };
    (0..rounds).for_each(|round| rank.exchange(round));
    let shared: Vec<_> =
        memory_files().into_iter().filter(|file| file.access.starts_with("rw")).collect();
    line.say(touched(&shared) as u64);
    // Others may not be there yet.
    while !line.has_word() {
        rank.endpoint.progress(|_| ());
        std::thread::yield_now();
    }
}

/// Has all of them send to each other, of whom the system kills none: the bytes of what they share
/// that each has touched, in sum.
fn exchange(family: &Family, environment: &[(&str, &str)]) -> Option<u64> {
    let group = MemoryGroup::new(family, MEMORY)?;
    let container = Container::none().within(&group);
    let start = || {
        container.start(family, |command| {
            command.envs(environment.iter().copied());
        })
    };
    let mut ranks = [(); RANKS].map(|()| start());
    let words: Vec<_> =
        ranks.iter().flat_map(|rank| [0; Address::BYTES / 8].map(|_| rank.line.hear())).collect();
    ranks.iter().for_each(|rank| words.iter().for_each(|word| rank.line.say(*word)));
    let touched = ranks.iter().map(|rank| rank.line.hear()).sum::<u64>();
    ranks.iter().for_each(|rank| rank.line.say(0));
    ranks.iter_mut().for_each(|rank| rank.succeeds());
    eprintln!("touched {touched} bytes in sum, {:?} in the group at most", group.peak());
    Some(touched)
}

// spec: LIM-5, ENV-42
#[test]
fn eight_endpoints_send_to_each_other_in_128_mebibytes() {
    with_processes(
        |number, line| be_a_rank(number, &line),
        |family| {
            // Each connection is two endpoints'.
            let Some(touched) = exchange(family, &[]).map(|twice| twice / 2) else { return };
            let pairs = (RANKS * (RANKS - 1) / 2) as u64;
            assert!(touched <= RINGS + pairs * LANES, "{touched} bytes of rings and lanes");
        },
    );
}

/// Rings of 1 MiB, two at either end of each link, would be 112 MiB.
// spec: LIM-5, WIRE-14
#[test]
fn eight_endpoints_send_to_each_other_over_links_in_128_mebibytes() {
    with_processes(
        |number, line| be_a_rank(number, &line),
        |family| {
            exchange(family, &[(APART, "")]);
        },
    );
}
