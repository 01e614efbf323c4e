//! The common parts of all drawings: width, text, and SVG output.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, IntoDrawingArea, IntoFont, SVGBackend, ShapeStyle, TextStyle,
};
use plotters::style::RGBColor;

use super::colours::{INK, hex};

/// Units of a drawing's width: about half a pixel each, on a telephone.
pub(super) const WIDTH: u32 = 880;
/// The height of letters, of which plotters asks for a little more.
const LETTERS: f64 = 27.0 * 1.24;
/// The width of lines.
pub(super) const STROKE: u32 = 4;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The drawing that `draw` makes, as SVG. The background is the page's.
pub(super) fn svg(height: u32, draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw(&area)?;
        area.present().map_err(|error| anyhow!("could not draw: {error}"))?;
    }
    Ok(svg)
}

/// How text is written.
pub(super) fn text() -> TextStyle<'static> {
    ("sans-serif", LETTERS).into_font().color(&INK)
}

/// Text without what no document may contain.
pub(super) fn visible(text: &str) -> String {
    let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    spaced.filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')).collect()
}

/// How a line is drawn.
pub(super) fn line(colour: RGBColor) -> ShapeStyle {
    colour.stroke_width(STROKE)
}

/// A line in a legend.
pub(super) fn mark_of_line(colour: RGBColor) -> String {
    let stroke = hex(colour);
    format!(
        "<svg viewBox=\"0 0 60 20\" aria-hidden=\"true\"><polyline points=\"0,10 60,10\" \
         fill=\"none\" stroke=\"{stroke}\" stroke-width=\"6\"/></svg>"
    )
}

/// A patch in a legend.
pub(super) fn mark_of_patch(colour: RGBColor) -> String {
    let fill = hex(colour);
    format!(
        "<svg viewBox=\"0 0 60 20\" aria-hidden=\"true\">\
         <rect width=\"60\" height=\"20\" fill=\"{fill}\"/></svg>"
    )
}
