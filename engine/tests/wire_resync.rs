//! A warm reset of one link, again and again, while a bad network and traffic go on. Nothing is
//! lost, repeated or out of order, and another link of the same port notices nothing.
mod common;

use ayre::network::LinkReport;
use ayre::{
    Config, Fault, NetOptions, PeerId, Port, PostOptions, Region, RegionOptions, RemoteRegion,
};
use ayre::{Rights, Spin};
use common::net::{ANY, Protection, connect, open_at};
use common::watchdog::Watchdog;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{ScopedJoinHandle, scope, yield_now};

/// Messages over each link.
const MESSAGES: u64 = 600;
/// Between two resets of the first link.
const BETWEEN: u64 = 20;
/// Bytes of each peer's region, in which each message has a word.
const LEN: usize = MESSAGES as usize * 8;

/// The port whose link is reset, and the others: its own, and one beside it.
const CENTRE: PeerId = PeerId(0);
const RESET: PeerId = PeerId(1);
const BESIDE: PeerId = PeerId(2);

fn options(protection: Protection) -> NetOptions {
    let faults = "loss=8%,dup=3%,reorder=8%,corrupt=2%".parse().expect("a plan");
    protection.options().faults(faults)
}

/// Takes all messages, in order, and answers each; ends when it is told to.
fn echo(port: &mut Port, is_over: &AtomicBool, resets: bool) {
    let (mut into, mut next) = ([0; 8], 0);
    // Relaxed: what follows does not hang on it.
    while !is_over.load(Ordering::Relaxed) {
        port.progress();
        while port.try_recv(&mut into).expect("a short message").is_some() {
            assert_eq!(u64::from_le_bytes(into), next, "each once, in order");
            next += 1;
            port.send_wait(CENTRE, 0, &into).expect("the centre lives");
            if resets && next.is_multiple_of(3 * BETWEEN) {
                port.resync(CENTRE).expect("the centre answers");
            }
        }
        yield_now();
    }
    assert_eq!(next, MESSAGES);
}

/// The centre's state of one peer.
struct Far {
    peer: PeerId,
    remote: RemoteRegion,
    sent: u64,
    heard: u64,
}

impl Far {
    /// Puts a word and sends a message, if there is room.
    fn say(&mut self, port: &mut Port) {
        if self.sent == MESSAGES || self.sent > self.heard + 40 {
            return;
        }
        let word = (self.sent + 1).to_le_bytes();
        if port.put(&self.remote, self.sent * 8, &word, PostOptions::new()).is_ok() {
            let said = port.send_wait(self.peer, 0, &self.sent.to_le_bytes());
            said.expect("the peer lives");
            self.sent += 1;
        }
    }
}

fn link(port: &Port, peer: PeerId) -> LinkReport {
    let links = port.links();
    links.into_iter().find(|link| link.peer == peer.index()).expect("they are connected")
}

/// Speaks with both peers, and resets the link with the first one; how often.
fn speak(port: &mut Port, fars: &mut [Far; 2]) -> u64 {
    let (mut into, mut resets) = ([0; 8], 0);
    while fars.iter().any(|far| far.heard < MESSAGES) {
        for far in &mut *fars {
            far.say(port);
        }
        while let Some(message) = port.try_recv(&mut into).expect("a short message") {
            let far = fars.iter_mut().find(|far| far.peer == message.source).expect("one of both");
            assert_eq!(u64::from_le_bytes(into), far.heard, "each once, in order");
            far.heard += 1;
            if far.peer == RESET && far.heard.is_multiple_of(BETWEEN) {
                port.resync(RESET).expect("the peer answers");
                resets += 1;
            }
        }
        yield_now();
    }
    fars.iter().for_each(|far| port.flush(far.peer).expect("nothing has faulted"));
    resets
}

fn joined(protection: Protection) -> ([Port; 3], Vec<Region>, [Far; 2]) {
    let open = |number| {
        let config = Config::new().number(number).spin(Spin::SHARED);
        let mut port = Port::open(config).expect("a port");
        let at = port.open_net(&options(protection).at(ANY)).expect("an address")[0];
        (port, at)
    };
    let [(mut centre, at), (mut first, _), (mut second, _)] = [0, 1, 2].map(open);
    let mut regions = Vec::new();
    let fars = [&mut first, &mut second].map(|far| {
        connect(far, &mut centre, at);
        let region = far.alloc(LEN, RegionOptions::new()).expect("memory");
        far.share(CENTRE, &region, 0..LEN, Rights::all(), 0).expect("a grant");
        regions.push(region);
        let peer = PeerId(far.rank() as u16);
        let remote = scope(|scope| {
            let accepting = scope.spawn(|| centre.accept_region(peer, 0));
            while !accepting.is_finished() {
                far.progress();
                yield_now();
            }
            accepting.join().expect("no panic").expect("the grant")
        });
        Far { peer, remote, sent: 0, heard: 0 }
    });
    ([centre, first, second], regions, fars)
}

// spec: LINK-12, LINK-22, LINK-23, WIRE-1, WIRE-11
#[test]
fn a_warm_reset_loses_no_message_and_disturbs_no_other_link() {
    let mut watchdog = Watchdog::start(0);
    for protection in Protection::ALL {
        let ([mut centre, mut first, mut second], regions, mut fars) = joined(protection);
        let is_over = AtomicBool::new(false);
        let resets = scope(|scope| {
            let echoes = [
                scope.spawn(|| echo(&mut first, &is_over, true)),
                scope.spawn(|| echo(&mut second, &is_over, false)),
            ];
            let resets = speak(&mut centre, &mut fars);
            // Relaxed: as above.
            is_over.store(true, Ordering::Relaxed);
            // The first one may be about its last reset, which its peer answers when it looks.
            while !echoes.iter().all(ScopedJoinHandle::is_finished) {
                centre.progress();
                yield_now();
            }
            resets
        });
        assert_eq!(resets, MESSAGES / BETWEEN);
        for region in &regions {
            let words = (0..MESSAGES).map(|at| region.load(at as usize * 8));
            assert!(words.eq(1..=MESSAGES), "all that was put is there");
        }
        let [reset, beside] = [RESET, BESIDE].map(|peer| link(&centre, peer));
        assert!(reset.resyncs > resets, "{}: its own, and those of the peer", reset.resyncs);
        assert_eq!((beside.resyncs, beside.again.resynced), (0, 0), "{beside:?}");
        assert_eq!((link(&second, CENTRE).resyncs, beside.malformed), (0, 0));
    }
    assert!(!watchdog.stop(), "the test ended in time");
}

// spec: WIRE-11, ERR-2
#[test]
fn there_must_be_a_link_to_reset() {
    let mut watchdog = Watchdog::start(0);
    let (mut near, _) = open_at(3, Protection::Sealed.options());
    let (mut far, at) = open_at(4, Protection::Sealed.options());
    assert_eq!(near.resync(PeerId(4)), Err(Fault::ForeignHandle));
    connect(&mut near, &mut far, at);
    drop(far);
    assert_eq!(near.resync(PeerId(4)), Err(Fault::PeerDead), "it has left");
    assert_eq!(near.resync(PeerId(4)), Err(Fault::PeerDead), "and is known to have");
    assert!(!watchdog.stop(), "the test ended in time");
}
