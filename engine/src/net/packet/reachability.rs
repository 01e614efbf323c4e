//! The reachability table: the ports that receive this port's Ethernet frames.
//!
//! ```text
//!   this port                                     the other port
//!      | --- datagrams by UDP -------------------------> |
//!      | --- a question, as a frame to everybody ------> |
//!      | <-- its answer by UDP: the question's number, - |
//!      |     and the MAC of its interface                |
//!      | --- short datagrams as frames to that MAC ----> |
//! ```
//!
//! Frames may be forbidden where UDP is not, and only the other side knows whether they arrive. So
//! it is asked again and again, and each answer holds for a short time. The question's number in
//! the answer proves that the question arrived, so nobody else can have frames sent to where they
//! are lost.
//!
//! The host's packet filter sees UDP and no frames. So a frame is accepted only from a port that
//! has answered, and only from the MAC that the answer names. The answer came by UDP, so it has
//! passed the filter. So both sides ask: frames go to a port that has answered and has had an
//! answer from this port.
use super::Mac;
use foldhash::HashMap;
use std::net::SocketAddr;

/// For how long an answer holds.
// spec: NET-7
const REACHABLE_NANOS: u64 = 500_000_000;
/// The time after an answer for which frames are accepted from its sender: longer than the sender
/// sends them.
// spec: NET-14
const ACCEPTED_NANOS: u64 = 2 * REACHABLE_NANOS;
/// The times between two questions: to a port that has answered, to a new port, and the longest, to
/// a port that does not answer. It doubles from each to the next.
// spec: NET-7
const AGAIN_NANOS: u64 = 100_000_000;
const FIRST_NANOS: u64 = 5_000_000;
const LAST_NANOS: u64 = 5_000_000_000;
/// For how long nothing goes as frames to a port that has sent a part of a stream: acknowledgements
/// that come as frames make it a tenth slower.
// spec: NET-7
const STREAM_NANOS: u64 = 50_000;
/// Ports that are remembered.
// spec: LIM-1
const NEIGHBOURS_MAX: usize = 4096;
const _: () =
    assert!(ACCEPTED_NANOS > REACHABLE_NANOS, "frames are taken longer than they are sent");
const _: () = assert!(FIRST_NANOS < AGAIN_NANOS && AGAIN_NANOS < LAST_NANOS, "pauses grow");
const _: () = assert!(AGAIN_NANOS < REACHABLE_NANOS, "an answer comes before the last one is old");

/// The state of other ports.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    known: HashMap<SocketAddr, Neighbour>,
    /// The source of the last frame that was accepted, and until when it is.
    accepted: Option<(SocketAddr, Mac, u64)>,
}

/// The state of one port.
#[derive(Debug)]
struct Neighbour {
    /// The number that its answer must name.
    number: u64,
    /// The MAC of its last answer, and the time of that.
    answered: Option<(Mac, u64)>,
    asked: Option<u64>,
    /// The time at which a question of its own was answered last.
    asked_us: Option<u64>,
    /// The time at which a part of a stream has come from it last.
    stream: Option<u64>,
    /// The time from the last question to the next.
    pause: u64,
    /// Bytes of the longest datagram that goes to it in a frame.
    longest: usize,
}

impl Neighbour {
    fn reachable_mac(&self, now: u64) -> Option<Mac> {
        let (mac, at) = self.answered?;
        (now.saturating_sub(at) < REACHABLE_NANOS).then_some(mac)
    }

    fn is_answered(&self, now: u64) -> bool {
        self.asked_us.is_some_and(|at| now.saturating_sub(at) < REACHABLE_NANOS)
    }

    fn streams(&self, now: u64) -> bool {
        self.stream.is_some_and(|at| now.saturating_sub(at) < STREAM_NANOS)
    }
}

impl Reachability {
    /// The MAC to which a frame with a datagram of `len` bytes goes for this port; none if the port
    /// is not known to receive it.
    // spec: NET-7
    #[inline]
    pub(super) fn mac(&self, port: SocketAddr, len: usize, now: u64) -> Option<Mac> {
        let neighbour = self.known.get(&port)?;
        let may_be =
            neighbour.is_answered(now) && len <= neighbour.longest && !neighbour.streams(now);
        neighbour.reachable_mac(now).filter(|_| may_be)
    }

    /// Whether a frame of this port that comes from this MAC is accepted.
    // spec: NET-14
    #[inline]
    pub(super) fn accepts(&mut self, from: SocketAddr, mac: Mac, now: u64) -> bool {
        let is_known = |(port, known, until): (SocketAddr, Mac, u64)| {
            (port, known) == (from, mac) && now < until
        };
        if self.accepted.is_some_and(is_known) {
            return true;
        }
        let answered = self.known.get(&from).and_then(|neighbour| neighbour.answered);
        self.accepted = answered.map(|(mac, at)| (from, mac, at.saturating_add(ACCEPTED_NANOS)));
        self.accepted.is_some_and(is_known)
    }

    /// A question of this port was answered: frames go to it if it answers this port's, too.
    // spec: NET-7
    pub(super) fn on_question(
        &mut self,
        port: SocketAddr,
        now: u64,
        longest: impl FnOnce() -> usize,
    ) {
        let known = match self.known.get_mut(&port) {
            Some(neighbour) => Some(neighbour),
            None => self.learn(port, now, longest),
        };
        if let Some(neighbour) = known {
            neighbour.asked_us = Some(now);
        }
    }

    /// Datagrams longer than this go to this port in no frame.
    // spec: MTU-2
    #[cold]
    pub(super) fn shorten(&mut self, port: SocketAddr, longest: usize) {
        if let Some(neighbour) = self.known.get_mut(&port) {
            neighbour.longest = longest.min(neighbour.longest);
        }
    }

    /// A part of a stream has come from a port.
    pub(super) fn on_stream(&mut self, from: SocketAddr, now: u64) {
        if let Some(neighbour) = self.known.get_mut(&from) {
            neighbour.stream = Some(now);
        }
    }

    /// The number of the question that is due to this port, and the MAC that is known. A new entry
    /// takes its longest datagram from the closure.
    // spec: NET-7
    #[inline]
    pub(super) fn question(
        &mut self,
        port: SocketAddr,
        now: u64,
        longest: impl FnOnce() -> usize,
    ) -> Option<(u64, Option<Mac>)> {
        let neighbour = match self.known.get_mut(&port) {
            Some(neighbour) => neighbour,
            None => self.learn(port, now, longest)?,
        };
        if neighbour.asked.is_some_and(|at| now.saturating_sub(at) < neighbour.pause) {
            return None;
        }
        if neighbour.asked.replace(now).is_some() {
            neighbour.pause = (2 * neighbour.pause).min(LAST_NANOS);
        }
        debug_assert!(
            (FIRST_NANOS..=LAST_NANOS).contains(&neighbour.pause),
            "questions have a pace"
        );
        Some((neighbour.number, neighbour.reachable_mac(now)))
    }

    /// Whether a port has received frames of ours once, and does so no longer.
    // spec: NET-16
    #[cold]
    pub(super) fn is_no_longer_reachable(&self, port: SocketAddr, now: u64) -> bool {
        let neighbour = self.known.get(&port);
        neighbour.is_some_and(|neighbour| {
            neighbour.answered.is_some() && neighbour.reachable_mac(now).is_none()
        })
    }

    /// An answer has come from a port: whether it answers a question.
    // spec: NET-7
    pub(super) fn on_answer(
        &mut self,
        from: SocketAddr,
        (number, mac): (u64, Mac),
        now: u64,
    ) -> bool {
        let asked = self.known.get_mut(&from);
        let Some(neighbour) =
            asked.filter(|neighbour| neighbour.asked.is_some() && neighbour.number == number)
        else {
            return false;
        };
        neighbour.answered = Some((mac, now));
        neighbour.pause = AGAIN_NANOS;
        true
    }

    /// Adds a port; none where the table is full of ports that receive frames.
    #[cold]
    fn learn(
        &mut self,
        port: SocketAddr,
        now: u64,
        longest: impl FnOnce() -> usize,
    ) -> Option<&mut Neighbour> {
        if self.known.len() >= NEIGHBOURS_MAX {
            self.known.retain(|_, neighbour| neighbour.reachable_mac(now).is_some());
        }
        if self.known.len() >= NEIGHBOURS_MAX {
            return None;
        }
        let number = u64::from_le_bytes(crate::random::bytes());
        let (answered, asked, asked_us, stream, pause) = (None, None, None, None, FIRST_NANOS);
        let neighbour =
            Neighbour { number, answered, asked, asked_us, stream, pause, longest: longest() };
        assert!(self.known.len() < NEIGHBOURS_MAX, "there is room for one more");
        Some(self.known.entry(port).or_insert(neighbour))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 1];

    fn port(number: usize) -> SocketAddr {
        ([10, 0, 0, 1], number as u16).into()
    }

    fn question(
        reachability: &mut Reachability,
        port: SocketAddr,
        now: u64,
    ) -> Option<(u64, Option<Mac>)> {
        reachability.question(port, now, || 1462)
    }

    fn tell(reachability: &mut Reachability, port: SocketAddr, now: u64) {
        reachability.on_question(port, now, || 1462);
    }

    /// Traffic that the host's filter stops by UDP does not come by frames either.
    // spec: NET-7, NET-14
    #[test]
    fn frames_are_accepted_only_from_confirmed_hosts_and_sent_to_answered_ones() {
        let mut reachability = Reachability::default();
        tell(&mut reachability, port(1), 0);
        assert!(!reachability.accepts(port(1), MAC, 0), "it has not answered");
        let (number, _) = question(&mut reachability, port(1), 0).expect("it was never asked");
        assert!(!reachability.accepts(port(1), MAC, 0), "nor has it now");
        assert!(reachability.on_answer(port(1), (number, MAC), 10));
        let other = [2, 0, 0, 0, 0, 9];
        for now in [10, 9 + ACCEPTED_NANOS] {
            assert!(reachability.accepts(port(1), MAC, now));
            assert!(
                !reachability.accepts(port(1), other, now)
                    && !reachability.accepts(port(2), MAC, now)
            );
        }
        assert!(!reachability.accepts(port(1), MAC, 10 + ACCEPTED_NANOS));
        assert_eq!(reachability.mac(port(1), 64, 10), Some(MAC));
        let (number, _) = question(&mut reachability, port(2), 0).expect("it was never asked");
        assert!(reachability.on_answer(port(2), (number, MAC), 10));
        assert_eq!(reachability.mac(port(2), 64, 10), None, "it may not take them");
        tell(&mut reachability, port(2), 20);
        assert_eq!(reachability.mac(port(2), 64, 20), Some(MAC));
    }

    // spec: NET-7
    #[test]
    fn reachability_expires_and_is_renewed_before_it_does() {
        let mut reachability = Reachability::default();
        let (number, mac) = question(&mut reachability, port(1), 0).expect("it was never asked");
        tell(&mut reachability, port(1), REACHABLE_NANOS / 2);
        assert_eq!((mac, reachability.mac(port(1), 1462, 0)), (None, None));
        assert!(!reachability.on_answer(port(1), (number ^ 1, MAC), 0), "another number");
        assert!(!reachability.on_answer(port(2), (number, MAC), 0), "another port");
        assert_eq!(reachability.mac(port(1), 1462, 0), None);
        assert!(reachability.on_answer(port(1), (number, MAC), 10));
        assert_eq!(reachability.mac(port(1), 1462, 9 + REACHABLE_NANOS), Some(MAC));
        assert_eq!(reachability.mac(port(1), 1463, 10), None, "that is too long for a frame");
        assert_eq!(reachability.mac(port(1), 1462, 10 + REACHABLE_NANOS), None);
        let asked = (0..REACHABLE_NANOS).step_by(1_000_000).filter_map(|now| {
            let (number, mac) = question(&mut reachability, port(1), now)?;
            assert_eq!(mac, Some(MAC));
            reachability.on_answer(port(1), (number, MAC), now).then_some(())
        });
        assert_eq!(asked.count(), 4, "some may be lost");
    }

    // spec: NET-7
    #[test]
    fn a_streaming_port_gets_frames_until_its_stream_ends() {
        let mut reachability = Reachability::default();
        for number in [1, 2] {
            let (question, _) =
                question(&mut reachability, port(number), 0).expect("it was never asked");
            assert!(reachability.on_answer(port(number), (question, MAC), 0));
            tell(&mut reachability, port(number), 0);
        }
        reachability.on_stream(port(1), 100);
        reachability.on_stream(port(3), 100);
        let macs = |now| [1, 2, 3].map(|number| reachability.mac(port(number), 64, now).is_some());
        assert_eq!(macs(99 + STREAM_NANOS), [false, true, false]);
        assert_eq!(macs(100 + STREAM_NANOS), [true, true, false]);
    }

    // spec: NET-7
    #[test]
    fn questions_to_a_silent_port_become_rarer() {
        let mut reachability = Reachability::default();
        let ends = [100_000_000, 60_000_000_000, 600_000_000_000];
        let mut now = 0;
        let asked = ends.map(|end| {
            let before = now;
            now = end;
            let times = (before..end).step_by(1_000_000);
            times.filter(|now| question(&mut reachability, port(1), *now).is_some()).count()
        });
        assert_eq!(asked, [5, 16, 108]);
    }

    // spec: NET-7
    #[test]
    fn an_answer_without_a_question_is_ignored() {
        let mut reachability = Reachability::default();
        reachability.learn(port(1), 0, || 1462).expect("room").number = 7;
        assert!(!reachability.on_answer(port(1), (7, MAC), 0));
        assert_eq!(reachability.mac(port(1), 1462, 0), None);
    }

    // spec: NET-7, LIM-1
    #[test]
    fn ports_that_are_remembered_are_bounded_and_those_that_hear_stay() {
        let mut reachability = Reachability::default();
        for number in 0..3 * NEIGHBOURS_MAX {
            let (question, _) =
                question(&mut reachability, port(number), 0).expect("others make room");
            if number == 7 {
                assert!(reachability.on_answer(port(7), (question, MAC), 0));
                tell(&mut reachability, port(7), 0);
            }
        }
        assert!(reachability.known.len() <= NEIGHBOURS_MAX);
        assert_eq!(reachability.mac(port(7), 1462, 0), Some(MAC));
        for number in 0..2 * NEIGHBOURS_MAX {
            if let Some((question, _)) = question(&mut reachability, port(number), 0) {
                reachability.on_answer(port(number), (question, MAC), 0);
            }
        }
        assert!(
            question(&mut reachability, port(3 * NEIGHBOURS_MAX), 0).is_none(),
            "all of them hear"
        );
        assert!(question(&mut reachability, port(3 * NEIGHBOURS_MAX), REACHABLE_NANOS).is_some());
    }
}
