//! The suite, for every executor of the engine.
//!
//! Modules of tests: executor, group of cases, subject. A new executor is one more line.
use ayre_conformance::suite;

suite! {
    /// One port, connected with itself.
    loopback: ayre_conformance::Executor::Loopback;
    posted, waited, depots, library
}
suite! {
    /// One port, connected with itself, that performs its own commands.
    mediated_loopback: ayre_conformance::Executor::MediatedLoopback;
    posted, waited, depots, library, mediated
}
suite! {
    /// Two ports, whose initiator performs operations itself.
    direct: ayre_conformance::Executor::Direct;
    posted, waited, depots, library, ports, shared_depots, polled, messengers
}
suite! {
    /// Two ports, direct; long transfers use other methods.
    tuned: ayre_conformance::Executor::Tuned;
    posted, waited, depots, library, ports, shared_depots, polled, messengers
}
suite! {
    /// Two ports, whose target performs operations in its own calls.
    inline: ayre_conformance::Executor::Inline;
    posted, waited, depots, library, ports, shared_depots, polled, messengers, mediated, inline
}
suite! {
    /// An executor around another one, with a trace of what devices are given.
    recorded: ayre_conformance::Executor::Recorded;
    posted, waited, library, ports, mediated, inline
}
suite! {
    /// Two ports, whose target performs operations in its engine's thread.
    engine: ayre_conformance::Executor::Engine;
    posted, waited, depots, library, ports, shared_depots, polled, messengers, mediated
}
suite! {
    /// Two ports of different hosts, without engine threads.
    wire: ayre_conformance::Executor::Wire;
    posted, waited, depots, library, ports, shared_depots, polled, messengers, mediated
}
suite! {
    /// Two ports of different hosts, encrypted, with engine threads.
    sealed: ayre_conformance::Executor::Sealed;
    posted, waited, depots, library, ports, shared_depots, polled, messengers, mediated
}
suite! {
    /// Two ports of different hosts, through a network that errs.
    lossy: ayre_conformance::Executor::Lossy;
    ports, shared_depots, polled, messengers, mediated
}
suite! {
    /// Two ports of a simulated network that errs, without engine threads.
    simulated: ayre_conformance::Executor::Simulated;
    posted, waited, depots, library, ports, shared_depots, polled, messengers, mediated
}

suite! {
    /// Nodes of the protocol in simulated time.
    timed: ayre_conformance::timed::Timed::Ports;
    posted, waited, ports, mediated
}
suite! {
    /// A node of the protocol in simulated time, connected with itself.
    timed_loopback: ayre_conformance::timed::Timed::Loopback;
    posted, waited, mediated
}

/// Nodes of the protocol in simulated time, whose hosts die without a word: the cases about what a
/// peer of the dead learns. That of operations which a target has executed right before is left
/// out. No peer can know of these where their answers die with the host.
mod timed_hosts {
    ayre_conformance::tests_of! {
        ayre_conformance::timed::Timed::DyingHosts;
        death:
            later_calls_fault, a_fault_goes_before_busy, each_operation_under_way_completes_once;
    }
}

/// Groups of more members than the other cases have.
mod many_to_one {
    use ayre_conformance::Executor::Direct;
    use ayre_conformance::collectives::large_groups_agree_with_the_oracle;

    #[test]
    fn large_groups() {
        large_groups_agree_with_the_oracle(Direct, 18);
    }

    #[test]
    #[ignore = "a minute, and 12,000 descriptors"]
    fn the_largest_groups() {
        large_groups_agree_with_the_oracle(Direct, 64);
    }
}

/// Ports of a simulated network that errs, all in one thread and by one seed.
mod one_thread {
    use ayre_conformance::engine::one_thread::{OneThread, courses};
    use ayre_conformance::suite::{Case, cases, depot_cases, messenger_cases};
    use std::ops::Range;

    type Course = Vec<(u64, std::time::Duration, u64)>;

    /// The courses of the networks of the cases of some groups, by each of some seeds.
    fn run(seeds: Range<u64>, groups: &[&str]) -> Vec<Vec<Course>> {
        let all = [cases(), depot_cases(), messenger_cases()].concat();
        let is_meant = |case: &Case<OneThread>| groups.contains(&case.name[0]);
        let cases: Vec<_> = all.into_iter().filter(is_meant).collect();
        let of_seed = |seed| {
            let run = |case: &Case<OneThread>| {
                let course = courses(|| (case.run)(OneThread { seed }));
                assert!(!course.is_empty(), "{:?} opens a network", case.name);
                course
            };
            cases.iter().map(run).collect()
        };
        seeds.map(of_seed).collect()
    }

    fn all_hold(groups: &[&str]) {
        let by_seed = run(0..4, groups);
        assert!(by_seed[1..].iter().all(|courses| *courses != by_seed[0]), "seeds differ");
    }

    #[test]
    fn cases_hold_in_virtual_time() {
        all_hold(&["posted", "mediated"]);
    }

    #[test]
    fn cases_of_depots_hold_in_virtual_time() {
        all_hold(&["depots"]);
    }

    #[test]
    fn cases_of_messengers_hold_in_virtual_time() {
        all_hold(&["polled"]);
    }

    /// A case does not depend on the speed of the machine, not even where a call waits for a
    /// capability. `AYRE_SOAK` sets the number of seeds.
    // spec: NET-9
    #[test]
    fn cases_take_the_same_course_whenever_they_run() {
        let soak = std::env::var("AYRE_SOAK").map(|seeds| seeds.parse().expect("a number"));
        for seed in 0..soak.unwrap_or(4) {
            let [once, again] =
                [(); 2].map(|()| run(seed..seed + 1, &["posted", "mediated", "depots", "polled"]));
            for (case, (once, again)) in once[0].iter().zip(&again[0]).enumerate() {
                assert_eq!(once, again, "the {case}th case by seed {seed}");
            }
        }
    }
}

/// Nodes of the protocol in simulated time, whose interfaces have the profile of EXTOLL. It refuses
/// operations that leave a page, and messages longer than 64 bytes. Cases with these are left out.
mod timed_extoll {
    use ayre_conformance::suite::{Case, cases};
    use ayre_conformance::timed::Timed;

    /// Cases with operations that leave their page of 4 KiB at one of their ends.
    const LEAVE_A_PAGE: [(&str, &str); 17] = [
        ("transfers", "a_put_buffer_can_be_reused_at_once"),
        ("transfers", "put_copies_exactly"),
        ("transfers", "get_copies_exactly"),
        ("transfers", "regions_are_local_buffers"),
        ("transfers", "get_into_a_region_lands_with_its_completer"),
        ("strided", "put_strided_writes_rows"),
        ("strided", "get_strided_reads_rows"),
        ("notifications", "notification_classes_raise_the_notifications_of_the_table"),
        ("notifications", "a_long_put_is_notified_once_at_its_end"),
        ("notifications", "a_fault_is_one_requester_notification"),
        ("visibility", "data_comes_before_its_completer"),
        ("visibility", "data_comes_before_a_later_message"),
        ("visibility", "data_comes_before_a_later_flag"),
        ("visibility", "bytes_under_way_are_old_or_new"),
        ("visibility", "a_get_after_a_message_sees_earlier_writes"),
        ("visibility", "flushed_data_comes_before_a_later_record"),
        ("death", "leaving_flushes"),
    ];

    /// Cases with messages longer than 64 bytes, or that fill a lane: a mailbox refuses nothing.
    const NEED_A_LANE: [(&str, &str); 10] = [
        ("messages", "every_length_arrives"),
        ("messages", "streams_of_messages_arrive"),
        ("messages", "a_full_lane_is_busy_and_loses_no_record"),
        ("messages", "a_short_buffer_leaves_the_message"),
        ("messages", "senders_do_not_mix"),
        ("messages", "a_flooding_sender_does_not_starve_others"),
        ("room", "refusals_and_faults_are_counted"),
        ("oracle", "lists_agree_with_the_oracle"),
        ("death", "a_fault_goes_before_busy"),
        ("death", "blocked_calls_return"),
    ];

    fn is_left_out(case: &Case<Timed>) -> bool {
        let [group, module, name] = case.name;
        let is_listed = LEAVE_A_PAGE.iter().chain(&NEED_A_LANE).any(|it| *it == (module, name));
        is_listed && ["posted", "waited", "ports", "mediated"].contains(&group)
    }

    fn all_hold(group: &str) {
        let all = cases::<Timed>();
        let of_group = all.iter().filter(|case| case.name[0] == group);
        let held: Vec<_> = of_group.filter(|case| !is_left_out(case)).collect();
        assert!(!held.is_empty(), "the group has cases");
        for case in held {
            println!("{:?}", case.name);
            (case.run)(Timed::Extoll);
        }
    }

    #[test]
    fn posted() {
        all_hold("posted");
    }

    #[test]
    fn waited() {
        all_hold("waited");
    }

    #[test]
    fn ports() {
        all_hold("ports");
    }

    #[test]
    fn mediated() {
        all_hold("mediated");
    }

    #[test]
    fn left_out_are_cases_of_these_groups() {
        let left_out = cases::<Timed>().iter().filter(|case| is_left_out(case)).count();
        assert_eq!(left_out, LEAVE_A_PAGE.len() + NEED_A_LANE.len());
    }
}
