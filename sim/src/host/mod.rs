//! The host under a network interface: processor, memory, and the way to a device.
pub mod combine;
pub mod pci;
pub mod pcie;

use crate::time::Time;
use pcie::Pcie;

/// Bytes of a line of a cache.
const LINE: u32 = 64;

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
    /// From a program into the kernel, t_s.
    pub system_call: Time,
    /// Into the kernel and back, which is the whole cost of a call: least and most.
    pub through_kernel: (Time, Time),
    /// Walking the page table and pinning a page, without the call, t_trans: least and most.
    pub walk: (Time, Time),
    /// Unpinning a page, t_unpin.
    pub unpin: Time,
    /// A posted store into the device, for which the processor is held.
    pub store: Time,
}

impl Host {
    /// An Opteron with a device at HyperTransport 400, 16 bits wide (EXTOLL thesis, table 3-1).
    ///
    /// The cost of a whole call is in section 6.2. The time of a store is reconstructed: it passes
    /// the queues of a processor of 2 GHz in some 40 cycles.
    pub const HT400: Self = Self {
        cache: Time::from_nanos(6),
        memory: Time::from_nanos(70),
        to_device: Time::from_nanos(100),
        device_read: Time::from_nanos(280),
        interrupt: Time::from_nanos(1_000),
        system_call: Time::from_nanos(170),
        through_kernel: (Time::from_nanos(250), Time::from_nanos(300)),
        walk: (Time::from_nanos(180), Time::from_nanos(300)),
        unpin: Time::from_nanos(135),
        store: Time::from_nanos(20),
    };

    /// An Opteron with a device at HyperTransport 1000 (the same table).
    pub const HT1000: Self =
        Self { to_device: Time::from_nanos(50), device_read: Time::from_nanos(180), ..Self::HT400 };

    /// An Opteron with an FPGA behind PCI Express (table 3-2). A read takes "slightly over 1 us"
    /// from the processor. That of the device is taken to take as long, for it passes the same way.
    pub const PCIE_FPGA: Self = Self {
        to_device: Time::from_nanos(500),
        device_read: Time::from_nanos(1_000),
        ..Self::HT400
    };

    /// An Opteron with a device at a link of PCI Express, which is our choice: one line of a cache
    /// is stored or read.
    pub fn behind(link: &Pcie) -> Self {
        let memory = Self::HT400.memory;
        Self {
            to_device: link.write_time(LINE),
            device_read: link.read_time(LINE, memory),
            ..Self::HT400
        }
    }

    /// From a device's write to the load of a program that polls for it. The way is half of a
    /// device's read without the memory, and the polling load misses the cache.
    pub fn device_write(&self) -> Time {
        self.way_to_memory() + self.memory
    }

    /// From a device's write to the load of a handler that its interrupt calls.
    pub fn interrupting_write(&self) -> Time {
        self.way_to_memory() + self.interrupt + self.memory
    }

    /// From a device to the memory.
    fn way_to_memory(&self) -> Time {
        Time((self.device_read - self.memory).0 / 2)
    }

    /// The cost of the kernel to a message at one end: the middle of the two bounds.
    pub fn kernel_path(&self) -> Time {
        Time(u64::midpoint(self.through_kernel.0.0, self.through_kernel.1.0))
    }
}
