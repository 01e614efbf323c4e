//! Writes a GOAL schedule that a seed decides, for comparisons: `goal_random SEED`. Its first line
//! is a comment with parameters for the model.
#[path = "../tests/goal/draw.rs"]
mod draw;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).ok_or("the seed is missing")?.parse()?;
    print!("{}", draw::schedule(seed, false)?);
    Ok(())
}
