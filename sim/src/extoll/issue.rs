//! Ways of giving a command to the interface (section 6.4).
use crate::host::Host;
use crate::time::Time;

/// From the device's queue to the command logic (section 6.4.1).
const DEQUEUE: Time = Time::from_nanos(10);

/// A way of giving a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A load from a page whose address is the command. The descriptor lies in memory.
    TriggerPage,
    /// One transaction with the whole command, which is answered into a register.
    Transactional,
    /// A store into a queue that the flow control of the bus protects.
    FlowControlled,
    /// A store into that queue by the kernel.
    ThroughKernel,
}

impl Method {
    /// All of them, in the order of section 6.4.
    pub const ALL: [Self; 4] =
        [Self::TriggerPage, Self::Transactional, Self::FlowControlled, Self::ThroughKernel];

    /// From the processor's instruction until the device has the descriptor.
    pub fn start(self, host: &Host) -> Time {
        // The request itself: with the queue behind it, half of a round trip.
        let request = host.to_device - DEQUEUE;
        match self {
            Self::TriggerPage => request + DEQUEUE + host.device_read,
            Self::Transactional => host.to_device + host.to_device,
            // Posted: the device has it after one way, of which the store itself is a part.
            Self::FlowControlled => request,
            Self::ThroughKernel => request + host.system_call,
        }
    }

    /// The time from command to command of a processor that issues one after the other. A load and
    /// an answered transaction hold it for a round trip; a posted store holds it while its bytes
    /// pass the bus.
    pub fn period(self, host: &Host) -> Time {
        match self {
            Self::TriggerPage | Self::Transactional => host.to_device + host.to_device,
            Self::FlowControlled => host.store,
            Self::ThroughKernel => host.store + host.system_call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_gains_from_a_nearer_device() {
        for method in Method::ALL {
            let starts =
                [Host::PCIE_FPGA, Host::HT400, Host::HT1000].map(|host| method.start(&host));
            assert!(starts.is_sorted_by(|far, near| far > near), "{method:?}: {starts:?}");
        }
    }

    #[test]
    fn only_posted_commands_are_issued_faster_than_a_round_trip() {
        let host = Host::HT400;
        let round_trip = host.to_device + host.to_device;
        let posted = Method::ALL.map(|method| method.period(&host) < round_trip);
        assert_eq!(posted, [false, false, true, true]);
    }
}
