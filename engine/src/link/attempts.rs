//! The outcome of each way by which a link was asked for.
use crate::error::{AddressAttempt, AttemptOutcome, Refusal};
use crate::net::hints::Hint;
use std::net::SocketAddr;
use std::time::Duration;

/// The number of opens by one way, the time of the first, and the peer's answer there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AttemptLog {
    opens: u32,
    since: u64,
    word: Option<Word>,
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Answered,
    Refused(Refusal),
}

impl AttemptLog {
    /// An open is due.
    pub(crate) fn ask(&mut self, now: u64) {
        if self.opens == 0 {
            self.since = now;
        }
        self.opens = self.opens.saturating_add(1);
    }

    /// Somebody has answered.
    pub(crate) fn answered(&mut self) {
        self.word = Some(Word::Answered);
    }

    /// Somebody has refused.
    pub(crate) fn refused(&mut self, why: Refusal) {
        if why != Refusal::Unknown || self.word.is_none() {
            self.word = Some(Word::Refused(why));
        }
    }

    /// The outcome at this address, given the network's last report about it.
    pub(crate) fn told(&self, at: SocketAddr, hint: Option<Hint>, now: u64) -> AddressAttempt {
        let outcome = match (self.word, hint) {
            (Some(Word::Answered), _) => AttemptOutcome::Answered,
            (Some(Word::Refused(why)), _) => AttemptOutcome::Refused(why),
            (None, Some(hint)) => hint.into(),
            (None, None) => AttemptOutcome::Nothing,
        };
        let time = if self.opens == 0 { 0 } else { now.saturating_sub(self.since) };
        AddressAttempt { at, opens: self.opens, time: Duration::from_nanos(time), outcome }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    const AT: ([u8; 4], u16) = ([10, 0, 0, 1], 7);
    const UNSENT: Hint = Hint::NotSent(Errno::NETUNREACH);

    /// A peer says more than the network does, and a reason more than none.
    // spec: OPEN-32
    #[test]
    fn a_refusal_of_the_peer_outranks_a_network_error() {
        let mut attempt = AttemptLog::default();
        let told = |attempt: &AttemptLog, hint| attempt.told(AT.into(), hint, 9_000).outcome;
        assert_eq!(told(&attempt, None), AttemptOutcome::Nothing);
        assert_eq!(told(&attempt, Some(UNSENT)), AttemptOutcome::NotSent(Errno::NETUNREACH));
        attempt.refused(Refusal::Key);
        attempt.refused(Refusal::Unknown);
        assert_eq!(told(&attempt, Some(UNSENT)), AttemptOutcome::Refused(Refusal::Key));
        attempt.answered();
        assert_eq!(told(&attempt, Some(UNSENT)), AttemptOutcome::Answered);
        [4_000, 5_000].into_iter().for_each(|now| attempt.ask(now));
        let tried = attempt.told(AT.into(), None, 9_000);
        assert_eq!((tried.opens, tried.time), (2, Duration::from_nanos(5_000)));
    }
}
