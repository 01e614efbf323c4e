//! All objects that are open, by the addresses under which programs know them.
//!
//! Calls that set up and tear down find their objects here, so a closed, foreign or mistaken
//! pointer is an error code. Calls on the way of data do not come here.

use crate::error::{Code, Outcome};
use crate::object::wait::Waitable;
use crate::sys::object::{Head, Object};
use ayre::guest::{
    self, descriptor,
    fork::{self, Shared},
};
use rustix::io::Errno;
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, MutexGuard, Once};

/// The functions of all objects; the defaults are for objects without them.
pub(crate) trait Body: Any + Send + Sync {
    /// Binds another object to this one.
    fn bind(&self, _other: &Arc<dyn Entity>, _flags: u64) -> Outcome {
        Err(Code::NOT_SUPPORTED)
    }

    /// Puts the object to work.
    fn enable(&self) -> Outcome {
        Err(Code::NOT_SUPPORTED)
    }

    /// The flags that operations have by default, in the direction that is named by its own flag.
    fn op_flags(&self, _direction: u64) -> Outcome<u64> {
        Err(Code::NOT_SUPPORTED)
    }

    /// Changes them; the direction is named beside them.
    fn set_op_flags(&self, _flags: u64) -> Outcome {
        Err(Code::NOT_SUPPORTED)
    }

    /// The object as one that can be waited for.
    fn waitable(&self) -> Option<&dyn Waitable> {
        None
    }

    /// Base address and key, of registered memory.
    fn raw_key(&self) -> Option<(u64, u64)> {
        None
    }

    /// Whether keys of other processes' memory are made usable here: domains.
    fn maps_keys(&self) -> bool {
        false
    }

    /// The fabric of a domain.
    fn fabric(&self) -> Option<&Arc<dyn Entity>> {
        None
    }

    /// The program closes the object, which nobody else uses: gives back what it has elsewhere.
    ///
    /// # Errors
    /// The code to return; the object stays.
    fn close(&self) -> Outcome {
        Ok(())
    }

    /// The process is about to end, and the object is left open.
    fn abandon(&self) {}
}

/// An object of any type.
pub(crate) trait Entity: Send + Sync {
    fn body(&self) -> &dyn Body;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Takes all calls away, as [`Object::refuse`].
    fn refuse(&self);
}

impl<H: Head + 'static, T: Body> Entity for Object<H, T> {
    fn body(&self) -> &dyn Body {
        &**self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn refuse(&self) {
        Self::refuse(self);
    }
}

static OBJECTS: Shared<BTreeMap<usize, Arc<dyn Entity>>> = Shared::new(BTreeMap::new());

/// Has forked children begin without objects. The engine is to watch forks before us: who has our
/// lock may wait for its locks, so that ours is to be had first.
// spec: LIFE-35
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        guest::watch_forks();
        fork::around(Some(before_fork), Some(in_parent), Some(in_child));
    });
}

extern "C" fn before_fork() {
    OBJECTS.before_fork();
}

extern "C" fn in_parent() {
    OBJECTS.after_fork(|_| {});
}

/// The parent's objects are as they were when it forked, locks that its threads had among them. So
/// they answer without being looked at, and are neither used nor closed.
extern "C" fn in_child() {
    OBJECTS.after_fork(|objects| {
        let inherited = std::mem::take(objects);
        inherited.values().for_each(|object| object.refuse());
        std::mem::forget(inherited);
    });
}

fn objects() -> MutexGuard<'static, BTreeMap<usize, Arc<dyn Entity>>> {
    OBJECTS.lock()
}

/// Makes an object known and returns what the program is to know it by.
pub(crate) fn add<H: Head + 'static, T: Body>(object: Arc<Object<H, T>>) -> *mut H {
    let handle = Object::handle(&object);
    objects().insert(handle as usize, object);
    handle
}

/// The object that a program knows by `handle`, whatever it is.
pub(crate) fn any<H>(handle: *const H) -> Option<Arc<dyn Entity>> {
    objects().get(&(handle as usize)).cloned()
}

/// By what the program knows the first object that there is of these; 0 where there is none.
pub(crate) fn handle_of(is_wanted: impl Fn(&Arc<dyn Entity>) -> bool) -> usize {
    objects().iter().find(|(_, object)| is_wanted(object)).map_or(0, |(handle, _)| *handle)
}

/// The object that a program knows by `handle`, if it is one of this type.
pub(crate) fn find<H: 'static, T: Body>(handle: *const c_void) -> Option<Arc<Object<H, T>>> {
    typed(&any(handle)?)
}

/// The object as one of this type, if it is.
pub(crate) fn typed<H: 'static, T: Body>(object: &Arc<dyn Entity>) -> Option<Arc<Object<H, T>>> {
    Arc::downcast(Arc::clone(object).into_any()).ok()
}

/// Closes an object.
///
/// # Errors
/// `EBUSY` while another object uses it. `EINVAL` where there is none. `EBADF` where the program
/// has closed some of its descriptors: the object is closed all the same, without those numbers.
// spec: LIFE-40
pub(crate) fn close(handle: *const c_void) -> Outcome {
    let mut objects = objects();
    let Some(object) = objects.get(&(handle as usize)) else {
        // A child that ends as its parent would closes what it does not have.
        return if fork::generation() > 0 { Ok(()) } else { Err(Code::INVALID) };
    };
    if Arc::strong_count(object) > 1 {
        return Err(Code::BUSY);
    }
    object.body().close()?;
    let object = objects.remove(&(handle as usize));
    // Objects that it has used may go with it, and look for themselves here.
    drop(objects);
    let lost = descriptor::lost();
    drop(object);
    if descriptor::lost() == lost { Ok(()) } else { Err(Errno::BADF.into()) }
}

/// The process is about to end: what is left open is abandoned. Not what a call is about to change,
/// in the midst of which a signal's handler may have exited.
pub(crate) fn abandon() {
    if let Some(objects) = OBJECTS.try_lock() {
        objects.values().for_each(|object| object.body().abandon());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    struct Thing(u8);
    impl Body for Thing {}

    /// The owner of the objects of a test.
    pub(crate) fn owner() -> Arc<dyn Entity> {
        Object::new(0u8, Thing(0))
    }

    #[test]
    fn objects_are_found_by_address_and_type() {
        let object = Object::new(7u64, Thing(3));
        let handle = add(object).cast::<c_void>();
        assert_eq!(find::<u64, Thing>(handle).unwrap().0, 3);
        assert!(find::<u32, Thing>(handle).is_none());
        assert!(find::<u64, Thing>(std::ptr::null()).is_none());
        let used = any(handle).unwrap();
        assert_eq!(close(handle), Err(Code::BUSY));
        drop(used);
        assert_eq!(close(handle), Ok(()));
        assert_eq!(close(handle), Err(Code::INVALID));
    }
}
