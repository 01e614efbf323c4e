//! A single-level store: the device pages, and knows of each access that misses the caches
//! (section III.C).
//!
//! ```text
//!   program --> TLB --------> cache --------> memory <--> backing store
//!                |              |
//!          a miss walks     a miss is seen
//!          the page table,  by the device
//!          which sets the
//!          usage bit
//! ```
//!
//! The operating system chooses the page to go by usage bits: a hand goes round, clears them, and
//! takes the first page whose bit is clear. A page whose translation stays in the TLB does not get
//! its bit back, however often it is used.
//!
//! The device counts the visits of each page, also of those in the backing store. A visit is a miss
//! of the cache in a page where there was none for a while. The page with the fewest visits goes,
//! and of several the one that was visited last. All counts are halved from time to time. The
//! source does not say how its device chooses.
use crate::random::Random;
use crate::whtra::recent::{Recent, Use};
use std::collections::{BTreeSet, HashMap};

/// Lines of a page: 4 KiB of 64 bytes.
pub const LINES: u64 = 64;

/// The sizes of a machine that pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Pages in memory.
    pub frames: usize,
    /// Translations in the TLB.
    pub translations: usize,
    /// Lines in the processor's last cache.
    pub cached: usize,
}

/// Page faults under an operating system with usage bits. A trace has the number of each line that
/// the program uses.
pub fn by_usage_bits(trace: &[u64], sizes: &Sizes) -> u64 {
    let mut tlb = Recent::new(sizes.translations);
    let mut clock = Clock::default();
    let mut faults = 0;
    for line in trace {
        let page = line / LINES;
        if tlb.touch(page) == Use::Hit {
            continue;
        }
        if let Some(frame) = clock.place.get(&page) {
            clock.used[*frame] = true;
            continue;
        }
        faults += 1;
        if let Some(gone) = clock.bring(page, sizes.frames.max(1)) {
            tlb.remove(gone);
        }
    }
    faults
}

/// Pages in a ring, with their usage bits.
#[derive(Default)]
struct Clock {
    pages: Vec<u64>,
    used: Vec<bool>,
    place: HashMap<u64, usize>,
    hand: usize,
}

impl Clock {
    /// Brings a page into memory. The result is the page that had to go.
    fn bring(&mut self, page: u64, frames: usize) -> Option<u64> {
        if self.pages.len() < frames {
            self.place.insert(page, self.pages.len());
            self.pages.push(page);
            self.used.push(true);
            return None;
        }
        while core::mem::take(&mut self.used[self.hand]) {
            self.hand = (self.hand + 1) % frames;
        }
        let gone = core::mem::replace(&mut self.pages[self.hand], page);
        self.place.remove(&gone);
        self.place.insert(page, self.hand);
        self.used[self.hand] = true;
        self.hand = (self.hand + 1) % frames;
        Some(gone)
    }
}

/// Visits of a page that the device counts at most: two bits.
const VISITS_MAX: u8 = 3;
/// Misses in one of the pages that were missed last are no new visit.
const WHILE: usize = 16;
/// Counts are halved after this number of visits for each frame.
const HALVING: u64 = 4;

/// Page faults of a device that sees all misses of the cache.
pub fn by_device(trace: &[u64], sizes: &Sizes) -> u64 {
    let mut cache = Recent::new(sizes.cached);
    let mut device = Device::default();
    let mut lately = Recent::new(WHILE);
    let mut faults = 0;
    for line in trace {
        if sizes.cached > 0 && cache.touch(*line) == Use::Hit {
            continue;
        }
        let page = line / LINES;
        if lately.touch(page) != Use::Hit || !device.is_here(page) {
            faults += u64::from(device.visit(page, sizes.frames.max(1)));
        }
    }
    faults
}

/// The device's counts.
#[derive(Default)]
struct Device {
    /// The visits of each page, and the time of the last one.
    pages: HashMap<u64, (u8, u64)>,
    /// Those in memory, by visits. Of equals, the one visited last is first.
    here: BTreeSet<(u8, core::cmp::Reverse<u64>, u64)>,
    visits: u64,
}

impl Device {
    fn key(&self, page: u64) -> Option<(u8, core::cmp::Reverse<u64>, u64)> {
        let (count, last) = self.pages.get(&page)?;
        Some((*count, core::cmp::Reverse(*last), page))
    }

    fn is_here(&self, page: u64) -> bool {
        self.key(page).is_some_and(|key| self.here.contains(&key))
    }

    /// Counts a visit. The result says whether the page was not in memory.
    fn visit(&mut self, page: u64, frames: usize) -> bool {
        let was_here = self.key(page).is_some_and(|key| self.here.remove(&key));
        if !was_here && self.here.len() == frames {
            self.here.pop_first();
        }
        self.visits += 1;
        let entry = self.pages.entry(page).or_default();
        *entry = ((entry.0 + 1).min(VISITS_MAX), self.visits);
        let key = (entry.0, core::cmp::Reverse(entry.1), page);
        self.here.insert(key);
        if self.visits.is_multiple_of(HALVING * frames as u64) {
            self.halve();
        }
        !was_here
    }

    fn halve(&mut self) {
        self.pages.values_mut().for_each(|(count, _)| *count /= 2);
        let here = core::mem::take(&mut self.here);
        let halved = here.into_iter().map(|(count, last, page)| (count / 2, last, page));
        self.here = halved.collect();
    }
}

/// Traces of programs whose pages do not all fit into memory. Their lengths are in visits of pages,
/// and a visit uses some lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    /// Page `n` is used as often as `1 / n^exponent` says.
    Zipf {
        /// All pages.
        pages: u64,
        /// The exponent.
        exponent: f64,
    },
    /// All pages one after the other, again and again.
    Loop {
        /// All pages.
        pages: u64,
    },
    /// Some pages by chance, and between them all others in order.
    Scan {
        /// The pages used by chance.
        hot: u64,
        /// Those that are scanned.
        cold: u64,
        /// The share of visits to hot pages.
        share: f64,
    },
    /// A set of pages by chance, and after some visits another set.
    Phases {
        /// The pages of a set.
        set: u64,
        /// The sets, which come by turns.
        sets: u64,
        /// The visits of a phase.
        visits: u64,
        /// The share of visits to pages of all sets.
        stray: f64,
    },
}

/// Lines that a visit uses.
const RUN: u64 = 8;

impl Program {
    /// Five programs for a memory of 1,024 pages.
    pub const EXAMPLES: [Self; 5] = [
        Self::Zipf { pages: 4096, exponent: 0.8 },
        Self::Zipf { pages: 4096, exponent: 1.0 },
        Self::Loop { pages: 1280 },
        Self::Scan { hot: 768, cold: 4096, share: 0.7 },
        Self::Phases { set: 900, sets: 4, visits: 20_000, stray: 0.1 },
    ];

    /// The lines that it uses in `visits` visits.
    pub fn trace(&self, visits: u64, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed, 0);
        let weights = self.weights();
        let mut trace = Vec::with_capacity((visits * RUN) as usize);
        for visit in 0..visits {
            let page = self.page(visit, &weights, &mut random);
            let first = u64::from(random.below((LINES - RUN) as u32));
            trace.extend((first..first + RUN).map(|line| page * LINES + line));
        }
        trace
    }

    /// For each page the sum of the weights up to it.
    fn weights(&self) -> Vec<f64> {
        let Self::Zipf { pages, exponent } = *self else { return Vec::new() };
        let mut sum = 0.0;
        let weight = |page: u64| {
            sum += libm::pow(page as f64, -exponent);
            sum
        };
        (1..=pages).map(weight).collect()
    }

    fn page(&self, visit: u64, weights: &[f64], random: &mut Random) -> u64 {
        let draw = |random: &mut Random, pages: u64| u64::from(random.below(pages as u32));
        match *self {
            Self::Zipf { pages, .. } => {
                let place = random.unit() * weights.last().copied().unwrap_or(1.0);
                (weights.partition_point(|sum| *sum <= place) as u64).min(pages - 1)
            }
            Self::Loop { pages } => visit % pages,
            Self::Scan { hot, cold, share } => {
                if random.unit() < share {
                    draw(random, hot)
                } else {
                    hot + visit % cold
                }
            }
            Self::Phases { set, sets, visits, stray } => {
                if random.unit() < stray {
                    draw(random, set * sets)
                } else {
                    visit / visits % sets * set + draw(random, set)
                }
            }
        }
    }
}

/// The mean time of an access to memory: its latency, and its share of the swaps of pages
/// (section IV.B).
pub fn mean_access(latency: f64, faults: u64, accesses: usize, swap: f64) -> f64 {
    latency + faults as f64 / accesses as f64 * swap
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults if the page goes that is used again latest (Belady): no paging has fewer.
    fn least(trace: &[u64], frames: usize) -> u64 {
        let pages: Vec<_> = trace.iter().map(|line| line / LINES).collect();
        let mut next = vec![usize::MAX; pages.len()];
        let mut later = HashMap::new();
        for (place, page) in pages.iter().enumerate().rev() {
            next[place] = later.insert(*page, place).unwrap_or(usize::MAX);
        }
        let mut here = HashMap::new();
        let mut order = BTreeSet::new();
        let mut faults = 0;
        for (place, page) in pages.iter().enumerate() {
            if let Some(expected) = here.insert(*page, next[place]) {
                order.remove(&(expected, *page));
            } else {
                faults += 1;
            }
            order.insert((next[place], *page));
            if here.len() > frames {
                let (_, gone) = order.pop_last().expect("a page is here");
                here.remove(&gone);
            }
        }
        faults
    }

    const SIZES: Sizes = Sizes { frames: 1024, translations: 64, cached: 0 };

    #[test]
    fn no_choice_of_pages_has_fewer_faults_than_the_best_one() {
        for program in Program::EXAMPLES {
            let trace = program.trace(20_000, 7);
            let least = least(&trace, SIZES.frames);
            for faults in [by_usage_bits(&trace, &SIZES), by_device(&trace, &SIZES)] {
                assert!(least <= faults, "{program:?}: {least} and {faults}");
            }
        }
    }

    #[test]
    fn what_fits_into_memory_faults_once() {
        let trace = Program::Loop { pages: 1024 }.trace(10_240, 1);
        assert_eq!(by_usage_bits(&trace, &SIZES), 1024);
        assert_eq!(by_device(&trace, &SIZES), 1024);
    }

    #[test]
    fn usage_bits_lose_a_loop_and_the_device_keeps_most_of_it() {
        let rounds = 50;
        let trace = Program::Loop { pages: 1280 }.trace(rounds * 1280, 1);
        assert_eq!(by_usage_bits(&trace, &SIZES), rounds * 1280);
        // Of 1280 pages at least 257 are not in memory when their turn comes.
        let device = by_device(&trace, &SIZES);
        assert!((rounds * 257..rounds * 400).contains(&device), "{device}");
    }

    #[test]
    fn a_page_in_the_tlb_goes_though_it_is_used_all_the_time() {
        // Page 0 is used between any two others, so it never leaves the TLB.
        let trace: Vec<_> = (1..=8).flat_map(|page| [0, page * LINES]).collect();
        let sizes = Sizes { frames: 4, translations: 4, cached: 0 };
        assert!(by_usage_bits(&trace, &sizes) > 9);
        assert_eq!(by_device(&trace, &sizes), 9);
    }
}
