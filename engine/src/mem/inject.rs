//! Methods to move many bytes: past the caches, and by the kernel.
//!
//! ```text
//!   streaming    | head: to a multiple of 16 | 64 bytes, 64 bytes ... past the caches | tail |
//! ```
//!
//! A release does not order non-temporal stores, so a fence ends each streaming copy: later stores
//! are visible after it.
use crate::sys::credentials::Credentials;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::process::{Pid, geteuid};
use std::sync::Arc;
use std::{fs, ptr};

/// Bytes below which streaming is not faster than an ordinary copy.
const STREAMED_MIN: usize = 256;

/// Copies with non-temporal stores, where the processor has them.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and they must not overlap.
// spec: INJ-1
pub(super) unsafe fn copy_streaming(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len >= STREAMED_MIN {
        // SAFETY: the caller vouches for the ranges; every x86-64 processor has SSE2.
        return unsafe { stream(from, to, len) };
    }
    // SAFETY: the caller vouches for the ranges.
    unsafe { ptr::copy_nonoverlapping(from, to, len) }
}

/// # Safety
/// As [`copy_streaming`], with at least 16 bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const BLOCK: usize = 64;
    let head = to.align_offset(size_of::<__m128i>()).min(len);
    let blocks = (len - head) / BLOCK;
    let tail = head + blocks * BLOCK;
    // SAFETY: head, blocks and tail are parts of the two ranges, for which the caller vouches;
    // stores begin at multiples of 16, to which the head leads.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        for block in (head..tail).step_by(BLOCK) {
            let from = from.add(block).cast::<__m128i>();
            let to = to.add(block).cast::<__m128i>();
            let words = [0, 1, 2, 3].map(|word| _mm_loadu_si128(from.add(word)));
            for (at, word) in words.into_iter().enumerate() {
                _mm_stream_si128(to.add(at), word);
            }
        }
        ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        _mm_sfence();
    }
}

/// A process whose memory the kernel may let us read; possibly this one.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    /// Readable once the process has ended: then its number may belong to another one.
    life: Arc<Descriptor>,
}

impl Process {
    /// The process with these credentials, if it has the same user and sees the same processes as
    /// this one. `life` is readable once it has ended.
    ///
    /// A peer could have its reader wait for ever for pages that never come. A process of the same
    /// user could kill this one anyway.
    // spec: INJ-9
    pub(crate) fn of_equal(other: Credentials, life: Option<&Arc<Descriptor>>) -> Option<Self> {
        // None where it is not visible from here.
        let number = Pid::from_raw(i32::try_from(other.pid).ok()?)?;
        let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
        let pid = other.pid.to_string();
        let is_equal = other.uid == geteuid().as_raw() && namespace(&pid)? == namespace("self")?;
        if is_equal { Self::open(number, life) } else { None }
    }

    /// The process of this number, which is alive now.
    fn open(pid: Pid, life: Option<&Arc<Descriptor>>) -> Option<Self> {
        let life = match life {
            Some(life) => Arc::clone(life),
            None => Arc::new(descriptor::process(pid).ok()?),
        };
        Some(Self { pid, life })
    }

    /// Has the kernel copy from an address in the process. False where it refuses, where not all
    /// bytes can be read, or where the process has ended: then the bytes are undefined.
    // spec: INJ-6
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let rest = &mut into[done..];
            let here = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
            let there = address.wrapping_add(done as u64) as usize;
            let there =
                libc::iovec { iov_base: ptr::without_provenance_mut(there), iov_len: rest.len() };
            let pid = self.pid.as_raw_nonzero().get();
            // SAFETY: the kernel writes within `rest` only, and itself checks its reads of the
            // other process.
            let read = unsafe { libc::process_vm_readv(pid, &here, 1, &there, 1, 0) };
            match usize::try_from(read) {
                Ok(read) if read > 0 => done += read,
                _ => return false,
            }
        }
        self.lives()
    }

    fn lives(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut life = [PollFd::new(&self.life, PollFlags::IN)];
        matches!(poll(&mut life, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 + at / 256) as u8).collect()
    }

    // spec: INJ-1
    #[test]
    fn streaming_copies_are_copies() {
        let source = bytes(5000);
        let lens = (0..200).chain([255, 256, 257, 319, 320, 321, 1000, 4095, 4096, 4900]);
        for len in lens {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (7, 15), (16, 17), (63, 64), (3, 31)] {
                let mut target = vec![0xee; 5000];
                let (source, target_at) = (&source[from..from + len], &mut target[to..to + len]);
                // SAFETY: two slices of this length.
                unsafe { copy_streaming(source.as_ptr(), target_at.as_mut_ptr(), len) };
                assert!(*target_at == *source, "{len} bytes from {from} to {to}");
                let around = target[..to].iter().chain(&target[to + len..]);
                assert!(around.into_iter().all(|byte| *byte == 0xee), "{len} from {from} to {to}");
            }
        }
    }

    // spec: INJ-6
    #[cfg(not(miri))]
    #[test]
    fn the_kernel_reads_exact_bytes_of_mapped_memory() {
        let own = Process::open(rustix::process::getpid(), None).unwrap();
        let source = bytes(100_000);
        for (at, len) in [(0, 100_000), (1, 4095), (4095, 2), (99_999, 1), (5, 0)] {
            let mut into = vec![0; len];
            assert!(own.read(source[at..].as_ptr() as u64, &mut into), "{len} bytes at {at}");
            assert!(into == source[at..at + len], "{len} bytes at {at}");
        }
        assert!(!own.read(8, &mut [0; 8]), "nothing lies there");
        assert!(!own.read(u64::MAX - 3, &mut [0; 8]), "nor there");
    }

    // spec: INJ-9
    #[cfg(not(miri))]
    #[test]
    fn only_a_process_of_the_same_user_is_read() {
        let of = |pid, uid| Credentials { pid, uid, gid: 0 };
        let (own, uid) = (std::process::id(), geteuid().as_raw());
        assert!(Process::of_equal(of(own, uid), None).is_some());
        assert!(Process::of_equal(of(own, uid + 1), None).is_none());
        assert!(Process::of_equal(of(0, uid), None).is_none(), "one of another namespace");
    }

    // spec: INJ-6
    #[cfg(not(miri))]
    #[test]
    fn memory_of_an_ended_process_is_not_read() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::open(Pid::from_child(&child), None).unwrap();
        assert!(process.lives());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.lives() && !process.read(4096, &mut [0; 8]));
        assert!(!process.read(4096, &mut []));
    }
}
