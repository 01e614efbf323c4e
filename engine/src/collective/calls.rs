//! The view of a messenger's collectives.
use super::group::{Group, GroupError, PendingCollective};
use super::request::Request;
use super::running::{Progress, Running};
use super::state::{Groups, Started, State};
use super::values::{Changed, Summand, Value};
use crate::active::Messenger;
use crate::error::{ReceiveError, SetupError, name_of};
use ayre_proto::active::{NAME_MAX, id_of};
use ayre_proto::collective::{Collective, MEMBERS_MAX, Schedule};
use ayre_proto::combine::Combine;
use ayre_proto::units::PeerId;
use std::fmt;
use std::marker::PhantomData;
use zerocopy::IntoBytes;

/// The collectives of a [`Messenger`], which [`Messenger::collectives`] returns.
pub struct Collectives<'a, S>(pub(super) &'a mut Messenger<S>);

impl<S> fmt::Debug for Collectives<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collectives").field(&self.0).finish()
    }
}

impl<S> Messenger<S> {
    /// Returns the view through which this process works in groups.
    #[inline]
    pub const fn collectives(&mut self) -> Collectives<'_, S> {
        Collectives(self)
    }
}

impl<S> Collectives<'_, S> {
    /// Makes a group of processes, this one among them. All members make it under the same name,
    /// with the same members in the same order. Sends nothing and waits for nobody.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a name that is empty, too long or taken here. It is also
    /// returned for members that are repeated, more than 1024, or without this process.
    /// [`SetupError::NoPeer`]. [`SetupError::PeerLeft`] with the member that has left already.
    // spec: COLL-1, COLL-2
    pub fn group(&mut self, name: &str, members: &[PeerId]) -> Result<Group, SetupError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(SetupError::invalid("a group's name has 1 to 64 bytes"));
        }
        let own = members.iter().position(|member| *member == self.0.out.port.id);
        let own = own.ok_or_else(|| {
            SetupError::invalid("this process is not among the members of the group")
        })?;
        let mut sorted: Vec<_> = members.iter().map(|member| member.index()).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) || members.len() > MEMBERS_MAX {
            return Err(SetupError::invalid("a group has up to 1024 members, each of them once"));
        }
        let id = self.0.out.port.id;
        for member in members.iter().filter(|member| **member != id) {
            self.0.out.port.known(*member)?;
            if !self.0.out.port.is_alive(*member) {
                return Err(SetupError::peer_left().of(name_of(*member)));
            }
        }
        let index = self.0.groups().make(id_of(name), members, own)?;
        Ok(Group { index })
    }

    /// Makes a group of this process and all its peers, in the order of their numbers. In a job
    /// this is the order of the ranks.
    ///
    /// # Errors
    /// The errors of [`Collectives::group`].
    // spec: COLL-1, COLL-2
    pub fn group_of_all(&mut self, name: &str) -> Result<Group, SetupError> {
        let own = self.0.out.port.id;
        let others = self.0.out.port.peers().filter(|peer| *peer != own);
        let mut members: Vec<_> = others.chain([own]).collect();
        members.sort_unstable_by_key(|member| member.index());
        self.group(name, &members)
    }

    /// Returns the members of a group, in their order.
    ///
    /// # Errors
    /// [`GroupError::Invalid`] for a group of another messenger.
    pub fn members(&mut self, group: Group) -> Result<&[PeerId], GroupError> {
        Ok(&self.0.groups().state(group)?.member.members)
    }

    /// Fixes the schedule by which a group does a collective; `None` leaves the choice to the
    /// messenger again. All members must fix the same schedule. Floating-point sums ignore a
    /// schedule that would change their result.
    ///
    /// # Errors
    /// [`GroupError::Invalid`] if the collective has no such schedule.
    // spec: COLL-6, COLL-7
    pub fn fix_schedule(
        &mut self,
        group: Group,
        collective: Collective,
        schedule: Option<Schedule>,
    ) -> Result<(), GroupError> {
        if schedule.is_some_and(|schedule| !schedule.can(collective)) {
            return Err(GroupError::Invalid("the collective has no schedule of this kind"));
        }
        self.0.groups().state(group)?.fixed[collective as usize] = schedule;
        Ok(())
    }

    /// Waits until all members have called this. Runs handlers meanwhile, as all collectives that
    /// wait do.
    ///
    /// # Errors
    /// Any [`GroupError`], as of all collectives. After an error other than
    /// [`GroupError::Invalid`] the group does no further collective.
    // spec: COLL-5
    pub fn barrier(&mut self, state: &mut S, group: Group) -> Result<(), GroupError> {
        if self.0.is_short(group, Collective::Barrier, 0) {
            return self.0.do_short(state, group, None, &mut []);
        }
        self.complete(state, group, Request::barrier())
    }

    /// Copies the values of the member `root` to all members.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5
    pub fn broadcast<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::broadcast(root, values))
    }

    /// Combines the values of all members, number by number. The member `root` gets the result. The
    /// values of the other members are undefined afterwards.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5, COLL-7
    pub fn reduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        (root, combine): (usize, Combine),
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::reduce(root, combine, values))
    }

    /// Combines the values of all members, number by number. All members get the result.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5, COLL-7
    pub fn allreduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        let bytes = size_of_val(values);
        let is_sound = combine.is_operation(T::NUMBER);
        if is_sound && self.0.is_short(group, Collective::Allreduce, bytes) {
            let operation = Some((combine, T::NUMBER));
            return self.0.do_short(state, group, operation, values.as_mut_bytes());
        }
        self.complete(state, group, Request::<T>::allreduce(combine, values))
    }

    /// Combines values, number by number. Each member gets the result of the members up to itself,
    /// its own values included.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5, COLL-7
    pub fn scan<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::scan(combine, values))
    }

    /// Combines the values of all members, number by number. Of n members and v values, member m
    /// gets the results from m v / n to (m + 1) v / n, at their places in `values`. Its other
    /// values are undefined afterwards.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5, COLL-7
    pub fn reduce_scatter<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::reduce_scatter(combine, values))
    }

    /// Copies each member's values to `all` at the member `root`, in the order of the members.
    /// `all` is empty at the others. For members with different numbers of values see
    /// [`Request::lens`].
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5
    pub fn gather<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        (own, all): (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::gather(root, own, all))
    }

    /// Copies a part of `all` at the member `root` to each member, in the order of the members.
    /// `all` is empty at the others. For parts of different lengths see [`Request::lens`].
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5
    pub fn scatter<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        (all, own): (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::scatter(root, all, own))
    }

    /// Copies each member's values to `all` at all members, in the order of the members.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5
    pub fn allgather<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        own: &[T],
        all: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::allgather(own, all))
    }

    /// Exchanges parts between all members: part m of `out` goes to member m, and part m of `come`
    /// comes from member m. For parts of different lengths see [`Request::out_and_in`].
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-5
    pub fn alltoall<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        out: &[T],
        come: &mut [T],
    ) -> Result<(), GroupError> {
        self.complete(state, group, Request::<T>::alltoall(out, come))
    }

    /// Does the collective of a request, and waits until it is done at this member. Runs handlers
    /// meanwhile.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-4, COLL-8
    pub fn complete<T>(
        &mut self,
        state: &mut S,
        group: Group,
        request: Request<'_, T>,
    ) -> Result<(), GroupError> {
        if self.0.is_watched(group) {
            return self.0.complete_watched(state, group, request);
        }
        self.0.carry_out(state, group, request)
    }

    /// Starts the collective of a request, which goes on whenever the messenger polls. Never
    /// blocks. All members begin the collectives of a group in the same order, also those that
    /// wait.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-3, COLL-4
    pub fn start<T>(
        &mut self,
        group: Group,
        request: Request<'static, T>,
    ) -> Result<PendingCollective<T>, GroupError> {
        let running = request.parts.begin(self.0.groups().state(group)?)?;
        let groups = self.0.groups();
        groups.requests += 1;
        let number = groups.requests;
        groups.states[group.index].started.push(Started { number, running, end: None });
        (groups.has_started, groups.has_come) = (true, true);
        self.0.out.has_more = true;
        self.0.advance_started();
        Ok(PendingCollective { group, number, values: PhantomData })
    }

    /// Whether a started collective has ended at this member, well or with an error.
    // spec: COLL-4
    pub fn is_finished<T>(&self, started: &PendingCollective<T>) -> bool {
        let groups: &Groups = self.0.features.as_ref();
        let is_it = |one: &Started| one.number == started.number && one.end.is_some();
        let group = groups.states.get(started.group.index);
        group.is_some_and(|group| group.started.iter().any(is_it))
    }

    /// Waits until a started collective has ended at this member. Runs handlers meanwhile. Returns
    /// the vector that the collective has changed. It is empty if there is none.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`].
    // spec: COLL-4
    pub fn finish<T: Value>(
        &mut self,
        state: &mut S,
        started: PendingCollective<T>,
    ) -> Result<Vec<T>, GroupError> {
        let PendingCollective { group, number, .. } = started;
        loop {
            self.0.groups().has_come = false;
            self.0.advance_started();
            let groups = self.0.groups();
            let all = &mut groups.state(group)?.started;
            let at = all.iter().position(|one| one.number == number);
            let at =
                at.ok_or(GroupError::Invalid("the collective was started at another messenger"))?;
            if let Some(end) = all[at].end {
                let one = all.remove(at);
                groups.has_started = groups.states.iter().any(|group| !group.started.is_empty());
                end?;
                let values = one.running.work.finish();
                return Ok(values.and_then(Changed::into_vec).unwrap_or_default());
            }
            let own = self.0.out.port.id;
            if let Err(why) = self.0.wait_for_portion(state, own) {
                self.0.give_up_started(group, number, why);
                return Err(why);
            }
        }
    }
}

impl<S> Messenger<S> {
    /// Does the collective of a request, without looking at a watch of the group.
    pub(super) fn carry_out<T>(
        &mut self,
        state: &mut S,
        group: Group,
        request: Request<'_, T>,
    ) -> Result<(), GroupError> {
        let mut running = request.parts.begin(self.groups().state(group)?)?;
        let ended = self.drive(state, group, &mut running);
        if let Err(why) = ended {
            let (groups, out) = self.groups_and_out();
            let at = &mut groups.states[group.index].member;
            running.give_up(at, out);
            at.give_up(running.sequence(), why, out);
            return Err(why);
        }
        running.work.finish();
        Ok(())
    }

    fn drive(
        &mut self,
        state: &mut S,
        group: Group,
        running: &mut Running<'_>,
    ) -> Result<(), GroupError> {
        debug_assert!(self.groups().awaited.is_none(), "one collective is waited for at a time");
        let mut rounds = 0;
        loop {
            let (groups, out) = self.groups_and_out();
            groups.has_come = false;
            let at = &mut groups.states[group.index];
            running.is_oldest = at.is_clear();
            let progress = running.advance(&mut at.member, out);
            if groups.has_landed {
                groups.clear_landing(out);
            }
            groups.awaited = None;
            match progress? {
                Progress::Done => return Ok(()),
                Progress::Waits(on) => {
                    self.groups().awaited = Some((group.index, on, running.sequence()));
                    let waited = self.wait_for_portion(state, on);
                    if waited.is_err() {
                        self.groups().awaited = None;
                    }
                    waited?;
                }
                Progress::Busy => self.pause_for_room(state, &mut rounds)?,
            }
        }
    }

    /// Runs handlers until a portion for a collective may have arrived.
    ///
    /// # Errors
    /// [`GroupError::Interrupted`].
    pub(super) fn wait_for_portion(&mut self, state: &mut S, on: PeerId) -> Result<(), GroupError> {
        self.out.port.turns.expect_message(on);
        self.poll(state);
        if self.groups().has_come {
            return Ok(());
        }
        match self.sleep(state, None) {
            Ok(_) => self.advance_started(),
            Err(ReceiveError::PeerDied(peer)) => self.deaths.push_back(peer),
            Err(_) => return Err(GroupError::Interrupted),
        }
        Ok(())
    }

    /// Runs handlers while a peer makes room.
    ///
    /// # Errors
    /// [`GroupError::Interrupted`].
    pub(super) fn pause_for_room(
        &mut self,
        state: &mut S,
        rounds: &mut u32,
    ) -> Result<(), GroupError> {
        self.poll(state);
        self.out.port.pause(rounds);
        if self.out.port.is_interrupted() { Err(GroupError::Interrupted) } else { Ok(()) }
    }

    /// Gives a started collective up, and its group.
    fn give_up_started(&mut self, group: Group, number: u64, why: GroupError) {
        let (groups, out) = self.groups_and_out();
        let State { member, started, .. } = &mut groups.states[group.index];
        for mut one in started.extract_if(.., |one| one.number == number) {
            one.running.give_up(member, out);
            member.give_up(one.running.sequence(), why, out);
        }
        groups.has_started = groups.states.iter().any(|group| !group.started.is_empty());
    }

    /// Continues all started collectives.
    #[inline]
    pub(super) fn advance_started(&mut self) {
        let (groups, out) = self.groups_and_out();
        let has_any = || groups.states.iter().any(|state| !state.started.is_empty());
        debug_assert!(groups.has_started == has_any(), "it is known whether something was begun");
        if groups.has_started {
            groups.advance_started(out);
        }
    }
}
