//! Drivers that are started, and connected with each other.
use super::messenger::DrivenMessenger;
use super::port::DrivenPort;
use super::words::Words;
use crate::engine::socket_path;
use crate::fabric::{Fabric, TARGET, Traits};
use crate::messenger::Messengers;
use ayre::{Mode, PeerId};
use std::path::PathBuf;
use std::thread::yield_now;

/// Rounds in vain after which a case is given up: each asks two processes.
const ROUNDS_MAX: u32 = 200_000;

/// Ports of processes that run a driver.
#[derive(Clone, Copy, Debug)]
pub struct Driven {
    /// The driver.
    pub program: &'static str,
    /// How its ports carry out operations.
    pub mode: Mode,
    /// One port, connected with itself.
    pub is_loopback: bool,
}

/// Where a port listens.
#[derive(Debug)]
pub struct Door(PathBuf);

impl Drop for Door {
    fn drop(&mut self) {
        // A socket that stays behind in the folder of temporary files harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Driven {
    /// Two ports of one host, whose initiator performs operations itself.
    pub const fn direct(program: &'static str) -> Self {
        Self { program, mode: Mode::Direct, is_loopback: false }
    }

    /// Two ports of one host, whose target performs operations in its own calls.
    pub const fn mediated(program: &'static str) -> Self {
        Self { program, mode: Mode::Mediated, is_loopback: false }
    }
}

impl Fabric for Driven {
    type Port = DrivenPort;
    type Door = Door;

    fn traits(&self) -> Traits {
        Traits {
            mode: self.mode,
            is_loopback: self.is_loopback,
            is_wire: false,
            is_inline: self.mode == Mode::Mediated,
            is_one_thread: false,
            // As the engine does, whose library the driver is of.
            pulls: self.mode == Mode::Direct,
        }
    }

    fn open(&self, number: u16) -> DrivenPort {
        DrivenPort::start(self.program, number, self.mode)
    }

    fn pair(&self, near: u16, far: u16) -> (DrivenPort, Option<DrivenPort>) {
        let mut port = self.open(near);
        if self.is_loopback {
            port.ask("loopback").done();
            return (port, None);
        }
        let mut other = self.open(far);
        connect(&mut port, &mut other);
        (port, Some(other))
    }

    fn listen(&self, number: u16) -> (DrivenPort, Door) {
        let (port, path) = (self.open(number), socket_path());
        port.ask(&format!("listen {}", path.display())).done();
        (port, Door(path))
    }

    fn join(&self, door: &Door, target: &mut DrivenPort, number: u16) -> DrivenPort {
        let mut port = self.open(number);
        assert_eq!(accept(&mut port, target, door), [TARGET, PeerId(number)]);
        port
    }

    fn mesh(&self, members: u16) -> Vec<DrivenPort> {
        let mut ports: Vec<DrivenPort> = vec![];
        for number in 0..members {
            let mut port = self.open(number);
            ports.iter_mut().for_each(|other| connect(&mut port, other));
            ports.push(port);
        }
        ports
    }

    fn loopback(&self) -> Self {
        Self { is_loopback: true, ..Self::direct(self.program) }
    }

    fn kill(&self, port: DrivenPort) {
        port.kill();
    }

    fn step(&self, round: u32) {
        assert!(round < ROUNDS_MAX, "waited in vain, in {round} rounds");
        yield_now();
    }
}

impl Messengers for Driven {
    type Messenger<S> = DrivenMessenger<S>;
}

fn connect(port: &mut DrivenPort, other: &mut DrivenPort) {
    let door = Door(socket_path());
    other.ask(&format!("listen {}", door.0.display())).done();
    accept(port, other, &door);
}

/// One connects, and the other one accepts: the peer of each.
fn accept(port: &mut DrivenPort, other: &mut DrivenPort, door: &Door) -> [PeerId; 2] {
    other.begin("accept");
    let near = port.ask(&format!("connect {}", door.0.display())).done();
    let far = other.end().done();
    [near, far].map(|words| Words::of(&words).peer())
}
