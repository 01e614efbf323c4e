//! Other hosts: how they are reached, what links report, and networks that err.
//!
//! [`NetOptions`](crate::NetOptions) say at which addresses and with which protection a port is
//! open to other hosts. [`LinkReport`] and [`WireReport`] tell what its links do. A [`FaultPlan`]
//! makes a real network worse, a [`Partition`] cuts it, and a
//! [`Simulation`](crate::Simulation) replaces it by one in virtual time.
pub use crate::link::{
    AgainReport, BuffersReport, CreditReport, LinkChannel, LinkLoad, LinkReport, LinkState,
    NetReport, PathReport, PathState, WireReport, WireReports, wire_reports,
};
pub use crate::net::chosen::{host_addresses, usable_addresses};
pub use crate::net::faults::Partition;
pub use crate::port_range::{PortRange, PortRangeError};
pub use crate::settings::choice::Ethernet;
pub use crate::settings::plan::{FaultPlan, FaultPlanError};
