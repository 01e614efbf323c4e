//! Which features messengers have is said above all of them, in `messenger.rs` beside this folder,
//! so that nothing here names one.

/// Implemented there, once, for every state of a program.
pub(crate) trait Assembly {
    /// What features send: of [`Outgoing`](super::outgoing::Outgoing).
    type Outbound;
    /// All else of them: of [`Messenger`](super::Messenger).
    type Features;
}
