//! The library for C, by programs in C.
mod built;
mod conformance;
mod examples;
mod programs;
