//! FORTH's prototype: interfaces on PCI-X, joined by buffered crossbars.
//!
//! Source: Papaefstathiou et al., "Prototyping Efficient Interprocessor Communication Mechanisms".
//!
//! ```text
//!   processor, memory ==PCI-X== interface --links-- switch --links-- interface ==PCI-X== memory
//!                                 request queues, DMA engine,
//!                                 message queues, VOQs
//! ```
//!
//! The source does not state how deep the pipelines are. One number, [`network::PIPELINE`], is
//! fitted to the delay of figure 6 under light load, and all other rows follow from it.
pub mod multipath;
pub mod network;
pub mod posting;
pub mod queues;
pub mod transfer;

pub use network::{FRAMING, PACKET, network};
