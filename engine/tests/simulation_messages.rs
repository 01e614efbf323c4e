//! Questions and answers of all lengths between whole messengers over a bad network, some of which
//! are killed, all polled by one thread: a seed brings a run back.
mod common;

use ayre::active::{Call, Handler, Messenger};
use ayre::{PeerId, PostError, Simulation};
use common::random::{Random, fill, iterations};
use common::simulated::{Named, ROUNDS_PER_PROGRESS, assert_repeatable, bad_mesh, rounds};
use std::time::Duration;

const PORTS: usize = 5;
/// Rounds, in each of which each port is polled once and may ask something.
const ROUNDS: usize = 4000;
/// Rounds after which what has not come by then is taken never to.
const PATIENCE: usize = 400_000;
/// Answers that a port may wait for from another one.
const OPEN_MAX: u64 = 4;
/// Bits of the longest answer's length.
const LENGTH_BITS: u64 = 18;
/// Bits of the longest wait, in nanoseconds.
const WAIT_BITS: u64 = 18;

const ANSWER: Handler<1> = Handler::named("answer");

/// The state of a port's questions to each other port.
#[derive(Debug, Default)]
struct Asked {
    asked: u64,
    answered: u64,
    lengths: Vec<u64>,
}

#[derive(Debug, Default)]
struct State {
    own: u64,
    to: [Asked; PORTS],
    bytes: u64,
}

fn answer(state: &mut State, call: &mut Call<'_>, [number, len]: [u64; 2], _: &[u8]) {
    let to = call.source();
    let mut bytes = vec![0; len as usize];
    fill(&mut bytes, state.own, u64::from(to.0), number);
    // One that has gone needs none.
    match call.reply(ANSWER, [number], &bytes) {
        Ok(()) | Err(PostError::Fault(_)) => {}
        Err(PostError::Busy(why)) => panic!("there is room for what may be open: {why:?}"),
    }
}

fn check(state: &mut State, call: &mut Call<'_>, [number]: [u64; 1], payload: &[u8]) {
    let from = call.source();
    let open = &mut state.to[from.index()];
    assert_eq!(number, open.answered, "answers come in their order, each once");
    assert_eq!(payload.len() as u64, open.lengths[number as usize]);
    let mut expected = vec![0; payload.len()];
    fill(&mut expected, u64::from(from.0), state.own, number);
    assert!(payload == expected, "answer {number} of {from:?} is another one's");
    open.answered += 1;
    state.bytes += payload.len() as u64;
}

struct Asker {
    messenger: Messenger<State>,
    ask: Handler<2>,
    state: State,
}

impl Asker {
    fn ask(&mut self, to: PeerId, len: u64) {
        let open = &mut self.state.to[to.index()];
        if open.asked - open.answered >= OPEN_MAX {
            return;
        }
        match self.messenger.try_call(to, self.ask, [open.asked, len], &[]) {
            Ok(()) => {
                open.asked += 1;
                open.lengths.push(len);
            }
            Err(PostError::Busy(_)) => {}
            Err(PostError::Fault(_)) => assert!(!self.messenger.port().is_alive(to)),
        }
    }

    /// Whether those that live have answered everything.
    fn has_all(&mut self, lives: impl Fn(usize) -> bool) -> bool {
        let waits = |(_, open): &(usize, &Asked)| open.answered < open.asked;
        !self.state.to.iter().enumerate().filter(waits).any(|(peer, _)| lives(peer))
    }
}

struct Run {
    dice: Random,
    simulation: Simulation,
    /// By port; none of those that were killed.
    askers: Vec<Option<Asker>>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let (simulation, ports) = bad_mesh(&mut dice, seed, PORTS as u16);
        let askers = ports.into_iter().map(|port| {
            let state = State { own: port.rank() as u64, ..State::default() };
            let mut messenger = Messenger::new(port);
            let ask = messenger.register("ask", answer).expect("a new name");
            messenger.register("answer", check).expect("a new name");
            Some(Asker { messenger, ask, state })
        });
        let askers = askers.collect();
        Self { dice, simulation, askers }
    }

    fn act(&mut self, at: usize) {
        let (roll, peer) = (self.dice.below(10_000), self.dice.below(PORTS as u64) as usize);
        let len = self.dice.scaled(LENGTH_BITS);
        let may_go = self.askers.iter().flatten().count() > 2;
        let Some(asker) = self.askers[at].as_mut() else { return };
        match roll {
            0..1 if may_go => self.askers[at] = None,
            0..500 if peer != at && asker.messenger.port().is_alive(PeerId(peer as u16)) => {
                asker.ask(PeerId(peer as u16), len);
            }
            500..520 => {
                let time = Duration::from_nanos(self.dice.scaled(WAIT_BITS));
                // Whatever comes, or nothing: nobody polls the others meanwhile.
                let _ = asker.messenger.wait(&mut asker.state, Some(time));
            }
            _ => {}
        }
    }

    fn poll(&mut self, round: usize) {
        for asker in self.askers.iter_mut().flatten() {
            if round.is_multiple_of(ROUNDS_PER_PROGRESS) {
                asker.messenger.port().progress();
            }
            asker.messenger.poll(&mut asker.state);
        }
    }

    /// Its course, its time, and the bytes of all answers.
    fn go(mut self) -> (u64, Duration, u64) {
        for round in 0..rounds(ROUNDS) {
            (0..PORTS).for_each(|at| self.act(at));
            self.poll(round);
        }
        let over = (0..PATIENCE).find(|round| {
            self.poll(*round);
            let lives = self.askers.iter().map(Option::is_some).collect::<Vec<_>>();
            self.askers.iter_mut().flatten().all(|asker| asker.has_all(|peer| lives[peer]))
        });
        let states: Vec<_> = self.askers.iter().flatten().map(|asker| &asker.state).collect();
        assert!(over.is_some(), "an answer never comes: {states:?}");
        let bytes = states.iter().map(|state| state.bytes).sum();
        (self.simulation.course(), self.simulation.now(), bytes)
    }
}

// spec: AM-5, AM-8, AM-9, AM-11, AM-12, NET-8
#[test]
fn answers_arrive_whole_once_and_in_order_despite_deaths() {
    let mut bytes = 0;
    for seed in iterations(60) {
        let _named = Named(seed);
        bytes += Run::new(seed).go().2;
    }
    eprintln!("{bytes} bytes of answers");
}

// spec: NET-8, NET-9
#[test]
fn a_seed_brings_the_same_run_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}
