//! Vectors of a channel's sender.
use super::names::{LOSSES, REPAIRS, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::link::Repair;
use ayre_proto::link::send::{Ack, Loss, SendEffects, Sender, Transmission, Wait};

pub(crate) const HEADER: &str = "\
A channel of a link: the sender's machine (proto/src/link/send.rs, spec/85).
Numbers are hexadecimal, `-` is none.

sender REPAIR FIRST -> STATE                 nothing sent, no room
send AT PATH NUMBER -> SEQ STATE             a new frame, its path's transmission; or no-room
resend AT PATH NUMBER -> SEQ STATE           the lost one whose turn it is; or -
repeat AT PATH NUMBER -> SEQ STATE           the eldest in flight, once more; or -
ack ACK SACK LIMIT NACK HEARD -> EVENTS STATE         NACK: up to when the receiver has seen, or -
    HEARD: AT PATH of what it had heard last, or -
time NOW TIMEOUT OVERTAKEN -> EVENTS STATE   what is late; those overtaken have a time of their own
resume ACK SACK LIMIT FORGOTTEN -> EVENTS STATE       warm reset; 1 if the receiver has forgotten
deadline TIMEOUT OVERTAKEN -> AT             of the first frame in flight, or -
EVENTS in their order, or `-`: `+SEQ` has arrived, `=SEQ` is done with, and `overtaken:SEQ`,
`asked:SEQ`, `late:SEQ`, `resync:SEQ` are lost; or `malformed` in their place
STATE is OLDEST NEXT ROOM IN-FLIGHT LOST     LOST is the one to be sent again next, or -";

struct Channel {
    sender: Sender,
    events: Vec<String>,
}

struct Told<'a>(&'a mut Vec<String>);

impl SendEffects for Told<'_> {
    fn arrived(&mut self, seq: u32, _: Transmission) {
        self.0.push(format!("+{seq:x}"));
    }

    fn freed(&mut self, seq: u32) {
        self.0.push(format!("={seq:x}"));
    }

    fn lost(&mut self, seq: u32, _: Transmission, why: Loss) {
        self.0.push(format!("{}:{seq:x}", name(LOSSES, &why)));
    }
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Channel { sender: Sender::new(Repair::Selective, 0), events: vec![] })
}

fn transmission(inputs: &mut Fields<'_>) -> Transmission {
    let (at, path, number) = (inputs.number(), inputs.number(), inputs.number());
    Transmission { at, path, number, len: 0 }
}

fn wait(inputs: &mut Fields<'_>) -> Wait {
    Wait { timeout: inputs.number(), overtaken: inputs.number() }
}

impl Channel {
    fn state(&self) -> String {
        let Self { sender, .. } = self;
        let lost = sender.lost().map_or_else(|| "-".to_owned(), |seq| format!("{seq:x}"));
        let (oldest, next, room) = (sender.oldest(), sender.next(), sender.room());
        format!("{oldest:x} {next:x} {room:x} {:x} {lost}", sender.in_flight())
    }

    fn resend(&mut self, transmission: Transmission) -> String {
        let Some(seq) = self.sender.lost() else { return "-".to_owned() };
        self.sender.resend(transmission);
        format!("{seq:x}")
    }

    fn repeat(&mut self, transmission: Transmission) -> String {
        let Some((_, seq)) = self.sender.eldest() else { return "-".to_owned() };
        self.sender.repeat(seq, transmission);
        format!("{seq:x}")
    }

    fn events(&mut self, is_good: bool) -> String {
        let events = std::mem::take(&mut self.events);
        match (is_good, events.is_empty()) {
            (false, _) => "malformed".to_owned(),
            (true, true) => "-".to_owned(),
            (true, false) => events.join(","),
        }
    }
}

impl Machine for Channel {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let first = match step {
            "sender" => {
                self.sender = Sender::new(value(REPAIRS, inputs.text()), inputs.number());
                return self.state();
            }
            "send" => {
                let transmission = transmission(inputs);
                match self.sender.room() {
                    0 => "no-room".to_owned(),
                    _ => format!("{:x}", self.sender.send(transmission)),
                }
            }
            "resend" => self.resend(transmission(inputs)),
            "repeat" => self.repeat(transmission(inputs)),
            "ack" | "resume" => {
                let (ack, sack, limit) = (inputs.number(), inputs.number(), inputs.number());
                let mut said = Ack { ack, sack, limit, nack: None, heard: None };
                let Self { sender, events } = self;
                let done = if step == "resume" {
                    sender.resume(&said, inputs.number::<u8>() == 1, &mut Told(events))
                } else {
                    said.nack = inputs.maybe();
                    said.heard = inputs.maybe().map(|at| (inputs.number(), at));
                    sender.on_ack(&said, &mut Told(events))
                };
                self.events(done.is_ok())
            }
            "time" => {
                let Self { sender, events } = self;
                sender.on_time(inputs.number(), wait(inputs), &mut Told(events));
                self.events(true)
            }
            "deadline" => {
                let at = self.sender.deadline(wait(inputs));
                return at.map_or_else(|| "-".to_owned(), |at| format!("{at:x}"));
            }
            _ => panic!("{step} is no step of a sender"),
        };
        format!("{first} {}", self.state())
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("no credit, credit, the frames that it allows");
    for step in ["sender selective 10", "send 1 0 1", "ack 10 0 12 - -", "send 1 0 1", "send 2 0 2"]
    {
        s.run(step);
    }
    for step in
        ["send 3 0 3", "deadline 64 20", "ack 11 0 12 - -", "ack 12 0 52 - -", "deadline 64 20"]
    {
        s.run(step);
    }
    s.section("an older limit and an older acknowledgement change nothing");
    for step in ["ack 12 0 51 - -", "ack 11 0 12 - -", "ack 0 0 0 - -"] {
        s.run(step);
    }
    malformed(s);
    whole_window(s);
    repair(s, "selective");
    repair(s, "go-back-n");
    overtaken(s, "selective");
    overtaken(s, "go-back-n");
    s.section(
        "warm reset: what the receiver has forgotten is sent again, and what it says now holds",
    );
    resumed(s);
    s.section("numbers wrap");
    s.run("sender selective fffffffe");
    s.run("ack fffffffe 0 3e - -");
    for number in 1..=5 {
        s.run(format!("send {number:x} 0 {number:x}"));
    }
    for step in ["ack ffffffff 5 3e - -", "ack 1 2 41 - -", "ack 3 0 43 - -"] {
        s.run(step);
    }
    s.section("at random");
    for repair in ["selective", "go-back-n"] {
        traffic(s, repair);
    }
}

fn malformed(s: &mut Script) {
    s.section("what no correct peer says");
    for step in
        ["sender selective 0", "ack 0 0 81 - -", "ack 0 0 80 - -", "send 1 0 1", "send 2 0 2"]
    {
        s.run(step);
    }
    for step in
        ["ack 3 0 80 - -", "ack 0 2 80 - -", "ack 2 1 80 - -", "ack 1 0 82 - -", "ack 0 1 80 - -"]
    {
        s.run(step);
    }
}

fn whole_window(s: &mut Script) {
    s.section("a whole window, of which the first frame is lost");
    s.run("sender selective 0");
    s.run("ack 0 0 80 - -");
    for number in 1..=0x80 {
        s.run(format!("send {number:x} 0 {number:x}"));
    }
    for step in [
        "send 81 0 81",
        "ack 0 ffffffffffffffffffffffffffffffff 80 - -",
        "ack 0 7fffffffffffffffffffffffffffffff 80 - -",
        "resend 82 0 81",
        "ack 80 0 100 - -",
    ] {
        s.run(step);
    }
}

fn repair(s: &mut Script, repair: &str) {
    s.section(&format!("{repair}: overtaken by three of its path, asked for, late"));
    s.run(format!("sender {repair} 0"));
    s.run("ack 0 0 40 - -");
    for number in 1..=6 {
        let (path, number) = if number == 2 { (1, 1) } else { (0, number) };
        s.run(format!("send {:x} {path:x} {number:x}", 10 * number));
    }
    for step in [
        "ack 0 2 40 - -",
        "ack 0 a 40 - -",
        "ack 0 1a 40 - -",
        "resend 50 0 7",
        "ack 0 1a 40 50 -",
        "ack 0 1a 40 51 -",
        "resend 60 0 8",
        "resend 61 0 9",
        "time ff 100 100",
        "time 160 100 100",
        "ack 6 0 46 - -",
        "resend 70 0 a",
    ] {
        s.run(step);
    }
}

/// The newest transmission of a path tells of the others.
fn overtaken(s: &mut Script, repair: &str) {
    s.section(&format!(
        "{repair}: overtaken by one, and some time later; sent once more in flight"
    ));
    s.run(format!("sender {repair} 0"));
    s.run("ack 0 0 40 - -");
    for number in 1..=4 {
        s.run(format!("send {number:x}0 0 {number:x}"));
    }
    for step in [
        "ack 0 2 40 - 30 0",
        "deadline 100 28",
        "time 37 100 28",
        "time 38 100 28",
        "resend 38 0 5",
        "repeat 48 0 6",
        "repeat 49 0 7",
        "repeat 4a 0 8",
        // Word of earlier ones, of one by another path, and of a request for an earlier one.
        "ack 0 3 40 - 47 0",
        "ack 0 3 40 50 47 0",
        "ack 1 3 41 - 4a 1",
        "ack 4 0 44 - 4a 0",
        "repeat 50 0 9",
    ] {
        s.run(step);
    }
}

fn resumed(s: &mut Script) {
    s.run("sender selective 0");
    s.run("ack 0 0 40 - -");
    for number in 1..=6 {
        s.run(format!("send {number:x} 0 {number:x}"));
    }
    for step in [
        "ack 1 3 41 - -",
        "resume 7 0 47 1",
        "resume 1 4 41 1",
        "resend 10 0 7",
        "resume 0 3 41 1",
        "resume 2 2 42 0",
        "ack 6 0 46 - -",
        "resume 6 0 46 1",
    ] {
        s.run(step);
    }
}

fn traffic(s: &mut Script, repair: &str) {
    s.run(format!("sender {repair} 0"));
    s.run("ack 0 0 10 - -");
    let (mut now, mut numbers, mut limit) = (0, [0; 2], 0x10);
    for _ in 0..120 {
        now += s.random.below(0x20);
        let path = s.random.below(2);
        match s.random.below(8) {
            0..4 => {
                numbers[path as usize] += 1;
                let step = ["resend", "repeat", "send", "send", "send"];
                let step = step[s.random.below(5) as usize];
                s.run(format!("{step} {now:x} {path:x} {:x}", numbers[path as usize]));
            }
            4 | 5 => {
                // Near what would be true: the state is the last of what came out before.
                let ack = s.random.below(limit) >> s.random.below(3);
                let sack = s.random.word() & s.random.word() & s.random.below(0x40);
                limit += s.random.below(4);
                let nack = if s.random.below(4) == 0 { format!("{now:x}") } else { "-".to_owned() };
                let heard = match s.random.below(2) {
                    0 => "-".to_owned(),
                    _ => format!("{:x} {path:x}", now - s.random.below(now.min(0x40) + 1)),
                };
                s.run(format!("ack {ack:x} {sack:x} {limit:x} {nack} {heard}"));
            }
            6 => {
                s.run(format!("time {now:x} 80 30"));
            }
            _ => {
                s.run("deadline 80 30");
            }
        }
    }
}
