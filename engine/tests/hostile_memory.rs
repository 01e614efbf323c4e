//! The mappings of peers and their protection. Only a peer and its port map the memory that the
//! peer may write, and read-only memory stays so, whatever the peer tries.
#[path = "hostile/attacker.rs"]
mod attacker;
mod common;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, Memory, PAGE_BYTES};
use ayre::Mode;
use common::system::mappings;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{OFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, open};
use rustix::io::{Errno, pwrite};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect, munmap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::World;

const MODES: [Mode; 2] = [Mode::Direct, Mode::Mediated];

/// One test at a time: they look at what the whole process has mapped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the mappings of a file may be accessed, in this process with all the test's ports.
fn accesses(inode: u64) -> Vec<String> {
    let mut found: Vec<_> = mappings().into_iter().filter(|it| it.inode == inode).collect();
    found.sort_by(|one, other| one.access.cmp(&other.access));
    found.into_iter().map(|it| it.access).collect()
}

fn inode_of(file: &OwnedFd) -> u64 {
    fstat(file).expect("an open file").st_ino
}

/// The file behind memory that the attacker has mapped.
fn inode_at(memory: &Memory) -> u64 {
    let address = std::ptr::from_ref(memory.word(0)).addr();
    let here = mappings().into_iter().find(|it| (it.start..it.start + it.len).contains(&address));
    here.expect("a mapping").inode
}

// spec: LANE-1, CAP-10
#[test]
fn a_lane_is_mapped_by_its_two_ends_only() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "two-ends");
        let mut attackers: Vec<_> = (0..3).map(|_| world.attacker(false)).collect();
        let mut queue = world.victim.create_queue(2048).expect("a queue");
        let mut lanes = Vec::new();
        for (attacker, peer) in &mut attackers {
            world.victim.share_queue(*peer, &mut queue, 1).expect("a lane of its own");
            lanes.push(attacker.take_queue());
        }
        let files = attackers.iter().map(|(attacker, _)| inode_of(&attacker.file));
        let mut inodes: Vec<_> = files.chain(lanes.iter().map(inode_at)).collect();
        for inode in &inodes {
            assert_eq!(accesses(*inode), ["rw-s", "rw-s"], "the victim and one attacker");
        }
        inodes.sort_unstable();
        inodes.dedup();
        assert_eq!(inodes.len(), 6, "each has files of its own");
        world.honest_round();
    }
}

/// Neither mapping is, or can be made, writable.
fn try_to_map(page: impl AsFd) {
    let map = |protection| {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        unsafe {
            let len = PAGE_BYTES as usize;
            mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, page.as_fd(), 0)
        }
    };
    assert_eq!(map(ProtFlags::READ | ProtFlags::WRITE), Err(Errno::PERM));
    let base = map(ProtFlags::READ).expect("it may be read");
    // SAFETY: our own mapping, into which nothing points.
    unsafe {
        let writable = MprotectFlags::READ | MprotectFlags::WRITE;
        assert_eq!(mprotect(base, PAGE_BYTES as usize, writable), Err(Errno::ACCESS));
        munmap(base, PAGE_BYTES as usize).expect("our own mapping");
    }
}

fn try_to_write(attacker: &Attacker) {
    let page = &attacker.victim_page;
    try_to_map(page);
    assert_eq!(pwrite(page, &[1; 8], 0), Err(Errno::PERM));
    assert!(ftruncate(page, 0).is_err() && ftruncate(page, 1 << 20).is_err());
    assert_eq!(fcntl_add_seals(page, SealFlags::WRITE), Err(Errno::PERM));
    let path = format!("/proc/self/fd/{}", page.as_raw_fd());
    let again = open(path, OFlags::RDWR | OFlags::CLOEXEC, rustix::fs::Mode::empty());
    if let Ok(again) = again {
        try_to_map(&again);
        assert_eq!(pwrite(&again, &[1; 8], 0), Err(Errno::PERM));
    }
}

// spec: LANE-11
#[test]
fn a_ports_page_is_written_by_its_owner_only() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "page");
        let (attacker, _) = world.attacker(false);
        try_to_write(&attacker);
        let owner_and_reader = ["r--s", "rw-s"];
        // The attacker does not map the victim's page, the honest peer does.
        assert_eq!(accesses(inode_of(&attacker.victim_page)), owner_and_reader);
        assert_eq!(accesses(inode_of(&attacker.parts.page)), owner_and_reader);
        world.honest_round();
    }
}
