//! Groups that adapt, and groups that are recorded.
use super::calls::Collectives;
use super::group::{Group, GroupError, NO_GROUP};
use super::recorder::{CALLS_MAX, RecordedCall, Recorder};
use super::request::Request;
use super::state::Groups;
use super::watch::Watch;
use crate::active::Messenger;
use ayre_proto::collective::forecast::FORECAST_MAX;
use std::io::{self, Write};
use std::num::NonZeroU32;

impl<S> Collectives<'_, S> {
    /// Lets a group choose its schedules by the load of its links. Its members exchange the loads
    /// after `every` calls; `None` returns to the usual schedules. Waits until all members have
    /// called this with the same number. Runs handlers meanwhile. From then on either all members
    /// wait for a collective, or all of them start it.
    ///
    /// A schedule that the program has fixed is used all the same.
    ///
    /// # Errors
    /// The errors of [`Collectives::barrier`]. A group that adapts has up to 64 members.
    // spec: COLL-17
    pub fn adapt(
        &mut self,
        state: &mut S,
        group: Group,
        every: Option<NonZeroU32>,
    ) -> Result<(), GroupError> {
        self.0.take_rows(state, group)?;
        let at = self.0.groups().state(group)?;
        let place = at.member.place();
        if every.is_some() && place.members > FORECAST_MAX {
            return Err(GroupError::Invalid("a group that adapts has up to 64 members"));
        }
        let has_adaptive = at.watch_mut().set_adaptive(every, place);
        at.unwatch();
        if has_adaptive {
            self.0.look_at_links(group);
            self.0.watch(group)?.learn();
            self.0.send_row(group)?;
            self.0.take_rows(state, group)?;
        }
        Ok(())
    }

    /// Records the last `calls` calls of a group from now on; 0 ends the recording. Calls that do
    /// not wait, or that fail, are not recorded. Other members need not record.
    ///
    /// # Errors
    /// [`GroupError::Invalid`] for more than 2^24 calls, or a group of another messenger.
    // spec: COLL-18
    pub fn record(&mut self, group: Group, calls: usize) -> Result<(), GroupError> {
        if calls > CALLS_MAX {
            return Err(GroupError::Invalid("a recording has up to 2^24 calls"));
        }
        let now = self.0.out.port.clock.now();
        let at = self.0.groups().state(group)?;
        let members = at.member.members.len();
        at.watch_mut().recorder = (calls > 0).then(|| Recorder::new(calls, members, now));
        at.unwatch();
        self.0.look_at_links(group);
        Ok(())
    }

    /// Returns the recorded calls of a group, the oldest first.
    // spec: COLL-18
    pub fn recording(&self, group: Group) -> impl Iterator<Item = RecordedCall<'_>> {
        let groups: &Groups = self.0.features.as_ref();
        let at = groups.states.get(group.index);
        let watch = at.and_then(|at| at.watch.as_deref());
        watch.and_then(|watch| watch.recorder.as_ref()).into_iter().flat_map(Recorder::calls)
    }

    /// Writes the recording of a group as text, for `ayre study`.
    ///
    /// # Errors
    /// The errors of the writer.
    // spec: COLL-18
    pub fn write_recording(&self, group: Group, into: &mut impl Write) -> io::Result<()> {
        let groups: &Groups = self.0.features.as_ref();
        let Some(at) = groups.states.get(group.index) else { return Ok(()) };
        let (own, members) = (at.member.own, at.member.members.len());
        let others: Vec<_> = (0..members).filter(|to| *to != own).collect();
        writeln!(into, "# ayre recording 1: member {own} of {members}; ns, bytes, frames")?;
        write!(into, "number\tbegin_ns\ttime_ns\tcollective\tschedule\tbytes")?;
        for name in ["sent", "waiting", "round_trip_ns"] {
            others.iter().try_for_each(|to| write!(into, "\t{name}:{own}>{to}"))?;
        }
        writeln!(into)?;
        for call in self.recording(group) {
            let RecordedCall { number, begin_ns, time_ns, collective, schedule, bytes, links } =
                call;
            write!(into, "{number}\t{begin_ns}\t{time_ns}\t{collective:?}\t{schedule:?}\t{bytes}")?;
            let uses = || others.iter().map(|to| links[*to]);
            uses().try_for_each(|link| write!(into, "\t{}", link.sent))?;
            uses().try_for_each(|link| write!(into, "\t{}", link.waiting))?;
            uses().try_for_each(|link| write!(into, "\t{}", link.round_trip_ns))?;
            writeln!(into)?;
        }
        into.flush()
    }
}

impl<S> Messenger<S> {
    #[inline]
    pub(super) fn is_watched(&self, group: Group) -> bool {
        let groups: &Groups = self.features.as_ref();
        groups.states.get(group.index).is_some_and(|at| at.watch.is_some())
    }

    /// Does a collective of a group that adapts or is recorded.
    // spec: COLL-17, COLL-18
    #[cold]
    pub(super) fn complete_watched<T>(
        &mut self,
        state: &mut S,
        group: Group,
        request: Request<'_, T>,
    ) -> Result<(), GroupError> {
        self.look_at_links(group);
        self.watch(group)?.learn();
        if self.watch(group)?.is_due() {
            self.take_rows(state, group)?;
            self.send_row(group)?;
        }
        let watch = self.watch(group)?;
        watch.begin_call();
        let begin = self.out.port.clock.now();
        self.carry_out(state, group, request)?;
        let end = self.out.port.clock.now();
        self.look_at_links(group);
        let at = self.groups().state(group)?;
        let number = at.member.sequence;
        let watch = at.watch.as_deref_mut().ok_or(NO_GROUP)?;
        watch.note_call(number, (begin, end));
        Ok(())
    }

    fn watch(&mut self, group: Group) -> Result<&mut Watch, GroupError> {
        self.groups().state(group)?.watch.as_deref_mut().ok_or(NO_GROUP)
    }

    pub(super) fn look_at_links(&mut self, group: Group) {
        let (groups, out) = self.groups_and_out();
        let at = &mut groups.states[group.index];
        if let Some(watch) = &mut at.watch {
            watch.look(&out.port, &at.member.members);
        }
    }

    /// Starts the exchange of the costs of links with all members.
    fn send_row(&mut self, group: Group) -> Result<(), GroupError> {
        let place = self.groups().state(group)?.member.place();
        let row = self.watch(group)?.row(place.member);
        let all = vec![0; row.len() * place.members];
        let request = Request::<u32>::allgather(row, all);
        let begun = self.collectives().start(group, request)?;
        self.watch(group)?.set_exchange(begun);
        Ok(())
    }

    /// Finishes the exchange of costs, if one is under way, and takes over its result.
    fn take_rows(&mut self, state: &mut S, group: Group) -> Result<(), GroupError> {
        let watch = self.groups().state(group)?.watch.as_deref_mut();
        let Some(begun) = watch.and_then(Watch::take_exchange) else { return Ok(()) };
        let rows = self.collectives().finish(state, begun)?;
        self.watch(group)?.learn_rows(&rows);
        Ok(())
    }
}
