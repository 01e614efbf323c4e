//! Frames of an Ethernet between ports of this host.
use super::*;
use rustix::event::{PollFd, PollFlags, poll};

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

/// Two ports on the loopback interface, if this process may open packet sockets.
fn pair() -> Option<(Packet, Packet)> {
    let open = || Packet::bind(([127, 0, 0, 1], 0).into());
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("left out: packet sockets need CAP_NET_RAW");
            None
        }
        first => Some((first.unwrap(), open().unwrap())),
    }
}

fn take(net: &mut Packet, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut inbox, mut taken) = (Inbox::new(), Vec::new());
    while taken.len() < count {
        net.receive(&mut inbox, 0);
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
    sent.extend([5, 9000, 6, 7, 30_000, 8, 65_000, 2].map(|len| vec![1; len]));
    send(&mut here, there.local(), &sent);
    let got = take(&mut there, sent.len());
    assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));
    let calls = there.counters().calls;
    assert!((1..110).contains(&calls), "{calls}: only long ones take a call");
}

#[test]
fn slots_are_used_again_and_to_find_them_empty_takes_no_call() {
    let Some((mut here, mut there)) = pair() else { return };
    for burst in 0..3 * SLOTS as u32 / 100 {
        let sent = numbered(100 * burst..100 * (burst + 1));
        send(&mut here, there.local(), &sent);
        let got = take(&mut there, 100);
        assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));
    }
    let mut inbox = Inbox::new();
    there.receive(&mut inbox, 0);
    assert_eq!((inbox.len(), there.counters().calls), (0, 0));
}

// spec: NET-1
#[test]
fn what_finds_no_slot_is_lost_and_what_comes_later_is_not() {
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
fn what_is_for_other_ports_takes_no_slot() {
    let Some((mut here, there)) = pair() else { return };
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
            send(&mut here, net.local(), &[vec![1]]);
        }
        let [.., last] = &mut nets;
        wait(last);
        let mut frame = [0; 2048];
        let Some(Found::Frame(len)) = last.ring.take(&mut frame) else { panic!("a frame") };
        assert_eq!(Letter::read(&frame[..len]).unwrap().to, last.local());
        for net in &mut nets {
            while net.ring.take(&mut frame).is_some() {}
        }
    }
}

// spec: NET-1, NET-2, NET-3
#[test]
fn datagrams_come_whole_in_order_and_only_where_they_are_meant_for() {
    let Some((mut here, mut there)) = pair() else { return };
    let (nobody, _) = pair().unwrap();
    let longest = here.datagram_max(there.local());
    assert_eq!(longest, LONGEST);
    let mut sent: Vec<_> = (1..300).map(|number| vec![number as u8; number]).collect();
    sent.push(vec![1; longest]);
    let mut outbox = Outbox::new();
    outbox.push(there.local(), |buffer| buffer.resize(buffer.len() + longest + 1, 0));
    outbox.push(nobody.local(), |buffer| buffer.push(9));
    for bytes in &sent {
        outbox.push(there.local(), |buffer| buffer.extend_from_slice(bytes));
    }
    here.send(&mut outbox, 0);
    assert_eq!((here.counters().dropped, here.counters().sent), (1, 301));
    assert!(here.counters().calls < 10, "many go with one call");
    let got = take(&mut there, sent.len());
    assert!(got.iter().all(|(from, _)| *from == here.local()));
    assert!(got.into_iter().map(|(_, bytes)| bytes).eq(sent));
    assert_eq!(there.counters().received, 300);

    let mut outbox = Outbox::new();
    outbox.push(here.local(), |buffer| buffer.extend_from_slice(b"answer"));
    there.send(&mut outbox, 0);
    assert_eq!(take(&mut here, 1), [(there.local(), b"answer".to_vec())]);
}

// spec: NET-6
#[test]
fn a_neighbour_is_sent_to_alone_once_it_was_heard() {
    let Some((mut here, mut there)) = pair() else { return };
    let mac = |net: &Packet, to| net.head(to, 0)[..MAC_BYTES].to_vec();
    assert_eq!(mac(&there, here.local()), EVERYBODY);
    let mut outbox = Outbox::new();
    outbox.push(there.local(), |buffer| buffer.push(1));
    here.send(&mut outbox, 0);
    take(&mut there, 1);
    assert_eq!(mac(&there, here.local()), here.mac);
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
fn an_interface_that_goes_down_and_up_again_wakes_nobody_for_long() {
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
fn what_is_too_long_for_the_interface_is_dropped_alone() {
    on_a_host('b', |name| {
        assert!(ip(&format!("-n {name} link set lo mtu 1500 up")));
        let (mut here, mut there) = pair().unwrap();
        let longest = here.datagram_max(there.local());
        assert_eq!(longest, 1500 - HEADER_BYTES);
        let sent = [8, longest, longest + 1, 9, longest, 10].map(|len| vec![3; len]);
        send(&mut here, there.local(), &sent);
        let counters = here.counters();
        assert_eq!((counters.sent, counters.dropped), (5, 1));
        let got = take(&mut there, 5).into_iter().map(|(_, bytes)| bytes.len());
        assert!(got.eq([8, longest, 9, longest, 10]));
    });
}

#[test]
fn a_port_belongs_to_one() {
    let Some((here, _there)) = pair() else { return };
    let error = Packet::bind(here.local()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn an_address_of_nobody_here_is_refused() {
    let error = Packet::bind(([192, 0, 2, 1], 1).into()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
}

/// Twenty datagrams that can be a train.
fn train(number: u8) -> Vec<Vec<u8>> {
    vec![vec![number; 640]; 20]
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

fn send_at(net: &mut Packet, now: u64, to: SocketAddr, datagrams: &[Vec<u8>]) {
    let mut outbox = Outbox::new();
    for bytes in datagrams {
        outbox.push(to, |buffer| buffer.extend_from_slice(bytes));
    }
    net.send(&mut outbox, now);
    assert!(outbox.is_empty(), "the system took all");
}

// spec: NET-7
#[test]
fn trains_go_by_udp_where_that_is_heard() {
    let Some((mut here, mut there)) = pair() else { return };
    let millis = |count: u64| 1_000_000 * count;
    let by_udp = |net: &Packet| net.trains.counters().sent;
    // Nobody knows whether it is heard: frames, and a probe, which comes first.
    send_at(&mut here, millis(1), there.local(), &train(1));
    assert_eq!(by_udp(&here), 0);
    let first = look(&mut there, millis(1));
    assert_eq!(first, vec![vec![1; 640]; 21], "one of them twice");
    // It cannot be told to a host that was not heard before; it is tried again.
    send_at(&mut here, millis(10), there.local(), &train(2));
    assert_eq!(look(&mut there, millis(10)).len(), 21);
    assert_eq!(look(&mut here, millis(10)), Vec::<Vec<u8>>::new(), "it says so, and no more");
    send_at(&mut here, millis(11), there.local(), &train(3));
    assert_eq!(by_udp(&here), 20);
    assert_eq!(look(&mut there, millis(11)), train(3), "once");
    // What was said holds for a second.
    send_at(&mut here, millis(1009), there.local(), &train(4));
    send_at(&mut here, millis(1010), there.local(), &train(5));
    assert_eq!(by_udp(&here), 40);
    let mut last = look(&mut there, millis(1010));
    last.dedup();
    assert_eq!(last, [vec![4; 640], vec![5; 640]]);
}

// spec: NET-7
#[test]
fn trains_go_as_frames_where_udp_is_not_heard() {
    let Some((mut here, mut there)) = pair() else { return };
    for round in 0..61 {
        send_at(&mut here, 100_000 * round, there.local(), &train(9));
        // At this time of its clock it does not look at UDP.
        assert_eq!(look(&mut there, 0), train(9));
    }
    let counters = here.trains.counters();
    assert_eq!((counters.sent, counters.calls), (0, 2), "a probe each 5 ms");
}

// spec: NET-11
#[test]
fn frames_are_heard_while_trains_fill_each_look() {
    let Some((mut here, mut there)) = pair() else { return };
    let mut other = Packet::bind(([127, 0, 0, 1], 0).into()).unwrap();
    send_at(&mut here, 0, there.local(), &train(1));
    look(&mut there, 1_000_000);
    here.trains.on_hears(there.local(), 0);
    send_at(&mut here, 0, there.local(), &vec![vec![2; 640]; 1000]);
    assert_eq!(here.trains.counters().sent, 1000);
    send(&mut other, there.local(), &[vec![3; 8]]);
    let mut inbox = Inbox::new();
    let mut hears = || {
        inbox.clear();
        there.receive(&mut inbox, 1_000_000);
        (0..inbox.len()).any(|index| inbox.get(index).0 == other.local())
    };
    assert_eq!([hears(), hears()], [false, true], "trains fill the first look");
}

// spec: NET-7
#[test]
fn sleepers_wake_for_trains() {
    let Some((mut here, mut there)) = pair() else { return };
    here.trains.on_hears(there.local(), 0);
    send_at(&mut here, 0, there.local(), &train(1));
    assert_eq!(look(&mut there, 0), train(1), "what nobody asked for is not believed");
    here.trains.on_hears(there.local(), 0);
    send_at(&mut here, 0, there.local(), &train(2));
    assert_eq!(here.trains.counters().sent, 20);
    wait(&there);
    let probe = vec![vec![1; 640]];
    assert_eq!(look(&mut there, 1_000_000), [probe, train(2)].concat());
}

// spec: NET-7
#[test]
fn who_is_not_known_is_told_nothing_and_takes_little() {
    let Some((mut here, mut there)) = pair() else { return };
    for _ in 0..20 {
        let stranger = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        stranger.send_to(&[1; 100], there.local()).expect("it is this host's");
    }
    assert_eq!(look(&mut there, 1_000_000_000).len(), 20, "whose they are, the link finds out");
    assert_eq!(there.counters().calls, there.trains.counters().calls, "no frame was sent");
    assert!(look(&mut here, 0).is_empty());
}
