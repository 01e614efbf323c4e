//! Translation of addresses by page, with a TLB, as the ATU does it (EXTOLL thesis, section 5.2).
//!
//! ```text
//!   key, offset --> page --> table: number --> TLB, by the number's low bits: hit, or read of the
//!                                              table: miss
//! ```
//!
//! A capability's pages are counted from its first byte: memory is registered
//! by pages. A page gets its number in the table when it is used for the first time, the next one
//! that is free. No number is used again, so none of a page that was revoked can hit.
use crate::extoll::{ATS, atu};
use crate::host::Host;
use crate::time::{Clock, Time};
use ayre_proto::units::Key;
use std::collections::HashMap;

/// Memory in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of a page, which an operation may not leave.
    pub bytes: u64,
    /// Entries of the TLB. A page has one place there.
    pub entries: u32,
    /// The time of a translation that the TLB has.
    pub hit: Time,
    /// The time of another one, which reads the table.
    pub miss: Time,
    /// From the flush of a page to the units, and from their answers to the program.
    pub invalidation: [Time; 2],
}

impl Pages {
    /// EXTOLL's (tables 5-8 and 7-2): pages of 4 KiB, and a TLB of 1,024 entries. A miss reads
    /// eight bytes of the host's memory.
    pub fn extoll(host: &Host, clock: Clock) -> Self {
        let channel = clock.span(ATS);
        Self {
            bytes: 4096,
            entries: 1024,
            hit: clock.span(atu::HIT) + channel,
            miss: atu::miss(clock, host.device_read) + channel,
            invalidation: atu::INVALIDATION.map(|cycles| clock.span(cycles)),
        }
    }

    /// Whether an operation lies in one page.
    pub(super) fn holds(&self, offset: u64, len: u64) -> bool {
        len <= self.bytes - offset % self.bytes
    }
}

/// A page of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Page {
    /// A page of a capability.
    Shared(Key, u64),
    /// A page of the program's own region.
    Own(u16, u64),
    /// The page from which programs send bytes that lie in no region.
    Buffer,
}

/// Translations of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translations {
    /// Those that the TLB had.
    pub hits: u64,
    /// Those that have read the table.
    pub misses: u64,
}

/// The table and the TLB of a node.
#[derive(Debug)]
pub(super) struct Translator {
    pub(super) pages: Pages,
    numbers: HashMap<Page, u64>,
    next: u64,
    /// The number of the page in each entry.
    tlb: Vec<Option<u64>>,
    pub(super) counts: Translations,
}

impl Translator {
    pub(super) fn new(pages: Pages) -> Self {
        let tlb = vec![None; pages.entries as usize];
        Self { pages, numbers: HashMap::new(), next: 0, tlb, counts: Translations::default() }
    }

    /// The page of a place in a capability.
    pub(super) fn shared(&self, key: Key, offset: u64) -> Page {
        Page::Shared(key, offset / self.pages.bytes)
    }

    /// Translates a page: the time of that.
    pub(super) fn translate(&mut self, page: Page) -> Time {
        let number = *self.numbers.entry(page).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let entry = &mut self.tlb[(number % u64::from(self.pages.entries)) as usize];
        if entry.replace(number) == Some(number) {
            self.counts.hits += 1;
            self.pages.hit
        } else {
            self.counts.misses += 1;
            self.pages.miss
        }
    }

    /// A capability's pages leave the table.
    pub(super) fn forget(&mut self, key: Key) {
        self.numbers.retain(|page, _| !matches!(page, Page::Shared(of, _) if *of == key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translator(entries: u32) -> Translator {
        let (hit, miss) = (Time(1), Time(10));
        Translator::new(Pages { bytes: 4096, entries, hit, miss, invalidation: [Time::ZERO; 2] })
    }

    const KEY: Key = Key { slot: 3, generation: 1 };

    #[test]
    fn a_page_ends_where_the_next_one_begins() {
        let pages = translator(1).pages;
        for (offset, len) in [(0, 4096), (4095, 1), (4096, 4096), (8000, 192), (4096, 0)] {
            assert!(pages.holds(offset, len), "{len} bytes at {offset}");
        }
        for (offset, len) in [(0, 4097), (4095, 2), (1, 4096), (8000, 193)] {
            assert!(!pages.holds(offset, len), "{len} bytes at {offset}");
        }
    }

    #[test]
    fn pages_of_one_place_in_the_tlb_push_each_other_out() {
        let mut translator = translator(2);
        let mut times = |pages: [u64; 4]| pages.map(|page| translator.translate_at(page).0);
        assert_eq!(times([0, 1, 0, 1]), [10, 10, 1, 1]);
        // The third page has the place of the first one.
        assert_eq!(times([2, 0, 1, 2]), [10, 10, 1, 10]);
        assert_eq!(translator.counts, Translations { hits: 3, misses: 5 });
    }

    #[test]
    fn a_page_that_was_revoked_misses() {
        let mut translator = translator(8);
        assert_eq!([0, 0].map(|page| translator.translate_at(page).0), [10, 1]);
        translator.forget(KEY);
        assert_eq!(translator.translate_at(0).0, 10);
    }

    impl Translator {
        fn translate_at(&mut self, page: u64) -> Time {
            let page = self.shared(KEY, 4096 * page);
            self.translate(page)
        }
    }
}
