//! Frames of an Ethernet between ports of this host.
mod asking;

use super::frames::*;
use super::ring::Found;
use super::*;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;
use std::net::Ipv6Addr;
use std::ops::Range;

const MILLI: u64 = 1_000_000;

fn frame(to: SocketAddr, from: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; MAC_BYTES];
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    for end in [to, from] {
        frame.extend(sixth(end.ip()).octets());
        frame.extend(end.port().to_le_bytes());
    }
    frame.extend((bytes.len() as u16).to_le_bytes());
    frame.extend(bytes);
    frame
}

// spec: NET-6
#[test]
fn a_frame_reads_as_it_was_laid_and_padding_is_left_out() {
    let (to, from) = (([10, 0, 0, 1], 0x1234).into(), ([10, 0, 0, 2], 7).into());
    let mut bytes = frame(to, from, b"payload");
    assert_eq!(bytes[14..32], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1, 0x34, 0x12]);
    bytes.extend([0; 30]);
    let letter = Letter::read(&bytes).unwrap();
    assert_eq!((letter.to, letter.from, letter.mac), (to, from, [2, 0, 0, 0, 0, 9]));
    assert_eq!(bytes[letter.datagram], *b"payload");
    let sixth = |port| SocketAddr::new("fd00::7".parse().unwrap(), port);
    let letter = Letter::read(&frame(sixth(1), sixth(2), b"")).unwrap();
    assert_eq!((letter.to, letter.from, letter.datagram), (sixth(1), sixth(2), 52..52));
}

// spec: NET-6
#[test]
fn a_frame_that_is_cut_short_is_none() {
    let bytes = frame(([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into(), b"payload");
    assert!((0..bytes.len()).all(|len| Letter::read(&bytes[..len]).is_none()));
    assert!(Letter::read(&bytes).is_some());
}

/// Two ports on the loopback interface, if this process may open packet sockets, that know nothing
/// of each other.
fn pair_of_strangers() -> Option<(Packet, Packet)> {
    let open = || Packet::bind(([127, 0, 0, 1], 0).into());
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("left out: packet sockets need CAP_NET_RAW");
            None
        }
        first => Some((first.unwrap(), open().unwrap())),
    }
}

/// Two ports that know that they hear frames.
fn pair() -> Option<(Packet, Packet)> {
    let (mut here, mut there) = pair_of_strangers()?;
    get_acquainted(&mut here, &mut there);
    get_acquainted(&mut there, &mut here);
    Some((here, there))
}

fn get_acquainted(here: &mut Packet, there: &mut Packet) {
    send(here, there.local(), &[vec![0]]);
    take(there, 1);
    while !here.reachability.accepts(there.local(), frames(there).mac(), 0) {
        wait(here);
        here.receive(&mut Inbox::new(), 0);
    }
}

fn frames(net: &Packet) -> &Frames {
    let PacketSocket::Open(frames) = &net.packet_socket else { panic!("no packet socket") };
    frames
}

fn take(net: &mut Packet, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut inbox, mut taken) = (Inbox::new(), Vec::new());
    // Each look is one at UDP, too.
    for look in 0.. {
        if taken.len() >= count {
            break;
        }
        net.receive(&mut inbox, look * LOOK_NANOS);
        taken.extend((0..inbox.len()).map(|index| {
            let (from, bytes) = inbox.get(index);
            (from, bytes.to_vec())
        }));
        if inbox.is_empty() {
            wait(net);
        }
        inbox.clear();
    }
    taken
}

fn wait(net: &Packet) {
    poll(&mut [PollFd::from_borrowed_fd(net.as_fd(), PollFlags::IN)], None).unwrap();
}

fn send(net: &mut Packet, to: SocketAddr, datagrams: &[Vec<u8>]) {
    let mut outbox = Outbox::new();
    for bytes in datagrams {
        outbox.push(to, |buffer| buffer.extend_from_slice(bytes));
    }
    net.send(&mut outbox, 0);
    assert!(outbox.is_empty(), "the system took all");
}

fn numbered(numbers: Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|number| number.to_le_bytes().to_vec()).collect()
}

// spec: NET-1
#[test]
fn long_frames_and_short_ones_come_in_order() {
    let Some((mut here, mut there)) = pair() else { return };
    // Around the length from which on a frame finds no room in a slot.
    let mut sent: Vec<_> = (1900..2010).map(|len| vec![len as u8; len]).collect();
    sent.extend([5, 9000, 6, 7, 30_000, 9, 65_000, 2].map(|len| vec![1; len]));
    send(&mut here, there.local(), &sent);
    let got = take(&mut there, sent.len());
    assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));
    let calls = frames(&there).counters().calls;
    assert!((1..110).contains(&calls), "{calls}: only long ones take a call");
}

#[test]
fn slots_are_used_again_and_to_find_them_empty_takes_no_call() {
    let Some((mut here, mut there)) = pair() else { return };
    let calls = frames(&there).counters().calls;
    for burst in 0..3 * SLOTS as u32 / 100 {
        let sent = numbered(100 * burst..100 * (burst + 1));
        send(&mut here, there.local(), &sent);
        let got = take(&mut there, 100);
        assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));
    }
    let mut inbox = Inbox::new();
    there.receive(&mut inbox, 0);
    assert_eq!((inbox.len(), frames(&there).counters().calls), (0, calls));
}

// spec: NET-1
#[test]
fn frames_beyond_the_slots_are_lost_and_later_ones_arrive() {
    let Some((mut here, mut there)) = pair() else { return };
    send(&mut here, there.local(), &numbered(0..SLOTS as u32 + 100));
    let mut got = take(&mut there, 1);
    let last = u32::MAX.to_le_bytes();
    send(&mut here, there.local(), &[last.to_vec()]);
    while got.last().is_some_and(|(_, bytes)| bytes[..] != last) {
        got.extend(take(&mut there, 1));
    }
    let numbers = got.iter().map(|(_, bytes)| u32::from_le_bytes(bytes[..].try_into().unwrap()));
    assert!(numbers.is_sorted_by(|one, next| one < next), "in order, and each once");
}

// spec: NET-6
#[test]
fn frames_for_other_ports_take_no_slot() {
    let Some((here, there)) = pair() else { return };
    let (other, sixth) = loop {
        let other = Packet::bind(([127, 0, 0, 1], 0).into()).unwrap();
        // The same port of another address, unless somebody has it.
        let address = (Ipv6Addr::LOCALHOST, other.local().port());
        if let Ok(sixth) = Packet::bind(address.into()) {
            break (other, sixth);
        }
    };
    let mut nets = [there, other, sixth];
    for _ in 0..nets.len() {
        nets.rotate_left(1);
        // Its own frame comes last: what is found first shows whether others were let in.
        for net in &nets {
            let frame = frame(net.local(), here.local(), &[1]);
            rustix::net::send(&frames(&here).socket, &frame, SendFlags::empty()).expect("it goes");
        }
        let [.., last] = &mut nets;
        wait(last);
        let mut room = [0; 2048];
        let local = last.local();
        let ring = |net: &mut Packet, room: &mut [u8]| match &mut net.packet_socket {
            PacketSocket::Open(frames) => frames.ring.take(room),
            _ => panic!("no packet socket"),
        };
        let Some(Found::Frame(len)) = ring(last, &mut room) else { panic!("a frame") };
        assert_eq!(Letter::read(&room[..len]).unwrap().to, local);
        for net in &mut nets {
            while ring(net, &mut room).is_some() {}
        }
    }
}

// spec: NET-1, NET-2, NET-3
#[test]
fn datagrams_come_whole_in_order_and_only_where_they_are_meant_for() {
    let Some((mut here, mut there)) = pair() else { return };
    let before = here.counters();
    // Those of links are longer than questions and answers.
    let sent: Vec<_> = (17..316).map(|number| vec![number as u8; number]).collect();
    send(&mut here, there.local(), &sent);
    let frames_sent = here.counters();
    assert_eq!((frames_sent.dropped, frames_sent.sent - before.sent), (0, 299));
    assert!(frames_sent.calls - before.calls < 10, "many go with one call");
    let got = take(&mut there, sent.len());
    assert!(got.iter().all(|(from, _)| *from == here.local()));
    assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));

    // What is too long for a frame goes by UDP, and what is too long for that does not.
    let longest = here.datagram_max(there.local());
    assert!(longest > frames(&here).longest(there.local()));
    send(&mut here, there.local(), &[vec![1; longest + 1], vec![2; longest]]);
    assert_eq!(here.counters().dropped, 1);
    assert_eq!(take(&mut there, 1), [(here.local(), vec![2; longest])]);
    let nobody = pair().unwrap().0.local();
    send(&mut here, nobody, &[vec![9]]);
    send(&mut there, here.local(), &[b"answer".to_vec()]);
    assert_eq!(take(&mut here, 1), [(there.local(), b"answer".to_vec())]);
    assert!(look(&mut there, MILLI).is_empty());
}

// spec: NET-6, NET-7
#[test]
fn a_question_is_broadcast_and_frames_go_to_the_answering_mac() {
    let Some((mut here, mut there)) = pair_of_strangers() else { return };
    let to = there.local();
    assert_eq!(Reachability::default().question(to, 0, || 100).map(|(_, mac)| mac), Some(None));
    get_acquainted(&mut here, &mut there);
    get_acquainted(&mut there, &mut here);
    assert_eq!(
        here.reachability.question(to, 100 * MILLI, || 100).map(|(_, mac)| mac),
        Some(Some(frames(&there).mac()))
    );
    let mac = here.reachability.mac(to, 100, 0).expect("it has answered");
    assert_eq!(mac, frames(&there).mac());
    assert_eq!(frames(&here).head((to, mac), 1)[..MAC_BYTES], mac);
}

/// All that has come by now.
fn look(net: &mut Packet, now: u64) -> Vec<Vec<u8>> {
    let (mut inbox, mut taken) = (Inbox::new(), Vec::new());
    loop {
        net.receive(&mut inbox, now);
        if inbox.is_empty() {
            return taken;
        }
        taken.extend((0..inbox.len()).map(|index| inbox.get(index).1.to_vec()));
        inbox.clear();
    }
}

/// Runs `ip`, of the package iproute2; says whether it did what it was told.
fn ip(words: &str) -> bool {
    let run = std::process::Command::new("ip").args(words.split(' ')).status();
    run.is_ok_and(|status| status.success())
}

/// Runs what it is given on a host of its own, if this process can make one.
fn on_a_host(letter: char, work: impl FnOnce(&str) + Send) {
    let name = format!("ayp{}{letter}", std::process::id());
    if !rustix::process::geteuid().is_root() || !ip(&format!("netns add {name}")) {
        eprintln!("LEFT OUT: network namespaces need root");
        return;
    }
    let host = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(host.as_fd(), kind).unwrap();
            work(&name);
        });
        let outcome = run.join();
        assert!(ip(&format!("netns del {name}")));
        outcome.unwrap();
    });
}

// spec: NET-4
#[test]
fn an_interface_that_goes_down_does_not_keep_waking_sleepers() {
    on_a_host('a', |name| {
        let set = |state| assert!(ip(&format!("-n {name} link set lo {state}")));
        set("up");
        let (mut here, mut there) = pair().unwrap();
        set("down");
        let mut inbox = Inbox::new();
        wait(&there);
        (0..VAIN_LOOKS).for_each(|_| there.receive(&mut inbox, 0));
        let mut asked = [PollFd::from_borrowed_fd(there.as_fd(), PollFlags::IN)];
        assert_eq!(poll(&mut asked, Some(&Default::default())), Ok(0), "it may sleep");
        assert_eq!((there.counters().hints, inbox.len()), (1, 0));
        set("up");
        // The first is told what the interface was.
        (0..VAIN_LOOKS).for_each(|_| here.receive(&mut inbox, 0));
        send(&mut here, there.local(), &[vec![7]]);
        assert_eq!(take(&mut there, 1), [(here.local(), vec![7])]);
    });
}

// spec: NET-2, NET-3
#[test]
fn only_datagrams_too_long_for_the_interface_are_dropped() {
    on_a_host('b', |name| {
        assert!(ip(&format!("-n {name} link set lo mtu 1500 up")));
        let (mut here, mut there) = pair().unwrap();
        let longest = here.datagram_max(there.local());
        let framed = frames(&here).longest(there.local());
        assert_eq!((longest, framed), (1472, 1500 - HEADER_BYTES));
        let sent = here.counters().sent;
        let lengths = [9, framed, longest + 1, framed + 1, longest, 10];
        send(&mut here, there.local(), &lengths.map(|len| vec![3; len]));
        let counters = here.counters();
        assert_eq!((counters.sent - sent, counters.dropped), (5, 1));
        let mut got: Vec<_> = take(&mut there, 5).iter().map(|(_, bytes)| bytes.len()).collect();
        got.sort_unstable();
        assert_eq!(got, [9, 10, framed, framed + 1, longest]);
    });
}

#[test]
fn a_port_belongs_to_one() {
    let Some((here, _there)) = pair() else { return };
    let error = Packet::bind(here.local()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn an_address_of_another_host_cannot_be_bound() {
    let error = Packet::bind(([192, 0, 2, 1], 1).into()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
}
