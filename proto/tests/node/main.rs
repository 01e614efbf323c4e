//! A node: what stands between the operations of a port and the frames of its links.
mod assembly;
mod carrier;
mod early;
mod frames;
#[path = "../common/paper.rs"]
mod paper;
#[path = "../common/plain_memory.rs"]
mod plain_memory;
#[path = "../common/port.rs"]
mod port;
mod queues;
#[path = "../common/served.rs"]
mod served;
