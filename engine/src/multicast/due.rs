//! Deliveries that wait to be run at a member, in the order of the group.
use super::content::Content;
use super::names::port_of;
use ayre_proto::group::{Member, Standing, View};
use ayre_proto::units::PeerId;

/// A change of a group's members. All members get it at the same place among the messages.
// spec: GRP-3, GRP-5
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The group has a new view: other members than before.
    View {
        /// The number of the view in the group, from 1.
        number: u64,
        /// The place of the view among all messages and views of the group.
        ticket: u64,
        /// All members, in the order in which they joined.
        members: Vec<PeerId>,
        /// The members that were in no view before.
        joined: Vec<PeerId>,
    },
    /// This process is no member any more, or has not become one. It has left, it was refused, or
    /// the others have taken it for dead.
    Ended,
}

impl Change {
    pub(super) fn view(ticket: u64, view: &View) -> Self {
        let joined = view.seats().iter().filter(|seat| seat.standing == Standing::Joins);
        Self::View {
            number: view.number(),
            ticket,
            members: view.members().map(port_of).collect(),
            joined: joined.map(|seat| port_of(seat.member)).collect(),
        }
    }
}

/// The functions that run at changes, one for each membership.
pub(crate) struct Watchers<S>(Vec<(Member, Watch<S>)>);

type Watch<S> = Box<dyn FnMut(&mut S, &Change) + Send>;

impl<S> Default for Watchers<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Watchers<S> {
    pub(super) fn push(&mut self, me: Member, watch: impl FnMut(&mut S, &Change) + Send + 'static) {
        debug_assert!(self.0.iter().all(|(of, _)| *of != me), "a membership has one");
        self.0.push((me, Box::new(watch)));
    }

    pub(super) fn run(&mut self, state: &mut S, me: Member, change: &Change) {
        if let Some((_, watch)) = self.0.iter_mut().find(|(of, _)| *of == me) {
            watch(state, change);
        }
    }

    pub(super) fn forget(&mut self, me: Member) {
        self.0.retain(|(of, _)| *of != me);
    }
}

/// A delivery that waits to be run here.
#[derive(Debug)]
pub(super) enum Due {
    Message(PeerId, Content),
    Changed(Change),
    Ended,
}
