//! Groups as programs use them.
use super::PAYLOAD_MAX;
use super::causes::Causes;
use super::content::{Content, Kept};
use super::due::Change;
use super::member::Visit;
use super::names::{member_at, port_of};
use crate::active::outgoing::Outgoing;
use crate::active::{Call, Handler, Messenger};
use crate::error::SetupError;
use ayre_proto::active::{NAME_MAX, id_of};
use ayre_proto::group::{Answer, Group, Guest, Member, Options, Refusal};
use ayre_proto::units::PeerId;
use std::fmt;

/// A membership of a messenger in a group.
// spec: GRP-2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Membership(Member);

/// Bounds of a group, the same at all members.
// spec: GRP-20
#[derive(Clone, Copy, Debug, Default)]
pub struct MulticastOptions(Options);

impl MulticastOptions {
    /// The defaults: see each.
    pub fn new() -> Self {
        Self::default()
    }

    /// Messages that somebody may lack yet, 1 or more: 64. Beyond these a message waits.
    #[must_use]
    pub const fn window(mut self, messages: u16) -> Self {
        self.0.window = messages;
        self
    }

    /// Messages of one member that have no place in the order yet, 1 or more: 8.
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

/// Why something was not done with a group.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MulticastError {
    /// There is no room yet; nothing has happened.
    #[error("too many messages wait for their place in the order")]
    Busy,
    /// This process is no member, or leaves.
    #[error("no member of the group")]
    NoMember,
    /// The peer is no member, has other bounds or no room, or the group is full.
    #[error("peer {} refuses", .0.index())]
    Refused(PeerId),
    /// A member is not connected with this process, or the one that was asked has died.
    #[error("peer {} or another member cannot be reached", .0.index())]
    Unreachable(PeerId),
    /// The member that was asked has gone: whether the message was delivered is not known.
    #[error("peer {} has gone, perhaps after it had passed the message on", .0.index())]
    Unknown(PeerId),
    /// More than [`PAYLOAD_MAX`] bytes.
    #[error("a message of more than {PAYLOAD_MAX} bytes")]
    TooLong,
    /// What was asked for contradicts itself.
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
    /// Founds a group, whose only member is this process. Others join through any member, or have
    /// messages sent by one. All of them must know each other by the same numbers, as the processes
    /// of a job do. `on_change` runs where members come and go.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a name that is empty, too long or taken here, and for bounds of
    /// zero.
    // spec: GRP-1
    pub fn found(
        &mut self,
        name: &str,
        options: MulticastOptions,
        on_change: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, SetupError> {
        let (id, options) = (self.0.new_club(name)?, options.checked()?);
        let me = self.0.out.found_club(id, options);
        self.0.watchers().push(me, on_change);
        Ok(Membership(me))
    }

    /// Joins a group through one of its members. Waits until this process is in, or is refused, and
    /// runs handlers meanwhile. It gets all messages behind the view that it is new in, which
    /// `on_change` hears of first.
    ///
    /// # Errors
    /// [`MulticastError::Refused`]; [`MulticastError::Unreachable`];
    /// [`MulticastError::Invalid`] as for [`Multicast::found`].
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
        self.0.wait_until(state, |messenger| match messenger.out.clubs().find(group.0) {
            Some(club) if !club.machine.is_in() => {
                is_cut_off = club.machine.view().number() > 0;
                false
            }
            _ => true,
        });
        if self.0.out.clubs().find(group.0).is_some() {
            return Ok(group);
        }
        let is_refused = self.0.out.port.is_alive(door) && !is_cut_off;
        let why = if is_refused { MulticastError::Refused } else { MulticastError::Unreachable };
        Err(why(door))
    }

    /// The same without waiting: polls get this process in, and `on_change` hears of the view that
    /// it is new in, or of [`Change::Ended`] where it does not become a member. Until then it is
    /// none.
    ///
    /// # Errors
    /// [`MulticastError::Unreachable`]; [`MulticastError::Invalid`] as for [`Multicast::found`].
    // spec: GRP-4, GRP-24
    pub fn begin_join(
        &mut self,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        on_change: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError> {
        let invalid = |_| MulticastError::Invalid("a name, or bounds");
        let id = self.0.new_club(name).map_err(invalid)?;
        let options = options.checked().map_err(invalid)?;
        if !self.0.out.port.is_alive(door) || door == self.0.out.port.id {
            return Err(MulticastError::Unreachable(door));
        }
        let me = self.0.out.join_club(id, member_at(door), options);
        self.0.watchers().push(me, on_change);
        Ok(Membership(me))
    }

    /// Sends a message to all members, this one among them; waits for room, and runs handlers
    /// meanwhile. All members run it in the same order among all messages and changes of the group.
    ///
    /// # Errors
    /// [`MulticastError::NoMember`], [`MulticastError::TooLong`].
    // spec: GRP-7, GRP-8, GRP-9
    pub fn send<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let said = Said::new(handler, arguments, payload)?;
        let sent = match self.0.out.send_to_group(group, &said) {
            Err(MulticastError::Busy) => self.0.send_when_free(state, group, &said),
            sent => sent,
        };
        if sent? {
            self.0.run_own(state, said.id, (said.arguments.as_flattened(), said.payload));
        }
        self.0.run_due(state);
        Ok(())
    }

    /// The same where there is room, or nothing. Runs no handler.
    ///
    /// # Errors
    /// [`MulticastError::Busy`]; as [`Multicast::send`].
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

    /// Has a member, the door, send a message to all members of its group: for a process that is
    /// none. Waits until it has its place in the order, and runs handlers meanwhile.
    ///
    /// # Errors
    /// [`MulticastError::Refused`], with nothing done; [`MulticastError::Unknown`];
    /// [`MulticastError::Unreachable`], [`MulticastError::TooLong`].
    // spec: GRP-11
    pub fn send_through<const N: usize>(
        &mut self,
        state: &mut S,
        (name, door): (&str, PeerId),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let said = Said::new(handler, arguments, payload)?;
        if !self.0.out.port.is_alive(door) || door == self.0.out.port.id {
            return Err(MulticastError::Unreachable(door));
        }
        self.0.out.visit(id_of(name), member_at(door), &said.content());
        let mut answer = None;
        self.0.wait_until(state, |messenger| {
            answer = messenger.out.clubs().visit.as_ref().and_then(|visit| visit.answer);
            answer.is_some()
        });
        self.0.out.clubs().visit = None;
        match answer {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Refused) => Err(MulticastError::Refused(door)),
            _ => Err(MulticastError::Unknown(door)),
        }
    }

    /// Leaves, behind all that this process has sent. Waits until nobody needs it any more, and
    /// runs handlers meanwhile.
    ///
    /// # Errors
    /// [`MulticastError::NoMember`].
    // spec: GRP-5
    pub fn leave(&mut self, state: &mut S, group: Membership) -> Result<(), MulticastError> {
        let mut left = Err(MulticastError::Busy);
        self.0.wait_until(state, |messenger| {
            left = messenger.multicast().begin_leave(group);
            left != Err(MulticastError::Busy)
        });
        left?;
        self.0.run_due(state);
        self.0.wait_until(state, |messenger| messenger.out.clubs().find(group.0).is_none());
        Ok(())
    }

    /// The same without waiting: polls go on with it, and `on_change` hears of [`Change::Ended`]
    /// when nobody needs this process any more.
    ///
    /// # Errors
    /// [`MulticastError::Busy`], with nothing done; [`MulticastError::NoMember`].
    // spec: GRP-5
    pub fn begin_leave(&mut self, group: Membership) -> Result<(), MulticastError> {
        self.0.out.stir();
        let left = self.0.out.with_club(group.0, |machine, causes| machine.leave(causes));
        left.unwrap_or(Err(Refusal::Outside)).map_err(MulticastError::of)
    }

    /// The members as this process knows them, the one that has been in longest first; none where
    /// it is no member.
    pub fn members(&mut self, group: Membership) -> Vec<PeerId> {
        let club = self.0.out.clubs().find(group.0);
        club.map_or(Vec::new(), |club| club.machine.view().members().map(port_of).collect())
    }
}

impl<S> Messenger<S> {
    #[inline(never)]
    fn send_when_free<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        said: &Said<'_, N>,
    ) -> Result<bool, MulticastError> {
        let mut sent = Err(MulticastError::Busy);
        self.wait_until(state, |messenger| {
            sent = messenger.out.send_to_group(group, said);
            sent != Err(MulticastError::Busy)
        });
        sent
    }

    fn new_club(&mut self, name: &str) -> Result<u32, SetupError> {
        let id = id_of(name);
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(SetupError::invalid("a group's name has 1 to 64 bytes"));
        }
        if self.out.clubs().list.iter().any(|club| club.id == id) {
            return Err(SetupError::invalid("a member of a group of this name"));
        }
        Ok(id)
    }
}

impl Call<'_> {
    /// Sends a message to all members of a group that this process is in, where there is room.
    ///
    /// # Errors
    /// As [`Multicast::try_send`].
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

/// What all members get: a handler's number, its arguments and the payload.
struct Said<'a, const N: usize> {
    id: u32,
    arguments: [[u8; 8]; N],
    payload: &'a [u8],
}

impl<'a, const N: usize> Said<'a, N> {
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
    /// Where nobody runs at once what this has delivered.
    fn send_to_group_later<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let said = Said::new(handler, arguments, payload)?;
        self.stir();
        if self.send_to_group(group, &said)? {
            self.deliver_later(group.0, said.content());
        }
        Ok(())
    }

    /// True where its caller is to deliver it here.
    #[inline]
    fn send_to_group<const N: usize>(
        &mut self,
        group: Membership,
        said: &Said<'_, N>,
    ) -> Result<bool, MulticastError> {
        let number = said.id.to_le_bytes();
        let sent =
            match self.write_own(group.0, [&number, said.arguments.as_flattened(), said.payload]) {
                Ok(false) => self.request(group.0, said.content()).map(|()| false),
                sent => sent,
            };
        sent.map_err(MulticastError::of)
    }

    /// The long way: by the machine, to a root wherever it is.
    #[inline(never)]
    fn request(&mut self, me: Member, content: Content) -> Result<(), Refusal> {
        let ask = |machine: &mut Group<Kept>, causes: &mut Causes<'_>| {
            machine.multicast(Kept::Own(content), causes).map(|_| ())
        };
        self.with_club(me, ask).unwrap_or(Err(Refusal::Outside))
    }

    fn visit(&mut self, id: u32, door: Member, content: &Content) {
        let (me, mut guest) = (self.new_name(), Guest::new(door));
        if let Ok(message) = guest.ask(()) {
            self.say((me, door), &message.encode(id).0, Some(content));
        }
        let visit = Visit { id, me, door, guest, answer: None };
        let other = self.clubs().visit.replace(visit);
        debug_assert!(other.is_none(), "a call waits for its own message");
    }
}
