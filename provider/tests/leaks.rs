//! A program that opens, uses and closes everything, again and again: nothing is left behind.
//!
//! It counts what its process has, so there is no other test here.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use libloading::os::unix::Library;
use std::collections::BTreeSet;
use std::fs;
use std::ptr::null_mut;
use std::thread;

const KEY: u64 = 5;

/// A thread that has ended and was waited for is listed for a moment more.
const LOOKS_MAX: usize = 100_000;

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn threads() -> usize {
    entries("/proc/self/task")
}

/// File descriptors, threads, and mappings of shared memory, as soon as there are no more threads
/// than these.
fn held(threads_before: usize) -> [usize; 3] {
    for _ in 0..LOOKS_MAX {
        if threads() <= threads_before {
            break;
        }
        thread::yield_now();
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let shared = maps.lines().filter(|line| line.contains("memfd:")).count();
    [entries("/proc/self/fd"), threads(), shared]
}

/// Loads the library once more, as one that libfabric does not know, and lets it go.
fn load(folder: &Folder) {
    // SAFETY: the function is the provider's entry, of this type, and the library stays mapped.
    unsafe {
        let library = Library::new(folder.0.join("libayre-fi.so")).unwrap();
        type Entry = unsafe extern "C" fn() -> *mut Provider;
        let provider = library.get::<Entry>(b"fi_prov_ini\0").unwrap()();
        (*provider).cleanup.unwrap()();
        library.close().unwrap();
    }
}

/// Runs `f` while the standard streams are closed: who makes a descriptor is given their numbers.
/// Returns which of them are taken when it has run.
fn without_streams<T>(f: impl FnOnce() -> T) -> (T, Vec<i32>) {
    let numbers = [0, 1, 2];
    // SAFETY: nobody else uses them meanwhile; the copies are this function's own.
    unsafe {
        let copies = numbers.map(|number| libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3));
        numbers.iter().for_each(|number| _ = libc::close(*number));
        let result = f();
        let is_open = |number: &i32| libc::fcntl(*number, libc::F_GETFD) != -1;
        let taken = numbers.into_iter().filter(is_open).collect();
        for (number, copy) in numbers.into_iter().zip(copies) {
            libc::dup2(copy, number);
            libc::close(copy);
        }
        (result, taken)
    }
}

/// Messages and remote memory, between two ends of a domain that makes progress by itself.
fn work() {
    let wishes = Wishes { wait_obj: WAIT_FD, data_progress: PROGRESS_AUTO, ..Wishes::remote() };
    let opened = wishes.opened();
    // spec: LIFE-29
    let ((ends, cntr, eq), taken) = without_streams(|| {
        let ends = End::pair(&opened, &wishes);
        (ends, open_cntr(&opened, WAIT_FD), open_eq(&opened, WRITE, WAIT_FD))
    });
    assert!(taken.is_empty(), "numbers of standard streams: {taken:?}");
    assert_eq!(bind(ends[0].ep, cntr, WRITE), 0);
    let memory = vec![0u8; 1 << 20];
    let mr = register(&opened, &memory, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
    let (ep, len, bytes) = (ends[0].ep, memory.len(), vec![7u8; memory.len()]);
    let (start, none) = (bytes.as_ptr().cast(), null_mut());
    let write = || call!(ep, rma.write(start, len, none, 0, 0, KEY, 3 as *mut _));
    assert_eq!(until_taken(&ends, write), 0);
    assert_eq!(next(&ends[0], &ends).0.op_context as usize, 3);
    let mut into = vec![0u8; len];
    let at = into.as_mut_ptr().cast();
    assert_eq!(call!(ends[1].ep, msg.recv(at, len, none, ADDR_UNSPEC, 2 as *mut _)), 0);
    assert_eq!(until_taken(&ends, || call!(ep, msg.send(start, len, none, 0, none))), 0);
    assert_eq!(next(&ends[1], &ends).0.op_context as usize, 2);
    assert_eq!(close(mr), 0);
    ends.into_iter().for_each(End::close);
    assert_eq!((close(cntr), close(eq)), (0, 0));
}

#[test]
fn repeated_load_and_unload_leaks_no_resources() {
    let folder = Folder::new("leaks");
    let threads_before = threads();
    let round = || {
        load(&folder);
        work();
        held(threads_before)
    };
    // What is there once for the process comes with the first one.
    round();
    let first = round();
    for _ in 0..20 {
        assert_eq!(round(), first, "descriptors, threads, mappings");
    }
    lose();
}

fn numbers() -> BTreeSet<i32> {
    let names = fs::read_dir("/proc/self/fd").unwrap().flatten();
    names.map(|name| name.file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// A program that becomes a daemon closes all descriptors, and opens files of its own. To close
/// what it had open says so, ends, and leaves those files open.
// spec: LIFE-40
fn lose() {
    let before = numbers();
    let wishes = Wishes { wait_obj: WAIT_FD, data_progress: PROGRESS_AUTO, ..Wishes::remote() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    for number in numbers().difference(&before) {
        // SAFETY: it is the library's, which is to bear it, or that of the listing, which has gone.
        unsafe { libc::close(*number) };
    }
    let own = || fs::File::open("/dev/zero").unwrap();
    let files: Vec<_> = std::iter::repeat_with(own).take(64).collect();
    let closed = ends.map(|End { ep, cq, av, .. }| [close(ep), close(cq), close(av)]);
    for [ep, cq, av] in closed {
        assert_eq!((ep, cq, av), (-errno::EBADF, -errno::EBADF, 0));
    }
    assert!(files.iter().all(|file| file.metadata().is_ok()), "one was closed");
}
