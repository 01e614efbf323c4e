//! Endpoints: any messages, writes, reads and updates between several of them, over plain lanes and
//! rings, against an oracle.
#[path = "../common/dice.rs"]
mod dice;
mod flood;
mod hostile;
mod memory;
mod oracle;
mod random;
mod ways;
mod world;
