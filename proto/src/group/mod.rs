//! Groups: messages to all members, in one order, while members come, go and die.
//!
//! ```text
//!  multicast --> [outbox] -- request --> root: [queue] -- next ticket
//!                                                            |
//!                 deliver <-- [log] <-- tree ----------------'
//!                                '----> tree, to two others
//!
//!  somebody joins, leaves or dies, or the root does and the next one leads:
//!    stop, have        no message is under way any more; who leads knows what each one has
//!    fetch, fill       all get what anybody has
//!    view, have        the next view, a ticket like any other
//!    go                all have it: who joined is in, who left is free, and messages go on
//! ```
//!
//! A change of view does not use the tree, and all of them are made in this one way.
//!
//! | module | what it is |
//! |---|---|
//! | `view` | who is in it, in what order, and the tree |
//! | `requests` | what is to be ordered: at its sender, and at the root |
//! | `log` | what somebody may lack |
//! | `order` | ordering, passing on, delivering, acknowledging |
//! | `short` | the same in fewer steps, where nothing but messages is under way |
//! | `lead` | changes of view, by the root or by who takes over |
//! | `follow` | the same at all others, and who leads |
//! | `message` | what members tell each other |
//! | `outsider` | outsiders |
mod follow;
mod lead;
mod log;
mod message;
mod order;
mod outsider;
mod requests;
mod short;
mod view;

pub use message::{Bytes, MESSAGE_BYTES, Message};
pub use outsider::{Answer, Outsider};
pub use requests::What;
pub use view::{SEATS_MAX, Seat, Standing, View};

use crate::lane::Malformed;
use lead::Change;
use log::Log;
use requests::{Outbox, Queue};
use view::{Branch, Roster};

/// The tag of what a member says, and the id of what is long.
// spec: GRP-23
pub const GROUP: u32 = 13;

/// Names a member, or an outsider: one membership, not a port. A process that joins again gets
/// another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u32);

/// Which message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its place in the order of the group.
    pub ticket: u64,
    /// Its place in the order of its sender's requests.
    pub number: u64,
    /// The member that has sent it.
    pub sender: Member,
    /// The author of the message: the sender, or an outsider whose door the sender is.
    pub origin: Member,
}

/// The bounds on the memory of a member; equal at all members.
// spec: GRP-20
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Messages that somebody may lack, 1 or more.
    pub window: u16,
    /// Requests of a member that are not ordered, 1 or more.
    pub requests: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { window: 64, requests: 8 }
    }
}

/// The reason why a call has had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many requests wait; it may be repeated.
    Busy,
    /// One that is no member, or has said that it leaves.
    Outside,
}

/// The effects of a group.
pub trait Effects<P> {
    /// A message goes to this one; to a dead one, nowhere.
    fn send(&mut self, to: Member, message: Message<'_, P>);
    /// The next message.
    fn deliver(&mut self, label: Label, payload: P);
    /// The next view, a ticket like those of messages.
    fn view_changed(&mut self, ticket: u64, view: &View);
    /// This process is no member, or will not be one: it has left, or was refused or taken for
    /// dead.
    fn left(&mut self);
    /// Whether this process was reported dead.
    fn is_dead(&self, who: Member) -> bool;
    /// Sends the next message along the tree, to all these members, with its view, and the ticket
    /// up to which all have everything. Returns the copy to keep for members that may lack it.
    fn spread(
        &mut self,
        to: impl Iterator<Item = Member>,
        (view, stable): (u64, u64),
        label: Label,
        payload: &P,
    ) -> P
    where
        P: Clone,
    {
        for child in to {
            self.send(child, Message::Tree { view, stable, label, payload: payload.clone() });
        }
        payload.clone()
    }
    /// Number of others to which each member of a view is to pass messages on, from 1 to
    /// [`SEATS_MAX`]; two by default.
    // spec: GRP-6
    fn branches(&self, _view: &View) -> u8 {
        2
    }
}

/// The state of a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It has asked this member, its door, to join.
    Joining(Member),
    /// It has a seat.
    In,
    /// It has no seat any more, and will have none.
    Left,
}

/// One member of a group.
#[derive(Debug)]
pub struct Group<P> {
    me: Member,
    options: Options,
    life: Life,
    roster: Roster,
    /// Messages of this view have been or may be ordered, for all that is known here.
    opened: bool,
    /// Whether messages that come along the tree are taken.
    listening: bool,
    /// The member to which this one has last reported its messages.
    confirmed: Option<Member>,
    /// Its place in the tree.
    branch: Branch,
    log: Log<P>,
    /// The ticket last reported to the parent: everything up to it is here and below.
    told: u64,
    outbox: Outbox<P>,
    /// The member to which the outbox was sent.
    asked: Option<Member>,
    queue: Queue<P>,
    change: Change,
}

impl<P: Clone> Group<P> {
    /// The first member of a new group: view 1, which has no ticket. Allocates.
    // spec: GRP-1
    pub fn found(me: Member, options: Options) -> Self {
        let mut group = Self::new(me, Life::In, options);
        let mut view = View { number: 1, ..View::default() };
        view.seats.push(Seat { member: me, ..Seat::default() });
        group.roster.adopt(&view, |_| false);
        group.branch = view.branch(me);
        (group.opened, group.listening, group.asked) = (true, true, Some(me));
        group.change.orders = true;
        group
    }

    /// One that asks a member to get it in. Allocates.
    // spec: GRP-4
    pub fn join(me: Member, door: Member, options: Options, effects: &mut impl Effects<P>) -> Self {
        effects.send(door, Message::Join(options));
        Self::new(me, Life::Joining(door), options)
    }

    fn new(me: Member, life: Life, options: Options) -> Self {
        assert!(options.window > 0 && options.requests > 0, "something can be under way");
        Self {
            me,
            options,
            life,
            roster: Roster::default(),
            opened: false,
            listening: false,
            confirmed: None,
            branch: Branch::default(),
            log: Log::new(options.window.into()),
            told: 0,
            outbox: Outbox::new(options.requests.into()),
            asked: None,
            queue: Queue::new(options.requests.into()),
            change: Change::default(),
        }
    }

    /// Invariants that hold between two steps, for all input of other members.
    fn check(&self) {
        debug_assert!(self.told <= self.log.have(), "reported messages are here");
        let most = usize::from(self.options.window) + 1;
        debug_assert!(self.log.len() <= most, "no more is kept than a window and a view");
        debug_assert!(self.log.len() as u64 <= self.log.have(), "kept messages have tickets");
        let requests = usize::from(self.options.requests);
        debug_assert!(self.outbox.len() <= requests, "no more waits than the options say");
        if self.life == Life::In {
            self.check_seat();
        } else {
            debug_assert!(self.outbox.len() == 0, "without a seat it asks for nothing");
            debug_assert!(self.queue.is_empty(), "without a seat it orders nothing");
        }
    }

    /// Invariants of a member with a seat.
    fn check_seat(&self) {
        self.roster.check(self.opened);
        debug_assert!(self.roster.find(self.me).is_some(), "a member has a seat");
        let members = self.roster.view.members().count();
        debug_assert!(self.branch.children.end <= members, "children are members");
        debug_assert!(self.branch.parent != Some(self.me), "nobody is its own parent");
        if self.change.orders {
            debug_assert!(self.opened, "messages are ordered in a view that is open");
            debug_assert!(self.roster.leader() == Some(self.me), "the root leads");
            debug_assert!(self.change.fetching.is_none(), "the root lacks nothing");
        }
    }

    /// Sends a message to all members, this one too, and returns its number.
    // spec: GRP-7, GRP-20
    pub fn multicast(&mut self, payload: P, effects: &mut impl Effects<P>) -> Result<u64, Refusal> {
        self.check();
        self.request(What::Message(self.me, payload), effects)
    }

    /// Leaves, behind all that this member has sent.
    // spec: GRP-5
    pub fn leave(&mut self, effects: &mut impl Effects<P>) -> Result<(), Refusal> {
        self.request(What::Leave, effects).map(|_| ())
    }

    /// The view of this member; without seats where it has never been one.
    pub const fn view(&self) -> &View {
        &self.roster.view
    }

    /// Whether it is a member, or leaves and is not free yet.
    pub fn is_in(&self) -> bool {
        self.life == Life::In
    }

    /// The highest ticket that it has delivered.
    pub const fn have(&self) -> u64 {
        self.log.have()
    }

    /// The sender, view and ticket of the message that may come next along the tree. Returns `None`
    /// while none may come.
    // spec: GRP-6, GRP-12
    pub fn next_of_tree(&self) -> Option<(Member, u64, u64)> {
        let parent = self.branch.parent.filter(|_| self.listening && self.is_in())?;
        Some((parent, self.roster.view.number(), self.log.have() + 1))
    }

    /// Requests of its own that it has not seen ordered.
    pub fn outstanding(&self) -> usize {
        self.outbox.len()
    }

    /// Messages and views that it keeps for others, and requests that wait here for a ticket.
    pub fn held(&self) -> (usize, usize) {
        (self.log.len(), self.queue.len())
    }

    /// Takes a message. One that no correct member sends is refused and changes nothing.
    // spec: GRP-22
    pub fn on_message(
        &mut self,
        from: Member,
        message: Message<'_, P>,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        self.check();
        match self.life {
            Life::Joining(door) => self.on_answer(from, door, message, effects)?,
            Life::Left => turn_away(from, &message, effects),
            Life::In if from == self.me => return Err(Malformed),
            Life::In => match self.roster.find(from) {
                Some(at) => self.on_seat(at, from, message, effects)?,
                None => self.on_stranger(from, message, effects)?,
            },
        }
        self.run(effects);
        self.check();
        Ok(())
    }

    /// This process is dead; all messages that it had sent have come before.
    // spec: GRP-15, GRP-16
    pub fn on_death(&mut self, who: Member, effects: &mut impl Effects<P>) {
        match self.life {
            Life::Joining(door) if who == door => self.depart(effects),
            Life::In => {
                // It may live, cut off from here: then it is told, if anything can reach it.
                effects.send(who, Message::Out);
                self.lose(who, effects);
                self.run(effects);
            }
            _ => {}
        }
        self.check();
    }

    fn on_seat(
        &mut self,
        at: usize,
        from: Member,
        message: Message<'_, P>,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        if message.view().is_some_and(|view| view > self.roster.view.number()) {
            // All living members have a view before messages name it: this one is taken for dead.
            self.depart(effects);
            return Ok(());
        }
        match message {
            Message::Request { number, what } => self.on_request(at, number, what),
            Message::Tree { view, stable, label, payload } => {
                self.on_tree(from, (view, stable), label, payload, effects)
            }
            Message::Ack { view, ticket } => self.on_ack(at, view, ticket, effects),
            Message::Stop { view } => self.on_stop(from, view, effects),
            Message::Have { ticket } => self.on_have(at, ticket, effects),
            Message::Seek => {
                self.on_seek(at, effects);
                Ok(())
            }
            Message::Fetch { after } => self.on_fetch(from, after, effects),
            Message::Fill { stable, label, payload } => {
                self.on_fill(from, stable, label, payload, effects)
            }
            Message::View { ticket, view } => self.on_view(from, ticket, view, effects),
            Message::Go { view } => self.on_go(from, view, effects),
            Message::Gone => {
                self.lose(from, effects);
                Ok(())
            }
            Message::Out => {
                self.depart(effects);
                Ok(())
            }
            Message::Ask { payload } => self.on_ask(from, payload, effects),
            Message::Join(_) | Message::Done | Message::Refused => Err(Malformed),
        }
    }

    /// Takes a message of a process that has no seat.
    fn on_stranger(
        &mut self,
        from: Member,
        message: Message<'_, P>,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        match message {
            Message::Join(options) => {
                let end = match options == self.options {
                    true => self.request(What::Join(from), effects),
                    false => Err(Refusal::Outside),
                };
                match end {
                    Ok(_) => {}
                    Err(Refusal::Busy) => effects.send(from, Message::Refused),
                    Err(Refusal::Outside) => effects.send(from, Message::Out),
                }
            }
            Message::Ask { payload } => self.on_ask(from, payload, effects)?,
            Message::Out | Message::Gone => {}
            Message::Done | Message::Refused => return Err(Malformed),
            // It was a member. Either it knows that it is none, or it was taken for dead.
            _ => effects.send(from, Message::Out),
        }
        Ok(())
    }

    /// A message for all members, for an outsider.
    // spec: GRP-11
    fn on_ask(
        &mut self,
        from: Member,
        payload: P,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        if self.outbox.has_from(from) {
            return Err(Malformed);
        }
        if self.request(What::Message(from, payload), effects).is_err() {
            effects.send(from, Message::Refused);
        }
        Ok(())
    }

    /// Has no seat any more, or will not have one.
    fn depart(&mut self, effects: &mut impl Effects<P>) {
        self.life = Life::Left;
        self.log.trim(self.log.have());
        self.queue.clear();
        for (_, what) in self.outbox.iter() {
            match *what {
                What::Join(waits) => effects.send(waits, Message::Gone),
                What::Message(waits, _) if waits != self.me => effects.send(waits, Message::Gone),
                _ => {}
            }
        }
        self.outbox.clear();
        // A member that does not know that the view is open waits for this one.
        for (seat, _) in self.roster.alive().filter(|(seat, _)| seat.member != self.me) {
            effects.send(seat.member, Message::Gone);
        }
        effects.left();
    }
}

/// Answers a message to a member that has left, or that is unknown.
// spec: GRP-4, GRP-11, GRP-16
pub fn turn_away<P>(from: Member, message: &Message<'_, P>, effects: &mut impl Effects<P>) {
    match *message {
        Message::Join(_) => effects.send(from, Message::Out),
        Message::Ask { .. } => effects.send(from, Message::Refused),
        Message::Have { .. } | Message::Stop { .. } | Message::Seek | Message::View { .. } => {
            effects.send(from, Message::Gone);
        }
        _ => {}
    }
}
