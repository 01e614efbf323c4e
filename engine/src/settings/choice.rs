//! Settings that are one of a few words.

/// The processor that performs operations on the target's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The initiator's processor accesses memory that the target has handed over. For processes
    /// that trust each other not to break the protocol.
    #[default]
    Direct,
    /// The target's engine executes commands, and checks each. For processes that do not trust each
    /// other.
    Mediated,
}

/// Whether a port sends short datagrams directly over Ethernet, past the system's IP and UDP. That
/// halves the time of a small message. All other datagrams use UDP, and so do all those to ports
/// that do not answer frames: all ports understand each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ethernet {
    /// Never: UDP only.
    Never,
    /// Where this process may open packet sockets (capability `CAP_NET_RAW`), the interface is an
    /// Ethernet one, and the other port's address is on the same Ethernet.
    #[default]
    IfAllowed,
    /// Always: a port does not open where this process may not open packet sockets, or has no
    /// Ethernet.
    Required,
}
