//! Pages, the TLB, and fences.
use super::*;

/// Pages at random, several for each entry of the TLB: an access hits if the last one of its entry
/// was of the same page. So the share of hits is that of entries and pages. Error: 6 %, two and a
/// half standard deviations. A miss takes its read longer, to the picosecond, but where the link's
/// end waits for a report of the other one: once in some 70 frames.
#[test]
fn a_tlb_hits_as_often_as_its_size_lets_it_and_each_miss_costs_a_read() {
    let pages = Profile::extoll().pages.map(|pages| Pages { entries: 64, ..pages });
    let pages = pages.expect("it has pages");
    let mut cluster = extoll(2, Profile { pages: Some(pages), ..Profile::extoll() });
    let (_, key) = shared(&mut cluster, 1, 256 * 4096);
    let mut access = |page: u64| {
        settle(&mut cluster);
        let (begun, claim) = (cluster.now(), Claim { key, offset: 4096 * page + 8, len: 8 });
        let order = order(Action::Immediate(1), claim, None, Classes::COMPLETER);
        assert!(cluster.post(1, NODE, order).is_ok());
        while cluster.notification(0).is_none() {
            assert!(cluster.step(), "it ends");
        }
        (cluster.now() - begun, cluster.translations(0))
    };
    (0..256).for_each(|page| _ = access(page));
    let (hit, before) = access(255);
    let (mut random, mut delayed, mut after) = (Random::new(1, 0), 0, before);
    const ACCESSES: u64 = 5_000;
    for _ in 0..ACCESSES {
        let (spent, translations) = access(random.below(256).into());
        let read = if translations.hits > after.hits { Time::ZERO } else { pages.miss - pages.hit };
        assert!(spent >= hit + read);
        delayed += u64::from(spent > hit + read);
        after = translations;
    }
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    assert_eq!(hits + misses, ACCESSES);
    let ratio = hits as f64 / ACCESSES as f64;
    assert!((ratio / 0.25 - 1.0).abs() < 0.06, "{ratio}");
    assert!(delayed < ACCESSES / 50, "{delayed}");
}

#[test]
fn operations_that_leave_a_page_are_refused_at_both_ends_and_nothing_happens() {
    let mut cluster = extoll(2, Profile::extoll());
    let (_, key) = shared(&mut cluster, 1, 3 * 4096);
    let own = cluster.program_mut(1).add_region(vec![1; 3 * 4096]).expect("a number");
    let page = 4096;
    let put = |offset, len, from| {
        let local = Some(Local::Region(own, from));
        order(Action::Put, Claim { key, offset, len }, local, Classes::empty())
    };
    for (offset, len, from) in [(0, 4097, 0), (4000, 97, 0), (8191, 2, 0)] {
        let posted = cluster.post(1, NODE, put(offset, len, from));
        assert_eq!(posted, Err(Refusal::Page { offset, len, page }));
    }
    // At the own end.
    let expected = Err(Refusal::Page { offset: 4090, len: 8, page });
    assert_eq!(cluster.post(1, NODE, put(0, 8, 4090)), expected);
    assert_eq!(cluster.batch(1, NODE, vec![put(0, 8, 0), put(0, 8, 4090)]), expected);
    settle(&mut cluster);
    assert!(cluster.is_flushed(1, NODE));
    assert!(cluster.post(1, NODE, put(4096, 4096, 8192)).is_ok());
}

/// The outcome of an operation of node 1, and of a revocation of its key that comes later.
struct Outcome {
    status: Status,
    /// When memory changed, if it did.
    landed: Option<Time>,
    /// When the program asked for the fence, and when that ended.
    asked: Time,
    fenced: Time,
    /// The bytes that a get has brought.
    brought: [u8; 8],
}

fn race(action: Action, later: Time) -> Outcome {
    let mut cluster = extoll(2, Profile::extoll());
    let (region, key) = shared(&mut cluster, 1, 4096);
    let own = cluster.program_mut(1).add_region(vec![1; 8]).expect("a number");
    settle(&mut cluster);
    let begun = cluster.now();
    let claim = Claim { key, offset: 0, len: 8 };
    let order = order(action, claim, Some(Local::Region(own, 0)), Classes::empty());
    assert!(cluster.post(1, NODE, order).is_ok());
    let (mut status, mut landed, mut fenced) = (None, None, None);
    let mut look = |cluster: &mut Cluster| {
        let memory = cluster.program_mut(0).region_mut(region, 0..8).expect("a region");
        if landed.is_none() && *memory == [1; 8] {
            landed = Some(cluster.now());
        }
        if let Some(Event::Fenced(of, Ok(()))) = cluster.event(0) {
            assert_eq!((of, fenced), (key, None));
            fenced = Some(cluster.now());
            // The program uses the memory for something else.
            let memory = cluster.program_mut(0).region_mut(region, 0..8);
            memory.expect("a region").copy_from_slice(&[5; 8]);
        }
        while let Some(event) = cluster.event(1) {
            if let Event::Ended(_, ended) = event {
                status = Some(ended.status);
            }
        }
    };
    advance(&mut cluster, begun + later, &mut look);
    let asked = cluster.now();
    assert_eq!(cluster.revoke(0, key), Ok(()));
    advance(&mut cluster, asked + Time::from_nanos(20_000), &mut look);
    assert!(cluster.flush(1, NODE).is_ok());
    advance(&mut cluster, asked + Time::from_nanos(60_000), &mut look);
    let memory = cluster.program(0).region(region, 0..8).expect("a region");
    assert_eq!(memory, [5; 8], "nothing lands after the fence");
    let brought = cluster.program(1).region(own, 0..8).expect("a region");
    Outcome {
        status: status.expect("it has ended"),
        landed,
        asked,
        fenced: fenced.expect("it has ended"),
        brought: brought.try_into().expect("eight bytes"),
    }
}

/// An operation and a revocation over time. Operations that have reached the stage of receiving
/// when the flush comes land before the fence ends; later ones fault. A fence takes the call and
/// seven cycles, or ends three cycles behind the last thing that is under way.
#[test]
fn operations_under_way_land_before_a_fence_ends_and_later_ones_fault() {
    let profile = Profile::extoll();
    let call = InterfaceTimes::of_units(&profile.units.expect("it has units")).call;
    for action in [Action::Put, Action::Get] {
        let (mut faulted, mut waited, mut last) = (0, 0, false);
        for tens in 0..200 {
            let outcome = race(action, Time::from_nanos(10 * tens));
            let is_done = outcome.status == Status::Ok;
            assert!(is_done || outcome.status == Status::Fault(Fault::StaleKey), "{tens}");
            assert!(is_done || !last, "who comes earlier is not refused: {tens}");
            last = is_done;
            faulted += u32::from(!is_done);
            let flushed = outcome.asked + call;
            let least = flushed + cycles(4) + cycles(3);
            assert!(outcome.fenced >= least, "{tens}");
            waited += u32::from(outcome.fenced > least);
            match (action, is_done) {
                (Action::Put, true) => {
                    let landed = outcome.landed.expect("its data is there");
                    let under_way = landed.max(flushed + cycles(4));
                    assert_eq!(outcome.fenced, under_way + cycles(3), "{tens}");
                }
                (Action::Put, false) => assert_eq!(outcome.landed, None, "{tens}"),
                (_, true) => assert_eq!(outcome.brought, [0; 8], "it read before: {tens}"),
                (_, false) => assert_eq!(outcome.brought, [1; 8], "nothing came: {tens}"),
            }
        }
        assert!(last && faulted > 10 && waited > 10, "both orders: {faulted}, {waited}");
    }
}

#[test]
fn a_fence_of_no_key_says_so() {
    let mut cluster = extoll(2, Profile::extoll());
    let (_, key) = shared(&mut cluster, 1, 64);
    for expected in [Ok(()), Err(Fault::StaleKey)] {
        assert_eq!(cluster.revoke(0, key), Ok(()));
        settle(&mut cluster);
        assert_eq!(cluster.event(0), Some(Event::Fenced(key, expected)));
    }
}
