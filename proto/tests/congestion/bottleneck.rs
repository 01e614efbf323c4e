//! Windows at a simulated bottleneck.
use super::MS;
use ayre_netsim::Flights;
use ayre_proto::link::congestion::{Config, Delay, ONE, Swift};

/// 1500 bytes at 10 Gbit/s.
const SERVICE: u64 = 1_200;
/// From a sender to the queue, and from the bottleneck back to it: 20 us of round trip.
const WAY: u64 = 10_000;
/// Frames that the queue holds; the next one is dropped.
const QUEUE: u64 = 128;

/// An event of a link. Times of sending come along, as an echo does.
#[derive(Clone, Copy, Debug)]
enum Event {
    Start,
    Stop,
    /// A frame reaches the queue.
    Arrive {
        sent: u64,
    },
    Acknowledged {
        sent: u64,
    },
    /// Found by what arrived after it.
    Lost,
    /// The pace lets it send.
    Wake,
}

struct Link {
    swift: Swift,
    is_active: bool,
    in_flight: u32,
    delivered: u64,
}

/// Links that always have something to send, through one queue of fixed rate.
struct Network {
    now: u64,
    /// An event, and its link.
    events: Flights<(usize, Event)>,
    seed: u64,
    links: Vec<Link>,
    /// When the queue will have sent all that it holds.
    idle_at: u64,
    drops: u64,
    /// The queue at each arrival, in frames.
    depths: Vec<u64>,
    /// Round trips of what was acknowledged.
    delays: Vec<u64>,
}

/// The results of a stretch of time.
struct Figures {
    /// Of what the bottleneck can carry.
    load: f64,
    /// Of the links that are active: Jain's index, 1 where all have the same.
    fairness: f64,
    /// Mean round trip, and the mean target delay of the links at the end.
    delay: f64,
    target: f64,
    /// Frames in the queue.
    deep: u64,
    deepest: u64,
    drops: u64,
}

impl Network {
    fn new(links: usize, seed: u64) -> Self {
        Self::new_with(Config::RACK, links, seed)
    }

    fn new_with(config: Config, links: usize, seed: u64) -> Self {
        let link = |_| {
            let swift = Swift::new(config);
            Link { swift, is_active: false, in_flight: 0, delivered: 0 }
        };
        Self {
            now: 0,
            events: Flights::default(),
            seed,
            links: (0..links).map(link).collect(),
            idle_at: 0,
            drops: 0,
            depths: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// Links that start within a round trip of each other.
    fn incast(links: usize, seed: u64) -> Self {
        Self::incast_with(Config::RACK, links, seed)
    }

    fn incast_with(config: Config, links: usize, seed: u64) -> Self {
        let mut network = Self::new_with(config, links, seed);
        for link in 0..links {
            let at = network.random(2 * WAY);
            network.at(at, link, Event::Start);
        }
        network
    }

    fn at(&mut self, time: u64, link: usize, event: Event) {
        self.events.push(time, (link, event));
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.seed >> 33) % below
    }

    fn run(&mut self, until: u64) {
        while let Some(time) = self.events.due()
            && time < until
            && let Some((link, event)) = self.events.take(time)
        {
            self.now = time;
            self.on_event(link, event);
        }
        self.now = until;
    }

    fn on_event(&mut self, link: usize, event: Event) {
        let now = self.now;
        match event {
            Event::Start => self.links[link].is_active = true,
            Event::Stop => self.links[link].is_active = false,
            Event::Arrive { sent } => return self.arrive(link, sent),
            Event::Acknowledged { sent } => {
                let link = &mut self.links[link];
                link.in_flight -= 1;
                link.delivered += 1;
                link.swift.on_ack(now, 1, Delay::of_network(now - sent));
                self.delays.push(now - sent);
            }
            Event::Lost => {
                self.links[link].in_flight -= 1;
                self.links[link].swift.on_loss(now, 1);
            }
            Event::Wake => {}
        }
        self.send(link);
    }

    fn arrive(&mut self, link: usize, sent: u64) {
        let begin = self.idle_at.max(self.now);
        let depth = (begin - self.now).div_ceil(SERVICE);
        self.depths.push(depth);
        if depth >= QUEUE {
            self.drops += 1;
            return self.at(begin + WAY, link, Event::Lost);
        }
        self.idle_at = begin + SERVICE;
        self.at(self.idle_at + WAY, link, Event::Acknowledged { sent });
    }

    fn send(&mut self, at: usize) {
        let now = self.now;
        while self.links[at].is_active
            && self.links[at].swift.may_send(now, self.links[at].in_flight)
        {
            let link = &mut self.links[at];
            link.swift.on_send(now, link.in_flight);
            link.in_flight += 1;
            // What hosts add to the way.
            let jitter = self.random(1_000);
            self.at(now + WAY + jitter, at, Event::Arrive { sent: now });
        }
        let link = &self.links[at];
        if link.is_active
            && link.in_flight == 0
            && let Some(next) = link.swift.next_send(now)
        {
            self.at(next, at, Event::Wake);
        }
    }

    /// Runs for so long and says what that gave.
    fn measure(&mut self, name: &str, time: u64) -> Figures {
        self.depths.clear();
        self.delays.clear();
        let before: Vec<u64> = self.links.iter().map(|link| link.delivered).collect();
        let drops = self.drops;
        self.run(self.now + time);
        let active = self.links.iter().zip(before).filter(|(link, _)| link.is_active);
        let shares: Vec<f64> =
            active.map(|(link, before)| (link.delivered - before) as f64).collect();
        let targets = self.links.iter().filter(|link| link.is_active);
        let targets = targets.map(|link| link.swift.target_delay() as f64);
        self.depths.sort_unstable();
        let figures = Figures {
            load: shares.iter().sum::<f64>() * SERVICE as f64 / time as f64,
            fairness: jain(&shares),
            delay: self.delays.iter().sum::<u64>() as f64 / self.delays.len() as f64,
            target: targets.sum::<f64>() / shares.len() as f64,
            deep: self.depths[self.depths.len() * 99 / 100],
            deepest: self.depths[self.depths.len() - 1],
            drops: self.drops - drops,
        };
        figures.print(name);
        figures
    }
}

impl Figures {
    fn is_near_target(&self, by: f64) -> bool {
        (self.delay / self.target - 1.0).abs() < by
    }

    fn print(&self, name: &str) {
        println!(
            "{name}: load {:.1} %, Jain {:.3}, delay {:.1} us for a target of {:.1} us, \
             queue {} (99 %), {} (most) of {QUEUE}, drops {}",
            self.load * 100.0,
            self.fairness,
            self.delay / 1e3,
            self.target / 1e3,
            self.deep,
            self.deepest,
            self.drops,
        );
    }
}

/// (sum x)^2 / (n sum x^2).
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// One link alone fills the bottleneck, from the first milliseconds on.
// spec: CONG-9
#[test]
fn a_single_link_fills_the_bottleneck() {
    let mut network = Network::incast(1, 1);
    let first = network.measure("1 link, first 5 ms", 5 * MS);
    let then = network.measure("1 link, next 20 ms", 20 * MS);
    assert!(first.load > 0.9 && then.load > 0.99);
    assert!(then.is_near_target(0.1) && first.drops + then.drops == 0);
}

// spec: CONG-9
#[test]
fn eight_links_share_a_bottleneck_whose_queue_stays_short() {
    for seed in 1..=4 {
        let mut network = Network::incast(8, seed);
        let first = network.measure("8 links, first 5 ms", 5 * MS);
        let then = network.measure("8 links, next 20 ms", 20 * MS);
        assert!(first.load > 0.9 && then.load > 0.99);
        assert!(first.fairness > 0.9 && then.fairness > 0.99);
        assert_eq!(first.drops + then.drops, 0);
        assert!(then.is_near_target(0.1) && then.deepest < QUEUE / 2);
    }
}

/// With this number of links each has less than one frame in flight: only the pace holds them back.
// spec: CONG-7, CONG-9
#[test]
fn more_links_than_there_are_frames_in_flight_are_paced() {
    let mut network = Network::incast(100, 1);
    network.measure("100 links, first 20 ms", 20 * MS);
    let then = network.measure("100 links, next 20 ms", 20 * MS);
    let below_one = network.links.iter().filter(|link| link.swift.window() < ONE).count();
    println!("100 links: {below_one} windows below one frame at the end");
    assert!(below_one > 50);
    assert!(then.load > 0.99 && then.fairness > 0.9);
    assert!(then.drops == 0 && then.is_near_target(0.25));
}

/// A newcomer gets its share from one that has everything, and what a link leaves, others take.
// spec: CONG-9
#[test]
fn bandwidth_shares_follow_arriving_and_leaving_links() {
    let mut network = Network::new(4, 1);
    for link in 0..4 {
        network.at(10 * MS * link as u64, link, Event::Start);
    }
    network.measure("1 of 4 links", 10 * MS);
    network.run(15 * MS);
    let two = network.measure("2 of 4 links, after 5 ms", 5 * MS);
    network.run(35 * MS);
    let four = network.measure("4 of 4 links, after 5 ms", 5 * MS);
    network.at(40 * MS, 0, Event::Stop);
    network.run(42 * MS);
    let three = network.measure("3 of 4 links, 2 ms after one left", 8 * MS);
    for figures in [two, four, three] {
        assert!(figures.load > 0.9 && figures.fairness > 0.9 && figures.drops == 0);
    }
}

/// A queue that is so shallow that no delay tells of it: only what it drops holds the links back.
// spec: CONG-5, CONG-9
#[test]
fn links_that_only_losses_hold_back_share_evenly() {
    for seed in 1..=4 {
        let config = Config { base_target: MS, ..Config::RACK };
        let mut network = Network::incast_with(config, 8, seed);
        network.measure("8 links without a target, first 5 ms", 5 * MS);
        let then = network.measure("8 links without a target, next 50 ms", 50 * MS);
        let frames = 50 * MS / SERVICE;
        println!("dropped: {:.2} %", 100.0 * then.drops as f64 / frames as f64);
        assert!(then.load > 0.99 && then.fairness > 0.99);
        assert!(then.drops < frames / 20);
    }
}
