//! Regular topologies are recognised: one that a construction makes goes by its policies, too.
use super::{Dragonfly, Link, Topology};
use std::collections::HashMap;

impl Topology {
    /// This topology with the shape of the construction that makes just its routers, ports, links
    /// and nodes, if there is one. Routers have to be numbered as there.
    #[must_use]
    pub(super) fn recognised(self) -> Self {
        let sorted = |topology: &Self| {
            let mut links = topology.links.clone();
            links.sort_unstable_by_key(|link| (link.from.router, link.from.port));
            links
        };
        let own = sorted(&self);
        let equals = |other: &Self| {
            other.ports == self.ports && other.nodes == self.nodes && sorted(other) == own
        };
        match self.candidates().into_iter().find(equals) {
            Some(regular) => Self { shape: regular.shape, ..self },
            None => self,
        }
    }

    /// Constructions of the right size.
    fn candidates(&self) -> Vec<Self> {
        let (routers, nodes) = (self.ports.len() as u32, self.nodes.len() as u32);
        let ports: u32 = self.ports.first().map_or(0, |ports| (*ports).into());
        let mut all = vec![Self::star(nodes)];
        if let Some(sides) = self.sides() {
            all.extend([Self::mesh(&sides), Self::torus(&sides)]);
        }
        // A tree has half of its ports to the power of its levels as nodes.
        let half = ports / 2;
        let levels = (1..24).find(|levels| half.saturating_pow(*levels) >= nodes).unwrap_or(1);
        all.push(Self::tree(half, levels));
        let at_each = nodes.checked_div(routers).unwrap_or_default();
        all.push(Self::full(routers, at_each));
        // The ports of a router that lead to others: a - 1 in its group, and h to other groups.
        let links = (ports + 1).saturating_sub(at_each);
        let numbers = |a| Dragonfly { routers: a, nodes: at_each, globals: links - a };
        let dragonfly = (2..links).map(numbers).find(|one| one.groups() * one.routers == routers);
        all.extend(dragonfly.map(Self::dragonfly));
        let fits = |other: &Self| {
            let sizes = |one: &Self| [one.ports.len(), one.nodes.len(), one.links.len()];
            sizes(other) == sizes(self)
        };
        all.into_iter().flatten().filter(fits).collect()
    }

    /// The sides that a mesh or torus would have: port `2 d` of the first router leads up in
    /// dimension `d`, past as many routers as all dimensions before have.
    fn sides(&self) -> Option<Vec<u32>> {
        let first = |link: &&Link| link.from.router == 0;
        let ups: HashMap<_, _> =
            self.links.iter().filter(first).map(|link| (link.from.port, link.to.router)).collect();
        let mut strides: Vec<_> = (0..).map_while(|d| ups.get(&(2 * d)).copied()).collect();
        strides.push(self.ports.len() as u32);
        let side = |pair: &[u32]| {
            let [one, next] = [pair[0], pair[1]];
            (one > 0 && next % one == 0).then(|| next / one)
        };
        strides.windows(2).map(side).collect()
    }
}
