//! The fuzz targets without a fuzzer: the same scripts, from random bytes.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/scripts.rs"]
mod scripts;
#[path = "hostile/world.rs"]
mod world;

use attacker::Random;
use ayre::Mode;
use scripts::Stage;
use world::seeds;

/// Bytes among which small numbers are frequent, as they are in meaningful scripts.
fn any_bytes(random: &mut Random) -> Vec<u8> {
    let len = random.below(400);
    let byte = |random: &mut Random| match random.below(4) {
        0 => random.word() as u8,
        1 => random.below(8) as u8,
        2 => random.pick(&[0, 1, 254, 255]),
        _ => random.below(64) as u8,
    };
    (0..len).map(|_| byte(random)).collect()
}

fn play(mode: Mode, name: &'static str, script: fn(&mut Stage, &[u8])) {
    let mut stage = Stage::new(mode, name);
    for (seed, mut random) in seeds(200) {
        println!("seed {seed}");
        script(&mut stage, &any_bytes(&mut random));
    }
}

// spec: ERR-7, CAP-2
#[test]
fn any_commands() {
    play(Mode::Mediated, "any-commands", scripts::commands);
}

// spec: ERR-7, CAP-7, DEP-3, DEP-5, DEP-15, DEP-17
#[test]
fn any_deposits() {
    play(Mode::Mediated, "any-deposits", scripts::deposits);
}

// spec: ERR-7
#[test]
fn any_responses() {
    play(Mode::Mediated, "any-responses", scripts::responses);
}

// spec: ERR-7
#[test]
fn any_lines() {
    play(Mode::Direct, "any-lines", scripts::lines);
}

// spec: ERR-7
#[test]
fn any_packets() {
    play(Mode::Direct, "any-packets", scripts::control);
    play(Mode::Mediated, "any-packets", scripts::control);
}
