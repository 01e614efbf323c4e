//! A node: the machines between the operations of a port and the frames of its links. There are
//! pairs of ports that work on each other's memory, and nodes that do so over a faulty network.
//! There are endpoints, on one host and over these nodes.
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
