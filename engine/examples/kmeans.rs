//! Finds clusters (k-means) in points that are spread over the ranks, with collectives: a broadcast
//! of the first centres, and an allreduce of sums in each step.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/kmeans [FILE.csv [CLUSTERS]]
//! ```
//!
//! A line of the file is a point; its last column is a label, which is only printed. Without
//! arguments these are R. A. Fisher's irises (*The use of multiple measurements in taxonomic
//! problems*, 1936): 150 flowers of three species, four lengths of each. Rank 0 compares the
//! clusters with those that it finds alone.
mod points;

use ayre::Port;
use ayre::active::Messenger;
use ayre::collective::Combine;
use points::Point;
use std::error::Error;
use std::path::Path;

const STEPS_MAX: u64 = 100;
/// Sums in another order differ by less.
const NEAR: f64 = 1e-9;

fn main() -> Result<(), Box<dyn Error>> {
    let irises = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/iris.csv");
    let mut arguments = std::env::args_os().skip(1);
    let data = points::read(&arguments.next().map_or(irises, Into::into))?;
    let clusters = arguments.next().map_or(Ok(3), |text| text.to_string_lossy().parse())?;

    let mut messenger = Messenger::new(Port::join()?);
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let all = messenger.collectives().group_of_all("all")?;

    // Rank 0 chooses the first centres.
    let mut first = points::first_centres(&data, clusters).concat();
    messenger.collectives().broadcast(&mut (), all, 0, &mut first)?;
    let width = data.points[0].len();
    let first: Vec<Point> = first.chunks_exact(width).map(<[f64]>::to_vec).collect();

    // Each rank adds up its own points; the sums of all ranks move the centres.
    let share: Vec<_> = data.points.iter().skip(rank).step_by(size).collect();
    let (centres, steps) = find(first.clone(), |centres| {
        let mut sums = points::sums(&share, centres);
        messenger.collectives().allreduce(&mut (), all, Combine::Sum, &mut sums)?;
        Ok(sums)
    })?;

    if rank == 0 {
        let every: Vec<_> = data.points.iter().collect();
        let (alone, steps_alone) = find(first, |centres| Ok(points::sums(&every, centres)))?;
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < NEAR;
        if steps != steps_alone || !centres.concat().iter().zip(&alone.concat()).all(is_near) {
            return Err(format!("{steps} steps to {centres:?}; alone to {alone:?}").into());
        }
        points::print(&data, &centres);
        println!("{size} ranks, {steps} steps, the clusters that one process finds");
    }
    messenger.collectives().barrier(&mut (), all)?;
    Ok(())
}

/// Moves the centres by the sums of their clusters until none moves. Returns them, and the number
/// of steps.
fn find(
    mut centres: Vec<Point>,
    mut sums: impl FnMut(&[Point]) -> Result<Vec<f64>, Box<dyn Error>>,
) -> Result<(Vec<Point>, u64), Box<dyn Error>> {
    for step in 1..=STEPS_MAX {
        let sums = sums(&centres)?;
        if points::advance(&mut centres, &sums) < NEAR {
            return Ok((centres, step));
        }
    }
    Ok((centres, STEPS_MAX))
}
