//! Life and end of a link: how it is confirmed, kept alive, given up, closed, and begun anew.
#[path = "common/two.rs"]
mod two;

use ayre_proto::link::answer::reset_header;
use ayre_proto::link::end::{Drive, HeaderOutcome};
use ayre_proto::link::frame::{Channel, Flags, Header, Kind};
use ayre_proto::link::life::{State, Why};
use two::{DELAY, INCARNATIONS, MILLISECOND, Two};

const SILENCE: u64 = Drive::RACK.life.silence;
const DEAD_AFTER: u64 = Drive::RACK.life.dead_after;

/// Frames of one kind that an end has sent, as the times of their sending.
fn times(two: &Two, from: usize, kind: Kind) -> Vec<u64> {
    let sent = two.log.iter().filter(|sent| sent.from == from && sent.header.kind == kind);
    sent.map(|sent| sent.at).collect()
}

/// The opener's end sends a frame at once and goes on until it is heard; then it is quiet.
// spec: OPEN-7, LINK-18
#[test]
fn a_new_end_probes_until_it_hears() {
    let mut two = Two::new();
    two.cut = [true; 2];
    [0, 1].into_iter().for_each(|host| two.lose_from(host));
    two.run_until(100 * MILLISECOND);
    let initial = Drive::RACK.timeout.initial;
    assert_eq!(times(&two, 0, Kind::Probe), [0, initial, 3 * initial, 7 * initial]);
    two.cut = [false; 2];
    two.run_until(200 * MILLISECOND);
    assert_eq!(two.states(), [State::Open; 2]);
    let probes = times(&two, 0, Kind::Probe).len();
    two.run_until(two.hosts[0].end.heard_at() + SILENCE / 4 - 1);
    assert_eq!(times(&two, 0, Kind::Probe).len(), probes, "nothing is wrong");
}

/// An idle link says now and then that it is there, and no more often than it has to.
// spec: LINK-17
#[test]
fn an_idle_link_lives_on_a_few_probes() {
    let mut two = Two::new();
    two.run_until(10 * SILENCE);
    assert_eq!(two.states(), [State::Open; 2]);
    let probes = times(&two, 0, Kind::Probe).len() + times(&two, 1, Kind::Probe).len();
    assert!((2..=2 + 2 * 40).contains(&probes), "{probes} probes in forty quarters");
    let gaps = two.hosts.each_ref().map(|host| two.now - host.end.heard_at());
    assert!(gaps.iter().all(|gap| *gap <= SILENCE / 4 + MILLISECOND), "{gaps:?}");
}

/// A peer that falls silent is asked all the time, and given up when the dead time is over, and not
/// before.
// spec: LINK-17
#[test]
fn a_silent_peer_is_given_up_after_the_dead_time() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    let heard = two.hosts[0].end.heard_at();
    two.run_until(heard + SILENCE - 1);
    assert_eq!(two.unheard, [0; 2], "it may be held up");
    let probes = times(&two, 0, Kind::Probe);
    let asked: Vec<_> = probes.into_iter().filter(|at| *at > heard).collect();
    assert_eq!(asked[0], heard + SILENCE / 4);
    let gaps: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] == (2 * pair[0]).min(SILENCE / 32)), "{gaps:?}");
    assert!(asked.len() >= 24, "it has asked until the end: {asked:?}");
    two.run_until(heard + DEAD_AFTER - 1);
    assert_eq!(two.hosts[0].end.state(), State::Open);
    assert!(two.unheard.iter().all(|count| *count > 0), "its owner is told");
    let probes = times(&two, 0, Kind::Probe);
    assert!(probes.last().expect("some") + SILENCE / 32 >= heard + DEAD_AFTER);
    two.run_until(heard + DEAD_AFTER);
    assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Silent));
    assert_eq!(two.hosts[0].end.deadline(two.now), u64::MAX);
    assert!(!two.hosts[0].end.may_send(Channel::Posted, two.now));
}

/// A peer that was stopped for longer than the silence, with frames under way both ways: all of
/// them arrive once and in order when it goes on, and soon.
// spec: LINK-17, LINK-2
#[test]
fn a_link_outlasts_any_silence_that_is_shorter_than_the_dead_time() {
    for silent in [2 * SILENCE, DEAD_AFTER - SILENCE] {
        let mut two = Two::new();
        two.run_until(MILLISECOND);
        two.cut = [true; 2];
        two.send(0, 40);
        two.send(1, 40);
        let from = two.now;
        two.run_until(from + silent);
        assert_eq!(two.states(), [State::Open; 2]);
        two.cut = [false; 2];
        two.run_until(two.now + 2 * Drive::RACK.timeout.ceiling);
        for host in &two.hosts {
            let first = two.hosts[0].taken[0];
            let all: Vec<u32> = (0..40).map(|ahead| first.wrapping_add(ahead)).collect();
            assert_eq!(host.taken, all, "each once, in order");
            assert!(host.end.sender(Channel::Posted).is_idle());
        }
        assert_eq!(two.states(), [State::Open; 2]);
    }
}

/// It is the end itself that was stopped, for longer than the dead time: it asks before it gives
/// the other side up, and gives it up in the end.
// spec: LINK-31
#[test]
fn an_end_that_was_stopped_itself_asks_first() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.now += 2 * DEAD_AFTER;
    two.run_until(two.now + MILLISECOND);
    assert_eq!(two.states(), [State::Open; 2]);
    two.cut = [true; 2];
    two.run_until(two.now + SILENCE);
    two.now += 2 * DEAD_AFTER;
    let from = two.now;
    two.run_until(from + DEAD_AFTER - 2 * SILENCE);
    assert_eq!(two.states(), [State::Open; 2], "in the midst of asking, too");
    two.run_until(from + DEAD_AFTER);
    assert_eq!(two.states(), [State::Closed(Why::Silent); 2]);
}

/// The other side's process has ended, and its host reports a closed port to each sender.
// spec: LINK-29
#[test]
fn a_peer_whose_port_is_closed_is_given_up_after_the_silence() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    two.says_closed = [true, false];
    let heard = two.hosts[0].end.heard_at();
    two.run_until(heard + SILENCE - 1);
    assert_eq!(two.states(), [State::Open; 2]);
    two.run_until(heard + SILENCE);
    assert_eq!(two.states(), [State::Closed(Why::PortClosed), State::Open]);
}

/// Anybody can say that, all the time. It counts for nothing while the other side says something,
/// be it now and then; nor does what was said of an earlier silence.
// spec: LINK-29, NET-4
#[test]
fn a_live_peer_is_not_ended_by_forged_errors() {
    let mut two = Two::new();
    two.says_closed = [true; 2];
    for _ in 0..20 {
        two.run_until(two.now + 3 * SILENCE);
        two.cut = [true; 2];
        two.run_until(two.hosts[0].end.heard_at() + SILENCE / 8 * 7);
        two.cut = [false; 2];
        two.run_until(two.now + SILENCE / 16);
        assert_eq!(two.states(), [State::Open; 2]);
    }
    // One probe is not enough.
    two.cut = [true; 2];
    two.says_closed = [false; 2];
    two.run_until(two.hosts[0].end.heard_at() + SILENCE);
    two.says_closed = [true; 2];
    two.run_until(two.now + SILENCE / 32);
    two.says_closed = [false; 2];
    two.run_until(two.now + SILENCE);
    assert_eq!(two.states(), [State::Open; 2]);
}

/// All frames with a payload are lost, and signs of life pass: after the dead time the link ends,
/// and says why.
// spec: LINK-30
#[test]
fn a_link_whose_data_does_not_get_through_ends_though_it_is_heard() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.drop_next = u32::MAX;
    two.send(0, 3);
    let from = two.now;
    two.run_until(from + DEAD_AFTER - 1);
    assert_eq!(two.states(), [State::Open; 2]);
    assert!(two.now - two.hosts[0].end.heard_at() < SILENCE, "it is heard");
    two.run_until(from + DEAD_AFTER + 4 * Drive::RACK.timeout.ceiling);
    assert_eq!(two.states(), [State::Closed(Why::NoData), State::Open]);
    let last = times(&two, 0, Kind::Data).last().copied();
    two.run_until(two.now + SILENCE);
    assert_eq!(times(&two, 0, Kind::Data).last().copied(), last, "nothing goes after the end");
}

/// Frames that get through after many attempts, and receivers that give no room, end nothing.
// spec: LINK-30, LINK-4
#[test]
fn late_data_and_missing_credit_do_not_end_a_link() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    for _ in 0..4 {
        two.drop_next = u32::MAX;
        two.send(0, 1);
        two.run_until(two.now + DEAD_AFTER / 2);
        two.drop_next = 0;
        two.run_until(two.now + 2 * Drive::RACK.timeout.ceiling);
        assert!(two.hosts[0].end.sender(Channel::Posted).is_idle());
    }
    two.takes = false;
    two.send(0, 1000);
    two.run_until(two.now + 3 * DEAD_AFTER);
    assert_eq!(two.states(), [State::Open; 2]);
    assert!(!two.hosts[0].end.may_send(Channel::Posted, two.now), "there is no room");
}

/// A reset of the link, as a peer sends it that has forgotten everything.
fn reset(two: &Two) -> Header {
    let last = two.log.iter().rfind(|sent| sent.from == 0).expect("it has sent something");
    reset_header(&last.header, 0).expect("frames of a link are answered")
}

/// A peer that was started anew says by a reset that it knows nothing: the link ends sooner.
// spec: LINK-18, LINK-19
#[test]
fn a_reset_shortens_the_silence() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    let (hinted, before) = (two.now, times(&two, 0, Kind::Probe).len());
    let reset = reset(&two);
    assert!(two.hosts[0].end.on_reset(&reset, two.now));
    two.run_until(hinted + SILENCE / 4 - 1);
    assert_eq!(two.hosts[0].end.state(), State::Open);
    let probes = times(&two, 0, Kind::Probe);
    assert!(probes.len() - before >= 8, "it looks closely before it gives up");
    two.run_until(hinted + SILENCE / 4);
    assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Reset));
}

/// Resets that others make up, however many, cause few probes and end nothing.
// spec: LINK-19, OPEN-12
#[test]
fn a_flood_of_resets_does_not_end_a_link() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    let good = reset(&two);
    let forged = [
        Header { token: good.token ^ 1, ..good },
        Header { seq: good.seq ^ 1, ..good },
        Header { generation: good.generation ^ 1, ..good },
        Header { packet: 1 << 40, ..good },
        Header { packet: 0, ..good },
        Header { kind: Kind::Accept, ..good },
    ];
    let foreign = two.hosts[0].end.counters().foreign;
    for header in forged {
        assert!(!two.hosts[0].end.on_reset(&header, two.now));
    }
    assert_eq!(two.hosts[0].end.counters().foreign, foreign + 6);
    let (from, before) = (two.now, times(&two, 0, Kind::Probe).len());
    while two.now < from + 100 * MILLISECOND {
        assert!(two.hosts[0].end.on_reset(&good, two.now));
        two.run_until(two.now + 10_000);
    }
    assert_eq!(two.states(), [State::Open; 2]);
    let probes = times(&two, 0, Kind::Probe).len() - before;
    let timeout = two.hosts[0].end.rtt().timeout() as usize;
    assert!(probes <= 1 + 100 * MILLISECOND as usize / timeout, "{probes} probes");
}

/// Another incarnation asks for a link, and the one that was there is not heard any more: the end
/// says so, sooner where it is sure who asks.
// spec: LINK-25, LINK-19
#[test]
fn a_peer_that_was_started_anew_is_told_from_one_that_fell_silent() {
    for (is_believed, patience) in [(true, SILENCE / 4), (false, SILENCE)] {
        let mut two = Two::new();
        two.run_until(MILLISECOND);
        two.cut = [true; 2];
        let from = if is_believed { two.now } else { two.hosts[0].end.heard_at() };
        assert!(two.hosts[0].end.on_open(7, is_believed, two.now), "it has to wait");
        two.run_until(from + patience / 2);
        assert!(two.hosts[0].end.on_open(7, is_believed, two.now), "it still has");
        two.run_until(from + patience - 1);
        assert_eq!(two.hosts[0].end.state(), State::Open);
        two.run_until(from + patience);
        assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Restarted));
        assert!(!two.hosts[0].end.on_open(7, is_believed, two.now), "there is nothing to wait for");
    }
}

/// Somebody takes the name of a peer that is there, again and again: it is asked, answers, and goes
/// on. Its own words repeated to it mean nothing.
// spec: LINK-18, LINK-19, LINK-25
#[test]
fn opens_in_the_name_of_a_live_peer_do_not_end_its_link() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    assert!(!two.hosts[0].end.on_open(INCARNATIONS[1], true, two.now), "it is the peer's own");
    let (from, before) = (two.now, times(&two, 0, Kind::Probe).len());
    assert!(two.hosts[0].end.on_open(7, true, two.now), "it is not known yet");
    two.run_until(two.now + MILLISECOND);
    assert!(!two.hosts[0].end.on_open(7, true, two.now), "the peer was heard");
    two.run_until(two.now + SILENCE / 2);
    assert!(two.hosts[0].end.on_open(7, true, two.now), "that was long ago");
    for other in 8.. {
        two.hosts[0].end.on_open(other, other % 2 == 0, two.now);
        two.run_until(two.now + 10_000);
        if two.now > from + SILENCE {
            break;
        }
    }
    assert_eq!(two.states(), [State::Open; 2]);
    let probes = times(&two, 0, Kind::Probe).len() - before;
    let timeout = two.hosts[0].end.rtt().timeout();
    assert!(probes as u64 <= 8 + SILENCE / timeout, "{probes} probes");
}

/// Both sides know of a close at once; who hears it again answers again.
// spec: LINK-20, LINK-21
#[test]
fn a_close_is_answered() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.hosts[0].end.close();
    assert_eq!(two.hosts[0].end.state(), State::Closing);
    assert!(!two.hosts[0].end.may_send(Channel::Posted, two.now));
    two.run_until(two.now + 2 * DELAY);
    assert_eq!(two.states(), [State::Closed(Why::Local), State::Closed(Why::Peer)]);
    assert_eq!([0, 1].map(|from| times(&two, from, Kind::Close).len()), [1, 1]);
    let again = two.sent(0, Kind::Close).expect("one");
    let repeated = Header { packet: again.packet + 1, ..again };
    assert_eq!(two.deliver(1, &repeated), Ok(HeaderOutcome::Nothing));
    assert_eq!(times(&two, 1, Kind::Close).len(), 2, "its answer may have been lost");
    let answer = two.sent(1, Kind::Close).expect("one");
    let repeated = Header { packet: answer.packet + 1, ..answer };
    assert_eq!(two.deliver(0, &repeated), Ok(HeaderOutcome::Nothing));
    assert_eq!(times(&two, 0, Kind::Close).len(), 1, "an answer is not answered");
}

/// Nobody answers: the end leaves all the same, soon.
// spec: LINK-20
#[test]
fn an_unanswered_close_ends_after_a_time_limit() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    let (from, timeout) = (two.now, two.hosts[0].end.rtt().timeout());
    two.hosts[0].end.close();
    two.run_until(from + 31 * timeout);
    let closes: Vec<u64> = [0, 1, 3, 7, 15].map(|times| from + times * timeout).to_vec();
    assert_eq!(times(&two, 0, Kind::Close), closes);
    assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Local));
    assert_eq!(two.hosts[1].end.state(), State::Open, "it will find out");
}

/// Both leave at the same time.
// spec: LINK-20
#[test]
fn closes_that_cross_end_both() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.hosts.iter_mut().for_each(|host| host.end.close());
    two.run_until(two.now + 2 * DELAY);
    assert_eq!(two.states(), [State::Closed(Why::Local); 2]);
}

/// The peer of a leaving end may be gone already: its reset is as good as an answer.
// spec: LINK-20
#[test]
fn a_reset_ends_a_close() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    two.hosts[0].end.close();
    two.run_until(two.now);
    let reset = reset(&two);
    assert!(two.hosts[0].end.on_reset(&reset, two.now));
    assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Local));
}

/// A closed end takes nothing in.
// spec: LINK-21
#[test]
fn a_closed_link_accepts_no_frames() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.send(1, 1);
    let data = two.sent(1, Kind::Data).expect("data");
    two.hosts[0].end.close();
    two.run_until(two.now + 2 * DELAY);
    let late = Header { packet: data.packet + 9, ..data };
    assert_eq!(two.deliver(0, &late), Ok(HeaderOutcome::Nothing));
    two.run_until(two.now + 10 * SILENCE);
    assert_eq!(two.hosts[0].end.state(), State::Closed(Why::Local), "for ever");
}

/// A receiver forgets what it kept before its turn: it comes again, all of it, and once.
// spec: LINK-12, LINK-22, LINK-24
#[test]
fn forgotten_early_frames_are_retransmitted_and_delivered_once() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.drop_next = 1;
    two.send(0, 5);
    two.run_until(two.now + 2 * DELAY + 1);
    let expected = two.hosts[1].end.receiver(Channel::Posted).expected();
    assert_eq!(two.hosts[1].end.receiver(Channel::Posted).sack(), 0b1111);
    two.hosts[1].kept.clear();
    two.resync(1);
    assert!(two.hosts[1].end.is_resyncing());
    two.run_until(two.now + 20 * MILLISECOND);
    assert!(!two.hosts[1].end.is_resyncing());
    assert_eq!(two.hosts[1].taken, [0, 1, 2, 3, 4].map(|ahead| expected + ahead));
    assert!(two.hosts[0].end.counters().resynced > 0);
    assert!(two.hosts[0].end.sender(Channel::Posted).is_idle());
}

/// Acknowledgements in an old frame of frames that were forgotten since are not believed.
// spec: LINK-23
#[test]
fn an_overtaken_sack_is_not_believed() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.drop_next = 1;
    two.send(0, 5);
    two.run_until(two.now + 2 * DELAY + 1);
    let sack = two.sent(1, Kind::Data).expect("it says what it has kept");
    assert_ne!(sack.sack.arrived, 0);
    let older = Header { packet: sack.packet, ..sack };
    // The frame that has told it is on its way for longer than all that come behind.
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.drop_next = 1;
    two.send(0, 5);
    two.run_until(two.now + DELAY);
    two.lose_from(1);
    two.hosts[1].kept.clear();
    two.resync(1);
    two.run_until(two.now + DELAY);
    two.deliver(0, &older).expect("an honest peer");
    two.run_until(two.now + 100 * MILLISECOND);
    assert_eq!(two.hosts[1].taken.len(), 5, "the sack has undone nothing");
    assert!(two.hosts[0].end.sender(Channel::Posted).is_idle());
}

/// Requests and answers are lost, and both ask at once: it ends all the same.
// spec: LINK-22
#[test]
fn a_resync_is_asked_for_until_it_is_answered() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.cut = [true; 2];
    let (from, timeout) = (two.now, two.hosts[0].end.rtt().timeout());
    two.resync(0);
    two.resync(1);
    two.run_until(from + 7 * timeout);
    let asked: Vec<u64> = [0, 1, 3, 7].map(|times| from + times * timeout).to_vec();
    assert_eq!(times(&two, 0, Kind::Resync), asked);
    two.cut = [false; 2];
    two.run_until(from + 16 * timeout);
    assert!(two.hosts.iter().all(|host| !host.end.is_resyncing()));
}

/// A round that is over, an answer that nobody waits for, and rounds that come too fast change
/// nothing.
// spec: LINK-23
#[test]
fn stale_resync_rounds_are_ignored() {
    let mut two = Two::new();
    two.run_until(MILLISECOND);
    two.resync(1);
    two.run_until(two.now + 2 * DELAY);
    let asked = two.sent(1, Kind::Resync).expect("a round");
    let timeout = two.hosts[0].end.rtt().timeout();
    two.cut = [true; 2];
    two.send(0, 3);
    let (old, new, packet) = (asked.seq - 1, asked.seq + 1, asked.packet);
    let stale = [
        Header { packet: packet + 10, ..asked },
        Header { packet: packet + 11, seq: old, ..asked },
        Header { packet: packet + 12, seq: new, ..asked },
        Header { packet: packet + 13, flags: Flags::ANSWER, ..asked },
    ];
    for header in stale {
        two.deliver(0, &header).expect("an honest peer");
        assert_eq!(two.hosts[0].end.counters().resynced, 0);
    }
    two.now += timeout;
    let due = Header { packet: packet + 14, seq: new, ..asked };
    two.deliver(0, &due).expect("an honest peer");
    assert_eq!(two.hosts[0].end.counters().resynced, 3, "a new round, in time");
}
