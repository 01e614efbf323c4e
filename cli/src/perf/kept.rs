//! Figures that the ranks leave for the process that has started them.

use std::fs::{File, OpenOptions, read_to_string};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Deserialize;

/// A row as it was printed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Figure {
    pub(super) op: String,
    pub(super) path: String,
    pub(super) size: usize,
    pub(super) ranks: usize,
    pub(super) metric: String,
    pub(super) unit: String,
    pub(super) value: f64,
    pub(super) raw: f64,
    pub(super) raw_op: String,
    pub(super) ratio: f64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) max_ns: f64,
    pub(super) repetitions: usize,
}

/// Memory that the ranks inherit.
pub(super) struct Kept(OwnedFd);

impl Kept {
    pub(super) fn create() -> Result<Self> {
        let memory = memfd_create("ayre-perf-rows", MemfdFlags::empty());
        Ok(Self(memory.context("could not make memory for figures")?))
    }

    /// The number by which the ranks know it.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Opens it in a rank, for what comes next.
    pub(super) fn open(descriptor: u32) -> Result<File> {
        let file = OpenOptions::new().append(true).open(format!("/proc/self/fd/{descriptor}"));
        file.context("could not open the memory for figures")
    }

    /// All that ranks have left, in their order.
    pub(super) fn figures(&self) -> Result<Vec<Figure>> {
        let text = read_to_string(format!("/proc/self/fd/{}", self.descriptor()))
            .context("could not read the figures")?;
        let parse = |line| serde_json::from_str(line).with_context(|| format!("a figure: {line}"));
        text.lines().map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const ROW: &str = r#"{"op":"put","path":"direct","size":8,"ranks":2,"cores":2,"unit":"ns",
        "metric":"latency","value":71.5,"raw":64.0,"raw_op":"raw-put","ratio":1.1,"p50_ns":70.0,
        "p90_ns":72.0,"p99_ns":80.0,"p999_ns":90.0,"max_ns":100.0,"samples":9,"repetitions":3,
        "iterations":5}"#;

    #[test]
    fn figures_of_successive_ranks_are_kept_in_order() {
        let kept = Kept::create().unwrap();
        for size in ["8", "16"] {
            let mut rank = Kept::open(kept.descriptor() as u32).unwrap();
            let row = ROW.replace('\n', " ").replace("\"size\":8", &format!("\"size\":{size}"));
            writeln!(rank, "{row}").unwrap();
        }
        let figures = kept.figures().unwrap();
        assert_eq!(figures.iter().map(|figure| figure.size).collect::<Vec<_>>(), [8, 16]);
        assert_eq!((figures[0].value, &*figures[0].raw_op), (71.5, "raw-put"));
    }
}
