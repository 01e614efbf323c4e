//! The gain of a schedule that is chosen by the load of the links. Members do allreduces over slow
//! links, while one member after another fills a link to another one with its puts.
//!
//! ```sh
//! cargo build --release -p ayre --example adaptive
//! target/release/examples/adaptive [ROUNDS [BYTES [FOLDER]]]
//! ```
//!
//! The members are threads of this process, each with a port of its own, all as if on different
//! hosts. All that a port sends takes 1 ms more. Each round does the same calls by each fixed
//! schedule and by the choice of the group, with the same background traffic. Their total times are
//! printed, and the recordings of all members go to the folder, for `ayre study`.
use ayre::active::Messenger;
use ayre::collective::Combine;
use ayre::collective::{Collective, Group, Schedule};
use ayre::{
    Config, NetOptions, PeerId, Port, PostError, PostOptions, RegionOptions, RemoteRegion, Rights,
    Spin,
};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const MEMBERS: u16 = 4;
/// Calls while the same link is loaded.
const CALLS: usize = 24;
/// Links that are loaded one after the other, in a batch.
const PHASES: usize = 10;
/// Calls after which the members tell each other the load of their links.
const EVERY: NonZeroU32 = NonZeroU32::new(4).expect("not 0");
/// Bytes of a put that fills a link.
const PUT: usize = 16 << 10;
/// Frames that wait on a link that is filled when a call begins.
const WAITING: u32 = 40;
/// The extra delay of each datagram.
const PLAN: &str = "delay=1ms";

/// How long each call took, by each way.
type Times = [Vec<Duration>; WAYS.len()];

type Failed = Box<dyn Error + Send + Sync>;

/// How a batch is done: by a schedule, or as the group chooses.
const WAYS: [Option<Schedule>; 6] = [
    Some(Schedule::Star),
    Some(Schedule::Tree),
    Some(Schedule::Doubling),
    Some(Schedule::Spread),
    Some(Schedule::Ring),
    None,
];

/// A member of the group of all.
struct Member {
    messenger: Messenger<()>,
    all: Group,
    own: u16,
    /// Memory of the others, by their numbers; none of its own.
    theirs: Vec<Option<RemoteRegion>>,
    values: Vec<u64>,
}

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let folder = arguments.next().map(PathBuf::from);
    let ports = mesh()?;
    let results = thread::scope(|scope| {
        let start = |(own, port)| {
            let folder = folder.clone();
            scope.spawn(move || run(port, own, (rounds, bytes), folder))
        };
        let members: Vec<_> = (0..).zip(ports).map(start).collect();
        members.into_iter().map(|member| member.join().expect("it does not panic")).collect()
    });
    let results: Result<Vec<Times>, Failed> = results;
    print(bytes, &results?);
    Ok(())
}

/// Ports that are all connected with each other over the network.
fn mesh() -> Result<Vec<Port>, Failed> {
    let mut ports: Vec<(Port, Vec<SocketAddr>)> = vec![];
    for number in 0..MEMBERS {
        let mut port = Port::open(Config::new().number(number).spin(Spin::SHARED))?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let addresses = port.open_net(&NetOptions::plain().at(any).faults(PLAN.parse()?))?;
        for (other, at) in &mut ports {
            thread::scope(|scope| {
                let connecting = scope.spawn(|| port.connect_net(at));
                other.accept()?;
                connecting.join().expect("it does not panic")
            })?;
        }
        ports.push((port, addresses));
    }
    Ok(ports.into_iter().map(|(port, _)| port).collect())
}

/// All rounds at one member.
fn run(
    mut port: Port,
    own: u16,
    (rounds, bytes): (usize, usize),
    folder: Option<PathBuf>,
) -> Result<Times, Failed> {
    let others = || (0..MEMBERS).filter(move |member| *member != own);
    let region = port.alloc(PUT, RegionOptions::new())?;
    for other in others() {
        port.share(PeerId(other), &region, 0..PUT, Rights::all(), 1)?;
    }
    let accept = |member| match member == own {
        true => Ok(None),
        false => port.accept_region(PeerId(member), 1).map(Some),
    };
    let theirs = (0..MEMBERS).map(accept).collect::<Result<_, _>>()?;
    let mut messenger = Messenger::new(port);
    let all = messenger.collectives().group_of_all("all")?;
    let mut member = Member { messenger, all, own, theirs, values: vec![0; bytes.div_ceil(8)] };
    member.messenger.collectives().record(all, rounds * WAYS.len() * PHASES * CALLS * 2)?;
    let doubling = Some(Schedule::Doubling);
    member.messenger.collectives().fix_schedule(all, Collective::Barrier, doubling)?;
    let mut times = Times::default();
    for round in 0..rounds {
        for (way, times) in WAYS.iter().zip(&mut times) {
            member.batch(*way, round, times)?;
        }
    }
    if let Some(folder) = folder {
        std::fs::create_dir_all(&folder)?;
        let file = File::create(folder.join(format!("{own}.tsv")))?;
        member.messenger.collectives().write_recording(all, &mut BufWriter::new(file))?;
    }
    // Who leaves is a dead one to those who are still at it.
    member.messenger.collectives().barrier(&mut (), all)?;
    member.messenger.sync(&mut ())?;
    Ok(times)
}

impl Member {
    /// The calls of all phases by one way.
    fn batch(
        &mut self,
        way: Option<Schedule>,
        round: usize,
        times: &mut Vec<Duration>,
    ) -> Result<(), Failed> {
        let all = self.all;
        self.messenger.collectives().fix_schedule(all, Collective::Allreduce, way)?;
        let every = if way.is_none() { Some(EVERY) } else { None };
        self.messenger.collectives().adapt(&mut (), all, every)?;
        for call in 0..PHASES * CALLS {
            self.rest()?;
            if let Some((from, to)) = busy_link(round * PHASES + call / CALLS)
                && from == self.own
            {
                self.load(to)?;
            }
            let number = (call as u64) << 8;
            self.values.fill(number + u64::from(self.own));
            let start = Instant::now();
            let Self { messenger, values, .. } = self;
            messenger.collectives().allreduce(&mut (), all, Combine::Sum, values)?;
            times.push(start.elapsed());
            let due = u64::from(MEMBERS) * number + 6;
            assert!(self.values.iter().all(|value| *value == due), "the sum of all");
        }
        Ok(())
    }

    /// Puts until so much waits on the link.
    fn load(&mut self, to: u16) -> Result<(), Failed> {
        let remote = self.theirs[usize::from(to)].as_ref().expect("another member's");
        let port = self.messenger.port();
        let mut load = [None];
        loop {
            port.link_loads(&[PeerId(to)], &mut load);
            if load[0].is_none_or(|load| load.waiting >= WAITING) {
                return Ok(());
            }
            match port.put(remote, 0, &[1; PUT][..], PostOptions::new()) {
                Ok(_) => {}
                Err(PostError::Busy(_)) => return Ok(()),
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// Waits until nothing is under way any more, and all begin at once.
    fn rest(&mut self) -> Result<(), Failed> {
        for other in (0..MEMBERS).filter(|member| *member != self.own) {
            self.messenger.port().flush(PeerId(other))?;
        }
        Ok(self.messenger.collectives().barrier(&mut (), self.all)?)
    }
}

/// The link that is loaded in a phase, the same at all members: any, and in some phases none.
fn busy_link(phase: usize) -> Option<(u16, u16)> {
    let mixed = (phase as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    let links = u64::from(MEMBERS * (MEMBERS - 1));
    let link = (mixed % (links + 2)) as u16;
    let (from, to) = (link / (MEMBERS - 1), link % (MEMBERS - 1));
    (from < MEMBERS).then_some((from, if to < from { to } else { to + 1 }))
}

/// A call takes as long as it does at the member where it takes longest.
fn print(bytes: usize, members: &[Times]) {
    let time = |way: usize, call: usize| members.iter().map(|times| times[way][call]).max();
    let calls = members[0][0].len();
    let total = |way| (0..calls).filter_map(|call| time(way, call)).sum::<Duration>();
    let chosen = total(WAYS.len() - 1).as_secs_f64();
    println!("allreduce of {bytes} bytes, {MEMBERS} members, {calls} calls by each way");
    for (way, schedule) in WAYS.iter().enumerate() {
        let name = schedule.map_or("chosen".to_owned(), |one| format!("{one:?}").to_lowercase());
        let total = total(way).as_secs_f64();
        println!("{name:9} {:8.1} us a call {:6.2}", 1e6 * total / calls as f64, total / chosen);
    }
}
