//! Messages as packets in a network.
use super::machine::{Machine, Wire};
use super::{Hosts, Report, RunError, Schedule, Start};
use crate::network::Network;
use crate::time::Time;
use core::num::NonZeroU32;

/// How messages become packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The most bytes of a message in a packet. A message without bytes is a packet, too.
    pub most: u32,
    /// The further bytes of each packet.
    pub header: u32,
}

/// Packets on their way at which a run is given up.
const BACKLOG_MAX: u64 = 1 << 24;

/// Runs a schedule over a network: rank `n` is node `n`. The packets of a message enter the queue
/// of their node when the sender has spent `o`, and the message arrives with the last of them.
/// Operations begin when all that they require has ended. With `path`, the report has the critical
/// path.
///
/// # Errors
/// See [`RunError`].
pub fn run_over(
    schedule: &Schedule,
    hosts: &Hosts,
    packets: Packets,
    network: &mut Network,
    path: bool,
) -> Result<Report, RunError> {
    let (ranks, nodes) = (schedule.ranks(), network.nodes());
    if ranks > nodes {
        return Err(RunError::FewNodes { ranks, nodes });
    }
    if packets.most == 0 {
        return Err(RunError::EmptyPackets);
    }
    let left = vec![0; schedule.operations().len()];
    let carrier = Carrier { schedule, packets, network, left, on_the_way: 0 };
    let hosts = Hosts { start: Start::WhenEnded, ..*hosts };
    let mut machine = Machine::new(schedule, &hosts, carrier, path)?;
    machine.run()?;
    machine.report()
}

/// Carries messages through a network.
struct Carrier<'a> {
    schedule: &'a Schedule,
    packets: Packets,
    network: &'a mut Network,
    /// For each send the packets that have not arrived.
    left: Vec<u32>,
    /// Messages that have not arrived.
    on_the_way: u64,
}

impl Wire for Carrier<'_> {
    fn gap_per_byte(&self) -> Time {
        Time::ZERO
    }

    fn depart(&mut self, at: Time, number: u32) -> Result<Option<Time>, RunError> {
        let operation = &self.schedule.operations()[number as usize];
        let (line, target) = (operation.line, self.schedule.target(operation));
        let most = u64::from(self.packets.most);
        let count = operation.size.div_ceil(most).max(1);
        let packets = count + self.network.backlog() as u64;
        if packets > BACKLOG_MAX {
            return Err(RunError::ManyPackets { line, packets, limit: BACKLOG_MAX });
        }
        let tag = NonZeroU32::MIN.saturating_add(number);
        let mut rest = operation.size;
        for _ in 0..count {
            let part = rest.min(most);
            rest -= part;
            let bytes = (part as u32).saturating_add(self.packets.header).max(1);
            let injected = self.network.inject(at, operation.rank, target, bytes, tag);
            injected.map_err(|error| RunError::Packet { line, error })?;
        }
        self.left[number as usize] = count as u32;
        self.on_the_way += 1;
        Ok(None)
    }

    fn advance(
        &mut self,
        before: Option<Time>,
        arrived: &mut Vec<(Time, u32)>,
    ) -> Result<(), RunError> {
        while self.on_the_way > 0 && arrived.is_empty() {
            let Some(next) = self.network.next_time() else {
                // Hosts may still send what frees the others, but they cannot free packets.
                return Err(RunError::Deadlocked(self.on_the_way));
            };
            if before.is_some_and(|before| next >= before) {
                return Ok(());
            }
            self.network.step();
            for delivery in self.network.deliveries() {
                let number = delivery.tag.get() - 1;
                let left = &mut self.left[number as usize];
                *left -= 1;
                if *left == 0 {
                    self.on_the_way -= 1;
                    arrived.push((delivery.at, number));
                }
            }
        }
        Ok(())
    }
}
