//! What users choose by a word.

/// Who performs operations on the target's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The initiator's processor, in memory that the target has handed over: for processes that
    /// trust each other not to break the protocol.
    #[default]
    Direct,
    /// The target's engine, on commands it checks: for processes that do not.
    Mediated,
}

/// Whether a port sends short datagrams straight over Ethernet, past the system's IP and UDP: half
/// the time for a small message. All else goes by UDP, as does all to ports that do not answer
/// frames, so that ports of any kind understand each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ethernet {
    /// UDP alone.
    Never,
    /// Where this process may open packet sockets (it has the capability `CAP_NET_RAW`), the
    /// interface is one of Ethernet, and the other port is on the same one, by its address.
    #[default]
    IfAllowed,
    /// To open the port fails where this process may not, or has no Ethernet there.
    Required,
}
