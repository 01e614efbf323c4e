//! The features of messengers, as types that this folder does not name. `messenger.rs` beside this
//! folder lists them.

/// The features of a messenger. `messenger.rs` implements it once, for every state of a program.
pub(crate) trait Assembly {
    /// The sending sides of all features, a field of [`Outgoing`](super::outgoing::Outgoing).
    type Outbound;
    /// The other state of all features, a field of [`Messenger`](super::Messenger).
    type Features;
}
