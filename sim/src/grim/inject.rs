//! The ways in which a program moves a message into a card: TPIL, which chooses the best (5.2).
use super::dma::Rate;
use crate::time::Time;

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Bytes of the buffer through which one-copy transfers go (section 5.2.2).
const BUFFER: u32 = 128 << 10;
/// Bytes up to which the source is read in advance without the processor's help (section 5.2.3).
const READ_AHEAD: u32 = 2 << 10;

/// A way into the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The processor stores blocks of 64 bytes.
    Mmx,
    /// It also fetches the source in advance, and stores past its cache.
    Sse,
    /// It copies into a contiguous buffer, which the card reads.
    OneCopy,
    /// It copies into one half of the buffer while the card reads the other one.
    DoubleBuffered,
    /// The card reads the pages of the program.
    ZeroCopy,
}

impl Method {
    /// All ways.
    pub const ALL: [Self; 5] =
        [Self::Mmx, Self::Sse, Self::OneCopy, Self::DoubleBuffered, Self::ZeroCopy];
}

/// The costs of these ways in a host with a card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Injection {
    /// Stores of the processor to the card.
    pub store: Rate,
    /// Reads of the card from contiguous memory.
    pub read: Rate,
    /// The further time of a DMA: the call, and the interrupt at its end.
    pub begin: Time,
    /// The further time of each page in a zero-copy transfer.
    pub page: Time,
    /// The memory of the host.
    pub memory: Memory,
}

/// The memory of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Loads by a program, one cache line behind the other.
    pub load: Rate,
    /// Copies by a program.
    pub copy: Rate,
    /// The first access to a page that a program was given: a fault, and the page is zeroed.
    pub fresh: Time,
}

impl Memory {
    /// Reconstructed from the field's knowledge of such machines: STREAM moves 330 MB/s, and a
    /// copy moves each byte twice. A page is zeroed at that rate, after a fault of 2 us.
    pub const P3: Self =
        Self { load: Rate(330.0), copy: Rate(165.0), fresh: Time::from_nanos(14_400) };
    /// RDRAM with two channels, reconstructed likewise: 1.5 GB/s, and a fault of 1 us.
    pub const P4: Self =
        Self { load: Rate(1500.0), copy: Rate(750.0), fresh: Time::from_nanos(3_700) };

    /// A copy into memory that has just been allocated. Less than a page comes from pages in use.
    pub fn copy_to_fresh(&self, bytes: u32) -> Time {
        self.copy.span(bytes) + times(self.fresh, bytes / PAGE)
    }
}

impl Injection {
    /// From the rate of zero-copy transfers, where other numbers of the host are known.
    #[must_use]
    pub fn with_zero_copy(self, rate: Rate) -> Self {
        Self { read: Rate::of(PAGE, Time(rate.span(PAGE).0.saturating_sub(self.page.0))), ..self }
    }

    /// From the size at which stores and zero-copy transfers are equally fast.
    #[must_use]
    pub fn with_crossover(self, bytes: u32) -> Self {
        let free = Self { begin: Time::ZERO, ..self }.time(Method::ZeroCopy, bytes);
        Self { begin: Time(self.store.span(bytes).0.saturating_sub(free.0)), ..self }
    }

    /// The time of a transfer.
    pub fn time(&self, method: Method, bytes: u32) -> Time {
        match method {
            Method::Sse => self.store.span(bytes),
            Method::Mmx => {
                let unread = bytes.saturating_sub(READ_AHEAD);
                self.store.span(bytes) + self.memory.load.span(unread)
            }
            Method::ZeroCopy => {
                // Not aligned: on average it touches a page more than it fills.
                let pages = f64::from(bytes) / f64::from(PAGE) + 1.0;
                let pages = Time((self.page.0 as f64 * pages) as u64);
                self.begin + self.read.span(bytes) + pages
            }
            Method::OneCopy => {
                let begins = times(self.begin, bytes.div_ceil(BUFFER));
                begins + self.memory.copy.span(bytes) + self.read.span(bytes)
            }
            Method::DoubleBuffered => self.double_buffered(bytes),
        }
    }

    /// The first half is copied, then copies and transfers run side by side.
    fn double_buffered(&self, bytes: u32) -> Time {
        let half = bytes.min(BUFFER / 2);
        let prepare = |bytes| self.begin + self.memory.copy.span(bytes);
        let both = prepare(half).max(self.read.span(half));
        let (whole, rest) = (bytes / half.max(1), bytes % half.max(1));
        let steady = times(both, whole.saturating_sub(1));
        let last = if rest == 0 { self.read.span(half) } else { both + self.read.span(rest) };
        prepare(half) + steady + last
    }

    /// The best way and its time.
    pub fn best(&self, bytes: u32) -> (Method, Time) {
        let times = Method::ALL.map(|method| (method, self.time(method, bytes)));
        times.into_iter().rev().min_by_key(|(_, time)| *time).unwrap_or((Method::Sse, Time::ZERO))
    }
}

fn times(time: Time, count: u32) -> Time {
    Time(time.0 * u64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Injection = Injection {
        store: Rate(100.0),
        read: Rate(132.0),
        begin: Time::from_nanos(15_000),
        page: Time::from_nanos(3_000),
        memory: Memory::P3,
    };

    #[test]
    fn the_best_way_is_no_slower_than_any() {
        for bytes in (0..20).map(|power| 1 << power) {
            let best = HOST.best(bytes).1;
            assert!(Method::ALL.iter().all(|&method| best <= HOST.time(method, bytes)));
        }
    }

    #[test]
    fn stores_are_best_for_few_bytes_and_zero_copy_for_many() {
        let crossover = 10 << 10;
        let host = HOST.with_crossover(crossover);
        assert_eq!(host.best(crossover - 64).0, Method::Sse);
        assert_eq!(host.best(crossover + 64).0, Method::ZeroCopy);
    }

    #[test]
    fn rates_of_long_transfers_are_those_of_the_slowest_part() {
        let rate = |method| Rate::of(1 << 30, HOST.time(method, 1 << 30)).0;
        assert!((rate(Method::Sse) - 100.0).abs() < 0.01);
        let zero_copy = HOST.with_zero_copy(Rate(89.0)).time(Method::ZeroCopy, 1 << 30);
        assert!((Rate::of(1 << 30, zero_copy).0 - 89.0).abs() < 0.01);
        let serial = 1.0 / (1.0 / 165.0 + 1.0 / 132.0);
        assert!(rate(Method::OneCopy) < serial && rate(Method::OneCopy) > 0.98 * serial);
        assert!((rate(Method::DoubleBuffered) - 132.0).abs() < 0.1);
    }

    #[test]
    fn two_halves_save_the_copy_of_one() {
        let (one, two) = (Method::OneCopy, Method::DoubleBuffered);
        let saved = HOST.time(one, BUFFER) - HOST.time(two, BUFFER);
        assert!(saved.0.abs_diff(HOST.memory.copy.span(BUFFER / 2).0) < 10);
    }
}
