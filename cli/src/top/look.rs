//! One look at links and connections, compared with the look before.

use anyhow::Result;
use ayre::network::WireReports;

use super::connections;
use super::rates::{self, Traffic};
use crate::info::links::look;

/// A look. Without one before, there are no rates.
pub(super) struct Look {
    pub(super) seen: WireReports,
    pub(super) traffic: Traffic,
    /// The table of connections.
    pub(super) connections: Vec<Vec<String>>,
    links_then: rates::Sample,
    connections_then: connections::Sample,
}

impl Look {
    pub(super) fn take(before: Option<&Self>) -> Result<Self> {
        let seen = look()?;
        let none = rates::Sample::default();
        let mut traffic = Traffic::between(before.map_or(&none, |it| &it.links_then), &seen);
        let connections_then = connections::Sample::take();
        let connections = connections_then.table(before.map(|it| &it.connections_then));
        if !connections.is_empty() {
            traffic.summary += &format!("  {}", connections_then.summary());
        }
        let links_then = rates::Sample::take(&seen);
        Ok(Self { seen, traffic, connections, links_then, connections_then })
    }
}
