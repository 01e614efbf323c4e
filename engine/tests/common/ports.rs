//! Ports of tests: an owner that listens in the test's folder, and peers that connect to it.
use super::directory::Directory;
use ayre::error::Status;
use ayre::{Config, Fault, Mode, PeerId, Port, PostError, Region};

/// How operations reach the owner's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The peers perform them.
    Direct,
    /// The owner's port does, whenever it makes progress.
    Progress,
    /// A thread of the owner does.
    Thread,
}

impl Executor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Progress, Self::Thread];

    /// The mode to ask for.
    pub fn mode(self) -> Mode {
        if self == Self::Direct { Mode::Direct } else { Mode::Mediated }
    }

    /// One of them, by its place.
    pub fn of(index: u64) -> Self {
        Self::ALL[index as usize % Self::ALL.len()]
    }
}

/// Opens port 0, which listens in a folder.
pub fn owner(directory: &Directory, name: &str, executor: Executor, config: Config) -> Port {
    let mut port = Port::open(config.number(0).mode(executor.mode())).expect("a port");
    port.listen(directory.join(name)).expect("the port listens");
    if executor == Executor::Thread {
        port.start_engine().expect("a thread");
    }
    port
}

/// Tries a posting call until it is not busy any more.
pub fn post<T>(
    port: &mut Port,
    mut call: impl FnMut(&mut Port) -> Result<T, PostError>,
) -> Result<T, Fault> {
    loop {
        match call(port) {
            Ok(value) => return Ok(value),
            Err(PostError::Fault(fault)) => return Err(fault),
            Err(PostError::Busy(_)) => {
                port.progress();
                std::thread::yield_now();
            }
        }
    }
}

/// Makes progress until something holds.
pub fn progress_until(port: &mut Port, mut holds: impl FnMut(&mut Port) -> bool) {
    while !holds(port) {
        port.progress();
        std::thread::yield_now();
    }
}

/// Sends a message of one word.
pub fn tell(port: &mut Port, peer: PeerId, tag: u32, word: u64) {
    port.send_wait(peer, tag, &word.to_le_bytes()).expect("the peer lives");
}

/// Waits for a message of one word with this tag.
#[track_caller]
pub fn told(port: &mut Port, peer: PeerId, tag: u32) -> u64 {
    let mut word = [0; 8];
    let message = port.recv(&mut word, None).expect("a message");
    assert_eq!((message.source, message.tag, message.len), (peer, tag, 8));
    u64::from_le_bytes(word)
}

/// Takes all notifications; each must say that an operation failed in this way. Returns how many.
#[track_caller]
pub fn take_faults(port: &mut Port, fault: Fault) -> u64 {
    let mut taken = 0;
    while let Some(note) = port.poll_notification() {
        assert_eq!(note.status, Status::Fault(fault), "{note:?}");
        taken += 1;
    }
    taken
}

/// All bytes of a region.
pub fn content(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.read(0, &mut bytes);
    bytes
}

/// Fails where a region holds anything else, without printing megabytes.
#[track_caller]
pub fn assert_content(region: &Region, expected: &[u8]) {
    let found = content(region);
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!(differs, None, "the region has changed at that byte");
}
