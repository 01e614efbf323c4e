//! One link to the target's router, where all routers are linked.
use super::Hop;
use crate::topology::place_beside;

#[derive(Debug)]
pub(crate) struct Full {
    pub(super) nodes: u32,
    pub(super) channels: u16,
}

impl Full {
    #[inline]
    pub(super) fn hop(&self, router: u32, target: u32) -> Hop {
        let home = target / self.nodes;
        if home == router {
            return Hop { port: (target % self.nodes) as u16, first: 0, count: 1 };
        }
        let port = self.nodes + place_beside(router, home);
        Hop { port: port as u16, first: 0, count: self.channels }
    }
}
