//! Shares of links in a pool, under any load, and of ports whose pools are too small for all.
use super::*;
use crate::link::NetOptions;
use crate::{
    Config, PeerId, Port, PostError, PostOptions, RegionOptions, RemoteRegion, Rights, Spin,
};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Links of a port, as its table has them.
const LINKS_MAX: usize = 2048;
const POSTED: Channel = Channel::Posted;

/// A share with what each of its channels has, as a receiver counts it.
struct Link {
    share: Share,
    has: [u32; CHANNELS],
}

impl Link {
    fn of(pool: &Arc<Pool>) -> Self {
        let share = Share::of(pool);
        let has = [share.least(); CHANNELS];
        Self { share, has }
    }

    /// A frame comes and is taken.
    fn take(&mut self, channel: Channel, now: u64) {
        let has = &mut self.has[channel.index()];
        *has -= 1;
        *has += self.share.renew(channel, *has, now);
    }

    /// As many as would give it all that it can have.
    fn take_many(&mut self, channel: Channel, now: u64) {
        (0..2 * WINDOW).for_each(|_| self.take(channel, now));
    }

    fn has(&self) -> u32 {
        self.has.iter().sum()
    }
}

// spec: WIRE-12
#[test]
fn each_link_gets_its_least_buffers_though_others_take_the_rest() {
    let pool = Pool::of_port(LINKS_MAX, u64::MAX);
    assert_eq!(pool.counts().in_all, BUFFERS);
    let least = LEAST * CHANNELS as u32;
    let mut links: Vec<_> = (0..LINKS_MAX / 2).map(|_| Link::of(&pool)).collect();
    for link in &mut links {
        Channel::ALL.into_iter().for_each(|channel| link.take_many(channel, 1));
    }
    let counts = pool.counts();
    assert!(counts.in_all - counts.given - counts.reserved < PART, "others have all the rest");
    links.extend((links.len()..LINKS_MAX).map(|_| Link::of(&pool)));
    let counts = pool.counts();
    assert!(counts.given <= counts.in_all && counts.reserved == 0, "{counts:?}");
    for link in &mut links[LINKS_MAX / 2..] {
        link.take_many(POSTED, 1);
        assert_eq!(link.has(), least, "it goes on with the least");
    }
    let given = links.iter().map(Link::has).sum::<u32>();
    assert_eq!(given, pool.counts().given);
}

// spec: WIRE-12
#[test]
fn a_channel_in_use_grows_to_the_full_window() {
    let pool = Pool::of_port(LINKS_MAX, u64::MAX);
    let mut link = Link::of(&pool);
    let mut steps = Vec::new();
    for _ in 0..2 * WINDOW {
        link.take(POSTED, 1);
        steps.push(link.has[0]);
    }
    assert!(steps.windows(2).all(|two| two[0] <= two[1]), "{steps:?}");
    assert_eq!(steps.iter().position(|has| *has == WINDOW), Some(4 + 8 + 16 + 32 + 64 - 1));
    assert_eq!(link.has, [WINDOW, LEAST, LEAST]);
}

// spec: WIRE-12, LIM-5
#[test]
fn fewer_buffers_are_shared_where_there_is_little_memory() {
    let shared = |bytes| {
        let Counts { in_all, reserved, .. } = Pool::of_port(LINKS_MAX, bytes).counts();
        in_all - reserved
    };
    assert_eq!([16 << 20, u64::MAX].map(shared), [8192; 2]);
    assert_eq!(shared(2 << 20), 1398);
    assert_eq!([0, 1 << 10].map(shared), [PART * LEAST; 2], "each of few has more than its least");
}

// spec: WIRE-12
#[test]
fn an_idle_channel_returns_its_buffers() {
    let pool = Pool::of_port(LINKS_MAX, u64::MAX);
    let mut link = Link::of(&pool);
    link.take_many(POSTED, 1);
    let full = pool.counts().given;
    // Once in a while a frame comes, and no buffer for another one.
    for frame in 1..=u64::from(WINDOW) {
        link.take(POSTED, 1 + frame * IDLE);
    }
    assert_eq!(link.has, [LEAST; CHANNELS]);
    assert_eq!(pool.counts().given, full - (WINDOW - LEAST));
    // It is used again.
    let later = 1 + u64::from(WINDOW + 1) * IDLE;
    link.take_many(POSTED, later);
    assert_eq!(link.has[0], WINDOW);
}

// spec: WIRE-12
#[test]
fn a_link_that_ends_gives_back_all() {
    let pool = Pool::new(2, 100);
    let before = pool.counts();
    let mut link = Link::of(&pool);
    link.take_many(POSTED, 1);
    assert_ne!(pool.counts(), before);
    drop(link);
    assert_eq!(pool.counts(), before);
}

#[derive(Clone, Debug)]
enum Step {
    Begin,
    End(usize),
    Take { link: usize, channel: usize, frames: u32, pause: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Begin),
        1 => any::<usize>().prop_map(Step::End),
        8 => (any::<usize>(), 0..CHANNELS, 1..100u32, any::<bool>()).prop_map(
            |(link, channel, frames, pause)| Step::Take { link, channel, frames, pause }
        ),
    ]
}

proptest! {
    // spec: WIRE-12
    #[test]
    fn buffers_are_conserved(
        shared in 0..600u32,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        const LINKS: u32 = 12;
        let pool = Pool::new(LINKS, shared);
        let (mut links, mut now) = (Vec::<Link>::new(), 1);
        for step in steps {
            match step {
                Step::Begin if links.len() < LINKS as usize => links.push(Link::of(&pool)),
                Step::End(which) if !links.is_empty() => {
                    links.swap_remove(which % links.len());
                }
                Step::Take { link, channel, frames, pause } if !links.is_empty() => {
                    now += if pause { IDLE } else { 1 };
                    let which = link % links.len();
                    (0..frames).for_each(|_| links[which].take(Channel::ALL[channel], now));
                }
                _ => {}
            }
            let counts = pool.counts();
            prop_assert_eq!(counts.given, links.iter().map(Link::has).sum::<u32>());
            prop_assert!(counts.given + counts.reserved <= counts.in_all);
            for has in links.iter().flat_map(|link| link.has) {
                prop_assert!((LEAST..=WINDOW).contains(&has));
            }
        }
    }
}

/// Links of the port whose pool is small.
const CLIENTS: u16 = 6;
/// The buffers that they share besides their least: far fewer than one of them would take.
const SHARED: u32 = 20;
const REGION: usize = 1 << 16;
const PUTS: u64 = 40;

fn open(number: u16) -> (Port, SocketAddr) {
    let config = Config::new().number(number).spin(Spin::SHARED).linger(Duration::ZERO);
    let mut port = Port::open(config).expect("a port");
    let options = NetOptions::plain().silence(Duration::from_secs(120));
    let at = port.open_net(&options.at((Ipv4Addr::LOCALHOST, 0).into())).expect("an address");
    (port, at[0])
}

fn connect(client: &mut Port, hub: &mut Port, at: SocketAddr) -> PeerId {
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| client.connect_net(&[at]).expect("the hub accepts"));
        let peer = hub.accept().expect("the client connects");
        connecting.join().expect("no panic");
        peer
    })
}

/// Puts of its own content, over and over, into its own region of the hub's.
struct Client {
    port: Port,
    target: RemoteRegion,
    put: u64,
}

impl Client {
    fn content(number: u64, put: u64) -> Vec<u8> {
        (0..REGION as u64).map(|at| (at * 7 + number * 31 + put) as u8).collect()
    }

    fn go_on(&mut self) -> bool {
        self.port.progress();
        if self.put == PUTS {
            return self.port.is_flushed(self.target.peer());
        }
        let content = Self::content(self.port.rank() as u64, self.put);
        match self.port.put(&self.target, 0, &content, PostOptions::new()) {
            Ok(_) => self.put += 1,
            Err(PostError::Busy(_)) => {}
            Err(error) => panic!("{error}"),
        }
        false
    }
}

// spec: LINK-4, WIRE-12
#[test]
fn more_links_than_the_shared_part_feeds_all_get_on() {
    let (mut hub, at) = open(0);
    let pool = Pool::new(CLIENTS.into(), SHARED);
    hub.remote.wire().expect("it is open").links.pool = pool.clone();
    // Clients wait for it within their puts.
    hub.start_engine().expect("a thread");
    let mut clients = Vec::new();
    let mut regions = Vec::new();
    for number in 1..=CLIENTS {
        let (mut port, _) = open(number);
        let peer = connect(&mut port, &mut hub, at);
        let region = hub.alloc(REGION, RegionOptions::new()).expect("memory");
        hub.share(peer, &region, 0..REGION, Rights::all(), 1).expect("a grant");
        regions.push(region);
        let target = std::thread::scope(|scope| {
            let accepting = scope.spawn(|| port.accept_region(PeerId(0), 1).expect("an offer"));
            while !accepting.is_finished() {
                hub.progress();
            }
            accepting.join().expect("no panic")
        });
        clients.push(Client { port, target, put: 0 });
    }
    let least = u32::from(CLIENTS) * LEAST * CHANNELS as u32;
    assert_eq!((pool.counts().in_all, pool.counts().reserved), (least + SHARED, 0));
    let mut most = 0;
    let mut is_done = false;
    while !is_done {
        hub.progress();
        is_done = clients.iter_mut().map(Client::go_on).filter(|is_done| !is_done).count() == 0;
        let buffers = hub.wire_report().expect("it is open").buffers;
        most = most.max(buffers.given);
    }
    assert!((least + 1..=least + SHARED).contains(&most), "{most} of {least} and {SHARED}");
    for (number, region) in (1..).zip(&regions) {
        let mut found = vec![0; REGION];
        region.read(0, &mut found);
        assert_eq!(found, Client::content(number, PUTS - 1));
    }
    drop(hub);
    assert_eq!(pool.counts().given, 0, "all has come back");
}
