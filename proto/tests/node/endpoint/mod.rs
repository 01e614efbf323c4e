//! Endpoints: any messages, writes, reads and updates between several of them, over plain lanes and
//! rings, or over nodes and a network that errs, against an oracle.
mod ends;
mod flood;
mod hostile;
mod hosts;
mod memory;
mod oracle;
mod random;
mod ways;
mod world;
