//! The two ends that a case works with, and how the far one gets to do its part.
use crate::engine::Executor;
use crate::fabric::{Fabric, INITIATOR, TARGET};
use crate::port::{Port, RegionOptions};
use ayre::memory::{Classes, Operation};
use ayre::{Fault, Message, Notification, PeerId, PostError, Rights};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{ScopedJoinHandle, yield_now};

/// Rounds of serving after which what does not end is taken to hang.
pub(crate) const ROUNDS: u32 = 10_000_000;
/// Polls that must find what is pending, with at most two peers: see NOTI-13.
pub(crate) const POLLS: usize = 8;

/// An initiator and a target that are connected; with a loopback, one port in both parts.
#[derive(Debug)]
pub struct World<F: Fabric = Executor> {
    fabric: F,
    near: F::Port,
    far: Option<F::Port>,
    names: u64,
}

/// A capability at its holder, and the owner's record of it.
pub type Granted<P> = (<P as Port>::RemoteRegion, <P as Port>::Grant);

/// Memory of the target that the initiator may use.
#[derive(Debug)]
pub struct Memory<P: Port = ayre::Port> {
    /// At its owner.
    pub region: P::Region,
    /// At the initiator.
    pub remote: P::RemoteRegion,
    /// The owner's record.
    pub grant: P::Grant,
}

impl<F: Fabric> World<F> {
    /// Opens and connects the ports.
    pub fn open(fabric: F) -> Self {
        let (near, far) = fabric.pair(INITIATOR.0, TARGET.0);
        Self { fabric, near, far, names: 0 }
    }

    /// The port that posts.
    pub fn initiator(&mut self) -> &mut F::Port {
        &mut self.near
    }

    /// The port whose memory and queues are addressed.
    pub fn target(&mut self) -> &mut F::Port {
        self.far.as_mut().unwrap_or(&mut self.near)
    }

    /// The target, as the initiator names it.
    pub fn target_id(&self) -> PeerId {
        if self.fabric.traits().is_loopback { INITIATOR } else { TARGET }
    }

    /// The initiator, as the target names it.
    pub fn initiator_id(&self) -> PeerId {
        INITIATOR
    }

    /// The fabric of this world.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Closes the target's port.
    ///
    /// # Panics
    /// With a loopback, which has no other port.
    pub fn drop_target(&mut self) {
        let far = self.far.take().expect("a case about death needs two ports");
        self.fabric.kill(far);
    }

    /// Both ports, initiator's first.
    ///
    /// # Panics
    /// With a loopback, which has one.
    pub fn split(self) -> (F::Port, F::Port) {
        (self.near, self.far.expect("a case about death needs two ports"))
    }

    /// Fresh zeroed memory of the target, wholly granted with all rights.
    pub fn memory(&mut self, len: usize) -> Memory<F::Port> {
        let region = self.target().alloc(len, RegionOptions::new()).expect("memory is there");
        let (remote, grant) = self.grant(&region, 0..len, Rights::all());
        Memory { region, remote, grant }
    }

    /// Fresh zeroed memory of the initiator, granted to nobody.
    pub fn own_memory(&mut self, len: usize) -> <F::Port as Port>::Region {
        self.near.alloc(len, RegionOptions::new()).expect("memory is there")
    }

    /// Hands a part of a region over to the initiator.
    pub fn grant(
        &mut self,
        region: &<F::Port as Port>::Region,
        part: Range<usize>,
        rights: Rights,
    ) -> Granted<F::Port> {
        self.names += 1;
        let (name, initiator, target) = (self.names, self.initiator_id(), self.target_id());
        let grant = self.target().share(initiator, region, part, rights, name);
        let grant = grant.expect("a valid grant is made");
        let remote = self.near.accept_region(target, name);
        (remote.expect("what is handed over arrives"), grant)
    }

    /// Runs the initiator's part, in which a call may wait for the target. If nothing else serves
    /// the target, the part runs in a thread of its own while this one makes the target's progress.
    /// Otherwise it is an ordinary call.
    pub fn drive<R: Send>(&mut self, work: impl FnOnce(&mut F::Port) -> R + Send) -> R {
        let (near, traits) = (&mut self.near, self.fabric.traits());
        match &mut self.far {
            Some(far) if traits.is_inline && !traits.is_one_thread => std::thread::scope(|scope| {
                let working = scope.spawn(move || work(near));
                serve_until(&working, far);
                join(working)
            }),
            _ => work(near),
        }
    }

    /// Runs both parts at the same time, the initiator's in a thread of its own. The target is
    /// served until the initiator's part has ended too. Where one part panics, the other one finds
    /// its peer dead instead of waiting for it.
    ///
    /// # Panics
    /// With a loopback, whose one port cannot be in two threads.
    pub fn both<A: Send, B>(
        &mut self,
        initiator: impl FnOnce(&mut F::Port) -> A + Send,
        target: impl FnOnce(&mut F::Port) -> B,
    ) -> (A, B) {
        let (near, fabric) = (&mut self.near, &self.fabric);
        let far = self.far.as_mut().expect("two parts at a time need two ports");
        std::thread::scope(|scope| {
            let working = scope.spawn(move || or_close(fabric, near, initiator));
            let theirs = or_close(fabric, far, target);
            serve_until(&working, far);
            (join(working), theirs)
        })
    }

    /// One round of progress at both ends.
    pub fn serve(&mut self) {
        if let Some(far) = &mut self.far {
            far.progress();
        }
        self.near.progress();
    }

    /// Lets the target make progress until all operations of the initiator have ended.
    ///
    /// # Panics
    /// Where they do not.
    pub fn settle(&mut self) {
        let peer = self.target_id();
        self.until("operations end", |world| world.near.is_flushed(peer).then_some(()));
    }

    /// Settles, and expects that nothing faulted since the last flush.
    pub fn settle_ok(&mut self) {
        let peer = self.target_id();
        self.settle();
        assert_eq!(self.near.flush(peer), Ok(()), "nothing that was posted faulted");
    }

    /// Serves both ends until `attempt` gives something.
    ///
    /// # Panics
    /// Where it never does; `what` says what was waited for.
    pub fn until<T>(&mut self, what: &str, mut attempt: impl FnMut(&mut Self) -> Option<T>) -> T {
        for round in 0..ROUNDS {
            if let Some(value) = attempt(self) {
                return value;
            }
            self.serve();
            self.fabric.step(round);
        }
        panic!("waited in vain: {what}");
    }

    /// Posts, settling where there is no room right now.
    pub fn post<T>(&mut self, mut call: impl FnMut(&mut F::Port) -> Result<T, PostError>) -> T {
        self.until("room", |world| match call(&mut world.near) {
            Ok(value) => Some(value),
            Err(PostError::Busy(_)) => None,
            Err(PostError::Fault(fault)) => panic!("posting faulted: {fault}"),
        })
    }

    /// Takes all notifications, after everything has settled, by where their operation says that
    /// they are raised.
    pub fn raised(&mut self) -> Raised {
        self.settle();
        let mut raised = Raised { initiator: take_notifications(&mut self.near), target: vec![] };
        match &mut self.far {
            Some(far) => raised.target = take_notifications(far),
            None => {
                let all = std::mem::take(&mut raised.initiator);
                (raised.target, raised.initiator) = all.into_iter().partition(is_raised_at_target);
            }
        }
        raised
    }
}

/// Notifications of either end, in the order in which they were delivered.
#[derive(Debug, PartialEq, Eq)]
pub struct Raised {
    /// Those of the initiator.
    pub initiator: Vec<Notification>,
    /// Those of the target.
    pub target: Vec<Notification>,
}

impl Raised {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.initiator.is_empty() && self.target.is_empty()
    }
}

/// Whether a notification belongs at the target: a completer of what lands there, a responder.
pub fn is_raised_at_target(note: &Notification) -> bool {
    use Operation::{Deposit, ImmediatePut, NotificationPut, Put};
    let lands_there = [Put, ImmediatePut, NotificationPut, Deposit].contains(&note.operation);
    note.class == Classes::RESPONDER || note.class == Classes::COMPLETER && lands_there
}

/// The next notification, if one has been raised at a port.
pub fn next_notification(port: &mut impl Port) -> Option<Notification> {
    (0..POLLS).find_map(|_| port.poll_notification())
}

/// Takes every notification that has been raised at a port.
pub fn take_notifications(port: &mut impl Port) -> Vec<Notification> {
    std::iter::from_fn(|| next_notification(port)).collect()
}

/// The next message, if one has arrived at a port.
///
/// # Panics
/// If the buffer is too short for it.
pub fn next_message(port: &mut impl Port, into: &mut [u8]) -> Option<Message> {
    (0..POLLS).find_map(|_| port.try_recv(into).expect("the buffer is long enough"))
}

/// Posts, making progress for the port and giving way while there is no room.
///
/// # Panics
/// Where posting faults.
pub fn insist<P: Port, T>(port: &mut P, mut call: impl FnMut(&mut P) -> Result<T, PostError>) -> T {
    loop {
        match call(port) {
            Ok(value) => return value,
            Err(error) => assert!(error.is_busy(), "{error}"),
        }
        port.progress();
        yield_now();
    }
}

/// The fault that a posting call returned.
///
/// # Panics
/// Where it returned none.
pub fn fault_of<T: std::fmt::Debug>(result: Result<T, PostError>) -> Fault {
    match result {
        Err(PostError::Fault(fault)) => fault,
        other => panic!("a fault was expected, not {other:?}"),
    }
}

/// Runs a part; where it panics, closes its port, so that nobody waits for it in vain.
pub(crate) fn or_close<F: Fabric, R>(
    fabric: &F,
    port: &mut F::Port,
    part: impl FnOnce(&mut F::Port) -> R,
) -> R {
    catch_unwind(AssertUnwindSafe(|| part(port))).unwrap_or_else(|panic| {
        *port = fabric.open(0);
        resume_unwind(panic)
    })
}

/// Makes a port's progress until a thread has ended.
pub(crate) fn serve_until<R>(working: &ScopedJoinHandle<'_, R>, port: &mut impl Port) {
    while !working.is_finished() {
        port.progress();
        yield_now();
    }
}

/// The thread's result, or its panic, here.
pub(crate) fn join<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
