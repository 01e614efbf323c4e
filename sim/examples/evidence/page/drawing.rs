//! A drawing of deviations: a column for each row, and a mark for each of its values.
//!
//! ```text
//!    2 |            ^        beyond the drawing
//!    1 |----------------     the values that agree
//!    0 |  o  o   o
//!   -1 |----------------
//!         rows in order
//! ```
use super::{Line, Verdict, html};
use ayre_sim::evidence::Value;
use std::fmt::Write;

/// Pixels of a row, and of a tolerance.
const COLUMN: usize = 10;
const TOLERANCE: f64 = 40.0;
/// Tolerances that are drawn on each side.
const MOST: f64 = 2.25;
/// Pixels to the left, for numbers, and those above and below.
const LEFT: usize = 28;
const EDGE: f64 = 10.0;

/// The drawing of rows that have been computed.
pub(crate) fn svg(title: &str, lines: &[&Line]) -> String {
    let width = LEFT + COLUMN * lines.len() + 8;
    let height = 2.0 * (MOST * TOLERANCE + EDGE);
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <rect class=\"band\" x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
        html::escaped(title),
        place(1.0),
        width - LEFT,
        2.0 * TOLERANCE,
    );
    for tick in -2..=2 {
        let y = place(tick.into());
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path class=\"tick\" d=\"M{LEFT} {y}H{width}\"/>\
             <text x=\"{}\" y=\"{}\">{tick}</text>",
            LEFT - 5,
            y + 4.0
        );
    }
    for (number, line) in lines.iter().enumerate() {
        svg += &column(LEFT + COLUMN * number + COLUMN / 2 + 2, line);
    }
    svg + "</svg>\n"
}

/// The marks of a row, which lead to its line in the table.
fn column(x: usize, line: &Line) -> String {
    let id = line.row.id;
    let verdict = if line.verdict == Verdict::Agrees { "good" } else { "bad" };
    let title = html::escaped(&format!("{id}: {}", line.row.quantity));
    let mut column = format!("<a href=\"#{id}\" class=\"{verdict}\"><title>{title}</title>");
    for value in &line.values {
        let (off, half) = in_tolerances(value);
        if half > 0.0 {
            let (low, high) = (place(off - half), place(off + half));
            let _ = write!(column, "<path class=\"interval\" d=\"M{x} {low}V{high}\"/>");
        }
        let y = place(off);
        // Agreement and difference have forms of their own, and so has what lies beyond the edge.
        let _ = match (value.is_good(), off.abs() > MOST) {
            (true, _) => write!(column, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"),
            (false, false) => write!(column, "<path d=\"M{x} {}l4 4l-4 4l-4 -4z\"/>", y - 4.0),
            (false, true) => {
                let tip = if off > 0.0 { -7 } else { 7 };
                write!(column, "<path d=\"M{} {y}h8l-4 {tip}z\"/>", x - 4)
            }
        };
    }
    column + "</a>\n"
}

/// The height of a number of tolerances, to a tenth of a pixel.
fn place(tolerances: f64) -> f64 {
    let pixels = EDGE + TOLERANCE * (MOST - tolerances.clamp(-MOST, MOST));
    (10.0 * pixels).round() / 10.0
}

/// How far ours is from the middle of the values that agree, and the half width of its interval, as
/// shares of half of their range.
fn in_tolerances(value: &Value) -> (f64, f64) {
    let (least, most) = value.agrees;
    let (off, half) = (value.ours - f64::midpoint(least, most), (most - least) / 2.0);
    if off.abs() < 1e-6 {
        return (0.0, 0.0);
    }
    if half < 1e-6 {
        return (f64::INFINITY.copysign(off), 0.0);
    }
    (off / half, value.half_width / half)
}
