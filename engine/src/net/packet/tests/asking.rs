//! The addresses that were asked for frames, and those that have answered.
use super::super::frames::*;
use super::super::*;
use super::{
    MILLI, frame, frames, get_acquainted, ip, look, on_a_host, pair, pair_of_strangers, send, take,
    wait,
};
use rustix::net::SendFlags;
use std::net::IpAddr;

/// Twenty datagrams that can be a train.
fn train(number: u8) -> Vec<Vec<u8>> {
    vec![vec![number; 640]; 20]
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
fn frames_go_to_a_confirmed_host_until_reachability_expires() {
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
fn a_peer_without_frames_is_reached_by_udp() {
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
fn an_unsolicited_answer_is_delivered_as_a_datagram() {
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
    assert_eq!(here.reachability.mac(there.local(), 1, 0), None);
    assert_eq!(here.reachability.mac(liar.local(), 1, 0), None);
}

/// Somebody of the same Ethernet whose datagrams do not come by UDP, or who has another MAC.
// spec: NET-14
#[test]
fn frames_of_an_unconfirmed_host_are_dropped() {
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
fn the_rate_of_answered_questions_is_limited() {
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
fn a_packet_socket_is_opened_for_a_host_of_the_same_ethernet() {
    on_a_host('c', |name| {
        assert!(ip(&format!("-n {name} link set lo up")));
        assert!(ip(&format!("-n {name} link add eth0 type veth peer name eth1")));
        assert!(ip(&format!("-n {name} address add 10.9.0.1/24 dev eth0")));
        assert!(ip(&format!("-n {name} link set eth0 up")));
        let mut net = Packet::bind_optional(([10, 9, 0, 1], 0).into()).unwrap();
        send_at(&mut net, 0, ([10, 9, 0, 2], 9).into(), &[vec![1]]);
        assert!(matches!(net.packet_socket, PacketSocket::Later { .. }), "nothing has come");
        hear_and_say(&mut net);
        assert_eq!(frames(&net).longest(([10, 9, 0, 2], 9).into()), 1500 - HEADER_BYTES);
        let many: Vec<_> =
            (1..SOCKETS_MAX).map(|_| Packet::bind(([10, 9, 0, 1], 0).into()).unwrap()).collect();
        assert_eq!(sockets_here(), SOCKETS_MAX);
        let mut late = Packet::bind_optional(([10, 9, 0, 1], 0).into()).unwrap();
        hear_and_say(&mut late);
        assert!(matches!(late.packet_socket, PacketSocket::Never), "there are many");
        drop(many);
        let mut everywhere = Packet::bind_optional(([0, 0, 0, 0], 0).into()).unwrap();
        hear_and_say(&mut everywhere);
        assert!(matches!(everywhere.packet_socket, PacketSocket::Never), "it is of no interface");
    });
    let net = Packet::bind_optional(([127, 0, 0, 1], 0).into()).unwrap();
    assert!(matches!(net.packet_socket, PacketSocket::Never));
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
        while !there.reachability.accepts(here.local(), new, 200 * MILLI) {
            look(&mut here, 200 * MILLI);
            look(&mut there, 200 * MILLI);
        }
        assert_eq!(frames(&here).mac(), new, "and sends from there");
        set("address del 10.9.0.1/24 dev eth0");
        set("address add 10.9.0.1/24 dev eth1");
        // The interface that has answered is gone: the next question goes where the address is.
        here.reachability = Reachability::default();
        get_acquainted(&mut here, &mut there);
        let later = 10_000 * MILLI;
        send_at(&mut here, later, there.local(), &[vec![2]]);
        assert!(matches!(here.packet_socket, PacketSocket::Later { .. }));
    });
}
