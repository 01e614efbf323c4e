//! In place of `net` where the feature of that name is off: of networks there is only the time of
//! ports, which is the system's.
pub(crate) mod alarm;
pub(crate) mod chance;
pub(crate) mod clock;

/// No network is simulated.
pub(crate) mod simulation {
    use std::sync::Arc;
    use std::time::Instant;

    /// No port has a seat in a simulation.
    #[derive(Debug)]
    pub(crate) enum Seat {}

    /// No call waits by the clock of one.
    #[derive(Debug)]
    pub(crate) enum Waiting {}

    impl Seat {
        pub(super) fn now(&self) -> u64 {
            match *self {}
        }

        pub(super) fn instant(&self) -> Instant {
            match *self {}
        }

        pub(super) fn wait(self: &Arc<Self>, _: Instant, _: Instant) -> Option<Waiting> {
            match **self {}
        }

        pub(super) fn is_over(&self, _: Instant, _: Instant) -> bool {
            match *self {}
        }

        pub(super) fn is_in_vain(&self) -> bool {
            match *self {}
        }

        pub(super) fn wake_by(&self, _: Option<(Instant, Instant)>) -> Instant {
            match *self {}
        }

        pub(super) fn looked(&self, _: Option<u64>) {
            match *self {}
        }

        pub(super) fn tended(&self, _: Option<u64>) {
            match *self {}
        }

        pub(super) fn chance(&self) -> u64 {
            match *self {}
        }
    }
}
