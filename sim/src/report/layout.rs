//! Where routers are on a drawing.
use crate::topology::{Shape, Topology};
use core::f64::consts::TAU;

/// A place for each router, from 0 to 1 to the right and down.
pub(super) fn layout(topology: &Topology) -> Vec<(f64, f64)> {
    let routers = topology.ports.len();
    match &topology.shape {
        Shape::Cube { sides, .. } => cube(sides, routers),
        Shape::Tree { half, levels } => {
            let (width, levels) = (half.pow(levels - 1) as usize, *levels as usize);
            let place = |router| {
                let level = levels - 1 - router / width;
                (middle(router % width, width), middle(level, levels))
            };
            (0..routers).map(place).collect()
        }
        // The last router is the switch.
        Shape::Star => circle(routers - 1).chain([(0.5, 0.5)]).collect(),
        _ => circle(routers).collect(),
    }
}

/// The middle of one of `count` equal parts.
fn middle(number: usize, count: usize) -> f64 {
    (number as f64 + 0.5) / count as f64
}

fn circle(count: usize) -> impl Iterator<Item = (f64, f64)> {
    (0..count).map(move |number| {
        let angle = TAU * number as f64 / count.max(1) as f64;
        (0.5 + 0.45 * libm::cos(angle), 0.5 + 0.45 * libm::sin(angle))
    })
}

/// Odd dimensions go to the right, even ones down. Blocks of the first two dimensions are repeated
/// for further ones, with a gap between.
fn cube(sides: &[u32], routers: usize) -> Vec<(f64, f64)> {
    let place = |router: usize| {
        let mut rest = router;
        let mut at = [0.0, 0.0];
        let mut extent = [1.0, 1.0];
        for (dimension, side) in sides.iter().map(|side| *side as usize).enumerate() {
            let axis = dimension % 2;
            let gap = if dimension < 2 { 0.0 } else { 0.5 };
            at[axis] += (rest % side) as f64 * (extent[axis] + gap);
            extent[axis] = side as f64 * (extent[axis] + gap) - gap;
            rest /= side;
        }
        ((at[0] + 0.5) / extent[0], (at[1] + 0.5) / extent[1])
    };
    (0..routers).map(place).collect()
}
