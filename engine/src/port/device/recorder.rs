//! A device that records its calls and passes them on to another one: the smallest example of a
//! device.
use super::{AnyDevice, Device};
use crate::port::local::Piece;
use ayre_proto::command::Words;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::units::PeerId;
use std::sync::{Arc, Mutex, PoisonError};

/// All calls to the devices of a port, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Vec<Traced>>>);

/// A call to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The peer of the device's connection.
    pub peer: PeerId,
    /// The call.
    pub what: Given,
}

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// A command, and the number of its bytes of data.
    Command(Words, usize),
    /// A record was published in a lane.
    Published,
    /// The port waits for all operations that it has posted.
    Hastened,
    /// Set-up that was sent at once.
    PushedOut,
    /// The end of the connection.
    Ended,
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// All calls so far.
    pub fn all(&self) -> Vec<Traced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, peer: PeerId, what: Given) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Traced { peer, what });
    }
}

/// A device that records calls and passes them on.
#[derive(Debug)]
pub(crate) struct Recorder {
    device: Box<AnyDevice>,
    peer: PeerId,
    trace: Trace,
}

impl Recorder {
    pub(super) fn new(device: AnyDevice, peer: PeerId, trace: Trace) -> Self {
        debug_assert!(!matches!(device, AnyDevice::Recorder(_)), "nothing is traced twice");
        Self { device: Box::new(device), peer, trace }
    }

    fn record(&self, what: Given) {
        self.trace.add(self.peer, what);
    }
}

impl Device for Recorder {
    fn how(&self) -> &'static str {
        self.device.how()
    }

    fn is_driven_here(&self) -> bool {
        self.device.is_driven_here()
    }

    #[cold]
    fn publish(&self) {
        self.record(Given::Published);
        self.device.publish();
    }

    fn hasten(&self) {
        self.record(Given::Hastened);
        self.device.hasten();
    }

    fn push_out(&self) {
        self.record(Given::PushedOut);
        self.device.push_out();
    }

    fn resync(&self) -> bool {
        self.device.resync()
    }

    fn command_lane(&self) -> Option<usize> {
        self.device.command_lane()
    }

    fn has_room(&mut self, answered: bool, len: usize) -> bool {
        self.device.has_room(answered, len)
    }

    fn push(&mut self, command: &impl CommandRecord, data: Piece<'_>) {
        self.record(Given::Command(command.words(), data.len()));
        self.device.push(command, data);
    }

    fn reach(&self) -> u64 {
        self.device.reach()
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        self.device.has_room_for_batch(units)
    }

    fn end(&self) {
        self.record(Given::Ended);
        self.device.end();
    }

    fn forget(&self) {
        self.device.forget();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mem::region::RegionOptions;
    use crate::port::Port;
    use crate::port::config::Config;
    use crate::port::options::PostOptions;
    use crate::settings::choice::Mode;
    use ayre_proto::command::Request;
    use ayre_proto::execute::Action;
    use ayre_proto::units::Rights;

    /// Two connected ports of one process, and a trace of the first one's devices.
    fn traced(mode: Mode) -> (Port, Port, Trace) {
        let trace = Trace::new();
        let config = |number| Config::new().mode(mode).number(number);
        let (near, far) = Port::pair(config(0).trace(&trace), config(1)).unwrap();
        (near, far, trace)
    }

    /// A put of `len` bytes; returns the commands that were sent for it.
    fn put(mode: Mode, len: usize) -> Vec<(Request, usize)> {
        let (mut near, mut far, trace) = traced(mode);
        far.start_engine().unwrap();
        let region = far.alloc(len, RegionOptions::new()).unwrap();
        let to = far.peer(0).unwrap();
        far.share(to, &region, 0..len, Rights::all(), 1).unwrap();
        let remote = near.accept_region(PeerId(1), 1).unwrap();
        near.put(&remote, 0, &vec![7; len][..], PostOptions::new()).unwrap();
        near.flush(PeerId(1)).unwrap();
        let mut there = vec![0; len];
        region.read(0, &mut there);
        assert_eq!(there, vec![7; len], "the device passes everything on");
        let commands = trace.all().into_iter().filter_map(|traced| match traced.what {
            Given::Command(words, len) => {
                assert_eq!(traced.peer, PeerId(1));
                Some((Request::parse(&words, len as u64).expect("a command"), len))
            }
            _ => None,
        });
        commands.collect()
    }

    // spec: PUT-4
    #[test]
    fn a_put_that_is_cut_is_traced_command_by_command() {
        let commands = put(Mode::Mediated, 100_000);
        assert!(commands.len() > 1, "it is longer than half a lane");
        assert!(commands.iter().all(|(request, _)| request.command.action == Action::Put));
        let reached: usize = commands.iter().map(|(_, len)| len).sum();
        assert_eq!(reached, 100_000);
        assert!(put(Mode::Direct, 100_000).is_empty(), "a direct one takes no command");
    }

    // spec: MSG-2, LIFE-19
    #[test]
    fn messages_and_ends_are_traced_in_order() {
        let (mut near, mut far, trace) = traced(Mode::Mediated);
        near.send(PeerId(1), 3, b"word").unwrap();
        near.disconnect(PeerId(1)).unwrap();
        let all: Vec<_> = trace.all().into_iter().map(|traced| traced.what).collect();
        assert_eq!(all, [Given::Published, Given::Ended]);
        assert_eq!(far.recv(&mut [0; 8], None).unwrap().len, 4);
    }
}
