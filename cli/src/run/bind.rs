//! Which core each rank runs on.

use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// The argument of `--bind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Bind {
    /// The scheduler decides.
    None,
    /// Rank i runs on the i-th usable core, modulo their number.
    Cores,
    /// Rank i runs on the i-th core of the list, modulo its length.
    List(Vec<usize>),
}

impl FromStr for Bind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(Self::None),
            "cores" => Ok(Self::Cores),
            list => {
                let mut cores = Vec::new();
                for item in list.split(',') {
                    cores.extend(parse_range(item)?);
                }
                Ok(Self::List(cores))
            }
        }
    }
}

impl Bind {
    /// The cores that ranks take in turn; empty when the scheduler decides.
    pub(crate) fn cores(&self) -> Result<Vec<usize>> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Cores => {
                let usable = sched_getaffinity(None).context("asking for the usable cores")?;
                Ok((0..CpuSet::MAX_CPU).filter(|core| usable.is_set(*core)).collect())
            }
            Self::List(cores) => Ok(cores.clone()),
        }
    }
}

/// Keeps the calling thread on one core until it is dropped.
///
/// A child inherits the binding of the thread that starts it, so that nothing need happen between
/// fork and exec.
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub(crate) fn to(core: usize) -> Result<Self> {
        let before = sched_getaffinity(None).context("asking for the usable cores")?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)
            .with_context(|| format!("core {core} is not online or not ours to use"))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A failure means that these cores have just been taken away; the kernel has then placed
        // the thread itself.
        let _ = sched_setaffinity(None, &self.before);
    }
}

fn parse_range(item: &str) -> Result<RangeInclusive<usize>> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
        bail!("`{item}` is not a core: write none, cores, or a list such as 0,2 or 0-3");
    };
    ensure!(first <= last, "the range {item} is empty");
    ensure!(last < CpuSet::MAX_CPU, "core {last} is beyond the {} cores known", CpuSet::MAX_CPU);
    Ok(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_take_ranges() {
        let parsed = |text: &str| text.parse::<Bind>().unwrap();
        assert_eq!(parsed("none"), Bind::None);
        assert_eq!(parsed("cores"), Bind::Cores);
        assert_eq!(parsed("1,0"), Bind::List(vec![1, 0]));
        assert_eq!(parsed("0-2,7"), Bind::List(vec![0, 1, 2, 7]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "1,", "3-1", "-1", "99999"] {
            assert!(text.parse::<Bind>().is_err(), "{text}");
        }
    }
}
