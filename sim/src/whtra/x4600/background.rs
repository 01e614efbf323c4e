//! The planted background of the X4600.
//!
//! The source did not control its background, and says nothing about it but its effects. This one
//! is planted to have these effects, and what follows from it proves nothing about the machine. It
//! shows that the method of the source finds what is there.
use crate::random::Random;
use crate::time::Time;
use crate::topology::Topology;

/// Data from one socket's daemons to another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The first socket.
    pub from: u32,
    /// The other one.
    pub to: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// Everything that runs beside a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// The time for which the root's core is away.
    pub away: Time,
    /// Data between sockets.
    pub flows: Vec<Flow>,
}

/// A daemon that seldom runs, and takes the root's core for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// The time for which it takes the core, within a twentieth.
    pub away: Time,
    /// How often it runs, as a weight beside the other daemons.
    pub weight: u32,
    /// The bytes that it brings to the root's socket from the socket with the disks.
    pub brings: u64,
    /// The pairs of neighbouring sockets between which it moves data.
    pub moves: &'static [(u32, u32)],
}

/// Milliseconds.
const fn millis(time: u64) -> Time {
    Time::from_nanos(time * 1_000_000)
}

/// The daemons. The times of 80 ms and 600 ms are the source's (section 5.1 and figure 2). The
/// others fill its clusters, and each is half as frequent as the one before: so the slowest calls
/// take 93 % of all time, as in the source.
pub const DAEMONS: [Daemon; 4] = [
    Daemon { away: millis(40), weight: 8, brings: 100 << 10, moves: &[(1, 3), (3, 1)] },
    Daemon { away: millis(80), weight: 4, brings: 110 << 10, moves: &EVEN_SIDE },
    Daemon { away: millis(160), weight: 2, brings: 120 << 10, moves: &[(5, 7), (7, 5)] },
    Daemon { away: millis(600), weight: 1, brings: 300 << 10, moves: &[(3, 4), (4, 3)] },
];

/// The links of the cluster at 80 ms: those along the side of the sockets 0, 2, 4 and 6.
const EVEN_SIDE: [(u32, u32); 4] = [(0, 2), (2, 0), (4, 6), (6, 4)];
/// Bytes that a daemon moves between two sockets.
const MOVED: u64 = 48 << 10;

/// The chance of a daemon in a call: the slowest calls are a twentieth (section 5.1).
const CHANCE: f64 = 0.05;
/// In each call the root's core is away for a time that is exponentially distributed with this
/// mean, and a byte comes for each nanosecond.
const SHORT: f64 = 10_000.0;
/// In each call, data of this mean and length at most stream between the sockets 4 and 5, in each
/// direction.
const STREAM: (f64, f64) = (1e6, 4e6);

impl Background {
    /// The background of call number `call`.
    pub fn planted(seed: u64, call: u64) -> Self {
        let mut random = Random::new(seed, call);
        let mut flows = Vec::new();
        for (from, to) in [(4, 5), (5, 4)] {
            let bytes = (random.exponential() * STREAM.0).min(STREAM.1) as u64;
            flows.push(Flow { from, to, bytes });
        }
        let short = random.exponential() * SHORT;
        let (mut away, mut brings) = (Time::from_nanos(short as u64), short as u64);
        if random.unit() < CHANCE {
            let daemon = draw(&mut random);
            let share = 0.95 + 0.1 * random.unit();
            away = Time((daemon.away.0 as f64 * share) as u64);
            brings = daemon.brings;
            let moved = daemon.moves.iter();
            flows.extend(moved.map(|(from, to)| Flow { from: *from, to: *to, bytes: MOVED }));
        }
        flows.push(Flow { from: 0, to: 1, bytes: brings });
        Self { away, flows }
    }
}

fn draw(random: &mut Random) -> Daemon {
    let mut place = random.below(DAEMONS.iter().map(|daemon| daemon.weight).sum());
    let here = |daemon: &&Daemon| {
        let found = place < daemon.weight;
        place = place.saturating_sub(daemon.weight);
        found
    };
    *DAEMONS.iter().find(here).unwrap_or(&DAEMONS[0])
}

/// Which links of the ladder a daemon loads.
pub fn planted_links(daemon: &Daemon) -> Vec<bool> {
    let topology = Topology::ladder(1).expect("a sound number of cores");
    let loads = |pair| pair == (0, 1) || daemon.moves.contains(&pair);
    topology.links.iter().map(|link| loads((link.from.router, link.to.router))).collect()
}
