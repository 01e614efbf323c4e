//! Appending to a queue by deposit messages: one ring at its owner, whatever the number of senders.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use ayre::deposit::{
    AddressMode, Deposit, Depot, Inlet, InletOptions, Program, Register, RemoteInlet, X, Y, Z,
};
use ayre::{Mode, PeerId, Port, Region, RegionOptions};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::pair::{End, Member, Pair};
use super::{Label, labelled, poll_until, posted};

/// Bytes of a place of the ring, and of the ring: as many places as a raw ring has lines.
const PLACE: u64 = 64;
const RING: u64 = 128 * PLACE;
/// After this number of bytes, the owner tells senders how far they may go.
const SHARE: u64 = RING / 4;
const NAME: u64 = 5;
const TAIL: u8 = 0;
const LIMIT: u8 = 2;

/// The owner's end.
pub(crate) struct Ring {
    region: Region,
    depot: Depot,
    _inlets: Vec<Inlet>,
    /// Whether senders are served in this rank's calls.
    is_mediated: bool,
    head: u64,
    told: u64,
}

impl Ring {
    fn open(port: &mut Port, senders: &[PeerId]) -> Result<Self> {
        let (region, depot) =
            (port.alloc(RING as usize, RegionOptions::new())?, port.create_depot()?);
        let [tail, size, limit] = [TAIL, 1, LIMIT].map(Register::At);
        let append = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
        depot.store(0, &[append.store([tail, size, limit])])?;
        depot.set_register(1, PLACE)?;
        depot.set_register(LIMIT, RING)?;
        let options = InletOptions::new().entries(0..1).longest(PLACE as u16);
        let part = || (&region, 0..RING as usize);
        let share = |peer: &PeerId| port.share_inlet(*peer, &depot, part(), &options, NAME);
        let inlets = senders.iter().map(share).collect::<Result<Vec<_>, _>>()?;
        let is_mediated = senders.iter().any(|peer| port.mode(*peer) == Ok(Mode::Mediated));
        Ok(Self { region, depot, _inlets: inlets, is_mediated, head: 0, told: 0 })
    }

    #[inline(always)]
    fn take(&mut self, sink: &mut [u8]) -> Result<bool> {
        if self.depot.register(TAIL) == self.head {
            return Ok(false);
        }
        self.region.read((self.head % RING) as usize, sink);
        black_box(sink);
        self.head += PLACE;
        if self.head - self.told >= SHARE
            && self.depot.set_register(LIMIT, self.head + RING).is_ok()
        {
            self.told = self.head;
        }
        Ok(true)
    }
}

/// A way of this rank into a ring of `end`, which takes all there is, and the like of `end`. The
/// rings must live as long as the inlets are used. Collective.
pub(crate) fn endless(pair: &Pair, end: &End) -> Result<(RemoteInlet, Ring)> {
    let mut port = pair.port();
    let ring = Ring::open(&mut port, &[end.peer])?;
    ring.depot.set_register(LIMIT, u64::MAX)?;
    Ok((port.accept_inlet(end.peer, NAME)?, ring))
}

/// All ranks but the first append as many records each to one ring of the first one, which empties
/// it.
pub(crate) struct AppendIn {
    label: Label,
    member: Member,
    end: RingEnd,
    source: Buffer,
    sink: Buffer,
    producers: u64,
}

enum RingEnd {
    Owner(Ring),
    Sender(RemoteInlet),
}

impl AppendIn {
    /// Collective.
    pub(crate) fn join(label: Label, member: &Member) -> Result<Self> {
        let mut port = member.borrow_mut();
        let (rank, ranks) = (port.rank(), port.size());
        let end = if rank == 0 {
            let senders: Vec<_> = (1..ranks).map(|sender| PeerId(sender as u16)).collect();
            RingEnd::Owner(Ring::open(&mut port, &senders)?)
        } else {
            RingEnd::Sender(port.accept_inlet(PeerId(0), NAME)?)
        };
        let (source, sink) = (Buffer::default(), Buffer::default());
        Ok(Self { label, member: member.clone(), end, source, sink, producers: ranks as u64 - 1 })
    }
}

impl Case for AppendIn {
    labelled!();

    fn operations(&self) -> u64 {
        self.producers
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        (self.source, self.sink) = (Buffer::new(size), Buffer::new(size));
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let port = &mut *self.member.borrow_mut();
        let start = Instant::now();
        match &mut self.end {
            RingEnd::Owner(ring) => {
                for _ in 0..iterations * self.producers {
                    poll_until(|| {
                        let taken = ring.take(&mut self.sink)?;
                        if !taken && ring.is_mediated {
                            port.progress();
                        }
                        Ok(taken)
                    })?;
                }
            }
            RingEnd::Sender(inlet) => {
                for _ in 0..iterations {
                    poll_until(|| append(port, inlet, &self.source))?;
                }
            }
        }
        let time = start.elapsed();
        // The owner does not leave before the last answer was taken.
        side.barrier();
        Ok(time)
    }
}

/// Whether there was room.
#[inline(always)]
fn append(port: &mut Port, to: &RemoteInlet, record: &[u8]) -> Result<bool> {
    match port.deposit_fetch(to, &Deposit::enter(0).data(black_box(record)), &mut []) {
        Ok(answer) if answer.declined => {
            // The owner needs the depot, and perhaps the core, to make room.
            std::thread::yield_now();
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(error) => posted::<()>(Err(error)),
    }
}
