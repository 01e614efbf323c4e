//! Ways that note each effect.
use ayre_proto::endpoint::{Choice, RemoteId, Transport};
use ayre_proto::fault::Fault;
use ayre_proto::lane::Malformed;
use ayre_proto::units::RmaClaim;
use std::cell::RefCell;

/// Why something was not posted.
pub(super) enum NotPosted {
    Full,
    Fault(Fault),
}

impl From<Fault> for NotPosted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The transport of the endpoint.
pub(super) struct Around {
    pub(super) room: usize,
    pub(super) ring: Option<usize>,
    pub(super) written: u64,
    pub(super) address: u64,
    pub(super) is_read: bool,
    pub(super) is_refused: bool,
    pub(super) claims: Result<(), Fault>,
    pub(super) effects: RefCell<Vec<String>>,
}

impl Around {
    pub(super) fn note(&self, effect: String) {
        self.effects.borrow_mut().push(effect);
    }
}

impl Transport for &mut Around {
    type Memory = Vec<u8>;
    type Lane = usize;
    type Error = NotPosted;

    fn lane(&self, of: RemoteId) -> Option<usize> {
        Some(of.index())
    }

    fn push<const H: usize>(
        &mut self,
        to: usize,
        tag: u32,
        head: [u64; H],
        bytes: &[u8],
    ) -> Result<(), NotPosted> {
        self.reserve(to)?;
        self.room -= 1;
        let words: Vec<_> = head[1..].iter().map(|word| format!("{word:x}")).collect();
        self.note(format!("out {to} {tag:x} {} {:x}", words.join(" "), bytes.len()));
        Ok(())
    }

    fn reserve(&mut self, _: usize) -> Result<(), NotPosted> {
        if self.room > 0 { Ok(()) } else { Err(NotPosted::Full) }
    }

    fn no_room(&mut self, _: usize) -> NotPosted {
        NotPosted::Full
    }

    fn longest_piece(&mut self, _: RemoteId) -> Option<usize> {
        self.ring
    }

    fn write_ring(&mut self, to: RemoteId, piece: &[u8]) -> Option<u64> {
        self.note(format!("to-ring {} {:x}", to.index(), piece.len()));
        let at = self.written;
        self.written += piece.len().next_multiple_of(64) as u64;
        Some(at)
    }

    fn check_ring(&mut self, _: RemoteId, at: u64, _: usize) -> Result<(), Malformed> {
        if self.ring.is_some() && at.is_multiple_of(64) { Ok(()) } else { Err(Malformed) }
    }

    fn take_ring(&mut self, of: RemoteId, (at, len): (u64, usize), _: &mut [u8]) {
        self.note(format!("from-ring {} {at:x} {len:x}", of.index()));
    }

    fn copy(&self, _: usize, _: usize, into: &mut [u8]) {
        into.fill(0);
    }

    fn copy_short(&self, _: usize, _: usize, into: &mut [u8]) {
        into.fill(0);
    }

    fn is_linked(&self, _: usize) -> bool {
        self.address == 0
    }

    fn address_of(&mut self, _: usize, _: &Vec<u8>) -> u64 {
        self.address
    }

    fn choose(&mut self, _: RemoteId, _: u64) -> Choice {
        Choice { is_read: self.is_read, since: None }
    }

    fn chosen(&mut self, _: Choice, _: u64, _: bool) {}

    fn read_remote(&mut self, source: RemoteId, address: u64, into: &mut [u8]) -> bool {
        self.note(format!("fetch {} {address:x} {:x}", source.index(), into.len()));
        !self.is_refused
    }

    fn is_still_connected(&mut self, _: RemoteId) -> bool {
        true
    }

    fn check_claim(&mut self, _: &RmaClaim) -> Result<(), Fault> {
        self.claims
    }

    fn write_region(&mut self, _: &RmaClaim, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.claims?;
        self.note(format!("window {at:x} {:x}", bytes.len()));
        Ok(())
    }

    fn read_region(&mut self, _: &RmaClaim, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.claims?;
        self.note(format!("window {at:x} {:x}", into.len()));
        Ok(())
    }

    fn ring_to_region(
        &mut self,
        of: RemoteId,
        piece: (u64, usize),
        claim: &RmaClaim,
        at: u64,
    ) -> Result<(), Fault> {
        self.claims?;
        self.take_ring(of, piece, &mut []);
        self.write_region(claim, at, &vec![0; piece.1])
    }

    fn region_to_ring(
        &mut self,
        to: RemoteId,
        len: usize,
        claim: &RmaClaim,
        at: u64,
    ) -> Result<Option<u64>, Fault> {
        let mut bytes = vec![0; len];
        self.read_region(claim, at, &mut bytes)?;
        Ok(self.write_ring(to, &bytes))
    }

    fn update_region<A: AsMut<[u8]> + Clone + PartialEq>(
        &mut self,
        _: &RmaClaim,
        mut place: A,
        make: impl Fn(&mut [u8]),
    ) -> Result<A, Fault> {
        self.claims?;
        let old = place.clone();
        make(place.as_mut());
        self.note(format!("update {:x}", place.as_mut().len()));
        Ok(old)
    }

    fn hold_back(&mut self, to: RemoteId) {
        self.note(format!("hold {}", to.index()));
    }

    fn let_through(&mut self, to: RemoteId) {
        self.note(format!("let {}", to.index()));
    }

    fn shut_out(&mut self, remote: RemoteId) -> bool {
        self.note(format!("shut-out {}", remote.index()));
        false
    }

    fn on_shut_out(&mut self, by: RemoteId) {
        self.note(format!("on-shut-out {}", by.index()));
    }

    fn request_poll(&self) {}
}
