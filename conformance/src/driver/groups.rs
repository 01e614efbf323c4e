//! Collectives of a messenger of another process.
use super::messenger::DrivenMessenger;
use super::values::{opaque, request, values};
use super::words::{Words, hex, limit, list};
use crate::messenger::{Groups, LinkUse, Owned, Recorded, Request, Values};
use ayre::collective::{Collective, GroupError, Schedule, Summand, Value};
use ayre::collective::{Combine, Number};
use ayre::{PeerId, SetupError};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use zerocopy::IntoBytes;

/// A group, by its number at the driver.
#[derive(Clone, Copy, Debug)]
pub struct DrivenGroup(usize);

/// A collective that was begun, by its number there.
#[derive(Debug)]
pub struct DrivenStarted<T>(usize, PhantomData<T>);

/// A request without lengths of its own.
fn about<'a, T>(
    collective: Collective,
    root: usize,
    values: Values<&'a [T], &'a mut [T]>,
) -> Request<'a, T> {
    Request { collective, root, values, lens: None, out_and_in: None }
}

fn lens(of: Option<&[usize]>) -> String {
    of.map_or_else(|| "-".into(), |lens| list(lens.iter()))
}

fn recorded(words: &mut Words<'_>) -> Recorded {
    Recorded {
        number: words.number(),
        begin_ns: words.number(),
        time_ns: words.number(),
        collective: words.collective(),
        schedule: words.schedule(),
        bytes: words.number(),
        links: (0..words.number()).map(|_: usize| link(words)).collect(),
    }
}

fn link(words: &mut Words<'_>) -> LinkUse {
    LinkUse { sent: words.number(), waiting: words.number(), round_trip_ns: words.number() }
}

impl<S> DrivenMessenger<S> {
    /// Has the driver do a collective, on values of this type as far as it knows.
    fn collect<T: Value>(
        &mut self,
        state: &mut S,
        DrivenGroup(group): DrivenGroup,
        number: Number,
        asked: Request<'_, T>,
    ) -> Result<(), GroupError> {
        let Request { collective, root, values, lens: each, out_and_in } = asked;
        let [out, come] = [0, 1].map(|at| lens(out_and_in.map(|both| both[at])));
        let request = request::<T>((collective, root), number, &values);
        let call = format!("collect {group} {} {out} {come} {request}", lens(each));
        let answer = self.attend(state, &call).collected()?;
        match values {
            Values::None => {}
            Values::One(changed) | Values::Combined(_, changed) | Values::Two(_, changed) => {
                changed.as_mut_bytes().copy_from_slice(&Words::of(&answer).bytes());
            }
        }
        Ok(())
    }

    fn combine<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        (collective, root): (Collective, usize),
        values: Values<&[T], &mut [T]>,
    ) -> Result<(), GroupError> {
        self.collect(state, group, T::NUMBER, about(collective, root, values))
    }

    fn bring<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        (collective, root): (Collective, usize),
        values: Values<&[T], &mut [T]>,
    ) -> Result<(), GroupError> {
        self.collect(state, group, opaque::<T>(), about(collective, root, values))
    }
}

impl<S> Groups<S> for DrivenMessenger<S> {
    type Group = DrivenGroup;
    type Started<T> = DrivenStarted<T>;

    fn group(&mut self, name: &str, members: &[PeerId]) -> Result<DrivenGroup, SetupError> {
        let members = list(members.iter().map(|member| member.0));
        let words = self.ask(&format!("group {} {members}", hex(name.as_bytes()))).set_up()?;
        Ok(DrivenGroup(Words::of(&words).number()))
    }

    fn group_of_all(&mut self, name: &str) -> Result<DrivenGroup, SetupError> {
        let words = self.ask(&format!("group_of_all {}", hex(name.as_bytes()))).set_up()?;
        Ok(DrivenGroup(Words::of(&words).number()))
    }

    fn fix_schedule(
        &mut self,
        DrivenGroup(group): DrivenGroup,
        collective: Collective,
        schedule: Option<Schedule>,
    ) -> Result<(), GroupError> {
        let (collective, schedule) = (collective as u8, schedule.map_or(0, |one| one as u8));
        let call = format!("fix_schedule {group} {collective} {schedule}");
        self.ask(&call).collected().map(drop)
    }

    fn barrier(&mut self, state: &mut S, group: DrivenGroup) -> Result<(), GroupError> {
        self.bring::<u8>(state, group, (Collective::Barrier, 0), Values::None)
    }

    fn broadcast<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        root: usize,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.bring(state, group, (Collective::Broadcast, root), Values::One(values))
    }

    fn reduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        (root, combine): (usize, Combine),
        values: &mut [T],
    ) -> Result<(), GroupError> {
        let values = Values::Combined(combine, values);
        self.combine(state, group, (Collective::Reduce, root), values)
    }

    fn allreduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        let values = Values::Combined(combine, values);
        self.combine(state, group, (Collective::Allreduce, 0), values)
    }

    fn scan<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        let values = Values::Combined(combine, values);
        self.combine(state, group, (Collective::Scan, 0), values)
    }

    fn reduce_scatter<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        let values = Values::Combined(combine, values);
        self.combine(state, group, (Collective::ReduceScatter, 0), values)
    }

    fn gather<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        root: usize,
        (own, all): (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.bring(state, group, (Collective::Gather, root), Values::Two(own, all))
    }

    fn scatter<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        root: usize,
        (all, own): (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.bring(state, group, (Collective::Scatter, root), Values::Two(all, own))
    }

    fn allgather<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        own: &[T],
        all: &mut [T],
    ) -> Result<(), GroupError> {
        self.bring(state, group, (Collective::Allgather, 0), Values::Two(own, all))
    }

    fn alltoall<T: Value>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        out: &[T],
        come: &mut [T],
    ) -> Result<(), GroupError> {
        self.bring(state, group, (Collective::Alltoall, 0), Values::Two(out, come))
    }

    fn complete<T: Summand>(
        &mut self,
        state: &mut S,
        group: DrivenGroup,
        request: Request<'_, T>,
    ) -> Result<(), GroupError> {
        self.collect(state, group, T::NUMBER, request)
    }

    fn start<T: Summand>(
        &mut self,
        DrivenGroup(group): DrivenGroup,
        asked: Owned<T>,
    ) -> Result<DrivenStarted<T>, GroupError> {
        let Owned { collective, root, values } = asked;
        let request = request::<T>((collective, root), T::NUMBER, &values);
        let words = self.ask(&format!("start {group} {request}")).collected()?;
        Ok(DrivenStarted(Words::of(&words).number(), PhantomData))
    }

    fn is_finished<T>(&mut self, started: &DrivenStarted<T>) -> bool {
        Words::of(&self.ask(&format!("finished {}", started.0)).done()).flag()
    }

    fn finish<T: Value>(
        &mut self,
        state: &mut S,
        started: DrivenStarted<T>,
    ) -> Result<Vec<T>, GroupError> {
        let words = self.attend(state, &format!("finish {}", started.0)).collected()?;
        Ok(values(&Words::of(&words).bytes()))
    }

    fn adapt(
        &mut self,
        state: &mut S,
        DrivenGroup(group): DrivenGroup,
        every: Option<NonZeroU32>,
    ) -> Result<(), GroupError> {
        self.attend(state, &format!("adapt {group} {}", limit(every))).collected().map(drop)
    }

    fn record(&mut self, group: DrivenGroup, calls: usize) -> Result<(), GroupError> {
        self.ask(&format!("record {} {calls}", group.0)).collected().map(drop)
    }

    fn recording(&mut self, group: DrivenGroup) -> Vec<Recorded> {
        let words = self.ask(&format!("recording {}", group.0)).done();
        let mut words = Words::of(&words);
        (0..words.number()).map(|_: usize| recorded(&mut words)).collect()
    }

    fn recording_text(&mut self, group: DrivenGroup) -> String {
        Words::of(&self.ask(&format!("recording_text {}", group.0)).done()).name()
    }
}
