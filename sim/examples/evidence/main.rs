//! Writes the published numbers of the sources beside ours, as Markdown and as a page for a
//! browser.
//!
//! `cargo run --release -p ayre-sim --example evidence FOLDER [packets]`
mod page;

use page::{Evidence, PACKETS, html, markdown};
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("evidence FOLDER [packets]")?);
    let packets = arguments.next().map_or(Ok(PACKETS), |count| count.parse())?;
    let evidence = Evidence::compute(packets);
    fs::write(folder.join("evidence.md"), markdown::page(&evidence))?;
    fs::write(folder.join("evidence.html"), html::page(&evidence))?;
    Ok(())
}
