//! Several ports on the same words at the same time.
use crate::data::contents;
use crate::fabric::Fabric;
use crate::many_to_one::ManyToOne;
use crate::port::{Options, Port, Region, RegionOptions, RemoteRegion};
use crate::world::{World, insist};
use ayre::memory::{Atomic, AtomicOp, Width};

const INITIATORS: u16 = 2;
const ADDS: u64 = 3000;

fn add(width: Width, operand: u64) -> Atomic {
    Atomic { width, op: AtomicOp::Add, operand, compare: 0 }
}

/// Sums of several initiators and of the owner are exact, in both widths, fetching or not.
// spec: ATOM-4, ORD-8, PROG-2
pub fn sums_are_exact<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, INITIATORS);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    let mut own = 0;
    ports.each(
        remotes,
        |port, remote| {
            for i in 0..ADDS {
                let width = if i % 2 == 0 { Width::W64 } else { Width::W32 };
                let offset = if i % 2 == 0 { 0 } else { 12 };
                if i % 3 == 0 {
                    let fetched = port.fetch(&remote, offset, add(width, 1), Options::new());
                    fetched.expect("an atomic");
                } else {
                    insist(port, |port| {
                        port.atomic(&remote, offset, add(width, 1), Options::new())
                    });
                }
            }
            assert_eq!(port.flush(remote.peer()), Ok(()));
        },
        |_| {
            own += 1;
            region.atomic(0, &add(Width::W64, 1));
            region.atomic(12, &add(Width::W32, 1));
        },
    );
    let expected = own + u64::from(INITIATORS) * ADDS / 2;
    assert_eq!(region.load(0), expected);
    assert_eq!(region.load(8), expected << 32, "the neighbour of a half word is left alone");
}

/// Old values of one word's fetching atomics are all different: they have one order.
// spec: ATOM-4, ATOM-5, ORD-8
pub fn fetched_values_are_distinct<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, INITIATORS);
    let region = ports.target.alloc(8, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    let draw = |port: &mut F::Port, remote: <F::Port as Port>::RemoteRegion| {
        (0..ADDS).map(|_| port.fetch_add(&remote, 0, 1).expect("an atomic")).collect::<Vec<_>>()
    };
    let drawn = ports.each(remotes, draw, |_| ());
    assert!(drawn.iter().all(|values| values.is_sorted()), "one port sees its own order");
    let mut all = drawn.concat();
    all.sort_unstable();
    assert_eq!(all, (0..u64::from(INITIATORS) * ADDS).collect::<Vec<_>>());
}

/// A counter with a ceiling, by FCAA of several ports, reaches it and never passes it.
// spec: FCAA-1, FCAA-4, ATOM-4
pub fn fcaa_keeps_a_ceiling<F: Fabric>(fabric: F) {
    const CEILING: i64 = 2000;
    let mut ports = ManyToOne::open(fabric, INITIATORS);
    let region = ports.target.alloc(8, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    let climb = |port: &mut F::Port, remote: <F::Port as Port>::RemoteRegion| {
        let mut taken = 0;
        loop {
            let step = port.fcaa(&remote, 0, CEILING - 1, 1).expect("an atomic");
            assert!(step.value as i64 <= CEILING, "{step:?}");
            if !step.success {
                return taken;
            }
            taken += 1;
        }
    };
    let taken = ports.each(remotes, climb, |_| assert!(region.load(0) as i64 <= CEILING));
    assert_eq!(taken.into_iter().sum::<i64>(), CEILING);
}

/// An immediate put is one access: no reader sees a part of it.
// spec: IMM-1, ATOM-4
pub fn immediate_puts_do_not_tear<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let memory = world.memory(64);
    let remote = memory.remote;
    let words = [0, u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];
    let (_, seen) = world.both(
        |port| {
            for i in 0..20_000 {
                let word = words[i % words.len()];
                insist(port, |port| port.put_immediate(&remote, 8, word, Options::new()));
            }
            assert_eq!(port.flush(remote.peer()), Ok(()));
        },
        |port| {
            (0..20_000).all(|_| {
                port.progress();
                words.contains(&memory.region.load(8))
            })
        },
    );
    assert!(seen, "a word that nobody put");
    assert_eq!(contents(&memory.region)[16..], [0; 48]);
}
