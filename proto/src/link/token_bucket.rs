//! Token buckets: they limit what is done for senders of which nothing is known.
use alloc::boxed::Box;
use alloc::vec;

/// A number of tokens at once, and one more in each interval. So a flood of unknown frames causes
/// few answers.
// spec: OPEN-11, OPEN-21
#[derive(Clone, Debug)]
pub struct TokenBucket {
    burst: u32,
    interval: u64,
    left: u32,
    /// When the last one was added.
    at: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub const fn new(burst: u32, interval: u64, now: u64) -> Self {
        assert!(burst > 0 && interval > 0, "something may be sent, now and then");
        Self { burst, interval, left: burst, at: now }
    }

    /// Resets of a port on a host of a rack: 16 at once, a thousand in a second.
    // spec: OPEN-11
    pub const fn rack(now: u64) -> Self {
        Self::new(16, 1_000_000, now)
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: u64) -> bool {
        let more = now.saturating_sub(self.at) / self.interval;
        if more >= u64::from(self.burst - self.left) {
            (self.left, self.at) = (self.burst, now);
        } else {
            self.left += more as u32;
            self.at += more * self.interval;
        }
        debug_assert!(self.left <= self.burst, "no more is there than the burst");
        let is_there = self.left > 0;
        self.left -= u32::from(is_there);
        is_there
    }
}

/// Groups of addresses, each with a bucket of its own.
const GROUPS: usize = 64;

/// A bucket for each group of addresses: a sender that takes all of its own leaves those of other
/// groups alone.
// spec: OPEN-22
#[derive(Clone, Debug)]
pub struct TokenBuckets(Box<[TokenBucket]>);

impl TokenBuckets {
    /// 16 at once, and 250 in a second, to each group.
    pub fn rack(now: u64) -> Self {
        Self(vec![TokenBucket::new(16, 4_000_000, now); GROUPS].into())
    }

    /// Takes a token of the group to which an address belongs, by a number that nobody can choose.
    pub fn take(&mut self, address: u64, now: u64) -> bool {
        self.0[(address % GROUPS as u64) as usize].take(now)
    }
}
