//! Links to other hosts: options, reports, and networks with faults.
//!
//! [`NetOptions`](crate::NetOptions) give the addresses at which a port is open to other hosts, and
//! the protection of its links. [`LinkReport`] and [`WireReport`] show the state of its links. A
//! [`FaultPlan`] adds losses and delays to a real network, a [`Partition`] cuts it, and a
//! [`Simulation`](crate::Simulation) replaces it by one in virtual time.
//!
//! All of this needs the Cargo feature `net`.
pub use crate::link::{
    AgainReport, BuffersReport, CreditReport, LinkChannel, LinkLoad, LinkReport, LinkState,
    NetReport, PathReport, PathState, WireReport, WireReports, wire_reports,
};
pub use crate::net::chosen::{host_addresses, usable_addresses};
pub use crate::net::faults::Partition;
pub use crate::port_range::{PortRange, PortRangeError};
pub use crate::settings::choice::Ethernet;
pub use crate::settings::plan::{FaultPlan, FaultPlanError};
