//! The two ends that a case works with, and how the far one gets to do its part.
use ayre::tuning::{Step, Tuning, Use};
use ayre::{
    Classes, Config, Fault, Grant, Message, Mode, NetOptions, Notification, Operation, PeerId,
    Port, PostError, Region, RegionOptions, RemoteRegion, Rights, Simulation, Spin,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{ScopedJoinHandle, yield_now};
use std::time::Duration;

/// Who performs operations, and who makes the target's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// One port, connected with itself, direct.
    Loopback,
    /// One port, connected with itself, mediated.
    MediatedLoopback,
    /// Two ports, direct: the target's calls are not needed.
    Direct,
    /// The same, and many bytes are moved by each use's other method: streamed, read by the kernel.
    Tuned,
    /// Two ports, mediated: operations are performed in the target's own calls.
    Inline,
    /// Two ports, mediated: the target has started its engine thread.
    Engine,
    /// Two ports of different hosts, as far as they know: what is posted goes through the network,
    /// bare, and all progress is made in the ports' own calls.
    Wire,
    /// The same, encrypted, and both ports have started their engine threads.
    Sealed,
    /// The same, through a network that loses, repeats, reorders and damages.
    Lossy,
    /// Through a simulated network that does all of that, by its own clock, and without engine
    /// threads.
    Simulated,
}

/// What the network does to each datagram of a lossy executor.
const FAULTS: &str = "loss=20%,dup=2%,reorder=5%,corrupt=1%,seed=7";

/// The same of a simulated network, whose datagrams take so long.
const SIMULATED_FAULTS: &str = "loss=5%,dup=2%,reorder=5%,corrupt=1%,jitter=5us,seed=7";
const LATENCY: Duration = Duration::from_micros(5);

/// What the ports of a sealed executor hold.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

impl Executor {
    /// How the ports are configured.
    pub fn mode(self) -> Mode {
        match self {
            Self::Loopback | Self::Direct | Self::Tuned => Mode::Direct,
            _ => Mode::Mediated,
        }
    }

    /// Whether the ports are connected through the network.
    pub fn is_wire(self) -> bool {
        matches!(self, Self::Wire | Self::Sealed | Self::Lossy | Self::Simulated)
    }

    /// Whether the target is served in its own calls and nowhere else.
    pub fn is_inline(self) -> bool {
        matches!(self, Self::Inline | Self::Wire | Self::Simulated)
    }

    /// How ports of one world are open to other hosts.
    pub fn net(self) -> Net {
        let options = match self {
            Self::Wire => NetOptions::plain(),
            Self::Sealed => NetOptions::sealed(KEY).expect("a key"),
            Self::Lossy => {
                let sealed = NetOptions::sealed(KEY).expect("a key");
                sealed.faults(FAULTS.parse().expect("a plan"))
            }
            Self::Simulated => {
                let plain = NetOptions::plain().simulated(&Simulation::new(LATENCY));
                plain.faults(SIMULATED_FAULTS.parse().expect("a plan"))
            }
            _ => return Net(None),
        };
        Net(Some(options.at(ANY)))
    }

    /// Starts the engine threads that this executor has: at a target, and over the network at
    /// either end.
    pub fn start_engine(self, port: &mut Port, is_target: bool) {
        if matches!(self, Self::Sealed | Self::Lossy) || self == Self::Engine && is_target {
            port.start_engine().expect("an engine starts");
        }
    }

    /// Whether initiator and target are the same port.
    pub fn is_loopback(self) -> bool {
        matches!(self, Self::Loopback | Self::MediatedLoopback)
    }

    /// Opens a port as this executor wants it, not connected yet.
    pub fn open(self, number: u16) -> Port {
        Port::open(self.config(number)).expect("a port opens")
    }

    /// Waits give way early: the cases run on whatever processors there are, several at a time.
    fn config(self, number: u16) -> Config {
        let config = Config::new().mode(self.mode()).number(number).spin(Spin::SHARED);
        let tuning = if self == Self::Tuned { tuned() } else { Tuning::new() };
        config.linger(self.linger()).tuning(tuning)
    }

    /// How long a port that goes waits until what it has posted is confirmed. Engine threads
    /// confirm it, as soon as the system runs them; without them there may be nobody to.
    fn linger(self) -> Duration {
        Duration::from_millis(if matches!(self, Self::Sealed | Self::Lossy) { 3000 } else { 50 })
    }
}

/// What the ports of one world have in common to be open to other hosts, if they are.
#[derive(Clone, Debug)]
pub struct Net(Option<NetOptions>);

impl Net {
    /// Opens a port to other hosts, if there are any: its address.
    pub fn open(&self, port: &mut Port) -> Option<SocketAddr> {
        let options = self.0.as_ref()?;
        Some(port.open_net(options).expect("an address of this host")[0])
    }
}

/// Each use by its other method, whatever the size.
fn tuned() -> Tuning {
    Use::ALL.into_iter().fold(Tuning::new(), |tuning, of| {
        let step = Step { from: 0, method: of.methods()[1] };
        tuning.with_steps(of, vec![step]).expect("a step")
    })
}

/// Some port of the loopback interface.
const ANY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Number of the initiating port; differs from its place in every table.
pub const INITIATOR: PeerId = PeerId(3);
/// Number of the target port.
pub const TARGET: PeerId = PeerId(1);
/// Rounds of serving after which what does not end is taken to hang.
pub(crate) const ROUNDS: u32 = 10_000_000;
/// Polls that must find what is pending, with at most two peers: see NOTI-13.
pub(crate) const POLLS: usize = 8;

/// An initiator and a target that are connected; with a loopback, one port in both parts.
#[derive(Debug)]
pub struct World {
    executor: Executor,
    near: Port,
    far: Option<Port>,
    names: u64,
}

/// Memory of the target that the initiator may use.
#[derive(Debug)]
pub struct Memory {
    /// At its owner.
    pub region: Region,
    /// At the initiator.
    pub remote: RemoteRegion,
    /// The owner's record.
    pub grant: Grant,
}

impl World {
    /// Opens and connects the ports.
    pub fn open(executor: Executor) -> Self {
        let (near, far) = if executor.is_loopback() {
            let mut port = executor.open(INITIATOR.0);
            port.connect_loopback().expect("a loopback connects");
            (port, None)
        } else {
            let (near, far) = (executor.config(INITIATOR.0), executor.config(TARGET.0));
            let (mut near, mut far) = match executor.is_wire() {
                false => Port::pair(near, far).expect("a pair opens"),
                true => linked(executor, near, far),
            };
            executor.start_engine(&mut near, false);
            executor.start_engine(&mut far, true);
            (near, Some(far))
        };
        Self { executor, near, far, names: 0 }
    }

    /// The port that posts.
    pub fn initiator(&mut self) -> &mut Port {
        &mut self.near
    }

    /// The port whose memory and queues are addressed.
    pub fn target(&mut self) -> &mut Port {
        self.far.as_mut().unwrap_or(&mut self.near)
    }

    /// The target, as the initiator names it.
    pub fn target_id(&self) -> PeerId {
        if self.executor.is_loopback() { INITIATOR } else { TARGET }
    }

    /// The initiator, as the target names it.
    pub fn initiator_id(&self) -> PeerId {
        INITIATOR
    }

    /// Whom this world is about.
    pub fn executor(&self) -> Executor {
        self.executor
    }

    /// Closes the target's port.
    ///
    /// # Panics
    /// With a loopback, which has no other port.
    pub fn drop_target(&mut self) {
        drop(self.far.take().expect("a case about death needs two ports"));
    }

    /// Both ports, initiator's first.
    ///
    /// # Panics
    /// With a loopback, which has one.
    pub fn split(self) -> (Port, Port) {
        (self.near, self.far.expect("a case about death needs two ports"))
    }

    /// Fresh zeroed memory of the target, wholly granted with all rights.
    pub fn memory(&mut self, len: usize) -> Memory {
        let region = self.target().alloc(len, RegionOptions::new()).expect("memory is there");
        let (remote, grant) = self.grant(&region, 0..len, Rights::all());
        Memory { region, remote, grant }
    }

    /// Fresh zeroed memory of the initiator, granted to nobody.
    pub fn own_memory(&mut self, len: usize) -> Region {
        self.near.alloc(len, RegionOptions::new()).expect("memory is there")
    }

    /// Hands a part of a region over to the initiator.
    pub fn grant(
        &mut self,
        region: &Region,
        part: Range<usize>,
        rights: Rights,
    ) -> (RemoteRegion, Grant) {
        self.names += 1;
        let (name, initiator, target) = (self.names, self.initiator_id(), self.target_id());
        let grant = self.target().share(initiator, region, part, rights, name);
        let grant = grant.expect("a valid grant is made");
        let remote = self.near.accept_region(target, name);
        (remote.expect("what is handed over arrives"), grant)
    }

    /// Runs the initiator's part. A call in it may wait for the target: where the target is served
    /// by nobody else (`Inline`), the part runs in a thread of its own while this one makes the
    /// target's progress. Everywhere else it is an ordinary call.
    pub fn drive<R: Send>(&mut self, work: impl FnOnce(&mut Port) -> R + Send) -> R {
        let near = &mut self.near;
        match &mut self.far {
            Some(far) if self.executor.is_inline() => std::thread::scope(|scope| {
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
        initiator: impl FnOnce(&mut Port) -> A + Send,
        target: impl FnOnce(&mut Port) -> B,
    ) -> (A, B) {
        let (near, executor) = (&mut self.near, self.executor);
        let far = self.far.as_mut().expect("two parts at a time need two ports");
        std::thread::scope(|scope| {
            let working = scope.spawn(move || or_close(executor, near, initiator));
            let theirs = or_close(executor, far, target);
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
            give_way(round);
        }
        panic!("waited in vain: {what}");
    }

    /// Posts, settling where there is no room right now.
    pub fn post<T>(&mut self, mut call: impl FnMut(&mut Port) -> Result<T, PostError>) -> T {
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

/// Gives way now and then, as whoever computes on this processor takes long at it each time.
pub(crate) fn give_way(round: u32) {
    if round.is_multiple_of(16) {
        yield_now();
    }
}

/// Two ports that are connected through the network.
fn linked(executor: Executor, near: Config, far: Config) -> (Port, Port) {
    let open = |config| Port::open(config).expect("a port opens");
    let (mut near, mut far) = (open(near), open(far));
    let net = executor.net();
    net.open(&mut near);
    let address = net.open(&mut far).expect("a wire");
    std::thread::scope(|scope| {
        let connecting =
            scope.spawn(|| near.connect_net(&[address]).expect("the far port accepts"));
        assert_eq!(far.accept().expect("the near port connects"), INITIATOR);
        assert_eq!(join(connecting), TARGET);
    });
    (near, far)
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
pub fn next_notification(port: &mut Port) -> Option<Notification> {
    (0..POLLS).find_map(|_| port.poll_notification())
}

/// Takes every notification that has been raised at a port.
pub fn take_notifications(port: &mut Port) -> Vec<Notification> {
    std::iter::from_fn(|| next_notification(port)).collect()
}

/// The next message, if one has arrived at a port.
///
/// # Panics
/// If the buffer is too short for it.
pub fn next_message(port: &mut Port, into: &mut [u8]) -> Option<Message> {
    (0..POLLS).find_map(|_| port.try_recv(into).expect("the buffer is long enough"))
}

/// Posts, making progress for the port and giving way while there is no room.
///
/// # Panics
/// Where posting faults.
pub fn insist<T>(port: &mut Port, mut call: impl FnMut(&mut Port) -> Result<T, PostError>) -> T {
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
pub(crate) fn or_close<R>(
    executor: Executor,
    port: &mut Port,
    part: impl FnOnce(&mut Port) -> R,
) -> R {
    catch_unwind(AssertUnwindSafe(|| part(port))).unwrap_or_else(|panic| {
        *port = executor.open(0);
        resume_unwind(panic)
    })
}

/// Makes a port's progress until a thread has ended.
pub(crate) fn serve_until<R>(working: &ScopedJoinHandle<'_, R>, port: &mut Port) {
    while !working.is_finished() {
        port.progress();
        yield_now();
    }
}

/// The thread's result, or its panic, here.
pub(crate) fn join<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
