//! GRIM: messages and remote writes from host to host.
use super::{Bench, Model, Refusal, Request, operation};
use crate::grim::TranslationMiss;
use crate::grim::path::{Api, Cut, Way};
use crate::grim::platform::Platform;
use crate::machine::Machine;
use crate::time::Time;

/// The most bytes of a message here.
const MOST: u32 = 2 << 20;
const SIZES: (u32, u32) = (1, MOST);

pub(super) const MODEL: Model = Model {
    name: "grim",
    about: "GRIM on Myrinet: hosts whose interfaces are processors with firmware",
    source: "GRIM thesis, chapters 4 and 5",
    operations: &[
        operation("active-message", "into the endpoint's queue (section 5.3)", SIZES),
        operation("virtual-write", "to a virtual address, which the receiver translates", SIZES),
        operation("physical-write", "to a physical address (section 5.3)", SIZES),
        operation("socket", "the emulation of sockets (section 8.3.3)", SIZES),
    ],
    build,
};

fn build(request: &Request) -> Result<Bench, Refusal> {
    let (mut platform, cut, miss) = request.choose(
        "platform",
        &[
            ("P3 LANai 4", (Platform::p3_lanai4(), Cut::LANAI4, TranslationMiss::LANAI4)),
            ("P3 LANai 9", (Platform::p3_lanai9(), Cut::LANAI9, TranslationMiss::LANAI9)),
            ("P4 LANai 4", (Platform::p4_lanai4(), Cut::LANAI4, TranslationMiss::LANAI4)),
            ("P4 LANai 9", (Platform::p4_lanai9(), Cut::LANAI9, TranslationMiss::LANAI9)),
        ],
    )?;
    let cut = request.choose("cut", &[("whole", Cut::WHOLE), ("fragments", cut)])?;
    let hit = platform.firmware.hit;
    let missed = Time((miss.total() * 1e6) as u64);
    platform.firmware.hit = request.choose("translation", &[("hit", hit), ("miss", missed)])?;
    platform.channels = request.number("scan");
    let api = match request.operation {
        "active-message" => Api::Active,
        "virtual-write" => Api::Virtual,
        "physical-write" => Api::Physical,
        _ => Api::Socket,
    };
    let build = || {
        let mut machine = Machine::default();
        let way = Way { platform: &platform, api, cut };
        let segments = way.segments(&mut machine, request.size);
        (machine, segments)
    };
    Ok(Bench::of(build))
}
