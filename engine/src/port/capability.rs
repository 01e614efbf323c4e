//! Sharing memory with peers, and revoking it.
use super::connection::Connection;
use crate::error::{Fault, SetupError, name_of};
use crate::log::tell;
use crate::mem::fence;
use crate::mem::map::Mapping;
use crate::mem::region::{PeerMemory, Region, RegionOptions, RemoteRegion};
use crate::peer::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::settings::choice::Mode;
use crate::sys::descriptor::Descriptor;
use ayre_proto::units::{Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use rustix::fd::AsFd;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The owner's record of a capability that it has shared. Dropping it does not revoke.
#[derive(Debug)]
pub struct Grant {
    peer: PeerId,
    key: Key,
    region: Region,
    port: u64,
}

impl Grant {
    /// The peer that holds the capability.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The key of the capability.
    pub fn key(&self) -> Key {
        self.key
    }

    pub(crate) fn new(peer: PeerId, key: Key, region: Region, port: u64) -> Self {
        Self { peer, key, region, port }
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

/// How a revocation dealt with operations in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// No operation was in progress, or all have finished.
    Drained,
    /// The holder stayed inside an operation: the region's contents were moved to fresh memory at
    /// the same address. All other capabilities of the region are revoked too.
    Moved,
}

impl Port {
    /// Allocates registered memory, zeroed, with every page present.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system does not have that much memory; [`SetupError::Invalid`]
    /// for a length of 0.
    // spec: REG-1
    pub fn alloc(&mut self, len: usize, options: RegionOptions) -> Result<Region, SetupError> {
        self.check_process()?;
        if len == 0 {
            return Err(SetupError::invalid("a region has at least one byte"));
        }
        let number = self.exposed.free_number()?;
        let region = Region::allocate(len, options, (number, self.identity))?;
        debug_assert!(region.mapping().len() >= region.len(), "a region lies in its mapping");
        self.exposed.register(number, region.mapping().clone());
        Ok(region)
    }

    /// Makes a region of memory that the program hands over, for peers of mediated connections.
    /// Read and write it through the region.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for an empty vector; [`SetupError::Exhausted`] where the table of
    /// regions is full.
    // spec: REG-5
    pub fn register(&mut self, words: Vec<u64>) -> Result<Region, SetupError> {
        if words.is_empty() {
            return Err(SetupError::invalid("a region has at least one byte"));
        }
        self.register_range(Mapping::of_words(words))
    }

    /// Registers a mapping, for all kinds of memory.
    pub(crate) fn register_range(&mut self, mapping: Mapping) -> Result<Region, SetupError> {
        let number = self.exposed.free_number()?;
        let len = mapping.len();
        let region = Region::over(mapping, len, (number, self.identity));
        self.exposed.register(number, region.mapping().clone());
        Ok(region)
    }

    /// Removes a region from the table: revokes all its capabilities. The memory itself is freed
    /// with the last clone of the region. May block as [`Port::revoke`] does.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for another port's region, or one that was deregistered before.
    // spec: REG-4
    pub fn deregister(&mut self, region: &Region) -> Result<(), SetupError> {
        self.own_region(region)?;
        let keys = self.keys_of(region);
        for (key, holder) in keys {
            self.revoke_key(key, holder, region)?;
        }
        self.exposed.deregister(region.number());
        Ok(())
    }

    /// Shares a part of a region with a peer, with some rights, under a name. The peer takes it
    /// with [`Port::accept_region`]. On a direct connection the peer maps the region; without
    /// [`Rights::WRITE`] and [`Rights::ATOMIC`] it maps it read-only.
    ///
    /// The part must begin at a multiple of eight. On a direct connection the MMU protects whole
    /// regions, and only the peer's handle enforces the part. Where that is not enough, share a
    /// region of its own, or use a mediated connection.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a part outside the region, rights that a sealed region cannot
    /// give, or a region that was deregistered. [`SetupError::Exhausted`] where the table is full.
    /// [`SetupError::PeerLeft`] where the peer has gone.
    // spec: CAP-1, CAP-8
    pub fn share(
        &mut self,
        peer: PeerId,
        region: &Region,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<Grant, SetupError> {
        self.check_share(region, &part, rights)?;
        let (holder, number) = (peer, region.number());
        let (base, len) = (part.start as u64, (part.end - part.start) as u64);
        let cover = Cover { holder, rights, region: number, base, len };
        self.known(peer)?;
        let mode = self.connection(peer)?.mode();
        let file = match mode {
            Mode::Direct if peer != self.id => Some(region.file_for(stores(rights))?),
            _ => None,
        };
        let key =
            self.responder().table.insert(cover).ok_or_else(|| SetupError::exhausted(NO_KEY))?;
        let mapped = region.mapping().len() as u64;
        let offer = offer(name, key, &cover, mapped);
        if let Err(error) = self.offer(peer, PacketKind::OfferRegion, offer, file) {
            self.end_key(key)?;
            return Err(error);
        }
        Ok(Grant { peer, key, region: region.clone(), port: self.identity })
    }

    pub(crate) fn check_share(
        &self,
        region: &Region,
        part: &Range<usize>,
        rights: Rights,
    ) -> Result<(), SetupError> {
        self.own_region(region)?;
        check_part(region, part, rights)
    }

    /// Shares the same part with every connected peer, except this port's loopback.
    ///
    /// # Errors
    /// As [`Port::share`].
    pub fn share_all(
        &mut self,
        region: &Region,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<Vec<Grant>, SetupError> {
        let peers: Vec<_> = self.peers().filter(|peer| *peer != self.id).collect();
        peers.into_iter().map(|peer| self.share(peer, region, part.clone(), rights, name)).collect()
    }

    /// Accepts the capability that `peer` shares under `name`. Blocks until it arrives, at most for
    /// the set-up time.
    ///
    /// # Errors
    /// [`SetupError::TimedOut`] where none has arrived; [`SetupError::PeerLeft`];
    /// [`SetupError::UnsafeFile`] and [`SetupError::Protocol`] where the peer's offer is not valid;
    /// [`SetupError::Fault`] where the region is this port's own and was deregistered meanwhile.
    // spec: CAP-3
    pub fn accept_region(&mut self, peer: PeerId, name: u64) -> Result<RemoteRegion, SetupError> {
        self.check_process()?;
        let mut packet = self.take_offer(peer, PacketKind::OfferRegion, name)?;
        let (key, cover, mapped) = parse_offer(&packet, peer)?;
        let mapping = match self.connection(peer)?.mode() {
            Mode::Mediated => None,
            Mode::Direct if peer == self.id => {
                let mapping = self.responder().regions[usize::from(cover.region)].clone();
                Some(mapping.ok_or(Fault::StaleKey)?)
            }
            Mode::Direct => {
                let file = packet.fds.pop().ok_or(SetupError::Protocol("a region without file"))?;
                let mapping = Mapping::foreign_region(file.as_fd(), mapped, stores(cover.rights))?;
                let tuning = self.config.tuning.as_ref();
                Some(Arc::new(match tuning {
                    Some(tuning) => mapping.tuned(tuning),
                    None => mapping,
                }))
            }
        };
        let connection = self.connection(peer)?;
        let (generation, identity) =
            (connection.link.page.generation(key.slot), connection.identity);
        let memory = mapping.map(|mapping| PeerMemory { mapping, generation });
        Ok(RemoteRegion { peer, connection: identity, key, cover, start: 0, memory })
    }

    /// Revokes a capability. When this returns, all operations with it have finished, and no later
    /// one can happen, even if the holder is stopped or has died.
    ///
    /// Blocks while the holder is inside an operation. A holder that stays inside for longer than
    /// the configured grace counts as stopped ([`Fenced::Moved`]). This process must not write the
    /// region meanwhile.
    ///
    /// # Errors
    /// [`SetupError::Fault`] where the capability was revoked already; [`SetupError::Os`] where
    /// fresh memory cannot be had.
    // spec: REV-1, REV-2, REV-4
    pub fn revoke(&mut self, grant: Grant) -> Result<Fenced, SetupError> {
        if grant.port != self.identity {
            return Err(Fault::ForeignHandle.into());
        }
        self.revoke_key(grant.key, grant.peer, &grant.region)
    }

    fn revoke_key(
        &mut self,
        key: Key,
        holder: PeerId,
        region: &Region,
    ) -> Result<Fenced, SetupError> {
        self.end_key(key)?;
        fence::heavy();
        if self.drained(&[(key, holder)]) {
            return Ok(Fenced::Drained);
        }
        let others = self.keys_of(region);
        debug_assert!(others.iter().all(|(other, _)| *other != key), "an ended key covers nothing");
        for (key, _) in &others {
            self.end_key(*key)?;
        }
        fence::heavy();
        self.drained(&others);
        region.replace_storage()?;
        Ok(Fenced::Moved)
    }

    pub(crate) fn end_key(&mut self, key: Key) -> Result<(), Fault> {
        self.close_inlet(key);
        let generation = self.responder().table.revoke(key)?;
        debug_assert!(generation > key.generation, "generations only grow");
        self.page.set_generation(key.slot, generation);
        Ok(())
    }

    /// Waits until none of the holders is inside an operation with its key, at most for the grace.
    /// Returns whether that is so.
    fn drained(&mut self, keys: &[(Key, PeerId)]) -> bool {
        let end = self.clock.within(self.config.revoke_grace);
        let mut rounds = 0;
        loop {
            let inside = keys.iter().any(|(key, holder)| {
                let connection = self.connection(*holder);
                connection.is_ok_and(|c| is_inside(c, *key))
            });
            if !inside {
                return true;
            }
            if self.clock.is_over(end) {
                return false;
            }
            self.pause(&mut rounds);
        }
    }

    fn keys_of(&self, region: &Region) -> Vec<(Key, PeerId)> {
        let number = region.number();
        self.responder().table.live(|cover| cover.region == number).collect()
    }

    /// Refuses a region that is no longer registered: its number may be another region's.
    fn own_region(&self, region: &Region) -> Result<(), SetupError> {
        if region.port() != self.identity {
            return Err(SetupError::invalid("the region belongs to another port"));
        }
        let responder = self.responder();
        match responder.regions.get(usize::from(region.number())) {
            Some(Some(mapping)) if Arc::ptr_eq(mapping, region.mapping()) => Ok(()),
            _ => Err(SetupError::invalid("the region was deregistered")),
        }
    }

    pub(crate) fn offer(
        &mut self,
        peer: PeerId,
        kind: PacketKind,
        words: [u64; 7],
        file: Option<Descriptor>,
    ) -> Result<(), SetupError> {
        self.offer_with(peer, kind, words, file.into_iter().collect())
    }

    /// Sends an offer with several files.
    pub(crate) fn offer_with(
        &mut self,
        peer: PeerId,
        kind: PacketKind,
        words: [u64; 7],
        fds: Vec<Descriptor>,
    ) -> Result<(), SetupError> {
        let own = peer == self.id;
        self.known(peer)?;
        let connection = self.connection_mut(peer)?;
        if connection.ended.is_some() {
            return Err(SetupError::peer_left().of(name_of(peer)));
        }
        if own {
            connection.offers.push(Packet { kind, words, fds });
            return Ok(());
        }
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let sent = connection.control().send(kind, words, &fds);
        self.push_out(peer);
        sent.map_err(|error| error.of(name_of(peer)))
    }

    /// Whether a peer has offered this name.
    pub(crate) fn has_offer(&mut self, peer: PeerId, kind: PacketKind, name: u64) -> bool {
        self.service_control();
        let named = |packet: &Packet| packet.kind == kind && packet.words[0] == name;
        self.connection(peer).is_ok_and(|connection| connection.offers.iter().any(named))
    }

    /// Waits for a peer's offer of this name.
    // spec: CAP-3, ERR-10, ERR-11
    pub(crate) fn take_offer(
        &mut self,
        peer: PeerId,
        kind: PacketKind,
        name: u64,
    ) -> Result<Packet, SetupError> {
        self.known(peer)?;
        let timeout = self.config.setup_timeout;
        let waits = [TOLD_AFTER.min(timeout / 2), timeout];
        for (wait, deadline) in waits.map(|wait| (wait, self.clock.within(wait))) {
            let found = self.wait_for_control(deadline, |port| {
                let connection = port.connection_mut(peer).ok()?;
                let named = |packet: &Packet| packet.kind == kind && packet.words[0] == name;
                if let Some(index) = connection.offers.iter().position(named) {
                    return Some(Ok(connection.offers.remove(index)));
                }
                connection.ended.map(|_| Err(SetupError::peer_left().of(name_of(peer))))
            });
            if let Some(found) = found {
                return found;
            }
            if !self.clock.is_over(deadline) {
                // The program has interrupted the wait.
                break;
            }
            if wait < timeout {
                tell!(WARN, "waiting for {}", self.awaited_offer((peer, kind, name), wait));
            }
        }
        Err(SetupError::timed_out(self.awaited_offer((peer, kind, name), timeout)))
    }

    /// Describes the offer that is awaited, and the offers that are there.
    #[cold]
    fn awaited_offer(
        &self,
        (peer, kind, name): (PeerId, PacketKind, u64),
        wait: Duration,
    ) -> String {
        const NAMED_MAX: usize = 8;
        let what = match kind {
            PacketKind::OfferQueue => "queue",
            PacketKind::OfferInlet => "inlet",
            _ => "region",
        };
        let offers = self.connection(peer).map(|connection| &connection.offers[..]);
        let of_kind = offers.unwrap_or_default().iter().filter(|packet| packet.kind == kind);
        let mut names: Vec<_> = of_kind.map(|packet| packet.words[0].to_string()).collect();
        names.truncate(NAMED_MAX);
        let there = match &names[..] {
            [] => format!("it has shared no {what} that was not accepted"),
            names => format!("of {what}s not accepted yet, it has shared {}", names.join(", ")),
        };
        let (peer, seconds) = (peer.index(), wait.as_secs_f32());
        format!("{what} {name} of peer {peer}, for {seconds} s now; {there}")
    }

    /// # Errors
    /// [`SetupError::NoPeer`] with the peers that there are.
    pub(crate) fn known(&self, peer: PeerId) -> Result<(), SetupError> {
        if self.connection(peer).is_ok() {
            return Ok(());
        }
        let numbers: Vec<_> = self.peers().map(|peer| peer.index()).collect();
        let there = match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) => format!("are {}, from {first} to {last}", numbers.len()),
            _ => "is none".to_owned(),
        };
        Err(SetupError::NoPeer { number: peer, there })
    }
}

/// The resource that is exhausted when a port has used all its keys.
pub(crate) const NO_KEY: &str = "key; a port has 512, and revoking a grant frees one";

/// The time after which a wait for an offer logs what it waits for.
const TOLD_AFTER: Duration = Duration::from_secs(5);

fn is_inside(connection: &Connection, key: Key) -> bool {
    let direct = connection.mode() == Mode::Direct && connection.ended.is_none();
    direct && connection.peer_is_using(key.slot)
}

fn stores(rights: Rights) -> bool {
    rights.intersects(Rights::WRITE | Rights::ATOMIC)
}

// spec: CAP-9, CAP-11
fn check_part(region: &Region, part: &Range<usize>, rights: Rights) -> Result<(), SetupError> {
    if part.start > part.end || part.end > region.len() {
        return Err(SetupError::invalid("the part leaves the region"));
    }
    if !part.start.is_multiple_of(8) {
        return Err(SetupError::invalid("a shared part begins at a multiple of eight"));
    }
    if region.sealed() && stores(rights) {
        return Err(SetupError::invalid("a sealed region is shared for reading only"));
    }
    Ok(())
}

fn offer(name: u64, key: Key, cover: &Cover, mapped: u64) -> [u64; 7] {
    debug_assert!(cover.base + cover.len <= mapped, "the part was checked");
    debug_assert!(cover.base.is_multiple_of(8), "the peer takes no other");
    let slot = u64::from(key.slot) | u64::from(cover.rights.bits()) << 16;
    let place = u64::from(key.generation) | u64::from(cover.region) << 32;
    [name, slot, place, cover.base, cover.len, mapped, 0]
}

/// Parses an offer and checks its consistency: an access beyond the mapped file would crash.
// spec: CAP-11, ERR-7
fn parse_offer(packet: &Packet, holder: PeerId) -> Result<(Key, Cover, usize), SetupError> {
    let [_, slot, place, base, len, mapped, _] = packet.words;
    let key = Key { slot: slot as u16, generation: place as u32 };
    let rights = Rights::from_bits_truncate((slot >> 16) as u8);
    let cover = Cover { holder, rights, region: (place >> 32) as u16, base, len };
    let mapped_len = usize::try_from(mapped).map_err(|_| SetupError::Protocol("region length"))?;
    let inside = base.checked_add(len).is_some_and(|end| end <= mapped);
    if inside && base.is_multiple_of(8) {
        Ok((key, cover, mapped_len))
    } else {
        Err(SetupError::Protocol("a capability outside its region"))
    }
}
