//! The bytes of messages.
