//! Bars: a number for each of several things, with its name and its value above the bar.

use anyhow::{Result, anyhow};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, Color, PathElement, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Axis, Scale};
use super::canvas::{self, Area};
use super::colours;

/// Units of height for each bar with its name, and for what lies below all.
const BAR: u32 = 78;
const BELOW: u32 = 104;
/// Characters of a name at most, and of a name and its value together.
const NAME_MAX: usize = 40;
const LINE_MAX: usize = 52;

const CUT: &str = "longer than is drawn";

/// A chart of rows.
pub(super) type Rows<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, RangedCoordf64>>;

/// The height of this number of rows with their axis.
pub(super) fn height(rows: usize) -> u32 {
    BAR * rows as u32 + BELOW
}

/// Numbers beside each other, from nought.
pub(crate) struct Bars {
    pub(crate) axis: Axis,
    /// Longer ones end here, in another colour.
    pub(crate) most: f64,
    /// A mark for comparison: its name and its number.
    pub(crate) mark: Option<(String, f64)>,
    pub(crate) bars: Vec<Bar>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// The value as text.
    pub(crate) told: String,
}

impl Bars {
    pub(super) fn height(&self) -> u32 {
        height(self.bars.len())
    }

    pub(super) fn svg(&self) -> Result<String> {
        canvas::svg(self.height(), |area| {
            self.draw(area).map_err(|error| anyhow!("could not draw: {error}"))
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let mark = self.mark.iter().map(|(_, at)| *at);
        let values = self.bars.iter().map(|bar| bar.value.min(self.most));
        let scale = self.axis.scale(values.chain(mark));
        let [least, most] = scale.ends;
        let mut chart = rows(area, scale, self.bars.len(), &self.axis.name)?;
        let at = |place: f64, bar: usize, down: f64| (place, bar as f64 + down);
        let bars = self.bars.iter().enumerate().map(|(number, bar)| {
            let value = if bar.value.is_finite() { bar.value } else { 0.0 };
            let corners = [at(0.0, number, 0.54), at(value.min(most), number, 0.9)];
            Rectangle::new(corners, colours::of(self.is_cut(bar).into()).filled())
        });
        chart.draw_series(bars)?;
        if let Some((_, place)) = &self.mark {
            let beside = (0..self.bars.len()).map(|number| {
                let ends = [at(*place, number, 0.5), at(*place, number, 0.94)];
                PathElement::new(ends, canvas::line(colours::INK))
            });
            chart.draw_series(beside)?;
        }
        let words = self.bars.iter().map(|bar| [bar.name.as_str(), &bar.told]);
        write(&mut chart, [least, most], words)?;
        Ok(())
    }

    /// Empty where all is of one kind, which the axis names.
    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let mark = self.mark.iter();
        let mark = mark.map(|(name, _)| (canvas::mark_of_line(colours::INK), name.clone()));
        let cut = self.bars.iter().any(|bar| self.is_cut(bar));
        let cut = cut.then(|| (canvas::mark_of_patch(colours::of(1)), CUT.to_owned()));
        let others: Vec<_> = mark.chain(cut).collect();
        let bars = (canvas::mark_of_patch(colours::of(0)), self.axis.name.clone());
        let bars = (!others.is_empty()).then_some(bars);
        bars.into_iter().chain(others).collect()
    }

    fn is_cut(&self, bar: &Bar) -> bool {
        bar.value > self.most
    }
}

/// A chart with a row for each bar below the other.
pub(super) fn rows<'a, 'b>(
    area: &'a Area<'b>,
    scale: Scale,
    count: usize,
    name: &str,
) -> Result<Rows<'a, 'b>> {
    let mut chart = ChartBuilder::on(area)
        .margin_left(36)
        .margin_right(36)
        .x_label_area_size(BELOW - 8)
        .build_cartesian_2d(scale, count as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .bold_line_style(colours::RULE.stroke_width(2))
        .axis_style(colours::INK.stroke_width(2))
        .label_style(canvas::text())
        .axis_desc_style(canvas::text())
        .x_desc(canvas::visible(name))
        .draw()?;
    Ok(chart)
}

/// Writes the name and the value of each row above its bar, at the two ends of the scale.
pub(super) fn write<'a>(
    chart: &mut Rows<'_, '_>,
    [least, most]: [f64; 2],
    words: impl Iterator<Item = [&'a str; 2]>,
) -> Result<()> {
    let texts = words.enumerate().flat_map(|(number, [name, told])| {
        let ends = [(least, HPos::Left, shortened(name, told)), (most, HPos::Right, told.into())];
        ends.map(|(place, side, words)| {
            let style = canvas::text().pos(Pos::new(side, VPos::Center));
            Text::new(canvas::visible(&words), (place, number as f64 + 0.28), style)
        })
    });
    chart.draw_series(texts)?;
    Ok(())
}

/// As much of a name as there is room for beside the value.
fn shortened(name: &str, told: &str) -> String {
    let room = LINE_MAX.saturating_sub(told.chars().count()).clamp(8, NAME_MAX);
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room - 1).chain(['.']).collect()
}
