//! One thing after the other.
