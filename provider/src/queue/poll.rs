//! Poll sets: queues and counters that are looked at together.

use crate::error::{Code, Outcome};
use crate::object::registry::{Body, Entity};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A member, with what its program knows it by.
struct Member {
    fid: usize,
    context: usize,
    object: Arc<dyn Entity>,
}

/// A poll set.
pub(crate) struct PollSet {
    members: Mutex<Vec<Member>>,
    _domain: Arc<dyn Entity>,
}

impl PollSet {
    pub(crate) fn new(domain: Arc<dyn Entity>) -> Self {
        Self { members: Mutex::default(), _domain: domain }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue or a counter.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    pub(crate) fn add(&self, fid: usize, context: usize, object: Arc<dyn Entity>) -> Outcome {
        object.body().waitable().ok_or(Code::INVALID)?;
        let mut members = self.members();
        if members.iter().all(|member| member.fid != fid) {
            members.push(Member { fid, context, object });
        }
        Ok(())
    }

    /// Takes a member out.
    ///
    /// # Errors
    /// `EINVAL` for what is none.
    pub(crate) fn remove(&self, fid: usize) -> Outcome {
        let mut members = self.members();
        let at = members.iter().position(|member| member.fid == fid).ok_or(Code::INVALID)?;
        members.remove(at);
        Ok(())
    }

    /// Makes progress of all members, and returns the contexts of those that have something, at
    /// most `count`.
    pub(crate) fn poll(&self, count: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for member in &*self.members() {
            // What does not fit is not looked at: a counter's news would be lost.
            if found.len() == count {
                break;
            }
            if member.object.body().waitable().is_some_and(|object| object.look()) {
                found.push(member.context);
            }
        }
        found
    }
}

impl Body for PollSet {
    fn close(&self) -> Outcome {
        if self.members().is_empty() { Ok(()) } else { Err(Code::BUSY) }
    }
}
