//! Fabrics and domains.

pub(crate) mod av;
pub(crate) mod memory;
pub(crate) mod mr;

use crate::abi::{DomainAttr, FidDomain, FidEq, REG_MR, RM_DISABLED, THREAD_DOMAIN};
use crate::abi::{LOG_DOMAIN, PROGRESS_AUTO, errno};
use crate::error::{Code, Outcome, trouble};
use crate::info::offer::Kind;
use crate::object::registry::{self, Body, Entity};
use crate::queue::eq::Eq;
use crate::record::Recorder;
use crate::sys::core;
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use ayre_guest::progress::{Mover, Served};
use memory::{Addressing, Memory, Regions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fabric that a program has opened.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) kind: &'static Kind,
    /// The version of the interface that the program speaks.
    pub(crate) api: u32,
}

impl Body for Fabric {}

/// The choices of a program for a domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    pub(crate) api: u32,
    pub(crate) threading: u32,
    pub(crate) resource_mgmt: u32,
    pub(crate) data_progress: u32,
    pub(crate) av_type: u32,
    pub(crate) mr_mode: i32,
}

impl Choices {
    pub(crate) fn of(attr: &DomainAttr, api: u32) -> Self {
        Self {
            api,
            threading: attr.threading,
            resource_mgmt: attr.resource_mgmt,
            data_progress: attr.data_progress,
            av_type: attr.av_type,
            mr_mode: attr.mr_mode,
        }
    }

    /// Whether the program keeps its threads apart, so that nothing needs a lock. With a thread of
    /// ours that tells of all that ends, it cannot.
    pub(crate) fn is_serial(&self) -> bool {
        self.threading == THREAD_DOMAIN && self.data_progress != PROGRESS_AUTO
    }
}

/// A domain, of a policy that was chosen when it was opened.
pub(crate) struct Domain<L: Policy> {
    /// Of its fabric.
    pub(crate) kind: &'static Kind,
    pub(crate) choices: Choices,
    /// Locked, whatever the policy: memory is registered by one thread while another one polls.
    pub(crate) regions: Mutex<Regions<L>>,
    /// The memory that peers may access, through endpoints that are opened for that.
    pub(crate) memory: Memory,
    /// Where registrations report, if they do.
    reports_to: Mutex<Option<Arc<Object<FidEq, Eq>>>>,
    eq: Mutex<Option<Arc<Object<FidEq, Eq>>>>,
    /// Serves peers while the program does not call.
    mover: Mover,
    offers: Mutex<Offers>,
    /// Of the policy that records.
    pub(crate) recorder: Option<Arc<Recorder>>,
    fabric: Arc<dyn Entity>,
}

/// Whether there is memory that peers may work on, and endpoints that are to be served once there
/// is.
#[derive(Default)]
struct Offers {
    is_made: bool,
    waiting: Vec<Arc<dyn Served>>,
}

impl<L: Policy> Domain<L> {
    pub(crate) fn new(kind: &'static Kind, choices: Choices, fabric: Arc<dyn Entity>) -> Self {
        Self {
            kind,
            choices,
            regions: Mutex::new(Regions::new()),
            memory: Memory::new(),
            reports_to: Mutex::default(),
            eq: Mutex::default(),
            mover: Mover::default(),
            offers: Mutex::default(),
            recorder: None,
            fabric,
        }
    }

    /// The domain that a program names.
    ///
    /// # Errors
    /// `EINVAL` where it is none of this policy.
    pub(crate) fn find(domain: *const FidDomain) -> Outcome<Arc<DomainObject<L>>> {
        registry::find(domain.cast()).ok_or(Code::INVALID)
    }

    /// Adds an endpoint of this domain. It moves data by itself if the program has asked for that.
    /// Otherwise, if peers may access memory through it, it does so from the first registration on.
    ///
    /// # Errors
    /// The system's code for the thread, where the program has asked for that.
    // spec: ENV-41
    pub(crate) fn enable(&self, endpoint: &Arc<dyn Served>, is_open_to_work: bool) -> Outcome {
        if self.choices.data_progress == PROGRESS_AUTO {
            return self.add(endpoint);
        }
        if is_open_to_work {
            let mut offers = self.offers();
            match offers.is_made {
                true => self.serve(endpoint),
                false => offers.waiting.push(Arc::clone(endpoint)),
            }
        }
        Ok(())
    }

    /// There is memory that peers may work on.
    pub(crate) fn offer(&self) {
        let mut offers = self.offers();
        offers.is_made = true;
        offers.waiting.drain(..).for_each(|endpoint| self.serve(&endpoint));
    }

    /// The endpoint goes.
    pub(crate) fn disable(&self, endpoint: &Arc<dyn Served>) {
        self.offers().waiting.retain(|other| !Arc::ptr_eq(other, endpoint));
        self.mover.remove(endpoint);
    }

    fn add(&self, endpoint: &Arc<dyn Served>) -> Outcome {
        let added = self.mover.add(endpoint);
        added.map_err(|error| trouble::of_setup("the thread that serves peers", &error))
    }

    /// The program has not asked for it, and can do without.
    fn serve(&self, endpoint: &Arc<dyn Served>) {
        if let Err(Code(code)) = self.add(endpoint) {
            let what = "memory is served by the program's own calls only: no thread for it";
            core::warn(LOG_DOMAIN, format_args!("{what} (error {code})"));
        }
    }

    fn finish_recording(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.finish();
        }
    }

    fn offers(&self) -> MutexGuard<'_, Offers> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether queues must not be overrun.
    pub(crate) fn is_managed(&self) -> bool {
        self.choices.resource_mgmt != RM_DISABLED
    }

    pub(crate) fn addressing(&self) -> Addressing {
        Addressing::of(self.choices.mr_mode)
    }

    /// Where registrations report, if they do.
    pub(crate) fn reports_to(&self) -> Option<Arc<Object<FidEq, Eq>>> {
        self.reports_to.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<L: Policy> Body for Domain<L> {
    fn maps_keys(&self) -> bool {
        true
    }

    fn fabric(&self) -> Option<&Arc<dyn Entity>> {
        Some(&self.fabric)
    }

    fn bind(&self, other: &Arc<dyn Entity>, flags: u64) -> Outcome {
        let eq = registry::typed::<FidEq, Eq>(other).ok_or(Code::INVALID)?;
        let slot = match flags {
            0 => &self.eq,
            REG_MR => &self.reports_to,
            _ => return Err(Code::BAD_FLAGS),
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_some() {
            return Err(Code(errno::EINVAL));
        }
        *slot = Some(eq);
        Ok(())
    }

    fn close(&self) -> Outcome {
        self.mover.stop();
        self.finish_recording();
        Ok(())
    }

    fn abandon(&self) {
        self.mover.try_stop();
        self.finish_recording();
    }
}

/// The object of a domain, for any policy.
pub(crate) type DomainObject<L> = Object<FidDomain, Domain<L>>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::abi::Fid;
    use crate::abi::{AV_TABLE, PROGRESS_MANUAL, RM_ENABLED, THREAD_SAFE};
    use crate::info::offer::KINDS;
    use ayre_guest::layout::version;
    use std::ptr::null_mut;

    /// A domain for tests of what is in one, whose program addresses memory in this way.
    pub(crate) fn domain_with<L: Policy>(mr_mode: i32) -> Arc<DomainObject<L>> {
        let (choices, api) = (Choices { mr_mode, ..CHOICES }, CHOICES.api);
        let fid = Fid { fclass: 0, context: null_mut(), ops: std::ptr::null() };
        let head = FidDomain { fid, ops: std::ptr::null(), mr: std::ptr::null() };
        let fabric = Object::new(0u8, Fabric { kind: &KINDS[0], api });
        Object::new(head, Domain::new(&KINDS[0], choices, fabric))
    }

    const CHOICES: Choices = Choices {
        api: version(1, 17),
        threading: THREAD_SAFE,
        resource_mgmt: RM_ENABLED,
        data_progress: PROGRESS_MANUAL,
        av_type: AV_TABLE,
        mr_mode: 0,
    };

    #[test]
    fn only_a_program_that_keeps_its_threads_apart_goes_without_locks() {
        let choices = CHOICES;
        let is_serial =
            |threading, data_progress| Choices { threading, data_progress, ..choices }.is_serial();
        assert!(is_serial(THREAD_DOMAIN, PROGRESS_MANUAL));
        assert!(!is_serial(THREAD_DOMAIN, PROGRESS_AUTO));
        assert!(!is_serial(THREAD_SAFE, PROGRESS_MANUAL));
    }
}
