//! All ranks but rank 0 append the lines of files to one log in the memory of rank 0, at the same
//! time. They do it once with a deposit message for each line, and once with plain operations: a
//! fetch-and-add that claims the place, and a put.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/append_log [FILE...]
//! ```
//!
//! Without arguments it appends the contract, this repository's `spec/`. A line of a log is its
//! length in eight bytes and the text, filled up to eight. A deposit message does not wait, since
//! only the destination needs to know where the tail is. Plain operations wait for the tail with
//! every line. A sender that lies about a length, or dies between the two operations, spoils the
//! log for all.
mod insist;

use ayre::deposit::{AddressMode, Deposit, InletOptions, Program, Register, RemoteInlet, X};
use ayre::{PeerId, Port, PostError, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use insist::insist;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The tail of the plain log lies in front of it.
const TAIL: usize = 64;
/// How often each line is appended; less often in builds with debug assertions, whose figures are
/// none.
const ROUNDS: usize = if cfg!(debug_assertions) { 3 } else { 20 };
/// Longest text that a message has room for besides its length.
const TEXT_MAX: usize = 1000;
const INLET: u64 = 1;
const MEMORY: u64 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let lines = lines()?;
    let mut port = Port::join()?;
    let writers = port.size() - 1;
    if writers == 0 {
        return Err("start two ranks or more".into());
    }
    if port.rank() == 0 {
        keep(&mut port, &lines)?;
        println!("{} lines by {writers} writers, none lost, none torn", ROUNDS * lines.len());
        return Ok(());
    }
    let times = write(&mut port, &lines)?;
    if port.rank() == 1 {
        let rate = |time: Duration| (ROUNDS * lines.len()) as f64 / time.as_secs_f64() / 1e6;
        let [deposited, put] = times.map(rate);
        println!("a deposit message each:   {deposited:8.2} million a second");
        println!("fetch-and-add, then put:  {put:8.2} million a second");
    }
    Ok(())
}

/// Rank 0: hands out the two logs and checks them.
fn keep(port: &mut Port, lines: &[String]) -> Result<(), Box<dyn Error>> {
    let once: usize = lines.iter().map(|line| record(line).len()).sum();
    let log = TAIL + ROUNDS * once;
    let region = port.alloc(log, RegionOptions::new())?;
    let plain = port.alloc(log, RegionOptions::new())?;
    let depot = port.create_depot()?;
    let unused = Register::At(1);
    let append = Program::new().write(AddressMode::Indirect).then(X.advance());
    depot.store(0, &[append.store([Register::At(0), unused, unused])])?;
    let writers: Vec<_> = port.peers().filter(|peer| *peer != PeerId(0)).collect();
    let mut inlets = vec![];
    for peer in writers {
        let options = InletOptions::new().entries(0..1);
        inlets.push(port.share_inlet(peer, &depot, (&region, 0..log), &options, INLET)?);
        port.share(peer, &plain, 0..log, Rights::all(), MEMORY)?;
    }
    between_barriers(port, |_| Ok(()))?;
    check(&region, 0..depot.register(0) as usize, lines)?;
    between_barriers(port, |_| Ok(()))?;
    check(&plain, TAIL..TAIL + plain.load(0) as usize, lines)?;
    port.barrier()?;
    Ok(())
}

/// Appends a rank's share of the lines: every n-th one, of n ranks that write.
fn write(port: &mut Port, lines: &[String]) -> Result<[Duration; 2], Box<dyn Error>> {
    let inlet = port.accept_inlet(PeerId(0), INLET)?;
    let memory = port.accept_region(PeerId(0), MEMORY)?;
    let (rank, step) = (port.rank() - 1, port.size() - 1);
    let mine: Vec<_> = lines.iter().skip(rank).step_by(step).map(|line| record(line)).collect();
    let each = |work: &mut dyn FnMut(&[u8]) -> Result<(), PostError>| {
        (0..ROUNDS).try_for_each(|_| mine.iter().try_for_each(|record| work(record)))
    };
    let deposited =
        between_barriers(port, |port| each(&mut |record| deposit(port, &inlet, record)))?;
    let put = between_barriers(port, |port| each(&mut |record| put(port, &memory, record)))?;
    port.barrier()?;
    Ok([deposited, put])
}

fn deposit(port: &mut Port, inlet: &RemoteInlet, record: &[u8]) -> Result<(), PostError> {
    let message = Deposit::enter(0).data(record);
    insist(port, |port| port.deposit(inlet, &message, PostOptions::new()))?;
    Ok(())
}

fn put(port: &mut Port, memory: &RemoteRegion, record: &[u8]) -> Result<(), PostError> {
    let place = insist(port, |port| port.fetch_add(memory, 0, record.len() as u64))?;
    insist(port, |port| port.put(memory, TAIL as u64 + place, record, PostOptions::new()))?;
    Ok(())
}

/// Does a rank's work between two barriers; returns how long it took all ranks.
fn between_barriers(
    port: &mut Port,
    work: impl FnOnce(&mut Port) -> Result<(), PostError>,
) -> Result<Duration, Box<dyn Error>> {
    port.barrier()?;
    let start = Instant::now();
    work(port)?;
    port.flush(PeerId(0))?;
    port.barrier()?;
    Ok(start.elapsed())
}

fn record(line: &str) -> Vec<u8> {
    let mut record = (line.len() as u64).to_le_bytes().to_vec();
    record.extend_from_slice(line.as_bytes());
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// Every line is there as often as it was appended, in whatever order.
fn check(
    log: &Region,
    range: std::ops::Range<usize>,
    lines: &[String],
) -> Result<(), Box<dyn Error>> {
    let mut bytes = vec![0; range.len()];
    log.read(range.start, &mut bytes);
    let mut found = vec![];
    let mut rest = &bytes[..];
    while let Some((len, behind)) = rest.split_first_chunk() {
        let len = u64::from_le_bytes(*len) as usize;
        let text = behind.get(..len).ok_or("a line that leaves the log")?;
        found.push(std::str::from_utf8(text)?);
        rest = &behind[len.next_multiple_of(8)..];
    }
    let mut expected: Vec<_> = lines.iter().map(String::as_str).collect::<Vec<_>>().repeat(ROUNDS);
    found.sort_unstable();
    expected.sort_unstable();
    if found == expected { Ok(()) } else { Err("the log has other lines than the files".into()) }
}

/// The lines of the files named on the command line, else of `spec/`, long ones in parts.
fn lines() -> Result<Vec<String>, Box<dyn Error>> {
    let named: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let files = if named.is_empty() { contract()? } else { named };
    let mut lines = vec![];
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        for line in text.lines() {
            let mut part = String::new();
            for letter in line.chars() {
                if part.len() + letter.len_utf8() > TEXT_MAX {
                    lines.push(std::mem::take(&mut part));
                }
                part.push(letter);
            }
            lines.push(part);
        }
    }
    Ok(lines)
}

fn contract() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec");
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    Ok(files)
}
