//! Variant `puts`: the amounts travel in the exchange's messages, one for each outer vertex.
//!
//! Which vertices they are for is told once: the first round carries places instead of amounts.

use anyhow::Result;

use super::carrier::{Carrier, Sums};
use super::exchange::Exchange;
use super::part::{Part, Place};
use super::process::Process;
use super::words;

pub(crate) struct Puts {
    exchange: Exchange,
    /// By process: the places of the vertices that its amounts are for.
    places: Vec<Vec<u32>>,
    /// Scratch.
    bytes: Vec<u8>,
}

impl Puts {
    /// All processes take part.
    pub(crate) fn new(process: &mut Process, part: &Part) -> Result<Self> {
        let mut exchange = Exchange::new(process, part, true)?;
        for place in part.outer() {
            let (to, position) = (place.process as usize, place.position as usize);
            exchange.set_amount(to, position, u64::from(place.index));
        }
        exchange.run(process, Sums::default())?;
        let mut bytes = Vec::new();
        let places = (0..process.count())
            .map(|from| words::u64s(exchange.amounts(from, &mut bytes)).map(|p| p as u32).collect())
            .collect();
        exchange.advance();
        Ok(Self { exchange, places, bytes })
    }
}

impl Carrier for Puts {
    #[inline]
    fn carry(&mut self, _: &mut Process, to: Place, amount: u64) -> Result<()> {
        self.exchange.set_amount(to.process as usize, to.position as usize, amount);
        Ok(())
    }

    fn exchange(&mut self, process: &mut Process, own: Sums) -> Result<Sums> {
        self.exchange.run(process, own)
    }

    fn collect(&mut self, received: &mut [u64]) {
        for (from, places) in self.places.iter().enumerate() {
            let amounts = self.exchange.amounts(from, &mut self.bytes);
            for (&place, amount) in places.iter().zip(words::u64s(amounts)) {
                received[place as usize] += amount;
            }
        }
        self.exchange.advance();
    }

    fn close(self, process: &mut Process) -> Result<()> {
        self.exchange.close(process)
    }
}
