//! Where records lie in the ring of a shared queue.
//!
//! Producers go round the ring, and turn back early while little waits: so a queue that is not full
//! stays on warm pages. Records of the round before then lie ahead of them, from `free` to `seam`;
//! where these are in the way, producers go on behind them. Consumers give the pages behind them
//! back, but for those at the beginning. So a queue takes about as much memory as has waited in it
//! lately, and not as much as it may take.
//!
//! ```text
//!   place  0          tail      free      seam                     end
//!          [ this round ]->      [ before ]  ->  [ behind them ] ->
//! ```
use std::ops::Range;

/// Bytes of a line, by which places are counted.
pub(super) const LINE: usize = 64;

/// How far the producers or the consumers are, in one word: so a process that dies leaves either
/// all of a record or nothing of it. Both counts go round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Lines since the queue was made.
    pub(super) line: u32,
    /// Records since then.
    pub(super) items: u32,
}

impl Cursor {
    pub(super) const fn word(self) -> u64 {
        (self.items as u64) << 32 | self.line as u64
    }

    pub(super) const fn of_word(word: u64) -> Self {
        Self { line: word as u32, items: (word >> 32) as u32 }
    }

    /// How far it is behind the record that begins at a line and has a number of lines.
    pub(super) const fn behind(self, begin: u32, lines: u32) -> Self {
        Self { line: begin.wrapping_add(lines), items: self.items.wrapping_add(1) }
    }

    /// Records between another cursor, which is behind, and this one.
    pub(super) const fn since(self, other: Self) -> u32 {
        self.items.wrapping_sub(other.items)
    }
}

/// The ring of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Lines of the ring: a power of two.
    pub(super) lines: u32,
    /// Producers turn back behind this place at the earliest.
    pub(super) warm: u32,
    /// The pages before this place stay; at least one step.
    pub(super) keep: u32,
    /// Lines whose pages are given back at a time: a power of two.
    pub(super) step: u32,
}

/// Lines that producers look at. A seam or a jump that is void has a line that is far away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Lines before this one may be written again.
    pub(super) free: u32,
    /// The line from which producers have turned back last.
    pub(super) seam: u32,
    /// The line from which they have gone on behind the records of the round before.
    pub(super) jump: u32,
}

/// How a record follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// At once.
    On,
    /// At the beginning of the next round: the tail becomes the seam.
    Back,
    /// Behind the seam: the tail becomes the jump.
    Over,
}

impl Places {
    /// Lines of the longest record, which always finds room in an empty queue.
    pub(super) const fn longest(self) -> u32 {
        self.lines / 2 - if self.keep < self.lines { self.step } else { 1 }
    }

    /// The place of a line.
    pub(super) const fn place(self, line: u32) -> u32 {
        line & (self.lines - 1)
    }

    /// The beginning of the round behind the one of a line.
    const fn next_round(self, line: u32) -> u32 {
        (line | (self.lines - 1)).wrapping_add(1)
    }

    const fn are_in_one_round(self, line: u32, other: u32) -> bool {
        (line ^ other) < self.lines
    }

    /// Where the next record begins, if it follows in this way.
    pub(super) const fn begin(self, line: u32, step: Step, seam: u32) -> u32 {
        match step {
            Step::On => line,
            Step::Back => self.next_round(line),
            Step::Over => line - self.place(line) + self.place(seam),
        }
    }

    /// How the record behind a line follows, as its producer has told consumers.
    pub(super) const fn told(line: u32, seam: u32, jump: u32) -> Step {
        if line == seam {
            Step::Back
        } else if line == jump {
            Step::Over
        } else {
            Step::On
        }
    }

    /// How the next record, of a number of lines, follows the tail; None where there is no room.
    /// The last line of the ring stays empty, so only producers that turn back come to another
    /// round.
    pub(super) const fn find(self, tail: u32, limits: Limits, lines: u32) -> Option<Step> {
        let Limits { free, seam, jump } = limits;
        let (at, free_at, seam_at) = (self.place(tail), self.place(free), self.place(seam));
        let fits_on = at + lines < self.lines;
        if self.are_in_one_round(tail, free) {
            let waits = tail.wrapping_sub(free);
            let has_passed_jump = jump.wrapping_sub(free) >= waits;
            let is_little = at >= self.warm && self.is_early(at) && waits <= at / 2;
            return if has_passed_jump && lines <= free_at && (is_little || !fits_on) {
                Some(Step::Back)
            } else if fits_on {
                Some(Step::On)
            } else {
                None
            };
        }
        if at + lines <= free_at || (at >= seam_at && fits_on) {
            Some(Step::On)
        } else if at < seam_at && self.is_early(seam_at) && seam_at + lines < self.lines {
            Some(Step::Over)
        } else {
            None
        }
    }

    /// Whether most of the ring lies behind a seam: it has room where this round has none.
    const fn is_early(self, seam_at: u32) -> bool {
        seam_at <= self.lines / 4
    }

    /// The line before which all may be written, once consumers have come to a line and have given
    /// pages back.
    pub(super) const fn settled(self, line: u32) -> u32 {
        if self.place(line) < self.keep { line } else { line & !(self.step - 1) }
    }

    /// The places whose pages are given back: those that consumers have left. They were at `line`,
    /// took a record that has begun at `begin`, and are at `next`.
    pub(super) const fn left(self, free: u32, (line, begin): (u32, u32), next: u32) -> Range<u32> {
        if !self.are_in_one_round(free, line) {
            // A consumer has died before it gave them back.
            return 0..0;
        }
        let first = self.place(free);
        let last = if begin == line { self.place(self.settled(next)) } else { self.place(line) };
        if first < self.keep { self.keep..last } else { first..last }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const SMALL: Places = Places { lines: 2048, warm: 64, keep: 256, step: 64 };
    const FAR: u32 = 1 << 31;

    /// A queue whose records are its numbers of lines alone.
    struct Queue {
        tail: u32,
        head: u32,
        limits: Limits,
        /// The place of each record that waits, and its lines.
        waiting: VecDeque<(u32, u32)>,
        given_back: Vec<Range<u32>>,
    }

    impl Queue {
        fn new(line: u32) -> Self {
            let limits = Limits { free: line, seam: line ^ FAR, jump: line ^ FAR };
            Self { tail: line, head: line, limits, waiting: VecDeque::new(), given_back: vec![] }
        }

        fn put(&mut self, lines: u32) -> Option<Step> {
            let step = SMALL.find(self.tail, self.limits, lines)?;
            let begin = SMALL.begin(self.tail, step, self.limits.seam);
            match step {
                Step::On => {}
                Step::Back => self.limits.seam = self.tail,
                Step::Over => self.limits.jump = self.tail,
            }
            let at = SMALL.place(begin);
            assert!(at + lines <= SMALL.lines, "in one piece");
            for (other, count) in &self.waiting {
                assert!(at + lines <= *other || other + count <= at, "apart: {step:?}");
            }
            self.waiting.push_back((at, lines));
            self.tail = begin.wrapping_add(lines);
            Some(step)
        }

        fn take(&mut self) {
            let Some((at, lines)) = self.waiting.pop_front() else { return };
            let Limits { free, seam, jump } = self.limits;
            let begin = SMALL.begin(self.head, Places::told(self.head, seam, jump), seam);
            assert_eq!(SMALL.place(begin), at, "where its producer has put it");
            let next = begin.wrapping_add(lines);
            let left = SMALL.left(free, (self.head, begin), next);
            for (other, count) in &self.waiting {
                let is_apart = left.end <= *other || other + count <= left.start;
                assert!(left.is_empty() || is_apart, "only what was left is given back");
            }
            self.given_back.push(left);
            self.head = next;
            self.limits.free = SMALL.settled(next);
        }

        fn lines(&self) -> u32 {
            self.waiting.iter().map(|(_, lines)| lines).sum()
        }
    }

    proptest! {
        /// No record overlaps another one that waits, consumers find each, and half of the ring may
        /// wait.
        #[test]
        fn records_lie_apart(
            first in any::<u32>(),
            steps in prop::collection::vec((1..100_u32, 1..300_usize, any::<bool>()), 1..60)
        ) {
            let mut queue = Queue::new(first & !(SMALL.lines - 1));
            for (lines, count, puts) in steps {
                for _ in 0..count / (1 + lines as usize / 10) {
                    if puts {
                        let has_room = queue.put(lines).is_some();
                        prop_assert!(has_room || queue.lines() > SMALL.lines / 2);
                    } else {
                        queue.take();
                    }
                }
            }
            while !queue.waiting.is_empty() {
                queue.take();
            }
            prop_assert!(queue.put(SMALL.longest()).is_some(), "an empty one has room for it");
        }
    }

    #[test]
    fn producers_turn_back_while_little_waits_and_go_on_behind_the_rest() {
        let mut queue = Queue::new(0);
        for _ in 0..10 {
            assert_eq!(queue.put(10), Some(Step::On));
        }
        (0..8).for_each(|_| queue.take());
        assert_eq!(queue.put(10), Some(Step::Back));
        for _ in 1..8 {
            assert_eq!(queue.put(10), Some(Step::On));
        }
        assert_eq!(queue.put(10), Some(Step::Over), "two records are in the way");
        while queue.lines() < SMALL.lines - 10 {
            assert_eq!(queue.put(10), Some(Step::On), "the rest of the ring");
        }
        assert_eq!(queue.put(10), None);
    }

    #[test]
    fn pages_are_given_back_but_for_the_first() {
        let mut queue = Queue::new(0);
        while queue.put(50).is_some() {}
        while !queue.waiting.is_empty() {
            queue.take();
        }
        let given_back: Vec<_> = queue.given_back.into_iter().flatten().collect();
        let all: Vec<_> = (SMALL.keep..given_back.len() as u32 + SMALL.keep).collect();
        assert_eq!(given_back, all, "each once");
        assert!(given_back.len() > 1600);
    }

    #[test]
    fn a_cursor_is_one_word() {
        let cursor = Cursor { line: u32::MAX, items: 7 };
        assert_eq!(Cursor::of_word(cursor.word()), cursor);
        assert_eq!(cursor.behind(u32::MAX, 2), Cursor { line: 1, items: 8 });
    }
}
