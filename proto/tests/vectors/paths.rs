//! Vectors of the paths to a peer.
use super::script::{Fields, Machine, Script};
use ayre_proto::link::frame::PATHS_MAX;
use ayre_proto::link::paths::{Config, Counters, PathId, Paths};

pub(crate) const HEADER: &str = "\
The paths to a peer (proto/src/link/paths.rs, spec/86), configured as for hosts of one rack: a path
dies after 8 losses and 3 timeouts, is probed first 1 ms and at last 1 s apart, and returns with the
third answer. Numbers are hexadecimal, times in nanoseconds, `-` is none.

paths -> STATES                      none is there
add -> PATH STATES                   or - if there are as many as there can be
remove PATH NOW -> STATES
choose NOW -> PATH STATES            which takes the next frame
delivered PATH -> STATES             a frame has arrived on it
lost PATH NOW TIMEOUT -> STATES      a frame was lost on it
probe NOW -> PATH STATES             which is to be probed now, or -
answered PATH NOW -> STATES          a probe's answer has come
next -> AT                           when the next probe is due, or -
counters PATH -> SENT DELIVERED LOST DEATHS RETURNS
STATES has one for each place: live, suspect, dead or -";

struct All(Paths);

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(All(Paths::new(Config::RACK)))
}

fn path(inputs: &mut Fields<'_>) -> PathId {
    PathId::new(inputs.number()).expect("a place")
}

fn named(path: Option<PathId>) -> String {
    path.map_or_else(|| "-".to_owned(), |path| format!("{:x}", path.number()))
}

impl All {
    fn states(&self) -> String {
        let state = |place| {
            let id = PathId::new(place).expect("a place");
            let Self(paths) = self;
            match (paths.counters(id).is_some(), paths.is_live(id), paths.is_suspect(id)) {
                (false, ..) => "-",
                (true, false, _) => "dead",
                (true, true, true) => "suspect",
                (true, true, false) => "live",
            }
        };
        (0..PATHS_MAX).map(state).collect::<Vec<_>>().join(" ")
    }
}

impl Machine for All {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let Self(paths) = self;
        let which = match step {
            "paths" => {
                *paths = Paths::new(Config::RACK);
                None
            }
            "add" => Some(paths.add()),
            "remove" => {
                paths.remove(path(inputs), inputs.number());
                None
            }
            "choose" => Some(paths.choose(inputs.number())),
            "delivered" => {
                paths.on_delivered(path(inputs));
                None
            }
            "lost" => {
                paths.on_lost(path(inputs), inputs.number(), inputs.number());
                None
            }
            "probe" => Some(paths.probe_due(inputs.number())),
            "answered" => {
                paths.on_probe_answered(path(inputs), inputs.number());
                None
            }
            "next" => {
                let next = paths.next_probe();
                return next.map_or_else(|| "-".to_owned(), |at| format!("{at:x}"));
            }
            "counters" => {
                let Some(counters) = paths.counters(path(inputs)) else { return "-".to_owned() };
                let Counters { sent, delivered, lost, deaths, returns } = counters;
                return format!("{sent:x} {delivered:x} {lost:x} {deaths:x} {returns:x}");
            }
            _ => panic!("{step} is no step of paths"),
        };
        match which {
            Some(which) => format!("{} {}", named(which), self.states()),
            None => self.states(),
        }
    }
}

/// Nanoseconds.
const MILLISECOND: u64 = 1_000_000;
const TIMEOUT: u64 = 0x40000;

pub(crate) fn script(s: &mut Script) {
    s.section("none, as many as there can be, each in turn");
    s.run("paths");
    s.run("choose 0");
    for _ in 0..5 {
        s.run("add");
    }
    for now in 0..5 {
        s.run(format!("choose {now:x}"));
    }
    s.run("remove 1 5");
    for now in 5..9 {
        s.run(format!("choose {now:x}"));
    }
    s.run("add");
    death(s);
    s.section("the last one is a suspect until it delivers, and dies once another one lives");
    for step in ["paths", "add", "choose 0"] {
        s.run(step);
    }
    losses(s, 0, 4 * TIMEOUT);
    for step in ["delivered 0", "choose 200000"] {
        s.run(step);
    }
    losses(s, 0, 0x200000 + 4 * TIMEOUT);
    s.run("add");
    s.run(format!("lost 0 400000 {TIMEOUT:x}"));
    s.section("the last live one is removed: all others get another chance");
    for step in ["remove 1 500000", "next", "choose 500001", "counters 0", "counters 1"] {
        s.run(step);
    }
    s.section("at random");
    traffic(s);
}

fn losses(s: &mut Script, path: u8, now: u64) {
    for _ in 0..8 {
        s.run(format!("lost {path:x} {now:x} {TIMEOUT:x}"));
    }
}

fn death(s: &mut Script) {
    s.section("eight losses and three timeouts: dead, probed, back with the third answer in a row");
    for step in ["paths", "add", "add", "choose 0", "choose 1"] {
        s.run(step);
    }
    losses(s, 1, 3 * TIMEOUT);
    s.run("next");
    let now = 4 * TIMEOUT;
    for step in [format!("lost 1 {now:x} {TIMEOUT:x}"), "next".to_owned(), "choose 3".to_owned()] {
        s.run(step);
    }
    let mut now = now;
    for is_answered in [false, false, true, true, false, true, true, true] {
        now = u64::from_str_radix(&s.run("next"), 16).expect("it is dead");
        s.run(format!("probe {:x}", now - 1));
        s.run(format!("probe {now:x}"));
        s.run(format!("probe {now:x}"));
        if is_answered {
            s.run(format!("answered 1 {:x}", now + 20));
            s.run(format!("answered 1 {:x}", now + 21));
        }
    }
    s.run("next");
    s.run("counters 1");
    s.section("it dies again soon: probed as if it had not returned");
    s.run(format!("choose {now:x}"));
    s.run(format!("choose {now:x}"));
    losses(s, 1, now + MILLISECOND);
    s.run("next");
}

fn traffic(s: &mut Script) {
    s.run("paths");
    for _ in 0..3 {
        s.run("add");
    }
    let mut now = 0;
    for _ in 0..150 {
        now += s.random.below(MILLISECOND);
        let path = s.random.below(4);
        match s.random.below(10) {
            0..3 => s.run(format!("choose {now:x}")),
            3 => s.run(format!("delivered {path:x}")),
            4..7 => s.run(format!("lost {:x} {now:x} {TIMEOUT:x}", path / 2)),
            7 => s.run(format!("probe {now:x}")),
            8 => s.run(format!("answered {path:x} {now:x}")),
            _ => s.run("next"),
        };
    }
}
