//! The way between a host and its device, whatever interface the device is.
use super::{Bench, Model, Refusal, Request, operation};
use crate::host::Host;
use crate::host::pci::PciX;
use crate::host::pcie::{Generation, Pcie, Units};
use crate::machine::{Course, Machine, Part, Step};

pub(super) const MODEL: Model = Model {
    name: "bus",
    about: "a host and a device on PCI Express or PCI-X, whatever the device is",
    source: "PCI Express Base Specification 5.0, chapters 2 to 4; FORTH prototype, section V.C",
    operations: &[
        operation("device-read", "the device reads memory", SIZES),
        operation("device-write", "the device writes to memory", SIZES),
        operation("program-write", "the processor stores into the device", (1, 64)),
    ],
    build,
};

const SIZES: (u32, u32) = (1, 1 << 20);

const GENERATIONS: [(&str, Option<Generation>); 6] = [
    ("PCIe gen 1", Some(Generation::One)),
    ("PCIe gen 2", Some(Generation::Two)),
    ("PCIe gen 3", Some(Generation::Three)),
    ("PCIe gen 4", Some(Generation::Four)),
    ("PCIe gen 5", Some(Generation::Five)),
    ("PCI-X", None),
];

fn build(request: &Request) -> Result<Bench, Refusal> {
    let generation = request.choose("host", &GENERATIONS)?;
    let build = || {
        let mut machine = Machine::default();
        let pieces = match generation {
            Some(generation) => pcie(request, generation, &mut machine),
            None => vec![pci_x(request, &mut machine)],
        };
        (machine, pieces)
    };
    Ok(Bench::of(build))
}

/// Reads of as many bytes as one may ask for, or a write.
fn pcie(request: &Request, generation: Generation, machine: &mut Machine) -> Vec<Course> {
    let link = Pcie {
        generation,
        lanes: request.number("lanes"),
        payload: request.number("payload"),
        tags: request.number("tags"),
        ..Pcie::GEN3_X16
    };
    let units = Units::new(machine, &link);
    let bytes = request.size;
    let by_device = request.operation == "device-write";
    if by_device || request.operation == "program-write" {
        return vec![link.write_course(&units, by_device, bytes)];
    }
    let reads = (0..bytes).step_by(link.read as usize).map(|first| bytes - first);
    reads.map(|left| link.read_course(&units, left, Host::HT400.memory)).collect()
}

fn pci_x(request: &Request, machine: &mut Machine) -> Course {
    const BUS: Part = Part("bus");
    let (bus, unit) = (PciX::forth(), machine.named("host", "bus"));
    let cycles = match request.operation {
        "device-read" => bus.read(request.size),
        "device-write" => bus.write(request.size),
        _ => bus.write_combined(bus.words(request.size)),
    };
    vec![Step::serve(BUS, unit, bus.span(cycles))]
}
