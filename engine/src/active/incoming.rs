//! Receiving records: running handlers, assembling long messages, taking announced names and
//! landings.
use super::call::Call;
use super::failures::DroppedCall;
use super::handlers::{Entry, Handlers};
use super::messenger::{Extension, Features, LongHead, Messenger};
use super::outgoing::Outgoing;
use super::peers::{Coming, Landing, Name, Payload, Peer};
use crate::mem::region::Region;
use crate::port::message::Message;
use ayre_proto::active::LONGEST;
use ayre_proto::active::long::{Piece, Taken, cause_to_drop};
use ayre_proto::active::record::{DropCause, Pulled, RECORD_BYTES, Record, is_handler};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::PeerId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The buffer for a peer's long messages keeps at least this capacity. It keeps more while messages
/// use a quarter of it.
const KEPT_MAX: usize = 1 << 20;
/// The most names that a peer may announce.
const NAMES_MAX: usize = 4096;
const _: () = assert!(RECORD_BYTES < EAGER_MAX, "the longest record comes whole");
const _: () = assert!(KEPT_MAX <= LONGEST, "no more is kept than may come");

impl<S> Messenger<S> {
    /// Takes the message in the buffer. Returns whether a handler has run.
    #[inline(always)]
    pub(crate) fn take(&mut self, state: &mut S, message: &Message) -> bool {
        let Message { source, tag, len } = *message;
        debug_assert!(len <= self.buffer.len(), "a message has room in the buffer");
        debug_assert!(!is_handler(tag) || !Features::<S>::takes(tag), "a tag is one's alone");
        if is_handler(tag) {
            return self.run_short(state, source, tag, len);
        }
        if Features::<S>::takes(tag) {
            let ran = Features::<S>::on_record(self, state, (source, tag), len);
            return self.unless_malformed(source, ran) > 0;
        }
        self.take_record(state, message)
    }

    #[inline(always)]
    fn run_short(&mut self, state: &mut S, source: PeerId, id: u32, len: usize) -> bool {
        let Self { handlers, out, buffer, .. } = self;
        run(handlers, out, state, (source, id), |at| buffer[..len].split_at_checked(at))
    }

    /// Ends the connection of a peer that has sent a malformed record.
    #[inline(always)]
    fn unless_malformed(&mut self, source: PeerId, ran: Result<usize, Malformed>) -> usize {
        ran.unwrap_or_else(|Malformed| {
            self.out.port.end_malformed_lane(source);
            0
        })
    }

    /// Runs the handler of a message that a feature has taken. `body` is its arguments, then its
    /// payload.
    pub(crate) fn run_body(&mut self, state: &mut S, from: (PeerId, u32), body: &[u8]) -> bool {
        let split = |at| body.split_at_checked(at);
        run(&mut self.handlers, &mut self.out, state, from, split)
    }

    /// Returns the bytes of the arguments in a peer's messages to a handler, or none if the handler
    /// is not known.
    pub(crate) fn arguments_of(&mut self, source: PeerId, id: u32) -> Option<u64> {
        let index = self.out.known(source, id, self.handlers.find(id))?;
        Some(8 * u64::from(self.handlers.entry(index).arguments))
    }

    /// Runs the handler of a message that this port has sent to itself, without a copy.
    pub(crate) fn run_own(&mut self, state: &mut S, id: u32, (arguments, payload): (&[u8], &[u8])) {
        let Self { handlers, out, .. } = self;
        let source = out.port.id;
        let split = |len| (len == arguments.len()).then_some((arguments, payload));
        run(handlers, out, state, (source, id), split);
    }

    #[inline(never)]
    fn take_record(&mut self, state: &mut S, message: &Message) -> bool {
        let Message { source, tag, len } = *message;
        // A longer message is no record. Its first bytes alone could be taken for one.
        let mut bytes = [0; RECORD_BYTES + 1];
        let len = len.min(bytes.len());
        bytes[..len].copy_from_slice(&self.buffer[..len]);
        let ran = self.heed(state, source, Record::parse(tag, &bytes[..len]));
        self.unless_malformed(source, ran) > 0
    }

    // spec: AM-15
    fn heed(
        &mut self,
        state: &mut S,
        source: PeerId,
        record: Result<Record<'_>, Malformed>,
    ) -> Result<usize, Malformed> {
        match record? {
            Record::Announce { id, arguments, name } => {
                let ours = self.handlers.find(id).map(|index| {
                    let entry = self.handlers.entry(index);
                    entry.arguments == arguments && entry.name.as_deref() == Some(name)
                });
                let name = Name { id, arguments, name: name.into() };
                self.out.heard_of(source, name, ours)?;
            }
            Record::Sync(round) => {
                let syncs = &mut self.out.peer(source).syncs;
                *syncs = if round == *syncs + 1 { round } else { return Err(Malformed) };
            }
            Record::Failed(handler, cause) => {
                self.out.report(DroppedCall { peer: source, handler, cause, is_ours: true });
            }
            Record::Empty(id) => return Ok(self.run_short(state, source, id, 0).into()),
            Record::Long { id, total, piece, arguments } => {
                let dropped = self.dropped(source, (id, arguments), total);
                self.out.peer(source).inward.begin(id, total, dropped)?;
                let long = LongHead { id, arguments, total, piece };
                return self.begin_long(state, source, &long);
            }
            Record::Piece(len) => return self.take_piece(state, source, len),
            Record::Pull { id, total, address, arguments } => {
                let dropped = self.dropped(source, (id, arguments), total);
                let peer = self.out.peer(source);
                peer.inward.on_pull(id, total, dropped)?;
                peer.coming.begin(arguments);
                return Ok(self.pull(state, source, (address, total as usize)).into());
            }
            Record::Pulled(pulled) => self.out.peer(source).outward.on_pulled(pulled)?,
            Record::Room(taken) => self.out.peer(source).outward.on_room(taken)?,
            Record::Want => self.out.peer(source).inward.on_want()?,
            Record::Landing(bytes) => self.out.peer(source).outward.on_landing(bytes)?,
        }
        self.out.stir();
        Ok(0)
    }

    /// Returns why a long message is dropped, if it is. Features judge their own messages.
    // spec: AM-5
    fn dropped(
        &mut self,
        source: PeerId,
        (id, arguments): (u32, &[u8]),
        total: u64,
    ) -> Option<DropCause> {
        let index = self.out.known(source, id, self.handlers.find(id));
        let takes = index.map(|index| self.handlers.entry(index).arguments);
        let cause = || cause_to_drop(takes, arguments, (total, self.out.options.longest as u64));
        if is_handler(id) { cause() } else { None }
    }

    /// Takes the first piece of a long message.
    // spec: AM-12, AM-15
    fn begin_long(
        &mut self,
        state: &mut S,
        source: PeerId,
        long: &LongHead<'_>,
    ) -> Result<usize, Malformed> {
        let is_feature = !is_handler(long.id);
        if is_feature && !Features::<S>::admits(long) {
            return Err(Malformed);
        }
        if is_feature && long.piece == long.total {
            let Taken { piece, .. } = self.out.peer(source).inward.take(long.piece)?;
            let ran = Features::<S>::on_landed(self, state, source, long, piece)?;
            self.out.stir();
            return Ok(ran);
        }
        if !is_feature {
            self.out.comes(source, long.total);
        }
        self.out.peer(source).coming.begin(long.arguments);
        self.take_piece(state, source, long.piece)
    }

    // spec: AM-5, AM-12
    fn take_piece(&mut self, state: &mut S, source: PeerId, len: u64) -> Result<usize, Malformed> {
        let Peer { landing, coming, inward, .. } = self.out.peer(source);
        let Some(Landing { region, .. }) = landing else { return Err(Malformed) };
        let Taken { piece, is_last } = inward.take(len)?;
        let end = piece.offset + piece.len;
        debug_assert!(end <= region.len() as u64, "what is taken lies in the landing");
        let (id, dropped) = inward.message();
        if dropped.is_none() {
            coming.append(region, piece);
        }
        self.out.stir();
        if !is_last {
            return Ok(0);
        }
        if is_handler(id) {
            self.out.has_come(source);
            return Ok(self.run_long(state, source).into());
        }
        let coming = &mut self.out.peer(source).coming;
        let arguments = std::mem::take(&mut coming.arguments);
        let payload = coming.payload[..coming.len].to_vec();
        Features::<S>::on_long(self, state, source, (id, &arguments), payload)
    }

    /// Reads a long message from its sender's memory. Returns whether a handler has run.
    // spec: INJ-6, INJ-7
    fn pull(&mut self, state: &mut S, source: PeerId, (address, total): (u64, usize)) -> bool {
        let (_, dropped) = self.out.peer(source).inward.message();
        let pulled = match dropped {
            Some(_) => Pulled::Whole,
            None => self.out.pull(source, address, total),
        };
        self.out.peer(source).inward.answer(pulled);
        self.out.tell_pulled(source);
        pulled == Pulled::Whole && self.run_long(state, source)
    }

    // spec: AM-5, AM-7
    fn run_long(&mut self, state: &mut S, source: PeerId) -> bool {
        let Peer { coming: Coming { arguments, payload, len }, inward, .. } = self.out.peer(source);
        let ((id, dropped), len) = (inward.message(), *len);
        debug_assert!(len <= payload.len(), "what has come is there");
        let index = self.handlers.find(id);
        let (Some(index), None) = (index, dropped) else {
            self.out.fail(source, id, dropped.unwrap_or(DropCause::Unknown));
            return false;
        };
        let (arguments, mut payload) =
            (std::mem::take(arguments), std::mem::replace(payload, Payload::new(64)));
        let body = (&arguments[..], &payload[..len]);
        run_entry(self.handlers.entry(index), &mut self.out, state, source, body);
        if len < payload.len() / 4 {
            payload.truncate(len.max(KEPT_MAX));
            payload.shrink_to_fit();
        }
        self.out.peer(source).coming.payload = payload;
        true
    }
}

/// Runs a handler on arguments and payload. `split` divides them at a number of bytes of arguments.
/// Returns whether the handler exists.
// spec: AM-5, AM-7
#[inline(always)]
fn run<'a, S>(
    handlers: &mut Handlers<S>,
    out: &mut Outgoing,
    state: &mut S,
    (source, id): (PeerId, u32),
    split: impl FnOnce(usize) -> Option<(&'a [u8], &'a [u8])>,
) -> bool {
    let Some(index) = out.known(source, id, handlers.find(id)) else {
        out.fail(source, id, DropCause::Unknown);
        return false;
    };
    let entry = handlers.entry(index);
    let Some(body) = split(8 * usize::from(entry.arguments)) else {
        out.fail(source, id, DropCause::Malformed);
        return false;
    };
    run_entry(entry, out, state, source, body);
    true
}

#[inline(always)]
fn run_entry<S>(
    entry: &mut Entry<S>,
    out: &mut Outgoing,
    state: &mut S,
    source: PeerId,
    (arguments, payload): (&[u8], &[u8]),
) {
    let mut call = Call { out, source };
    let run = AssertUnwindSafe(|| (entry.run)(state, &mut call, arguments, payload));
    if catch_unwind(run).is_err() {
        out.fail(source, entry.id, DropCause::Panicked);
    }
}

impl Coming {
    fn begin(&mut self, arguments: &[u8]) {
        self.arguments.clear();
        self.arguments.extend_from_slice(arguments);
        self.len = 0;
    }

    /// Copies a piece behind those that have arrived before.
    fn append(&mut self, landing: &Region, piece: Piece) {
        let (at, end) = (self.len, self.len + piece.len as usize);
        debug_assert!(at < end, "a piece has bytes, behind those that have come");
        if end > self.payload.len() {
            // Memory is reserved for arrived bytes only. The sender may have announced more than it
            // will send.
            self.payload.resize(end.max(2 * at), 0);
        }
        debug_assert!(end <= self.payload.len(), "there is room for it");
        landing.read(piece.offset as usize, &mut self.payload[at..end]);
        self.len = end;
    }
}

impl Outgoing {
    /// Returns the index of a handler, unless its id means another handler at the peer.
    // spec: AM-3
    #[inline(always)]
    pub(crate) fn known(&mut self, source: PeerId, id: u32, index: Option<usize>) -> Option<usize> {
        if self.conflicts && self.peer(source).conflicts.contains(&id) { None } else { index }
    }

    /// Takes an announced name of a peer. `ours` is whether the own handler of that id is the same.
    // spec: AM-3
    fn heard_of(
        &mut self,
        source: PeerId,
        name: Name,
        ours: Option<bool>,
    ) -> Result<(), Malformed> {
        let peer: &mut Peer = self.peer(source);
        let is_known = peer.announced.iter().any(|known| known.id == name.id);
        if is_known || peer.announced.len() == NAMES_MAX {
            return Err(Malformed);
        }
        if ours == Some(false) {
            peer.conflicts.push(name.id);
            self.conflicts = true;
        }
        self.peer(source).announced.push(name);
        Ok(())
    }
}
