//! Datagrams over UDP, between sockets of this host.
use super::*;
use crate::net::datagram::Shared;
use bytes::BytesMut;
use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, poll};
use std::sync::Arc;

fn pair(address: &str) -> (Udp, Udp) {
    let open = || Udp::bind(address.parse().unwrap()).expect("a socket of this host");
    (open(), open())
}

/// Waits until `count` datagrams have come.
fn take(net: &mut Udp, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
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

fn outbox(datagrams: &[(SocketAddr, Vec<u8>)]) -> Outbox {
    let mut outbox = Outbox::new();
    for (to, bytes) in datagrams {
        outbox.push(*to, |buffer| buffer.extend_from_slice(bytes));
    }
    outbox
}

fn wait(net: &Udp) {
    poll(&mut [PollFd::from_borrowed_fd(net.as_fd(), PollFlags::IN)], None).unwrap();
}

fn answers(address: &str) {
    let (mut here, mut there) = pair(address);
    here.send(&mut outbox(&[(there.local(), b"question".to_vec())]), 0);
    assert_eq!(take(&mut there, 1), [(here.local(), b"question".to_vec())]);
    there.send(&mut outbox(&[(here.local(), b"answer".to_vec())]), 0);
    assert_eq!(take(&mut here, 1), [(there.local(), b"answer".to_vec())]);
}

#[test]
fn both_families_carry_datagrams_both_ways() {
    answers("127.0.0.1:0");
    answers("[::1]:0");
}

#[test]
fn a_lone_datagram_takes_one_call_each_way() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    here.send(&mut outbox(&[(there.local(), vec![7; 8])]), 0);
    wait(&there);
    let mut inbox = Inbox::new();
    there.receive(&mut inbox, 0);
    assert_eq!(inbox.len(), 1);
    assert_eq!((here.counters().calls, there.counters().calls), (1, 1));
}

// spec: NET-1, NET-4
#[test]
fn a_busy_destination_gets_its_own_socket_transparently() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut here, mut there) = pair(address);
        let mut third = Udp::bind(address.parse().unwrap()).unwrap();
        for round in 0..200_u8 {
            here.send(&mut outbox(&[(there.local(), vec![round])]), 0);
            assert_eq!(take(&mut there, 1), [(here.local(), vec![round])]);
            there.send(&mut outbox(&[(here.local(), vec![1, round])]), 0);
            assert_eq!(take(&mut here, 1), [(there.local(), vec![1, round])]);
            third.send(&mut outbox(&[(here.local(), vec![2, round])]), 0);
            assert_eq!(take(&mut here, 1), [(third.local(), vec![2, round])]);
        }
        assert!(here.sockets.connected(there.local()).is_some());
        assert!(here.sockets.connected(third.local()).is_none(), "it was only heard");
        let gone = there.local();
        drop(there);
        for _ in 0..3 {
            here.send(&mut outbox(&[(gone, vec![3]), (third.local(), vec![4])]), 0);
            assert_eq!(take(&mut third, 1), [(here.local(), vec![4])]);
        }
        assert_eq!(here.counters().dropped, 0);
        let stranger = Udp::bind(here.local());
        assert!(stranger.is_err(), "the port is not shared with others");
    }
}

// spec: NET-11
#[test]
fn a_flooding_source_does_not_starve_other_sources() {
    let (mut here, mut eager) = pair("127.0.0.1:0");
    let mut other = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    for _ in 0..100 {
        here.send(&mut outbox(&[(eager.local(), vec![1])]), 0);
    }
    let mut inbox = Inbox::new();
    let mut hears = |net: &mut Udp, whom: SocketAddr| {
        eager.send(&mut outbox(&[(net.local(), vec![2])]), 0);
        inbox.clear();
        net.receive(&mut inbox, 0);
        (0..inbox.len()).any(|index| inbox.get(index).0 == whom)
    };
    while here.hot == 0 {
        hears(&mut here, other.local());
    }
    other.send(&mut outbox(&[(here.local(), vec![3])]), 0);
    assert!((0..=FOUND_MAX).any(|_| hears(&mut here, other.local())), "within 17 looks");
}

#[test]
fn few_destinations_have_sockets_of_their_own() {
    let (mut here, _) = pair("127.0.0.1:0");
    let others: Vec<_> = (0..20).map(|_| pair("127.0.0.1:0").0).collect();
    for other in &others {
        for _ in 0..100 {
            here.send(&mut outbox(&[(other.local(), vec![5])]), 0);
        }
    }
    let connected = others.iter().filter(|other| here.sockets.connected(other.local()).is_some());
    assert_eq!(connected.count(), 16);
}

#[test]
fn a_train_takes_one_call_and_keeps_its_datagrams_apart() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    let mut sent: Vec<_> = (0..40).map(|n| (there.local(), vec![n; 1024])).collect();
    sent.push((there.local(), vec![40; 10]));
    assert_eq!(outbox(&sent).front(64, DATAGRAM_MAX).map(|train| train.count), Some(41));
    here.send(&mut outbox(&sent), 0);
    assert_eq!(here.counters().calls, 1);
    let got = take(&mut there, sent.len());
    assert!(got.iter().all(|(from, _)| *from == here.local()));
    assert!(got.iter().map(|(_, bytes)| bytes).eq(sent.iter().map(|(_, bytes)| bytes)));
    assert_eq!(there.counters().received_bytes, here.counters().sent_bytes);
}

#[test]
fn a_train_is_the_same_wherever_its_datagrams_lie() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    let mut memory = BytesMut::new();
    (0..8).for_each(|number| memory.extend_from_slice(&[number; 640]));
    let pieces: Vec<Shared> = (0..8).map(|_| Arc::new(memory.split_to(640))).collect();
    let mut outbox = Outbox::new();
    // One behind the other, apart, the same again, and the outbox's own.
    for number in [0, 1, 2, 5, 6, 4, 3, 3, 8, 8, 7, 0] {
        match pieces.get(number) {
            Some(piece) => outbox.push_shared(there.local(), piece.clone(), 640),
            None => outbox.push(there.local(), |bytes| bytes.extend_from_slice(&[8; 640])),
        }
    }
    outbox.push_shared(there.local(), pieces[1].clone(), 9);
    here.send(&mut outbox, 0);
    assert_eq!((here.counters().calls, here.trains), (1, true));
    let got = take(&mut there, 13);
    let lens: Vec<_> = got.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lens, [vec![640; 12], vec![9]].concat());
    assert!(got.iter().all(|(_, bytes)| bytes.iter().all(|byte| *byte == bytes[0])));
    let numbers: Vec<_> = got.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 5, 6, 4, 3, 3, 8, 8, 7, 0, 1]);
}

// spec: NET-2, NET-3
#[test]
fn a_datagram_that_is_too_long_is_dropped_and_counted() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    let longest = here.datagram_max(there.local());
    assert_eq!(longest, DATAGRAM_MAX, "the loopback interface carries whole datagrams");
    let lengths = [longest + 1, longest, longest + 1, longest + 1, 8];
    here.send(&mut outbox(&lengths.map(|len| (there.local(), vec![1; len]))), 0);
    let got = take(&mut there, 2);
    assert_eq!([got[0].1.len(), got[1].1.len()], [longest, 8]);
    assert_eq!((here.counters().sent, here.counters().dropped), (2, 3));
    assert_eq!(here.deadline(), None);
}

// spec: NET-3, NET-4
#[test]
fn a_missing_peer_does_not_affect_other_datagrams() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    let gone = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap().local();
    for _ in 0..3 {
        here.send(&mut outbox(&[(gone, vec![1]), (there.local(), vec![2])]), 0);
    }
    assert_eq!(take(&mut there, 3).len(), 3);
    assert_eq!((here.counters().sent, here.counters().dropped), (6, 0));
}

// spec: NET-3
#[test]
fn datagrams_stay_queued_if_busy_and_are_dropped_on_errors() {
    let (mut here, there) = pair("127.0.0.1:0");
    let mut outbox = outbox(&vec![(there.local(), vec![3; 100]); 5]);
    assert!(here.settle(&mut outbox, 2, Err(Errno::EAGAIN)).is_err());
    assert_eq!((outbox.len(), here.counters().full, here.counters().dropped), (5, 1, 0));
    assert!(here.settle(&mut outbox, 2, Err(Errno::EHOSTUNREACH)).is_ok());
    assert_eq!((outbox.len(), here.counters().full, here.counters().dropped), (3, 1, 2));
    here.send(&mut outbox, 1000);
    assert_eq!((outbox.len(), here.deadline()), (0, None));
}

#[test]
fn a_system_that_refuses_trains_gets_datagrams_instead() {
    let (mut here, mut there) = pair("127.0.0.1:0");
    let sent: Vec<_> = (0..200).map(|n| (there.local(), vec![n; 100])).collect();
    let mut outbox = outbox(&sent);
    assert!(here.send_unjoined(&mut outbox).is_ok());
    assert_eq!((here.trains, outbox.len()), (false, 199));
    here.send(&mut outbox, 0);
    assert_eq!((here.counters().sent, here.counters().dropped), (200, 0));
    let got = take(&mut there, 200).into_iter().map(|(_, bytes)| bytes);
    assert!(got.eq(sent.into_iter().map(|(_, bytes)| bytes)));
}

#[test]
fn datagrams_that_are_too_long_do_not_end_trains() {
    let (mut here, there) = pair("127.0.0.1:0");
    let mut outbox = outbox(&[(there.local(), vec![0; 65_600]), (there.local(), vec![0; 8])]);
    assert!(here.send_unjoined(&mut outbox).is_ok());
    assert_eq!((here.trains, outbox.len(), here.counters().dropped), (true, 1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // spec: NET-1
    // Trains and batches are a matter of speed alone.
    #[test]
    fn whatever_is_sent_comes_whole_and_in_order(
        datagrams in prop::collection::vec((0..2usize, 0..40usize, 1..6usize), 1..60),
        trains: bool,
    ) {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let mut other = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        here.trains = trains;
        let ends = [there.local(), other.local()];
        let sent: Vec<_> = datagrams
            .iter()
            .flat_map(|&(end, len, count)| vec![(ends[end], len); count])
            .enumerate()
            .map(|(index, (to, len))| (to, vec![index as u8; len]))
            .collect();
        here.send(&mut outbox(&sent), 0);
        for net in [&mut there, &mut other] {
            let meant = sent.iter().filter(|(to, _)| *to == net.local());
            let meant: Vec<_> = meant.map(|(_, bytes)| bytes.clone()).collect();
            let got = take(net, meant.len());
            prop_assert!(got.into_iter().map(|(_, bytes)| bytes).eq(meant));
        }
    }
}
