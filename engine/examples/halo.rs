//! Heat in a rod that is spread over the ranks: after each step neighbours put their outermost
//! cells into each other's halo, and the notification says that a halo is complete.
//!
//! A halo has two slots, for even and for odd steps. A neighbour writes the slot of a step again
//! two steps later, and by then it has our cells of the step in between, which we put after we had
//! used the slot. So nobody needs to say that a halo may be overwritten.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/halo
//! ```
use ayre::{Port, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use std::error::Error;

const CELLS: usize = 1000;
const STEPS: usize = 500;
const LEFT: usize = 0;
const RIGHT: usize = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let halo = port.alloc(4 * 8, RegionOptions::new())?;
    let neighbours = [rank.checked_sub(1), Some(rank + 1).filter(|right| *right < size)];
    let mut remotes = [None, None];
    for (side, neighbour) in neighbours.iter().enumerate() {
        if let Some(neighbour) = neighbour {
            let peer = port.peer(*neighbour).ok_or("a rank of the job")?;
            port.share(peer, &halo, 0..4 * 8, Rights::all(), 0)?;
            remotes[side] = Some(port.accept_region(peer, 0)?);
        }
    }

    let mut cells: Vec<f64> = (0..CELLS).map(|cell| initial(rank * CELLS + cell)).collect();
    let mut early = [0; 2];
    for step in 0..STEPS {
        exchange(&mut port, &remotes, &cells, step)?;
        wait_for(&mut port, &remotes, step, &mut early)?;
        cells = advance(&cells, [read(&halo, LEFT, step), read(&halo, RIGHT, step)]);
    }
    check(&cells, rank, size);
    port.barrier()?;
    if rank == 0 {
        println!("{size} ranks, {} cells, {STEPS} steps: as computed alone", size * CELLS);
    }
    Ok(())
}

/// Where the cell next to a side of a rank's part lies in its halo.
fn place(side: usize, step: usize) -> usize {
    8 * (2 * side + step % 2)
}

fn read(halo: &Region, side: usize, step: usize) -> f64 {
    f64::from_bits(halo.load(place(side, step)))
}

/// Puts the outermost cells into the halos of the neighbours.
fn exchange(
    port: &mut Port,
    remotes: &[Option<RemoteRegion>; 2],
    cells: &[f64],
    step: usize,
) -> Result<(), Box<dyn Error>> {
    let outermost = [cells[0], cells[CELLS - 1]];
    for (side, remote) in remotes.iter().enumerate() {
        if let Some(remote) = remote {
            let (offset, cell) = (place(1 - side, step) as u64, outermost[side].to_bits());
            port.put_immediate(
                remote,
                offset,
                cell,
                PostOptions::new().completer().tag(step as u32),
            )?;
        }
    }
    Ok(())
}

/// Waits for the notifications of a step. A neighbour may be one step ahead: `early` counts what
/// has come of the next step already.
fn wait_for(
    port: &mut Port,
    remotes: &[Option<RemoteRegion>; 2],
    step: usize,
    early: &mut [usize; 2],
) -> Result<(), Box<dyn Error>> {
    let expected = remotes.iter().flatten().count();
    while early[step % 2] < expected {
        let notification = port.wait_notification(None)?;
        early[notification.tag as usize % 2] += 1;
    }
    early[step % 2] = 0;
    Ok(())
}

fn initial(cell: usize) -> f64 {
    (cell % 97) as f64
}

/// One step. The ends of the rod, next to which there is no cell, are held at 0.
fn advance(cells: &[f64], halo: [f64; 2]) -> Vec<f64> {
    let at = |index: usize| match index {
        0 => halo[LEFT],
        index if index > cells.len() => halo[RIGHT],
        index => cells[index - 1],
    };
    let next = |cell: usize| at(cell) + 0.25 * (at(cell - 1) - 2.0 * at(cell) + at(cell + 1));
    (1..=cells.len()).map(next).collect()
}

/// Computes the whole rod alone, and compares this rank's part, to the last bit.
fn check(cells: &[f64], rank: usize, size: usize) {
    let mut rod: Vec<f64> = (0..size * CELLS).map(initial).collect();
    for _ in 0..STEPS {
        rod = advance(&rod, [0.0; 2]);
    }
    assert_eq!(cells, &rod[rank * CELLS..][..CELLS], "rank {rank} has computed something else");
}
