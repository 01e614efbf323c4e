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

/// Groups of more members than the other cases have.
mod crowd {
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

    type Course = Vec<(u64, std::time::Duration, u64)>;

    /// What became of the networks of those cases, by each of some seeds.
    fn run(is_meant: impl Fn(&Case<OneThread>) -> bool) -> [Vec<Course>; 4] {
        let all = [cases(), depot_cases(), messenger_cases()].concat();
        let cases: Vec<_> = all.into_iter().filter(is_meant).collect();
        [0, 1, 2, 3].map(|seed| {
            let run = |case: &Case<OneThread>| {
                let course = courses(|| (case.run)(OneThread { seed }));
                assert!(!course.is_empty(), "{:?} opens a network", case.name);
                course
            };
            cases.iter().map(run).collect()
        })
    }

    fn all_hold(groups: &[&str]) {
        let by_seed = run(|case| groups.contains(&case.name[0]));
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

    /// What a case does that never waits, not even for a capability, does not depend on how fast
    /// the machine is.
    // spec: NET-9
    #[test]
    fn cases_take_the_same_course_whenever_they_run() {
        let never_waits = |case: &Case<_>| case.name[..2] == ["posted", "messages"];
        let [once, again] = [(); 2].map(|()| run(never_waits));
        assert_eq!(once, again);
        assert!(once.iter().all(|courses| courses.len() == 6), "all of that module");
    }
}
