//! GRIM: a network interface with firmware, and a card with an FPGA as a further endpoint.
//!
//! Source: the GRIM thesis. [`Way`](path::Way) moves a message from host to host on a
//! [`Platform`](platform::Platform): [ways into the card](inject), [firmware], [DMA](dma).
//! [`reliable`] is the protocol between interfaces, [`police`] shows limits on messages under way,
//! [`queue`] compares queues, and [`multicast`] copies messages in interfaces. [`devices`] are
//! further endpoints, and [`card`] is the one with the FPGA.
pub mod card;
pub mod devices;
pub mod dma;
pub mod firmware;
pub mod inject;
pub mod multicast;
pub mod path;
pub mod platform;
pub mod police;
pub mod queue;
pub mod reliable;

/// Bytes of a message's header (figure 4.2).
pub const HEADER: u32 = 32;

/// A miss of the interface's translation cache (table 5.3).
#[derive(Clone, Copy, Debug)]
pub struct TranslationMiss {
    /// The search that fails.
    pub search: f64,
    /// The request to the host, by DMA.
    pub request: f64,
    /// The host's interrupt.
    pub interrupt: f64,
    /// The host's translation of one page.
    pub host: f64,
}

impl TranslationMiss {
    /// With a LANai 4.
    pub const LANAI4: Self = Self { search: 10.0, request: 3.0, interrupt: 6.5, host: 2.0 };
    /// With a LANai 9.
    pub const LANAI9: Self = Self { search: 4.0, request: 1.5, interrupt: 6.0, host: 3.0 };

    /// All of it: one step behind the other.
    pub fn total(&self) -> f64 {
        self.search + self.request + self.interrupt + self.host
    }
}

/// The rate of a message that passes several stages, each of which stores it whole, from their
/// rates (section 5.5.1).
pub fn store_and_forward(rates: &[f64]) -> f64 {
    1.0 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

/// Bytes per second of a video stream.
pub fn video(width: u32, height: u32, bytes_per_pixel: u32, frames: u32) -> f64 {
    f64::from(width * height * bytes_per_pixel) * f64::from(frames)
}
