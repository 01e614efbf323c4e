//! Locks on a word of the target's memory.
use crate::fabric::Fabric;
use crate::many_to_one::ManyToOne;
use crate::port::{Lock, Options, Port, Region, RegionOptions};
use crate::world::{Memory, World, fault_of};
use ayre::Fault;
use ayre::memory::LockMode;

/// Processes that the locks are for.
const USERS: u32 = 3;
const ROUNDS: u64 = 200;

/// Every step leaves the word as the table says.
// spec: LOCK-1, LOCK-2
pub fn steps_walk_the_word<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let full = u64::from(USERS) + 1;
    world.drive(|port| {
        let mut locks: Vec<_> = (0..USERS).map(|_| F::Port::lock(&remote, 8, USERS)).collect();
        assert_eq!(locks[0].try_lock(port, LockMode::Exclusive), Ok(true));
        assert_eq!(region.load(8), full);
        assert_eq!(locks[1].try_lock(port, LockMode::Exclusive), Ok(false), "one writer");
        assert_eq!(locks[1].try_lock(port, LockMode::Shared), Ok(false), "no reader beside it");
        assert_eq!((region.load(8), locks[1].held()), (full, None));
        assert_eq!(locks[0].unlock(port), Ok(()));
        assert_eq!(region.load(8), 0);
        for (readers, lock) in (1..).zip(&mut locks) {
            assert_eq!(lock.try_lock(port, LockMode::Shared), Ok(true), "reader {readers}");
            assert_eq!(region.load(8), readers);
        }
        assert_eq!(locks[0].held(), Some(LockMode::Shared));
        assert_eq!(locks[0].unlock(port), Ok(()));
        assert_eq!(
            locks[0].try_lock(port, LockMode::Exclusive),
            Ok(false),
            "no writer beside readers"
        );
        assert_eq!(region.load(8), u64::from(USERS) - 1);
        for lock in &mut locks[1..] {
            assert_eq!(lock.unlock(port), Ok(()));
        }
        assert_eq!(region.load(8), 0);
    });
    assert!(world.raised().is_empty(), "locks raise no notifications");
}

/// A second hold, and an unlock without a hold, are refused before they touch the word.
// spec: LOCK-3
pub fn a_handle_holds_once<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    world.drive(|port| {
        let mut lock = F::Port::lock(&remote, 0, USERS);
        assert_eq!(fault_of(lock.unlock(port)), Fault::Malformed);
        for hold in [LockMode::Shared, LockMode::Exclusive] {
            lock.lock(port, hold).expect("the lock is free");
            let word = region.load(0);
            for second in [LockMode::Shared, LockMode::Exclusive] {
                assert_eq!(lock.try_lock(port, second), Ok(false), "{hold:?}, then {second:?}");
                assert_eq!(lock.lock(port, second), Err(Fault::Malformed), "it would never end");
            }
            assert_eq!((region.load(0), lock.held()), (word, Some(hold)));
            assert_eq!(lock.unlock(port), Ok(()));
            assert_eq!((region.load(0), lock.held()), (0, None));
        }
        assert_eq!(fault_of(lock.unlock(port)), Fault::Malformed);
        assert_eq!(region.load(0), 0);
    });
}

/// Reads two words that are equal whenever nobody writes.
fn read_both<P: Port>(port: &mut P, remote: &P::RemoteRegion) -> [u64; 2] {
    let mut bytes = [0; 16];
    port.get(remote, 64, &mut bytes, Options::new()).expect("a get");
    [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i])))
}

/// Writes both words, one after the other.
fn write_both<P: Port>(port: &mut P, remote: &P::RemoteRegion, value: u64) {
    for offset in [64, 72] {
        let put = port.put(remote, offset, &value.to_le_bytes(), Options::new());
        put.expect("a writer has the lane for itself");
    }
}

/// With the lock held exclusively nobody else writes or reads; with it held shared nobody writes.
// spec: LOCK-2, LOCK-4, ORD-7, ORD-11
pub fn locks_exclude<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, USERS as u16);
    let region = ports.target.alloc(128, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    let work = |port: &mut F::Port, remote: <F::Port as Port>::RemoteRegion| {
        let mut lock = F::Port::lock(&remote, 0, USERS);
        for _ in 0..ROUNDS {
            lock.lock(port, LockMode::Exclusive).expect("the lock becomes free");
            let [first, second] = read_both(port, &remote);
            assert_eq!(first, second, "a writer was inside");
            write_both(port, &remote, first + 1);
            lock.unlock(port).expect("an unlock");
            lock.lock(port, LockMode::Shared).expect("the lock becomes free");
            let [first, second] = read_both(port, &remote);
            assert_eq!(first, second, "a writer was inside");
            lock.unlock(port).expect("an unlock");
        }
    };
    ports.each(remotes, work, |_| ());
    assert_eq!(region.load(64), u64::from(USERS) * ROUNDS);
    assert_eq!(region.load(0), 0, "everybody has left");
}

/// A holder that dies leaves the lock held.
// spec: LOCK-5
pub fn death_does_not_unlock<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let region = ports.target.alloc(8, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    let lock = |port: &mut F::Port, remote: &<F::Port as Port>::RemoteRegion| {
        F::Port::lock(remote, 0, USERS).try_lock(port, LockMode::Exclusive).expect("an answer")
    };
    assert_eq!(ports.each(vec![&remotes[0]], lock, |_| ()), [true]);
    drop(ports.initiators.remove(0));
    ports.until("death is noticed", |ports| {
        let first = ports.target.peers().next().expect("it was connected");
        (!ports.target.is_alive(first)).then_some(())
    });
    assert_eq!(region.load(0), u64::from(USERS) + 1);
    assert_eq!(ports.each(vec![&remotes[1]], lock, |_| ()), [false]);
}
