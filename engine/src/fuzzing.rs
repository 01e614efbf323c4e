//! Entry points for the fuzzer: lanes over memory with any content, and links that get any
//! datagrams. `engine/tests/hostile/scripts.rs` attacks whole ports from outside.
pub use crate::link::fuzzed::{datagrams, endings, set_ups};
use crate::mem::lane::{LaneMemory, Lines, Probe};
use crate::mem::map::Mapping;
use crate::sync::Ordering;
use ayre_proto::lane::{Kind, lines_for, step};
use ayre_proto::limits::{LANE_LINES_MIN, LINE, LINE_PAYLOAD};
use std::sync::Arc;

/// The content of all memory that is not the lane's.
const GUARD: u64 = 0x6a72_6a72_6a72_6a72;
/// Bytes of the input that one step consumes.
const STEP: usize = 16;

/// Memory with a lane: a line for a cursor, then lines of the lane and other lines alternately.
struct Arena {
    mapping: Arc<Mapping>,
    count: u32,
}

impl Arena {
    fn new(count: u32) -> Self {
        let mut words = vec![GUARD; (2 * count as usize + 2) * LINE / 8];
        words[0] = 0;
        let arena = Self { mapping: Arc::new(Mapping::of_words(words)), count };
        for line in 0..count {
            (0..8).for_each(|index| arena.store(line, index, 0));
        }
        arena
    }

    fn lane(&self) -> LaneMemory {
        let (first, stride) = (LINE as u64, 2 * LINE as u64);
        LaneMemory::new(&self.mapping, 0, Lines { first, stride, count: self.count })
    }

    fn offset(&self, line: u32, index: u64) -> u64 {
        let place = line % self.count * step(self.count) % self.count;
        LINE as u64 * (1 + 2 * u64::from(place)) + index * 8
    }

    fn store(&self, line: u32, index: u64, value: u64) {
        // Relaxed: there is one thread.
        self.mapping.word(self.offset(line, index)).store(value, Ordering::Relaxed);
    }

    fn load(&self, offset: u64) -> u64 {
        // Relaxed: there is one thread.
        self.mapping.word(offset).load(Ordering::Relaxed)
    }

    /// The payload of a record that begins at `line`.
    fn payload(&self, line: u32, len: usize) -> Vec<u8> {
        let words = (0..lines_for(len))
            .flat_map(|ahead| (1..8).map(move |index| self.load(self.offset(line + ahead, index))));
        words.flat_map(u64::to_le_bytes).take(len).collect()
    }

    fn check_guards(&self) {
        for line in 0..self.mapping.len() as u64 / LINE as u64 {
            let first = if line == 0 { 8 } else { 0 };
            let is_guard = line % 2 == 0;
            for offset in (first..LINE as u64).step_by(8).filter(|_| is_guard) {
                assert_eq!(self.load(line * LINE as u64 + offset), GUARD, "beside the lane");
            }
        }
    }
}

/// Gives a lane's reader any lines and its writer any cursor. Checks that both stay within the
/// lane, and that the reader returns what the lines contain.
pub fn lane(bytes: &[u8]) {
    let (first, steps) = bytes.split_at(bytes.len().min(1));
    let count = LANE_LINES_MIN as u32 + u32::from(first.first().unwrap_or(&0) % 8);
    read(count, steps);
    write(count, steps);
}

fn word(step: &[u8], from: usize) -> u64 {
    let bytes = step.iter().skip(from).take(8);
    bytes.rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn read(count: u32, steps: &[u8]) {
    let arena = Arena::new(count);
    let mut lane = arena.lane().receiver();
    let mut taken = 0;
    let mut buffer = [0; LINE_PAYLOAD];
    for step in steps.chunks(STEP) {
        let sequence = u64::from(taken as u16).wrapping_add(1) & 0xffff;
        (1..8).for_each(|index| arena.store(taken, index, word(step, 7).wrapping_add(index)));
        arena.store(taken, 0, word(step, 1) << 16 | sequence);
        let room = usize::from(step[0] >> 2).min(LINE_PAYLOAD);
        let probe = match step[0] % 4 {
            0 => lane.take_short(Kind::Message, &mut buffer[..room]),
            1 => match lane.take_words::<3>(Kind::Notification) {
                Probe::Taken(words) => {
                    assert_eq!(words[0], arena.load(arena.offset(taken, 1)), "what stands there");
                    taken += 1;
                    continue;
                }
                Probe::Nothing => Probe::Nothing,
                Probe::Other => Probe::Other,
            },
            _ => Probe::Other,
        };
        match probe {
            Probe::Nothing => unreachable!("the line has the expected number"),
            Probe::Taken((len, _)) => {
                assert_eq!(buffer[..len], arena.payload(taken, len), "what stands there");
                taken += 1;
                continue;
            }
            Probe::Other => {}
        }
        let Some(Ok(status)) = lane.peek() else { break };
        let mut record = vec![0; status.len as usize];
        lane.copy(0, &mut record);
        assert_eq!(record, arena.payload(taken, record.len()), "what stands there");
        lane.consume(&status);
        taken += lines_for(record.len());
    }
    let published = arena.load(0);
    assert!(published <= u64::from(taken), "only what was taken is given back");
    arena.check_guards();
}

fn write(count: u32, steps: &[u8]) {
    let arena = Arena::new(count);
    let mut lane = arena.lane().sender();
    let data = [0xd5; 2 * LINE_PAYLOAD * (LANE_LINES_MIN + 8)];
    for step in steps.chunks(STEP) {
        let len = (word(step, 9) & 0x7ff) as usize;
        // Relaxed: there is one thread.
        arena.mapping.word(0).store(word(step, 1), Ordering::Relaxed);
        if step[0].is_multiple_of(2) {
            let _ = lane.push_short((Kind::Message, 1), [], &data[..len]);
        } else {
            let pushed = lane.push((Kind::Command, 1), [word(step, 3); 6], &data[..len]);
            assert!(pushed.is_err() || len + 48 <= lane.capacity(), "what never fits");
        }
    }
    arena.check_guards();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        // spec: ERR-7, LANE-3
        #[test]
        fn any_lane(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            super::lane(&bytes);
        }
    }
}
