//! Collectives of the engine's messengers, as the suite's.
use super::Member;
use crate::messenger::{Groups, LinkUse, Owned, Recorded, Request, Values};
use ayre::collective::Combine;
use ayre::collective::{
    Collective, Group, GroupError, PendingCollective, RecordedCall, Schedule, Summand, Value,
};
use ayre::{PeerId, SetupError};
use std::num::NonZeroU32;

/// The engine's, by the suite's; a barrier has values of one kind only.
macro_rules! engines {
    ($asked:expr) => {
        match ($asked.collective, $asked.root, $asked.values) {
            (Collective::Broadcast, root, Values::One(values)) => {
                ayre::collective::Request::broadcast(root, values)
            }
            (Collective::Reduce, root, Values::Combined(combine, values)) => {
                ayre::collective::Request::reduce(root, combine, values)
            }
            (Collective::Allreduce, _, Values::Combined(combine, values)) => {
                ayre::collective::Request::allreduce(combine, values)
            }
            (Collective::Scan, _, Values::Combined(combine, values)) => {
                ayre::collective::Request::scan(combine, values)
            }
            (Collective::ReduceScatter, _, Values::Combined(combine, values)) => {
                ayre::collective::Request::reduce_scatter(combine, values)
            }
            (Collective::Gather, root, Values::Two(from, into)) => {
                ayre::collective::Request::gather(root, from, into)
            }
            (Collective::Scatter, root, Values::Two(from, into)) => {
                ayre::collective::Request::scatter(root, from, into)
            }
            (Collective::Allgather, _, Values::Two(from, into)) => {
                ayre::collective::Request::allgather(from, into)
            }
            (Collective::Alltoall, _, Values::Two(from, into)) => {
                ayre::collective::Request::alltoall(from, into)
            }
            (collective, ..) => panic!("no values of a {collective:?}"),
        }
    };
}

/// A collective that was begun.
#[derive(Debug)]
pub enum Started<T> {
    /// It has values.
    Of(PendingCollective<T>),
    /// It has none.
    Barrier(PendingCollective<u8>),
}

fn recorded(call: RecordedCall<'_>) -> Recorded {
    let links = call.links.iter().map(|link| LinkUse {
        sent: link.sent,
        waiting: link.waiting,
        round_trip_ns: link.round_trip_ns,
    });
    Recorded {
        number: call.number,
        begin_ns: call.begin_ns,
        time_ns: call.time_ns,
        collective: call.collective,
        schedule: call.schedule,
        bytes: call.bytes,
        links: links.collect(),
    }
}

impl<S> Groups<S> for Member<S> {
    type Group = Group;
    type Started<T> = Started<T>;

    fn group(&mut self, name: &str, members: &[PeerId]) -> Result<Group, SetupError> {
        self.inner.collectives().group(name, members)
    }

    fn group_of_all(&mut self, name: &str) -> Result<Group, SetupError> {
        self.inner.collectives().group_of_all(name)
    }

    fn fix_schedule(
        &mut self,
        group: Group,
        collective: Collective,
        schedule: Option<Schedule>,
    ) -> Result<(), GroupError> {
        self.inner.collectives().fix_schedule(group, collective, schedule)
    }

    fn barrier(&mut self, state: &mut S, group: Group) -> Result<(), GroupError> {
        self.inner.collectives().barrier(state, group)
    }

    fn broadcast<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().broadcast(state, group, root, values)
    }

    fn reduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        how: (usize, Combine),
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().reduce(state, group, how, values)
    }

    fn allreduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().allreduce(state, group, combine, values)
    }

    fn scan<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().scan(state, group, combine, values)
    }

    fn reduce_scatter<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().reduce_scatter(state, group, combine, values)
    }

    fn gather<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        values: (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.inner.collectives().gather(state, group, root, values)
    }

    fn scatter<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        root: usize,
        values: (&[T], &mut [T]),
    ) -> Result<(), GroupError> {
        self.inner.collectives().scatter(state, group, root, values)
    }

    fn allgather<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        own: &[T],
        all: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().allgather(state, group, own, all)
    }

    fn alltoall<T: Value>(
        &mut self,
        state: &mut S,
        group: Group,
        out: &[T],
        come: &mut [T],
    ) -> Result<(), GroupError> {
        self.inner.collectives().alltoall(state, group, out, come)
    }

    fn complete<T: Summand>(
        &mut self,
        state: &mut S,
        group: Group,
        request: Request<'_, T>,
    ) -> Result<(), GroupError> {
        let (lens, both) = (request.lens, request.out_and_in);
        let mut engines: ayre::collective::Request<'_, T> = engines!(request);
        if let Some(lens) = lens {
            engines = engines.lens(lens);
        }
        if let Some([out, come]) = both {
            engines = engines.out_and_in(out, come);
        }
        self.inner.collectives().complete(state, group, engines)
    }

    fn start<T: Summand>(
        &mut self,
        group: Group,
        request: Owned<T>,
    ) -> Result<Started<T>, GroupError> {
        if request.collective == Collective::Barrier {
            let barrier = ayre::collective::Request::barrier();
            return self.inner.collectives().start(group, barrier).map(Started::Barrier);
        }
        let engines: ayre::collective::Request<'static, T> = engines!(request);
        self.inner.collectives().start(group, engines).map(Started::Of)
    }

    fn is_finished<T>(&mut self, started: &Started<T>) -> bool {
        match started {
            Started::Of(started) => self.inner.collectives().is_finished(started),
            Started::Barrier(started) => self.inner.collectives().is_finished(started),
        }
    }

    fn finish<T: Value>(
        &mut self,
        state: &mut S,
        started: Started<T>,
    ) -> Result<Vec<T>, GroupError> {
        match started {
            Started::Of(started) => self.inner.collectives().finish(state, started),
            Started::Barrier(started) => {
                self.inner.collectives().finish(state, started).map(|_| vec![])
            }
        }
    }

    fn adapt(
        &mut self,
        state: &mut S,
        group: Group,
        every: Option<NonZeroU32>,
    ) -> Result<(), GroupError> {
        self.inner.collectives().adapt(state, group, every)
    }

    fn record(&mut self, group: Group, calls: usize) -> Result<(), GroupError> {
        self.inner.collectives().record(group, calls)
    }

    fn recording(&mut self, group: Group) -> Vec<Recorded> {
        self.inner.collectives().recording(group).map(recorded).collect()
    }

    fn recording_text(&mut self, group: Group) -> String {
        let mut text = vec![];
        self.inner.collectives().write_recording(group, &mut text).expect("memory is there");
        String::from_utf8(text).expect("a text")
    }
}
