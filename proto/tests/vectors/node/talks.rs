//! Conversations of two nodes, which the vectors record.
use super::super::frame::hex;
use super::super::script::Script;
use ayre_proto::link::end::Drive;
use std::collections::VecDeque;

/// Nodes at work on each other: what each causes, comes to the other one.
struct Talk<'a, 's> {
    script: &'a mut Script,
    now: u64,
    /// The steps that are under way: the node that takes each, and its input.
    under_way: VecDeque<(&'s str, String)>,
    /// Of the frames from here on, those that are lost.
    lost: Vec<bool>,
}

/// Nanoseconds that anything is under way.
const WAY: u64 = 1000;
/// Nanoseconds: a talk ends when no node has a deadline within this time.
const AWHILE: u64 = 60_000;

impl Talk<'_, '_> {
    /// A step of a node, and what it causes.
    fn step(&mut self, node: &str, step: impl AsRef<str>) -> String {
        let out = self.script.run(step);
        let other = if node == "a" { "b" } else { "a" };
        for effect in out.split(" + ") {
            let (what, rest) = effect.split_once(' ').unwrap_or_default();
            let step = match what {
                "transmit" => {
                    if !self.lost.is_empty() && self.lost.remove(0) {
                        continue;
                    }
                    "frame"
                }
                "record" | "word" => what,
                _ => continue,
            };
            self.under_way.push_back((other, format!("{step} {other} TIME {rest}")));
        }
        out
    }

    /// The next thing that is under way arrives.
    fn arrive(&mut self) -> bool {
        let Some((node, step)) = self.under_way.pop_front() else { return false };
        self.now += WAY;
        let step = step.replacen("TIME", &format!("{:x}", self.now), 1);
        self.step(node, step);
        true
    }

    fn due(&mut self, node: &str) -> u64 {
        let deadline = self.script.look(&format!("deadline {node}"));
        u64::from_str_radix(&deadline, 16).unwrap_or(u64::MAX)
    }

    fn time(&mut self, node: &str) {
        self.step(node, format!("time {node} {:x}", self.now));
    }

    /// Until nothing is under way, or due in a while.
    fn converse(&mut self, awhile: u64) {
        loop {
            for node in ["a", "b"] {
                if self.due(node) <= self.now {
                    self.time(node);
                }
            }
            if self.arrive() {
                continue;
            }
            let due = self.due("a").min(self.due("b"));
            if due > self.now.saturating_add(awhile) {
                return;
            }
            self.now = self.now.max(due);
        }
    }

    /// Node `a` posts, and all that follows happens.
    fn post(&mut self, what: &str) {
        self.step("a", format!("post a {what}"));
        self.converse(AWHILE);
    }
}

fn begin<'a>(script: &'a mut Script, section: &str, way: &str) -> Talk<'a, 'static> {
    script.section(section);
    script.run(format!("nodes {way}"));
    Talk { script, now: 0, under_way: VecDeque::new(), lost: Vec::new() }
}

const OPERATIONS_OF_A: &[(&str, &str)] = &[
    ("a short put", "put 0 0 0 8 1 0 0 40"),
    ("a long put, in commands that fit a frame, or half a lane", "put 0 2 0 180 1 0 0 10"),
    ("a strided put: three rows of 8, every 10 to every 20", "put 0 0 8 8 3 10 20 0"),
    ("a get, and a strided one", "get 0 5 20 18 1 0 0 300"),
    ("", "get 0 0 0 8 2 10 40 320"),
    ("an immediate put and atomics, one with a result", "immediate-put 0 2 40 8 1 0 0 -"),
    ("", "atomic 0 4 40 8 1 0 0 -"),
    ("", "fetch-atomic 0 1 40 8 1 0 0 -"),
    ("a notification put", "notification-put 0 0 0 0 1 0 0 -"),
    ("claims that the target refuses: rights, bounds, no such key", "put 1 0 0 8 1 0 0 0"),
    ("", "get 0 0 1fc 8 1 0 0 0"),
    ("", "atomic 5 0 0 8 1 0 0 -"),
    ("what is refused at once: an atomic that is not aligned", "atomic 0 0 4 8 1 0 0 -"),
];

/// Every operation, each after what was before has ended.
fn operations(s: &mut Script, way: &str) {
    let mut talk = begin(s, "before anything is posted", way);
    talk.converse(AWHILE);
    for (what, post) in OPERATIONS_OF_A {
        if !what.is_empty() {
            talk.script.section(what);
        }
        talk.post(post);
    }
    talk.script.section("what both programs are notified of");
    for node in ["a", "a", "a", "a", "a", "a", "a", "a", "b", "b", "b", "b", "b"] {
        talk.step(node, format!("notification {node}"));
    }
    talk.converse(AWHILE);
    talk.script.section("a message, which is not taken before what was posted before was done");
    talk.step("a", "post a put 0 0 0 4 1 0 0 40");
    talk.step("a", "send a 77 6d657373616765");
    talk.time("a");
    if way == "lanes" {
        // It may be seen before the command that precedes it.
        talk.under_way.swap(0, 1);
        talk.arrive();
    }
    talk.step("b", "receive b");
    talk.converse(AWHILE);
    talk.step("b", "receive b");
    talk.step("b", "receive b");
    talk.converse(AWHILE);
}

/// Three frames of puts, of which one is lost.
fn loss(s: &mut Script) {
    let mut talk =
        begin(s, "the second of four frames is lost, and that alone is sent again", "link");
    talk.converse(AWHILE);
    for place in 0..4 {
        talk.step(
            "a",
            format!("post a put 0 0 {:x} 90 1 0 0 {:x}", 0x90 * place / 2, 0x40 * place),
        );
    }
    talk.lost = vec![false, true];
    talk.converse(10_000_000);
}

/// Frames that overtake each other.
fn early(s: &mut Script) {
    let what = "a frame overtakes another one: its puts reach other bytes, so its data is placed";
    let mut talk = begin(s, what, "link");
    talk.converse(AWHILE);
    talk.step("a", "post a put 0 0 0 90 1 0 0 0");
    talk.step("a", "post a put 0 2 100 90 1 0 0 80");
    talk.time("a");
    talk.under_way.swap(0, 1);
    talk.arrive();
    talk.step("b", "notification b");
    talk.converse(AWHILE);
    talk.step("b", "notification b");
    talk.script.section("they reach the same bytes, so the one waits for the other");
    talk.step("a", "post a put 0 0 0 90 1 0 0 0");
    talk.step("a", "post a put 0 2 8 90 1 0 0 80");
    talk.time("a");
    talk.under_way.swap(0, 1);
    talk.converse(AWHILE);
}

/// Pieces that messages name, until the ring's end is passed.
fn rings(s: &mut Script) {
    let what = "pieces in a ring come before the messages that name them";
    let mut talk = begin(s, what, "rings");
    talk.converse(AWHILE);
    for at in [0, 0x180, 0x400, 0x580] {
        if at == 0x400 {
            talk.script.section("the next one begins at the ring's start, once that was taken");
        }
        let piece = hex(&(0..0x150).map(|place| (place + at) as u8).collect::<Vec<_>>());
        talk.step("a", format!("write-ring a {piece}"));
        talk.step("a", format!("send a 5 {at:04x}"));
        talk.converse(AWHILE);
        if at == 0x180 {
            talk.step("a", format!("write-ring a {piece}"));
            talk.script.section("what cannot be a piece is not taken");
            talk.step("b", "take-ring b 4 10");
            talk.step("b", "take-ring b 3c0 80");
            talk.script.section("a piece is taken, and its writer told");
            talk.step("b", "receive b");
            talk.step("b", "take-ring b 0 150");
            talk.step("b", "receive b");
            talk.step("b", "take-ring b 180 150");
            talk.converse(AWHILE);
        }
    }
    talk.step("b", "receive b");
    talk.step("b", "take-ring b 400 150");
    talk.converse(AWHILE);
}

fn death(s: &mut Script) {
    let mut talk = begin(s, "the other one falls silent: what is under way ends", "link");
    talk.converse(AWHILE);
    talk.step("a", "post a get 0 1 0 8 1 0 0 0");
    talk.step("a", "post a notification-put 0 0 0 0 1 0 0 -");
    let end = Drive::RACK.life.dead_after * 2;
    talk.script.run(format!("silent a {end:x}"));
    for step in [
        "post a put 0 0 0 8 1 0 0 0",
        "send a 1 00",
        "notification a",
        "notification a",
        "notification a",
        "deadline a",
    ] {
        talk.script.run(step);
    }
}

pub(crate) fn script(s: &mut Script) {
    operations(s, "link");
    loss(s);
    early(s);
    death(s);
    rings(s);
    operations(s, "lanes");
}
