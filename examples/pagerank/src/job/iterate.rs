//! The iterations, as every process runs them.
//!
//! A round is: push, exchange, settle. An exchange carries two sums: what this round's push passed
//! on, which settling needs, and by how much the last settling changed the ranks, which decides
//! whether to go on. So the decision costs no exchange of its own; the price is that the last
//! round's push was in vain, and its amounts are thrown away.

use anyhow::Result;

use super::carrier::{Carrier, Sums};
use super::part::Part;
use super::process::Process;
use crate::fixed::{ONE, Spread};
use crate::reference::{self, Outcome, Stop};

/// Whether a process adds up what it has for a vertex before it carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carry {
    EachEdge,
    Sums,
}

/// Ranks the vertices of this process's block; `tick` hears of every iteration.
pub(crate) fn iterate(
    process: &mut Process,
    carrier: &mut impl Carrier,
    part: &Part,
    carry: Carry,
    stop: Stop,
    mut tick: impl FnMut(),
) -> Result<Outcome> {
    let block = part.block();
    let ranks = reference::initial(part.vertices(), block.clone());
    let mut outcome = Outcome { ranks, iterations: 0, change: 0 };
    if part.vertices() == 0 {
        return Ok(outcome);
    }
    let mut sums = vec![0; block.len() + part.outer().len()];
    let mut change = 0;
    loop {
        let at_limit = outcome.iterations == stop.iterations;
        let mut pushed = 0;
        if !at_limit {
            pushed = push(process, carrier, part, carry, (&outcome.ranks, &mut sums))?;
        }
        let total = carrier.exchange(process, Sums { pushed, change })?;
        carrier.collect(&mut sums[..block.len()]);
        outcome.change = total.change;
        if at_limit || outcome.iterations > 0 && total.change <= stop.tolerance {
            return Ok(outcome);
        }
        let spread = Spread::new(ONE - total.pushed, part.vertices());
        let received = &sums[..block.len()];
        change = reference::settle(&mut outcome.ranks, received, block.start, spread).change;
        sums.fill(0);
        outcome.iterations += 1;
        tick();
    }
}

/// Pushes along all edges: to the block's own vertices into the front of `sums`, to the others with
/// the carrier. Returns what was pushed.
fn push(
    process: &mut Process,
    carrier: &mut impl Carrier,
    part: &Part,
    carry: Carry,
    (ranks, sums): (&[u64], &mut [u64]),
) -> Result<u64> {
    let own = part.block().len();
    let outer = part.outer();
    match carry {
        Carry::Sums => {
            let deliver = |target: u32, share| sums[target as usize] += share;
            let pushed = reference::push(part.rows(), ranks, deliver);
            for (&place, &sum) in outer.iter().zip(&sums[own..]) {
                carrier.carry(process, place, sum)?;
            }
            Ok(pushed)
        }
        Carry::EachEdge => {
            // The first failure is reported when the push is over.
            let mut result = Ok(());
            let deliver = |target: u32, share| {
                let target = target as usize;
                match target.checked_sub(own) {
                    None => sums[target] += share,
                    Some(at) if result.is_ok() => result = carrier.carry(process, outer[at], share),
                    Some(_) => {}
                }
            };
            let pushed = reference::push(part.rows(), ranks, deliver);
            result.map(|()| pushed)
        }
    }
}
