//! Plots: numbers over numbers, as lines or as dots.

use anyhow::{Result, anyhow};
use plotters::prelude::{ChartBuilder, Circle, Color, EmptyElement, PathElement, Polygon};
use plotters::style::RGBColor;

use super::axis::Axis;
use super::canvas::{self, Area};
use super::colours;

const HEIGHT: u32 = 620;
/// The radius of a line's points, and of dots.
const POINT: u32 = 7;
const DOT: u32 = 4;
/// Half of the width of the caps of an interval.
const CAP: i32 = 10;
/// How much of its colour an area has.
const SHADE: f64 = 0.3;

/// Numbers over numbers.
pub(crate) struct Plot {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// Points that belong together.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) shown: Shown,
    pub(crate) points: Vec<(f64, f64)>,
}

/// How points are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Joined by a line.
    Line,
    /// Joined by the dashed line of a limit of the machine.
    Limit,
    /// Each for itself.
    Dots,
    /// Joined by a line without points, with the colour faint between it and the axis.
    Area,
    /// Each two are the ends of an interval of the series before, whose colour they have.
    Intervals,
}

impl Plot {
    pub(super) fn height(&self) -> u32 {
        HEIGHT
    }

    pub(super) fn svg(&self) -> Result<String> {
        canvas::svg(HEIGHT, |area| {
            self.draw(area).map_err(|error| anyhow!("could not draw: {error}"))
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = self.x.scale(points().map(|point| point.0));
        let y = self.y.scale(points().map(|point| point.1));
        let mut chart = ChartBuilder::on(area)
            .margin_top(24)
            .margin_left(8)
            .margin_right(36)
            .x_label_area_size(96)
            .y_label_area_size(176)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(colours::RULE.stroke_width(2))
            .axis_style(colours::INK.stroke_width(2))
            .label_style(canvas::text())
            .axis_desc_style(canvas::text())
            .x_desc(canvas::visible(&self.x.name))
            .y_desc(canvas::visible(&self.y.name))
            .draw()?;
        for (series, colour) in self.series.iter().zip(self.colours()) {
            let mut points = series.points.clone();
            points.retain(|point| x.has(point.0) && y.has(point.1));
            let line = canvas::line(colour);
            match series.shown {
                Shown::Intervals => {
                    let uprights = points.chunks_exact(2);
                    chart.draw_series(uprights.map(|ends| PathElement::new(ends, line)))?;
                    let cap =
                        |at| EmptyElement::at(at) + PathElement::new([(-CAP, 0), (CAP, 0)], line);
                    chart.draw_series(points.into_iter().map(cap))?;
                    continue;
                }
                Shown::Area => {
                    let ends = [points.last(), points.first()].into_iter().flatten();
                    let below = ends.map(|end| (end.0, y.ends[0]));
                    let area = points.iter().copied().chain(below).collect::<Vec<_>>();
                    chart.draw_series([Polygon::new(area, colour.mix(SHADE))])?;
                }
                Shown::Line | Shown::Limit | Shown::Dots => {}
            }
            if series.shown != Shown::Dots {
                chart.draw_series([PathElement::new(points.clone(), line)])?;
            }
            let radius = if series.shown == Shown::Dots { DOT } else { POINT };
            if matches!(series.shown, Shown::Line | Shown::Dots) || points.len() == 1 {
                let dots = points.into_iter().map(|at| Circle::new(at, radius, colour.filled()));
                chart.draw_series(dots)?;
            }
        }
        Ok(())
    }

    /// The first limit is grey.
    fn colours(&self) -> Vec<RGBColor> {
        let mut next = 0;
        let mut colour = |series: &Series| match series.shown {
            Shown::Limit => colours::LIMIT,
            Shown::Intervals => colours::of(usize::saturating_sub(next, 1)),
            Shown::Line | Shown::Dots | Shown::Area => {
                next += 1;
                colours::of(next - 1)
            }
        };
        self.series.iter().map(&mut colour).collect()
    }

    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let mark = |(series, colour): (&Series, RGBColor)| {
            let mark = match series.shown {
                Shown::Dots | Shown::Area => canvas::mark_of_patch(colour),
                Shown::Line | Shown::Limit | Shown::Intervals => canvas::mark_of_line(colour),
            };
            (mark, series.name.clone())
        };
        let all = self.series.iter().zip(self.colours());
        all.filter(|(series, _)| series.shown != Shown::Intervals).map(mark).collect()
    }
}
