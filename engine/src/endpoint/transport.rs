//! The transport of an endpoint's protocol: lanes of the port, rings of remotes, memory regions,
//! and memory of other processes.
use super::RemoteId;
use super::address::Address;
use super::memory_regions::MemoryRegions;
use super::remotes::Remotes;
use super::stall::REPORT_AFTER;
use crate::error::{Busy, DisconnectReason, Fault, PostError};
use crate::log::tell;
use crate::mem::exposed::Exposed;
use crate::mem::span::Spans;
use crate::port::Port;
use crate::port::connection::Connection;
use crate::tuning::{Choices, Chosen, Method, Use};
use ayre_proto::endpoint::{Choice, Memory, Transport};
use ayre_proto::envelope::ENVELOPE_WORDS;
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::{PeerId, RmaClaim};

impl Memory for Spans {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn whole(&self) -> Option<&[u8]> {
        self.whole()
    }

    fn piece(&self, offset: usize, max: usize) -> &[u8] {
        self.piece(offset, max)
    }

    #[inline]
    fn piece_mut(&mut self, offset: usize, max: usize) -> &mut [u8] {
        self.piece_mut(offset, max)
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.write(offset, from);
    }
}

/// An endpoint apart from its protocol.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) port: &'a mut Port,
    pub(super) remotes: &'a mut Remotes,
    pub(super) regions: &'a Option<MemoryRegions>,
    pub(super) choices: &'a mut Choices,
    pub(super) own: &'a Address,
    /// It sleeps, so that whatever is put off must wake it.
    pub(super) is_asleep: bool,
}

impl Surroundings<'_> {
    /// As [`MemoryRegions::perform`], of an endpoint that may have none.
    #[inline(always)]
    fn perform<T>(
        &self,
        claim: &RmaClaim,
        what: impl FnOnce(&Exposed, u64) -> T,
    ) -> Result<T, Fault> {
        self.regions.as_ref().ok_or(Fault::UnknownKey)?.perform(claim, what)
    }

    /// There is no room for what goes to a peer: the log says so of one that takes nothing.
    // spec: ENV-43
    fn log_stall(&mut self, peer: PeerId) {
        let remote = self.remotes.of_peer(peer.index());
        let taken =
            self.port.connection(peer).map(|connection| connection.messages_out.given_back());
        if let (Some(remote), Ok(taken)) = (remote, taken)
            && let Some(known) = self.remotes.get_mut(remote)
            && known.stall().look(taken, self.port.clock.now())
        {
            let (whom, time) = (known.address().in_words(self.own), REPORT_AFTER.as_secs());
            tell!(
                WARN,
                "{whom} has taken nothing for {time} s, and there is no room for more: it lives, \
                 but is stopped, or its program does not get to its endpoint"
            );
        }
    }
}

/// Appends a record to a peer's lane, if there is room.
#[inline(always)]
pub(super) fn push<const H: usize>(
    port: &mut Port,
    peer: PeerId,
    (tag, mut head): (u32, [u64; H]),
    bytes: &[u8],
) -> Result<bool, Fault> {
    debug_assert!(bytes.len() <= EAGER_MAX, "no record has more behind its head");
    let connection = port.connection_mut(peer)?;
    if let Some(why) = connection.ended {
        return Err(why);
    }
    // How many commands precede it.
    if let Some(commands) = connection.executor.commands_before() {
        head[0] = commands;
    }
    connection.messages_out.send_for_ahead();
    let pushed = connection.messages_out.push((Kind::GatedMessage, tag), head, bytes);
    if pushed.is_err() {
        port.make_room(peer);
        return Ok(false);
    }
    connection.published();
    Ok(true)
}

impl Transport for Surroundings<'_> {
    type Memory = Spans;
    type Lane = PeerId;
    type Error = PostError;

    #[inline(always)]
    fn lane(&self, of: RemoteId) -> Option<PeerId> {
        self.remotes.get(of)?.peer()
    }

    #[inline(always)]
    fn push<const H: usize>(
        &mut self,
        peer: PeerId,
        tag: u32,
        head: [u64; H],
        bytes: &[u8],
    ) -> Result<(), PostError> {
        if push(self.port, peer, (tag, head), bytes)? { Ok(()) } else { Err(self.no_room(peer)) }
    }

    fn reserve(&mut self, peer: PeerId) -> Result<(), PostError> {
        let lane = &mut self.port.connection_mut(peer)?.messages_out;
        let has_room = lane.reserve((ENVELOPE_WORDS + 1) * 8).is_ok();
        if has_room { Ok(()) } else { Err(self.no_room(peer)) }
    }

    // spec: ENV-43
    #[cold]
    fn no_room(&mut self, peer: PeerId) -> PostError {
        self.log_stall(peer);
        Busy::MessageLaneFull.into()
    }

    #[inline]
    fn longest_piece(&mut self, to: RemoteId) -> Option<usize> {
        Some(self.remotes[to].ring_out()?.longest())
    }

    fn write_ring(&mut self, to: RemoteId, piece: &[u8]) -> Option<u64> {
        let ring = self.remotes[to].ring_out()?;
        debug_assert!((1..=ring.longest()).contains(&piece.len()), "it finds room in the end");
        ring.write(piece)
    }

    fn check_ring(&mut self, of: RemoteId, at: u64, len: usize) -> Result<(), Malformed> {
        self.remotes[of].ring_in().ok_or(Malformed)?.check(at, len)
    }

    fn take_ring(&mut self, of: RemoteId, (at, len): (u64, usize), into: &mut [u8]) {
        let ring = self.remotes[of].ring_in();
        let taken = ring.map_or(Err(Malformed), |ring| ring.take(at, len, into));
        debug_assert!(taken.is_ok(), "there can be such a piece");
    }

    fn copy(&self, peer: PeerId, skip: usize, into: &mut [u8]) {
        debug_assert!(into.len() <= EAGER_MAX, "no record has more behind its head");
        if let Some(connection) = self.port.peers.at(peer.index()) {
            connection.messages_in.copy(skip, into);
        }
    }

    #[inline(always)]
    fn copy_short(&self, peer: PeerId, skip: usize, into: &mut [u8]) {
        if let Some(connection) = self.port.peers.at(peer.index()) {
            connection.messages_in.copy_short(skip, into);
        }
    }

    fn is_linked(&self, peer: PeerId) -> bool {
        self.port.connection(peer).is_ok_and(Connection::is_driven_here)
    }

    fn address_of(&mut self, peer: PeerId, memory: &Spans) -> u64 {
        let connection = self.port.connection(peer);
        let is_near = connection.is_ok_and(|connection| connection.control().socket().is_some());
        let whole = memory.whole().filter(|_| is_near);
        whole.map_or(0, |whole| whole.as_ptr().addr() as u64)
    }

    // spec: INJ-2, INJ-8
    fn choose(&mut self, source: RemoteId, len: u64) -> Choice {
        debug_assert!(len > 0, "what has no bytes does not come");
        let Self { remotes, port, choices, .. } = self;
        let is_readable = remotes.get_mut(source).is_some_and(|remote| {
            remote.is_readable(|peer| port.connection(peer?).ok()?.process())
        });
        if !is_readable {
            return Choice { is_read: false, since: None };
        }
        let tuning = port.config.tuning.as_deref();
        let Chosen { by, since, .. } =
            choices.choose(Use::Receive, len, tuning, || port.clock.now());
        Choice { is_read: by == Method::Kernel, since }
    }

    fn chosen(&mut self, choice: Choice, len: u64, is_here: bool) {
        debug_assert!(len > 0, "it was chosen for");
        let Choice { is_read, since } = choice;
        let by = if is_read { Method::Kernel } else { Method::Pipeline };
        let chosen = Chosen { bytes: len, by, since };
        match is_here {
            true => self.choices.finish(chosen, || self.port.clock.now()),
            false => self.choices.drop_one(chosen),
        }
    }

    fn read_remote(&mut self, source: RemoteId, address: u64, into: &mut [u8]) -> bool {
        self.remotes[source].read(address, into)
    }

    fn is_still_connected(&mut self, remote: RemoteId) -> bool {
        self.port.service_control();
        let peer = self.lane(remote);
        peer.is_some_and(|peer| self.port.is_alive(peer))
    }

    fn check_claim(&mut self, claim: &RmaClaim) -> Result<(), Fault> {
        self.perform(claim, |_, _| ())
    }

    #[inline(always)]
    fn write_region(&mut self, claim: &RmaClaim, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.perform(claim, |memory, start| {
            debug_assert!(at + bytes.len() as u64 <= claim.len, "of what is claimed");
            memory.write(start + at, bytes);
        })
    }

    #[inline(always)]
    fn read_region(&mut self, claim: &RmaClaim, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.perform(claim, |memory, start| {
            debug_assert!(at + into.len() as u64 <= claim.len, "of what is claimed");
            memory.read(start + at, into);
        })
    }

    fn ring_to_region(
        &mut self,
        of: RemoteId,
        (place, len): (u64, usize),
        claim: &RmaClaim,
        at: u64,
    ) -> Result<(), Fault> {
        let regions = self.regions.as_ref().ok_or(Fault::UnknownKey)?;
        let ring = self.remotes[of].ring_in();
        let taken = regions.perform(claim, |memory, start| {
            debug_assert!(at + len as u64 <= claim.len, "of what is claimed");
            ring.map_or(Err(Malformed), |ring| {
                ring.take_by(place, len, |ring, offset| {
                    memory.write_from(start + at, ring, offset, len);
                })
            })
        })?;
        debug_assert!(taken.is_ok(), "there can be such a piece");
        Ok(())
    }

    fn region_to_ring(
        &mut self,
        to: RemoteId,
        len: usize,
        claim: &RmaClaim,
        at: u64,
    ) -> Result<Option<u64>, Fault> {
        let regions = self.regions.as_ref().ok_or(Fault::UnknownKey)?;
        let ring = self.remotes[to].ring_out();
        regions.perform(claim, |memory, start| {
            debug_assert!(len > 0 && at + len as u64 <= claim.len, "of what is claimed");
            ring?.write_by(len, |ring, offset| memory.read_to(start + at, ring, offset, len))
        })
    }

    #[inline(always)]
    fn update_region<A: AsMut<[u8]> + Clone + PartialEq>(
        &mut self,
        claim: &RmaClaim,
        mut place: A,
        make: impl Fn(&mut [u8]),
    ) -> Result<A, Fault> {
        self.perform(claim, |memory, at| {
            debug_assert_eq!(place.as_mut().len() as u64, claim.len, "all that is claimed");
            if memory.update_word(at, place.as_mut(), &make) {
                return place;
            }
            memory.read(at, place.as_mut());
            let mut new = place.clone();
            make(new.as_mut());
            if new != place {
                memory.write(at, new.as_mut());
            }
            place
        })
    }

    fn hold_back(&mut self, to: RemoteId) {
        self.remotes[to].hold_back();
    }

    fn let_through(&mut self, to: RemoteId) {
        self.remotes[to].let_through();
    }

    #[cold]
    fn shut_out(&mut self, remote: RemoteId) -> bool {
        let Some(known) = self.remotes.get_mut(remote) else { return false };
        debug_assert!(known.shut_out_for().is_none(), "it is shut out once");
        known.shut_out(DisconnectReason::Flooded);
        let is_own = known.address().name() == self.own.name();
        let Some(peer) = known.peer() else { return is_own };
        self.remotes.cut_off(peer.index());
        if is_own {
            self.port.end_connection(peer, Fault::NoMemory);
        }
        is_own
    }

    #[cold]
    fn on_shut_out(&mut self, by: RemoteId) {
        let Some(known) = self.remotes.get_mut(by) else { return };
        known.shut_out(DisconnectReason::NoMemory);
        if let Some(peer) = known.peer() {
            self.port.end_connection(peer, Fault::NoMemory);
        }
    }

    // spec: ENV-9
    fn request_poll(&self) {
        if self.is_asleep {
            self.port.sleep.ring();
        }
    }
}
