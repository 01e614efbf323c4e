//! The shortest way of operations, beside the general one.
use ayre::memory::Grant;
use ayre::{
    Config, Fault, Mode, PeerId, Port, PostError, PostOptions, Region, RegionOptions, RemoteRegion,
    Rights,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;

const LEN: usize = 256;

/// Two regions of one port: the first one for the shortest way, the other one for the general one.
struct Pair {
    near: Port,
    far: Port,
    to: PeerId,
    regions: [Region; 2],
    remotes: [RemoteRegion; 2],
    grants: [Option<Grant>; 2],
}

impl Pair {
    fn new(mode: Mode, rights: Rights) -> Self {
        let config = |number| Config::new().number(number).mode(mode);
        let (mut near, mut far) = Port::pair(config(0), config(1)).expect("two ports");
        let (to, from) = (near.peer(1).expect("connected"), far.peer(0).expect("connected"));
        let regions =
            [0, 1].map(|_| far.alloc(LEN, RegionOptions::new()).expect("memory to share"));
        let grants = [0, 1].map(|which| {
            let region = &regions[which];
            Some(far.share(from, region, 0..LEN, rights, which as u64).expect("shared"))
        });
        let remotes = [0, 1].map(|name| near.accept_region(to, name).expect("accepted"));
        Self { near, far, to, regions, remotes, grants }
    }

    fn contents(&self) -> [Vec<u8>; 2] {
        self.regions.each_ref().map(|region| {
            let mut all = vec![0; LEN];
            region.read(0, &mut all);
            all
        })
    }

    fn put(&mut self, offset: u64, data: &[u8]) {
        let before = self.contents()[0].clone();
        let quick = self.near.put_quick(&self.remotes[0], offset, data);
        let general = self.near.put(&self.remotes[1], offset, data, PostOptions::new());
        match quick {
            // The general way has had the next ticket.
            Some(ticket) => assert_eq!(general.map(|next| next.0), Ok(ticket.0 + 1)),
            None => {
                assert!(self.contents()[0] == before, "no effect");
                let again = self.near.put(&self.remotes[0], offset, data, PostOptions::new());
                assert_eq!(again.map(|_| ()), general.map(|_| ()));
            }
        }
        let [one, other] = self.contents();
        assert!(one == other, "both have done the same");
    }

    fn add(&mut self, offset: u64, addend: u64) {
        let before = self.contents()[0].clone();
        let quick = self.near.fetch_add_quick(&self.remotes[0], offset, addend);
        let general = self.near.fetch_add(&self.remotes[1], offset, addend);
        match quick {
            Some(found) => assert_eq!(general, Ok(found)),
            None => {
                assert!(self.contents()[0] == before, "no effect");
                assert_eq!(self.near.fetch_add(&self.remotes[0], offset, addend), general);
            }
        }
        let [one, other] = self.contents();
        assert!(one == other, "both have done the same");
    }
}

fn offset() -> impl Strategy<Value = u64> {
    let word = (0..33_u64).prop_map(|word| 8 * word);
    prop_oneof![4 => 0..LEN as u64 + 9, 4 => word, 1 => any::<u64>()]
}

// spec: PUT-1, ATOM-3, CAP-5
#[test]
fn the_shortest_way_does_as_the_general_one() {
    for rights in [Rights::all(), Rights::WRITE, Rights::ATOMIC, Rights::READ] {
        let steps = vec((offset(), vec(any::<u8>(), 0..600), any::<u64>()), 1..20);
        let pair = RefCell::new(Pair::new(Mode::Direct, rights));
        proptest!(ProptestConfig::with_cases(64), |(steps in steps)| {
            let mut pair = pair.borrow_mut();
            for (offset, data, addend) in steps {
                pair.put(offset, &data);
                pair.put(offset, &data[..data.len().min(8)]);
                pair.add(offset, addend);
            }
        });
    }
}

/// Without effect, and without a ticket.
fn assert_none(pair: &mut Pair, why: &str) {
    let before = pair.contents();
    assert_eq!(pair.near.put_quick(&pair.remotes[0], 0, &[7; 8]), None, "{why}");
    assert_eq!(pair.near.fetch_add_quick(&pair.remotes[0], 0, 1), None, "{why}");
    assert!(pair.contents() == before, "{why}");
}

// spec: CAP-5, CAP-6, REV-1, ERR-2
#[test]
fn the_shortest_way_leaves_all_faults_to_the_general_one() {
    let mut pair = Pair::new(Mode::Direct, Rights::all());
    assert!(pair.near.put_quick(&pair.remotes[0], 0, &[7; 8]).is_some());
    // A narrower handle admits less.
    let narrow = pair.remotes[0].narrow(8..16, Rights::WRITE).expect("it is less");
    assert!(pair.near.put_quick(&narrow, 0, &[9; 8]).is_some());
    assert_eq!(pair.near.put_quick(&narrow, 1, &[9; 8]), None);
    assert_eq!(pair.near.fetch_add_quick(&narrow, 0, 1), None);
    let written = pair.contents()[0].clone();
    assert!(written[..8] == [7; 8] && written[8..16] == [9; 8] && written[16] == 0);
    // A handle of another port.
    let mut other = Pair::new(Mode::Direct, Rights::all());
    assert_eq!(other.near.put_quick(&pair.remotes[0], 0, &[7; 8]), None);
    let grant = pair.grants[0].take().expect("not revoked yet");
    pair.far.revoke(grant).expect("a key of this port");
    assert_none(&mut pair, "revoked");
    let put = pair.near.put(&pair.remotes[0], 0, &[7; 8], PostOptions::new());
    assert!(put.is_ok() && pair.near.flush(pair.to) == Err(Fault::StaleKey));
    pair.near.disconnect(pair.to).expect("a peer");
    assert_none(&mut pair, "disconnected");
    let mut mediated = Pair::new(Mode::Mediated, Rights::all());
    assert_none(&mut mediated, "the target performs it");
}

// spec: MSG-2, MSG-3
#[test]
fn short_messages_take_the_shortest_way_in_order() {
    let mut pair = Pair::new(Mode::Direct, Rights::all());
    let (mut into, mut untaken) = ([0; 64], 0);
    let long = [3; 100];
    assert!(pair.near.send_quick(pair.to, 1, &[1; 56]));
    assert!(!pair.near.send_quick(pair.to, 2, &long), "it takes several lines");
    pair.near.send(pair.to, 2, &long[..60]).expect("room");
    assert!(pair.near.send_quick(pair.to, 3, &[3]));
    for tag in 1..=3 {
        let message = match pair.far.try_recv_quick(&mut into) {
            Ok(message) => message,
            Err(why) => {
                untaken += 1;
                pair.far.try_recv_slow(why, &mut into).expect("fits").expect("it has come")
            }
        };
        assert_eq!(message.tag, tag);
    }
    assert_eq!(untaken, 1, "of several lines");
    let nothing = pair.far.try_recv_quick(&mut into).expect_err("all were taken");
    assert_eq!(pair.far.try_recv_slow(nothing, &mut into), Ok(None));
    // A full lane is the general way's news.
    while pair.near.send_quick(pair.to, 1, &[1]) {}
    assert!(matches!(pair.near.send(pair.to, 1, &[1]), Err(PostError::Busy(_))));
}
