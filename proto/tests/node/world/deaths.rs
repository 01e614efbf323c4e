//! Nodes that die, and that are started anew.
use super::wire::{MICROSECOND, MILLISECOND};
use super::{Member, World, id};
use crate::dice::{Dice, seeds};
use crate::pair::port::Shared;
use ayre_proto::fault::Fault;
use ayre_proto::link::looks::Looks;
use ayre_proto::node::PostError;

/// The node that dies.
const LOST: usize = 0;

impl World {
    /// A node is gone, from one moment to the next. Its host tells those of the same host.
    fn lose(&mut self) {
        self.members[LOST].is_dead = true;
        self.net.lost = Some(LOST);
        let now = self.now;
        for own in 1..self.members.len() {
            if self.beside[own][LOST] {
                while let Some(store) = self.net.visible(u64::MAX) {
                    self.see(&store);
                }
                self.with_node(own, |node, host| node.on_gone(id(LOST), now, host));
            }
        }
    }

    /// The others go on, at leisure, until they are rid of who is lost or so much time is over.
    fn see_deaths(&mut self, at_most: u64, mut meanwhile: impl FnMut(&mut Self)) {
        let last = self.now + at_most;
        let is_missed =
            |world: &Self| (1..world.members.len()).any(|own| world.of_lost(own).gone.is_none());
        while is_missed(self) && self.now < last {
            let until = self.now + 20 * MILLISECOND;
            while self.now < until {
                self.go_on(until);
            }
            self.act();
            meanwhile(self);
        }
    }

    fn of_lost(&self, own: usize) -> &super::Traffic {
        self.traffic[own][LOST].as_ref().expect("they were connected")
    }

    /// All operations on who is lost have ended, and nothing is posted to it; nobody else is gone.
    fn check_lost(&mut self, why: Fault) {
        for own in 1..self.members.len() {
            let expected = if self.beside[own][LOST] { Fault::PeerDead } else { why };
            assert_eq!(self.of_lost(own).gone, Some(expected));
            let Member { node, .. } = &mut self.members[own];
            let peer = node.peer(id(LOST)).expect("it was not forgotten");
            assert!(peer.initiator().is_empty(), "all that was under way has ended");
            assert_eq!(node.send(id(LOST), 0, &[1]), Err(PostError::Fault(expected)));
            for other in (1..self.members.len()).filter(|other| *other != own) {
                let others = self.traffic[own][other].as_ref().expect("they are connected");
                assert_eq!(others.gone, None, "and nobody else");
            }
        }
    }

    /// The lost node is started anew, and connected again.
    fn come_back(&mut self) {
        let nodes = self.members.len();
        self.members[LOST] = Member::new(nodes, self.members[LOST].age + 1);
        self.net.lost = None;
        for own in 1..nodes {
            assert_eq!(self.members[own].node.forget(id(LOST)), Ok(()));
            assert_eq!(self.members[own].node.forget(id(LOST)), Err(Fault::ForeignHandle));
            self.members[own].program.shared[LOST] = Shared::new(LOST as u16);
            let unread = self.of(own, LOST).forget();
            let (old, _) = self.of(LOST, own).oracle.keys[0];
            self.connect(own, LOST);
            self.of(own, LOST).remember(unread);
            self.of(LOST, own).oracle.keys.push((old, Err(Fault::StaleKey)));
        }
    }
}

/// Runs a world in which a node falls silent.
fn lose_one(seed: u64, share: u64) -> usize {
    let mut dice = Dice(seed);
    let nodes = dice.between(2, 4) as usize;
    let mut world = World::with(nodes, share, dice);
    world.run_traffic(600);
    world.lose();
    world.see_deaths(70_000 * MILLISECOND, |_| {});
    world.check_lost(Fault::PeerDead);
    world.run_traffic(200);
    world.come_to_rest();
    if nodes > 2 {
        world.finish();
    }
    let faulted = (1..nodes).map(|own| world.of_lost(own).faulted).sum();
    // It comes back, and is another one.
    world.come_back();
    world.run_traffic(600);
    world.come_to_rest();
    world.finish();
    faulted
}

// spec: LIFE-11, LIFE-12, LIFE-14, LINK-17, ERR-4, MSG-10
#[test]
fn a_silent_node_ends_its_operations_without_disturbing_others() {
    let mut faulted = 0;
    for seed in 0..seeds(8) {
        faulted += lose_one(seed, 20 * (seed % 3));
    }
    assert!(faulted as u64 > seeds(8), "{faulted} were under way");
}

// spec: LIFE-22, LIFE-14, LINK-25
#[test]
fn a_node_that_was_started_anew_is_let_in_and_its_old_frames_are_not() {
    for seed in 0..seeds(6) {
        let mut world = World::with(3, 0, Dice(seed));
        world.run_traffic(300);
        world.net.kept = Some(Vec::new());
        world.run_traffic(300);
        let old = world.net.kept.take().expect("they were kept");
        world.lose();
        let died = world.now;
        world.see_deaths(70_000 * MILLISECOND, |world| {
            for own in 1..3 {
                let now = world.now;
                world.members[own].node.on_open(id(LOST), 2, true, now);
            }
        });
        world.check_lost(Fault::PeerRestarted);
        assert!(world.now < died + 10_000 * MILLISECOND, "long before it would be given up");
        world.come_back();
        world.run_traffic(100);
        for datagram in old {
            let Some((header, payload)) = datagram.open() else { continue };
            let looks = Looks::all_the_time(world.now);
            world.with_node(datagram.to, |node, host| {
                node.on_frame((&header, payload), &looks, host);
            });
            world.now += MICROSECOND;
        }
        world.run_traffic(300);
        world.come_to_rest();
        world.finish();
    }
}
