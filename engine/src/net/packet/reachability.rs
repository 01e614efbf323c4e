//! Which ports hear frames of ours.
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
//! Frames may be forbidden where UDP is not, and only the other side knows what arrives; so it is
//! asked again and again, and what it has said does not hold for long. A number is the answer's
//! proof that the question was heard: nobody else can have frames sent to where they are lost.
//!
//! The host's packet filter sees UDP and no frames. So a frame is taken only from who has answered,
//! for that came by UDP and has passed the filter, and only from the MAC that the answer names.
//! Both ask, then: frames go to who has answered, and has had an answer from this port.
use super::Mac;
use foldhash::HashMap;
use std::net::SocketAddr;

/// For how long an answer holds.
// spec: NET-7
const HEARS_NANOS: u64 = 500_000_000;
/// For how long after an answer frames are taken from who has given it: longer than that one sends
/// them.
// spec: NET-14
const TAKEN_NANOS: u64 = 2 * HEARS_NANOS;
/// Time between two questions: to who has answered, to who has not been asked, and the longest, to
/// who does not answer. It doubles from each to the next.
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
const EARS_MAX: usize = 4096;
const _: () = assert!(TAKEN_NANOS > HEARS_NANOS, "frames are taken longer than they are sent");
const _: () = assert!(FIRST_NANOS < AGAIN_NANOS && AGAIN_NANOS < LAST_NANOS, "pauses grow");
const _: () = assert!(AGAIN_NANOS < HEARS_NANOS, "an answer comes before the last one is old");

/// What is known of other ports.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    known: HashMap<SocketAddr, Neighbour>,
    /// From whom the last frame was taken, and until when that is so.
    taken: Option<(SocketAddr, Mac, u64)>,
}

/// What is known of one.
#[derive(Debug)]
struct Neighbour {
    /// What its answer must name.
    number: u64,
    /// The MAC that it has answered with, and when last.
    heard: Option<(Mac, u64)>,
    asked: Option<u64>,
    /// When a question of its own was answered last.
    told: Option<u64>,
    /// When a part of a stream has come from it last.
    stream: Option<u64>,
    /// The time from the last question to the next.
    pause: u64,
    /// Bytes of the longest datagram that goes to it in a frame.
    longest: usize,
}

impl Neighbour {
    fn hears(&self, now: u64) -> Option<Mac> {
        let (mac, at) = self.heard?;
        (now.saturating_sub(at) < HEARS_NANOS).then_some(mac)
    }

    fn is_told(&self, now: u64) -> bool {
        self.told.is_some_and(|at| now.saturating_sub(at) < HEARS_NANOS)
    }

    fn streams(&self, now: u64) -> bool {
        self.stream.is_some_and(|at| now.saturating_sub(at) < STREAM_NANOS)
    }
}

impl Reachability {
    /// Where a frame with a datagram of so many bytes goes to this port; none, if that is not known
    /// to hear it.
    // spec: NET-7
    #[inline]
    pub(super) fn mac(&self, port: SocketAddr, len: usize, now: u64) -> Option<Mac> {
        let ear = self.known.get(&port)?;
        let may_be = ear.is_told(now) && len <= ear.longest && !ear.streams(now);
        ear.hears(now).filter(|_| may_be)
    }

    /// Whether a frame of this port is taken that comes from this MAC.
    // spec: NET-14
    #[inline]
    pub(super) fn takes(&mut self, from: SocketAddr, mac: Mac, now: u64) -> bool {
        let is_known = |(port, known, until): (SocketAddr, Mac, u64)| {
            (port, known) == (from, mac) && now < until
        };
        if self.taken.is_some_and(is_known) {
            return true;
        }
        let heard = self.known.get(&from).and_then(|ear| ear.heard);
        self.taken = heard.map(|(mac, at)| (from, mac, at.saturating_add(TAKEN_NANOS)));
        self.taken.is_some_and(is_known)
    }

    /// A question of this port is answered: frames go to it if it answers, too.
    // spec: NET-7
    pub(super) fn on_told(&mut self, port: SocketAddr, now: u64, longest: impl FnOnce() -> usize) {
        let known = match self.known.get_mut(&port) {
            Some(ear) => Some(ear),
            None => self.learn(port, now, longest),
        };
        if let Some(ear) = known {
            ear.told = Some(now);
        }
    }

    /// Datagrams of more than so many bytes go to this port in no frame.
    // spec: MTU-2
    #[cold]
    pub(super) fn shorten(&mut self, port: SocketAddr, longest: usize) {
        if let Some(ear) = self.known.get_mut(&port) {
            ear.longest = longest.min(ear.longest);
        }
    }

    /// A part of a stream has come from a port.
    pub(super) fn on_stream(&mut self, from: SocketAddr, now: u64) {
        if let Some(ear) = self.known.get_mut(&from) {
            ear.stream = Some(now);
        }
    }

    /// The number of the question that is due to this port, and the MAC that it has had; to one
    /// that is new, datagrams of so many bytes go.
    // spec: NET-7
    #[inline]
    pub(super) fn question(
        &mut self,
        port: SocketAddr,
        now: u64,
        longest: impl FnOnce() -> usize,
    ) -> Option<(u64, Option<Mac>)> {
        let ear = match self.known.get_mut(&port) {
            Some(ear) => ear,
            None => self.learn(port, now, longest)?,
        };
        if ear.asked.is_some_and(|at| now.saturating_sub(at) < ear.pause) {
            return None;
        }
        if ear.asked.replace(now).is_some() {
            ear.pause = (2 * ear.pause).min(LAST_NANOS);
        }
        debug_assert!((FIRST_NANOS..=LAST_NANOS).contains(&ear.pause), "questions have a pace");
        Some((ear.number, ear.hears(now)))
    }

    /// Whether a port has heard frames of ours once, and does so no longer.
    // spec: NET-16
    #[cold]
    pub(super) fn has_gone_deaf(&self, port: SocketAddr, now: u64) -> bool {
        let ear = self.known.get(&port);
        ear.is_some_and(|ear| ear.heard.is_some() && ear.hears(now).is_none())
    }

    /// A port says that it has heard a question: whether it can have.
    // spec: NET-7
    pub(super) fn on_answer(
        &mut self,
        from: SocketAddr,
        (number, mac): (u64, Mac),
        now: u64,
    ) -> bool {
        let asked = self.known.get_mut(&from);
        let Some(ear) = asked.filter(|ear| ear.asked.is_some() && ear.number == number) else {
            return false;
        };
        ear.heard = Some((mac, now));
        ear.pause = AGAIN_NANOS;
        true
    }

    /// Remembers a port; none where there are too many that hear.
    #[cold]
    fn learn(
        &mut self,
        port: SocketAddr,
        now: u64,
        longest: impl FnOnce() -> usize,
    ) -> Option<&mut Neighbour> {
        if self.known.len() >= EARS_MAX {
            self.known.retain(|_, ear| ear.hears(now).is_some());
        }
        if self.known.len() >= EARS_MAX {
            return None;
        }
        let number = u64::from_le_bytes(crate::random::bytes());
        let (heard, asked, told, stream, pause) = (None, None, None, None, FIRST_NANOS);
        let ear = Neighbour { number, heard, asked, told, stream, pause, longest: longest() };
        assert!(self.known.len() < EARS_MAX, "there is room for one more");
        Some(self.known.entry(port).or_insert(ear))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 1];

    fn port(number: usize) -> SocketAddr {
        ([10, 0, 0, 1], number as u16).into()
    }

    fn question(ears: &mut Reachability, port: SocketAddr, now: u64) -> Option<(u64, Option<Mac>)> {
        ears.question(port, now, || 1462)
    }

    fn tell(ears: &mut Reachability, port: SocketAddr, now: u64) {
        ears.on_told(port, now, || 1462);
    }

    /// What the host's filter keeps from it by UDP does not come by frames either.
    // spec: NET-7, NET-14
    #[test]
    fn frames_are_accepted_only_from_confirmed_hosts_and_sent_to_answered_ones() {
        let mut ears = Reachability::default();
        tell(&mut ears, port(1), 0);
        assert!(!ears.takes(port(1), MAC, 0), "it has not answered");
        let (number, _) = question(&mut ears, port(1), 0).expect("it was never asked");
        assert!(!ears.takes(port(1), MAC, 0), "nor has it now");
        assert!(ears.on_answer(port(1), (number, MAC), 10));
        let other = [2, 0, 0, 0, 0, 9];
        for now in [10, 9 + TAKEN_NANOS] {
            assert!(ears.takes(port(1), MAC, now));
            assert!(!ears.takes(port(1), other, now) && !ears.takes(port(2), MAC, now));
        }
        assert!(!ears.takes(port(1), MAC, 10 + TAKEN_NANOS));
        assert_eq!(ears.mac(port(1), 64, 10), Some(MAC));
        let (number, _) = question(&mut ears, port(2), 0).expect("it was never asked");
        assert!(ears.on_answer(port(2), (number, MAC), 10));
        assert_eq!(ears.mac(port(2), 64, 10), None, "it may not take them");
        tell(&mut ears, port(2), 20);
        assert_eq!(ears.mac(port(2), 64, 20), Some(MAC));
    }

    // spec: NET-7
    #[test]
    fn reachability_expires_and_is_renewed_before_it_does() {
        let mut ears = Reachability::default();
        let (number, mac) = question(&mut ears, port(1), 0).expect("it was never asked");
        tell(&mut ears, port(1), HEARS_NANOS / 2);
        assert_eq!((mac, ears.mac(port(1), 1462, 0)), (None, None));
        assert!(!ears.on_answer(port(1), (number ^ 1, MAC), 0), "another number");
        assert!(!ears.on_answer(port(2), (number, MAC), 0), "another port");
        assert_eq!(ears.mac(port(1), 1462, 0), None);
        assert!(ears.on_answer(port(1), (number, MAC), 10));
        assert_eq!(ears.mac(port(1), 1462, 9 + HEARS_NANOS), Some(MAC));
        assert_eq!(ears.mac(port(1), 1463, 10), None, "that is too long for a frame");
        assert_eq!(ears.mac(port(1), 1462, 10 + HEARS_NANOS), None);
        let asked = (0..HEARS_NANOS).step_by(1_000_000).filter_map(|now| {
            let (number, mac) = question(&mut ears, port(1), now)?;
            assert_eq!(mac, Some(MAC));
            ears.on_answer(port(1), (number, MAC), now).then_some(())
        });
        assert_eq!(asked.count(), 4, "some may be lost");
    }

    // spec: NET-7
    #[test]
    fn a_streaming_port_gets_frames_until_its_stream_ends() {
        let mut ears = Reachability::default();
        for number in [1, 2] {
            let (question, _) = question(&mut ears, port(number), 0).expect("it was never asked");
            assert!(ears.on_answer(port(number), (question, MAC), 0));
            tell(&mut ears, port(number), 0);
        }
        ears.on_stream(port(1), 100);
        ears.on_stream(port(3), 100);
        let macs = |now| [1, 2, 3].map(|number| ears.mac(port(number), 64, now).is_some());
        assert_eq!(macs(99 + STREAM_NANOS), [false, true, false]);
        assert_eq!(macs(100 + STREAM_NANOS), [true, true, false]);
    }

    // spec: NET-7
    #[test]
    fn questions_to_a_silent_port_become_rarer() {
        let mut ears = Reachability::default();
        let ends = [100_000_000, 60_000_000_000, 600_000_000_000];
        let mut now = 0;
        let asked = ends.map(|end| {
            let before = now;
            now = end;
            let times = (before..end).step_by(1_000_000);
            times.filter(|now| question(&mut ears, port(1), *now).is_some()).count()
        });
        assert_eq!(asked, [5, 16, 108]);
    }

    // spec: NET-7
    #[test]
    fn an_answer_without_a_question_is_ignored() {
        let mut ears = Reachability::default();
        ears.learn(port(1), 0, || 1462).expect("room").number = 7;
        assert!(!ears.on_answer(port(1), (7, MAC), 0));
        assert_eq!(ears.mac(port(1), 1462, 0), None);
    }

    // spec: NET-7, LIM-1
    #[test]
    fn ports_that_are_remembered_are_bounded_and_those_that_hear_stay() {
        let mut ears = Reachability::default();
        for number in 0..3 * EARS_MAX {
            let (question, _) = question(&mut ears, port(number), 0).expect("others make room");
            if number == 7 {
                assert!(ears.on_answer(port(7), (question, MAC), 0));
                tell(&mut ears, port(7), 0);
            }
        }
        assert!(ears.known.len() <= EARS_MAX);
        assert_eq!(ears.mac(port(7), 1462, 0), Some(MAC));
        for number in 0..2 * EARS_MAX {
            if let Some((question, _)) = question(&mut ears, port(number), 0) {
                ears.on_answer(port(number), (question, MAC), 0);
            }
        }
        assert!(question(&mut ears, port(3 * EARS_MAX), 0).is_none(), "all of them hear");
        assert!(question(&mut ears, port(3 * EARS_MAX), HEARS_NANOS).is_some());
    }
}
