//! The lock unit: fetch-compare-and-add in a lock space, and requests that are parked.
//!
//! A request adds to a word if the word is not above a limit. The unit answers with the word and
//! whether it was changed (section 7.5). One that fails is answered at once, and the program asks
//! again. Or the unit parks it, and looks at it after each change of its word. The thesis designs
//! the parking and does not build it.
//!
//! ```text
//!   request --> word <= limit ? --yes--> word += addend --> answer, then look at those parked
//!                    '---------no-----> parked, if there is a place; else answer: failed
//! ```
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use std::collections::{HashMap, VecDeque};

/// Locks of each process, and bytes between the words of two processes and of two locks.
pub const LOCKS: u32 = 1024;
const PROCESS: u64 = 1 << 12;
const WORD: u64 = 1 << 2;

/// Names a lock of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The process that it belongs to.
    pub process: u32,
    /// Which of that process's locks.
    pub number: u32,
}

impl Lock {
    /// The place of its word behind the base of the lock space, if each of `processes` processes
    /// has its locks; none if there is no such lock. No translation takes part.
    pub fn place(self, processes: u32) -> Option<u64> {
        let is_there = self.process < processes && self.number < LOCKS;
        is_there.then_some(u64::from(self.process) * PROCESS + u64::from(self.number) * WORD)
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The node that asks.
    pub node: u32,
    /// The number of the request among those of that node.
    pub number: u32,
    /// The word has to be at most this.
    pub limit: i32,
    /// The number to add.
    pub addend: i32,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The node that has asked.
    pub node: u32,
    /// The number of its request.
    pub number: u32,
    /// The word afterwards.
    pub value: i32,
    /// Whether it was changed.
    pub success: bool,
}

/// The words of a node's locks, and one small FIFO of parked requests for all of them.
#[derive(Clone, Debug, Default)]
pub struct LockSpace {
    processes: u32,
    /// Requests that may be parked.
    places: usize,
    /// Words that are not zero, by their places.
    words: HashMap<u64, i32>,
    /// Parked requests and the places of their words, the oldest first.
    parked: VecDeque<(u64, Request)>,
}

impl LockSpace {
    /// Free locks for this number of processes, and this number of places for parked requests.
    pub fn new(processes: u32, places: usize) -> Self {
        Self { processes, places, ..Self::default() }
    }

    /// The word of a lock; none if there is no such lock.
    pub fn word(&self, lock: Lock) -> Option<i32> {
        let place = lock.place(self.processes)?;
        Some(self.words.get(&place).copied().unwrap_or_default())
    }

    /// Requests that are parked.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// A request comes. The result is all answers that are given now; none if there is no such
    /// lock.
    pub fn request(&mut self, lock: Lock, request: Request) -> Option<Vec<Answer>> {
        let place = lock.place(self.processes)?;
        let answer = self.attempt(place, request);
        if answer.success {
            return Some(self.look_at_parked(place, answer));
        }
        if self.parked.len() < self.places {
            self.parked.push_back((place, request));
            return Some(Vec::new());
        }
        Some(vec![answer])
    }

    /// The protocol's fetch-compare-and-add, on words of 32 bits.
    fn attempt(&mut self, place: u64, request: Request) -> Answer {
        let word = self.words.entry(place).or_default();
        let (operand, compare) = (request.addend as u32 as u64, request.limit as u32 as u64);
        let atomic = Atomic { width: Width::W32, op: AtomicOp::Fcaa, operand, compare };
        let fetched = atomic.fetched(*word as u32 as u64);
        *word = fetched.value as u32 as i32;
        let Request { node, number, .. } = request;
        Answer { node, number, value: *word, success: fetched.success }
    }

    /// Each change of a word may let requests succeed that are parked for it, the oldest first.
    fn look_at_parked(&mut self, place: u64, first: Answer) -> Vec<Answer> {
        let mut answers = vec![first];
        let mut at = 0;
        while let Some((of, request)) = self.parked.get(at).copied() {
            let answer = (of == place).then(|| self.attempt(place, request));
            at += 1;
            if let Some(answer) = answer.filter(|answer| answer.success) {
                self.parked.remove(at - 1);
                answers.push(answer);
                at = 0;
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Lock = Lock { process: 3, number: 7 };
    const TAKE: Request = Request { node: 0, number: 0, limit: 0, addend: 1 };
    const GIVE: Request = Request { node: 0, number: 0, limit: i32::MAX, addend: -1 };

    fn answers(space: &mut LockSpace, request: Request) -> Vec<(u32, i32, bool)> {
        let answers = space.request(LOCK, request).expect("there is such a lock");
        answers.iter().map(|answer| (answer.node, answer.value, answer.success)).collect()
    }

    #[test]
    fn parked_requests_get_the_lock_in_their_order_and_others_fail_at_once() {
        let mut space = LockSpace::new(32, 2);
        assert_eq!(answers(&mut space, TAKE), [(0, 1, true)]);
        for node in [1, 2] {
            assert_eq!(answers(&mut space, Request { node, ..TAKE }), []);
        }
        assert_eq!(answers(&mut space, Request { node: 3, ..TAKE }), [(3, 1, false)]);
        // Another lock's change wakes nobody.
        let other = Lock { number: 8, ..LOCK };
        assert_eq!(space.request(other, GIVE).map(|answers| answers.len()), Some(1));
        assert_eq!(answers(&mut space, GIVE), [(0, 0, true), (1, 1, true)]);
        let give = Request { node: 1, ..GIVE };
        assert_eq!(answers(&mut space, give), [(1, 0, true), (2, 1, true)]);
        assert_eq!((space.parked(), space.word(LOCK)), (0, Some(1)));
    }

    #[test]
    fn a_word_is_read_by_adding_nothing_and_compared_with_its_sign() {
        let mut space = LockSpace::new(32, 0);
        let mut ask = |limit, addend| answers(&mut space, Request { limit, addend, ..TAKE });
        assert_eq!(ask(0, -5), [(0, -5, true)]);
        assert_eq!(ask(-6, 1), [(0, -5, false)]);
        assert_eq!(ask(i32::MAX, 0), [(0, -5, true)]);
    }

    #[test]
    fn the_lock_space_has_1024_words_for_each_process() {
        let place = |process, number| Lock { process, number }.place(32);
        assert_eq!(place(0, 0), Some(0));
        assert_eq!(place(31, 1023), Some(128 * 1024 - 4));
        assert_eq!([place(0, 1024), place(32, 0)], [None, None]);
        assert_eq!(LockSpace::new(32, 0).request(Lock { process: 32, number: 0 }, TAKE), None);
    }
}
