//! The proxy's end of a connection: a slot of the pair, from the side of the far process.
use super::Party;
use super::mail::{Mail, Posted};
use crate::endpoint::RemoteId;
use crate::mem::socket::{OFFER_WORDS, SlotMemory, State};
use crate::socket::meeting::Ends;
use crate::socket::pair::{Bell, Pair};
use ayre_proto::lane::Malformed;
use ayre_proto::socket::far::{Change, Letter, Message, Proxy, Token, Way, Words};
use ayre_proto::socket::{MARKS, Wants, is_ring};
use std::sync::Weak;

#[derive(Debug)]
pub(super) struct End {
    number: u32,
    slot: SlotMemory,
    proxy: Proxy,
    token: Token,
    /// The link is not encrypted, and leaves bulk to the kernel.
    is_plain: bool,
    /// The far process knows the name and the number.
    is_met: bool,
    /// The far writer has told its end.
    is_far_ended: bool,
    /// The number that the far process has told.
    theirs: Option<u32>,
    /// The program's end, until its far reader has gone.
    party: Option<Weak<dyn Party>>,
}

/// The side of a pair that the far process has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stand<'a> {
    pub(super) pair: &'a Pair,
    pub(super) bell: &'a Bell,
    pub(super) remote: RemoteId,
}

impl End {
    /// Takes what the program has offered. None where it has withdrawn that.
    pub(super) fn take(
        number: u32,
        slot: SlotMemory,
        (name, is_plain): (&[u64; OFFER_WORDS], bool),
    ) -> Option<Self> {
        let (token, found) = (Ends::token(name)?, slot.found(*name)?);
        let (proxy, theirs) = (Proxy::default(), None);
        let (is_met, is_far_ended) = (false, false);
        let party = None;
        let this =
            Self { number, slot, proxy, token, is_plain, is_met, is_far_ended, theirs, party };
        this.slot.take(found).then_some(this)
    }

    pub(super) fn is_named(&self, token: Token) -> bool {
        self.token == token && self.theirs.is_none()
    }

    pub(super) fn has_token(&self, token: Token) -> bool {
        self.token == token
    }

    pub(super) fn set_party(&mut self, party: Weak<dyn Party>) {
        self.party = Some(party);
    }

    pub(super) fn party(&self) -> Option<Weak<dyn Party>> {
        self.party.clone()
    }

    /// The program's end, if it is to do as its far reader wants: that has gone, or wants bytes by
    /// the kernel.
    // spec: SOCK-65, SOCK-73
    pub(super) fn follower(&mut self) -> Option<Weak<dyn Party>> {
        match self.proxy.far_way() {
            Way::Gone => self.party.take(),
            Way::Kernel if self.may_leave_ring() => self.party.clone(),
            Way::Kernel | Way::Ring => None,
        }
    }

    /// Whether the program writes to a ring of which the far reader knows.
    fn may_leave_ring(&self) -> bool {
        let segment = self.slot.written().segment;
        is_ring(segment) && self.proxy.far_progress().known == segment
    }

    /// The far process has an end of this connection, too.
    pub(super) fn meet(&mut self, theirs: u32) {
        debug_assert!(self.theirs.is_none(), "it is found by its name once");
        self.theirs = Some(theirs);
    }

    pub(super) fn is_settled(&self) -> bool {
        self.proxy.is_settled(self.slot.wants().get())
    }

    /// Whether neither side uses the slot: it can go back.
    pub(super) fn is_over(&self) -> bool {
        self.proxy.is_over()
    }

    pub(super) fn leave(&self, pair: &Pair) {
        pair.leave(self.number, &self.slot);
    }

    /// The program's words. The last ones are read first: all that it wrote before its end is told
    /// before that, and all that it took before a wish is told with that.
    // spec: SOCK-62, SOCK-65
    fn words(&self) -> Words {
        let has_left = self.slot.state() == State::MakerLeft;
        let is_ended = self.slot.is_ended();
        let wants = self.slot.wants().get();
        let taken = self.slot.taken();
        Words { written: self.slot.written(), taken, wants, is_ended, has_left }
    }

    /// Has the program ring when it writes, reads or wants something else. All that it did before
    /// is looked at afterwards.
    fn arm(&self, bell: &Bell) {
        let number = bell.number();
        self.slot.own_wants().set(match self.proxy.far_way() {
            _ if self.proxy.has_far_left() => Wants::Gone,
            Way::Ring => Wants::Bell(number),
            // Its writer may be about to write to the ring.
            Way::Kernel => Wants::KernelBell(number),
            Way::Gone => Wants::Gone,
        });
        // The far writer's end stays told.
        if !self.is_far_ended {
            let wants = if self.is_bulk() { Wants::Looking } else { Wants::Bell(number) };
            self.slot.own_room_wants().set(wants);
        }
    }

    /// Whether the program reads by the kernel what its far writer does not wait for: it has room
    /// there, and begins a ring behind the next word of the program.
    // spec: SOCK-72
    fn is_bulk(&self) -> bool {
        let segment = self.proxy.arrived().segment;
        self.is_plain && !is_ring(segment) && self.slot.taken().segment == segment
    }

    /// Sends all that is due.
    ///
    /// # Errors
    /// [`Malformed`] where the program's words cannot be true.
    pub(super) fn serve(&mut self, mail: &mut Mail, at: Stand<'_>) -> Result<Posted, Malformed> {
        self.arm(at.bell);
        if !self.is_met {
            let meet = Letter::Meet { slot: self.number, token: self.token };
            match mail.send(at.remote, &meet, (0, |_: &mut [u8]| {})) {
                Posted::Yes => self.is_met = true,
                other => return Ok(other),
            }
        }
        let Some(slot) = self.theirs else { return Ok(Posted::Yes) };
        while let Some(message) = self.proxy.due(&self.words())? {
            let span = match message {
                Message::Write { piece, .. } => piece.span(),
                _ => Default::default(),
            };
            if let Message::Wish { way: Way::Ring, .. } = message {
                self.slot.tell_link();
            }
            let fill = |into: &mut [u8]| self.slot.copy_out(span.place, into);
            let letter = Letter::About { slot, message };
            match mail.send(at.remote, &letter, (span.len as usize, fill)) {
                Posted::Yes => self.proxy.sent(&message),
                other => return Ok(other),
            }
        }
        Ok(Posted::Yes)
    }

    /// Takes a message of the far process, and tells the program.
    ///
    /// # Errors
    /// [`Malformed`] where it cannot be true.
    pub(super) fn take_message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        at: Stand<'_>,
    ) -> Result<(), Malformed> {
        let before = self.proxy.far_progress();
        let change = self.proxy.on(message, &self.words())?;
        // Before a wish: a writer whose reader has gone takes back what was not read.
        if self.proxy.far_progress() != before {
            self.slot.tell_progress(&self.proxy.far_progress());
            self.wake_writer(at.pair);
        }
        match change {
            Change::Written { span, before, after } => {
                self.slot.copy_in(span.place, &bytes[..span.len as usize]);
                self.slot.tell(&after, &before);
                if span.len > 0 && before.tail == self.slot.taken().head {
                    self.slot.stamp();
                }
                self.slot.publish(after.tail);
                self.wake_reader(at.pair);
            }
            Change::Wants(way) => {
                self.arm(at.bell);
                if way != Way::Ring {
                    // The program writes to the kernel, which may have room.
                    self.wake_writer(at.pair);
                }
                if way == Way::Gone {
                    // It passes on to the kernel what the ring has.
                    self.wake_reader(at.pair);
                }
            }
            Change::Ended => {
                self.is_far_ended = true;
                self.slot.own_room_wants().set(Wants::Gone);
                self.wake_reader(at.pair);
            }
            Change::None => {}
        }
        if self.proxy.has_far_left() {
            self.leave_to_kernel(at.pair);
        }
        Ok(())
    }

    /// The far program has left the ring, or nothing has come by one: all else is with the kernel.
    fn leave_to_kernel(&mut self, pair: &Pair) {
        self.is_far_ended = true;
        self.slot.own_room_wants().set(Wants::Gone);
        self.slot.own_wants().set(Wants::Gone);
        self.wake_reader(pair);
        self.wake_writer(pair);
    }

    fn wake_reader(&self, pair: &Pair) {
        let wants = self.slot.wants().look();
        if let Some(bell) = wants.bell()
            && self.slot.wants().take(wants)
        {
            pair.ring(bell, self.number);
        }
    }

    fn wake_writer(&self, pair: &Pair) {
        let wants = self.slot.room_wants().look();
        if let Some(bell) = wants.bell()
            && self.slot.room_wants().take(wants)
        {
            pair.ring(bell, self.number);
        }
    }

    /// The link has died, or one of both ends has lied, and the pair is over. Where bytes of a ring
    /// may be under way, the program resets the connection: its reader behind all that has come.
    /// Its writer finds a word that cannot be true. Otherwise the connection stays with the kernel,
    /// as one whose far program has closed it.
    // spec: SOCK-70
    pub(super) fn break_off(&mut self, pair: &Pair) {
        if self.proxy.has_far_left() {
            return;
        }
        let is_lost = is_ring(self.proxy.arrived().segment) && !self.is_far_ended;
        let last = self.proxy.last_progress(&self.slot.written());
        if let Some(last) = last.filter(|_| !is_lost) {
            self.slot.tell_progress(&last);
            return self.leave_to_kernel(pair);
        }
        // The program reads what has come.
        self.wake_reader(pair);
        let mut progress = self.proxy.far_progress();
        progress.taken.segment = progress.taken.segment.wrapping_add(MARKS as u32);
        self.slot.tell_progress(&progress);
        self.wake_writer(pair);
    }
}
