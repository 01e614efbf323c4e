//! Parameters of single network interfaces.
use super::{Default, INTERFACE, Key, Kind, OURS};
use crate::interface::MODELS;

const EXTOLL: &str = "EXTOLL thesis";
const CLOCKS: &str =
    "EXTOLL thesis, chapter 9; FORTH, section V.C; DART, section 6.6; WHTRA, paper C";
const PCIE: &[&str] = &["PCIe gen 1", "PCIe gen 2", "PCIe gen 3", "PCIe gen 4", "PCIe gen 5"];
/// Operations with addresses that the interface, or the kernel, translates.
const TRANSLATED: &[&str] = &[
    "immediate-put",
    "immediate-put-notified",
    "put",
    "put-notified",
    "get",
    "virtual-write",
    "atomic",
];

/// The models as choices, and the first operation of each.
const NAMES: [(&str, &str); MODELS.len()] = {
    let mut names = [("", ""); MODELS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = (MODELS[at].name, MODELS[at].about);
        at += 1;
    }
    names
};
const FIRST: [(&[&str], &str); MODELS.len()] = {
    let mut first: [(&[&str], &str); MODELS.len()] = [(&[], ""); MODELS.len()];
    let mut at = 0;
    while at < first.len() {
        first[at] = (core::slice::from_ref(&MODELS[at].name), MODELS[at].operations[0].name);
        at += 1;
    }
    first
};

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "interface",
        group: "interface",
        kind: Kind::Choice(&NAMES),
        default: Default::Fixed("extoll"),
        meaning: "the model of a network interface; `ayre sim list NAME` has its operations",
        source: OURS,
        needs: &[INTERFACE],
    },
    Key {
        name: "operation",
        group: "interface",
        kind: Kind::Operation,
        default: Default::By { key: "interface", cases: &FIRST, other: "velo" },
        meaning: "what the interface does: one alone, and many in a row",
        source: OURS,
        needs: &[INTERFACE],
    },
    Key {
        name: "clock",
        group: "interface",
        kind: Kind::Frequency { least: 1_000_000, most: 10_000_000_000 },
        default: Default::By {
            key: "interface",
            cases: &[
                (&["forth", "xd1000"], "100 MHz"),
                (&["dart"], "20 MHz"),
                (&["ayre"], "250 MHz"),
            ],
            other: "156.25 MHz",
        },
        meaning: "the clock of the interface's logic; FORTH's is that of its bus",
        source: CLOCKS,
        needs: &[("interface", &["extoll", "forth", "dart", "xd1000", "ayre"])],
    },
    Key {
        name: "host",
        group: "interface",
        kind: Kind::Choice(&[
            ("HT400", "an Opteron with HyperTransport at 400 MHz (EXTOLL thesis, table 3-1)"),
            ("HT1000", "the same at 1 GHz (table 3-1)"),
            ("PCIe FPGA", "the same with an FPGA behind PCI Express, as measured (table 3-2)"),
            ("PCIe gen 1", "PCI Express at 2.5 GT/s; an interface has 8 lanes"),
            ("PCIe gen 2", "PCI Express at 5 GT/s"),
            ("PCIe gen 3", "PCI Express at 8 GT/s"),
            ("PCIe gen 4", "PCI Express at 16 GT/s"),
            ("PCIe gen 5", "PCI Express at 32 GT/s"),
            ("PCI-X", "64 bits at 100 MHz (FORTH prototype, section V.C)"),
        ]),
        default: Default::By {
            key: "interface",
            cases: &[(&["bus"], "PCIe gen 3")],
            other: "HT400",
        },
        meaning: "the host, and its way to the interface",
        source: EXTOLL,
        needs: &[("interface", &["extoll", "bus"])],
    },
    Key {
        name: "translation",
        group: "interface",
        kind: Kind::Choice(&[
            ("hit", "by the interface, whose TLB has the page"),
            ("miss", "by the interface, which has to ask memory or the host"),
            ("kernel", "by the kernel before the command (EXTOLL thesis, section 7.5.5)"),
        ]),
        default: Default::Fixed("hit"),
        meaning: "how addresses of programs become those of memory",
        source: "EXTOLL thesis, sections 5.2 and 5.3; GRIM thesis, table 5.3",
        needs: &[("operation", TRANSLATED)],
    },
    Key {
        name: "issue",
        group: "interface",
        kind: Kind::Choice(&[
            ("store", "a store of the command into the unit, as the prototype does"),
            ("trigger-page", "a load from a page whose address is the command (section 6.4.1)"),
            ("transactional", "one transaction that is answered into a register (6.4.2)"),
            ("flow-controlled", "a store into a queue that the bus protects, CFCQ (6.4.3)"),
            ("kernel-queue", "a store into that queue by the kernel"),
        ]),
        default: Default::Fixed("store"),
        meaning: "how a program gives its command",
        source: "EXTOLL thesis, section 6.4",
        needs: &[("interface", &["extoll"])],
    },
    Key {
        name: "style",
        group: "interface",
        kind: Kind::Choice(&[
            ("v1", "posts `batch` descriptors, then waits for all of them"),
            ("v2", "looks for a free place before each descriptor"),
            ("v3", "looks for free places before each fourth descriptor"),
        ]),
        default: Default::Fixed("v3"),
        meaning: "how a program posts many transfers",
        source: "FORTH prototype, section V.D",
        needs: &[("operation", &["post"])],
    },
    Key {
        name: "batch",
        group: "interface",
        kind: Kind::Count { least: 1, most: 128 },
        default: Default::Fixed("1"),
        meaning: "descriptors that a program posts before it waits",
        source: "FORTH prototype, section V.D",
        needs: &[("style", &["v1"])],
    },
    Key {
        name: "platform",
        group: "interface",
        kind: Kind::Choice(&[
            ("P3 LANai 4", "Pentium III at 550 MHz, a bus of 32 bits at 33 MHz"),
            ("P3 LANai 9", "the same with a faster interface"),
            ("P4 LANai 4", "Pentium 4 at 1.7 GHz, a bus of 32 bits at 33 MHz"),
            ("P4 LANai 9", "the same with a faster interface and 64 bits at 66 MHz"),
        ]),
        default: Default::Fixed("P3 LANai 4"),
        meaning: "both hosts, and their interfaces",
        source: "GRIM thesis, section 5.4.1 and table 5.4",
        needs: &[("interface", &["grim"])],
    },
    Key {
        name: "cut",
        group: "interface",
        kind: Kind::Choice(&[
            ("fragments", "in fragments that follow each other, as it was set in the end"),
            ("whole", "not at all: each stage stores the message"),
        ]),
        default: Default::Fixed("fragments"),
        meaning: "how messages are cut",
        source: "GRIM thesis, sections 5.5.1 to 5.5.5",
        needs: &[("interface", &["grim"])],
    },
    Key {
        name: "scan",
        group: "interface",
        kind: Kind::Count { least: 1, most: 64 },
        default: Default::Fixed("1"),
        meaning: "channels in which the interface looks for a message",
        source: "GRIM thesis, figure 4.10",
        needs: &[("interface", &["grim"])],
    },
    Key {
        name: "line",
        group: "interface",
        kind: Kind::Choice(&[
            ("155 Mb/s", "OC-3, for which 200 ns a cycle are enough (section 6.6)"),
            ("622 Mb/s", "OC-12, which needs 50 ns a cycle"),
        ]),
        default: Default::Fixed("622 Mb/s"),
        meaning: "the link's rate",
        source: "Osborne, hybrid deposit model, section 6.6",
        needs: &[("interface", &["dart"])],
    },
    Key {
        name: "read_latency",
        group: "interface",
        kind: Kind::Time,
        default: Default::Fixed("850 ns"),
        meaning: "the time of a load of 4 B at 100 MHz: the memory has what all others leave of it",
        source: "WHTRA, paper C, section III",
        needs: &[("interface", &["xd1000"])],
    },
    Key {
        name: "hops",
        group: "interface",
        kind: Kind::Count { least: 1, most: 8 },
        default: Default::Fixed("2"),
        meaning: "links on the way, with a switch between two of them",
        source: OURS,
        needs: &[("interface", &["ht3"])],
    },
    Key {
        name: "forward",
        group: "interface",
        kind: Kind::Choice(&[
            ("with-the-header", "a switch sends what it has, and stomps what was spoilt"),
            ("with-the-CRC", "a switch has the whole packet, and its CRC, before it sends"),
        ]),
        default: Default::Fixed("with-the-header"),
        meaning: "when a switch forwards a packet",
        source: "WHTRA, paper D, section II",
        needs: &[("interface", &["ht3"])],
    },
    Key {
        name: "frame",
        group: "interface",
        kind: Kind::Count { least: 1, most: 64 },
        default: Default::Fixed("16"),
        meaning: "packets of a frame at most",
        source: OURS,
        needs: &[("interface", &["bridge"])],
    },
    Key {
        name: "credits",
        group: "interface",
        kind: Kind::Count { least: 1, most: 4096 },
        default: Default::Fixed("64"),
        meaning: "packets for which the receiver has buffers",
        source: OURS,
        needs: &[("interface", &["bridge"])],
    },
    Key {
        name: "lanes",
        group: "interface",
        kind: Kind::Count { least: 1, most: 16 },
        default: Default::Fixed("16"),
        meaning: "lanes of PCI Express",
        source: OURS,
        needs: &[("interface", &["bus"]), ("host", PCIE)],
    },
    Key {
        name: "payload",
        group: "interface",
        kind: Kind::Bytes { least: 128, most: 4096 },
        default: Default::Fixed("256 B"),
        meaning: "data of a packet at most",
        source: "PCI Express Base Specification 5.0, section 2.2.2; servers usually have 256 B",
        needs: &[("interface", &["bus"]), ("host", PCIE)],
    },
    Key {
        name: "tags",
        group: "interface",
        kind: Kind::Count { least: 1, most: 1024 },
        default: Default::Fixed("64"),
        meaning: "reads under way at most, each of up to 512 B",
        source: OURS,
        needs: &[("interface", &["bus"]), ("host", PCIE)],
    },
];
