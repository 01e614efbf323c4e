//! FORTH's prototype: a transfer from memory to memory, and programs that post many.
use super::{Bench, Model, Refusal, Request, Setup, operation};
use crate::forth::PACKET;
use crate::forth::posting::{Sender, Style, TRANSFER_MAX};
use crate::forth::transfer::{Prototype, Start, Units};
use crate::host::pci::PciX;
use crate::machine::Machine;

pub(super) const MODEL: Model = Model {
    name: "forth",
    about: "FORTH's prototype on PCI-X: transfers, and programs that post many of them",
    source: "FORTH prototype (Papaefstathiou and others), sections III and V",
    operations: &[
        operation("write", "a remote write by a descriptor (section V.E)", (1, PACKET.1)),
        operation("write-combined", "the same, its descriptor in one store", (1, PACKET.1)),
        operation("message", "a message, stored by the processor (V.E)", (1, PACKET.1)),
        operation("post", "a batch of writes, up to the notice of their departure (V.D)", POSTED),
    ],
    build,
};

const POSTED: (u32, u32) = (1, TRANSFER_MAX);

fn build(request: &Request) -> Result<Bench, Refusal> {
    let bus = PciX { clock: request.clock(), ..PciX::forth() };
    let start = match request.operation {
        "write" => Start::Descriptor { combined: false },
        "write-combined" => Start::Descriptor { combined: true },
        "message" => Start::Message,
        _ => return post(request, bus),
    };
    let prototype = Prototype { bus, ..Prototype::forth() };
    let build = || {
        let mut machine = Machine::default();
        let units = Units::new(&mut machine);
        (machine, vec![prototype.course(&units, start, request.size)])
    };
    Ok(Bench::of(build))
}

fn post(request: &Request, bus: PciX) -> Result<Bench, Refusal> {
    let waits = Style::v1(request.number("batch"));
    let style = request.choose("style", &[("v1", waits), ("v2", Style::V2), ("v3", Style::V3)])?;
    let sender = Sender { bus, ..Sender::forth() };
    let build = || {
        let mut machine = Machine::default();
        let batch = sender.batch(&mut machine, style, request.size)?;
        Ok::<_, Refusal>((machine, vec![batch]))
    };
    let ((machine, one), (other, row)) = (build()?, build()?);
    let stream = Setup::times(other, row, style.batches());
    Ok(Bench { alone: Setup::once(machine, one), stream, transfers: style.batch })
}
