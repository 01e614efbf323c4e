//! Streams over simulated channels, and what a port refuses.
#[path = "../common/dice.rs"]
mod dice;
mod malformed;
mod node;
mod pipe;
mod random;
mod scripts;
mod world;
