//! The paths to a peer, against a list of what has happened on each of them.
use ayre_proto::link::frame;
use ayre_proto::link::paths::{Config, Counters, PathId, Paths};
use proptest::prelude::*;

const PATHS_MAX: usize = frame::PATHS_MAX as usize;
const CONFIG: Config =
    Config { losses: 8, timeouts: 3, probe_first: 1_000, probe_max: 16_000, answers: 3 };
const TIMEOUT: u64 = 100;

fn paths(number: usize) -> (Paths, Vec<PathId>) {
    let mut paths = Paths::new(CONFIG);
    let ids = (0..number).map(|_| paths.add().expect("room")).collect();
    (paths, ids)
}

/// Sends a frame on every path and loses those on `id` until it dies; says when.
fn kill(paths: &mut Paths, id: PathId, mut now: u64) -> u64 {
    while paths.is_live(id) {
        now += TIMEOUT;
        for _ in 0..paths.live() {
            match paths.choose(now) {
                Some(chosen) if chosen == id => paths.on_lost(id, now, TIMEOUT),
                Some(other) => paths.on_delivered(other),
                None => panic!("there are live paths"),
            }
        }
    }
    now
}

/// Answers all probes of `id` until it returns; says when.
fn revive(paths: &mut Paths, id: PathId, mut now: u64) -> u64 {
    while !paths.is_live(id) {
        now = now.max(paths.next_probe().expect("a dead path is probed"));
        assert_eq!(paths.probe_due(now), Some(id));
        assert_eq!(paths.probe_due(now), None, "once");
        paths.on_probe_answered(id, now + 10);
    }
    now + 10
}

// spec: PATH-1, PATH-9
#[test]
fn there_are_at_most_four_paths() {
    let (mut paths, ids) = paths(PATHS_MAX);
    assert!(paths.add().is_none() && paths.live() == 4);
    let numbers: Vec<_> = ids.iter().map(|id| id.number()).collect();
    assert_eq!(numbers, [0, 1, 2, 3], "as frames name them");
    assert_eq!((PathId::new(3), PathId::new(4)), (Some(ids[3]), None));
    paths.remove(ids[2], 0);
    assert!(paths.live() == 3 && paths.counters(ids[2]).is_none());
    assert_eq!(paths.add(), Some(ids[2]), "in the same place");
    ids.iter().for_each(|id| paths.remove(*id, 0));
    assert_eq!(
        (paths.choose(0), paths.probe_due(u64::MAX), paths.next_probe()),
        (None, None, None)
    );
}

// spec: PATH-2
#[test]
fn frames_are_dealt_out_evenly() {
    for number in 1..=PATHS_MAX {
        let (mut paths, ids) = paths(number);
        for _ in 0..1_000 * number {
            paths.choose(0);
        }
        for id in &ids {
            assert_eq!(paths.counters(*id).map(|counters| counters.sent), Some(1_000));
        }
        let in_turn: Vec<_> = (0..number).filter_map(|_| paths.choose(0)).collect();
        assert_eq!(in_turn, ids);
    }
}

// spec: PATH-3, PATH-4, PATH-10
#[test]
fn a_dead_path_takes_no_frames() {
    let (mut paths, ids) = paths(3);
    let now = kill(&mut paths, ids[1], 0);
    assert_eq!(now, 8 * TIMEOUT, "eight losses");
    for _ in 0..100 {
        assert!(paths.choose(now).is_some_and(|chosen| chosen != ids[1]));
    }
    // What comes late is counted and brings nothing back.
    paths.on_delivered(ids[1]);
    paths.on_lost(ids[1], now, TIMEOUT);
    let counters = paths.counters(ids[1]);
    let want = Counters { sent: 8, delivered: 1, lost: 9, deaths: 1, returns: 0 };
    assert!(counters == Some(want) && !paths.is_live(ids[1]));
}

/// Eight losses at once are a full queue, and a long silence may be that of the program.
// spec: PATH-3
#[test]
fn a_path_dies_of_losses_and_silence_only_together() {
    let (mut paths, ids) = paths(2);
    let lose = |paths: &mut Paths, now| paths.on_lost(ids[0], now, TIMEOUT);
    paths.choose(5_000_000);
    for _ in 0..100 {
        lose(&mut paths, 5_000_000 + 3 * TIMEOUT);
    }
    assert!(paths.is_live(ids[0]), "not longer than three timeouts");
    paths.on_delivered(ids[0]);
    for _ in 0..7 {
        lose(&mut paths, 6_000_000);
        lose(&mut paths, 7_000_000);
        assert!(paths.is_live(ids[0]));
        paths.on_delivered(ids[0]);
    }
    (0..7).for_each(|_| lose(&mut paths, 8_000_000));
    assert!(paths.is_live(ids[0]));
    lose(&mut paths, 8_000_000 + 3 * TIMEOUT + 1);
    assert!(!paths.is_live(ids[0]));
}

// spec: PATH-5
#[test]
fn the_last_path_is_a_suspect_until_it_delivers() {
    let (mut paths, ids) = paths(2);
    let now = kill(&mut paths, ids[1], 0);
    for step in 0..100 {
        assert_eq!(paths.choose(now + step * TIMEOUT), Some(ids[0]));
        paths.on_lost(ids[0], now + step * TIMEOUT, TIMEOUT);
        assert_eq!(paths.is_suspect(ids[0]), step >= 7);
    }
    paths.on_delivered(ids[0]);
    assert!(!paths.is_suspect(ids[0]));
    // A suspect dies as soon as there is something better.
    let now = kill_last(&mut paths, ids[0], now + 100 * TIMEOUT);
    let now = revive(&mut paths, ids[1], now);
    assert!(paths.is_suspect(ids[0]));
    paths.on_lost(ids[0], now, TIMEOUT);
    assert!(!paths.is_live(ids[0]) && paths.is_live(ids[1]));
}

fn kill_last(paths: &mut Paths, id: PathId, mut now: u64) -> u64 {
    while !paths.is_suspect(id) {
        now += TIMEOUT;
        assert_eq!(paths.choose(now), Some(id));
        paths.on_lost(id, now, TIMEOUT);
    }
    now
}

// spec: PATH-5, PATH-9
#[test]
fn when_the_last_live_path_goes_the_dead_are_tried_again() {
    let (mut paths, ids) = paths(3);
    let now = kill(&mut paths, ids[0], 0);
    let now = kill(&mut paths, ids[1], now);
    paths.remove(ids[2], now);
    assert!(paths.is_live(ids[0]) && paths.is_live(ids[1]) && paths.live() == 2);
    assert_eq!(paths.counters(ids[0]).map(|counters| counters.returns), Some(1));
    kill(&mut paths, ids[0], now);
    assert_eq!(paths.live(), 1);
}

// spec: PATH-6
#[test]
fn probes_come_further_and_further_apart() {
    let (mut paths, ids) = paths(2);
    let mut last = kill(&mut paths, ids[0], 0);
    for interval in [1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000] {
        assert_eq!(paths.next_probe(), Some(last + interval));
        assert_eq!(paths.probe_due(last + interval - 1), None);
        last += interval;
        assert_eq!(paths.probe_due(last), Some(ids[0]));
        let interval = paths.next_probe().map(|next| next - last);
        assert!(interval <= Some(16_000));
    }
}

// spec: PATH-7
#[test]
fn a_path_returns_after_three_answers_in_a_row() {
    let (mut paths, ids) = paths(2);
    kill(&mut paths, ids[0], 0);
    paths.on_probe_answered(ids[0], 900);
    for is_answered in [true, true, false, true, true, false, false, true, true, true] {
        assert!(!paths.is_live(ids[0]));
        let now = paths.next_probe().expect("a dead path is probed");
        assert_eq!(paths.probe_due(now), Some(ids[0]));
        let answers = if is_answered { 5 } else { 0 };
        (0..answers).for_each(|_| paths.on_probe_answered(ids[0], now + 10));
    }
    assert!(paths.is_live(ids[0]) && paths.next_probe().is_none());
    let chosen: Vec<_> = (0..2).filter_map(|_| paths.choose(1 << 20)).collect();
    assert!(chosen.contains(&ids[0]));
}

/// Each time it returns it costs as many losses as a path has before it dies; so it returns ever
/// later. One that has stood long is probed soon again.
// spec: PATH-8
#[test]
fn a_flapping_path_returns_ever_more_rarely() {
    let (mut paths, ids) = paths(2);
    let mut now = 0;
    let mut away = Vec::new();
    for _ in 0..7 {
        let death = kill(&mut paths, ids[0], now);
        now = revive(&mut paths, ids[0], death);
        away.push(now - death);
    }
    let want = [1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000];
    assert_eq!(away, want.map(|interval| 3 * interval + 10));
    let counters = paths.counters(ids[0]).expect("it is there");
    assert_eq!((counters.deaths, counters.returns, counters.lost), (7, 7, 7 * 8));
    let death = kill(&mut paths, ids[0], now + CONFIG.probe_max);
    assert_eq!(revive(&mut paths, ids[0], death) - death, 3_010);
}

#[derive(Clone, Debug)]
enum Step {
    Add,
    Remove(usize),
    Choose,
    Delivered(usize),
    Lost(usize, u32),
    ProbeDue,
    Answered(usize),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let place = || 0..PATHS_MAX;
    let step = prop_oneof![
        1 => Just(Step::Add),
        1 => place().prop_map(Step::Remove),
        8 => Just(Step::Choose),
        3 => place().prop_map(Step::Delivered),
        6 => (place(), 1..12u32).prop_map(|(place, times)| Step::Lost(place, times)),
        6 => Just(Step::ProbeDue),
        6 => place().prop_map(Step::Answered),
    ];
    prop::collection::vec((prop_oneof![0..300u64, 0..20_000u64], step), 1..150)
}

/// The state that a path must have, computed from its events.
#[derive(Clone, Debug)]
struct Model {
    is_live: bool,
    losses: u32,
    silent_since: Option<u64>,
    /// Probes since the death, each with whether it was answered.
    probes: Vec<bool>,
    counters: Counters,
}

const FRESH: Model = Model {
    is_live: true,
    losses: 0,
    silent_since: None,
    probes: Vec::new(),
    counters: Counters { sent: 0, delivered: 0, lost: 0, deaths: 0, returns: 0 },
};

impl Model {
    fn set(&mut self, is_live: bool) {
        *self = Self { is_live, counters: self.counters, ..FRESH };
        self.counters.deaths += u64::from(!is_live);
        self.counters.returns += u64::from(is_live);
    }

    fn lose(&mut self, now: u64, is_last: bool) {
        self.counters.lost += 1;
        self.losses += 1;
        let silence = now - *self.silent_since.get_or_insert(now);
        if self.is_live && !is_last && self.losses >= 8 && silence > 3 * TIMEOUT {
            self.set(false);
        }
    }

    fn answer(&mut self) {
        if let Some(last) = self.probes.last_mut().filter(|_| !self.is_live) {
            *last = true;
            if self.probes.ends_with(&[true; 3]) {
                self.set(true);
            }
        }
    }
}

type Models = [Option<Model>; PATHS_MAX];

fn live(models: &Models) -> usize {
    models.iter().flatten().filter(|model| model.is_live).count()
}

fn apply(paths: &mut Paths, models: &mut Models, ids: &[PathId], now: u64, step: Step) {
    let is_last = live(models) == 1;
    match step {
        Step::Add => match paths.add() {
            Some(id) => assert!(models[id.number() as usize].replace(FRESH).is_none()),
            None => assert!(models.iter().all(Option::is_some)),
        },
        Step::Remove(place) => {
            paths.remove(ids[place], now);
            models[place] = None;
            if live(models) == 0 {
                models.iter_mut().flatten().for_each(|model| model.set(true));
            }
        }
        Step::Choose => {
            let Some(id) = paths.choose(now) else { return assert_eq!(live(models), 0) };
            let model = models[id.number() as usize].as_mut().expect("it is there");
            assert!(model.is_live);
            model.counters.sent += 1;
            model.silent_since.get_or_insert(now);
        }
        Step::Delivered(place) => {
            paths.on_delivered(ids[place]);
            if let Some(model) = &mut models[place] {
                model.counters.delivered += 1;
                (model.losses, model.silent_since) = (0, None);
            }
        }
        Step::Lost(place, times) => (0..times).for_each(|_| {
            paths.on_lost(ids[place], now, TIMEOUT);
            if let Some(model) = &mut models[place] {
                model.lose(now, is_last);
            }
        }),
        Step::ProbeDue => {
            if let Some(id) = paths.probe_due(now) {
                let model = models[id.number() as usize].as_mut().expect("it is there");
                assert!(!model.is_live);
                model.probes.push(false);
            }
        }
        Step::Answered(place) => {
            paths.on_probe_answered(ids[place], now);
            if let Some(model) = &mut models[place] {
                model.answer();
            }
        }
    }
}

proptest! {
    // spec: PATH-1, PATH-3, PATH-4, PATH-5, PATH-7, PATH-9, PATH-10
    #[test]
    fn paths_fail_and_return_as_their_events_prescribe(steps in steps()) {
        let (mut paths, ids) = paths(PATHS_MAX);
        let mut models: Models = [const { Some(FRESH) }; PATHS_MAX];
        let mut now = 0;
        for (after, step) in steps {
            now += after;
            apply(&mut paths, &mut models, &ids, now, step);
            for (id, model) in ids.iter().zip(&models) {
                let is_live = model.as_ref().is_some_and(|model| model.is_live);
                prop_assert_eq!(paths.is_live(*id), is_live);
                let counters = model.as_ref().map(|model| model.counters);
                prop_assert_eq!(paths.counters(*id), counters);
            }
            prop_assert!(live(&models) > 0 || models.iter().all(Option::is_none));
        }
    }

    /// From any state on, as long as the paths stay as they are.
    // spec: PATH-2
    #[test]
    fn frames_are_dealt_out_evenly_whatever_was_before(steps in steps(), times in 1..20usize) {
        let (mut paths, ids) = paths(PATHS_MAX);
        let mut models: Models = [const { Some(FRESH) }; PATHS_MAX];
        let mut now = 0;
        for (after, step) in steps {
            now += after;
            apply(&mut paths, &mut models, &ids, now, step);
        }
        let sent = |paths: &Paths, id| paths.counters(id).map(|counters| counters.sent);
        let before: Vec<_> = ids.iter().map(|id| sent(&paths, *id)).collect();
        (0..times * paths.live()).for_each(|_| {
            paths.choose(now);
        });
        for (id, before) in ids.iter().zip(before) {
            let more = if paths.is_live(*id) { times as u64 } else { 0 };
            prop_assert_eq!(sent(&paths, *id), before.map(|before| before + more));
        }
    }
}

#[test]
#[should_panic(expected = "a path changes its state for a reason")]
fn a_path_that_returns_without_answers_is_our_own_mistake() {
    Paths::new(Config { answers: 0, ..CONFIG });
}
