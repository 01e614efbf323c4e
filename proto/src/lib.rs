//! The state machines and formats of Ayre.
//!
//! Everything that decides the meaning of an operation stands here, and nothing that does I/O: no
//! clock, no thread, no system call, no pointer. Nothing is allocated after construction, except if
//! the owner has a table grow. The engine runs these machines over shared memory; a simulator or a
//! hardware model can run the same ones.
//!
//! | module | machine or format | specification |
//! |---|---|---|
//! | [`units`] | ports, keys, claims, extents | spec/00, spec/20 |
//! | [`limits`] | every compile-time bound | spec/80 |
//! | [`fault`] | what can go wrong with an operation | spec/70 |
//! | [`refusal`] | why a connection is refused | spec/95 |
//! | [`lane`] | ring of self-validating lines: sender and receiver | spec/90 |
//! | [`ring`] | where pieces lie in a ring of bytes: writer and reader | spec/46 |
//! | [`notify`] | notification classes and records | spec/30 |
//! | [`combine`] | operations and number types, as pure functions | spec/46 |
//! | [`alu`] | atomic operations on words, in terms of these | spec/10 |
//! | [`command`] | commands and responses of mediated connections | spec/90 |
//! | [`xlate`] | claim to memory: translation, rights, revocation; memory regions | spec/20, 46 |
//! | [`execute`] | what a valid command does, through [`execute::Effects`] | spec/10 |
//! | [`segment`] | cutting strided and long transfers | spec/10 |
//! | [`pending`] | what an initiator still waits for | spec/60 |
//! | [`lock`] | lock and epoch words as atomic transitions | spec/10 |
//! | [`matching`] | which matched message goes into which receive | spec/45 |
//! | [`envelope`], [`rma`] | what endpoints tell each other | spec/46 |
//! | [`endpoint`] | messages to receives, RMA: all that an endpoint decides | spec/46 |
//! | [`deposit`] | messages that combine what sender and receiver know | spec/55 |
//! | [`collective`] | who of a group sends what to whom, and the brackets of sums | spec/49 |
//! | [`group`] | messages to all members of a group, in one order | spec/48 |
//! | [`stream`] | pipelines of stages at several ports, with credit for each hop | spec/50 |
//! | [`socket`] | streams of sockets: by the kernel or by a ring, changed at marks | spec/58 |
//! | [`logical`] | logical channels: whose turn it is, and room for each | spec/52 |
//! | [`node`] | a whole node, and the machines that it consists of | spec/10, 30, 60, 89 |
//! | [`link`] | the link between hosts: frames, channels, paths, pace | spec/85, 86, 91 |
//!
//! A machine changes its own state first and then causes effects; every check precedes the first
//! effect; effects cannot fail.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod active;
pub mod alu;
pub mod collective;
pub mod combine;
pub mod command;
pub mod deposit;
pub mod endpoint;
pub mod envelope;
pub mod execute;
pub mod fault;
pub mod group;
pub mod heap;
mod keyed;
pub mod lane;
pub mod limits;
pub mod link;
pub mod lock;
pub mod logical;
pub mod matching;
pub mod node;
pub mod notify;
pub mod pending;
pub mod refusal;
pub mod ring;
pub mod rma;
pub mod segment;
pub mod socket;
pub mod stream;
pub mod units;
pub mod xlate;
