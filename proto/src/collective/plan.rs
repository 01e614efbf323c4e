//! Which phases a collective has under a schedule.
use super::exchange::{Exchange, Rounds};
use super::ring::{Chain, Ring};
use super::spread::{self, Spread};
use super::star::{self, Forward, Star};
use super::tree::{self, Tree};
use super::{Collective, Place, Schedule, Step};

/// A collective, its schedule and its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// The collective.
    pub collective: Collective,
    /// How.
    pub schedule: Schedule,
    /// The member that it is about; 0 where it has none.
    pub root: usize,
}

/// The steps of one member.
#[derive(Clone, Debug)]
pub struct Plan {
    first: Phase,
    then: Phase,
    #[cfg(debug_assertions)]
    place: Place,
}

#[derive(Clone, Debug)]
enum Phase {
    Nothing,
    Rounds(Rounds),
    Exchange(Exchange),
    Tree(Tree),
    Star(Star),
    Forward(Forward),
    Spread(Spread),
    Ring(Ring),
    Chain(Chain),
}

impl Phase {
    #[inline]
    fn next(&mut self) -> Option<Step> {
        match self {
            Self::Nothing => None,
            Self::Rounds(phase) => phase.next(),
            Self::Exchange(phase) => phase.next(),
            Self::Tree(phase) => phase.next(),
            Self::Star(phase) => phase.next(),
            Self::Forward(phase) => phase.next(),
            Self::Spread(phase) => phase.next(),
            Self::Ring(phase) => phase.next(),
            Self::Chain(phase) => phase.next(),
        }
    }
}

impl Plan {
    /// The plan of a member; none where the schedule is not for that collective, or there is no
    /// such member.
    // spec: COLL-6
    pub fn new(task: Task, place: Place) -> Option<Self> {
        let Place { member, members } = place;
        let roots = if task.collective.has_root() { members } else { 1 };
        let sound = member < members && task.root < roots && members <= super::MEMBERS_MAX;
        if !sound || !task.schedule.can(task.collective) {
            return None;
        }
        let [first, then] = match task.schedule {
            Schedule::Star => by_star(task, place),
            Schedule::Tree => by_tree(task, place),
            Schedule::Doubling => [by_doubling(task.collective, place), Phase::Nothing],
            Schedule::Spread => by_spread(task.collective, place),
            Schedule::Ring => by_ring(task, place),
        };
        let is_empty = matches!(first, Phase::Nothing);
        debug_assert!(!is_empty, "a schedule that can do it has a plan");
        Some(Self {
            first,
            then,
            #[cfg(debug_assertions)]
            place,
        })
    }
}

impl Iterator for Plan {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        let step = self.first.next().or_else(|| self.then.next());
        #[cfg(debug_assertions)]
        step.iter().for_each(|step| self.place.check(step));
        step
    }
}

fn by_star(Task { collective, root, .. }: Task, place: Place) -> [Phase; 2] {
    use star::Load;
    let inwards = |load| Phase::Star(Star::inwards(place, root, load));
    let outwards = |load| Phase::Star(Star::outwards(place, root, load));
    match collective {
        Collective::Barrier => [inwards(Load::Nothing), outwards(Load::Nothing)],
        Collective::Allreduce => [inwards(Load::Vector), outwards(Load::Vector)],
        Collective::Reduce => [inwards(Load::Vector), Phase::Nothing],
        Collective::Broadcast => [outwards(Load::Vector), Phase::Nothing],
        Collective::Gather => [inwards(Load::Own), Phase::Nothing],
        Collective::Scatter => [outwards(Load::Own), Phase::Nothing],
        _ => [Phase::Nothing, Phase::Nothing],
    }
}

fn by_tree(Task { collective, root, .. }: Task, place: Place) -> [Phase; 2] {
    use tree::Load;
    let up = |root, load| Phase::Tree(Tree::up(place, root, load));
    let down = |load| Phase::Tree(Tree::down(place, root, load));
    match collective {
        Collective::Barrier => [up(root, Load::Nothing), down(Load::Nothing)],
        Collective::Allreduce => [up(root, Load::Vector), down(Load::Vector)],
        // The brackets are those of a tree from member 0.
        Collective::Reduce => [
            up(0, Load::Vector),
            Phase::Forward(Forward { place, from: 0, to: root, is_over: false }),
        ],
        Collective::Broadcast => [down(Load::Vector), Phase::Nothing],
        Collective::Gather => [up(root, Load::Subtree), Phase::Nothing],
        Collective::Scatter => [down(Load::Subtree), Phase::Nothing],
        _ => [Phase::Nothing, Phase::Nothing],
    }
}

fn by_doubling(collective: Collective, place: Place) -> Phase {
    match collective {
        Collective::Barrier => Phase::Rounds(Rounds::new(place)),
        Collective::Allgather => Phase::Exchange(Exchange::new(place, true)),
        _ => Phase::Exchange(Exchange::new(place, false)),
    }
}

fn by_spread(collective: Collective, place: Place) -> [Phase; 2] {
    use spread::Load;
    let spread = |load| Phase::Spread(Spread::new(place, load));
    match collective {
        Collective::Alltoall => [spread(Load::Each), Phase::Nothing],
        Collective::Allgather => [spread(Load::Own), Phase::Nothing],
        Collective::ReduceScatter => [spread(Load::Combined), Phase::Nothing],
        _ => [spread(Load::Combined), spread(Load::Own)],
    }
}

fn by_ring(Task { collective, root, .. }: Task, place: Place) -> [Phase; 2] {
    let ring = |combines| Phase::Ring(Ring::new(place, combines));
    match collective {
        Collective::Broadcast => [Phase::Chain(Chain::new(place, root, false)), Phase::Nothing],
        Collective::Scan => [Phase::Chain(Chain::new(place, 0, true)), Phase::Nothing],
        Collective::Allgather => [ring(false), Phase::Nothing],
        Collective::ReduceScatter => [ring(true), Phase::Nothing],
        _ => [ring(true), ring(false)],
    }
}
