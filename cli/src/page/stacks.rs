//! Stacks: bars that are made of parts, with the name and the sum of each above it.

use anyhow::{Result, anyhow};
use plotters::prelude::{Color, Rectangle};

use super::axis::Axis;
use super::bars::{height, rows, write};
use super::canvas::{self, Area};
use super::colours;

/// Bars below each other, each of the same parts.
pub(crate) struct Stacks {
    pub(crate) axis: Axis,
    /// The names of the parts.
    pub(crate) parts: Vec<String>,
    pub(crate) stacks: Vec<Stack>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) name: String,
    /// The lengths of its parts, from the left.
    pub(crate) lengths: Vec<f64>,
    /// Their sum as text.
    pub(crate) told: String,
}

impl Stacks {
    pub(super) fn height(&self) -> u32 {
        height(self.stacks.len())
    }

    pub(super) fn svg(&self) -> Result<String> {
        canvas::svg(self.height(), |area| {
            self.draw(area).map_err(|error| anyhow!("could not draw: {error}"))
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let sums = self.stacks.iter().map(|stack| stack.lengths.iter().sum());
        let scale = self.axis.scale(sums);
        let ends = scale.ends;
        let mut chart = rows(area, scale, self.stacks.len(), &self.axis.name)?;
        for (number, stack) in self.stacks.iter().enumerate() {
            let at = |place: f64, down: f64| (place, number as f64 + down);
            let mut end = 0.0;
            let parts = stack.lengths.iter().enumerate().map(|(part, length)| {
                let begin = end;
                end += length;
                Rectangle::new([at(begin, 0.54), at(end, 0.9)], colours::of(part).filled())
            });
            chart.draw_series(parts)?;
        }
        let words = self.stacks.iter().map(|stack| [stack.name.as_str(), &stack.told]);
        write(&mut chart, ends, words)
    }

    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let parts = self.parts.iter().enumerate();
        parts.map(|(part, name)| (canvas::mark_of_patch(colours::of(part)), name.clone())).collect()
    }
}
