//! Parameters of scripts, and of the interfaces that carry them out.
use super::{Default, Key, Kind, Need, OURS};

const SCRIPT: Need = ("work", &["script"]);

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "script",
        group: "script",
        kind: Kind::Script,
        default: Default::Fixed(""),
        meaning: "the file of the script",
        source: "docs/simulator.md has the form",
        needs: &[SCRIPT],
    },
    Key {
        name: "pcie",
        group: "script",
        kind: Kind::Choice(&[
            ("gen1", "2.5 GT/s, 16 lanes"),
            ("gen2", "5 GT/s, 16 lanes"),
            ("gen3", "8 GT/s, 16 lanes"),
            ("gen4", "16 GT/s, 16 lanes"),
            ("gen5", "32 GT/s, 16 lanes"),
        ]),
        default: Default::Fixed("gen3"),
        meaning: "the link from our own interface (`nic`) to its host",
        source: OURS,
        needs: &[SCRIPT],
    },
    Key {
        name: "nic_clock",
        group: "script",
        kind: Kind::Count { least: 1, most: 10_000 },
        default: Default::Fixed("250"),
        meaning: "megahertz of our own interface's clock",
        source: "our choice: blocks of today's FPGAs for PCI Express 3.0 x16",
        needs: &[SCRIPT],
    },
];
