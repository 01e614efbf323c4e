//! Ports that sleep are not woken for what does not concern them, and cost nothing meanwhile; ports
//! that are awake are not rung.
mod common;

use ayre::{Config, PeerId, Port, PostOptions, RegionOptions, Rights};
use common::ports::{tell, told};
use common::system::{activity, descriptors_of};
use common::{Executor, Line, with_processes};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{SocketType, sockopt::socket_type};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

const OPERATIONS: u64 = 1000;

/// Rank 0 sleeps, and rank 1 works on its memory.
fn sleep_or_work(line: &Line) {
    let mut port = Port::join().unwrap();
    let other = PeerId(1 - port.rank() as u16);
    let region = port.alloc(4096, RegionOptions::new()).unwrap();
    if port.rank() == 0 {
        port.share(other, &region, 0..4096, Rights::all(), 0).unwrap();
        line.say(0);
        assert_eq!(told(&mut port, other, 0), OPERATIONS);
        assert_eq!((region.load(0), region.load(8)), (OPERATIONS - 1, OPERATIONS));
        return;
    }
    let remote = port.accept_region(other, 0).unwrap();
    line.hear();
    for operation in 0..OPERATIONS {
        port.put(&remote, 0, &operation.to_le_bytes(), PostOptions::new().requester()).unwrap();
        assert_eq!(port.fetch_add(&remote, 8, 1), Ok(operation));
        let mut word = [0; 8];
        port.get(&remote, 0, &mut word, PostOptions::new()).unwrap();
        assert_eq!(u64::from_le_bytes(word), operation);
        port.wait_notification(None).unwrap();
    }
    port.flush(other).unwrap();
    line.say(0);
    line.hear();
    tell(&mut port, other, 0, OPERATIONS);
}

// spec: PROG-1, WAIT-4
#[test]
fn a_sleeping_target_of_direct_operations_sleeps_on() {
    with_processes(
        |_, line| sleep_or_work(&line),
        |family| {
            let mut ranks = family.start_job(2);
            ranks[0].line.hear();
            ranks[0].until_asleep();
            let before = activity(ranks[0].id());
            ranks[1].line.say(0);
            ranks[1].line.hear();
            assert_eq!(activity(ranks[0].id()), before, "the sleeper has run");
            ranks[1].line.say(0);
            ranks.iter_mut().for_each(common::Process::succeeds);
        },
    );
}

/// Bytes of a packet of a control channel.
const PACKET: u64 = 64;

/// Rings that a process has not taken yet: packets that its control channels hold.
fn rings(process: u32) -> u64 {
    let pid = Pid::from_raw(process as i32).unwrap();
    let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let numbers =
        descriptors_of(&process.to_string()).into_keys().map(|name| name.parse().unwrap());
    let files = numbers.filter(|number| *number > 2).filter_map(|number: i32| {
        match pidfd_getfd(&handle, number, PidfdGetfdFlags::empty()) {
            Err(Errno::BADF) => None,
            file => Some(file.unwrap()),
        }
    });
    let sockets = files.filter(|file| socket_type(file) == Ok(SocketType::SEQPACKET));
    // Of a listener that cannot be asked.
    sockets.map(|socket| ioctl_fionread(socket).unwrap_or(0) / PACKET).sum()
}

/// Everything that could wake a port, to one that polls; then to one that sleeps.
fn ring(executor: Executor) {
    let config = |number| Config::new().number(number).mode(executor.mode());
    let (mut near, mut far) = Port::pair(config(0), config(1)).unwrap();
    let (to, from) = (near.peer(1).unwrap(), far.peer(0).unwrap());
    let region = far.alloc(4096, RegionOptions::new()).unwrap();
    let mut queue = far.create_queue(4096).unwrap();
    far.share(from, &region, 0..4096, Rights::all(), 0).unwrap();
    far.share_queue(from, &mut queue, 0).unwrap();
    let remote = near.accept_region(to, 0).unwrap();
    let mut remote_queue = near.accept_queue(to, 0).unwrap();
    // Set-up has slept.
    [&mut near, &mut far].into_iter().for_each(Port::progress);
    let before = rings(std::process::id());
    let mut buffer = [0; 64];
    for word in 0..OPERATIONS {
        let bytes = word.to_le_bytes();
        near.send(to, 0, &bytes).unwrap();
        near.enqueue(&mut remote_queue, &bytes).unwrap();
        near.put(&remote, 0, &bytes, PostOptions::new().completer()).unwrap();
        near.notify(to, PostOptions::new()).unwrap();
        while far.poll_notification().is_none() {}
        while far.poll_notification().is_none() {}
        while far.try_recv(&mut buffer).unwrap().is_none() {}
        while far.dequeue(&mut queue, &mut buffer).unwrap().is_none() {}
        near.flush(to).unwrap();
    }
    assert_eq!(rings(std::process::id()), before, "a system call for a port that was awake");
}

// spec: WAIT-4
#[test]
fn a_port_that_polls_is_not_rung() {
    let child = |_, _| {
        ring(Executor::Direct);
        ring(Executor::Progress);
    };
    with_processes(child, |family| family.start().succeeds());
}

fn be_rung(line: &Line) {
    let mut port = Port::join().unwrap();
    let other = PeerId(1 - port.rank() as u16);
    if port.rank() == 0 {
        for turn in 0..20 {
            line.say(0);
            assert_eq!(told(&mut port, other, 0), turn);
        }
    } else {
        for turn in 0..20 {
            line.hear();
            tell(&mut port, other, 0, turn);
            line.say(0);
        }
        told(&mut port, other, 1);
    }
    if port.rank() == 0 {
        tell(&mut port, other, 1, 0);
    }
}

// spec: WAIT-3, WAIT-4
#[test]
fn a_sleeper_is_rung_once() {
    with_processes(
        |_, line| be_rung(&line),
        |family| {
            let mut ranks = family.start_job(2);
            for _ in 0..20 {
                ranks[0].line.hear();
                ranks[0].until_asleep();
                // So that it does not take the ring before it was counted.
                ranks[0].stop();
                assert_eq!(rings(ranks[0].id()), 0, "a sleeper has taken all rings");
                ranks[1].line.say(0);
                ranks[1].line.hear();
                assert_eq!(rings(ranks[0].id()), 1, "one ring wakes a sleeper");
                ranks[0].resume();
            }
            ranks.iter_mut().for_each(common::Process::succeeds);
        },
    );
}
