//! The saving of a centre that shares over HyperTransport over Ethernet (paper B, section 5).

/// A centre whose blades share memory and accelerators (paper B, section 5).
#[derive(Clone, Copy, Debug)]
pub struct Centre {
    /// Blades: 10,000 cores, 16 to a blade.
    pub blades: u32,
    /// Gigabytes of a blade, and of a memory module.
    pub memory: (u32, u32),
    /// The price of a module in dollars.
    pub module: f64,
    /// The price of an accelerator, and its power when idle.
    pub accelerator: (f64, f64),
}

impl Centre {
    /// The paper's example.
    pub const EXAMPLE: Self =
        Self { blades: 625, memory: (64, 8), module: 300.0, accelerator: (350.0, 30.0) };

    /// Modules saved where blades keep this share of their memory.
    pub fn modules_saved(&self, kept: f64) -> f64 {
        f64::from(self.memory.0 / self.memory.1) * (1.0 - kept) * f64::from(self.blades)
    }

    /// Dollars and watts saved, and the share, where accelerators are pooled: from `before` to
    /// `after` for each blade.
    pub fn accelerators_saved(&self, before: f64, after: f64) -> (f64, f64, f64) {
        let all = (before - after) * f64::from(self.blades);
        (all * self.accelerator.0, all * self.accelerator.1, 1.0 - after / before)
    }
}
