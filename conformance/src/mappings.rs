//! The protection of the memory that a capability maps: cases for this engine alone.
use crate::engine::Executor;
use crate::world::World;
use ayre::{Mode, RegionOptions, Rights};

/// The protection of a mapping of this process, by `/proc/self/smaps`.
#[derive(Debug, PartialEq, Eq)]
struct Mapped {
    inode: String,
    writable: bool,
    /// Whether `mprotect` could make it so.
    could_be_writable: bool,
}

/// All mappings of files that have a length, which no other test uses. A heap of the allocator's
/// may be as long by chance, and is no file's.
fn mapped(len: usize) -> Vec<Mapped> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux tells");
    let (mut found, mut current) = (vec![], None);
    for line in smaps.lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        if let [range, flags, _, _, inode, ..] = words[..]
            && let Some((start, end)) = range.split_once('-')
            && let Ok(start) = usize::from_str_radix(start, 16)
            && let Ok(end) = usize::from_str_radix(end, 16)
        {
            let writable = flags.contains('w');
            let mapping = Mapped { inode: inode.into(), writable, could_be_writable: false };
            current = (end - start == len && inode != "0").then_some(mapping);
        } else if words.first() == Some(&"VmFlags:")
            && let Some(mut mapping) = current.take()
        {
            mapping.could_be_writable = words.contains(&"mw");
            found.push(mapping);
        }
    }
    found
}

/// Of a direct capability without the right to store, the holder has a mapping that cannot be made
/// writable, sealed or not; of a mediated one it has none.
// spec: CAP-8, CAP-9
pub fn a_read_only_mapping_stays_so(executor: Executor) {
    const PAGE: usize = 4096;
    let place = 10 * executor as usize;
    for (sealed, pages) in [(false, 1237 + place), (true, 1238 + place)] {
        let len = pages * PAGE;
        let mut world = World::open(executor);
        let options = RegionOptions::new();
        let options = if sealed { options.sealed() } else { options };
        let region = world.target().alloc(len, options).expect("memory is there");
        let (_remote, _grant) = world.grant(&region, 0..len, Rights::READ);
        let (owners, holders): (Vec<_>, Vec<_>) =
            mapped(len).into_iter().partition(|mapping| mapping.writable);
        assert_eq!(owners.len(), 1, "the owner's alone is writable, {sealed}: {owners:?}");
        assert!(holders.iter().all(|holder| holder.inode == owners[0].inode));
        assert!(!holders.iter().any(|holder| holder.could_be_writable), "{sealed}: {holders:?}");
        let expected = usize::from(executor.mode() == Mode::Direct && !executor.is_loopback());
        assert_eq!(holders.len(), expected, "{sealed}: {holders:?}");
    }
}
