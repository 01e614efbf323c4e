//! Vectors of a channel's receiver.
use super::names::{REPAIRS, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::link::Repair;
use ayre_proto::link::receive::{Arrival, Receiver};

pub(crate) const HEADER: &str = "\
A channel of a link: the receiver's machine (proto/src/link/receive.rs, spec/85).
Numbers are hexadecimal, `-` is none.

receiver REPAIR FIRST -> STATE       nothing has come, no buffers
give BUFFERS NOW -> STATE            or too-many
take FRAMES -> STATE                 or too-many
frame SEQ NOW -> ARRIVAL STATE       in-order:COUNT, ahead, dropped, duplicate or malformed
say PATIENCE -> AT                   when something is to be said, or -
missed NOW ROUND-TRIP -> 0|1         whether the next frame asks for the one that is missed
said NOW ASKED -> STATE              a frame was sent that says all, and asked or not
ask NOW -> STATE                     the other side wants to hear
resume NOW -> STATE                  what was kept before its turn is gone
STATE is TAKEN EXPECTED LIMIT SACK";

struct Channel(Receiver);

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Channel(Receiver::new(Repair::Selective, 0)))
}

impl Channel {
    fn state(&self) -> String {
        let Self(receiver) = self;
        let (taken, expected, limit) = (receiver.taken(), receiver.expected(), receiver.limit());
        format!("{taken:x} {expected:x} {limit:x} {:x}", receiver.sack())
    }

    fn frame(&mut self, inputs: &mut Fields<'_>) -> String {
        match self.0.on_frame(inputs.number(), inputs.number()) {
            Ok(Arrival::InOrder(frames)) => format!("in-order:{frames:x}"),
            Ok(Arrival::Ahead) => "ahead".to_owned(),
            Ok(Arrival::Dropped) => "dropped".to_owned(),
            Ok(Arrival::Duplicate) => "duplicate".to_owned(),
            Err(_) => "malformed".to_owned(),
        }
    }
}

impl Machine for Channel {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "receiver" => {
                self.0 = Receiver::new(value(REPAIRS, inputs.text()), inputs.number());
            }
            "give" => {
                let (buffers, now) = (inputs.number(), inputs.number());
                if buffers > self.0.wants() {
                    return "too-many".to_owned();
                }
                self.0.give(buffers, now);
            }
            "take" => {
                let frames = inputs.number();
                if frames > self.0.held() {
                    return "too-many".to_owned();
                }
                self.0.take(frames);
            }
            "frame" => return format!("{} {}", self.frame(inputs), self.state()),
            "say" => {
                let at = self.0.ack_due(inputs.number());
                return at.map_or_else(|| "-".to_owned(), |at| format!("{at:x}"));
            }
            "missed" => {
                let is_due = self.0.nack_due(inputs.number(), inputs.number());
                return u8::from(is_due).to_string();
            }
            "said" => self.0.on_ack_sent(inputs.number(), inputs.number::<u8>() == 1),
            "ask" => self.0.ask(inputs.number()),
            "resume" => self.0.resume(inputs.number()),
            _ => panic!("{step} is no step of a receiver"),
        }
        self.state()
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("no buffers, as many as the window holds, what is told and when");
    for step in [
        "receiver selective 0",
        "say 20",
        "frame 0 1",
        "give 81 1",
        "give 80 2",
        "say 20",
        "said 3 0",
        "say 20",
        "frame 0 10",
        "say 20",
        "take 2",
        "take 1",
        "give 1 11",
        "frame 81 12",
        "frame 80 12",
        "say 20",
        "said 13 0",
        "ask 14",
        "say 20",
    ] {
        s.run(step);
    }
    s.section("sixteen frames in order are told at once");
    s.run("receiver selective fffffff8");
    s.run("give 20 0");
    s.run("said 0 0");
    for ahead in 0..17u32 {
        s.run(format!("frame {:x} {:x}", 0xffff_fff8_u32.wrapping_add(ahead), 0x10 + ahead));
        s.run("say 100");
    }
    for repair in ["selective", "go-back-n"] {
        missed(s, repair);
    }
    s.section("what was kept is forgotten");
    for step in ["receiver selective 0", "give 8 0", "frame 2 1", "frame 1 2", "resume 3", "say 20"]
    {
        s.run(step);
    }
    for step in ["frame 0 4", "frame 2 5", "frame 1 6", "frame 1 7"] {
        s.run(step);
    }
    s.section("at random");
    for repair in ["selective", "go-back-n"] {
        traffic(s, repair);
    }
}

fn missed(s: &mut Script, repair: &str) {
    s.section(&format!(
        "{repair}: a frame is missed, asked for at intervals that double, and comes"
    ));
    s.run(format!("receiver {repair} 0"));
    s.run("give 40 0");
    for seq in [0, 2, 3, 4, 3, 6] {
        s.run(format!("frame {seq:x} {:x}", 0x10 + seq));
        s.run("missed 20 10");
    }
    let mut now = 0x20;
    for _ in 0..4 {
        s.run(format!("said {now:x} 1"));
        for later in [0xf, 0x10, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80] {
            if s.run(format!("missed {:x} 10", now + later)) == "1" {
                now += later;
                break;
            }
        }
    }
    for step in ["frame 1 200", "missed 200 10", "frame 5 201", "missed 201 10", "take 2"] {
        s.run(step);
    }
}

fn traffic(s: &mut Script, repair: &str) {
    s.run(format!("receiver {repair} fffffff0"));
    let mut now = 0;
    for _ in 0..120 {
        now += s.random.below(8);
        let few = s.random.below(12);
        let state = match s.random.below(8) {
            0 => s.run(format!("give {few:x} {now:x}")),
            1 => s.run(format!("take {:x}", few / 4)),
            2 => s.run(format!("said {now:x} {:x}", few / 6)),
            3 => s.run("say 10"),
            4 => s.run(format!("missed {now:x} 8")),
            _ => {
                // From a little before the window to a little behind what the buffers take.
                let seq = 0xffff_fff0_u32.wrapping_add((now / 6 + s.random.below(8)) as u32);
                s.run(format!("frame {:x} {now:x}", seq.wrapping_sub(3)))
            }
        };
        assert!(!state.is_empty(), "every step says something");
    }
}
