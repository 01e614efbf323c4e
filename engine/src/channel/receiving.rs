//! Receiving messages by channels, and running them by priority.
use super::ends::{Coming, Ends, Logical};
use super::inbox::{Arrived, Inbox};
use crate::active::outgoing::Outgoing;
use crate::active::{Extension, LongHead, Messenger};
use crate::mem::lane::Probe;
use crate::mem::region::Region;
use ayre_proto::active::long::Piece;
use ayre_proto::active::record::DropCause;
use ayre_proto::lane::Malformed;
use ayre_proto::logical::{BACK, Back, CHANNEL, Due, Head, Start};
use ayre_proto::units::PeerId;

/// The records that a poll takes before it runs messages of channels. They are more than a lane
/// holds, so that the newest message is among them.
const LOOK_MAX: usize = 64;
/// The most messages of channels that one poll runs.
const RUN_MAX: usize = 16;

impl<S> Extension<S> for Inbox {
    fn takes(tag: u32) -> bool {
        matches!(tag, CHANNEL | BACK)
    }

    #[inline(never)]
    fn on_record(
        messenger: &mut Messenger<S>,
        _: &mut S,
        (source, tag): (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed> {
        if tag == CHANNEL {
            messenger.queue_short(source, len)?;
        } else {
            messenger.out.on_back(source, &messenger.buffer[..len])?;
            messenger.out.stir();
        }
        Ok(0)
    }

    /// Each part of a message comes as a long message of one piece.
    fn admits(long: &LongHead<'_>) -> bool {
        long.id == CHANNEL && long.piece == long.total
    }

    fn on_landed(
        messenger: &mut Messenger<S>,
        _: &mut S,
        source: PeerId,
        long: &LongHead<'_>,
        piece: Piece,
    ) -> Result<usize, Malformed> {
        messenger.take_part(source, long.arguments, piece)?;
        Ok(0)
    }

    #[inline(always)]
    fn advance(messenger: &mut Messenger<S>, state: &mut S) -> usize {
        messenger.run_by_channels(state)
    }

    fn is_due(messenger: &Messenger<S>) -> bool {
        let inbox: &Self = messenger.features.as_ref();
        inbox.is_due()
    }
}

impl<S> Messenger<S> {
    #[inline(always)]
    pub(super) fn inbox(&mut self) -> &mut Inbox {
        self.features.as_mut()
    }

    /// Takes a short message of a channel out of the buffer.
    // spec: CHAN-8, CHAN-9
    fn queue_short(&mut self, source: PeerId, len: usize) -> Result<(), Malformed> {
        let Self { features, out, buffer, .. } = self;
        let (head, bytes) = buffer[..len].split_first_chunk().ok_or(Malformed)?;
        let Head { number, begins } = Head::parse(*head)?;
        let id = begins.ok_or(Malformed)?;
        let longest = out.longest();
        let ends = out.logical().ends_or_new(source, longest);
        let due = ends.inward.on_short(number, bytes.len() as u64)?;
        let inbox: &mut Inbox = features.as_mut();
        let mut content = inbox.buffer();
        content.extend_from_slice(bytes);
        let serial = ends.serial;
        inbox.push(number, Arrived { source, serial, id, content, due });
        out.has_more = true;
        Ok(())
    }

    /// Takes a part of a long message out of the landing.
    // spec: CHAN-8, CHAN-9
    fn take_part(&mut self, source: PeerId, words: &[u8], piece: Piece) -> Result<(), Malformed> {
        let (number, start) = Start::parse(words)?;
        if let Start::First { id, total } = start {
            self.begin_by_channel(source, (number, id), total)?;
        }
        let (ends, landing) = self.out.ends_and_landing(source).ok_or(Malformed)?;
        let whole = ends.inward.on_part(number, piece.len)?;
        let coming = ends.coming.get_mut(&number).ok_or(Malformed)?;
        if coming.dropped.is_none() {
            append(&mut coming.content, landing, piece);
        }
        let serial = ends.serial;
        if ends.heed_due(number) {
            self.out.stir();
        }
        if let Some(due) = whole
            && let Some(coming) =
                self.out.logical().ends(source).and_then(|ends| ends.coming.remove(&number))
        {
            self.arrive(number, (source, serial), coming, due);
        }
        Ok(())
    }

    fn begin_by_channel(
        &mut self,
        source: PeerId,
        (number, id): (u8, u32),
        total: u64,
    ) -> Result<(), Malformed> {
        let arguments = self.arguments_of(source, id);
        let longest = self.out.longest();
        let dropped = match arguments {
            None => Some(DropCause::Unknown),
            Some(bytes) if total < bytes || total - bytes > longest as u64 => {
                Some(DropCause::Malformed)
            }
            Some(_) => None,
        };
        let ends = self.out.logical().ends_or_new(source, longest);
        ends.inward.begin(number, total, dropped.is_none())?;
        let content = Vec::new();
        let other = ends.coming.insert(number, Coming { id, content, dropped });
        debug_assert!(other.is_none(), "one message of a channel comes at a time");
        Ok(())
    }

    /// Queues a message that has arrived whole.
    // spec: CHAN-2
    fn arrive(&mut self, number: u8, (source, serial): (PeerId, u32), coming: Coming, due: Due) {
        let Coming { id, content, dropped } = coming;
        match dropped {
            Some(cause) => {
                self.out.fail(source, id, cause);
                self.out.ran_by_channel((source, serial), number, due);
            }
            None => {
                self.inbox().push(number, Arrived { source, serial, id, content, due });
                self.out.has_more = true;
            }
        }
    }

    /// Takes further arrived messages, and runs those that are next. Returns the number of handlers
    /// that were run.
    // spec: CHAN-6, CHAN-11
    pub(super) fn run_by_channels(&mut self, state: &mut S) -> usize {
        if !self.inbox().is_due() {
            return 0;
        }
        let mut ran = 0;
        for _ in 0..LOOK_MAX {
            let found = self.out.port.try_recv_hot(&mut self.buffer[..]);
            let Probe::Taken(next) = found else { break };
            ran += usize::from(self.take(state, &next));
        }
        for _ in 0..RUN_MAX {
            let Some((number, message)) = self.inbox().pop() else { break };
            let Arrived { source, serial, id, content, due } = message;
            ran += usize::from(self.run_body(state, (source, id), &content));
            self.inbox().take_back(content);
            self.out.ran_by_channel((source, serial), number, due);
        }
        ran
    }
}

impl Outgoing {
    /// Gives back the credit of a message that was run or dropped.
    // spec: CHAN-3
    fn ran_by_channel(&mut self, (source, serial): (PeerId, u32), number: u8, due: Due) {
        let Some(ends) = self.logical().ends(source).filter(|ends| ends.serial == serial) else {
            return;
        };
        let others_too = ends.inward.ran(number, due);
        let mut is_due = ends.heed_due(number);
        if others_too {
            let coming: Vec<_> = ends.coming.keys().copied().collect();
            coming.into_iter().for_each(|other| is_due |= ends.heed_due(other));
        }
        if is_due {
            self.stir();
        }
    }

    /// Takes a peer's record of returned credit.
    // spec: CHAN-3, CHAN-9
    fn on_back(&mut self, from: PeerId, said: &[u8]) -> Result<(), Malformed> {
        let Back { number, back } = Back::parse(said)?;
        let ends = self.logical().ends(from).ok_or(Malformed)?;
        ends.outward.on_back(number, back)
    }

    fn ends_and_landing(&mut self, source: PeerId) -> Option<(&mut Ends, &Region)> {
        let Self { outbound, peers, .. } = self;
        let logical: &mut Logical = outbound.as_mut();
        Some((logical.ends(source)?, peers.get(source.index())?.landing()?))
    }
}

/// Copies a piece of a landing behind what has come before it.
fn append(content: &mut Vec<u8>, landing: &Region, piece: Piece) {
    let at = content.len();
    // Memory is reserved for arrived bytes only. The sender may have announced more than it will
    // send.
    content.resize(at + piece.len as usize, 0);
    landing.read(piece.offset as usize, &mut content[at..]);
}
