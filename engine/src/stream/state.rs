//! The state of a messenger's streams.
use super::effects::{Registered, Side};
use super::laid::Laid;
use super::queue::{Queue, meet};
use crate::active::outgoing::Outgoing;
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{EntryAnswer, Options, StreamFailure, StreamName, Streams as Machine};
use ayre_proto::units::PeerId;
use std::collections::{HashMap, HashSet};

/// A request to a peer to change its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Waits,
    Answered(EntryAnswer),
    /// No call waits for the answer.
    Forgotten,
}

/// The streams of a messenger.
pub(crate) struct StreamTable<S> {
    pub(super) stages: Vec<Registered<S>>,
    /// The state machine; none until streams are used.
    machine: Option<Box<Machine>>,
    queues: Vec<Queue>,
    /// The results of this port's own streams that have ended, by number.
    pub(super) overs: HashMap<u32, Result<(), StreamFailure>>,
    /// Requests to peers, by number.
    pub(super) requests: HashMap<u32, (PeerId, Asked)>,
    last_request: u32,
    /// The numbers of streams that this messenger has laid.
    numbers: HashSet<u16>,
    last_number: u16,
    may_peers_set: bool,
    /// Peers that have gone, and of which the machine was not told yet.
    gone: Vec<PeerId>,
    /// Whether streams involve a peer, by its number.
    met: Vec<bool>,
    /// The count of ended connections when the machine was told last.
    peer_changes: u64,
}

impl<S> Default for StreamTable<S> {
    fn default() -> Self {
        Self {
            stages: Vec::new(),
            machine: None,
            queues: Vec::new(),
            overs: HashMap::new(),
            requests: HashMap::new(),
            last_request: 0,
            numbers: HashSet::new(),
            last_number: 0,
            may_peers_set: true,
            gone: Vec::new(),
            met: Vec::new(),
            peer_changes: 0,
        }
    }
}

/// The most turns of the machine in one poll.
// spec: PIPE-11
const TURNS: usize = 64;

impl<S> StreamTable<S> {
    /// Calls a function with the machine and its effects. Returns its result and the number of
    /// stages that were run.
    pub(super) fn with<R>(
        &mut self,
        (state, out): (&mut S, &mut Outgoing),
        f: impl FnOnce(&mut Machine, &mut Side<'_, S>) -> R,
    ) -> (R, usize) {
        let machine = self.machine.get_or_insert_with(|| {
            let mut machine = Box::new(Machine::new(out.port.id, Options::default()));
            machine.let_peers_set(self.may_peers_set);
            machine
        });
        let mut ran = 0;
        let (queues, overs, met) = (&mut self.queues, &mut self.overs, &mut self.met);
        let (stages, ran_here) = (&mut self.stages[..], &mut ran);
        let mut side = Side { state, out, stages, queues, overs, met, ran: ran_here };
        let result = f(machine, &mut side);
        side.out.has_more |= machine.is_due();
        (result, ran)
    }

    /// Whether a poll has something to do for streams.
    #[inline(always)]
    pub(super) fn is_due(&self, out: &Outgoing) -> bool {
        self.machine.as_ref().is_some_and(|machine| {
            machine.is_due()
                || !self.gone.is_empty()
                || self.peer_changes != out.port.peers.changes()
        })
    }

    /// Continues all streams. Returns the number of stages that were run.
    pub(super) fn advance(&mut self, state: &mut S, out: &mut Outgoing) -> usize {
        let buried = self.bury(state, out);
        let (is_due, ran) =
            self.with((&mut *state, &mut *out), |machine, side| machine.advance(TURNS, side));
        if is_due {
            out.stir();
        }
        buried + ran
    }

    /// Notes whether streams involve a peer.
    pub(super) fn met(&mut self, peer: PeerId, is_here: bool) {
        meet(&mut self.met, peer, is_here);
    }

    /// Notes that a peer has gone. The next poll deals with it.
    pub(super) fn on_death(&mut self, peer: PeerId) {
        if self.machine.is_some() {
            self.gone.push(peer);
        }
    }

    /// Ends the streams through peers that have died, when all messages of these peers are taken.
    // spec: PIPE-15
    pub(super) fn bury(&mut self, state: &mut S, out: &mut Outgoing) -> usize {
        let changes = out.port.peers.changes();
        debug_assert!(self.peer_changes <= changes, "changes are counted");
        if self.peer_changes != changes {
            let mut is_all = true;
            let met = (0..).map(PeerId).zip(&self.met).filter(|(_, met)| **met);
            for (peer, _) in met {
                match (out.port.is_alive(peer), out.port.is_silent(peer)) {
                    (true, _) => {}
                    (false, true) => self.gone.push(peer),
                    (false, false) => is_all = false,
                }
            }
            if is_all {
                self.peer_changes = changes;
            }
        }
        let mut ran = 0;
        for peer in std::mem::take(&mut self.gone) {
            self.met(peer, false);
            let is_his = |asked: &(PeerId, Asked)| *asked == (peer, Asked::Forgotten);
            self.requests.retain(|_, asked| !is_his(asked));
            ran += self
                .with((&mut *state, &mut *out), |machine, side| {
                    machine.on_death(peer, side);
                })
                .1;
        }
        debug_assert!(self.gone.is_empty(), "who has gone is told of once");
        ran
    }

    pub(super) fn let_peers_set(&mut self, may: bool) {
        self.may_peers_set = may;
        self.machine.iter_mut().for_each(|machine| machine.let_peers_set(may));
    }

    /// Clears an entry of this port's directory that no stream uses.
    pub(super) fn clear_unused(&mut self, name: StreamName) {
        self.machine.iter_mut().for_each(|machine| machine.unset_unused(name));
    }

    /// Adds a request to a peer, and returns its number.
    pub(super) fn request(&mut self, peer: PeerId, asked: Asked) -> u32 {
        while self.requests.contains_key(&self.last_request) {
            self.last_request = self.last_request.wrapping_add(1);
        }
        let other = self.requests.insert(self.last_request, (peer, asked));
        debug_assert!(other.is_none(), "a number is one request's");
        self.last_request
    }

    pub(super) fn waits_for(&self, request: u32) -> bool {
        matches!(self.requests.get(&request), Some((_, Asked::Waits)))
    }

    /// Takes a peer's answer to a request.
    // spec: PIPE-17
    pub(super) fn on_answer(
        &mut self,
        source: PeerId,
        request: u32,
        answer: EntryAnswer,
    ) -> Result<(), Malformed> {
        match self.requests.get_mut(&request) {
            Some((peer, asked @ Asked::Waits)) if *peer == source => {
                *asked = Asked::Answered(answer);
            }
            Some((peer, Asked::Forgotten)) if *peer == source => {
                self.requests.remove(&request);
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    /// Returns `len` consecutive numbers that no open stream has.
    pub(super) fn take_numbers(&mut self, len: usize) -> Option<Laid> {
        let len = u16::try_from(len).ok()?;
        debug_assert!(len > 0, "a stream has a number at each port");
        let mut free = 0;
        for _ in 0..1 << 16 {
            self.last_number = self.last_number.wrapping_add(1);
            free = if self.numbers.contains(&self.last_number) { 0 } else { free + 1 };
            if free == len {
                let laid = Laid::new(self.last_number.wrapping_sub(len - 1), len);
                debug_assert!(laid.numbers().all(|it| !self.numbers.contains(&it)), "free ones");
                self.numbers.extend(laid.numbers());
                return Some(laid);
            }
        }
        None
    }

    pub(super) fn give_numbers(&mut self, laid: &Laid) {
        for number in laid.numbers() {
            let was_taken = self.numbers.remove(&number);
            debug_assert!(was_taken, "what is given back was taken");
        }
    }

    /// Whether no pushed item of a source waits for room.
    pub(super) fn is_clear(&self, place: u16) -> bool {
        self.queues.get(usize::from(place)).is_none_or(|queue| queue.emitted.is_empty())
    }
}
