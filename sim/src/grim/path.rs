//! The way of a message from host to host: injection, link, ejection, in fragments and segments.
//!
//! ```text
//!   host --> interface's memory --> link --> interface's memory --> host
//!      segments            fragments              whole, or as it comes
//! ```
//!
//! A message is cut into fragments, which follow each other and fill all three stages. A fragment
//! is injected in segments, and the sender's interface sends what it has (section 5.5.4). The
//! receiver's interface moves the fragment to the host as it comes, or when it is complete.
//!
//! Reconstructed: the receiver takes a fragment from the link when it has moved the one before to
//! the host. All queues are at the sender (section 4.3.3). And a virtual write is moved when it is
//! complete, as its translation is the first step (section 5.6). Together these give the rates of
//! virtual writes in table 5.4 on all four machines.
use super::HEADER;
use super::dma::Rate;
use super::platform::Platform;
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::Time;

/// Bytes of a word.
const WORD: u32 = 4;
/// The most bytes of a payload in one message (figure 4.2).
pub const MOST: u32 = 64_572;

/// The parts of a message's time.
pub mod part {
    use crate::machine::Part;

    /// The host's software.
    pub const SOFTWARE: Part = Part("software");
    /// Into the interface.
    pub const INJECT: Part = Part("inject");
    /// The firmware of the sender.
    pub const SEND: Part = Part("send");
    /// Between the interfaces.
    pub const LINK: Part = Part("link");
    /// The firmware of the receiver, as far as the data waits for it.
    pub const RECEIVE: Part = Part("receive");
    /// To the host.
    pub const EJECT: Part = Part("eject");
    /// The pointer of the queue, or the lock.
    pub const NOTIFY: Part = Part("notify");
    /// Copies in the receiver's host.
    pub const COPY: Part = Part("copy");
}

/// The interface of the library that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Active messages: into the endpoint's queue, with a pointer.
    Active,
    /// Remote writes to virtual addresses, which the receiver translates.
    Virtual,
    /// Remote writes to physical addresses.
    Physical,
    /// The emulation of sockets by active messages (section 8.3.3). Each one's data is copied into
    /// a block of memory that is allocated for it, and from there by the program's read.
    Socket,
}

/// How a message is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of a fragment.
    pub fragment: u32,
    /// Bytes of a segment; none if fragments are injected as a whole.
    pub segment: Option<u32>,
    /// Whether the receiver moves data to the host as it comes.
    pub receiver: bool,
}

impl Cut {
    /// One message, which each stage stores.
    pub const WHOLE: Self = Self { fragment: MOST, segment: None, receiver: false };
    /// LANai 4 as it was set in the end (section 5.5.5).
    pub const LANAI4: Self = Self { fragment: 16 << 10, segment: Some(1 << 10), receiver: true };
    /// LANai 9 as it was set in the end. Its fragments of 64 kB are as long as a message can be.
    pub const LANAI9: Self = Self { fragment: MOST, segment: Some(16 << 10), receiver: true };
    /// Sockets on LANai 4: fragments begin at 64 kB (section 8.3.4).
    pub const SOCKETS: Self = Self { fragment: MOST, ..Self::LANAI4 };
}

/// The lengths of pieces of at most `most` bytes.
pub fn pieces(bytes: u32, most: u32) -> Vec<u32> {
    let most = most.max(1);
    let full = bytes / most;
    let rest = bytes % most;
    let last = (rest > 0 || full == 0).then_some(rest);
    (0..full).map(|_| most).chain(last).collect()
}

/// The units of a way.
struct Units {
    sender: UnitId,
    send: UnitId,
    /// The turn to use the link.
    turn: UnitId,
    link: UnitId,
    /// The receiver's memory for a fragment.
    room: UnitId,
    receive: UnitId,
    eject: UnitId,
    receiver: UnitId,
}

impl Units {
    fn new(machine: &mut Machine) -> Self {
        Self {
            sender: machine.named("sender", "host"),
            send: machine.named("sender", "firmware"),
            turn: machine.named("sender", "turn to use the link"),
            link: machine.named("network", "link"),
            room: machine.named("receiver", "room for a fragment"),
            receive: machine.named("receiver", "firmware"),
            eject: machine.named("receiver", "DMA to the host"),
            receiver: machine.named("receiver", "host"),
        }
    }
}

/// A segment of a fragment.
struct Segment {
    /// Its bytes, those of its fragment before it, and those of the fragment.
    bytes: u32,
    before: u32,
    fragment: u32,
    /// Whether the receiver's host copies the fragment into a buffer.
    copied: bool,
}

impl Segment {
    fn is_first(&self) -> bool {
        self.before == 0
    }

    fn is_last(&self) -> bool {
        self.before + self.bytes == self.fragment
    }

    /// With the header, which goes in front.
    fn with_header(&self) -> u32 {
        self.bytes + if self.is_first() { HEADER } else { 0 }
    }
}

/// A message on a platform, between equal hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way<'a> {
    /// The hosts with their interfaces.
    pub platform: &'a Platform,
    /// The interface of the library.
    pub api: Api,
    /// How messages are cut.
    pub cut: Cut,
}

impl Way<'_> {
    /// The time from the call at one end to the data at the other.
    pub fn time(&self, bytes: u32) -> Time {
        let mut machine = Machine::default();
        let items = self.add(&mut machine, bytes);
        machine.run();
        let ends = (0..items).map(|item| machine.passage(item).ended);
        ends.max().unwrap_or(Time::ZERO)
    }

    /// The rate of a message.
    pub fn rate(&self, bytes: u32) -> Rate {
        Rate::of(bytes, self.time(bytes))
    }

    /// The greatest rate of messages up to 2 MB.
    pub fn most(&self) -> Rate {
        let sizes = (2..=21).map(|power| 1 << power);
        Rate(sizes.map(|bytes| self.rate(bytes).0).fold(0.0, f64::max))
    }

    /// The parts of the time of a message that is one segment.
    pub fn parts(&self, bytes: u32) -> Vec<(Part, Time)> {
        let mut machine = Machine::default();
        self.add(&mut machine, bytes.min(self.cut.segment.unwrap_or(self.cut.fragment)));
        machine.run();
        machine.passage(0).parts
    }

    /// Adds the segments of a message, each an item. The result is their number.
    fn add(&self, machine: &mut Machine, bytes: u32) -> usize {
        let segments = self.segments(machine, bytes);
        let items = segments.len();
        for course in segments {
            machine.add(course, [Time::ZERO]);
        }
        items
    }

    /// Adds the units of a way to a machine. The result is the steps of each segment of a message.
    pub fn segments(&self, machine: &mut Machine, bytes: u32) -> Vec<Course> {
        let units = Units::new(machine);
        let fragments = pieces(bytes, self.cut.fragment.min(MOST));
        let copied = self.api == Api::Active && fragments.len() > 1;
        // A short message prepares the buffer in which fragments are put together (8.2.1).
        let prepares = copied.then_some((WORD, false));
        let all = fragments.iter().map(|&fragment| (fragment, copied));
        let mut courses = Vec::new();
        for (fragment, copied) in prepares.into_iter().chain(all) {
            let mut before = 0;
            for bytes in pieces(fragment, self.cut.segment.unwrap_or(fragment)) {
                let segment = Segment { bytes, before, fragment, copied };
                courses.push(self.course(&units, &segment));
                before += bytes;
            }
        }
        courses
    }

    fn course(&self, units: &Units, segment: &Segment) -> Course {
        let mut course = self.send(units, segment);
        course.extend(self.pass(units, segment));
        if self.cuts_through() || segment.is_last() {
            course.extend(self.eject(units, segment));
        }
        course
    }

    fn cuts_through(&self) -> bool {
        self.cut.receiver && self.api != Api::Virtual
    }

    /// From the program to the link.
    fn send(&self, units: &Units, segment: &Segment) -> Course {
        let Platform { firmware, software, .. } = self.platform;
        let injection = self.platform.inject.best(segment.with_header()).1;
        let mut course = vec![Step::take(part::SOFTWARE, units.sender, 1)];
        if segment.is_first() {
            course.push(Step::delay(part::SOFTWARE, *software));
        }
        course.push(Step::delay(part::INJECT, injection));
        course.push(Step::give(part::INJECT, units.sender, 1));
        if segment.is_first() {
            let before = firmware.scan(self.platform.channels) + firmware.mark;
            // Beside the transfer: the scoreboard, and the answer that will come.
            let all = before + firmware.record + firmware.decode;
            course.push(Step::pipelined(part::SEND, units.send, all, before));
            course.push(Step::take(part::LINK, units.turn, 1));
            course.push(Step::take(part::LINK, units.room, 1));
            course.push(Step::give(part::LINK, units.turn, 1));
        } else {
            // It does not overtake the first one.
            course.push(Step::serve(part::SEND, units.send, Time::ZERO));
            course.push(Step::serve(part::LINK, units.turn, Time::ZERO));
        }
        course
    }

    /// Over the link, to the decision where the data belongs.
    fn pass(&self, units: &Units, segment: &Segment) -> Course {
        let firmware = &self.platform.firmware;
        let body = self.link_time(segment);
        let before = self.before_data_moves(segment);
        if !segment.is_first() {
            return vec![Step::pipelined(part::LINK, units.link, body, before)];
        }
        let head = self.head(segment);
        let busy = self.decision() + firmware.checks + firmware.pointer + firmware.answer;
        vec![
            Step::pipelined(part::LINK, units.link, body, head),
            Step::pipelined(part::RECEIVE, units.receive, busy, before - head),
        ]
    }

    /// From the begin on the link to the begin of the DMA to the host.
    fn before_data_moves(&self, segment: &Segment) -> Time {
        let known = self.decision() + self.head(segment);
        if self.cuts_through() { known } else { known.max(self.link_time(segment)) }
    }

    /// The header of a fragment on the link. Its further segments begin as late.
    fn head(&self, segment: &Segment) -> Time {
        self.platform.link.rate.span(HEADER).min(self.link_time(segment))
    }

    /// Where the data belongs is known.
    fn decision(&self) -> Time {
        let firmware = &self.platform.firmware;
        let translation = if self.api == Api::Virtual { firmware.hit } else { Time::ZERO };
        firmware.decode + translation
    }

    fn link_time(&self, segment: &Segment) -> Time {
        let link = &self.platform.link;
        let start = if segment.is_first() { link.start } else { Time::ZERO };
        start + link.rate.span(segment.with_header())
    }

    /// To the host, up to the word that tells of it.
    fn eject(&self, units: &Units, segment: &Segment) -> Course {
        let time = if self.cuts_through() {
            // It does not end before the data has come.
            let rest = self.link_time(segment).0.saturating_sub(self.before_data_moves(segment).0);
            self.moved(segment.bytes, segment.is_first()).max(Time(rest))
        } else {
            self.moved(segment.fragment, true)
        };
        let mut course = vec![Step::serve(part::EJECT, units.eject, time)];
        if segment.is_last() {
            course.push(Step::give(part::EJECT, units.room, 1));
            course.extend(self.notify(units, segment));
        }
        course
    }

    /// The time of the DMA of some bytes of payload, at its begin or further on.
    fn moved(&self, bytes: u32, begins: bool) -> Time {
        let (dma, header) = match self.api {
            Api::Active | Api::Socket => (&self.platform.eject, HEADER),
            _ => (&self.platform.write, 0),
        };
        if begins { dma.time(bytes + header) } else { dma.rate.span(bytes) }
    }

    fn notify(&self, units: &Units, segment: &Segment) -> Course {
        let firmware = &self.platform.firmware;
        let told = match self.api {
            Api::Active | Api::Socket => firmware.move_pointer,
            // A word tells of itself: the program polls it.
            _ if segment.fragment <= WORD => return Vec::new(),
            _ => firmware.lock,
        };
        let mut course = vec![Step::serve(part::NOTIFY, units.eject, told)];
        let memory = &self.platform.inject.memory;
        let kept = memory.copy_to_fresh(segment.fragment);
        if self.api == Api::Socket {
            let read = memory.copy.span(segment.fragment);
            let time = self.platform.socket + kept + read;
            course.push(Step::serve(part::COPY, units.receiver, time));
        } else if segment.copied {
            course.push(Step::serve(part::COPY, units.receiver, kept));
        }
        course
    }
}
