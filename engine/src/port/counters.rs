//! Counters of a port.
use crate::error::{Busy, Fault, PostError};
use crate::port::Port;

/// Counts of refusals and faults since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    busy: [u64; Busy::ALL.len()],
    faults: [u64; Fault::Interrupted as usize + 1],
    malformed: u64,
    refused: u64,
    strangers: u64,
}

impl Counters {
    /// How many calls were refused for this reason.
    pub const fn busy(&self, reason: Busy) -> u64 {
        self.busy[reason as usize]
    }

    /// How many posted operations ended with this fault.
    pub const fn faults(&self, fault: Fault) -> u64 {
        self.faults[fault.code() as usize]
    }

    /// Records, commands, packets and greetings of peers that were dropped, because they were
    /// malformed or came out of turn.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Callers of this host that were refused because their users may not connect.
    // spec: LIFE-7
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Datagrams that belong to no link of this port, or are forged or damaged.
    // spec: LINK-15, SEAL-4
    pub const fn refused(&self) -> u64 {
        self.refused
    }
}

impl Port {
    /// The counts so far.
    // spec: ERR-9
    pub fn counters(&self) -> Counters {
        let refused = self.remote.wire().map_or(0, |wire| wire.refused());
        Counters { refused, ..self.counters }
    }

    /// Counts a refusal and returns it as the caller's error.
    #[cold]
    pub(crate) fn busy(&mut self, reason: Busy) -> PostError {
        self.counters.busy[reason as usize] += 1;
        reason.into()
    }

    pub(crate) fn count_fault(&mut self, fault: Fault) {
        self.counters.faults[fault.code() as usize] += 1;
    }

    pub(crate) fn count_refused_user(&mut self) {
        self.counters.strangers += 1;
    }

    pub(crate) fn count_malformed(&mut self) {
        self.counters.malformed += 1;
    }
}
