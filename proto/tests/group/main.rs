//! Groups over simulated channels, and what a group refuses.
#[path = "../common/dice.rs"]
mod dice;
mod malformed;
mod messages;
mod net;
mod oracle;
mod random;
mod scripts;
mod world;
