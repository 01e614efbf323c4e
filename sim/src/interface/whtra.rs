//! The WHTRA collection: a memory behind HyperTransport, a link of HyperTransport 3, and a bridge
//! over Ethernet.
use super::{Bench, Model, Refusal, Request, Setup, operation};
use crate::machine::{Course, Machine, Part, Step};
use crate::time::Time;
use crate::whtra::bridge::{Bridge, DATA, PACKET};
use crate::whtra::ht3::HT1600_8;
use crate::whtra::ht3::packet::CRC_BYTES;
use crate::whtra::memory::{Access, Kind, Memory};

pub(super) const XD1000: Model = Model {
    name: "xd1000",
    about: "a memory that an FPGA emulates behind a processor's HyperTransport link",
    source: "WHTRA, paper C, sections II and III",
    operations: &[
        operation("load", "a load, until its data are in the processor (section II.C)", (1, 64)),
        operation("store", "a posted store, until its credit is back (section II.C)", (1, 64)),
    ],
    build: xd1000,
};

pub(super) const HT3: Model = Model {
    name: "ht3",
    about: "links of HyperTransport 3 on FPGAs, with switches between them",
    source: "WHTRA, paper D, sections II and V",
    operations: &[operation("packet", "a packet with its data, to the last byte (section II)", HT)],
    build: ht3,
};

pub(super) const BRIDGE: Model = Model {
    name: "bridge",
    about: "HyperTransport's packets in frames of Ethernet, through a switch",
    source: "WHTRA, paper B, sections 3 and 4; its numbers are our choice",
    operations: &[operation("frame", "packets of 64 B in frames (section 3)", (1, 64 << 10))],
    build: bridge,
};

const HT: (u32, u32) = (1, 64);
/// Bytes of the command of a packet.
const COMMAND: u32 = 8;
/// Accesses of a stream.
const ACCESSES: u64 = 400;

fn xd1000(request: &Request) -> Result<Bench, Refusal> {
    let clock = request.clock();
    let memory = Memory { clock, ..Memory::xd1000(request.time("read_latency")) };
    let (writes, bytes) = (request.operation == "store", request.size);
    // Loads of 32 bits and stores of 64 bits, which a line of the cache or a buffer holds together.
    let instructions = bytes.div_ceil(if writes { 8 } else { 4 });
    let kind = Kind { writes, bytes, instructions };
    // None lies on a border between two lines.
    let distance = u64::from(bytes.next_power_of_two());
    let build = |count| {
        let mut machine = Machine::default();
        let access = |number| Access { thread: 0, address: number * distance, kind };
        let accesses: Vec<_> = (0..count).map(access).collect();
        let items = memory.courses(&mut machine, &accesses);
        Setup { machine, items, pieces: 1, times: 1 }
    };
    Ok(Bench { alone: build(1), stream: build(ACCESSES), transfers: 1 })
}

fn ht3(request: &Request) -> Result<Bench, Refusal> {
    const SWITCH: Part = Part("at switches");
    const LINK: Part = Part("on the last link");
    const NAMES: [&str; 8] =
        ["link 1", "link 2", "link 3", "link 4", "link 5", "link 6", "link 7", "link 8"];
    let stomps =
        request.choose("forward", &[("with-the-header", true), ("with-the-CRC", false)])?;
    let (link, crc) = (HT1600_8, CRC_BYTES as u32);
    let all = link.span(COMMAND + request.size + crc);
    let forwarded = if stomps { link.span(COMMAND) } else { all };
    let hops = request.number("hops") as usize;
    let build = || {
        let mut machine = Machine::default();
        let links = NAMES.iter().take(hops).map(|name| machine.named("links", name));
        let mut course: Course =
            links.map(|unit| Step::pipelined(SWITCH, unit, all, forwarded)).collect();
        if let Some(last) = course.last_mut() {
            *last = Step { part: LINK, latency: all, ..*last };
        }
        (machine, vec![course])
    };
    Ok(Bench::of(build))
}

/// ```text
///   credits -> sender's port -> wire -> switch's port -> wire -> buffers -> drained
///      ^                                                            |
///      '------------------------- answer ---------------------------'
/// ```
fn bridge(request: &Request) -> Result<Bench, Refusal> {
    const CREDITS: Part = Part("credits");
    const PORTS: Part = Part("ports");
    const WIRES: Part = Part("wires");
    const DRAIN: Part = Part("drain");
    let (frame, credits) = (request.number("frame"), request.number("credits"));
    let bridge = Bridge::TEN_GIGABIT;
    let answer = Time(2 * (bridge.port.span(bridge.around) + bridge.port.wire).0);
    let build = || {
        let mut machine = Machine::default();
        let room = machine.named_of("sender", "credits", credits);
        let [port, switch, drain] = [("sender", "port"), ("switch", "port"), ("receiver", "drain")]
            .map(|(place, name)| machine.named(place, name));
        let course = |packets: u32| {
            let span = bridge.port.span(bridge.around + PACKET * packets);
            let drained = Time(bridge.drain.0 * u64::from(packets));
            vec![
                Step::take(CREDITS, room, packets),
                Step::serve(PORTS, port, span),
                Step::delay(WIRES, bridge.port.wire),
                Step::serve(PORTS, switch, span),
                Step::delay(WIRES, bridge.port.wire),
                Step::serve(DRAIN, drain, drained),
                Step::give_after(CREDITS, room, packets, answer),
            ]
        };
        let packets = request.size.div_ceil(DATA);
        let most = frame.min(credits);
        let frames = (0..packets).step_by(most as usize);
        let pieces = frames.map(|first| course(most.min(packets - first))).collect();
        (machine, pieces)
    };
    Ok(Bench::of(build))
}
