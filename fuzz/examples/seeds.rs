//! Writes what the fuzz targets of the wire begin with: the golden vectors, each as a script that
//! sends it, into `corpus/`. The one of schedules begins with the usual ones.
use ayre_sim::goal::Pattern;
use std::fs;
use std::io::Result;
use std::path::Path;

/// Scripts begin with a byte of choices, and these are all of them.
const CHOICES: u8 = 8;

fn main() -> Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(home.join("../vectors").join(name));
    let frames = parsed(&read("frame.txt")?);
    let openings = parsed(&read("opening.txt")?);
    write(&home.join("corpus/frames"), frames.iter().cloned())?;
    let all = frames.iter().chain(&openings);
    let scripts = all.flat_map(|bytes| (0..CHOICES).map(|choices| sending(choices, bytes)));
    write(&home.join("corpus/datagrams"), scripts)?;
    let scripts =
        openings.iter().flat_map(|bytes| (0..CHOICES).map(|choices| opening(choices, bytes)));
    write(&home.join("corpus/set_ups"), scripts)?;
    // What is written there as a header is here what a script chooses by.
    let scripts =
        frames.iter().flat_map(|bytes| (0..CHOICES).map(|choices| choosing(choices, bytes)));
    write(&home.join("corpus/endings"), scripts)?;
    write(&home.join("corpus/goal"), schedules().into_iter())
}

/// The usual schedules of four ranks.
fn schedules() -> Vec<Vec<u8>> {
    let halo = Pattern::Halo { sides: vec![2, 2] };
    let patterns = [Pattern::Dissemination, Pattern::Broadcast, Pattern::Ring, halo];
    let text = |pattern: &Pattern| {
        let mut text = String::new();
        pattern.write(4, 8, &mut text).ok().map(|()| text.into_bytes())
    };
    patterns.iter().filter_map(text).collect()
}

/// The byte strings that the vectors give to be parsed.
fn parsed(text: &str) -> Vec<Vec<u8>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("parse ")?.split(' ').next());
    let bytes = |digits: &str| {
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
    };
    lines.filter_map(bytes).collect()
}

/// A script that sends the bytes as a datagram.
fn sending(choices: u8, bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u16).to_le_bytes();
    [&[choices, 255, 0, 1, len[0], len[1]], bytes, &[1, 5]].concat()
}

/// A script that sends an open with these bytes as what it says: see `Attack::set_up`.
fn opening(choices: u8, bytes: &[u8]) -> Vec<u8> {
    let (set_up, len) = ([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0], bytes.len() as u8);
    [&[choices, 255, 2, 1], &set_up[..], &[len, 0], bytes, &[1, 0, 1, 5]].concat()
}

/// A script whose choices are the bytes.
fn choosing(choices: u8, bytes: &[u8]) -> Vec<u8> {
    [&[choices, 255], bytes].concat()
}

fn write(folder: &Path, scripts: impl Iterator<Item = Vec<u8>>) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (number, script) in scripts.enumerate() {
        fs::write(folder.join(format!("vector-{number}")), script)?;
    }
    Ok(())
}
