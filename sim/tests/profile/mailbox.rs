//! Mailboxes that drop.
use super::*;

#[test]
fn a_target_that_reads_nothing_holds_no_sender_and_loses_what_finds_no_room() {
    let mut cluster = star(2, mailboxes(100));
    let mut held = 0;
    for number in 0..5_000_u32 {
        while cluster.send(1, NODE, 3, &number.to_le_bytes()).is_err() {
            held += 1;
            assert!(held < 1_000_000 && cluster.step(), "only what is on its way holds it up");
        }
    }
    settle(&mut cluster);
    let counts = cluster.mailbox(0).expect("there is one").counts();
    assert_eq!((counts.received, counts.discarded), (100, 4_900));
    // The first ones are kept, in order. Their slots are free again.
    for number in 0..100_u32 {
        let message = cluster.receive(0, PeerId(1)).expect("it was kept");
        assert_eq!((message.tag, &message.bytes[..]), (3, &number.to_le_bytes()[..]));
    }
    assert_eq!(cluster.receive(0, PeerId(1)), None);
    // The protocol alone holds the sender for good, with the lines of its lane.
    let mut cluster = star(2, Profile::default());
    let sent = (0..5_000).filter(|_| {
        settle(&mut cluster);
        cluster.send(1, NODE, 3, b"word").is_ok()
    });
    assert_eq!(sent.count(), 64);
}

#[test]
fn a_disabled_mailbox_discards_and_messages_wait_behind_those_of_others() {
    let mut cluster = star(3, mailboxes(8));
    cluster.mailbox_mut(0).expect("there is one").is_enabled = false;
    assert_eq!(cluster.send(1, NODE, 1, b"lost"), Ok(()));
    settle(&mut cluster);
    cluster.mailbox_mut(0).expect("there is one").is_enabled = true;
    assert_eq!(cluster.send(2, NODE, 1, b"first"), Ok(()));
    settle(&mut cluster);
    assert_eq!(cluster.send(1, NODE, 1, b"second"), Ok(()));
    settle(&mut cluster);
    let counts = cluster.mailbox(0).expect("there is one").counts();
    assert_eq!((counts.received, counts.discarded), (2, 1));
    assert_eq!(cluster.receive(0, PeerId(1)), None, "another one's is before it");
    for (source, bytes) in [(2, &b"first"[..]), (1, b"second")] {
        let message = cluster.receive(0, PeerId(source)).expect("it was kept");
        assert_eq!(message.bytes, bytes);
    }
}

#[test]
fn an_interrupt_wakes_a_program_later_than_a_look_finds_the_message() {
    let mut cluster = star(2, mailboxes(8));
    let mailbox = |cluster: &mut Cluster, interrupts| {
        cluster.mailbox_mut(0).expect("there is one").interrupts = interrupts;
    };
    let mut times = Vec::new();
    for interrupts in [true, false] {
        mailbox(&mut cluster, interrupts);
        settle(&mut cluster);
        assert_eq!(cluster.send(1, NODE, 1, b"wake up"), Ok(()));
        let (mut written, mut woken) = (None, None);
        let end = cluster.now() + Time::from_nanos(10_000);
        advance(&mut cluster, end, |cluster| {
            let has_mail = cluster.mailbox(0).is_some_and(|mailbox| mailbox.peek().is_some());
            written = written.or_else(|| has_mail.then_some(cluster.now()));
            let event = cluster.event(0);
            let is_woken = event == Some(Event::Interrupt);
            woken = woken.or_else(|| is_woken.then_some(cluster.now()));
        });
        assert!(cluster.receive(0, PeerId(1)).is_some());
        times.push((written.expect("it has come"), woken));
    }
    let interrupt = Profile::extoll().mailbox.expect("it has mailboxes").interrupt;
    assert_eq!(times[0].1, Some(times[0].0 + interrupt));
    assert_eq!(times[1].1, None);
    assert_eq!(cluster.mailbox(0).map(|mailbox| mailbox.counts().interrupts), Some(1));
}

/// Senders at random, and a program that takes a random time for each message, are a queue of one
/// server with `size` places. That queue, M/M/1/K, loses the share `(1-r) r^K / (1-r^(K+1))` of
/// its customers. Error: 4 %, some two standard deviations of this number of messages.
#[test]
fn a_mailbox_under_random_traffic_loses_what_a_bounded_queue_loses() {
    /// The time that a program takes for a message, in the mean; long beside that of the network.
    const READING: f64 = 50e6;
    for (load, size, messages) in [(0.5, 3, 60_000_u32), (0.9, 8, 60_000), (1.5, 4, 20_000)] {
        let mut cluster = star(5, mailboxes(size));
        let mut reading = Random::new(1, 0);
        let mut senders: Vec<_> = (1..5).map(|node| Random::new(1, node)).collect();
        let gap = |random: &mut Random| Time((random.exponential() * READING * 4.0 / load) as u64);
        let mut next: Vec<_> = senders.iter_mut().map(gap).collect();
        // When the program has read the message that it is at.
        let mut done: Option<Time> = None;
        for _ in 0..messages {
            let which = (0..4).min_by_key(|which| next[*which]).expect("there are four");
            while cluster.now() < next[which] {
                if done.is_some_and(|done| done <= cluster.now()) {
                    let mail = cluster.mailbox_mut(0).and_then(|mailbox| mailbox.read());
                    assert!(mail.is_some(), "it has read one");
                    done = None;
                }
                let has_mail = cluster.mailbox(0).is_some_and(|mailbox| mailbox.peek().is_some());
                if done.is_none() && has_mail {
                    let spent = Time((reading.exponential() * READING) as u64);
                    done = Some(cluster.now() + spent);
                }
                let until = done.map_or(next[which], |done| done.min(next[which]));
                cluster.pass(until - cluster.now());
            }
            let node = which as u32 + 1;
            assert_eq!(cluster.send(node, NODE, 1, b"a message"), Ok(()));
            next[which] += gap(&mut senders[which]);
        }
        let counts = cluster.mailbox(0).expect("there is one").counts();
        let lost = counts.discarded as f64 / (counts.discarded + counts.received) as f64;
        let power = |count: u32| (0..count).fold(1.0, |product, _| product * load);
        let expected = (1.0 - load) * power(size) / (1.0 - power(size + 1));
        assert!((lost / expected - 1.0).abs() < 0.04, "{load}: {lost}, {expected}");
    }
}
