//! One target with several initiators, each in a thread of its own.
use crate::Executor;
use crate::world::{Net, ROUNDS, TARGET, give_way, join, or_close};
use ayre::{PeerId, Port, Region, RemoteQueue, RemoteRegion, Rights};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::yield_now;

/// A target and its initiators, whose numbers begin at [`FIRST`].
#[derive(Debug)]
pub struct Crowd {
    executor: Executor,
    net: Net,
    path: PathBuf,
    address: Option<SocketAddr>,
    /// The port in the middle.
    pub target: Port,
    /// The others, connected with it only.
    pub initiators: Vec<Port>,
}

/// Number of the first initiator.
pub const FIRST: u16 = 4;

impl Crowd {
    /// Opens the ports and connects every initiator with the target, by address.
    ///
    /// # Panics
    /// With a loopback, which has one port.
    pub fn open(executor: Executor, initiators: u16) -> Self {
        assert!(!executor.is_loopback(), "a crowd has several ports");
        let mut target = executor.open(TARGET.0);
        let path = socket_path();
        target.listen(&path).expect("a socket path");
        let net = executor.net();
        let address = net.open(&mut target);
        let mut crowd = Self { executor, net, path, address, target, initiators: vec![] };
        for number in 0..initiators {
            let port = crowd.connect(FIRST + number);
            crowd.initiators.push(port);
        }
        executor.start_engine(&mut crowd.target, true);
        crowd
    }

    /// Closes an initiator, whose connection the target has ended, and connects a new one of the
    /// same number.
    pub fn replace(&mut self, index: usize) {
        self.initiators[index] = self.connect(FIRST + index as u16);
    }

    /// A new port that is connected with the target.
    fn connect(&mut self, number: u16) -> Port {
        let Self { executor, net, path, address, target, .. } = self;
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                let mut port = executor.open(number);
                net.open(&mut port);
                let connected = match address {
                    Some(address) => port.connect_net(&[*address]),
                    None => port.connect(path),
                };
                assert_eq!(connected.expect("the target accepts"), TARGET);
                executor.start_engine(&mut port, false);
                port
            });
            let accepted = target.accept().expect("an initiator connects");
            assert_eq!(accepted, PeerId(number));
            join(connecting)
        })
    }

    /// Every initiator's number at the target.
    pub fn ids(&self) -> Vec<PeerId> {
        (0..self.initiators.len()).map(|index| PeerId(FIRST + index as u16)).collect()
    }

    /// Grants the whole region, with all rights, to every initiator.
    pub fn share(&mut self, region: &Region) -> Vec<RemoteRegion> {
        let Self { target, initiators, .. } = self;
        let share = |port: &mut Port| {
            let holder = PeerId(port.rank() as u16);
            let name = region.len() as u64;
            target.share(holder, region, 0..region.len(), Rights::all(), name).expect("a grant");
            port.accept_region(TARGET, name).expect("what is handed over arrives")
        };
        initiators.iter_mut().map(share).collect()
    }

    /// A queue with every initiator as a producer.
    pub fn queue(&mut self, capacity: usize) -> (ayre::Queue, Vec<RemoteQueue>) {
        let Self { target, initiators, .. } = self;
        let mut queue = target.create_queue(capacity).expect("a queue");
        let share = |port: &mut Port| {
            let holder = PeerId(port.rank() as u16);
            target.share_queue(holder, &mut queue, 1).expect("a producer");
            port.accept_queue(TARGET, 1).expect("what is handed over arrives")
        };
        let remotes = initiators.iter_mut().map(share).collect();
        (queue, remotes)
    }

    /// Runs `work` for every initiator, with a state of its own, in a thread each, and `serve` for
    /// the target in between, until all have ended. `serve` makes the target's progress besides.
    pub fn each<S: Send, R: Send>(
        &mut self,
        states: Vec<S>,
        work: impl Fn(&mut Port, S) -> R + Sync,
        mut serve: impl FnMut(&mut Port),
    ) -> Vec<R> {
        let Self { target, initiators, executor, .. } = self;
        std::thread::scope(|scope| {
            let work = &work;
            let start = |(port, state)| scope.spawn(move || work(port, state));
            let mut threads: Vec<_> =
                initiators.iter_mut().zip(states).map(|begun| Some(start(begun))).collect();
            let mut results: Vec<_> = threads.iter().map(|_| None).collect();
            // Whichever ends: others may wait for ever for one that has panicked.
            while results.iter().any(Option::is_none) {
                for (thread, result) in threads.iter_mut().zip(&mut results) {
                    if let Some(thread) = thread.take_if(|thread| thread.is_finished()) {
                        *result = Some(or_close(*executor, target, |_| join(thread)));
                    }
                }
                serve(target);
                target.progress();
                yield_now();
            }
            serve(target);
            results.into_iter().flatten().collect()
        })
    }

    /// Serves all ports from this thread until `attempt` gives something.
    ///
    /// # Panics
    /// Where it never does; `what` says what was waited for.
    pub fn until<T>(&mut self, what: &str, mut attempt: impl FnMut(&mut Self) -> Option<T>) -> T {
        for round in 0..ROUNDS {
            if let Some(value) = attempt(self) {
                return value;
            }
            self.target.progress();
            self.initiators.iter_mut().for_each(Port::progress);
            give_way(round);
        }
        panic!("waited in vain: {what}");
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // A socket that stays behind in the folder of temporary files harms nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A path that no other test of this machine uses.
pub fn socket_path() -> PathBuf {
    static NEXT: Mutex<u32> = Mutex::new(0);
    let mut next = NEXT.lock().expect("nobody panics while counting");
    *next += 1;
    std::env::temp_dir().join(format!("ayre-conformance-{}-{next}.sock", std::process::id()))
}
