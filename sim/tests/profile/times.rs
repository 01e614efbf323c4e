//! Times of EXTOLL's operations.
use super::*;

/// The time of an operation of node 1 on node 0 that is alone, until a program sees its end. It is
/// the second of its kind, so that the TLBs have its pages.
fn alone(operation: Operation, bytes: u32) -> Time {
    let mut cluster = extoll(2, Profile::extoll());
    let (region, key) = shared(&mut cluster, 1, 4096);
    let own = cluster.program_mut(1).add_region(vec![0; 4096]).expect("a number");
    let (len, mut spent) = (u64::from(bytes), Time::ZERO);
    for round in [1, 2] {
        settle(&mut cluster);
        let data = vec![round; 4096];
        cluster.program_mut(1).region_mut(own, 0..4096).expect("a region").copy_from_slice(&data);
        let begun = cluster.now();
        let claim = Claim { key, offset: 0, len };
        let local = Some(Local::Region(own, 0));
        let word = u64::from_le_bytes([round; 8]);
        let classes = |notified| if notified { Classes::COMPLETER } else { Classes::empty() };
        let order = match operation {
            Operation::Velo => None,
            Operation::Lock => {
                cluster.lock(1, NODE, TAKE).expect("room");
                None
            }
            Operation::NotificationPut => {
                Some(order(Action::Notify, Claim { len: 0, ..claim }, None, Classes::COMPLETER))
            }
            Operation::ImmediatePut { notified } => {
                Some(order(Action::Immediate(word), claim, None, classes(notified)))
            }
            Operation::Put { notified } => {
                Some(order(Action::Put, claim, local, classes(notified)))
            }
            Operation::Get => Some(order(Action::Get, claim, local, Classes::COMPLETER)),
        };
        match order {
            Some(order) => assert!(cluster.post(1, NODE, order).is_ok()),
            None if operation == Operation::Velo => {
                assert_eq!(cluster.send(1, NODE, 1, &data[..bytes as usize]), Ok(()));
            }
            None => {}
        }
        let is_new = |cluster: &Cluster| {
            cluster.program(0).region(region, len - 1..len).is_ok_and(|bytes| bytes == [round])
        };
        let is_seen = |cluster: &mut Cluster| match operation {
            Operation::Velo => cluster.receive(0, PeerId(1)).is_some(),
            Operation::Put { notified: false } | Operation::ImmediatePut { notified: false } => {
                is_new(cluster)
            }
            Operation::Get => matches!(cluster.event(1), Some(Event::Ended(..))),
            Operation::Lock => matches!(cluster.event(1), Some(Event::Lock(..))),
            _ => cluster.notification(0).is_some(),
        };
        while !is_seen(&mut cluster) {
            assert!(cluster.step(), "it ends");
        }
        spent = cluster.now() - begun;
        settle(&mut cluster);
        while cluster.event(1).is_some() {}
    }
    spent
}

/// A cluster with EXTOLL's profile and the pair of EXTOLL's units agree on operations that are
/// alone, to the picosecond. Programs of a cluster compute in no time, and so do those of the pair
/// here. Longer gets are left out: the protocol cuts those of more than
/// 1,776 bytes, half of the lane of answers.
#[test]
fn a_cluster_with_the_profile_of_extoll_agrees_with_the_pair_of_units() {
    let times = Profile::extoll().units.expect("it has units");
    let times = extoll::Parameters { software: Time::ZERO, store: Time::ZERO, ..times };
    let put = |notified| Operation::Put { notified };
    let immediate = |notified| Operation::ImmediatePut { notified };
    let operations = [
        (Operation::Velo, &[8, 56, 64][..]),
        (Operation::NotificationPut, &[8]),
        (immediate(false), &[8]),
        (immediate(true), &[8]),
        (put(false), &[8, 64, 512, 4096]),
        (put(true), &[8, 64, 512, 4096]),
        (Operation::Get, &[8, 64, 512, 1024]),
        (Operation::Lock, &[8]),
    ];
    for (operation, lengths) in operations {
        for bytes in lengths {
            let (ours, expected) = (alone(operation, *bytes), times.alone(operation, *bytes));
            assert_eq!(ours, expected, "{operation:?} of {bytes} B");
        }
    }
}
