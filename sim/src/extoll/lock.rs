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
use std::collections::VecDeque;

/// Locks of each process, and bytes between the words of two processes and of two locks.
pub const LOCKS: u32 = 1024;
const PROCESS: u64 = 1 << 12;
const WORD: u64 = 1 << 2;

/// The place of a lock's word behind the base of the lock space; none if there is no such lock. No
/// translation takes part.
pub fn place(process: u32, lock: u32) -> Option<u64> {
    (lock < LOCKS).then_some(u64::from(process) * PROCESS + u64::from(lock) * WORD)
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The node that asks.
    pub node: u32,
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
    /// The word afterwards.
    pub value: i32,
    /// Whether it was changed.
    pub success: bool,
}

/// One lock of the unit.
#[derive(Clone, Debug)]
pub struct Lock {
    value: i32,
    parked: VecDeque<Request>,
    /// Requests that may be parked.
    places: usize,
}

impl Lock {
    /// A free lock, with places for as many parked requests.
    pub fn new(places: usize) -> Self {
        Self { value: 0, parked: VecDeque::new(), places }
    }

    /// Requests that are parked.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// A request comes. The result is all answers that are given now.
    pub fn request(&mut self, request: Request) -> Vec<Answer> {
        let mut answers = Vec::new();
        if self.attempt(request, &mut answers) {
            self.look_at_parked(&mut answers);
        } else if self.parked.len() < self.places {
            self.parked.push_back(request);
        } else {
            answers.push(Answer { node: request.node, value: self.value, success: false });
        }
        answers
    }

    fn attempt(&mut self, request: Request, answers: &mut Vec<Answer>) -> bool {
        let success = self.value <= request.limit;
        if success {
            self.value = self.value.wrapping_add(request.addend);
            answers.push(Answer { node: request.node, value: self.value, success });
        }
        success
    }

    /// Each change may let parked requests succeed, the oldest first.
    fn look_at_parked(&mut self, answers: &mut Vec<Answer>) {
        let mut at = 0;
        while at < self.parked.len() {
            if self.attempt(self.parked[at], answers) {
                self.parked.remove(at);
                at = 0;
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKE: Request = Request { node: 0, limit: 0, addend: 1 };
    const GIVE: Request = Request { node: 0, limit: i32::MAX, addend: -1 };

    /// Nodes that want a lock once each, and keep it for `kept` round trips. The result is the
    /// messages that pass, answers included. Without a place, a node asks once a round trip.
    fn messages(nodes: u32, places: usize, kept: u32) -> u32 {
        let mut lock = Lock::new(places);
        let mut asks: VecDeque<u32> = (0..nodes).collect();
        let mut holder: Option<(u32, u32)> = None;
        let (mut done, mut messages) = (0, 0);
        while done < nodes {
            let mut answers = Vec::new();
            if let Some((node, left)) = holder {
                holder = Some((node, left.saturating_sub(1)));
                if left == 0 {
                    messages += 1;
                    holder = None;
                    answers.extend(lock.request(Request { node, ..GIVE }));
                    done += 1;
                }
            }
            for node in std::mem::take(&mut asks) {
                messages += 1;
                answers.extend(lock.request(Request { node, ..TAKE }));
            }
            messages += answers.len() as u32;
            for answer in answers {
                match (answer.success, answer.value) {
                    (true, 1) => {
                        assert_eq!(holder.replace((answer.node, kept)), None, "one has it");
                    }
                    (true, _) => {}
                    (false, _) => asks.push_back(answer.node),
                }
            }
        }
        messages
    }

    #[test]
    fn locks_exclude_and_parking_saves_all_messages_of_those_that_ask_again() {
        for nodes in [1, 2, 8, 32] {
            // A request and an answer to take it, and to give it back.
            assert_eq!(messages(nodes, nodes as usize, 10), 4 * nodes);
            let again = messages(nodes, 0, 10);
            // While others have it for some 10 trips each, a node asks in each of them.
            let others: u32 = (0..nodes).sum();
            assert!(again >= 4 * nodes + 2 * 10 * others, "{nodes}: {again}");
        }
    }

    #[test]
    fn a_word_is_read_by_adding_nothing_and_compared_with_its_sign() {
        let mut lock = Lock::new(0);
        let mut ask = |limit, addend| {
            let [answer] = lock.request(Request { node: 1, limit, addend })[..] else {
                panic!("one answer");
            };
            (answer.value, answer.success)
        };
        assert_eq!(ask(0, -5), (-5, true));
        assert_eq!(ask(-6, 1), (-5, false));
        assert_eq!(ask(i32::MAX, 0), (-5, true));
    }

    #[test]
    fn the_lock_space_has_1024_words_for_each_process() {
        assert_eq!(place(0, 0), Some(0));
        assert_eq!(place(31, 1023), Some(128 * 1024 - 4));
        assert_eq!(place(0, 1024), None);
    }
}
