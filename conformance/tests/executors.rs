//! The suite, for every executor.
//!
//! Modules of tests: executor, then how much it takes (`all`: every executor's cases, `ports`:
//! those of several ports, ...), then the subject.

/// One port, connected with itself.
mod loopback {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Loopback);
    }
}

/// One port, connected with itself, that performs its own commands.
mod mediated_loopback {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::MediatedLoopback);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::MediatedLoopback);
    }
}

/// Two ports, whose initiator performs operations itself.
mod direct {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Direct);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Direct);
    }
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
}

/// The same, and many bytes are moved by other methods.
mod tuned {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Tuned);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Tuned);
    }
}

/// Two ports, whose target performs operations in its own calls.
mod inline {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Inline);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Inline);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Inline);
    }
    mod served {
        ayre_conformance::suite_of_inline!(ayre_conformance::Executor::Inline);
    }
}

/// Two ports of different hosts, without engine threads.
mod wire {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Wire);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Wire);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Wire);
    }
}

/// Two ports of different hosts, encrypted, with engine threads.
mod sealed {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Sealed);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Sealed);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Sealed);
    }
}

/// The same through a network that errs.
mod lossy {
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Lossy);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Lossy);
    }
}

/// Two ports of a simulated network that errs, without engine threads.
mod simulated {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Simulated);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Simulated);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Simulated);
    }
}

/// Two ports, whose target performs operations in its engine's thread.
mod engine {
    mod all {
        ayre_conformance::suite!(ayre_conformance::Executor::Engine);
    }
    mod ports {
        ayre_conformance::suite_of_ports!(ayre_conformance::Executor::Engine);
    }
    mod mediated {
        ayre_conformance::suite_of_mediated!(ayre_conformance::Executor::Engine);
    }
}
