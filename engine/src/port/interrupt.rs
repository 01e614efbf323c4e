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
        let next = || self.next_question.unwrap_or_else(|| self.clock.within(Interrupt::EVERY));
        let next = self.config.interrupt.as_ref().map(|_| next());
        deadline.into_iter().chain(next).min()
    }

    /// Whether the program interrupts the call that waits. Loops that wait ask this in each round:
    /// the program itself is asked again after some time only, unless it has just said so.
    #[inline]
    pub(crate) fn is_interrupted(&mut self) -> bool {
        self.config.interrupt.is_some() && self.asks()
    }

    #[cold]
    fn asks(&mut self) -> bool {
        debug_assert!(self.config.interrupt.is_some(), "only such a program is asked");
        if self.next_question.is_some_and(|at| !self.clock.is_over(at)) {
            return false;
        }
        let is_so = self.config.interrupt.as_ref().is_some_and(Interrupt::asks);
        self.next_question = (!is_so).then(|| self.clock.within(Interrupt::EVERY));
        is_so
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::{Fault, ReceiveError, SetupError};
    use crate::mem::region::{RegionOptions, RemoteRegion};
    use crate::port::config::{Config, Spin};
    use crate::port::options::PostOptions;
    use crate::settings::choice::Mode;
    use ayre_proto::notify::Classes;
    use ayre_proto::units::{PeerId, Rights};
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

    /// A target that does nothing, at which a port's calls wait until the program interrupts them.
    fn in_vain() -> (Port, Port, RemoteRegion) {
        let of = |number| config(number).mode(Mode::Mediated);
        let (mut port, mut target) = Port::pair(of(0).interrupt(|| true), of(1)).unwrap();
        let region = target.alloc(1 << 20, RegionOptions::new()).unwrap();
        target.share(PeerId(0), &region, 0..1 << 20, Rights::all(), 0).unwrap();
        let remote = port.accept_region(PeerId(1), 0).unwrap();
        (port, target, remote)
    }

    /// Serves until all that was posted has completed.
    fn serve(target: &mut Port, port: &mut Port) {
        while !port.is_flushed(PeerId(1)) {
            target.progress();
            port.progress();
        }
    }

    #[test]
    fn an_operation_whose_call_was_interrupted_ends_later_and_harms_no_other() {
        let (mut port, mut target, remote) = in_vain();
        let (mut long, mut short) = (vec![0; 1 << 20], [0; 8]);
        let with = PostOptions::new().notify(Classes::all());
        assert_eq!(port.get(&remote, 0, &mut short[..], with), Err(Fault::Interrupted.into()));
        serve(&mut target, &mut port);
        assert_eq!(port.put(&remote, 0, &long[..], with), Err(Fault::Interrupted.into()));
        serve(&mut target, &mut port);
        assert_eq!(port.get(&remote, 0, &mut long[..], with), Err(Fault::Interrupted.into()));
        serve(&mut target, &mut port);
        assert_eq!(port.fetch_add(&remote, 8, 5), Err(Fault::Interrupted.into()));
        assert_eq!(port.flush(PeerId(1)), Err(Fault::Interrupted));
        serve(&mut target, &mut port);
        assert_eq!(port.flush(PeerId(1)), Ok(()), "none of them has faulted");
        assert_eq!(port.poll_notification(), None, "what was interrupted raises none here");
        assert_eq!((short, long), ([0; 8], vec![0; 1 << 20]), "nothing comes to an ended call");
        assert_eq!(port.get(&remote, 8, &mut short[..], with), Err(Fault::Interrupted.into()));
        assert!(port.is_alive(PeerId(1)) && target.is_alive(PeerId(0)), "both go on");
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
