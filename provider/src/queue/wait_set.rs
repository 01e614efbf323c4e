//! Wait sets, and how other objects wait: by themselves, or in one.

use crate::abi::{FidWait, WAIT_SET, errno};
use crate::error::{Code, Outcome};
use crate::object::registry::{self, Body, Entity};
use crate::object::wait::{Wait, Waitable, block, deadline};
use crate::sys::object::Object;
use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How an object waits: by itself or with others in a set.
#[derive(Debug)]
pub(crate) struct Attachment {
    wait: Arc<Wait>,
    set: Option<Arc<Object<FidWait, WaitSet>>>,
}

impl Attachment {
    /// The wait object that a program has asked for.
    ///
    /// # Errors
    /// As [`Wait::open`]; `EINVAL` for a set that is none.
    pub(crate) fn open(kind: u32, set: *const FidWait) -> Outcome<Option<Self>> {
        if kind == WAIT_SET {
            let set: Arc<Object<FidWait, WaitSet>> =
                registry::find(set.cast()).ok_or(Code::INVALID)?;
            return Ok(Some(Self { wait: Arc::clone(&set.wait), set: Some(set) }));
        }
        Ok(Wait::open(kind)?.map(|wait| Self { wait, set: None }))
    }

    pub(crate) fn wait(&self) -> &Wait {
        &self.wait
    }

    /// Its own wait object; none of a member of a set, which cannot be blocked on.
    pub(crate) fn own(&self) -> Option<&Wait> {
        self.set.is_none().then_some(&*self.wait)
    }

    /// Makes a new object a member of its set, if it has one.
    pub(crate) fn join<T: Waitable + 'static>(attachment: Option<&Self>, object: &Arc<T>) {
        if let Some(set) = attachment.and_then(|attachment| attachment.set.as_ref()) {
            let object: Weak<dyn Waitable> = Arc::<T>::downgrade(object);
            set.members().push(object);
        }
    }
}

/// A wait set: several objects, one thing to wait with.
pub(crate) struct WaitSet {
    wait: Arc<Wait>,
    members: Mutex<Vec<Weak<dyn Waitable>>>,
    /// The set is the fabric's, which cannot be closed before it.
    _fabric: Arc<dyn Entity>,
}

impl WaitSet {
    /// # Errors
    /// As [`Wait::open`]; a set without anything to wait with is `EINVAL`.
    pub(crate) fn open(kind: u32, fabric: Arc<dyn Entity>) -> Outcome<Self> {
        let wait = Wait::open(kind)?.ok_or(Code::INVALID)?;
        Ok(Self { wait, members: Mutex::default(), _fabric: fabric })
    }

    fn members(&self) -> MutexGuard<'_, Vec<Weak<dyn Waitable>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The members that are still open.
    fn open_members(&self) -> Vec<Arc<dyn Waitable>> {
        let mut members = self.members();
        members.retain(|member| member.strong_count() > 0);
        members.iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits until a member has something.
    ///
    /// # Errors
    /// `ETIMEDOUT` when time is up first, `EINTR` when a signal has come.
    pub(crate) fn block(&self, milliseconds: c_int) -> Outcome {
        let look = || self.look().then_some(());
        let until = (deadline(milliseconds), Code(errno::ETIMEDOUT));
        block(&self.wait, until, look, || self.arm())
    }
}

impl Waitable for WaitSet {
    fn wait(&self) -> Option<&Wait> {
        Some(&self.wait)
    }

    fn look(&self) -> bool {
        self.open_members().iter().any(|member| member.look())
    }

    fn arm(&self) -> bool {
        self.open_members().iter().all(|member| member.arm())
    }
}

impl Body for WaitSet {
    fn waitable(&self) -> Option<&dyn Waitable> {
        Some(self)
    }
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WaitSet").field("wait", &self.wait).finish_non_exhaustive()
    }
}
