//! Two ends and memory of the one, for tests of what may not be done to it.

use super::ends::*;
use super::*;

pub(crate) const KEY: u64 = 7;

/// The initial value of all bytes.
const UNTOUCHED: u8 = 0xee;

pub(crate) fn code(code: i32) -> isize {
    -(code as isize)
}

/// Two ends, and memory that peers may work on.
pub(crate) struct Scene {
    pub(crate) opened: Opened,
    pub(crate) ends: [End; 2],
    pub(crate) memory: Vec<u8>,
    mr: *mut FidMr,
    /// By what peers call its first byte.
    first: u64,
}

/// The target of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) to: u64,
    pub(crate) key: u64,
    pub(crate) address: u64,
    pub(crate) flags: u64,
}

impl Default for Aim {
    fn default() -> Self {
        Self { to: 0, key: KEY, address: 0, flags: 0 }
    }
}

impl Scene {
    pub(crate) fn new(wishes: Wishes) -> Self {
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let memory = vec![UNTOUCHED; 64];
        let mr = register(&opened, &memory, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
        let is_virtual = wishes.mr_mode & MR_VIRT_ADDR != 0;
        let first = if is_virtual { memory.as_ptr() as u64 } else { 0 };
        Self { opened, ends, memory, mr, first }
    }

    /// One for each table of calls that there is.
    pub(crate) fn of_each_kind() -> [Self; 2] {
        [THREAD_SAFE, THREAD_DOMAIN]
            .map(|threading| Self::new(Wishes { threading, ..Wishes::remote() }))
    }

    /// Keys that nobody has, and ranges of `len` bytes that leave the memory, each with what
    /// becomes of it.
    pub(crate) fn wrong_aims(&self, len: u64) -> Vec<(Aim, i32)> {
        let first = self.first;
        let end = first + self.memory.len() as u64;
        let outside = [end - len + 1, end, first.wrapping_sub(1), first.wrapping_sub(len)];
        // Some whose last byte would be beyond the last address, or just is not.
        let wrapping = [u64::MAX, u64::MAX - len, u64::MAX - len + 1, u64::MAX - len + 2];
        let keys = [0, KEY + 1, u64::MAX].map(|key| (Aim { key, ..Aim::default() }, errno::ENOKEY));
        let addresses = outside.into_iter().chain(wrapping);
        let ranges = addresses.map(|address| (Aim { address, ..Aim::default() }, errno::EINVAL));
        keys.into_iter().chain(ranges).collect()
    }

    /// The next end of an operation is this failure.
    pub(crate) fn failed(&self, kind: u64, err: i32) {
        let failure = next_failure(&self.ends[0], &self.ends);
        assert_eq!((failure.err, failure.flags), (err, kind));
    }

    /// Nothing is told, nothing was touched, and the ends are as good as before.
    pub(crate) fn close(self) {
        for _ in 0..64 {
            self.ends.iter().for_each(give_time);
        }
        assert!(self.ends.iter().all(|end| end.read().is_err()), "nothing is told");
        let now = || std::hint::black_box(&self.memory);
        assert!(now().iter().all(|byte| *byte == UNTOUCHED), "nothing was touched");
        let (ep, bytes) = (self.ends[0].ep, [1u8; 64]);
        let (from, first) = (bytes.as_ptr().cast(), self.first);
        let write = || call!(ep, rma.write(from, 64, null_mut(), 0, first, KEY, null_mut()));
        assert_eq!(until_taken(&self.ends, write), 0);
        assert_eq!(next(&self.ends[0], &self.ends).0.flags, RMA | WRITE);
        assert_eq!(now(), &bytes);
        let Self { opened, ends, mr, .. } = self;
        assert_eq!(close(mr), 0);
        ends.into_iter().for_each(End::close);
        drop(opened);
    }
}
