//! Streams over simulated channels, and what a port refuses.
#[path = "../common/dice.rs"]
mod dice;
mod hostile;
mod malformed;
mod node;
mod pipe;
mod random;
#[path = "../common/script.rs"]
mod script;
mod scripts;
mod world;
