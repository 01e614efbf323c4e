//! When links have something to do by the clock.
use super::*;
use proptest::prelude::*;

/// One that is asked, and those that ask.
fn ports() -> [Links; 4] {
    let opener = |nth| port(OPENER + nth, Protection::Plain);
    [acceptor(Protection::Plain), opener(0), opener(1), opener(2)]
}

/// Has all say what they have to say now, and hear it, unless it is lost.
fn exchange(ports: &mut [Links; 4], now: u64, is_lost: bool) {
    let number = |at: usize| if at == 0 { ACCEPTOR } else { OPENER + at as u16 - 1 };
    for from in 0..ports.len() {
        ports[from].serve_all(now);
        let outbox = &mut ports[from].outboxes[0];
        let sent: Vec<_> = outbox.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect();
        outbox.clear();
        for (to, bytes) in sent.into_iter().filter(|_| !is_lost) {
            let to = (0..ports.len()).find(|at| address(number(*at)) == to).expect("a port");
            hear(&mut ports[to], address(number(from)), bytes, now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_deadline_is_that_of_the_link_that_is_due_first(
        steps in prop::collection::vec((0..10_u8, 0..4_usize, 0..2 * SECOND), 1..60)
    ) {
        let (mut ports, mut now) = (ports(), 0);
        for (what, which, span) in steps {
            let links = &mut ports[which];
            match what {
                0 | 1 if links.slots.len() < 6 => _ = ask(links, Some(ACCEPTOR), now),
                2 => links.give_up(span as usize % 6),
                3 => links.leave_all(),
                4 => links.abort_all(),
                5 => links.settle_all(now),
                _ => now += span,
            }
            exchange(&mut ports, now, what == 9);
            for links in &mut ports {
                prop_assert_eq!(links.slots.deadline(), links.slots.least());
            }
        }
    }
}

#[test]
fn a_deadline_costs_no_look_at_links_that_are_idle() {
    for idle in [4, 400] {
        let mut ports = ports();
        ask(&mut ports[1], Some(ACCEPTOR), 0);
        (0..8).for_each(|nth| exchange(&mut ports, nth * MILLISECOND, false));
        let [acceptor, opener, ..] = &mut ports;
        assert!(matches!(acceptor.slots[0], Slot::Open(_)));
        (0..idle).for_each(|_| _ = ask(acceptor, Some(OPENER), 8 * MILLISECOND));
        acceptor.deadline();
        for nth in 9..99 {
            let now = nth * 10 * MILLISECOND;
            said(opener, now).into_iter().for_each(|it| hear(acceptor, address(OPENER), it, now));
            acceptor.serve_in_turn(now);
            assert!(acceptor.slots.changed() <= 2, "the one that was heard, and one in turn");
            acceptor.deadline();
        }
    }
}
