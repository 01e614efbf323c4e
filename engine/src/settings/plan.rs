//! Faults that a network makes on purpose.
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest delay and the longest jitter: a longer one would be a partition.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// The default for the bytes that may wait for a limited rate: 170 datagrams of 1500 bytes.
const QUEUE_BYTES: u64 = 256_000;

/// The faults that a network adds to the datagrams of one port.
///
/// Shares are probabilities from 0 to 1, drawn for each datagram alone. The same seed and the same
/// datagrams at the same times lead to the same faults.
///
/// Its text lists the differences from a network without faults, such as
/// `loss=20%,dup=1%,reorder=5%,corrupt=1%,delay=2ms,jitter=1ms,rate=100Mbit,queue=64kB,seed=7`.
///
/// ```text
/// loss dup reorder corrupt    20%  0.2
/// delay jitter                500ns  80us  2ms  1s
/// rate                        900kbit  100Mbit  2.5Gbit    a second
/// queue                       1500B  64kB  1MB
/// seed                        7
/// ```
// spec: NET-5
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultPlan {
    /// The share of datagrams that are lost.
    pub loss: f64,
    /// The share of datagrams that are sent twice.
    pub duplicate: f64,
    /// The share of datagrams that are held back until one to eight later ones have passed, or for
    /// 1 ms.
    pub reorder: f64,
    /// The share of datagrams in which one to three bits are inverted.
    pub corrupt: f64,
    /// The time that is added to each datagram.
    pub delay: Duration,
    /// The longest further delay, uniformly distributed: datagrams may overtake each other.
    pub jitter: Duration,
    /// Bits per second that pass; only payloads of datagrams count. Unlimited if `None`.
    pub rate: Option<u64>,
    /// Bytes that may wait for the rate. A datagram that comes when as many wait is lost.
    pub queue: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The mistake in a text of a plan.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultPlanError {
    /// A part is not of the form `name=value`.
    #[error("`{0}` is not `name=value`")]
    Form(String),
    /// There is no such name.
    #[error("`{0}` is none of loss, dup, reorder, corrupt, delay, jitter, rate, queue, seed")]
    Name(String),
    /// The name does not accept the value.
    #[error("`{value}` is no value for {name}, which takes {}", takes(name))]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
}

crate::error::debug_is_display!(FaultPlanError);

impl FaultPlan {
    /// A network without faults.
    pub const fn new() -> Self {
        Self {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            queue: QUEUE_BYTES,
            seed: 0,
        }
    }

    /// Sets the field of this name; `None` if the value is not allowed.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "loss" => self.loss = share(value)?,
            "dup" => self.duplicate = share(value)?,
            "reorder" => self.reorder = share(value)?,
            "corrupt" => self.corrupt = share(value)?,
            "delay" => self.delay = time(value)?,
            "jitter" => self.jitter = time(value)?,
            "rate" => self.rate = Some(amount(value, RATE_UNITS).filter(|&rate| rate > 0)?),
            "queue" => self.queue = amount(value, QUEUE_UNITS)?,
            _ => self.seed = value.parse().ok()?,
        }
        Some(())
    }
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self::new()
    }
}

const NAMES: [&str; 9] =
    ["loss", "dup", "reorder", "corrupt", "delay", "jitter", "rate", "queue", "seed"];
// Of units with the same end, the longer ones come first.
const TIME_UNITS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATE_UNITS: &[(&str, f64)] = &[("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
const QUEUE_UNITS: &[(&str, f64)] = &[("MB", 1e6), ("kB", 1e3), ("B", 1.0)];

impl FromStr for FaultPlan {
    type Err = FaultPlanError;

    fn from_str(text: &str) -> Result<Self, FaultPlanError> {
        let mut plan = Self::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| FaultPlanError::Form(part.to_owned()))?;
            if !NAMES.contains(&name) {
                return Err(FaultPlanError::Name(name.to_owned()));
            }
            plan.set(name, value).ok_or_else(|| FaultPlanError::Value {
                name: name.to_owned(),
                value: value.to_owned(),
            })?;
        }
        Ok(plan)
    }
}

impl fmt::Display for FaultPlan {
    /// Writes all differences from a network without faults. Parsing the text returns the same
    /// plan.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quiet = Self::new();
        let mut parts = Vec::new();
        let mut say = |differs, part| {
            if differs {
                parts.push(part);
            }
        };
        say(self.loss != quiet.loss, format!("loss={}", self.loss));
        say(self.duplicate != quiet.duplicate, format!("dup={}", self.duplicate));
        say(self.reorder != quiet.reorder, format!("reorder={}", self.reorder));
        say(self.corrupt != quiet.corrupt, format!("corrupt={}", self.corrupt));
        say(self.delay != quiet.delay, format!("delay={}ns", self.delay.as_nanos()));
        say(self.jitter != quiet.jitter, format!("jitter={}ns", self.jitter.as_nanos()));
        say(self.rate.is_some(), format!("rate={}bit", self.rate.unwrap_or(0)));
        say(self.queue != quiet.queue, format!("queue={}B", self.queue));
        say(self.seed != quiet.seed, format!("seed={}", self.seed));
        out.write_str(&parts.join(","))
    }
}

/// The values that a name accepts, in words.
fn takes(name: &str) -> &'static str {
    match name {
        "loss" | "dup" | "reorder" | "corrupt" => "a share such as 20% or 0.2",
        "delay" | "jitter" => "a time of a minute at most, such as 500ns, 80us, 2ms or 1s",
        "rate" => "bits a second such as 900kbit, 100Mbit or 2.5Gbit",
        "queue" => "a length such as 1500B, 64kB or 1MB",
        _ => "a whole number",
    }
}

fn share(value: &str) -> Option<f64> {
    let share = match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => value.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn time(value: &str) -> Option<Duration> {
    let time = Duration::from_nanos(amount(value, TIME_UNITS)?);
    (time <= DELAY_MAX).then_some(time)
}

/// Parses a number with one of these units, rounded to a whole number of the smallest unit.
fn amount(value: &str, units: &[(&str, f64)]) -> Option<u64> {
    let (number, scale) = units
        .iter()
        .find_map(|(unit, scale)| value.strip_suffix(unit).map(|number| (number, *scale)))?;
    // Whole numbers of the smallest unit keep all their digits.
    if scale == 1.0
        && let Ok(whole) = number.parse()
    {
        return Some(whole);
    }
    let amount = number.parse::<f64>().ok()? * scale;
    (0.0..1e18).contains(&amount).then(|| amount.round() as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // spec: NET-5
    #[test]
    fn a_plan_reads_as_it_is_meant() {
        let text = "loss=20%,dup=1%,reorder=5%,corrupt=0.01, delay=2ms,jitter=1.5us,rate=2.5Gbit,\
                    queue=64kB,seed=7";
        let plan: FaultPlan = text.parse().unwrap();
        let meant = FaultPlan {
            loss: 0.2,
            duplicate: 0.01,
            reorder: 0.05,
            corrupt: 0.01,
            delay: Duration::from_millis(2),
            jitter: Duration::from_nanos(1500),
            rate: Some(2_500_000_000),
            queue: 64_000,
            seed: 7,
        };
        assert_eq!(plan, meant);
        assert_eq!("".parse(), Ok(FaultPlan::new()));
    }

    #[test]
    fn a_malformed_fault_plan_is_refused_with_its_setting() {
        for (text, said) in [
            ("loss", "`loss` is not `name=value`"),
            ("lost=1%", "`lost` is none of loss, dup, reorder, corrupt, delay"),
            ("loss=101%", "`101%` is no value for loss"),
            ("dup=-1", "`-1` is no value for dup"),
            ("corrupt=nan", "`nan` is no value for corrupt"),
            ("delay=5", "`5` is no value for delay"),
            ("delay=61s", "`61s` is no value for delay"),
            ("jitter=-1ms", "`-1ms` is no value for jitter"),
            ("rate=0bit", "`0bit` is no value for rate"),
            ("rate=100MB", "`100MB` is no value for rate"),
            ("queue=1e30B", "`1e30B` is no value for queue"),
            ("seed=1.5", "`1.5` is no value for seed"),
        ] {
            let error = text.parse::<FaultPlan>().expect_err(text).to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_fault_plan_round_trips_through_text(
            shares in prop::array::uniform4(0.0..=1.0),
            times in prop::array::uniform2(0..=60_000_000_000_u64),
            rate in prop::option::of(1..u64::MAX),
            queue in 0..u64::MAX,
            seed in 0..u64::MAX,
        ) {
            let [loss, duplicate, reorder, corrupt] = shares;
            let [delay, jitter] = times.map(Duration::from_nanos);
            let plan =
                FaultPlan { loss, duplicate, reorder, corrupt, delay, jitter, rate, queue, seed };
            prop_assert_eq!(plan.to_string().parse(), Ok(plan));
        }

        #[test]
        fn any_text_is_a_plan_or_is_refused(text in "[a-z0-9=%,.]{0,40}") {
            let _ = text.parse::<FaultPlan>();
        }
    }
}
