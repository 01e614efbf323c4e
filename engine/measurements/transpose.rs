//! Transposes a matrix whose rows are spread over the ranks: with deposit messages that do not say
//! where they go, and with plain puts.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/transpose [ROUNDS]
//! ```
//!
//! The part of a column that a rank has is a run in a row of the result. Its message is the run and
//! nothing else. The destination has stored an instruction for each sender. It writes at a place of
//! its own, goes on by the length of a row, and notifies when the sender's last run is there.
//!
//! A put of the same run must say where it goes. So its sender has to know how the destination lays
//! out its rows, and can write any of them. It also has to say which put is the last one.
//!
//! Each run is one command either way. A put is cheaper, the more so where ranks share processors:
//! it runs no program, and takes no lock whose holder may have lost its processor. Strided puts
//! need no run to be put together, but go element by element.
mod insist;

use ayre::deposit::{
    AddressMode, Deposit, Depot, InletOptions, Program, Register, RemoteInlet, X, Y, Z,
};
use ayre::error::Status;
use ayre::memory::Strided;
use ayre::{Port, PostError, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use insist::insist;
use std::error::Error;
use std::time::{Duration, Instant};

/// Rows of each rank.
const ROWS: usize = 128;
/// Bytes of the part of a column that a rank has.
const RUN: usize = 8 * ROWS;
/// How often each way is taken by default; figures to be believed take more.
const ROUNDS: u64 = 2;
const NAME: u64 = 1;

/// A register: the length of a row, by which a place goes on.
const STRIDE: u8 = 0;
/// A register: the place of a sender that is done.
const END: u8 = 1;
/// The first of the registers of places, by sender.
const PLACES: u8 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |number| number.parse())?;
    let mut port = Port::join()?;
    let size = port.size();
    let result = port.alloc(ROWS * row(size), RegionOptions::new())?;
    let depot = port.create_depot()?;
    let ways = open(&mut port, &result, &depot)?;
    let here = Here { result, depot };
    let kinds: [(&str, Send); 3] = [
        ("a deposit message a run:", deposit_runs),
        ("a put a run:", put_runs),
        ("a strided put a row:", put_rows),
    ];
    for (name, send) in kinds {
        let time = transpose(&mut port, &here, &ways, rounds, send)?.div_f64(rounds as f64);
        if port.rank() == 0 {
            let rate = (size * ROWS * row(size)) as f64 / time.as_secs_f64() / 1e9;
            println!("{name:25} {:9.1} us, {rate:6.2} GB/s", time.as_secs_f64() * 1e6);
        }
    }
    if port.rank() == 0 {
        println!("{0} x {0} numbers transposed {rounds} times each way, none astray", size * ROWS);
    }
    Ok(())
}

/// Bytes of a row of the matrix, and of the result.
fn row(size: usize) -> usize {
    size * RUN
}

/// The part of the result that a rank has, and the depot that puts it there.
struct Here {
    result: Region,
    depot: Depot,
}

/// Both ways into the result of a rank.
struct Way {
    inlet: RemoteInlet,
    memory: RemoteRegion,
}

type Send = fn(&mut Port, &[Way], &Rows) -> Result<(), PostError>;

/// Stores an instruction for each sender, hands out the ways in, and takes those of the others.
fn open(port: &mut Port, result: &Region, depot: &Depot) -> Result<Vec<Way>, Box<dyn Error>> {
    let stride = row(port.size());
    depot.set_register(STRIDE, stride as u64)?;
    depot.set_register(END, (ROWS * stride) as u64)?;
    let program = Program::new().write(AddressMode::Indirect).then(X.add(Y)).notify_if(X.ge(Z));
    let peers = (0..port.size()).map(|rank| port.peer(rank).ok_or("a rank of the job"));
    let peers = peers.collect::<Result<Vec<_>, _>>()?;
    for (sender, peer) in (0..).zip(&peers) {
        let registers = [PLACES + sender, STRIDE, END].map(Register::At);
        depot.store(sender, &[program.store(registers)])?;
        let entry = u16::from(sender);
        let options = InletOptions::new().entries(entry..entry + 1).longest(RUN as u16);
        port.share_inlet(*peer, depot, (result, 0..result.len()), &options, NAME)?;
        port.share(*peer, result, 0..result.len(), Rights::WRITE | Rights::NOTIFY, NAME)?;
    }
    let accept = |peer| {
        let inlet = port.accept_inlet(peer, NAME)?;
        Ok(Way { inlet, memory: port.accept_region(peer, NAME)? })
    };
    peers.into_iter().map(accept).collect()
}

/// Other numbers in each round; how long all rounds took.
fn transpose(
    port: &mut Port,
    here: &Here,
    ways: &[Way],
    rounds: u64,
    send: Send,
) -> Result<Duration, Box<dyn Error>> {
    let (rank, size) = (port.rank(), port.size());
    let mut time = Duration::ZERO;
    for round in 0..rounds {
        let rows = Rows::new(rank, size, round);
        here.result.write(0, &vec![0xff; here.result.len()]);
        for (sender, place) in (PLACES..).zip((0..size).map(|sender| sender * RUN)) {
            here.depot.set_register(sender, place as u64)?;
        }
        port.barrier()?;
        let start = Instant::now();
        send(port, ways, &rows)?;
        for way in ways {
            port.flush(way.inlet.peer())?;
        }
        // One from each sender, when its part is complete.
        for _ in 0..size {
            assert_eq!(port.wait_notification(None)?.status, Status::Ok);
        }
        port.barrier()?;
        time += start.elapsed();
        check(&here.result, (rank, size, round));
    }
    Ok(time)
}

fn deposit_runs(port: &mut Port, ways: &[Way], rows: &Rows) -> Result<(), PostError> {
    rows.each_run(|to, _, run| {
        let message = Deposit::enter(0).data(run);
        insist(port, |port| port.deposit(&ways[to].inlet, &message, PostOptions::new())).map(drop)
    })
}

fn put_runs(port: &mut Port, ways: &[Way], rows: &Rows) -> Result<(), PostError> {
    rows.each_run(|to, row_there, run| {
        let place = row_there * row(rows.size) + rows.rank * RUN;
        let options = tells_if(row_there == ROWS - 1);
        insist(port, |port| port.put(&ways[to].memory, place as u64, run, options)).map(drop)
    })
}

fn put_rows(port: &mut Port, ways: &[Way], rows: &Rows) -> Result<(), PostError> {
    let bytes: Vec<u8> = rows.numbers.iter().copied().flat_map(f64::to_le_bytes).collect();
    let shape = Strided {
        row_len: 8,
        rows: ROWS as u64,
        local_stride: 8,
        remote_stride: row(rows.size) as u64,
    };
    for (number, row) in bytes.chunks(row(rows.size)).enumerate() {
        for to in rows.others_first() {
            let (from, place) = (&row[to * RUN..][..RUN], rows.rank * RUN + 8 * number);
            let options = tells_if(number == ROWS - 1);
            insist(port, |port| {
                port.put_strided(&ways[to].memory, place as u64, from, shape, options)
            })?;
        }
    }
    Ok(())
}

fn tells_if(is_last: bool) -> PostOptions {
    if is_last { PostOptions::new().completer() } else { PostOptions::new() }
}

/// The part of the matrix that a rank has.
struct Rows {
    rank: usize,
    size: usize,
    numbers: Vec<f64>,
}

impl Rows {
    fn new(rank: usize, size: usize, round: u64) -> Self {
        let width = size * ROWS;
        let places = (0..ROWS * width).map(|at| (rank * ROWS + at / width, at % width));
        let numbers = places.map(|(row, column)| number(row, column, round)).collect();
        Self { rank, size, numbers }
    }

    /// All ranks, each beginning with another one, so that not all send to the same.
    fn others_first(&self) -> impl Iterator<Item = usize> {
        let (rank, size) = (self.rank, self.size);
        (1..=size).map(move |distance| (rank + distance) % size)
    }

    /// Puts runs together, and hands each out: for which rank, for which of its rows.
    fn each_run(
        &self,
        mut send: impl FnMut(usize, usize, &[u8; RUN]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (width, mut run) = (self.size * ROWS, [0; RUN]);
        for row_there in 0..ROWS {
            for to in self.others_first() {
                let column = self.numbers[to * ROWS + row_there..].iter().step_by(width);
                for (bytes, number) in run.as_chunks_mut().0.iter_mut().zip(column) {
                    *bytes = number.to_le_bytes();
                }
                send(to, row_there, &run)?;
            }
        }
        Ok(())
    }
}

/// Numbers that nothing but their place tells.
fn number(row: usize, column: usize, round: u64) -> f64 {
    let seed = (row as u64) << 40 | (column as u64) << 16 | round;
    let mixed = (seed ^ seed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 11) as f64
}

/// Every number has come to where the other one's row and column are exchanged.
fn check(result: &Region, (rank, size, round): (usize, usize, u64)) {
    let mut bytes = vec![0; result.len()];
    result.read(0, &mut bytes);
    let width = size * ROWS;
    for (at, bytes) in bytes.as_chunks().0.iter().enumerate() {
        let (row, column) = (rank * ROWS + at / width, at % width);
        assert_eq!(f64::from_le_bytes(*bytes), number(column, row, round), "row {row}, {column}");
    }
}
