//! Finds clusters (k-means) in points that are spread over the ranks, with collectives: a broadcast
//! of the first centres, and an allreduce of sums in each step.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/kmeans [FILE.csv [CLUSTERS]]
//! ```
//!
//! A line of the file is a point; its last column is what it is, and not looked at until the end.
//! Without arguments these are R. A. Fisher's irises (*The use of multiple measurements in
//! taxonomic problems*, 1936): 150 flowers of three species, four lengths of each. Rank 0 compares
//! what all have found with what it finds alone.
use ayre::Port;
use ayre::active::Messenger;
use ayre::collective::Combine;
use ayre::collective::{Group, GroupError};
use indicatif::ProgressBar;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Steps at most.
const STEPS: u64 = 100;
/// As near as sums come that have their brackets elsewhere.
const NEAR: f64 = 1e-9;

type Point = Vec<f64>;

/// Points, and what each is.
struct Data {
    points: Vec<Point>,
    kinds: Vec<String>,
}

/// What a step does with the sums of all ranks.
type Everybodys<'a> = dyn FnMut(&mut [f64]) -> Result<(), GroupError> + 'a;

fn main() -> Result<(), Box<dyn Error>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/iris.csv");
    let mut arguments = std::env::args_os().skip(1);
    let data = read(&arguments.next().map_or(own, Into::into))?;
    let clusters = arguments.next().map_or(Ok(3), |text| text.to_string_lossy().parse())?;

    let mut messenger = Messenger::new(Port::join()?);
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let all = messenger.collectives().group_of_all("all")?;
    let share: Vec<_> = data.points.iter().skip(rank).step_by(size).collect();
    let first = broadcast_first(&mut messenger, all, rank, &data, clusters)?;
    let bar = if rank == 0 { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let (centres, steps) = find(&share, first.clone(), &bar, &mut |sums| {
        messenger.collectives().allreduce(&mut (), all, Combine::Sum, sums)
    })?;
    bar.finish_and_clear();
    if rank == 0 {
        let every: Vec<_> = data.points.iter().collect();
        let alone = find(&every, first, &ProgressBar::hidden(), &mut |_| Ok(()))?;
        check(&data, (&centres, steps), (&alone.0, alone.1))?;
        println!("{size} ranks, {steps} steps, the clusters that one process finds");
    }
    messenger.collectives().barrier(&mut (), all)?;
    Ok(())
}

fn read(path: &Path) -> Result<Data, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let mut lines = text.lines();
    // The first line of the irises names their species behind two numbers.
    let names: Vec<_> = lines.next().ok_or("an empty file")?.split(',').skip(2).collect();
    let mut data = Data { points: vec![], kinds: vec![] };
    for line in lines {
        let (numbers, kind) = line.rsplit_once(',').ok_or("a line of one column")?;
        data.points.push(numbers.split(',').map(str::parse).collect::<Result<_, _>>()?);
        let name = kind.parse().ok().and_then(|number: usize| names.get(number));
        data.kinds.push(name.copied().unwrap_or(kind).into());
    }
    Ok(data)
}

/// Rank 0 takes some points as the first centres, and tells the others.
fn broadcast_first(
    messenger: &mut Messenger<()>,
    all: Group,
    rank: usize,
    data: &Data,
    clusters: usize,
) -> Result<Vec<Point>, Box<dyn Error>> {
    let width = data.points.first().ok_or("no points")?.len();
    let mut flat = vec![0.0; clusters * width];
    if rank == 0 {
        let step = data.points.len() / clusters.max(1);
        let chosen = data.points.iter().step_by(step.max(1)).take(clusters);
        flat = chosen.flatten().copied().collect();
    }
    messenger.collectives().broadcast(&mut (), all, 0, &mut flat)?;
    Ok(flat.chunks_exact(width).map(<[f64]>::to_vec).collect())
}

/// Moves each centre to the middle of the points that are nearest to it, until none moves.
fn find(
    points: &[&Point],
    mut centres: Vec<Point>,
    bar: &ProgressBar,
    everybodys: &mut Everybodys<'_>,
) -> Result<(Vec<Point>, u64), GroupError> {
    let width = centres[0].len();
    for step in 1..=STEPS {
        // Of each cluster the sums of its points, and how many they are.
        let mut sums = vec![0.0; centres.len() * (width + 1)];
        for point in points {
            let sum = &mut sums[nearest(&centres, point) * (width + 1)..][..=width];
            sum.iter_mut().zip(*point).for_each(|(sum, value)| *sum += value);
            sum[width] += 1.0;
        }
        everybodys(&mut sums)?;
        let mut moved = 0.0_f64;
        for (centre, sum) in centres.iter_mut().zip(sums.chunks_exact(width + 1)) {
            for (value, sum_of) in centre.iter_mut().zip(&sum[..width]).filter(|_| sum[width] > 0.0)
            {
                moved = moved.max((*value - sum_of / sum[width]).abs());
                *value = sum_of / sum[width];
            }
        }
        bar.set_message(format!("step {step}: centres move by {moved:.3}"));
        bar.tick();
        if moved < NEAR {
            return Ok((centres, step));
        }
    }
    Ok((centres, STEPS))
}

fn nearest(centres: &[Point], point: &Point) -> usize {
    let distance = |centre: &Point| -> f64 {
        centre.iter().zip(point).map(|(centre, value)| (centre - value).powi(2)).sum()
    };
    let by_distance =
        |a: &usize, b: &usize| distance(&centres[*a]).total_cmp(&distance(&centres[*b]));
    (0..centres.len()).min_by(by_distance).unwrap_or(0)
}

/// Compares, and says what is in each cluster.
fn check(
    data: &Data,
    (centres, steps): (&[Point], u64),
    (alone, steps_alone): (&[Point], u64),
) -> Result<(), String> {
    let flat = |centres: &[Point]| centres.concat();
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < NEAR;
    if steps != steps_alone || !flat(centres).iter().zip(&flat(alone)).all(is_near) {
        return Err(format!("{steps} steps to {centres:?}; alone {steps_alone} to {alone:?}"));
    }
    for (number, centre) in centres.iter().enumerate() {
        let is_here = |(point, kind): (&Point, &String)| {
            (nearest(centres, point) == number).then(|| kind.clone())
        };
        let mut kinds: Vec<_> = data.points.iter().zip(&data.kinds).filter_map(is_here).collect();
        kinds.sort_unstable();
        let of_a_kind =
            kinds.chunk_by(|a, b| a == b).map(|kinds| format!("{} {}", kinds.len(), kinds[0]));
        let of_a_kind: Vec<_> = of_a_kind.collect();
        println!("cluster {number}, at {centre:.2?}: {}", of_a_kind.join(", "));
    }
    Ok(())
}
