//! Sharing and revoking inlets.
use super::owner::{Depot, Inlet};
use super::post::RemoteInlet;
use crate::depot::served::Served;
use crate::error::{Fault, SetupError};
use crate::mem::depot::{DepotMemory, Holder, InletRules};
use crate::mem::map::Mapping;
use crate::mem::region::{PeerMemory, Region};
use crate::peer::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::port::capability::{Fenced, Grant};
use crate::settings::choice::Mode;
use crate::sys::descriptor::Descriptor;
use ayre_proto::deposit::{DATA_MAX, INLETS, Inlet as Rules, Window};
use ayre_proto::units::{Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use rustix::fd::AsFd;
use std::ops::Range;
use std::sync::Arc;

/// The options of an inlet: what its holder may do, besides the range of memory.
// spec: DEP-2
#[derive(Clone, Debug)]
pub struct InletOptions {
    rights: Rights,
    registers: Window,
    entries: Window,
    longest: u16,
    holds: bool,
}

impl InletOptions {
    /// Options that allow only stored instructions that write: messages can name no registers and
    /// carry no instructions.
    pub const fn new() -> Self {
        Self {
            rights: Rights::WRITE,
            registers: Window { base: 0, len: 0 },
            entries: Window { base: 0, len: 0 },
            longest: DATA_MAX as u16,
            holds: false,
        }
    }

    /// Sets the rights: [`Rights::READ`] and [`Rights::WRITE`] for memory, [`Rights::PROGRAM`] to
    /// carry instructions, [`Rights::NOTIFY`] for instructions to notify. Other rights have no
    /// meaning here.
    pub const fn rights(mut self, rights: Rights) -> Self {
        self.rights = rights;
        self
    }

    /// Sets the registers that messages can name: 0 names the first of these.
    pub const fn registers(mut self, window: Range<u16>) -> Self {
        self.registers = part(&window);
        self
    }

    /// Sets the stored instructions that messages can enter: 0 names the first of these.
    pub const fn entries(mut self, window: Range<u16>) -> Self {
        self.entries = part(&window);
        self
    }

    /// Sets the most bytes of data in a message. The default is 1024.
    pub const fn longest(mut self, bytes: u16) -> Self {
        self.longest = bytes;
        self
    }

    /// Makes the inlet stop at a message that faults, until its owner decides about the message. By
    /// default the sender gets the fault, and the inlet goes on.
    // spec: DEP-19
    pub const fn holds(mut self) -> Self {
        self.holds = true;
        self
    }
}

impl Default for InletOptions {
    fn default() -> Self {
        Self::new()
    }
}

const fn part(window: &Range<u16>) -> Window {
    Window { base: window.start, len: window.end.saturating_sub(window.start) }
}

impl Port {
    /// Creates a depot: 256 registers, all 0, and room for 256 instructions. Does not block.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses the memory.
    // spec: DEP-1
    pub fn create_depot(&mut self) -> Result<Depot, SetupError> {
        Depot::new(self.identity)
    }

    /// Lets a peer deposit into a part of a region, through a depot, under a name; the peer accepts
    /// the inlet with [`Port::accept_inlet`]. On a direct connection the peer maps the region and
    /// the depot, and executes its messages itself.
    ///
    /// # Errors
    /// As [`Port::share`]; [`SetupError::Invalid`] for another port's depot, or for registers or
    /// entries beyond it; [`SetupError::Exhausted`] where the depot has 64 inlets.
    // spec: DEP-2
    pub fn share_inlet(
        &mut self,
        peer: PeerId,
        depot: &Depot,
        (region, range): (&Region, Range<usize>),
        options: &InletOptions,
        name: u64,
    ) -> Result<Inlet, SetupError> {
        if !depot.is_of(self.identity) {
            return Err(SetupError::invalid("the depot belongs to another port"));
        }
        let rules = rules(options, &range)?;
        let (base, len) = (range.start as u64, rules.inlet.len);
        let stores = options.rights.contains(Rights::WRITE);
        let (grant, key) = self.grant_part(peer, region, range, options.rights)?;
        let number = match self.open_inlet(depot, &rules, key) {
            Ok(number) => number,
            Err(error) => {
                self.end_key(key)?;
                return Err(error);
            }
        };
        let inlet = Inlet::open(grant, depot, number, (base, len))
            .map_err(|_| SetupError::exhausted("depot"))?;
        let files = match self.connection(peer)?.mode() {
            Mode::Direct if peer != self.id => {
                let [rules_file, state] = depot.memory().files()?;
                vec![region.file_for(stores)?, rules_file, state]
            }
            _ => Vec::new(),
        };
        let mapped = region.mapping().len() as u64;
        let slot = u64::from(key.slot) | u64::from(number) << 16;
        let place = u64::from(key.generation) | u64::from(region.number()) << 32;
        let words = [name, slot, place, base, len, mapped, u64::from(stores)];
        if let Err(error) = self.offer_with(peer, PacketKind::OfferInlet, words, files) {
            self.end_key(key)?;
            return Err(error);
        }
        Ok(inlet)
    }

    /// Accepts the inlet that `peer` shares under `name`. Blocks until it arrives, at most for the
    /// set-up time.
    ///
    /// # Errors
    /// As [`Port::accept_region`].
    pub fn accept_inlet(&mut self, peer: PeerId, name: u64) -> Result<RemoteInlet, SetupError> {
        let packet = self.take_offer(peer, PacketKind::OfferInlet, name)?;
        let (key, number) = (key_of(&packet), (packet.words[1] >> 16) as u8);
        let range = (packet.words[3], packet.words[4]);
        if usize::from(number) >= INLETS {
            return Err(SetupError::Protocol("an inlet beyond a depot's"));
        }
        let direct = match self.connection(peer)?.mode() {
            Mode::Mediated => None,
            Mode::Direct if peer == self.id => Some(self.own_access(&packet, key)?),
            Mode::Direct => Some(mapped_access(packet, key)?),
        };
        let connection = self.connection(peer)?;
        let generation = connection.link.page.generation(key.slot);
        let direct = direct.map(|(mapping, depot)| (PeerMemory { mapping, generation }, depot));
        Ok(RemoteInlet::new((peer, connection.identity), (key, number), range, direct))
    }

    /// Revokes an inlet, as [`Port::revoke`] does a capability: when this returns, no message over
    /// it changes memory or registers any more. If its holder was executing a message and did not
    /// finish within the grace, all inlets of the depot are revoked. Blocks as [`Port::revoke`]
    /// does.
    ///
    /// # Errors
    /// As [`Port::revoke`].
    // spec: DEP-2, REV-1
    pub fn revoke_inlet(&mut self, inlet: Inlet) -> Result<Fenced, SetupError> {
        let (grant, depot) = inlet.into_parts();
        let fenced = self.revoke(grant)?;
        if fenced == Fenced::Moved {
            depot.memory().replace_state()?;
            let others = self.responder().end_inlets(depot.memory());
            for key in others {
                self.end_key(key)?;
            }
        }
        Ok(fenced)
    }

    fn open_inlet(
        &mut self,
        depot: &Depot,
        rules: &InletRules,
        key: Key,
    ) -> Result<u8, SetupError> {
        let memory = depot.memory();
        let number = {
            let responder = self.responder();
            (0..INLETS as u8).find(|number| !responder.has_inlet(memory, *number))
        };
        let number = number.ok_or_else(|| SetupError::exhausted("inlet of the depot"))?;
        debug_assert!(usize::from(number) < INLETS, "a depot has {INLETS} inlets");
        let inside = memory.enter(Holder::OWNER).ok_or_else(|| SetupError::exhausted("depot"))?;
        inside.set_inlet(number, Some(rules));
        drop(inside);
        self.responder()
            .add_inlet(key, Served { depot: memory.clone(), number, len: rules.inlet.len });
        Ok(number)
    }

    /// Closes the inlet of a key that becomes invalid, if it has one. Its number is free for
    /// another one, and later messages with the key find no inlet.
    pub(crate) fn close_inlet(&mut self, key: Key) {
        for connection in self.peers.iter_mut() {
            connection.executor.revoke_replies(key);
        }
        let Some(Served { depot, number, .. }) = self.responder().inlet(key).cloned() else {
            return;
        };
        if let Some(inside) = depot.enter(Holder::OWNER) {
            inside.set_inlet(number, None);
        }
        self.responder().remove_inlet(key);
        debug_assert!(self.responder().inlet(key).is_none(), "a key that has ended has no inlet");
    }

    /// The memory and the depot of a loopback's inlet.
    fn own_access(&self, packet: &Packet, key: Key) -> Result<DirectAccess, SetupError> {
        let responder = self.responder();
        let region = usize::from((packet.words[2] >> 32) as u16);
        let memory = responder.regions.get(region).cloned().flatten().ok_or(Fault::StaleKey)?;
        let Served { depot, .. } = responder.inlet(key).ok_or(Fault::StaleKey)?;
        let [rules, state] = depot.files()?;
        let depot = DepotMemory::foreign(rules.as_fd(), state.as_fd(), Holder::of_key(key))?;
        Ok((memory, Arc::new(depot)))
    }

    /// A key for a part of a region that allows nothing by itself: the depot holds the rights of
    /// the inlet.
    fn grant_part(
        &mut self,
        peer: PeerId,
        region: &Region,
        range: Range<usize>,
        rights: Rights,
    ) -> Result<(Grant, Key), SetupError> {
        self.check_share(region, &range, rights & (Rights::READ | Rights::WRITE))?;
        self.connection(peer)?;
        let cover = Cover {
            holder: peer,
            rights: Rights::empty(),
            region: region.number(),
            base: range.start as u64,
            len: (range.end - range.start) as u64,
        };
        let key = self
            .responder()
            .table
            .insert(cover)
            .ok_or_else(|| SetupError::exhausted(crate::port::capability::NO_KEY))?;
        Ok((Grant::new(peer, key, region.clone(), self.identity), key))
    }
}

type DirectAccess = (Arc<Mapping>, Arc<DepotMemory>);

fn rules(options: &InletOptions, range: &Range<usize>) -> Result<InletRules, SetupError> {
    let InletOptions { rights, registers, entries, longest, holds } = *options;
    let beyond = |window: Window| usize::from(window.base) + usize::from(window.len) > 256;
    if beyond(registers) || beyond(entries) {
        return Err(SetupError::invalid("windows lie within a depot's 256 places"));
    }
    if usize::from(longest) > DATA_MAX {
        return Err(SetupError::invalid("a message has at most 1024 bytes of data"));
    }
    let len = range.end.saturating_sub(range.start) as u64;
    let inlet = Rules { rights, len, registers, entries, longest };
    debug_assert!(len <= range.end as u64, "a range begins before it ends");
    Ok(InletRules { inlet, holds })
}

fn key_of(packet: &Packet) -> Key {
    Key { slot: packet.words[1] as u16, generation: packet.words[2] as u32 }
}

/// Maps the memory and the depot that a peer has handed over, and checks their consistency.
// spec: ERR-7
fn mapped_access(packet: Packet, key: Key) -> Result<DirectAccess, SetupError> {
    let [_, _, _, base, len, mapped, stores] = packet.words;
    let mapped_len = usize::try_from(mapped).map_err(|_| SetupError::Protocol("region length"))?;
    if base.checked_add(len).is_none_or(|end| end > mapped) || !base.is_multiple_of(8) {
        return Err(SetupError::Protocol("an inlet outside its region"));
    }
    let files: Result<[Descriptor; 3], _> = packet.fds.try_into();
    let [region, rules, state] = files.map_err(|_| SetupError::Protocol("files of an inlet"))?;
    let memory = Mapping::foreign_region(region.as_fd(), mapped_len, stores == 1)?;
    let depot = DepotMemory::foreign(rules.as_fd(), state.as_fd(), Holder::of_key(key))?;
    Ok((Arc::new(memory), Arc::new(depot)))
}
