//! Heat in a rod that is spread over the ranks. After each step neighbours put their outermost
//! cells into each other's halo, and a notification says that a halo is complete.
//!
//! A halo has two slots, for even and for odd steps. A neighbour overwrites a slot two steps later.
//! Before that it has received our cells of the step between, which we put after we had read the
//! slot. So no message has to say that a slot is free.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/halo
//! ```
use ayre::{Port, PostOptions, RegionOptions, RemoteRegion, Rights};
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
    for (remote, neighbour) in remotes.iter_mut().zip(neighbours) {
        if let Some(neighbour) = neighbour {
            let peer = port.peer(neighbour).ok_or("a rank of the job")?;
            port.share(peer, &halo, 0..4 * 8, Rights::all(), 0)?;
            *remote = Some(port.accept_region(peer, 0)?);
        }
    }

    let mut cells: Vec<f64> = (0..CELLS).map(|cell| initial(rank * CELLS + cell)).collect();
    // Notifications by the parity of their step: a neighbour may be one step ahead.
    let mut arrived = [0; 2];
    for step in 0..STEPS {
        put_outermost(&mut port, &remotes, &cells, step)?;
        while arrived[step % 2] < remotes.iter().flatten().count() {
            arrived[port.wait_notification(None)?.tag as usize % 2] += 1;
        }
        arrived[step % 2] = 0;
        let halo = [LEFT, RIGHT].map(|side| f64::from_bits(halo.load(slot(side, step))));
        cells = advance(&cells, halo);
    }
    // One process computes the same, to the last bit.
    let mut rod: Vec<f64> = (0..size * CELLS).map(initial).collect();
    for _ in 0..STEPS {
        rod = advance(&rod, [0.0; 2]);
    }
    assert_eq!(cells, &rod[rank * CELLS..][..CELLS], "rank {rank} has computed something else");
    port.barrier()?;
    if rank == 0 {
        println!("{size} ranks, {} cells, {STEPS} steps: as computed alone", size * CELLS);
    }
    Ok(())
}

/// The place in a halo of the cell next to a side.
fn slot(side: usize, step: usize) -> usize {
    8 * (2 * side + step % 2)
}

/// Puts the outermost cells into the halos of the neighbours.
fn put_outermost(
    port: &mut Port,
    remotes: &[Option<RemoteRegion>; 2],
    cells: &[f64],
    step: usize,
) -> Result<(), Box<dyn Error>> {
    let outermost = [cells[0], cells[CELLS - 1]];
    let options = PostOptions::new().completer().tag(step as u32);
    for (side, remote) in remotes.iter().enumerate() {
        if let Some(remote) = remote {
            let place = slot(1 - side, step) as u64;
            port.put_immediate(remote, place, outermost[side].to_bits(), options)?;
        }
    }
    Ok(())
}

fn initial(cell: usize) -> f64 {
    (cell % 97) as f64
}

/// Advances all cells by a step. Beyond the ends of the rod it is 0 degrees.
fn advance(cells: &[f64], halo: [f64; 2]) -> Vec<f64> {
    let at = |index: usize| match index {
        0 => halo[LEFT],
        index if index > cells.len() => halo[RIGHT],
        index => cells[index - 1],
    };
    let next = |cell: usize| at(cell) + 0.25 * (at(cell - 1) - 2.0 * at(cell) + at(cell + 1));
    (1..=cells.len()).map(next).collect()
}
