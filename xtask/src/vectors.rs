//! Golden vectors: has the machines of `proto` write the files in `vectors/` anew.
//!
//! The scripts stand beside the test that replays the files, so that this tool needs none of the
//! crates that it checks, and works while they do not compile.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Writes the files; false when a script fails.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--quiet", "-p", "ayre-proto", "--test", "vectors", "--"])
        .args(["--exact", "vector_files_equal_the_output_of_the_scripts"])
        .env("AYRE_VECTORS", "write")
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    Ok(status.success())
}
