//! Points with labels, and clusters of them: the part of the example `kmeans` that is arithmetic.
use std::error::Error;
use std::fs;
use std::path::Path;

pub(crate) type Point = Vec<f64>;

/// Points, and the label of each.
pub(crate) struct Data {
    pub(crate) points: Vec<Point>,
    labels: Vec<String>,
}

/// Reads a point from each line of a file, behind the first; the last column is its label.
pub(crate) fn read(path: &Path) -> Result<Data, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let mut lines = text.lines();
    // The first line of the irises names their species behind two numbers.
    let names: Vec<_> = lines.next().ok_or("an empty file")?.split(',').skip(2).collect();
    let mut data = Data { points: vec![], labels: vec![] };
    for line in lines {
        let (numbers, label) = line.rsplit_once(',').ok_or("a line of one column")?;
        data.points.push(numbers.split(',').map(str::parse).collect::<Result<_, _>>()?);
        let name = label.parse().ok().and_then(|number: usize| names.get(number));
        data.labels.push(name.copied().unwrap_or(label).into());
    }
    if data.points.is_empty() { Err("a file without points".into()) } else { Ok(data) }
}

/// Some of the points, as the first centres.
pub(crate) fn first_centres(data: &Data, clusters: usize) -> Vec<Point> {
    let step = data.points.len() / clusters.max(1);
    data.points.iter().step_by(step.max(1)).take(clusters).cloned().collect()
}

/// For each cluster, the sums of the coordinates of its points, and their number.
pub(crate) fn sums(points: &[&Point], centres: &[Point]) -> Vec<f64> {
    let width = centres[0].len() + 1;
    let mut sums = vec![0.0; centres.len() * width];
    for point in points {
        let sum = &mut sums[nearest(centres, point) * width..][..width];
        sum.iter_mut().zip(*point).for_each(|(sum, value)| *sum += value);
        sum[width - 1] += 1.0;
    }
    sums
}

/// Moves each centre to the middle of its cluster. Returns the largest step along a coordinate.
pub(crate) fn advance(centres: &mut [Point], sums: &[f64]) -> f64 {
    let (mut moved, width) = (0.0_f64, sums.len() / centres.len());
    for (centre, sums) in centres.iter_mut().zip(sums.chunks_exact(width)) {
        let (count, sums) = sums.split_last().expect("sums end with the number of points");
        for (value, sum) in centre.iter_mut().zip(sums).filter(|_| *count > 0.0) {
            moved = moved.max((*value - sum / count).abs());
            *value = sum / count;
        }
    }
    moved
}

fn nearest(centres: &[Point], point: &Point) -> usize {
    let distance = |centre: &Point| -> f64 {
        centre.iter().zip(point).map(|(centre, value)| (centre - value).powi(2)).sum()
    };
    let by_distance =
        |a: &usize, b: &usize| distance(&centres[*a]).total_cmp(&distance(&centres[*b]));
    (0..centres.len()).min_by(by_distance).unwrap_or(0)
}

/// Prints which labels each cluster has.
pub(crate) fn print(data: &Data, centres: &[Point]) {
    for (number, centre) in centres.iter().enumerate() {
        let label = |(point, label)| (nearest(centres, point) == number).then_some(label);
        let mut labels: Vec<_> = data.points.iter().zip(&data.labels).filter_map(label).collect();
        labels.sort_unstable();
        let groups = labels.chunk_by(|a, b| a == b);
        let groups: Vec<_> = groups.map(|one| format!("{} {}", one.len(), one[0])).collect();
        println!("cluster {number}, at {centre:.2?}: {}", groups.join(", "));
    }
}
