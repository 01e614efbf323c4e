//! Messages of rank 0 to all others: to their group, or to one after the other.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::active::{Handler, Messenger};
use ayre::multicast::{Membership, MulticastOptions};
use ayre::{PeerId, Port};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::{Label, labelled, poll_until};

/// Messages that are sent before rank 0 waits until all have them.
const BURST: u64 = 8;

/// The counts of handlers: messages, and answers to them.
#[derive(Default)]
struct Counts {
    heard: u64,
    answered: u64,
}

/// The group of all ranks, which several cases use.
pub(crate) struct Audience {
    messenger: Messenger<Counts>,
    group: Membership,
    others: Vec<PeerId>,
    hear: Handler<1>,
    counts: Counts,
    /// Messages and answers that were waited for.
    awaited: Counts,
    data: Vec<u8>,
}

impl Audience {
    /// Joins the job with a port of its own. Collective.
    pub(crate) fn join() -> Result<Rc<RefCell<Self>>> {
        let port = Port::join()?;
        let (rank, own) = (port.rank(), port.peer(port.rank()));
        let others = port.peers().filter(|peer| Some(*peer) != own).collect();
        let mut messenger = Messenger::new(port);
        let answer = messenger.register("answer", |counts: &mut Counts, _, [], _: &[u8]| {
            counts.answered += 1;
        })?;
        let hear = messenger.register("hear", move |counts: &mut Counts, call, [wanted], _| {
            counts.heard += 1;
            if wanted == 1 && rank != 0 {
                let answered = call.reply(answer, [], &[]);
                debug_assert!(answered.is_ok(), "rank 0 waits for it");
            }
        })?;
        let (mut counts, options, name) = (Counts::default(), MulticastOptions::new(), "audience");
        let founded = match rank {
            0 => Some(messenger.multicast().found(name, options, |_, _| ())?),
            _ => None,
        };
        messenger.sync(&mut counts)?;
        let group = match founded {
            Some(group) => group,
            None => {
                let founder = messenger.port().peer(0).context("rank 0 is there")?;
                messenger.multicast().join(&mut counts, name, founder, options, |_, _| ())?
            }
        };
        messenger.sync(&mut counts)?;
        let (awaited, data) = (Counts::default(), Vec::new());
        let audience = Self { messenger, group, others, hear, counts, awaited, data };
        Ok(Rc::new(RefCell::new(audience)))
    }

    fn send(&mut self, is_to_group: bool, wanted: bool) -> Result<()> {
        let Self { messenger, counts, hear, data, .. } = self;
        let arguments = [u64::from(wanted)];
        if is_to_group {
            return Ok(messenger.multicast().send(counts, self.group, *hear, arguments, data)?);
        }
        for other in &self.others {
            messenger.call(counts, *other, *hear, arguments, data)?;
        }
        Ok(())
    }

    fn await_messages(&mut self, count: u64) -> Result<()> {
        self.awaited.heard += count;
        poll_until(|| {
            self.messenger.poll(&mut self.counts);
            Ok(self.counts.heard >= self.awaited.heard)
        })
    }

    fn await_answers(&mut self) -> Result<()> {
        self.awaited.answered += self.others.len() as u64;
        poll_until(|| {
            self.messenger.poll(&mut self.counts);
            Ok(self.counts.answered >= self.awaited.answered)
        })
    }
}

/// The event that ends a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The calls of rank 0, a burst of them at a time.
    Sent,
    /// All that it takes until all others have answered.
    Answered,
}

/// Messages to all.
pub(crate) struct ToAll {
    pub(crate) label: Label,
    pub(crate) audience: Rc<RefCell<Audience>>,
    pub(crate) is_to_group: bool,
    pub(crate) until: Until,
}

impl Case for ToAll {
    labelled!();

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.audience.borrow_mut().data = vec![0xa5; size];
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let mut audience = self.audience.borrow_mut();
        let start = Instant::now();
        if side.rank() != 0 {
            audience.await_messages(iterations)?;
            // What it passes on must not wait for its next poll.
            let Audience { messenger, counts, .. } = &mut *audience;
            messenger.flush(counts);
            return Ok(start.elapsed());
        }
        let burst = if self.until == Until::Sent { BURST } else { 1 };
        let (mut timed, mut left) = (Duration::ZERO, iterations);
        while left > 0 {
            let now = burst.min(left);
            let start = Instant::now();
            for number in 1..=now {
                audience.send(self.is_to_group, number == now)?;
            }
            if self.until == Until::Sent {
                timed += start.elapsed();
            }
            audience.await_answers()?;
            if self.until == Until::Answered {
                timed += start.elapsed();
            }
            left -= now;
        }
        Ok(timed)
    }
}
