//! The host under a network interface: processor, memory, and the way to a device.
pub mod pci;

use crate::time::Time;

/// The times of a host, as they are seen from a program and from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// A load that hits the cache, t_cc.
    pub cache: Time,
    /// A load from main memory, t_cm.
    pub memory: Time,
    /// From a processor's store to the device, t_cd: half of a round trip.
    pub to_device: Time,
    /// From a device's read to its data, t_dm: a round trip.
    pub device_read: Time,
    /// From a device's message to the handler of its interrupt, t_i.
    pub interrupt: Time,
    /// A call of the kernel and its return, t_s.
    pub system_call: Time,
    /// Walking the page table and pinning a page, without the call, t_trans: least and most.
    pub walk: (Time, Time),
    /// Unpinning a page, t_unpin.
    pub unpin: Time,
}

impl Host {
    /// An Opteron with a device at HyperTransport 400, 16 bits wide (EXTOLL thesis, table 3-1).
    pub const HT400: Self = Self {
        cache: Time::from_nanos(6),
        memory: Time::from_nanos(70),
        to_device: Time::from_nanos(100),
        device_read: Time::from_nanos(280),
        interrupt: Time::from_nanos(1_000),
        system_call: Time::from_nanos(170),
        walk: (Time::from_nanos(180), Time::from_nanos(300)),
        unpin: Time::from_nanos(135),
    };

    /// An Opteron with a device at HyperTransport 1000 (the same table).
    pub const HT1000: Self =
        Self { to_device: Time::from_nanos(50), device_read: Time::from_nanos(180), ..Self::HT400 };

    /// From a device's write to the load of a program that polls for it. The way is half of a
    /// device's read without the memory, and the polling load misses the cache.
    pub fn device_write(&self) -> Time {
        Time((self.device_read - self.memory).0 / 2) + self.memory
    }
}
