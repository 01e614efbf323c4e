//! Our own interface, as the hardware is to be.
use super::{Bench, Model, Refusal, Request, operation};
use crate::machine::Machine;
use crate::nic::{Lookup, Operation, Pair, Parameters};

/// The most bytes of a put or a get here: many frames.
const MOST: u32 = 64 << 10;

pub(super) const MODEL: Model = Model {
    name: "ayre",
    about: "our own interface in hardware, which is not built: two nodes in servers",
    source: "our choice: the timing table of `ayre_sim::nic`, each row with its reason",
    operations: &[
        operation("put", "memory to memory, and the target is notified", (1, MOST)),
        operation("immediate-put", "a payload in the command, and the target is notified", (1, 8)),
        operation("message", "a message, whose lines the processor stores", (1, 4096)),
        operation("get", "memory of the target to memory, notified", (1, MOST)),
        operation("atomic", "a fetching atomic on a word of 64 bits, notified", (8, 8)),
    ],
    build,
};

fn build(request: &Request) -> Result<Bench, Refusal> {
    let lookup = request.choose("translation", &[("hit", Lookup::Hit), ("miss", Lookup::Miss)])?;
    let parameters = Parameters { clock: request.clock(), ..Parameters::server() };
    let operation = match request.operation {
        "put" => Operation::Put,
        "immediate-put" => Operation::Immediate,
        "message" => Operation::Message,
        "get" => Operation::Get,
        _ => Operation::Atomic,
    };
    Ok(Bench::of(|| {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, parameters);
        let courses = pair.courses(operation, request.size, lookup);
        (machine, courses)
    }))
}
