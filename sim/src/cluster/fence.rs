//! The fence of a revocation in time (EXTOLL thesis, section 5.2).
//!
//! ```text
//!   program --store--> ATU ---4 cycles---> units: nothing with the old translation is under way
//!                       |                                   |
//!        what comes later faults                        3 cycles --> fenced, the program is told
//! ```
//!
//! A unit answers when all that was in it has ended, as EXTOLL's do: frames that have come before
//! have landed, and reads of memory are done. So what is under way lands before the fence ends.
use super::{Cluster, Event};
use crate::time::Time;
use ayre_proto::fault::Fault;
use ayre_proto::units::Key;

/// A fence on its way.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    pub(super) node: u32,
    /// The life of the node that has asked for it.
    incarnation: u64,
    key: Key,
    stage: Stage,
}

/// How far a fence has come.
#[derive(Clone, Debug)]
enum Stage {
    /// The ATU has the request.
    Asked,
    /// All frames have landed that had come by the time of the request.
    Landed(Time),
    /// All units have answered.
    Ended(Result<(), Fault>),
}

impl Cluster {
    /// A program revokes a key.
    pub(super) fn begin_fence(&mut self, node: u32, key: Key) {
        let incarnation = self.members[node as usize].incarnation;
        let fence = Fence { node, incarnation, key, stage: Stage::Asked };
        self.underway.fence_at(self.now + self.times.call, fence);
    }

    /// A fence has come to its next stage. Frames that come from now on land behind those that are
    /// in the stage of receiving, and so behind the revocation.
    pub(super) fn on_fence(&mut self, mut fence: Fence) {
        let Fence { node, incarnation, key, .. } = fence;
        let member = &mut self.members[node as usize];
        let Some(pages) = self.profile.pages.filter(|_| member.incarnation == incarnation) else {
            return;
        };
        let at = match fence.stage {
            Stage::Asked => {
                member.units.forget_key(key);
                fence.stage = Stage::Landed(self.now);
                self.now.max(member.units.landed)
            }
            Stage::Landed(asked) => {
                let nanos = self.nanos();
                let revoked = self.with_node(node, Time::ZERO, |node, host| {
                    // Answers to what has landed leave: memory is read for them.
                    node.on_time(nanos, host);
                    node.revoke(key)
                });
                fence.stage = Stage::Ended(revoked);
                let [to_units, back] = pages.invalidation;
                let reading = self.members[node as usize].units.reading;
                (asked + to_units).max(self.now).max(reading) + back
            }
            Stage::Ended(revoked) => {
                return member.program.events.push_back(Event::Fenced(key, revoked));
            }
        };
        self.underway.fence_at(at, fence);
    }
}
