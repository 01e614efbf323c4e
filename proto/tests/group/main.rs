//! Groups over simulated channels, and what a group refuses.
#[path = "../common/dice.rs"]
mod dice;
mod hostile;
mod malformed;
mod messages;
mod oracle;
mod random;
#[path = "../common/script.rs"]
mod script;
mod scripts;
mod short;
mod world;
