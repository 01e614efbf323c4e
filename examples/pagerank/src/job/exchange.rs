//! An exchange by puts: every process puts a message into every other one.
//!
//! A message begins with the sender's sums and may carry amounts for the receiver's vertices. A
//! receiver has a slot for each sender, which that sender alone can write, and the put's completer
//! notification says that a message is there.
//!
//! **One exchange a round is all the synchronisation there is.** A slot has room for two messages,
//! for rounds with even and with odd numbers. A process sends its message of round k + 2 after it
//! has got all messages of round k + 1. The receiver sent its own of these after it was done with
//! round k. So nothing is overwritten that is still needed. This holds for everything that has a
//! place for even and one for odd rounds.

use anyhow::Result;
use ayre::{PostOptions, Region, RegionOptions, RemoteRegion, Rights};

use super::carrier::Sums;
use super::part::Part;
use super::process::{Process, Tag};

/// The name of the slots.
const SLOT: u64 = 1;

/// Bytes before a message's amounts: the sender's sums.
const HEAD: usize = 16;

/// This process's end of all exchanges.
pub(crate) struct Exchange {
    inbox: Region,
    /// By process; none for this one.
    ends: Vec<Option<End>>,
    round: usize,
}

/// The data that goes to and comes from one other process.
struct End {
    to: RemoteRegion,
    outgoing: Vec<u8>,
    /// Where its messages land, and their length.
    offset: usize,
    len: usize,
}

impl Exchange {
    /// Agrees with all others on the messages' lengths. All take part, with the same `amounts`:
    /// whether messages carry one for each outer vertex.
    pub(crate) fn new(process: &mut Process, part: &Part, amounts: bool) -> Result<Self> {
        let count = |other| if amounts { part.outer_of(other).len() } else { 0 };
        let theirs = process.tell_all(|other| count(other) as u32)?;
        let len = |other: usize| HEAD + 8 * theirs[other] as usize;
        let total: usize = process.others().map(|other| 2 * len(other)).sum();
        let inbox = process.port.alloc(total.max(1), RegionOptions::new())?;
        let mut offset = 0;
        let mut ends: Vec<_> = (0..process.count()).map(|_| None).collect();
        for other in process.others() {
            let (peer, end) = (process.peer(other), offset + 2 * len(other));
            process.port.share(peer, &inbox, offset..end, Rights::WRITE | Rights::NOTIFY, SLOT)?;
            ends[other] = Some((offset, end));
            offset = end;
        }
        let mut exchange = Self { inbox, ends: Vec::new(), round: 0 };
        for (other, place) in ends.into_iter().enumerate() {
            let Some((offset, end)) = place else {
                exchange.ends.push(None);
                continue;
            };
            let to = process.port.accept_region(process.peer(other), SLOT)?;
            let outgoing = vec![0; HEAD + 8 * count(other)];
            let len = (end - offset) / 2;
            exchange.ends.push(Some(End { to, outgoing, offset, len }));
        }
        Ok(exchange)
    }

    /// 0 in rounds with even numbers, 1 in the others.
    pub(crate) fn parity(&self) -> usize {
        self.round % 2
    }

    /// Sets an amount of this round's message to a process.
    pub(crate) fn set_amount(&mut self, to: usize, position: usize, amount: u64) {
        let end = self.ends[to].as_mut().expect("messages go to other processes");
        end.outgoing[HEAD + 8 * position..][..8].copy_from_slice(&amount.to_le_bytes());
    }

    /// Sends this round's messages and waits for those of all others; returns everybody's sums.
    pub(crate) fn run(&mut self, process: &mut Process, own: Sums) -> Result<Sums> {
        let parity = self.parity();
        let tag = [Tag::Even, Tag::Odd][parity];
        let options = PostOptions::new().completer().tag(tag as u32);
        for other in process.others() {
            let Some(End { to, outgoing, .. }) = &mut self.ends[other] else { continue };
            outgoing[..8].copy_from_slice(&own.pushed.to_le_bytes());
            outgoing[8..HEAD].copy_from_slice(&own.change.to_le_bytes());
            let offset = (parity * outgoing.len()) as u64;
            process.post(to.peer(), |port| port.put(to, offset, &*outgoing, options))?;
        }
        process.wait(tag, process.count() - 1)?;
        let mut total = own;
        for End { offset, len, .. } in self.ends.iter().flatten() {
            let word = |at: usize| self.inbox.load(offset + parity * len + 8 * at);
            total.pushed += word(0);
            total.change += word(1);
        }
        Ok(total)
    }

    /// After `run`: copies the amounts that a process has sent into the front of `into`.
    pub(crate) fn amounts<'a>(&self, from: usize, into: &'a mut Vec<u8>) -> &'a [u8] {
        into.clear();
        if let Some(End { offset, len, .. }) = &self.ends[from] {
            into.resize(len - HEAD, 0);
            self.inbox.read(offset + self.parity() * len + HEAD, into);
        }
        into
    }

    /// Ends the round. Everything that the others sent in it must have been taken.
    pub(crate) fn advance(&mut self) {
        self.round += 1;
    }

    /// Takes the slots back; all processes must be done.
    pub(crate) fn close(self, process: &mut Process) -> Result<()> {
        Ok(process.port.deregister(&self.inbox)?)
    }
}
