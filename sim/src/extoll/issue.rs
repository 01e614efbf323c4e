//! Ways of giving a command to the interface (section 6.4).
use crate::host::Host;
use crate::time::Time;

/// From the device's queue to the command logic (section 6.4.1).
const DEQUEUE: Time = Time::from_nanos(10);
/// A load's request on its way to the device (section 6.4.1).
const REQUEST: Time = Time::from_nanos(90);

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
    /// From the processor's instruction until the device has the descriptor.
    pub fn start(self, host: &Host) -> Time {
        match self {
            Self::TriggerPage => REQUEST + DEQUEUE + host.device_read,
            Self::Transactional => host.to_device + host.to_device,
            // Posted: the device has it after one way, of which the store itself is a part.
            Self::FlowControlled => REQUEST,
            Self::ThroughKernel => REQUEST + host.system_call,
        }
    }

    /// The time from command to command of a processor that issues one after the other. A load and
    /// an answered transaction hold it for a round trip; a posted store holds it while its bytes
    /// pass the bus.
    pub fn period(self, host: &Host, store: Time) -> Time {
        match self {
            Self::TriggerPage | Self::Transactional => host.to_device + host.to_device,
            Self::FlowControlled => store,
            Self::ThroughKernel => store + host.system_call,
        }
    }
}
