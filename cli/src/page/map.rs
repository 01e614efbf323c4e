//! Maps: places with ways between them, each in the colour of its load.

use anyhow::{Result, anyhow};
use plotters::prelude::{Circle, Color, PathElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{self, Area, WIDTH};
use super::colours;

/// Places with ways between them.
pub(crate) struct Map {
    /// From 0 to 1 to the right and down.
    pub(crate) places: Vec<(f64, f64)>,
    pub(crate) ways: Vec<Way>,
}

/// A way from one place to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// From 0 to 1.
    pub(crate) load: f64,
}

/// Loads from which on the next colour begins.
const LIMITS: [f64; colours::STEPS - 1] = [0.2, 0.4, 0.6, 0.8, 0.95];
const NAMES: [&str; colours::STEPS] =
    ["below 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 95 %", "95 % and more"];
/// The least height, as a share of the width.
const FLATTEST: f64 = 0.6;
/// Units around all places.
const MARGIN: f64 = 60.0;
/// The distance of places from which on their numbers are drawn.
const NUMBERED: f64 = 84.0;
/// The largest and the least radius of a place.
const RADII: [f64; 2] = [24.0, 3.0];
/// How near a way comes to the middle of a place that it passes over, in radii.
const TOUCH: f64 = 0.5;
/// The cosine of the angle within which two ways from a place have one direction.
const ALIKE: f64 = 0.9;

type Point = (f64, f64);

impl Map {
    /// Rows that are far fewer than columns need less height.
    pub(super) fn height(&self) -> u32 {
        let count = |of: fn(&Point) -> f64| {
            let mut all: Vec<_> =
                self.places.iter().map(|place| (1e6 * of(place)).round() as i64).collect();
            all.sort_unstable();
            all.dedup();
            all.len().max(1) as f64
        };
        let ratio = count(|place| place.1) / count(|place| place.0);
        (f64::from(WIDTH) * ratio.clamp(FLATTEST, 1.0)) as u32
    }

    pub(super) fn svg(&self) -> Result<String> {
        canvas::svg(self.height(), |area| {
            self.draw(area).map_err(|error| anyhow!("could not draw: {error}"))
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let layout = Layout::new(self.spread());
        let drawn = self.ways.iter().filter(|way| {
            let last = way.from.max(way.to);
            last < layout.places.len() && way.from != way.to
        });
        let mut ways: Vec<_> = drawn.copied().collect();
        let directions = layout.directions(&ways);
        // The busiest are drawn last, so that nothing hides them.
        ways.sort_by(|one, other| one.load.total_cmp(&other.load));
        for way in ways {
            let ends = layout.ends(way, &directions[way.from]);
            let colour = colours::of_step(step(way.load));
            let style = colour.stroke_width(layout.stroke());
            area.draw(&PathElement::new(ends.map(pixel), style))?;
        }
        for (number, place) in layout.places.iter().enumerate() {
            let circle = |style| Circle::new(pixel(*place), layout.radius as u32, style);
            area.draw(&circle(colours::PAPER.filled()))?;
            area.draw(&circle(colours::INK.stroke_width(2)))?;
            if layout.spacing >= NUMBERED {
                let style = canvas::text().pos(Pos::new(HPos::Center, VPos::Center));
                area.draw(&Text::new(number.to_string(), pixel(*place), style))?;
            }
        }
        Ok(())
    }

    /// The places, spread over all of the drawing.
    fn spread(&self) -> Vec<Point> {
        let spread = |of: fn(&Point) -> f64, side: u32| {
            let all = self.places.iter().map(of);
            let (least, most) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, place| {
                (ends.0.min(place), ends.1.max(place))
            });
            let room = f64::from(side) - 2.0 * MARGIN;
            move |place: &Point| match most > least {
                true => MARGIN + room * (of(place) - least) / (most - least),
                false => MARGIN + room / 2.0,
            }
        };
        let (right, down) =
            (spread(|place| place.0, WIDTH), spread(|place| place.1, self.height()));
        self.places.iter().map(|place| (right(place), down(place))).collect()
    }

    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let names = NAMES.iter().enumerate();
        names
            .map(|(step, name)| (canvas::mark_of_patch(colours::of_step(step)), (*name).to_owned()))
            .collect()
    }
}

fn step(load: f64) -> usize {
    LIMITS.iter().filter(|limit| load >= **limit).count()
}

fn pixel((x, y): Point) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

/// Places as they are drawn.
struct Layout {
    places: Vec<Point>,
    /// The least distance of two places.
    spacing: f64,
    radius: f64,
}

impl Layout {
    fn new(places: Vec<Point>) -> Self {
        let mut spacing = f64::from(WIDTH);
        for (number, one) in places.iter().enumerate() {
            for other in &places[number + 1..] {
                spacing = spacing.min(length(between(*one, *other)));
            }
        }
        let radius = (0.28 * spacing).clamp(RADII[1], RADII[0]);
        Self { places, spacing, radius }
    }

    fn stroke(&self) -> u32 {
        (0.09 * self.spacing).clamp(2.0, 9.0) as u32
    }

    /// The directions in which whole ways leave each place.
    fn directions(&self, ways: &[Way]) -> Vec<Vec<Point>> {
        let mut directions = vec![vec![]; self.places.len()];
        for way in ways.iter().filter(|way| !self.passes_over(**way)) {
            directions[way.from].push(self.direction(*way));
        }
        directions
    }

    fn direction(&self, way: Way) -> Point {
        let (x, y) = between(self.places[way.from], self.places[way.to]);
        let length = length((x, y)).max(1.0);
        (x / length, y / length)
    }

    /// Whether a straight way would touch a third place.
    fn passes_over(&self, way: Way) -> bool {
        let begin = self.places[way.from];
        let far = length(between(begin, self.places[way.to]));
        let (x, y) = self.direction(way);
        let touches = |place: &Point| {
            let (right, down) = between(begin, *place);
            let (along, beside) = (right * x + down * y, right * y - down * x);
            along > 1.0 && along < far - 1.0 && beside.abs() < TOUCH * self.radius
        };
        self.places.iter().any(touches)
    }

    /// The ends of the stroke for a way, to the right of its middle, so that there is room for the
    /// way back. Of a way that would pass over other places only the beginning is drawn. It leads
    /// away from its end if nothing else leaves there, as at the edge of a torus, else aslant.
    fn ends(&self, way: Way, taken: &[Point]) -> [Point; 2] {
        let (x, y) = self.direction(way);
        let begin = self.places[way.from];
        let beside = 0.6 * f64::from(self.stroke());
        let at = |(x, y): Point, far: f64| {
            (begin.0 + far * x - beside * y, begin.1 + far * y + beside * x)
        };
        if !self.passes_over(way) {
            let far = length(between(begin, self.places[way.to]));
            return [at((x, y), 0.0), at((x, y), far)];
        }
        let is_free = taken.iter().all(|(right, down)| -x * right - y * down < ALIKE);
        let aslant = core::f64::consts::FRAC_1_SQRT_2;
        let to = if is_free { (-x, -y) } else { (aslant * (x + y), aslant * (y - x)) };
        [at(to, 0.0), at(to, self.radius + 0.3 * self.spacing.min(2.0 * MARGIN))]
    }
}

fn between(one: Point, other: Point) -> Point {
    (other.0 - one.0, other.1 - one.1)
}

fn length((x, y): Point) -> f64 {
    x.hypot(y)
}
