//! The network traffic of deposit messages, counted in a capture: a command each, many in a frame,
//! and nothing comes back but acknowledgements.
mod common;

use ayre::deposit::{
    AddressMode, Deposit, Depot, Inlet, InletOptions, Program, Register, RemoteInlet,
};
use ayre::deposit::{X, Y, Z};
use ayre::{Port, PostOptions, RegionOptions};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header, Kind, Payload, RecordKind};
use common::Directory;
use common::net::{ANY, Protection, connect, open};
use common::ports::post;
use common::watchdog::Watchdog;
use std::collections::BTreeSet;
use std::path::Path;

const APPENDS: u64 = 1000;
/// Appends that are posted before the next poll: fewer than may be under way.
const BURST: u64 = 25;
const RECORD: u64 = 64;
const NAME: u64 = 1;

/// Of a capture's file, and of each packet in it; then the headers of IP and UDP.
const FILE_HEAD: usize = 24;
const PACKET_HEAD: usize = 16;
const IP_HEAD: usize = 20;
const UDP_HEAD: usize = 8;

/// A queue at one port, and a way in for another one, whose traffic is written down.
struct Queue {
    sender: Port,
    owner: Port,
    depot: Depot,
    _inlet: Inlet,
    remote: RemoteInlet,
}

impl Queue {
    fn open(capture: &Path) -> Self {
        let (mut sender, mut owner) = (open(1), open(2));
        let options = Protection::Plain.options().at(ANY);
        let at = owner.open_net(&options).expect("an address of this host")[0];
        sender.open_net(&options.capture(capture)).expect("an address of this host");
        let (to, from) = connect(&mut sender, &mut owner, at);
        let len = APPENDS.next_power_of_two() * RECORD;
        let region = owner.alloc(len as usize, RegionOptions::new()).expect("memory");
        let depot = owner.create_depot().expect("a depot");
        let append = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
        depot.store(0, &[append.store([0, 1, 2].map(Register::At))]).expect("a place");
        depot.set_register(1, RECORD).expect("nobody is inside");
        depot.set_register(2, len).expect("nobody is inside");
        let options = InletOptions::new().entries(0..1).longest(RECORD as u16);
        let part = (&region, 0..region.len());
        let inlet = owner.share_inlet(from, &depot, part, &options, NAME).expect("an inlet");
        let accept = || sender.accept_inlet(to, NAME).expect("what is handed over arrives");
        let remote = std::thread::scope(|scope| {
            let accepting = scope.spawn(accept);
            while !accepting.is_finished() {
                owner.progress();
            }
            accepting.join().expect("no panic")
        });
        Self { sender, owner, depot, _inlet: inlet, remote }
    }

    /// Until this number of records are there.
    fn settle(&mut self, records: u64) {
        while self.depot.register(0) < records * RECORD {
            self.sender.progress();
            self.owner.progress();
        }
    }
}

/// The traffic one way. A frame that the link sent again counts once.
#[derive(Debug, Default)]
struct Traffic {
    /// Frames with a command.
    with_commands: BTreeSet<u32>,
    commands: usize,
    responses: usize,
    /// Frames with a payload, by channel and number.
    full: BTreeSet<(usize, u32)>,
    /// Frames without.
    empty: usize,
}

impl Traffic {
    fn add(&mut self, bytes: &[u8]) {
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        // That nothing was damaged is not what is asked here.
        let crc: [u8; 4] = header[HEADER_BYTES - 4..].try_into().expect("four bytes");
        let Ok(header) = Header::parse(header, |_| u32::from_le_bytes(crc)) else { return };
        if header.kind != Kind::Data {
            return;
        }
        if payload.is_empty() {
            self.empty += 1;
            return;
        }
        if !self.full.insert((header.channel.index(), header.seq)) {
            return;
        }
        let payload = Payload::parse(payload).expect("records");
        let count = |kind| payload.records().filter(|record| record.kind == kind).count();
        self.responses += count(RecordKind::Response);
        let commands = count(RecordKind::Command);
        if commands > 0 {
            assert_eq!(header.channel, Channel::Posted, "nothing that wants an answer");
            self.with_commands.insert(header.seq);
            self.commands += commands;
        }
    }
}

/// The contents of a capture: the traffic to a port, and from it.
fn read(capture: &[u8], port: u16) -> [Traffic; 2] {
    let mut ways = [Traffic::default(), Traffic::default()];
    let mut rest = &capture[FILE_HEAD..];
    while let Some((head, packet)) = rest.split_at_checked(PACKET_HEAD) {
        let len = u32::from_le_bytes(head[8..12].try_into().expect("four bytes")) as usize;
        let (packet, behind) = packet.split_at(len);
        let from = u16::from_be_bytes([packet[IP_HEAD], packet[IP_HEAD + 1]]);
        ways[usize::from(from == port)].add(&packet[IP_HEAD + UDP_HEAD..]);
        rest = behind;
    }
    ways
}

// spec: DEP-11, LINK-13, WIRE-1, WIRE-4, WIRE-6
#[test]
fn an_append_is_one_command_and_no_answer() {
    let _watchdog = Watchdog::start(0);
    let directory = Directory::new();
    let capture = directory.join("capture");
    let mut queue = Queue::open(&capture);
    let port = queue.owner.wire_report().expect("it is open").nets[0].address.port();
    let message = Deposit::enter(0).data(&[7; RECORD as usize]);
    for number in 0..APPENDS {
        let Queue { sender, remote, .. } = &mut queue;
        post(sender, |port| port.deposit(remote, &message, PostOptions::new())).expect("no fault");
        if (number + 1) % BURST == 0 {
            queue.settle(number + 1);
        }
    }
    queue.settle(APPENDS);
    drop(queue);
    let [there, back] = read(&std::fs::read(capture).expect("a capture"), port);
    assert_eq!(there.commands as u64, APPENDS);
    assert_eq!((back.commands, back.responses), (0, 0));
    let frames = there.with_commands.len() as u64;
    assert!(frames <= APPENDS / 4, "{frames} frames: those of a burst share them");
    let told = (back.full.len() + back.empty) as u64;
    assert!(told <= APPENDS, "{told} frames told what has arrived: an append has a share of one");
    println!("{APPENDS} appends: {frames} frames there, {told} back");
}
