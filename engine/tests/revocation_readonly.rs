//! Capabilities without the right to write, in the hands of a holder that tries everything: the
//! memory management unit and the seals refuse, not a check that could be forgotten.
mod common;

use ayre::memory::{Fenced, Grant};
use ayre::{Config, Fault, Port, PostOptions, Region, RegionOptions, Rights};
use common::ports::{assert_content, content, owner, tell, told};
use common::system::{Mapped, descriptors_of, memory_files};
use common::{Executor, Family, Line, Process, Random, with_processes};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, ftruncate, open};
use rustix::io::{Errno, pwrite};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect, munmap};
use std::process::ExitStatus;
use std::time::Duration;

/// A length that no other memory file of a process has.
const LEN: usize = 37 * 4096;
/// So long that a holder that reads it again and again is nearly always inside a get.
const LONG: usize = 4099 * 4096;
const NAME: u64 = 5;

/// A process with a capability for reading; it does to its mapping what `attack` does.
fn holder(line: &Line, attack: impl FnOnce(&Mapped)) {
    let mut port = Port::open(Config::new().number(1)).unwrap();
    let directory = std::path::PathBuf::from(std::env::var("DIRECTORY").unwrap());
    let owner = port.connect(directory.join("owner")).unwrap();
    let remote = port.accept_region(owner, NAME).unwrap();
    let refused = port.put(&remote, 0, b"x", PostOptions::new());
    assert_eq!(refused, Err(Fault::Rights.into()));
    let mapped = memory_files().into_iter().find(|mapped| mapped.len == LEN).unwrap();
    line.say(1);
    attack(&mapped);
    // What it may do works all the same.
    let mut bytes = vec![0; LEN];
    port.get(&remote, 0, &mut bytes, PostOptions::new()).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0xa5));
}

/// Tries to change the memory through the mapping, by system calls.
fn attack_mapping(mapped: &Mapped) {
    assert_eq!(mapped.access, "r--s");
    let base = mapped.start as *mut std::ffi::c_void;
    let all = MprotectFlags::READ | MprotectFlags::WRITE;
    for len in [4096, mapped.len] {
        // SAFETY: refused or not, the pages keep their content.
        let result = unsafe { mprotect(base, len, all) };
        assert_eq!(result, Err(Errno::ACCESS));
        // SAFETY: the bytes are read by nobody but this library's copies, which take any value.
        let result = unsafe { madvise(base, len, Advice::LinuxRemove) };
        assert_eq!(result, Err(Errno::ACCESS));
    }
    let memory = open("/proc/self/mem", OFlags::RDWR, Mode::empty()).unwrap();
    let written = pwrite(&memory, b"forced", mapped.start as u64);
    assert!(matches!(written, Err(Errno::IO | Errno::FAULT)), "{written:?}");
}

/// Files of this memory that the holder can open by whatever path.
fn files_of(mapped: &Mapped) -> Vec<OwnedFd> {
    let (start, end) = (mapped.start, mapped.start + mapped.len);
    let mut paths = vec![format!("/proc/self/map_files/{start:x}-{end:x}")];
    for process in ["self".to_owned(), std::os::unix::process::parent_id().to_string()] {
        for (fd, target) in descriptors_of(&process) {
            if target.to_string_lossy().starts_with("/memfd:ayre") {
                paths.push(format!("/proc/{process}/fd/{fd}"));
            }
        }
    }
    let mut found = Vec::new();
    for path in paths {
        for flags in [OFlags::RDWR, OFlags::WRONLY, OFlags::RDONLY] {
            found.extend(open(&path, flags, Mode::empty()));
        }
    }
    found.retain(|file| fstat(file).unwrap().st_ino == mapped.inode);
    found
}

/// Tries to change the memory through a file.
fn attack_file(file: &OwnedFd) {
    let written = pwrite(file, b"written", 0);
    assert!(matches!(written, Err(Errno::PERM | Errno::BADF)), "{written:?}");
    for len in [0, LEN as u64 / 2, LEN as u64 * 2] {
        let resized = ftruncate(file, len);
        assert!(matches!(resized, Err(Errno::PERM | Errno::INVAL)), "{resized:?}");
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punched = fallocate(file, hole, 0, 4096);
    assert!(matches!(punched, Err(Errno::PERM | Errno::BADF)), "{punched:?}");
    for protection in [ProtFlags::WRITE, ProtFlags::READ | ProtFlags::WRITE] {
        // SAFETY: a mapping at an address of the system's choice, which nobody uses.
        let mapped = unsafe {
            mmap(std::ptr::null_mut(), LEN, protection, MapFlags::SHARED, file.as_fd(), 0)
        };
        assert!(matches!(mapped, Err(Errno::PERM | Errno::ACCESS)), "{mapped:?}");
    }
    // SAFETY: as above.
    let readable = unsafe {
        mmap(std::ptr::null_mut(), LEN, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0)
    };
    if let Ok(base) = readable {
        // SAFETY: our own mapping, which nobody uses.
        let result = unsafe { mprotect(base, LEN, MprotectFlags::READ | MprotectFlags::WRITE) };
        assert_eq!(result, Err(Errno::ACCESS));
        // SAFETY: as above.
        unsafe { munmap(base, LEN) }.unwrap();
    }
}

fn store(mapped: &Mapped) {
    let word = mapped.start as *mut u64;
    // SAFETY: an aligned address within a mapping; that it is not writable is what is shown.
    unsafe { word.write_volatile(0) };
}

/// Starts a holder and hands it a region for reading.
fn serve(family: &Family, options: RegionOptions, len: usize) -> (Port, Grant, Region, Process) {
    let config = Config::new().revoke_grace(Duration::from_millis(2));
    let mut port = owner(family.directory(), "owner", Executor::Direct, config);
    let region = port.alloc(len, options).unwrap();
    region.write(0, &vec![0xa5; len]);
    let process = family.start_with(|command| {
        command.env("DIRECTORY", family.directory().path());
    });
    let peer = port.accept().unwrap();
    let grant = port.share(peer, &region, 0..len, Rights::READ, NAME).unwrap();
    (port, grant, region, process)
}

fn attacked(family: &Family, options: RegionOptions) -> ExitStatus {
    let (_port, _, region, mut process) = serve(family, options, LEN);
    assert_eq!(process.line.hear(), 1);
    let status = process.wait();
    assert_content(&region, &[0xa5; LEN]);
    std::fs::remove_file(family.directory().join("owner")).unwrap();
    status
}

// spec: CAP-9
#[test]
fn a_sealed_region_cannot_be_written_by_any_system_call() {
    let child = |_, line: Line| {
        holder(&line, |mapped| {
            attack_mapping(mapped);
            let files = files_of(mapped);
            assert!(!files.is_empty(), "the owner is of the same user, its files can be opened");
            files.iter().for_each(attack_file);
        });
    };
    with_processes(child, |family| {
        let status = attacked(family, RegionOptions::new().sealed());
        assert!(status.success(), "{status}");
    });
}

// spec: CAP-8
#[test]
fn a_mapping_for_reading_cannot_be_made_writable() {
    with_processes(
        |_, line| holder(&line, attack_mapping),
        |family| {
            let status = attacked(family, RegionOptions::new());
            assert!(status.success(), "{status}");
        },
    );
}

// spec: CAP-8, CAP-9
#[test]
fn a_store_without_the_right_kills_the_holder_only() {
    with_processes(
        |_, line| holder(&line, store),
        |family| {
            use std::os::unix::process::ExitStatusExt;
            for options in [RegionOptions::new(), RegionOptions::new().sealed()] {
                assert_eq!(attacked(family, options).signal(), Some(libc::SIGSEGV));
            }
        },
    );
}

// spec: CAP-9
#[test]
fn a_sealed_region_is_not_granted_for_writing() {
    let (mut near, _far) = Port::pair(Config::new(), Config::new().number(1)).unwrap();
    let region = near.alloc(4096, RegionOptions::new().sealed()).unwrap();
    let peer = near.peer(1).unwrap();
    for rights in [Rights::WRITE, Rights::READ | Rights::WRITE, Rights::ATOMIC, Rights::all()] {
        near.share(peer, &region, 0..4096, rights, 0).unwrap_err();
    }
    near.share(peer, &region, 0..4096, Rights::READ, 0).unwrap();
}

/// Reads the whole region again and again, each capability until it is revoked; then attacks.
fn reader(line: &Line) {
    let mut port = Port::open(Config::new().number(1)).unwrap();
    let directory = std::path::PathBuf::from(std::env::var("DIRECTORY").unwrap());
    let owner = port.connect(directory.join("owner")).unwrap();
    let mut name = NAME;
    let mut bytes = vec![0; LONG];
    let remote = loop {
        let remote = port.accept_region(owner, name).unwrap();
        line.say(name);
        while port.get(&remote, 0, &mut bytes, PostOptions::new()).is_ok() {
            assert_eq!((bytes[0], bytes[bytes.len() - 1]), (0xa5, 0xa5));
        }
        name += 1;
        if told(&mut port, owner, 0) == 1 {
            break port.accept_region(owner, name).unwrap();
        }
    };
    // The newest mapping is the new storage's.
    port.get(&remote, 0, &mut bytes, PostOptions::new()).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0xa5));
    for mapped in memory_files().iter().filter(|mapped| mapped.len == LONG) {
        attack_mapping(mapped);
        files_of(mapped).iter().for_each(attack_file);
    }
}

// spec: REV-3, CAP-9
#[test]
fn a_sealed_region_stays_sealed_when_its_storage_moves() {
    with_processes(
        |_, line| reader(&line),
        |family| {
            let (mut port, mut grant, region, mut process) =
                serve(family, RegionOptions::new().sealed(), LONG);
            let peer = grant.peer();
            let (mut name, mut random) = (NAME, Random::new(1));
            loop {
                assert_eq!(process.line.hear(), name);
                for _ in 0..random.scaled(8) {
                    std::thread::yield_now();
                }
                process.stop();
                let fenced = port.revoke(grant).unwrap();
                process.resume();
                if fenced == Fenced::Moved {
                    break;
                }
                name += 1;
                tell(&mut port, peer, 0, 0);
                grant = port.share(peer, &region, 0..LONG, Rights::READ, name).unwrap();
            }
            assert!(content(&region) == vec![0xa5; LONG]);
            port.share(peer, &region, 0..LONG, Rights::READ, name + 1).unwrap();
            tell(&mut port, peer, 0, 1);
            process.succeeds();
            assert_content(&region, &vec![0xa5; LONG]);
        },
    );
}
