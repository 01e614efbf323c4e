//! Policies of routing, and their names.
use core::fmt;

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The only way, through one switch. In a star, each target has a virtual channel of its own.
    Direct,
    /// One dimension after the other. In rings, packets whose way leads over the last router to
    /// the first use the lower half of the virtual channels before it and the upper half behind.
    DimensionOrder,
    /// Up by the target's digits, then down.
    UpByTarget,
    /// Up by chance, then down.
    UpByChance,
    /// Dimension order that leaves the choice of virtual channels open. It deadlocks in rings.
    PlainDimensionOrder,
    /// By the fewest links, in any topology; of several ways that by the lowest port. It may
    /// deadlock.
    ShortestPath,
    /// By the fewest links; of several ways that which follows from router and target by a hash.
    SpreadShortestPath,
    /// Up and down a tree of shortest ways from a root, in any topology: never up again after a
    /// step down. It needs no virtual channels.
    UpDown,
    /// All steps to the west (down in the first dimension) first, in a mesh of two dimensions.
    /// Where there are two ways then, a hash of router and target decides.
    WestFirst,
    /// By the fewest links where all routers are linked and in a dragonfly, which divides the
    /// virtual channels by the number of global links behind a packet.
    Minimal,
    /// To a place that chance chooses, then to the target: to any node of a mesh, a torus or a full
    /// topology, and to any other group of a dragonfly.
    Valiant,
    /// By any shortest way through a mesh or torus, with dimension order as the escape. Packets of
    /// one pair may overtake each other.
    Adaptive,
}

impl Policy {
    /// All policies with their names and meanings.
    pub const ALL: [(Self, &'static str, &'static str); 12] = [
        (Self::Direct, "direct", "the only way through one switch"),
        (
            Self::DimensionOrder,
            "dimension-order",
            "cubes: one dimension after the other, rings with a second virtual channel",
        ),
        (
            Self::PlainDimensionOrder,
            "plain-dimension-order",
            "cubes: likewise, by any virtual channel; it may deadlock in rings",
        ),
        (Self::UpByTarget, "up-by-target", "trees: up by the target's digits, then down"),
        (Self::UpByChance, "up-by-chance", "trees: up by chance, then down"),
        (
            Self::ShortestPath,
            "shortest-path",
            "any: by the fewest links, then by the lowest port; it may deadlock",
        ),
        (
            Self::SpreadShortestPath,
            "spread-shortest-path",
            "any: by the fewest links, then by a hash of router and target; it may deadlock",
        ),
        (Self::UpDown, "up-down", "any: up a tree of shortest ways, then down"),
        (Self::WestFirst, "west-first", "meshes of two dimensions: all steps to the west first"),
        (Self::Minimal, "minimal", "full, dragonflies: by the fewest links"),
        (
            Self::Valiant,
            "valiant",
            "cubes, full, dragonflies: to a place that chance chooses, then to the target",
        ),
        (
            Self::Adaptive,
            "adaptive",
            "cubes: by any shortest way that is free, with dimension order as the escape",
        ),
    ];

    /// The names of all policies, with their meanings.
    pub const NAMES: [(&'static str, &'static str); 12] = {
        let mut names = [("", ""); 12];
        let mut at = 0;
        while at < names.len() {
            names[at] = (Self::ALL[at].1, Self::ALL[at].2);
            at += 1;
        }
        names
    };

    /// The policy with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, other, _)| *other == name).map(|(policy, ..)| *policy)
    }
}

/// Tells the name.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Self::ALL.iter().find(|(policy, ..)| policy == self);
        f.write_str(own.map_or("", |(_, name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_name_of_its_own() {
        for (policy, name, _) in Policy::ALL {
            assert_eq!((Policy::named(name), policy.to_string().as_str()), (Some(policy), name));
        }
    }
}
