//! The outcome at each address at which a link was asked for, for people who must find out why
//! there is no link.
use super::Refusal;
use rustix::io::Errno;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The number of addresses that a text names.
const TOLD_MAX: usize = 4;

/// Advice for addresses where nobody has answered.
pub(crate) const CHECK: &str = "check that firewalls of both hosts and between them let UDP pass \
    (AYRE_PORTS names the ports, of MPI programs FI_AYRE_PORTS), and name the interfaces that both \
    reach (AYRE_NET, FI_AYRE_NET)";

/// An address at which a link was asked for, and the outcome.
// spec: OPEN-32
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressAttempt {
    /// The address.
    pub at: SocketAddr,
    /// How many times a link was asked for there.
    pub opens: u32,
    /// The time since the first attempt.
    pub time: Duration,
    /// The last answer from there.
    pub outcome: AttemptOutcome,
}

/// The last answer from an address at which a link was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// No answer.
    Nothing,
    /// A port there has answered once, and has been silent since.
    Answered,
    /// A port there refuses the link. On encrypted links this answer is not authenticated.
    Refused(Refusal),
    /// The host of the address reports that it has no such port (ICMP).
    PortClosed,
    /// A router or host reports that datagrams to the address do not arrive (ICMP).
    Undelivered {
        /// The error for which the report stands.
        errno: Errno,
        /// The sender of the report, where that is known: a router, or this host itself.
        by: Option<IpAddr>,
    },
    /// This host could not send to the address.
    NotSent(Errno),
}

impl AttemptOutcome {
    const fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("no answer"),
            Self::Answered => out.write_str("it has answered, and then not any more"),
            Self::Refused(why) => write!(out, "refused there: {why}"),
            Self::PortClosed => out.write_str(
                "its host says that the port is closed (ICMP): no such process is there, or a \
                 firewall rejects UDP",
            ),
            Self::Undelivered { errno, by: Some(by) } => {
                write!(out, "{by} says that it does not arrive (ICMP): {errno}")
            }
            Self::Undelivered { errno, by: None } => {
                write!(out, "the network says that it does not arrive (ICMP): {errno}")
            }
            Self::NotSent(errno) => {
                write!(out, "this host has not sent there: {errno}{}", why_unsent(*errno))
            }
        }
    }
}

/// Explains why a host does not send to an address.
fn why_unsent(errno: Errno) -> &'static str {
    match errno {
        Errno::NETUNREACH | Errno::HOSTUNREACH => ", it has no route there",
        Errno::PERM | Errno::ACCESS => ", its own firewall or a rule of its routes forbids it",
        Errno::NETDOWN => ", the interface is down",
        Errno::NOBUFS => ", the interface takes nothing",
        _ => "",
    }
}

impl fmt::Display for AddressAttempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, opens, time, outcome } = self;
        match opens {
            0 => write!(out, "{at} (its turn has not come)"),
            _ => {
                write!(out, "{at} (asked {opens} times in {:.1} s: {outcome})", time.as_secs_f32())
            }
        }
    }
}

impl AddressAttempt {
    /// Several addresses in one text: a few of them, those that have answered first.
    // spec: OPEN-32
    pub fn in_words(tried: &[Self]) -> String {
        let mut told: Vec<_> = tried.iter().collect();
        told.sort_by_key(|tried| tried.outcome.is_nothing());
        let more = told.split_off(told.len().min(TOLD_MAX)).len();
        let mut words: Vec<_> = told.iter().map(ToString::to_string).collect();
        if more > 0 {
            words.push(format!("and {more} more"));
        }
        words.join(", ")
    }
}

#[cfg(all(test, not(loom)))]
impl AddressAttempt {
    /// For tests: an attempt at an address of a host that has not answered.
    pub(crate) fn sample(host: u8) -> Self {
        let (at, time) = (([10, 0, 0, host], 7).into(), Duration::from_secs(12));
        Self { at, opens: 50, time, outcome: AttemptOutcome::Nothing }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: OPEN-32, ERR-10
    #[test]
    fn a_text_names_a_few_addresses_first_those_of_which_something_was_heard() {
        let mut all: Vec<_> = (1..=9).map(AddressAttempt::sample).collect();
        all[6].outcome = AttemptOutcome::PortClosed;
        all[8].opens = 0;
        let text = AddressAttempt::in_words(&all);
        let told: Vec<_> = text.match_indices(":7 (").map(|(at, _)| &text[at - 1..at]).collect();
        assert_eq!(told, ["7", "1", "2", "3"], "{text}");
        assert!(text.ends_with(", and 5 more"), "{text}");
        assert!(text.contains("10.0.0.1:7 (asked 50 times in 12.0 s: no answer)"), "{text}");
        assert!(all[8].to_string().contains("its turn has not come"));
    }

    // spec: OPEN-32, ERR-10
    #[test]
    fn each_outcome_is_told_in_plain_words() {
        let by = Some([10, 0, 0, 254].into());
        let undelivered = |by| AttemptOutcome::Undelivered { errno: Errno::HOSTUNREACH, by };
        for (outcome, words) in [
            (AttemptOutcome::Answered, "has answered"),
            (AttemptOutcome::Refused(Refusal::Key), "different keys"),
            (AttemptOutcome::PortClosed, "port is closed"),
            (undelivered(by), "10.0.0.254 says that it does not arrive (ICMP): No route to host"),
            (undelivered(None), "does not arrive (ICMP): No route to host"),
            (AttemptOutcome::NotSent(Errno::NETUNREACH), "it has no route there"),
            (AttemptOutcome::NotSent(Errno::PERM), "its own firewall"),
            (AttemptOutcome::NotSent(Errno::NETDOWN), "the interface is down"),
        ] {
            let text = AddressAttempt { outcome, ..AddressAttempt::sample(1) }.to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
