//! The published numbers of the sources, and ours beside them.
//!
//! The rows are those of `evidence/targets.md`, which names the place of each number. A [`Check`]
//! computes a row from inputs that the row does not contain, and judges it by the row's tolerance.
//! A row without a check is listed with the reason: most of them are the one input that a model
//! needs and its source does not give.
mod dart;
mod extoll;
mod forth;
mod grim;
mod ladder;
mod targets;
mod whtra;

pub use targets::{Role, Row, rows};

/// A number that we computed, beside the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Ours.
    pub ours: f64,
    /// Half of the width of its 95 % confidence interval; zero if it is no matter of chance.
    pub half_width: f64,
    /// The least and the greatest value that agree with the row.
    pub agrees: (f64, f64),
}

impl Value {
    /// Has to equal the published number, to the last digit that is given.
    pub fn exact(ours: f64, published: f64) -> Self {
        let slack = published.abs() * 1e-9;
        Self { ours, half_width: 0.0, agrees: (published - slack, published + slack) }
    }

    /// Has to be this near to the published number, as a share of it.
    pub fn near(ours: f64, published: f64, tolerance: f64) -> Self {
        Self::within(ours, published * (1.0 - tolerance), published * (1.0 + tolerance))
    }

    /// Has to be in a range.
    pub fn within(ours: f64, least: f64, most: f64) -> Self {
        Self { ours, half_width: 0.0, agrees: (least, most) }
    }

    /// A relation that has to hold: 1 if it does, 0 if not.
    pub fn holds(relation: bool) -> Self {
        Self::exact(f64::from(u8::from(relation)), 1.0)
    }

    /// Adds a confidence interval.
    #[must_use]
    pub fn give_or_take(self, half_width: f64) -> Self {
        Self { half_width, ..self }
    }

    /// Whether it agrees with the row.
    pub fn is_good(&self) -> bool {
        (self.agrees.0..=self.agrees.1).contains(&self.ours)
    }
}

/// How a row is computed.
pub struct Check {
    /// The row's name.
    pub id: &'static str,
    /// Where ours differs by more than the tolerance, the reason; else anything a reader has to
    /// know.
    pub note: &'static str,
    run: Box<dyn Fn(u64) -> Vec<Value> + Send + Sync>,
}

impl Check {
    fn new(
        id: &'static str,
        note: &'static str,
        run: impl Fn(u64) -> Vec<Value> + Send + Sync + 'static,
    ) -> Self {
        Self { id, note, run: Box::new(run) }
    }

    /// Computes the row's values, in the order in which the row gives them. Where chance takes
    /// part, `packets` packets are measured for each of five seeds.
    pub fn run(&self, packets: u64) -> Vec<Value> {
        (self.run)(packets)
    }
}

/// All checks.
pub fn checks() -> Vec<Check> {
    let mut all = extoll::checks();
    all.extend(forth::checks());
    all.extend(dart::checks());
    all.extend(grim::checks());
    all.extend(whtra::checks());
    all
}

/// Rows without a check, and the reason for each.
pub const UNCHECKED: &[(&str, &str)] = &[
    ("EX-T5.8-hit", "The stages of the ATU are its inputs, and this is their sum."),
    ("EX-T5.8-inv", "The stages of an invalidation are its inputs, and this is their sum."),
    (
        "EX-T9.3-nput",
        "An input: it gives the cycles from packet to packet of a unit of RMA, which are not in \
         the source.",
    ),
    ("EX-F2.16", "There is no trace of HPL to run, and the source gives no numbers of calls."),
    (
        "FO-F6-light",
        "An input: it gives the pipelines of interface and switch, which are not in the source.",
    ),
    (
        "FO-C-wr",
        "An input: it gives how often the bus is lost in a write, which is not in the source.",
    ),
    ("GR-T5.4-P3-4-lat", "An input: it gives the host's software, which is not in the source."),
    ("GR-T5.4-P3-4-bw", "An input: it gives the rate of P3's stores, which is not in the source."),
    ("WH-A-F2-med", "An input: it gives the rate of copies, which is not in the source."),
    ("WH-A-F2-max", "An input: the background traffic is built from it."),
    ("WH-A-F3", "An input: the background traffic is built from it."),
    ("WH-A-tail", "An input: the background traffic is built from it."),
    ("WH-D-rt", "An input: it gives the way through the FPGA, which is not in the source."),
];
