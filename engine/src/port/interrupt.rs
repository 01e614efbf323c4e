//! Waits that the runtime of a program ends: [`Config`](super::config::Config::interrupt).
use super::config::Interrupt;
use crate::net::clock::Deadline;
use crate::port::Port;

impl Port {
    /// Waits as [`Port::wait_asleep`] does, and ends early once the program interrupts it.
    pub(crate) fn wait_asking<T>(
        &mut self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        loop {
            let until = self.next_question(deadline);
            let found = self.wait_asleep(until, &mut attempt);
            let is_over = deadline.is_some_and(|at| self.clock.is_over(at));
            if found.is_some() || is_over || self.is_interrupted() {
                return found;
            }
            debug_assert!(self.config.interrupt.is_some(), "only questions end a sleep early");
        }
    }

    /// The time until which a sleep lasts: the deadline's, or that of the next question whether the
    /// program interrupts it.
    pub(super) fn next_question(&self, deadline: Option<Deadline>) -> Option<Deadline> {
        let next = self.config.interrupt.as_ref().map(|_| self.clock.within(Interrupt::EVERY));
        deadline.into_iter().chain(next).min()
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.config.interrupt.as_ref().is_some_and(Interrupt::asks)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::{Fault, ReceiveError, SetupError};
    use crate::port::config::{Config, Spin};
    use crate::port::options::PostOptions;
    use crate::settings::choice::Mode;
    use ayre_proto::units::PeerId;
    use std::time::Duration;

    fn config(number: u16) -> Config {
        Config::new().number(number).spin(Spin::SHARED)
    }

    #[test]
    fn a_program_interrupts_calls_that_wait_for_ever() {
        let mut port = Port::open(config(0).interrupt(|| true)).unwrap();
        port.connect_loopback().unwrap();
        assert_eq!(port.recv(&mut [0; 8], None), Err(ReceiveError::TimedOut));
        assert_eq!(port.wait_notification(None), Err(ReceiveError::TimedOut));
        let offered = port.accept_region(PeerId(0), 7);
        assert!(matches!(offered, Err(SetupError::TimedOut(_))), "{offered:?}");
        let path = std::env::temp_dir().join(format!("ayre-interrupt-{}", std::process::id()));
        port.listen(&path).unwrap();
        let accepted = port.accept();
        assert!(matches!(accepted, Err(SetupError::TimedOut(_))), "{accepted:?}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_interrupt_takes_nothing_that_has_come() {
        let mut port = Port::open(config(0).interrupt(|| true)).unwrap();
        let own = port.connect_loopback().unwrap();
        port.send(own, 3, b"here").unwrap();
        assert_eq!(port.recv(&mut [0; 8], None).map(|message| message.tag), Ok(3));
    }

    // spec: FLUSH-1
    #[test]
    fn a_flush_whose_time_is_over_goes_on_later() {
        let of = |number| config(number).mode(Mode::Mediated);
        let (mut port, mut target) = Port::pair(of(0), of(1)).unwrap();
        port.notify(PeerId(1), PostOptions::new()).unwrap();
        assert_eq!(port.flush_within(PeerId(1), Some(Duration::ZERO)), Ok(false));
        assert!(target.wait_notification(None).is_ok(), "the target serves");
        assert_eq!(port.flush_within(PeerId(1), None), Ok(true));
        assert_eq!(port.flush_within(PeerId(2), None), Err(Fault::ForeignHandle));
    }
}
