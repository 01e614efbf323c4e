//! What a group refuses.
