//! Requests: a collective, and the values that it works on.
use super::group::GroupError;
use super::layout::{Layout, elements_in};
use super::running::Running;
use super::state::State;
use super::values::{Changed, Read, ReadValues, Summand, Value, Values};
use super::work::{Held, Work};
use ayre_proto::collective::call::CallShape;
use ayre_proto::collective::portion::chunk_of;
use ayre_proto::collective::{Blocks, Collective, Place, Plan, Schedule, Task, subtree};
use ayre_proto::combine::{Combine, Number};
use std::marker::PhantomData;

/// A collective on values of a type, for [`Collectives::start`](super::Collectives::start) and
/// [`Collectives::complete`](super::Collectives::complete). The methods of
/// [`Collectives`](super::Collectives) describe each collective.
#[derive(Debug)]
pub struct Request<'a, T> {
    pub(super) parts: Parts<'a>,
    values: PhantomData<T>,
}

#[derive(Debug)]
pub(super) struct Parts<'a> {
    collective: Collective,
    root: usize,
    size: usize,
    combine: Option<(Combine, Number)>,
    lens: Lens<'a>,
    from: Option<Read<'a>>,
    into: Option<Changed<'a>>,
}

/// Elements of each member's block.
#[derive(Clone, Copy, Debug)]
enum Lens<'a> {
    /// All blocks have the same number of elements.
    Equal,
    /// The numbers of elements, one for each member.
    Each(&'a [usize]),
    /// Numbers of elements to each member, and from each member.
    Both(&'a [usize], &'a [usize]),
}

impl Lens<'_> {
    const fn is_equal(&self) -> bool {
        matches!(self, Self::Equal)
    }
}

impl Request<'static, u8> {
    /// See [`Collectives::barrier`](super::Collectives::barrier).
    pub fn barrier() -> Self {
        Self::about(Collective::Barrier, 0)
    }
}

impl<'a, T: Value> Request<'a, T> {
    fn about(collective: Collective, root: usize) -> Self {
        let (size, lens) = (size_of::<T>(), Lens::Equal);
        let (combine, from, into) = (None, None, None);
        let parts = Parts { collective, root, size, combine, lens, from, into };
        Self { parts, values: PhantomData }
    }

    fn into(mut self, values: impl Into<Values<'a, T>>) -> Self {
        self.parts.into = Some(values.into().0);
        self
    }

    fn from(mut self, values: impl Into<ReadValues<'a, T>>) -> Self {
        self.parts.from = Some(values.into().0);
        self
    }

    /// See [`Collectives::broadcast`](super::Collectives::broadcast).
    pub fn broadcast(root: usize, values: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Broadcast, root).into(values)
    }

    /// See [`Collectives::gather`](super::Collectives::gather).
    pub fn gather(
        root: usize,
        own: impl Into<ReadValues<'a, T>>,
        all: impl Into<Values<'a, T>>,
    ) -> Self {
        Self::about(Collective::Gather, root).from(own).into(all)
    }

    /// See [`Collectives::scatter`](super::Collectives::scatter).
    pub fn scatter(
        root: usize,
        all: impl Into<ReadValues<'a, T>>,
        own: impl Into<Values<'a, T>>,
    ) -> Self {
        Self::about(Collective::Scatter, root).from(all).into(own)
    }

    /// See [`Collectives::allgather`](super::Collectives::allgather).
    pub fn allgather(own: impl Into<ReadValues<'a, T>>, all: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Allgather, 0).from(own).into(all)
    }

    /// See [`Collectives::alltoall`](super::Collectives::alltoall).
    pub fn alltoall(out: impl Into<ReadValues<'a, T>>, come: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Alltoall, 0).from(out).into(come)
    }

    /// Sets the number of values of each member's block, in the order of the members. It applies to
    /// a gather, scatter or allgather. All members must give the same numbers.
    pub const fn lens(mut self, lens: &'a [usize]) -> Self {
        self.parts.lens = Lens::Each(lens);
        self
    }

    /// Sets the numbers of values to each member, and from each member, of an alltoall.
    pub const fn out_and_in(mut self, out: &'a [usize], come: &'a [usize]) -> Self {
        self.parts.lens = Lens::Both(out, come);
        self
    }
}

impl<'a, T: Summand> Request<'a, T> {
    fn combines(mut self, combine: Combine, values: impl Into<Values<'a, T>>) -> Self {
        self.parts.combine = Some((combine, T::NUMBER));
        self.into(values)
    }

    /// See [`Collectives::reduce`](super::Collectives::reduce).
    pub fn reduce(root: usize, combine: Combine, values: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Reduce, root).combines(combine, values)
    }

    /// See [`Collectives::allreduce`](super::Collectives::allreduce).
    pub fn allreduce(combine: Combine, values: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Allreduce, 0).combines(combine, values)
    }

    /// See [`Collectives::scan`](super::Collectives::scan).
    pub fn scan(combine: Combine, values: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::Scan, 0).combines(combine, values)
    }

    /// See [`Collectives::reduce_scatter`](super::Collectives::reduce_scatter).
    pub fn reduce_scatter(combine: Combine, values: impl Into<Values<'a, T>>) -> Self {
        Self::about(Collective::ReduceScatter, 0).combines(combine, values)
    }
}

impl<'a> Parts<'a> {
    /// Begins the collective at this member of a group.
    // spec: COLL-3, COLL-5, COLL-13
    pub(super) fn begin(self, group: &mut State) -> Result<Running<'a>, GroupError> {
        let place = group.member.place();
        let is_exact = self.is_exact();
        self.check(place)?;
        let (collective, root) = (self.collective, self.root);
        let bytes = self.signed_bytes();
        let weight = self.weight(place);
        let schedule = group.schedule((collective, root), is_exact, weight);
        debug_assert!(schedule.can(collective), "a schedule of this collective");
        let is_same = is_exact || !schedule.is_exact_only(collective);
        debug_assert!(is_same, "a sum has its brackets where all members have them");
        let task = Task { collective, schedule, root };
        let call = CallShape { task, operation: self.combine, bytes };
        let plan = Plan::new(task, place).ok_or(GroupError::Invalid("the root is no member"))?;
        let work = self.work(place, task);
        let sequence = group.member.begin()?;
        Ok(Running::new((call, place), plan, sequence, work))
    }

    /// Whether sums do not depend on the order in which they are computed.
    fn is_exact(&self) -> bool {
        self.combine.is_none_or(|(combine, number)| {
            let rounds = matches!(number, Number::F32 | Number::F64);
            !rounds
                || !matches!(combine, Combine::Sum | Combine::Prod | Combine::Min | Combine::Max)
        })
    }

    /// Bytes of the values that the collective changes.
    fn bytes(&self) -> usize {
        self.into.as_ref().map_or(0, |values| values.bytes().len())
    }

    /// Bytes of the vector or of a block, by which all members choose the schedule.
    fn weight(&self, place: Place) -> usize {
        let from = || self.from.as_ref().map_or(0, |source| source.bytes().len());
        let is_root = place.member == self.root;
        match (self.lens, self.collective) {
            (Lens::Each(lens), _) => lens.iter().sum::<usize>() * self.size / place.members,
            (_, Collective::Gather | Collective::Allgather) => from(),
            (_, Collective::Scatter) if is_root => from() / place.members,
            (_, Collective::Alltoall) => 0,
            _ => self.bytes(),
        }
    }

    /// The number of bytes that must be equal at all members.
    fn signed_bytes(&self) -> u64 {
        if self.collective.has_vector() { self.bytes() as u64 } else { 0 }
    }

    /// Bytes of each member's block.
    fn block_lens(&self, place: Place, block: usize) -> Vec<usize> {
        match self.lens {
            Lens::Equal => vec![block; place.members],
            Lens::Each(lens) | Lens::Both(_, lens) => {
                lens.iter().map(|len| len * self.size).collect()
            }
        }
    }

    /// Checks the lengths of the buffers.
    // spec: COLL-5
    fn check(&self, place: Place) -> Result<(), GroupError> {
        let (members, is_root) = (place.members, place.member == self.root);
        let from = self.from.as_ref().map_or(0, |source| source.bytes().len());
        let into = self.bytes();
        let sum = |lens: &[usize]| {
            let sum = lens.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
            sum.and_then(|sum| sum.checked_mul(self.size))
        };
        let own = |lens: &[usize]| lens.get(place.member).map_or(0, |len| len * self.size);
        let sound = match (self.collective, self.lens) {
            (Collective::Alltoall, Lens::Equal) => {
                from == into && into.is_multiple_of(members * self.size)
            }
            (Collective::Alltoall, Lens::Both(out, come)) => {
                let both = out.len() == members && come.len() == members;
                let same = both && out[place.member] == come[place.member];
                same && sum(out) == Some(from) && sum(come) == Some(into)
            }
            (Collective::Gather, _) if !is_root => {
                matches!(self.lens, Lens::Equal) || self.is_lens(members, from, own)
            }
            (Collective::Scatter, _) if !is_root => {
                matches!(self.lens, Lens::Equal) || self.is_lens(members, into, own)
            }
            (Collective::Gather | Collective::Allgather, Lens::Equal) => into == from * members,
            (Collective::Scatter, Lens::Equal) => from == into * members,
            (Collective::Gather | Collective::Allgather, Lens::Each(lens)) => {
                self.is_lens(members, from, own) && sum(lens) == Some(into)
            }
            (Collective::Scatter, Lens::Each(lens)) => {
                self.is_lens(members, into, own) && sum(lens) == Some(from)
            }
            (_, lens) => lens.is_equal(),
        };
        let defined = self.combine.is_none_or(|(combine, number)| combine.is_operation(number));
        match (sound, defined) {
            (true, true) => Ok(()),
            (false, _) => {
                Err(GroupError::Invalid("the lengths of the buffers do not fit this collective"))
            }
            _ => Err(GroupError::Invalid("no sums of this kind are defined for these numbers")),
        }
    }

    fn is_lens(&self, members: usize, own: usize, of: impl Fn(&[usize]) -> usize) -> bool {
        matches!(self.lens, Lens::Each(lens) if lens.len() == members && of(lens) == own)
    }

    fn work(self, place: Place, task: Task) -> Work<'a> {
        let (members, chunk) = (place.members, chunk_of(task, place.members));
        let (layout, from, held) = match self.collective {
            Collective::Gather | Collective::Scatter => self.by_root(place, task.schedule),
            Collective::Allgather => {
                let own = self.from.as_ref().map_or(0, |own| own.bytes().len());
                let layout = Layout::in_order(self.block_lens(place, own).into_iter());
                self.with_own_placed(layout, place)
            }
            Collective::Alltoall => self.alltoall(place),
            _ => {
                let size = self.size;
                let is_whole = self.collective == Collective::ReduceScatter;
                let at_a_time = if is_whole { usize::MAX } else { chunk };
                let elements = elements_in(self.bytes(), at_a_time, size);
                let layout = Layout::Vector { start: 0, elements, size, blocks: members };
                let into = self.into.map_or(Held::Staged(Vec::new()), Held::Values);
                let work = Work::new(layout, None, into, (self.combine, members));
                return match self.collective {
                    Collective::Scan => work.with_prefix(),
                    Collective::ReduceScatter => work.in_chunks(chunk),
                    _ => work,
                };
            }
        };
        Work::new(layout, from, held, (None, members)).in_chunks(chunk)
    }

    /// Copies this member's own block to where it belongs.
    fn with_own_placed(self, layout: Layout, place: Place) -> Begun<'a> {
        let (from, into) = (self.from, self.into);
        let mut held = into.map_or(Held::Staged(vec![0; layout.bytes()]), Held::Values);
        if let Some(own) = from {
            held.bytes_mut()[layout.one(place.member)].copy_from_slice(own.bytes());
        }
        (layout, None, held)
    }

    fn alltoall(self, place: Place) -> Begun<'a> {
        let block = self.bytes() / place.members;
        let layout = Layout::in_order(self.block_lens(place, block).into_iter());
        let out = match self.lens {
            Lens::Both(out, _) => Layout::in_order(out.iter().map(|len| len * self.size)),
            _ => layout.clone(),
        };
        let mut held = self.into.map_or(Held::Staged(Vec::new()), Held::Values);
        let from = self.from.map(|source| {
            let own = &source.bytes()[out.one(place.member)];
            held.bytes_mut()[layout.one(place.member)].copy_from_slice(own);
            (source, out)
        });
        (layout, from, held)
    }

    /// A gather or a scatter: members other than the root may pass on blocks of others.
    fn by_root(self, place: Place, schedule: Schedule) -> Begun<'a> {
        let is_gather = self.collective == Collective::Gather;
        let own = if is_gather {
            self.from.as_ref().map_or(0, |own| own.bytes().len())
        } else {
            self.bytes()
        };
        let lens = self.block_lens(place, own);
        if place.member == self.root {
            let layout = Layout::in_order(lens.into_iter());
            if is_gather {
                return self.with_own_placed(layout, place);
            }
            let mut held = self.into.map_or(Held::Staged(Vec::new()), Held::Values);
            let from = self.from.map(|source| {
                held.bytes_mut().copy_from_slice(&source.bytes()[layout.one(place.member)]);
                (source, layout.clone())
            });
            return (layout, from, held);
        }
        let held = match schedule {
            Schedule::Tree => subtree(place, self.root),
            _ => Blocks::one(place.member),
        };
        let layout = Layout::holding(&lens, held);
        debug_assert!(layout.one(place.member).len() == own, "its own block is held");
        if is_gather {
            return Self { into: None, ..self }.with_own_placed(layout, place);
        }
        if held.count == 1 {
            return (layout, None, self.into.map_or(Held::Staged(Vec::new()), Held::Values));
        }
        let (staged, own) = (vec![0; layout.bytes()], layout.one(place.member));
        (layout, None, Held::Through { staged, own, values: self.into })
    }
}

type Begun<'a> = (Layout, Option<(Read<'a>, Layout)>, Held<'a>);
