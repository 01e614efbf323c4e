//! Colours: those that charts are drawn in, and what the style sheet makes of them.

use std::fmt::Write;

use plotters::style::RGBColor;

/// A colour in light surroundings, in dark ones, and its name in the style sheet.
struct Colour {
    name: &'static str,
    light: RGBColor,
    dark: &'static str,
}

const fn colour(name: &'static str, [r, g, b]: [u8; 3], dark: &'static str) -> Colour {
    Colour { name, light: RGBColor(r, g, b), dark }
}

/// Colours of series that colour-blind readers can tell apart, too (after Okabe and Ito).
const SERIES: [Colour; 8] = [
    colour("blue", [0x00, 0x72, 0xb2], "#5cb8ee"),
    colour("orange", [0xd5, 0x5e, 0x00], "#ff9a4d"),
    colour("green", [0x00, 0x85, 0x62], "#35cfa2"),
    colour("purple", [0xa3, 0x3f, 0x8f], "#e796d4"),
    colour("brown", [0x8a, 0x6a, 0x00], "#e3c448"),
    colour("red", [0xb0, 0x1c, 0x3c], "#ff8095"),
    colour("teal", [0x1f, 0x78, 0x8c], "#7fd6e3"),
    colour("slate", [0x4a, 0x4f, 0x8f], "#a9aef0"),
];
/// Colours from little to much, as far apart in their lightness as in their hue.
const SCALE: [Colour; 6] = [
    colour("idle", [0xc4, 0xcc, 0xd6], "#434c57"),
    colour("calm", [0x7f, 0xa7, 0xcf], "#41719f"),
    colour("brisk", [0x2f, 0x78, 0xb4], "#5fb0f0"),
    colour("busy", [0xe0, 0xa1, 0x00], "#ffd257"),
    colour("crowded", [0xdb, 0x5a, 0x0b], "#ff8f45"),
    colour("full", [0xa8, 0x00, 0x2c], "#ff5577"),
];
const LIMIT_COLOUR: Colour = colour("limit", [0x75, 0x75, 0x75], "#a6a6a6");
const INK_COLOUR: Colour = colour("ink", [0x26, 0x26, 0x26], "#dedede");
const RULE_COLOUR: Colour = colour("rule", [0xdf, 0xdf, 0xdf], "#3a3a3a");
const PAPER_COLOUR: Colour = colour("paper", [0xff, 0xff, 0xff], "#161616");

/// Limits of the machine, which the style sheet draws dashed.
pub(super) const LIMIT: RGBColor = LIMIT_COLOUR.light;
/// Text and axes.
pub(super) const INK: RGBColor = INK_COLOUR.light;
/// The grid.
pub(super) const RULE: RGBColor = RULE_COLOUR.light;

/// The background.
pub(super) const PAPER: RGBColor = PAPER_COLOUR.light;

/// The colour of a series.
pub(super) fn of(number: usize) -> RGBColor {
    SERIES[number % SERIES.len()].light
}

/// How many colours there are from little to much.
pub(super) const STEPS: usize = SCALE.len();

/// The colour of a step from little to much.
pub(super) fn of_step(step: usize) -> RGBColor {
    SCALE[step.min(STEPS - 1)].light
}

/// As it stands in the SVG that plotters writes.
pub(super) fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Variables for all colours, and rules by which they take the place of those that were drawn.
pub(super) fn style() -> String {
    let all = || {
        SERIES.iter().chain(&SCALE).chain([&LIMIT_COLOUR, &INK_COLOUR, &RULE_COLOUR, &PAPER_COLOUR])
    };
    let (mut light, mut dark, mut rules) = (String::new(), String::new(), String::new());
    for Colour { name, light: drawn, dark: instead } in all() {
        let drawn = hex(*drawn);
        let _ = write!(light, "--{name}:{drawn};");
        let _ = write!(dark, "--{name}:{instead};");
        for what in ["stroke", "fill"] {
            let _ = writeln!(rules, "svg [{what}=\"{drawn}\"]{{{what}:var(--{name})}}");
        }
    }
    let _ = writeln!(rules, "svg polyline[stroke=\"{}\"]{{stroke-dasharray:12 8}}", hex(LIMIT));
    format!(":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{}", rules)
}
