//! A node: what stands between the operations of a port and the frames of its links; pairs of ports
//! that work on each other's memory; nodes that do so over a network that errs; and endpoints, on
//! one host and over such nodes.
mod assembly;
mod carrier;
#[path = "../common/dice.rs"]
mod dice;
mod early;
mod endpoint;
mod frames;
mod pair;
#[path = "../common/paper.rs"]
mod paper;
#[path = "../common/plain_memory.rs"]
mod plain_memory;
#[path = "../common/port.rs"]
mod port;
mod queues;
#[path = "../common/served.rs"]
mod served;
mod steps;
mod world;
