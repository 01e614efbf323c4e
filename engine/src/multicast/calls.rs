//! The view of a messenger's multicast groups.
use super::PAYLOAD_MAX;
use super::content::{Content, Kept};
use super::due::Change;
use super::effects::MemberEffects;
use super::member::GuestSend;
use super::names::{member_at, port_of};
use crate::active::outgoing::Outgoing;
use crate::active::{Call, Handler, Messenger};
use crate::error::SetupError;
use ayre_proto::active::{NAME_MAX, id_of};
use ayre_proto::group::{Answer, Group, Member, Options, Outsider, Refusal};
use ayre_proto::units::PeerId;
use std::fmt;

/// A handle of a messenger's membership in a group.
// spec: GRP-2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Membership(Member);

/// The bounds of a group, which must be equal at all members.
// spec: GRP-20
#[derive(Clone, Copy, Debug, Default)]
pub struct MulticastOptions(Options);

impl MulticastOptions {
    /// Returns the default bounds, which each method states.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of messages that a member may still lack, 1 or more. The default is 64.
    /// Further messages wait.
    #[must_use]
    pub const fn window(mut self, messages: u16) -> Self {
        self.0.window = messages;
        self
    }

    /// Sets the number of messages of one member that have no place in the order yet, 1 or more.
    /// The default is 8.
    #[must_use]
    pub const fn requests(mut self, messages: u16) -> Self {
        self.0.requests = messages;
        self
    }

    fn checked(self) -> Result<Options, SetupError> {
        let sound = self.0.window > 0 && self.0.requests > 0;
        sound.then_some(self.0).ok_or_else(|| SetupError::invalid("a group has room for a message"))
    }
}

/// The reason why an operation on a group was not done.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MulticastError {
    /// There is no room yet. Nothing was done.
    #[error(
        "too many messages wait for their place in the order: poll the messenger and try again"
    )]
    Busy,
    /// This process is no member, or is leaving.
    #[error("this process is no member of the group, or is leaving it")]
    NoMember,
    /// The peer refuses: it is no member, it has other bounds or no room, or the group is full.
    #[error(
        "peer {} refuses: it is no member of the group, has other bounds or no room, or the group \
         is full",
        .0.index()
    )]
    Refused(PeerId),
    /// A member is not connected with this process, or the asked peer has died or is no peer.
    #[error("peer {} or another member has died or is not connected", .0.index())]
    Unreachable(PeerId),
    /// The asked member has gone. It is not known whether the message was delivered.
    #[error("peer {} has gone: the message may have been delivered, or not", .0.index())]
    Unknown(PeerId),
    /// The message has more than [`PAYLOAD_MAX`] bytes.
    #[error("the message exceeds {PAYLOAD_MAX} bytes, the limit of a message to a group")]
    TooLong,
    /// The program has interrupted the call. A change of members or a message that was begun goes
    /// on.
    #[error("the program has interrupted the call: what was begun goes on")]
    Interrupted,
    /// The name or the bounds are not valid.
    #[error("invalid: {0}")]
    Invalid(&'static str),
}

crate::error::debug_is_display!(MulticastError);

impl MulticastError {
    fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => Self::Busy,
            Refusal::Outside => Self::NoMember,
        }
    }
}

/// The multicast groups of a [`Messenger`], which [`Messenger::multicast`] returns.
pub struct Multicast<'a, S>(&'a mut Messenger<S>);

impl<S> fmt::Debug for Multicast<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Multicast").field(&self.0).finish()
    }
}

impl<S> Messenger<S> {
    /// Returns the view through which this process joins groups and sends to their members.
    #[inline]
    pub const fn multicast(&mut self) -> Multicast<'_, S> {
        Multicast(self)
    }
}

impl<S> Multicast<'_, S> {
    /// Founds a group, whose only member is this process. Others join through any member. All
    /// processes must know each other by the same numbers, as the ranks of a job do. `on_change`
    /// runs whenever members come or go. Never blocks.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a name that is empty, longer than 64 bytes or taken here, and
    /// for bounds of zero.
    // spec: GRP-1
    pub fn found(
        &mut self,
        name: &str,
        options: MulticastOptions,
        on_change: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, SetupError> {
        let (id, options) = (self.0.new_group_id(name)?, options.checked()?);
        let me = self.0.out.found_group(id, options);
        self.0.watchers().push(me, on_change);
        Ok(Membership(me))
    }

    /// Joins a group through one of its members, the door. Waits until this process is a member or
    /// is refused, and runs handlers meanwhile. `on_change` first gets the view that adds this
    /// process. All later messages of the group follow.
    ///
    /// # Errors
    /// [`MulticastError::Refused`]; [`MulticastError::Unreachable`]; [`MulticastError::Invalid`] in
    /// the cases of [`Multicast::found`].
    // spec: GRP-4, GRP-24
    pub fn join(
        &mut self,
        state: &mut S,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        on_change: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError> {
        let group = self.begin_join(name, door, options, on_change)?;
        let mut is_cut_off = false;
        let has_ended = self.0.wait_until(state, |messenger| {
            match messenger.out.group_members().find(group.0) {
                Some(membership) if !membership.machine.is_in() => {
                    is_cut_off = membership.machine.view().number() > 0;
                    false
                }
                _ => true,
            }
        });
        if !has_ended {
            return Err(MulticastError::Interrupted);
        }
        if self.0.out.group_members().find(group.0).is_some() {
            return Ok(group);
        }
        let is_refused = self.0.out.port.is_alive(door) && !is_cut_off;
        let why = if is_refused { MulticastError::Refused } else { MulticastError::Unreachable };
        Err(why(door))
    }

    /// Begins to join a group through one of its members, the door. Never blocks: polls do the
    /// rest. `on_change` gets the view that adds this process, or [`Change::Ended`] if it does not
    /// become a member. Until then it is no member.
    ///
    /// # Errors
    /// [`MulticastError::Unreachable`]; [`MulticastError::Invalid`] in the cases of
    /// [`Multicast::found`].
    // spec: GRP-4, GRP-24
    pub fn begin_join(
        &mut self,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        on_change: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError> {
        let invalid = |_| {
            MulticastError::Invalid(
                "the name must have 1 to 64 bytes and be new here; no bound is 0",
            )
        };
        let id = self.0.new_group_id(name).map_err(invalid)?;
        let options = options.checked().map_err(invalid)?;
        if !self.0.out.port.is_alive(door) || door == self.0.out.port.id {
            return Err(MulticastError::Unreachable(door));
        }
        let me = self.0.out.join_group(id, member_at(door), options);
        self.0.watchers().push(me, on_change);
        Ok(Membership(me))
    }

    /// Sends a message to all members, this process among them. Waits for room, and runs handlers
    /// meanwhile. All members run the messages and changes of the group in the same order.
    ///
    /// # Errors
    /// [`MulticastError::NoMember`]; [`MulticastError::TooLong`].
    // spec: GRP-7, GRP-8, GRP-9
    pub fn send<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let invocation = Invocation::new(handler, arguments, payload)?;
        let sent = match self.0.out.send_to_group(group, &invocation) {
            Err(MulticastError::Busy) => self.0.send_when_free(state, group, &invocation),
            sent => sent,
        };
        if sent? {
            self.0.run_own(
                state,
                invocation.id,
                (invocation.arguments.as_flattened(), invocation.payload),
            );
        }
        self.0.run_due(state);
        Ok(())
    }

    /// Sends a message to all members, this process among them, if there is room. Never blocks, and
    /// runs no handler.
    ///
    /// # Errors
    /// [`MulticastError::Busy`] with nothing done; the errors of [`Multicast::send`].
    // spec: GRP-20
    pub fn try_send<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        self.0.out.send_to_group_later(group, handler, arguments, payload)
    }

    /// Sends a message to all members of a group of which this process is no member, through a
    /// member, the door. Waits until the message has its place in the order, and runs handlers
    /// meanwhile.
    ///
    /// # Errors
    /// [`MulticastError::Refused`] with nothing done; [`MulticastError::Unknown`];
    /// [`MulticastError::Unreachable`]; [`MulticastError::TooLong`].
    // spec: GRP-11
    pub fn send_through<const N: usize>(
        &mut self,
        state: &mut S,
        (name, door): (&str, PeerId),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let invocation = Invocation::new(handler, arguments, payload)?;
        if !self.0.out.port.is_alive(door) || door == self.0.out.port.id {
            return Err(MulticastError::Unreachable(door));
        }
        self.0.out.send_as_guest(id_of(name), member_at(door), &invocation.content());
        let mut answer = None;
        let is_answered = self.0.wait_until(state, |messenger| {
            answer = messenger
                .out
                .group_members()
                .guest_send
                .as_ref()
                .and_then(|guest_send| guest_send.answer);
            answer.is_some()
        });
        self.0.out.group_members().guest_send = None;
        match answer {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Refused) => Err(MulticastError::Refused(door)),
            None if !is_answered => Err(MulticastError::Interrupted),
            _ => Err(MulticastError::Unknown(door)),
        }
    }

    /// Leaves a group, behind all messages of this process. Waits until no member needs this
    /// process any more, and runs handlers meanwhile.
    ///
    /// # Errors
    /// [`MulticastError::NoMember`].
    // spec: GRP-5
    pub fn leave(&mut self, state: &mut S, group: Membership) -> Result<(), MulticastError> {
        let mut left = Err(MulticastError::Busy);
        let has_begun = self.0.wait_until(state, |messenger| {
            left = messenger.multicast().begin_leave(group);
            left != Err(MulticastError::Busy)
        });
        if !has_begun {
            return Err(MulticastError::Interrupted);
        }
        left?;
        self.0.run_due(state);
        let has_left = self
            .0
            .wait_until(state, |messenger| messenger.out.group_members().find(group.0).is_none());
        if has_left { Ok(()) } else { Err(MulticastError::Interrupted) }
    }

    /// Begins to leave a group, behind all messages of this process. Never blocks: polls do the
    /// rest. `on_change` gets [`Change::Ended`] when no member needs this process any more.
    ///
    /// # Errors
    /// [`MulticastError::Busy`] with nothing done; [`MulticastError::NoMember`].
    // spec: GRP-5
    pub fn begin_leave(&mut self, group: Membership) -> Result<(), MulticastError> {
        self.0.out.stir();
        let left = self.0.out.with_member(group.0, |machine, effects| machine.leave(effects));
        left.unwrap_or(Err(Refusal::Outside)).map_err(MulticastError::of)
    }

    /// Returns the members in the order in which they joined, as this process knows them. Returns
    /// none if this process is no member.
    pub fn members(&mut self, group: Membership) -> Vec<PeerId> {
        let membership = self.0.out.group_members().find(group.0);
        membership.map_or(Vec::new(), |membership| {
            membership.machine.view().members().map(port_of).collect()
        })
    }
}

impl<S> Messenger<S> {
    #[inline(never)]
    fn send_when_free<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        invocation: &Invocation<'_, N>,
    ) -> Result<bool, MulticastError> {
        let mut sent = Err(MulticastError::Busy);
        let has_room = self.wait_until(state, |messenger| {
            sent = messenger.out.send_to_group(group, invocation);
            sent != Err(MulticastError::Busy)
        });
        if has_room { sent } else { Err(MulticastError::Interrupted) }
    }

    fn new_group_id(&mut self, name: &str) -> Result<u32, SetupError> {
        let id = id_of(name);
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(SetupError::invalid("a group's name has 1 to 64 bytes"));
        }
        if self.out.group_members().list.iter().any(|membership| membership.id == id) {
            return Err(SetupError::invalid(
                "this process is already a member of a group of this name",
            ));
        }
        Ok(id)
    }
}

impl Call<'_> {
    /// Sends a message to all members of a group of this process, if there is room. Never blocks.
    ///
    /// # Errors
    /// The errors of [`Multicast::try_send`].
    pub fn multicast<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        self.out.send_to_group_later(group, handler, arguments, payload)
    }
}

/// A message for all members: the id of a handler, its arguments and the payload.
struct Invocation<'a, const N: usize> {
    id: u32,
    arguments: [[u8; 8]; N],
    payload: &'a [u8],
}

impl<'a, const N: usize> Invocation<'a, N> {
    fn new(
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &'a [u8],
    ) -> Result<Self, MulticastError> {
        if payload.len() > PAYLOAD_MAX - 8 * N {
            return Err(MulticastError::TooLong);
        }
        Ok(Self { id: handler.id(), arguments: arguments.map(u64::to_le_bytes), payload })
    }

    #[inline(never)]
    fn content(&self) -> Content {
        let parts = [&self.id.to_le_bytes()[..], self.arguments.as_flattened(), self.payload];
        parts.concat().into()
    }
}

impl Outgoing {
    /// Sends a message to a group. Its own handler runs in the next poll.
    fn send_to_group_later<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let invocation = Invocation::new(handler, arguments, payload)?;
        self.stir();
        if self.send_to_group(group, &invocation)? {
            self.deliver_later(group.0, invocation.content());
        }
        Ok(())
    }

    /// Sends a message to a group. Returns whether the caller must deliver it here.
    #[inline]
    fn send_to_group<const N: usize>(
        &mut self,
        group: Membership,
        invocation: &Invocation<'_, N>,
    ) -> Result<bool, MulticastError> {
        let number = invocation.id.to_le_bytes();
        let sent = match self
            .write_own(group.0, [&number, invocation.arguments.as_flattened(), invocation.payload])
        {
            Ok(false) => self.request(group.0, invocation.content()).map(|()| false),
            sent => sent,
        };
        sent.map_err(MulticastError::of)
    }

    /// Sends a message by the state machine, for a root at any place.
    #[inline(never)]
    fn request(&mut self, me: Member, content: Content) -> Result<(), Refusal> {
        let ask = |machine: &mut Group<Kept>, effects: &mut MemberEffects<'_>| {
            machine.multicast(Kept::Own(content), effects).map(|_| ())
        };
        self.with_member(me, ask).unwrap_or(Err(Refusal::Outside))
    }

    fn send_as_guest(&mut self, id: u32, door: Member, content: &Content) {
        let (me, mut guest) = (self.new_name(), Outsider::new(door));
        if let Ok(message) = guest.ask(()) {
            self.say((me, door), &message.encode(id).0, Some(content));
        }
        let guest_send = GuestSend { id, me, door, guest, answer: None };
        let other = self.group_members().guest_send.replace(guest_send);
        debug_assert!(other.is_none(), "a call waits for its own message");
    }
}
