//! Frames of an Ethernet between ports of this host.
use super::frames::*;
use super::ring::Found;
use super::*;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

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

/// The same, that know that they hear frames.
fn pair() -> Option<(Packet, Packet)> {
    let (mut here, mut there) = pair_of_strangers()?;
    get_acquainted(&mut here, &mut there);
    get_acquainted(&mut there, &mut here);
    Some((here, there))
}

fn get_acquainted(here: &mut Packet, there: &mut Packet) {
    send(here, there.local(), &[vec![0]]);
    take(there, 1);
    while !here.ears.takes(there.local(), frames(there).mac(), 0) {
        wait(here);
        here.receive(&mut Inbox::new(), 0);
    }
}

fn frames(net: &Packet) -> &Frames {
    let Beside::Open(frames) = &net.beside else { panic!("no packet socket") };
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
        let ring = |net: &mut Packet, room: &mut [u8]| match &mut net.beside {
            Beside::Open(frames) => frames.ring.take(room),
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
fn everybody_is_asked_and_then_who_has_answered_alone_is_sent_to() {
    let Some((mut here, mut there)) = pair_of_strangers() else { return };
    let to = there.local();
    assert_eq!(Ears::default().question(to, 0, || 100).map(|(_, mac)| mac), Some(None));
    get_acquainted(&mut here, &mut there);
    get_acquainted(&mut there, &mut here);
    assert_eq!(
        here.ears.question(to, 100 * MILLI, || 100).map(|(_, mac)| mac),
        Some(Some(frames(&there).mac()))
    );
    let mac = here.ears.mac(to, 100, 0).expect("it has answered");
    assert_eq!(mac, frames(&there).mac());
    assert_eq!(frames(&here).head((to, mac), 1)[..MAC_BYTES], mac);
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

const MILLI: u64 = 1_000_000;

// spec: NET-7
#[test]
fn frames_go_to_who_has_answered_and_for_as_long_as_that_holds() {
    let Some((mut here, mut there)) = pair_of_strangers() else { return };
    let to = there.local();
    // The other one asks as well: it takes frames only from who has answered.
    get_acquainted(&mut there, &mut here);
    let before = here.udp.counters().sent;
    let by_udp = |here: &Packet| here.udp.counters().sent - before;
    send_at(&mut here, 0, to, &[vec![1]]);
    assert_eq!((frames(&here).counters().sent, by_udp(&here)), (0, 1));
    assert_eq!(look(&mut there, 0), [vec![1]], "a question is nothing for a link");
    assert!(look(&mut here, 0).is_empty(), "nor is its answer");
    send_at(&mut here, 1, to, &[vec![2]]);
    assert_eq!((frames(&here).counters().sent, by_udp(&here)), (1, 1));
    assert_eq!(look(&mut there, 1), [vec![2]]);
    // Long ones, trains, and everything after a silence go by UDP.
    let longest = frames(&here).longest(to);
    send_at(&mut here, 2, to, &[vec![3; longest + 1]]);
    send_at(&mut here, 2, to, &train(4));
    send_at(&mut here, 500 * MILLI, to, &[vec![5]]);
    assert_eq!(frames(&here).counters().sent, 1);
    assert_eq!(look(&mut there, 500 * MILLI).len(), 22);
    assert!(look(&mut here, 500 * MILLI).is_empty());
    send_at(&mut there, 500 * MILLI, here.local(), &[vec![7]]);
    assert_eq!(look(&mut here, 500 * MILLI), [vec![7]], "and a question");
    send_at(&mut here, 500 * MILLI, to, &[vec![6]]);
    assert_eq!(frames(&here).counters().sent, 2, "both have answered again");
}

// spec: NET-7
#[test]
fn who_has_udp_alone_is_sent_udp_and_understood() {
    let Some((mut here, _)) = pair_of_strangers() else { return };
    let mut plain = Udp::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let mut inbox = Inbox::new();
    for round in 0..100 {
        send_at(&mut here, round * 100_000, plain.local(), &[vec![1]]);
        inbox.clear();
        plain.receive(&mut inbox, 0);
        assert_eq!((inbox.len(), inbox.get(0).0), (1, here.local()));
        let mut outbox = Outbox::new();
        outbox.push(here.local(), |buffer| buffer.push(2));
        plain.send(&mut outbox, 0);
        assert_eq!(look(&mut here, round * 100_000), [vec![2]]);
    }
    assert_eq!(frames(&here).counters().sent, 0);
    assert_eq!(frames(&here).counters().calls, 2, "it was asked twice in 10 ms");
}

// spec: NET-7
#[test]
fn answers_that_nobody_asked_for_are_datagrams_like_any() {
    let Some((mut here, there)) = pair_of_strangers() else { return };
    let mut liar = Udp::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let forged = answer(1, [2; MAC_BYTES]);
    send_at(&mut here, 0, there.local(), &[vec![1]]);
    for _ in 0..3 {
        liar.say(here.local(), &forged);
        assert_eq!(look(&mut here, 0), [forged.to_vec()], "whose it is, the link finds out");
    }
    send_at(&mut here, 0, liar.local(), &[vec![1]]);
    liar.say(here.local(), &forged);
    assert_eq!(look(&mut here, 0), [forged.to_vec()], "it does not know the number");
    assert_eq!(here.ears.mac(there.local(), 1, 0), None);
    assert_eq!(here.ears.mac(liar.local(), 1, 0), None);
}

/// Somebody of the same Ethernet whose datagrams do not come by UDP, or who has another MAC.
// spec: NET-14
#[test]
fn frames_of_who_has_not_answered_are_not_taken() {
    let Some((mut here, mut there)) = pair_of_strangers() else { return };
    let own = frames(&there).mac();
    let say = |here: &Packet, there: &Packet, mac: Mac, byte: u8| {
        let mut bytes = frame(there.local(), here.local(), &[byte; 100]);
        bytes[MAC_BYTES..2 * MAC_BYTES].copy_from_slice(&mac);
        rustix::net::send(&frames(here).socket, &bytes, SendFlags::empty()).expect("it goes");
        wait(there);
    };
    say(&here, &there, own, 1);
    assert!(look(&mut there, 0).is_empty(), "it was not asked");
    get_acquainted(&mut there, &mut here);
    say(&here, &there, [2, 0, 0, 0, 0, 9], 2);
    assert!(look(&mut there, 0).is_empty(), "that is not the MAC that it has named");
    say(&here, &there, own, 3);
    assert_eq!(look(&mut there, 0), [vec![3; 100]]);
}

// spec: NET-7
#[test]
fn so_many_questions_are_answered_and_no_more() {
    let Some((here, mut there)) = pair() else { return };
    let mut victim = Udp::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let question = frame(there.local(), victim.local(), &7_u64.to_le_bytes());
    for _ in 0..100 {
        rustix::net::send(&frames(&here).socket, &question, SendFlags::empty()).expect("it goes");
    }
    wait(&there);
    assert!(look(&mut there, MILLI).is_empty());
    assert!(look(&mut there, MILLI).is_empty());
    let (mut inbox, mut count) = (Inbox::new(), 0);
    loop {
        victim.receive(&mut inbox, 0);
        if inbox.is_empty() {
            break;
        }
        for index in 0..inbox.len() {
            assert_eq!(inbox.get(index).1, answer(7, frames(&there).mac()));
            count += 1;
        }
        inbox.clear();
    }
    assert_eq!(count, ANSWERS_MAX);
}

// spec: NET-7
#[test]
fn hosts_beyond_the_ethernet_are_not_asked() {
    let Some((mut here, _)) = pair_of_strangers() else { return };
    assert!(frames(&here).is_near([127, 9, 9, 9].into()));
    assert!(!frames(&here).is_near([128, 0, 0, 1].into()));
    assert!(!frames(&here).is_near(IpAddr::from([0x7f00, 0, 0, 0, 0, 0, 0, 1])));
    send_at(&mut here, 0, ([128, 0, 0, 1], 9).into(), &[vec![1]]);
    assert_eq!(frames(&here).counters().calls, 0);
}

// spec: NET-7
#[test]
fn streams_are_answered_by_udp_and_a_few_datagrams_are_not() {
    let Some((mut here, mut there)) = pair() else { return };
    let to = here.local();
    let mut framed_after = |count: usize, now: u64| {
        send_at(&mut here, now, there.local(), &vec![vec![1; 640]; count]);
        assert_eq!(look(&mut there, now).len(), count);
        let before = frames(&there).counters().sent;
        send_at(&mut there, now, to, &[vec![2]]);
        frames(&there).counters().sent - before
    };
    assert_eq!(framed_after(STREAM_MIN - 1, MILLI), 1);
    assert_eq!(framed_after(STREAM_MIN, 2 * MILLI), 0);
    assert_eq!(framed_after(STREAM_MIN - 1, 3 * MILLI), 1);
}

// spec: NET-11
#[test]
fn frames_are_heard_while_trains_fill_each_look() {
    let Some((mut here, mut there)) = pair() else { return };
    let Some((mut other, _)) = pair() else { return };
    get_acquainted(&mut other, &mut there);
    get_acquainted(&mut there, &mut other);
    send_at(&mut here, 0, there.local(), &vec![vec![2; 640]; 1000]);
    assert_eq!(here.udp.counters().sent, 1000 + 1);
    send(&mut other, there.local(), &[vec![3; 9]]);
    let mut inbox = Inbox::new();
    let mut hears = || {
        inbox.clear();
        there.receive(&mut inbox, MILLI);
        (0..inbox.len()).any(|index| inbox.get(index).0 == other.local())
    };
    assert_eq!([hears(), hears()], [false, true], "trains fill the first look");
}

// spec: NET-7
#[test]
fn udp_is_heard_after_frames_have_come() {
    let Some((mut here, mut there)) = pair() else { return };
    send_at(&mut here, 0, there.local(), &[vec![1]]);
    assert_eq!(look(&mut there, 0), [vec![1]]);
    // So many looks find nothing, and UDP is looked at no more at each.
    (0..WARM_LOOKS).for_each(|_| assert!(look(&mut there, 0).is_empty()));
    let calls = there.counters().calls;
    assert!(look(&mut there, 0).is_empty());
    assert_eq!(there.counters().calls, calls);
    send_at(&mut here, 0, there.local(), &train(2));
    assert!(look(&mut there, LOOK_NANOS - 1).is_empty());
    wait(&there);
    assert_eq!(look(&mut there, LOOK_NANOS), train(2));
    send_at(&mut here, 0, there.local(), &train(3));
    assert_eq!(look(&mut there, LOOK_NANOS), train(3), "where something came there may be more");
}

/// Takes a datagram, and sends one.
fn hear_and_say(net: &mut Packet) {
    let mut other = Udp::bind(([10, 9, 0, 1], 0).into()).expect("a socket");
    other.say(([10, 9, 0, 1], net.local().port()).into(), &[1]);
    take(net, 1);
    send_at(net, 0, ([10, 9, 0, 2], 9).into(), &[vec![1]]);
}

// spec: NET-6, NET-7
#[test]
fn a_socket_for_frames_is_opened_for_who_is_near() {
    on_a_host('c', |name| {
        assert!(ip(&format!("-n {name} link set lo up")));
        assert!(ip(&format!("-n {name} link add eth0 type veth peer name eth1")));
        assert!(ip(&format!("-n {name} address add 10.9.0.1/24 dev eth0")));
        assert!(ip(&format!("-n {name} link set eth0 up")));
        let mut net = Packet::beside(([10, 9, 0, 1], 0).into()).unwrap();
        send_at(&mut net, 0, ([10, 9, 0, 2], 9).into(), &[vec![1]]);
        assert!(matches!(net.beside, Beside::Later { .. }), "nothing has come");
        hear_and_say(&mut net);
        assert_eq!(frames(&net).longest(([10, 9, 0, 2], 9).into()), 1500 - HEADER_BYTES);
        let many: Vec<_> =
            (1..SOCKETS_MAX).map(|_| Packet::bind(([10, 9, 0, 1], 0).into()).unwrap()).collect();
        assert_eq!(sockets_here(), SOCKETS_MAX);
        let mut late = Packet::beside(([10, 9, 0, 1], 0).into()).unwrap();
        hear_and_say(&mut late);
        assert!(matches!(late.beside, Beside::Never), "there are many");
        drop(many);
        let mut everywhere = Packet::beside(([0, 0, 0, 0], 0).into()).unwrap();
        hear_and_say(&mut everywhere);
        assert!(matches!(everywhere.beside, Beside::Never), "it is of no interface");
    });
    let net = Packet::beside(([127, 0, 0, 1], 0).into()).unwrap();
    assert!(matches!(net.beside, Beside::Never));
}

// spec: NET-16
#[test]
fn a_port_answers_with_the_mac_that_its_interface_has_now_and_knows_when_it_has_moved() {
    on_a_host('d', |name| {
        let set = |words: &str| assert!(ip(&format!("-n {name} {words}")), "{words}");
        set("link set lo up");
        set("link add eth0 type veth peer name eth1");
        for (eth, last) in [("eth0", 1), ("eth1", 2)] {
            set(&format!("address add 10.9.0.{last}/24 dev {eth}"));
            set(&format!("link set {eth} up"));
        }
        let open = |last| Packet::bind(([10, 9, 0, last], 0).into()).unwrap();
        let (mut here, mut there) = (open(1), open(2));
        get_acquainted(&mut there, &mut here);
        let new = [2, 0, 0, 0, 0, 7];
        set("link set eth0 address 02:00:00:00:00:07");
        // It is asked again where it was, and answers where it is.
        send_at(&mut there, 200 * MILLI, here.local(), &[vec![1]]);
        wait(&here);
        while !there.ears.takes(here.local(), new, 200 * MILLI) {
            look(&mut here, 200 * MILLI);
            look(&mut there, 200 * MILLI);
        }
        assert_eq!(frames(&here).mac(), new, "and sends from there");
        set("address del 10.9.0.1/24 dev eth0");
        set("address add 10.9.0.1/24 dev eth1");
        // Who has heard it does so no longer: the next question goes where the address is.
        here.ears = Ears::default();
        get_acquainted(&mut here, &mut there);
        let later = 10_000 * MILLI;
        send_at(&mut here, later, there.local(), &[vec![2]]);
        assert!(matches!(here.beside, Beside::Later { .. }));
    });
}
