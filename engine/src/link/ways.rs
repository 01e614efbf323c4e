//! The ways of a link's paths, and how they change. The address that frames of a path come from may
//! become another one, behind a translation of addresses. But anybody can send a copy of a frame
//! from elsewhere, and it may be faster than the frame.
//!
//! ```text
//!   a newest frame, from elsewhere     the way that there was
//!        |                             is heard: forgotten
//!        v                                  ^
//!   asked for a sign of life there, --------+--> it has come back from there, and the old way is
//!   as often as it speaks                        silent for a timeout: the path leads there
//! ```
use super::seal::{PREFIX_BYTES, TAG_BYTES};
use crate::net::routes::Way;
use ayre_proto::link::frame::HEADER_BYTES;

/// Bytes of the frame that asks for a sign of life, at most.
pub(super) const CHALLENGE_BYTES: usize = 160;
/// The bytes that may be sent to an address that has proved nothing, for each byte that came from
/// there.
const AMPLIFIED: usize = 3;
const _: () = {
    let frame = PREFIX_BYTES + HEADER_BYTES + TAG_BYTES;
    assert!(frame <= CHALLENGE_BYTES, "a probe is a frame");
};

/// The evidence of an authentic frame about the way by which it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) path: u8,
    pub(super) packet: u64,
    /// The stamp that it echoes.
    pub(super) echo: Option<u32>,
    pub(super) len: usize,
    /// It has not come before.
    pub(super) is_new: bool,
}

/// Where the paths of a link lead.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    leads: Vec<Lead>,
    /// Of all frames so far.
    newest: u64,
    /// This side has opened the link, and knows where its paths lead.
    are_known: bool,
    /// Of all frames that come, [`Ways::on_frame`] is told.
    listens: bool,
    /// Those by which this side has asked for the link, which goes by one of them; and how often
    /// another one was tried since.
    asked: Vec<Way>,
    turns: usize,
    /// Nothing is heard: another one is to be tried.
    seeks: bool,
}

/// Where a path leads.
#[derive(Clone, Debug)]
struct Lead {
    way: Way,
    /// Something has come from there by this path.
    is_heard: bool,
    other: Option<Other>,
}

/// Another way by which frames of the path have come.
#[derive(Clone, Debug)]
struct Other {
    way: Way,
    /// The first one, and when it came.
    packet: u64,
    since: u64,
    came: usize,
    sent: usize,
    /// When a sign of life was asked for there.
    asked_at: Option<u64>,
    is_shown: bool,
}

impl Ways {
    /// Those of a link that was opened by them.
    pub(super) fn new(ways: Vec<Way>) -> Self {
        let lead = |way| Lead { way, is_heard: false, other: None };
        Self {
            leads: ways.into_iter().map(lead).collect(),
            newest: 0,
            are_known: false,
            listens: false,
            asked: Vec::new(),
            turns: 0,
            seeks: false,
        }
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        debug_assert!(self.are_known || self.asked.is_empty(), "who has asked knows the paths");
        debug_assert!(!self.seeks || !self.asked.is_empty(), "there is another one to be tried");
        let others = self.leads.iter().filter_map(|lead| Some((lead.way, lead.other.as_ref()?)));
        for (way, other) in others {
            debug_assert!(other.way != way, "another way is another one");
            // What this side has chosen itself is no trap.
            let is_known = other.is_shown || self.asked.contains(&other.way);
            let is_bounded = is_known || other.sent <= AMPLIFIED * other.came;
            debug_assert!(is_bounded, "where nobody has chosen or shown, little goes");
        }
    }

    /// This side has opened the link by them, or by one of those that it has asked by. Until the
    /// other side has learned them, its frames of all paths come by one.
    pub(super) fn know(&mut self, asked: Vec<Way>) {
        (self.are_known, self.asked) = (true, asked);
        self.leads.iter_mut().for_each(|lead| lead.is_heard = true);
    }

    /// Nothing is heard, and a probe goes.
    #[cold]
    pub(super) fn seek(&mut self) {
        self.seeks = !self.asked.is_empty();
    }

    /// By which way beside the path's a probe is to go, too: one from which something has come, or
    /// the next of those by which the link was asked for.
    // spec: PATH-13
    pub(super) fn sought(&mut self, now: u64, timeout: u64) -> Option<Way> {
        if !std::mem::take(&mut self.seeks) {
            return None;
        }
        let lead = self.leads.first()?;
        self.turns += 1;
        let other = lead.other.as_ref().filter(|_| self.turns % 2 == 1);
        if let Some(other) = other.filter(|other| other.is_shown || other.is_due(now, timeout)) {
            return Some(other.way);
        }
        let mut next = self.asked.iter().filter(|way| **way != lead.way).cycle();
        next.nth(self.turns / 2).copied()
    }

    /// The next frame that comes is told of, whichever way it comes.
    pub(super) fn listen(&mut self) {
        self.listens = true;
    }

    /// Whether that was so until now.
    pub(super) fn listens_no_more(&mut self) -> bool {
        std::mem::take(&mut self.listens)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Way> {
        self.leads.iter().map(|lead| lead.way)
    }

    /// Where a path leads.
    pub(super) fn get(&self, path: u8) -> Option<Way> {
        self.leads.get(usize::from(path)).map(|lead| lead.way)
    }

    /// Whether a frame has come by the way of its path, and nothing of late by another one. Of
    /// others [`Ways::on_frame`] is told.
    #[inline]
    pub(super) fn is_usual(&mut self, from: Way, path: u8, packet: u64) -> bool {
        let is_calm = !self.listens;
        match self.leads.get_mut(usize::from(path)) {
            Some(lead) if is_calm && lead.other.is_none() && lead.way == from => {
                lead.is_heard = true;
                self.newest = self.newest.max(packet);
                true
            }
            _ => false,
        }
    }

    /// A frame has come by a path. Returns the way by which a sign of life is to be asked for; then
    /// [`Ways::asked`] is told.
    // spec: PATH-11, PATH-12
    pub(super) fn on_frame(
        &mut self,
        from: Way,
        seen: &Seen,
        (now, timeout): (u64, u64),
    ) -> Option<Way> {
        self.check();
        let is_newest = seen.is_new && seen.packet > self.newest;
        self.newest = self.newest.max(seen.packet);
        let is_of_another = self.are_known && self.leads.iter().any(|lead| lead.way == from);
        let lead = self.leads.get_mut(usize::from(seen.path))?;
        if from == lead.way {
            lead.is_heard = true;
            // Whatever came from elsewhere since was a copy.
            lead.other.take_if(|other| other.packet <= seen.packet);
            return None;
        }
        if !seen.is_new || is_of_another {
            return None;
        }
        if lead.other.as_ref().is_none_or(|other| other.way != from) {
            if !is_newest {
                return None;
            }
            lead.other = Some(Other::new(from, seen.packet, now));
        }
        let other = lead.other.as_mut()?;
        other.on_frame(seen);
        let is_silent = !lead.is_heard || now.saturating_sub(other.since) >= timeout;
        if other.is_shown && is_silent {
            *lead = Lead { way: from, is_heard: true, other: None };
            return None;
        }
        other.is_due(now, timeout).then_some(from)
    }

    /// A sign of life was asked for by this way, which may be the other one of a path.
    pub(super) fn asked(&mut self, path: u8, by: Way, now: u64) {
        let other = self.leads.get_mut(usize::from(path)).and_then(|lead| lead.other.as_mut());
        if let Some(other) = other.filter(|other| other.way == by) {
            other.asked_at = Some(now);
            other.sent += CHALLENGE_BYTES;
        }
        self.check();
    }
}

impl Other {
    fn new(way: Way, packet: u64, now: u64) -> Self {
        Self { way, packet, since: now, came: 0, sent: 0, asked_at: None, is_shown: false }
    }

    fn on_frame(&mut self, seen: &Seen) {
        self.came += seen.len;
        // Who has not got what was sent there cannot know when that was.
        self.is_shown |= self.asked_at.is_some_and(|at| seen.echo == Some(at as u32));
    }

    fn is_due(&self, now: u64, timeout: u64) -> bool {
        let is_time = self.asked_at.is_none_or(|at| now.saturating_sub(at) >= timeout);
        let may_send = self.sent + CHALLENGE_BYTES <= AMPLIFIED * self.came;
        !self.is_shown && is_time && may_send
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TIMEOUT: u64 = 1_000;
    const LEN: usize = 144;

    fn way(host: u8) -> Way {
        Way { net: 0, to: ([10, 0, 0, host], 7).into() }
    }

    /// The ways of a link with one path, which leads to host 1 and is heard; and how it fares.
    struct Link {
        ways: Ways,
        packet: u64,
        now: u64,
        /// Asked by this way, at this time.
        asked: Vec<(Way, u64)>,
    }

    impl Link {
        fn new() -> Self {
            let mut link =
                Self { ways: Ways::new(vec![way(1)]), packet: 0, now: 0, asked: Vec::new() };
            link.new_frame(1, None);
            link
        }

        fn frame(&mut self, host: u8, packet: u64, echo: Option<u32>, is_new: bool) {
            let seen = Seen { path: 0, packet, echo, len: LEN, is_new };
            self.now += 10;
            if self.ways.is_usual(way(host), 0, packet) {
                return;
            }
            if let Some(way) = self.ways.on_frame(way(host), &seen, (self.now, TIMEOUT)) {
                self.ways.asked(0, way, self.now);
                self.asked.push((way, self.now));
            }
        }

        fn new_frame(&mut self, host: u8, echo: Option<u32>) {
            self.packet += 1;
            self.frame(host, self.packet, echo, true);
        }

        fn leads_to(&self, host: u8) -> bool {
            self.ways.get(0) == Some(way(host))
        }

        fn last_asked(&self) -> Option<u32> {
            self.asked.last().map(|(_, at)| *at as u32)
        }
    }

    /// Copies come from elsewhere before the frames themselves, which are repeated ones then; who
    /// sends them passes on what comes for the other side, too.
    // spec: PATH-11
    #[test]
    fn copies_that_are_faster_than_their_frames_lead_no_path_astray() {
        let mut link = Link::new();
        for _ in 0..1_000 {
            let echo = link.last_asked();
            link.new_frame(2, echo);
            assert!(link.leads_to(1));
            link.frame(1, link.packet, echo, false);
            assert!(link.leads_to(1) && link.ways.leads[0].other.is_none());
        }
        assert!(link.asked.iter().all(|(asked, _)| *asked == way(2)));
    }

    /// Nor does a copy that comes late, whatever it says, or one from a third address.
    // spec: PATH-11
    #[test]
    fn only_the_newest_frame_makes_another_way_known() {
        let mut link = Link::new();
        link.packet = 10;
        link.frame(1, 10, None, true);
        link.frame(2, 9, None, true);
        link.frame(2, 10, None, false);
        assert!(link.asked.is_empty() && link.ways.leads[0].other.is_none());
    }

    /// Behind a translation that has started over, the old address is silent. The new one is asked
    /// and answers. It is the way once the old one was silent for a timeout, and not before.
    // spec: PATH-11
    #[test]
    fn a_peer_whose_address_has_changed_is_followed_once_it_has_answered_from_there() {
        let mut link = Link::new();
        link.new_frame(2, None);
        assert_eq!(link.asked.len(), 1);
        let since = link.now;
        link.new_frame(2, Some(7));
        while link.leads_to(1) {
            assert!(link.now < since + TIMEOUT, "it has answered by now");
            link.new_frame(2, link.last_asked());
        }
        assert!(link.leads_to(2) && link.now >= since + TIMEOUT);
        assert_eq!(link.asked.len(), 1, "once it has answered it is not asked again");
    }

    // spec: PATH-11
    #[test]
    fn an_address_that_does_not_answer_is_not_the_way() {
        let mut link = Link::new();
        for echo in 0..1_000 {
            link.new_frame(2, Some(echo * 20 + 5));
        }
        assert!(link.leads_to(1) && link.asked.len() > 1);
    }

    /// A sender of few bytes is sent no more than three times that.
    // spec: PATH-12
    #[test]
    fn an_unvalidated_address_is_sent_at_most_three_times_its_bytes() {
        let mut link = Link::new();
        let came = 20;
        for _ in 0..came {
            link.now += 10 * TIMEOUT;
            link.new_frame(2, None);
            let sent = link.asked.len() * CHALLENGE_BYTES;
            assert!(sent <= 3 * (link.packet as usize - 1) * LEN);
        }
        assert!(link.asked.len() <= came);
    }

    /// A path of which nothing has come yet has nobody to wait for.
    #[test]
    fn a_path_that_was_not_heard_is_learned_from_the_first_answer() {
        let mut link = Link::new();
        link.ways = Ways::new(vec![way(1)]);
        link.new_frame(2, None);
        assert!(link.leads_to(1));
        link.new_frame(2, link.last_asked());
        assert!(link.leads_to(2));
    }

    /// An opener follows the other side, too, and takes no path of its own for another one's new
    /// address. Until the ways are learned, frames of all paths come by one.
    // spec: PATH-11
    #[test]
    fn an_opener_follows_an_acceptor_to_a_new_address_with_separate_paths() {
        let mut link = Link::new();
        link.ways = Ways::new(vec![way(1), way(2)]);
        link.ways.know(Vec::new());
        for _ in 0..100 {
            link.new_frame(2, link.last_asked());
        }
        assert!(link.asked.is_empty() && link.leads_to(1), "that is its other path");
        let since = link.now;
        link.new_frame(3, None);
        assert_eq!(link.asked.len(), 1);
        while link.leads_to(1) {
            assert!(link.now <= since + 2 * TIMEOUT, "it has answered by now");
            link.new_frame(3, link.last_asked());
        }
        assert!(link.leads_to(3) && link.now >= since + TIMEOUT, "the old way was silent");
        assert_eq!(link.ways.get(1), Some(way(2)));
    }

    /// Where nothing is heard, an opener tries the other ways in turn, and every second time the
    /// one from which something has come; an acceptor knows none.
    // spec: PATH-13
    #[test]
    fn an_opener_without_traffic_tries_its_other_addresses() {
        let mut link = Link::new();
        let sought = |link: &mut Link| {
            link.ways.seek();
            link.ways.sought(link.now, TIMEOUT)
        };
        assert_eq!(sought(&mut link), None, "it has not asked");
        link.ways.know([1, 2, 3].map(way).into());
        assert_eq!(link.ways.sought(link.now, TIMEOUT), None, "something is heard");
        let hosts: Vec<_> = (0..8).map(|_| sought(&mut link)).collect();
        for host in [2, 3] {
            assert!(hosts.contains(&Some(way(host))), "{hosts:?}");
        }
        assert!(!hosts.contains(&Some(way(1))), "that is the path's own");
        link.new_frame(3, None);
        link.now += TIMEOUT;
        let hosts: Vec<_> = (0..8)
            .map(|_| {
                link.now += TIMEOUT;
                sought(&mut link)
            })
            .collect();
        assert!(hosts.iter().step_by(2).filter(|host| **host == Some(way(3))).count() >= 3);
        assert!(hosts.contains(&Some(way(2))), "who sends copies keeps it from no other way");
    }

    #[test]
    fn while_it_is_listened_for_the_first_frame_is_told_of_whichever_way_it_comes() {
        let mut link = Link::new();
        link.ways.listen();
        assert!(!link.ways.is_usual(way(1), 0, 2));
        assert!(link.ways.listens_no_more() && !link.ways.listens_no_more());
        assert!(link.ways.is_usual(way(1), 0, 2));
    }
}
