//! Datagrams between hosts: what a link needs of a network, and no promises.
//!
//! ```text
//!   routes, chosen, interfaces    which addresses there are, and which lead where
//!   faults                        loses, repeats and delays, as a plan says
//!   udp  packet  simulation       datagrams by UDP, Ethernet, within a process in virtual time
//!   datagram                      the trait of all of these, inboxes, outboxes
//!   hints                         what the network says of addresses: closed ports, no route
//!   clock, alarm, chance          the time of a net, which a simulated one has for itself
//! ```
pub(crate) mod alarm;
pub(crate) mod chance;
pub(crate) mod chosen;
pub(crate) mod clock;
pub(crate) mod crc;
pub(crate) mod datagram;
pub(crate) mod faults;
pub(crate) mod hints;
pub(crate) mod interfaces;
pub(crate) mod no_room;
pub(crate) mod packet;
pub(crate) mod poll_schedule;
pub(crate) mod routes;
pub(crate) mod simulation;
pub(crate) mod udp;
