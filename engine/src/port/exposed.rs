//! The memory that a port exposes, and the responder that executes its peers' commands there.
use crate::error::SetupError;
use crate::mem::map::Mapping;
use crate::sync::{AtomicBool, Ordering};
use crate::target::{Responder, lock};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// A port's regions by number.
#[derive(Debug)]
pub(crate) struct Exposed {
    /// The addresses of the regions, so that a lookup takes no lock; empty for a free number.
    ranges: Vec<Range<usize>>,
    /// Shared with the engine thread and the wire.
    responder: Arc<Mutex<Responder>>,
    /// Whether the responder has news, so that a poll takes no lock.
    any_news: Arc<AtomicBool>,
}

impl Exposed {
    pub(super) fn new() -> Self {
        let any_news = Arc::new(AtomicBool::new(false));
        let responder = Arc::new(Mutex::new(Responder::new(any_news.clone())));
        Self { ranges: Vec::new(), responder, any_news }
    }

    pub(super) fn responder(&self) -> MutexGuard<'_, Responder> {
        lock(&self.responder)
    }

    pub(super) fn shared(&self) -> &Arc<Mutex<Responder>> {
        &self.responder
    }

    /// Whether the responder has news.
    #[inline(always)]
    pub(super) fn has_news(&self) -> bool {
        // Relaxed: the lock orders what the flag stands for.
        self.any_news.load(Ordering::Relaxed)
    }

    /// The addresses of the regions, by region number.
    #[inline(always)]
    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Returns a number that no region has.
    ///
    /// # Errors
    /// [`SetupError::Exhausted`] where all numbers are taken.
    pub(super) fn free_number(&self) -> Result<u16, SetupError> {
        let responder = self.responder();
        debug_assert_eq!(self.ranges.len(), responder.regions.len(), "each region has a range");
        let free = responder.regions.iter().position(Option::is_none);
        u16::try_from(free.unwrap_or(responder.regions.len()))
            .map_err(|_| SetupError::exhausted("region number; a port has 65536"))
    }

    pub(super) fn register(&mut self, number: u16, mapping: Arc<Mapping>) {
        let (slot, start) = (usize::from(number), mapping.base().addr().get());
        let needed = self.ranges.len().max(slot + 1);
        self.ranges.resize(needed, 0..0);
        debug_assert!(self.ranges[slot].is_empty(), "the number was free");
        debug_assert!(mapping.len() > 0, "a region has a byte at least");
        self.ranges[slot] = start..start + mapping.len();
        let mut responder = lock(&self.responder);
        responder.regions.resize(needed, None);
        debug_assert!(responder.regions[slot].is_none(), "nobody else reaches the number");
        responder.regions[slot] = Some(mapping);
    }

    /// Removes a region; its number is free from then on.
    pub(super) fn deregister(&mut self, number: u16) {
        let slot = usize::from(number);
        debug_assert!(!self.ranges[slot].is_empty(), "a region is registered once");
        let last = self.responder().regions[slot].take();
        debug_assert!(last.is_some(), "what has a range can be reached");
        self.ranges[slot] = 0..0;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: REG-4
    #[test]
    fn a_number_is_free_again_once_its_region_is_deregistered() {
        let mut exposed = Exposed::new();
        for number in 0..3 {
            assert_eq!(exposed.free_number().unwrap(), number);
            exposed.register(number, Arc::new(Mapping::of_words(vec![0; 8])));
        }
        exposed.deregister(1);
        assert!(exposed.ranges()[1].is_empty() && exposed.responder().regions[1].is_none());
        assert_eq!(exposed.free_number().unwrap(), 1);
        let other = Arc::new(Mapping::of_words(vec![0; 4]));
        exposed.register(1, other.clone());
        assert_eq!(exposed.ranges()[1].len(), other.len());
        assert_eq!(exposed.free_number().unwrap(), 3);
    }
}
