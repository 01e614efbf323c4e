//! The engine's executors, as what the suite is instantiated for.
mod depot;
pub mod messenger;
pub mod one_thread;
mod port;

use crate::fabric::{Fabric, INITIATOR, TARGET, Traits};
use crate::world::join;
use ayre::guest::trace::Trace;
use ayre::tuning::{Step, Tuning, Use};
use ayre::{Config, Mode, NetOptions, PeerId, Port, Simulation, Spin};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// By which way operations reach the target, and which thread makes its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// One port, connected with itself, direct.
    Loopback,
    /// One port, connected with itself, mediated.
    MediatedLoopback,
    /// Two ports, direct: the target's calls are not needed.
    Direct,
    /// Two ports, direct. Long transfers use the methods that `Direct` does not: streaming stores,
    /// and reads by the kernel.
    Tuned,
    /// Two ports, mediated: operations are performed in the target's own calls.
    Inline,
    /// Two ports, mediated, without engine threads; their devices are traced.
    Recorded,
    /// Two ports, mediated: the target has started its engine thread.
    Engine,
    /// Two ports of different hosts, as far as they know: what is posted goes through the network,
    /// bare, and all progress is made in the ports' own calls.
    Wire,
    /// Two ports of different hosts, encrypted. Both have started their engine threads.
    Sealed,
    /// Two ports of different hosts, through a network that loses, repeats, reorders and damages
    /// datagrams.
    Lossy,
    /// Through a simulated network that does all of that, by its own clock, and without engine
    /// threads.
    Simulated,
}

/// The faults of a lossy executor's network.
const FAULTS: &str = "loss=20%,dup=2%,reorder=5%,corrupt=1%,seed=7";

/// The faults of a simulated network, and the delay of a datagram.
const SIMULATED_FAULTS: &str = "loss=5%,dup=2%,reorder=5%,corrupt=1%,jitter=5us,seed=7";
const LATENCY: Duration = Duration::from_micros(5);

/// The key of the ports of a sealed executor.
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
        matches!(self, Self::Inline | Self::Recorded | Self::Wire | Self::Simulated)
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
    pub(crate) fn config(self, number: u16) -> Config {
        let config = Config::new().mode(self.mode()).number(number).spin(Spin::SHARED);
        let tuning = if self == Self::Tuned { tuned() } else { Tuning::new() };
        let config = config.linger(self.linger()).tuning(tuning);
        if self == Self::Recorded { config.trace(&Trace::new()) } else { config }
    }

    /// How long a port that goes waits until what it has posted is confirmed. Engine threads
    /// confirm it, as soon as the system runs them; without them there may be nobody to.
    fn linger(self) -> Duration {
        Duration::from_millis(if matches!(self, Self::Sealed | Self::Lossy) { 3000 } else { 50 })
    }
}

impl Fabric for Executor {
    type Port = Port;
    type Door = Door;

    fn traits(&self) -> Traits {
        Traits {
            mode: self.mode(),
            is_loopback: self.is_loopback(),
            is_wire: self.is_wire(),
            is_inline: self.is_inline(),
            is_one_thread: false,
            pulls: matches!(self, Self::Direct | Self::Tuned),
        }
    }

    fn open(&self, number: u16) -> Port {
        Self::open(*self, number)
    }

    fn pair(&self, near: u16, far: u16) -> (Port, Option<Port>) {
        if self.is_loopback() {
            let mut port = self.open(near);
            port.connect_loopback().expect("a loopback connects");
            return (port, None);
        }
        let (near, far) = (self.config(near), self.config(far));
        let (mut near, mut far) = match self.is_wire() {
            false => Port::pair(near, far).expect("a pair opens"),
            true => linked(*self, near, far),
        };
        self.start_engine(&mut near, false);
        self.start_engine(&mut far, true);
        (near, Some(far))
    }

    fn listen(&self, number: u16) -> (Port, Door) {
        let mut port = self.open(number);
        let path = socket_path();
        port.listen(&path).expect("a socket path");
        let net = self.net();
        let address = net.open(&mut port);
        self.start_engine(&mut port, true);
        (port, Door { net, path, address })
    }

    fn join(&self, door: &Door, target: &mut Port, number: u16) -> Port {
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                let mut port = self.open(number);
                door.net.open(&mut port);
                let connected = match door.address {
                    Some(address) => port.connect_net(&[address]),
                    None => port.connect(&door.path),
                };
                assert_eq!(connected.expect("the target accepts"), TARGET);
                self.start_engine(&mut port, false);
                port
            });
            let accepted = target.accept().expect("an initiator connects");
            assert_eq!(accepted, PeerId(number));
            join(connecting)
        })
    }

    fn mesh(&self, members: u16) -> Vec<Port> {
        let net = self.net();
        let mut ports: Vec<(Port, Option<SocketAddr>)> = vec![];
        for number in 0..members {
            let mut port = self.open(number);
            let address = net.open(&mut port);
            for (other, address) in &mut ports {
                connect(&mut port, other, *address);
            }
            self.start_engine(&mut port, true);
            ports.push((port, address));
        }
        ports.into_iter().map(|(port, _)| port).collect()
    }

    fn loopback(&self) -> Self {
        Self::Loopback
    }
}

/// Connects a port with one that is open to the network, or else by a path.
fn connect(port: &mut Port, other: &mut Port, address: Option<SocketAddr>) {
    let path = socket_path();
    if address.is_none() {
        other.listen(&path).expect("a socket path");
    }
    let (near, far) = (PeerId(port.rank() as u16), PeerId(other.rank() as u16));
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| match address {
            Some(address) => port.connect_net(&[address]),
            None => port.connect(&path),
        });
        assert_eq!(other.accept().expect("it connects"), near);
        assert_eq!(join(connecting).expect("it accepts"), far);
    });
    let _ = std::fs::remove_file(path);
}

/// Where a port listens, and how who connects is open to the network, if there is one.
#[derive(Debug)]
pub struct Door {
    net: Net,
    path: PathBuf,
    address: Option<SocketAddr>,
}

impl Drop for Door {
    fn drop(&mut self) {
        // A socket that stays behind in the folder of temporary files harms nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The common options of one world's ports for other hosts, if they are open to these.
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

/// A path that no other test of this machine uses.
pub fn socket_path() -> PathBuf {
    static NEXT: Mutex<u32> = Mutex::new(0);
    let mut next = NEXT.lock().expect("nobody panics while counting");
    *next += 1;
    std::env::temp_dir().join(format!("ayre-conformance-{}-{next}.sock", std::process::id()))
}
