//! Ports of tests that are open to other hosts.
use ayre::{Config, NetOptions, PeerId, Port, Spin};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Some port of the loopback interface.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The key of the ports of a sealed test.
pub const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// The key of a port that must be refused.
pub const OTHER_KEY: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
/// A silence that no test outlasts by being slow.
pub const LONG: Duration = Duration::from_secs(120);

/// How links are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    Plain,
    /// By [`KEY`].
    Sealed,
}

impl Protection {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Sealed];

    /// Options with it, and nobody is taken for dead.
    pub fn options(self) -> NetOptions {
        let options = match self {
            Self::Plain => NetOptions::plain(),
            Self::Sealed => NetOptions::sealed(KEY).expect("a key"),
        };
        options.silence(LONG)
    }
}

/// Opens a port of a number; its waits give way early, for tests share processors.
pub fn open(number: u16) -> Port {
    Port::open(config(number)).expect("a port")
}

/// How [`open`] opens a port: one that is dropped does not stay to see whether others have heard.
pub fn config(number: u16) -> Config {
    Config::new().number(number).spin(Spin::SHARED).linger(Duration::ZERO)
}

/// Opens a port of a number to other hosts, at an address of the system's choice.
pub fn open_at(number: u16, options: NetOptions) -> (Port, SocketAddr) {
    let mut port = open(number);
    let at = port.open_net(&options.at(ANY)).expect("an address of this host");
    (port, at[0])
}

/// Connects a port to one at an address, which accepts meanwhile. Returns the number that each has
/// for the other.
pub fn connect(near: &mut Port, far: &mut Port, at: SocketAddr) -> (PeerId, PeerId) {
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| near.connect_net(&[at]).expect("the far port accepts"));
        let near = far.accept().expect("the near port connects");
        // Its first answer may be lost: it goes again when the port is polled.
        while !connecting.is_finished() {
            far.progress();
            std::thread::yield_now();
        }
        (connecting.join().expect("no panic"), near)
    })
}
