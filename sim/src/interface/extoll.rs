//! Two nodes with EXTOLL's interface.
use super::{Bench, Model, Refusal, Request, Setup, operation};
use crate::extoll::issue::Method;
use crate::extoll::{Operation as Kind, Pair, Parameters, pieces};
use crate::host::Host;
use crate::host::pcie::{Generation, Pcie};
use crate::machine::{Course, Machine};

/// The most bytes of messages, puts and gets: several operations move more than one can.
const MOST: u32 = 64 << 10;
/// The bytes that a command has in it, and those of a lock.
const WORD: u32 = 8;

pub(super) const MODEL: Model = Model {
    name: "extoll",
    about: "EXTOLL's interface of FPGAs: two nodes with VELO, RMA and an address translation unit",
    source: "EXTOLL thesis, chapters 5 to 7, and 9",
    operations: &[
        operation("velo", "messages of up to 64 B (section 7.4)", (1, MOST)),
        operation("notification", "a notification with a payload in it (7.5)", (1, WORD)),
        operation("immediate-put", "a payload in the command, into memory (7.5)", (1, WORD)),
        operation("immediate-put-notified", "the same, and the target is notified", (1, WORD)),
        operation("put", "memory to memory, up to 4 KiB each (7.5.1)", (1, MOST)),
        operation("put-notified", "the same, and the target is notified", (1, MOST)),
        operation("get", "memory of the target to memory, notified (7.5.1)", (1, MOST)),
        operation("lock", "an atomic operation in the target's lock space (7.5)", (4, WORD)),
    ],
    build,
};

fn kind(operation: &str) -> Kind {
    match operation {
        "velo" => Kind::Velo,
        "notification" => Kind::NotificationPut,
        "immediate-put" => Kind::ImmediatePut { notified: false },
        "immediate-put-notified" => Kind::ImmediatePut { notified: true },
        "put" => Kind::Put { notified: false },
        "put-notified" => Kind::Put { notified: true },
        "get" => Kind::Get,
        _ => Kind::Lock,
    }
}

/// A host behind PCI Express with eight lanes.
fn behind(generation: Generation) -> Host {
    Host::behind(&Pcie { generation, lanes: 8, ..Pcie::GEN3_X16 })
}

fn parameters(request: &Request) -> Result<Parameters, Refusal> {
    let host = request.choose(
        "host",
        &[
            ("HT400", Host::HT400),
            ("HT1000", Host::HT1000),
            ("PCIe FPGA", Host::PCIE_FPGA),
            ("PCIe gen 1", behind(Generation::One)),
            ("PCIe gen 2", behind(Generation::Two)),
            ("PCIe gen 3", behind(Generation::Three)),
            ("PCIe gen 4", behind(Generation::Four)),
            ("PCIe gen 5", behind(Generation::Five)),
        ],
    )?;
    let clock = request.clock();
    let hits = Parameters::composed(&host, clock);
    let translated = request.choose(
        "translation",
        &[("hit", hits), ("miss", hits.missing(&host, clock)), ("kernel", hits.by_kernel(&host))],
    )?;
    let issued = |method| translated.issued(method, &host, clock);
    request.choose(
        "issue",
        &[
            ("store", translated),
            ("trigger-page", issued(Method::TriggerPage)),
            ("transactional", issued(Method::Transactional)),
            ("flow-controlled", issued(Method::FlowControlled)),
            ("kernel-queue", issued(Method::ThroughKernel)),
        ],
    )
}

fn build(request: &Request) -> Result<Bench, Refusal> {
    let (parameters, kind) = (parameters(request)?, kind(request.operation));
    let setup = |courses: &dyn Fn(&Pair) -> Vec<Course>| {
        let mut machine = Machine::default();
        let courses = courses(&Pair::new(&mut machine, parameters));
        (machine, courses)
    };
    let (machine, one) = setup(&|pair| pair.pieces(kind, request.size));
    let (other, row) = setup(&|pair| {
        let pieces = pieces(kind, request.size).into_iter();
        pieces.map(|piece| pair.in_a_row(kind, piece)).collect()
    });
    Ok(Bench { alone: Setup::once(machine, one), stream: Setup::stream(other, row), transfers: 1 })
}
