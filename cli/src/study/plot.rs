//! Plots as SVG.

use std::f64::consts::TAU;
use std::fmt::Write;

/// Colours that are told apart by everybody (after Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#f0e442"];
/// Axes of a star at most.
pub(super) const AXES_MAX: usize = 24;
/// Pixels of a star with its names.
const STAR: f64 = 340.0;

/// A point to draw: its name, and a share from 0 to 1 for each axis.
pub(super) type Shape = (String, Vec<f64>);

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn text(into: &mut String, (x, y): (f64, f64), style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(into, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{words}</text>");
}

fn page((width, height): (f64, f64), title: &str, body: &str) -> String {
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    text(&mut page, (10.0, 18.0), "font-size=\"14\"", title);
    page + body + "</svg>\n"
}

fn polyline(points: impl Iterator<Item = (f64, f64)>, rest: &str) -> String {
    let points: Vec<_> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polyline points=\"{}\" {rest}/>\n", points.join(" "))
}

/// A star for each shape: how long its rays are says how loaded the links are.
pub(super) fn stars(title: &str, axes: &[String], shapes: &[Shape]) -> String {
    let across = shapes.len().clamp(1, 3);
    let down = shapes.len().div_ceil(across);
    let mut body = String::new();
    for (number, (name, values)) in shapes.iter().enumerate() {
        let middle = (
            STAR * (0.5 + (number % across) as f64),
            30.0 + STAR * (0.5 + (number / across) as f64),
        );
        let at = |axis: usize, share: f64| {
            let angle = TAU * axis as f64 / axes.len().max(1) as f64;
            let radius = share * STAR * 0.32;
            (middle.0 + radius * angle.sin(), middle.1 - radius * angle.cos())
        };
        text(&mut body, (middle.0 - STAR * 0.48, middle.1 - STAR * 0.46), "font-size=\"11\"", name);
        for (axis, link) in axes.iter().enumerate() {
            let ray = [middle, at(axis, 1.0)].into_iter();
            body += &polyline(ray, "stroke=\"#ccc\" fill=\"none\"");
            let place = at(axis, 1.12);
            text(&mut body, place, "fill=\"#555\" font-size=\"8\" text-anchor=\"middle\"", link);
        }
        let round = values.iter().enumerate().map(|(axis, share)| at(axis, *share));
        let fill = format!("stroke=\"{0}\" fill=\"{0}\" fill-opacity=\"0.3\"", colour(number));
        body += &polyline(round.chain([at(0, values.first().copied().unwrap_or(0.0))]), &fill);
    }
    page((STAR * across as f64, 30.0 + STAR * down as f64), title, &body)
}

/// A line for each shape over all links.
pub(super) fn lines(title: &str, axes: &[String], shapes: &[Shape]) -> String {
    let (step, height) = (26.0, 260.0);
    let width = (120.0 + step * axes.len() as f64).max(420.0);
    let mut body = String::new();
    let at = |axis: usize, share: f64| (40.0 + step * axis as f64, 60.0 + height * (1.0 - share));
    for (axis, link) in axes.iter().enumerate() {
        let rule = [at(axis, 0.0), at(axis, 1.0)].into_iter();
        body += &polyline(rule, "stroke=\"#eee\" fill=\"none\"");
        let (x, y) = (at(axis, 0.0).0, 60.0 + height + 10.0);
        let turned = format!("fill=\"#555\" transform=\"rotate(60 {x:.1} {y:.1})\"");
        text(&mut body, (x, y), &turned, link);
    }
    for (number, (name, values)) in shapes.iter().enumerate() {
        let points = values.iter().enumerate().map(|(axis, share)| at(axis, *share));
        let stroke = format!("stroke=\"{}\" stroke-width=\"1.5\" fill=\"none\"", colour(number));
        body += &polyline(points, &stroke);
        let place = (40.0 + 140.0 * number as f64, 42.0);
        text(&mut body, place, &format!("fill=\"{}\"", colour(number)), name);
    }
    page((width.max(40.0 + 140.0 * shapes.len() as f64), height + 180.0), title, &body)
}

/// Each call as a dot: when it was, and how long it took.
pub(super) fn times(title: &str, times: &[(f64, usize)]) -> String {
    let (width, height) = (900.0, 320.0);
    let logs: Vec<_> = times.iter().map(|(time, _)| time.max(1.0).log10()).collect();
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
    let most = logs.iter().copied().fold(least + 1.0, f64::max).ceil();
    let down = |log: f64| 40.0 + height * (most - log) / (most - least);
    let mut body = String::new();
    for decade in least as i32..=most as i32 {
        let y = down(decade.into());
        body += &polyline([(60.0, y), (60.0 + width, y)].into_iter(), "stroke=\"#ddd\"");
        let name = format!("{} us", 10_f64.powi(decade - 3));
        text(&mut body, (5.0, y + 3.0), "fill=\"#555\"", &name);
    }
    for (at, ((_, class), log)) in times.iter().zip(&logs).enumerate() {
        let x = 60.0 + width * at as f64 / times.len() as f64;
        let (y, fill) = (down(*log), colour(*class));
        let _ = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.5\" fill=\"{fill}\"/>");
    }
    page((width + 80.0, height + 60.0), title, &body)
}
