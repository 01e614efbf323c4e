//! Single interfaces in scenarios: every operation of every model, against what its library says.
use ayre_sim::dart::receive::Receiver;
use ayre_sim::extoll::{Operation, Parameters, Transfer, prototype_clock};
use ayre_sim::forth::posting::{Sender, Style};
use ayre_sim::forth::transfer::{Prototype, Start};
use ayre_sim::grim::path::{Api, Cut, Way};
use ayre_sim::grim::platform::Platform;
use ayre_sim::host::Host;
use ayre_sim::host::pcie::Pcie;
use ayre_sim::interface::{MODELS, Model};
use ayre_sim::nic;
use ayre_sim::report::Interface;
use ayre_sim::scenario::{KEYS, Kind, Scenario};
use ayre_sim::time::Time;
use ayre_sim::whtra::bridge::{Bridge, Traffic};
use ayre_sim::whtra::ht3::{HT1600_8, packet};
use ayre_sim::whtra::memory::{Kind as Access, Memory, streams};

/// Runs an operation with these lines behind it.
fn run(model: &str, operation: &str, lines: &str) -> Interface {
    let text =
        format!("work = 'interface'\ninterface = '{model}'\noperation = '{operation}'\n{lines}");
    let scenario = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let point = scenario.run().points.remove(0);
    point.interface.expect("an interface")
}

fn sized(model: &str, operation: &str, size: u32) -> Interface {
    run(model, operation, &format!("size = '{size} B'"))
}

fn close(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours / expected - 1.0).abs() <= tolerance, "{ours} where {expected} is expected");
}

/// Sizes of a range: its ends, and some between, odd ones too.
fn sizes((least, most): (u32, u32)) -> impl Iterator<Item = u32> {
    let all = [1, 4, 8, 13, 31, 32, 33, 64, 65, 500, 512, 4096, 4097, 65_536];
    all.into_iter().filter(move |size| (least..=most).contains(size))
}

/// The parts of an operation sum to its latency, and its rate is one that its units can have.
fn is_sound(told: &Interface, what: &str) {
    let sum: u64 = told.parts_ps.iter().map(|(_, picos)| picos).sum();
    assert_eq!(sum, told.latency_ps, "{what}");
    assert!(told.rate.is_finite() && told.rate > 0.0, "{what}: {}", told.rate);
    let busiest = told.busiest().expect("a unit").busy;
    assert!(busiest > 0.4 && busiest <= 1.0, "{what}: {:?}", told.units);
}

#[test]
fn every_operation_of_every_model_runs_and_takes_no_less_for_more_bytes() {
    for Model { name, operations, .. } in MODELS {
        for operation in *operations {
            let mut before = 0;
            for size in sizes(operation.sizes) {
                let told = sized(name, operation.name, size);
                let what = format!("{name}, {}, {size} B", operation.name);
                is_sound(&told, &what);
                assert!(told.latency_ps >= before, "{what}: {} after {before}", told.latency_ps);
                before = told.latency_ps;
            }
        }
    }
}

/// A parameter that is used with an operation makes no fault in any of its values, but for those
/// that the model does not have.
#[test]
fn every_choice_of_every_parameter_is_sound_or_refused_with_those_that_are_known() {
    let mut ran = 0;
    for Model { name, operations, .. } in MODELS {
        for operation in *operations {
            for key in KEYS.iter().filter(|key| key.group == "interface") {
                let Kind::Choice(choices) = key.kind else { continue };
                for (choice, _) in choices.iter().filter(|_| key.name != "interface") {
                    let (operation, key) = (operation.name, key.name);
                    let text = format!(
                        "work = 'interface'\ninterface = '{name}'\noperation = '{operation}'\n\
                         {key} = '{choice}'"
                    );
                    match Scenario::from_toml(&text) {
                        Ok(scenario) => {
                            let point = scenario.run().points.remove(0);
                            is_sound(&point.interface.unwrap(), &text);
                            ran += 1;
                        }
                        Err(error) => {
                            let told = error.to_string();
                            let known = told.contains("this interface takes")
                                || told.contains("is not used here");
                            assert!(known && told.starts_with("scenario:4:"), "{told}");
                        }
                    }
                }
            }
        }
    }
    assert!(ran > 100, "{ran}");
}

#[test]
fn extoll_is_its_pair() {
    let times = Parameters::composed(&Host::HT400, prototype_clock());
    let put = |notified| Operation::Put { notified };
    for (name, operation) in
        [("velo", Operation::Velo), ("put", put(false)), ("lock", Operation::Lock)]
    {
        assert_eq!(Time(sized("extoll", name, 8).latency_ps), times.alone(operation, 8), "{name}");
    }
    for (name, transfer) in
        [("velo", Transfer::Velo), ("put", Transfer::Put), ("get", Transfer::Get)]
    {
        for bytes in [64, 4096, 20_000] {
            let told = sized("extoll", name, bytes);
            assert_eq!(Time(told.latency_ps), times.latency(transfer, bytes), "{name} {bytes}");
        }
        let bytes = if transfer == Transfer::Velo { 64 } else { 4096 };
        let told = sized("extoll", name, bytes);
        close(told.bandwidth, times.stream(transfer, bytes), 1e-9);
        // Several in a row are as fast as one that is as long as it can be.
        close(sized("extoll", name, 4 * bytes).bandwidth, told.bandwidth, 0.01);
    }
    close(sized("extoll", "put-notified", 8).rate, times.rate(put(true), 8), 1e-9);
    let kernel = times.by_kernel(&Host::HT400);
    let told = run("extoll", "put", "translation = 'kernel'\nsize = '4 KiB'");
    close(told.bandwidth, kernel.stream(Transfer::Put, 4096), 1e-9);
}

#[test]
fn forth_is_its_prototype_and_its_programs() {
    let starts = [
        ("write", Start::Descriptor { combined: false }),
        ("write-combined", Start::Descriptor { combined: true }),
        ("message", Start::Message),
    ];
    for (name, start) in starts {
        let expected = Prototype::forth().transfer(start, 64).time();
        assert_eq!(Time(sized("forth", name, 64).latency_ps), expected, "{name}");
    }
    let styles =
        [("style = 'v1'\nbatch = 7", Style::v1(7)), ("style = 'v2'", Style::V2), ("", Style::V3)];
    for (lines, style) in styles {
        let told = run("forth", "post", &format!("{lines}\nsize = '4 KiB'"));
        close(1e12 / told.rate, Sender::forth().time(style, 4096).unwrap(), 0.01);
    }
}

#[test]
fn dart_is_its_receiver() {
    let bus = Time::from_nanos(240);
    let receiver = Receiver { bits_per_second: 622e6, period: Time::from_nanos(50), bus };
    let told = sized("dart", "deposit", 32);
    let nothing = receiver.receive(&[]);
    assert_eq!(Time(told.latency_ps), nothing.latency);
    close(told.rate, 1e12 / nothing.each.0 as f64, 1e-6);
    // Four instructions' cycles of 200 ns are longer than the data: that much later they end.
    let slow = |operation| run("dart", operation, "clock = '5 MHz'");
    let cycles = |operation| {
        let told = slow(operation);
        told.parts_ps.iter().find(|(name, _)| name == "operation logic").unwrap().1 / 200_000
    };
    assert_eq!([cycles("append"), cycles("longest")], [4, 9]);
    close(slow("longest").rate, 1e12 / (9.0 * 200_000.0), 1e-6);
    // The emulation's program waits for the end of each.
    let told = sized("decstation", "remote-read", 8);
    close(told.rate * told.latency_ps as f64, 1e12, 1e-6);
}

#[test]
fn grim_is_its_way() {
    let platform = Platform::p4_lanai9();
    for (name, api) in
        [("active-message", Api::Active), ("virtual-write", Api::Virtual), ("socket", Api::Socket)]
    {
        for bytes in [4, 1000, 100_000] {
            let lines = format!("platform = 'P4 LANai 9'\nsize = '{bytes} B'");
            let told = run("grim", name, &lines).latency_ps;
            let way = Way { platform: &platform, api, cut: Cut::LANAI9 };
            assert_eq!(Time(told), way.time(bytes), "{name} {bytes}");
        }
    }
    // A long message nears the rate of many.
    let told = sized("grim", "physical-write", 2 << 20);
    close(told.bandwidth * told.latency_ps as f64 / 1e12, f64::from(2 << 20), 0.02);
}

#[test]
fn the_memory_of_the_xd1000_is_that_of_paper_c() {
    let memory = Memory::xd1000(Time::from_nanos(850));
    assert_eq!(sized("xd1000", "load", 4).latency_ps, 850_000);
    for (operation, kind) in [
        ("load", Access::READ_32),
        ("load", Access::READ_CACHED),
        ("store", Access::WRITE_32),
        ("store", Access::WRITE_COMBINED),
    ] {
        let told = sized("xd1000", operation, kind.bytes);
        let many = memory.run(&streams(kind, 1, 400)).rate();
        close(told.bandwidth / 1e6, many, 0.05);
    }
}

#[test]
fn a_packet_of_ht3_takes_its_path() {
    for (forward, stomps) in [("with-the-header", true), ("with-the-CRC", false)] {
        let lines = format!("hops = 5\nsize = '64 B'\nforward = '{forward}'");
        let told = run("ht3", "packet", &lines);
        let expected = packet::path(&HT1600_8, 5, 76, 8, stomps);
        assert_eq!(Time(told.latency_ps), expected);
        close(told.rate, 1e12 / HT1600_8.span(76).0 as f64, 1e-6);
    }
}

#[test]
fn frames_pass_the_bridge_as_in_its_own_run() {
    let end = Time(1 << 40);
    for (frame, credits) in [(1, 64), (4, 4), (16, 64), (16, 8)] {
        let bridge = Bridge { packets: frame, ..Bridge::TEN_GIGABIT };
        let traffic = |packets: u32, credits| Traffic {
            packets: [packets.into(), 0, 0],
            credits: [credits, 0, 0],
            stuck: [false; 3],
        };
        let packets = frame.min(credits);
        let lines = format!("frame = {frame}\ncredits = {credits}\nsize = '{} B'", 64 * packets);
        let told = run("bridge", "frame", &lines);
        let alone = bridge.run(&[traffic(packets, credits.into())], end, 1)[0].end;
        let drain = told.parts_ps.iter().find(|(name, _)| name == "drain").unwrap().1;
        // There, the end is when packets come; here, when the receiver has passed them on.
        assert_eq!(Time(told.latency_ps - drain), alone, "{frame} {credits}");
        let many = bridge.run(&[traffic(packets * 2_000, credits.into())], end, 1)[0].end;
        close(told.rate, 2_000.0 * 1e12 / many.0 as f64, 0.02);
    }
}

#[test]
fn ours_is_its_pair() {
    let times = nic::Parameters::server();
    let names = [
        ("put", nic::Operation::Put),
        ("get", nic::Operation::Get),
        ("message", nic::Operation::Message),
    ];
    for (name, operation) in names {
        for (translation, lookup) in [("hit", nic::Lookup::Hit), ("miss", nic::Lookup::Miss)] {
            let lines = match name {
                "message" => String::new(),
                _ => format!("translation = '{translation}'"),
            };
            let lookup = if name == "message" { nic::Lookup::Hit } else { lookup };
            let told = run("ayre", name, &format!("{lines}\nsize = '4 KiB'"));
            let expected = times.alone(operation, 4096, lookup).time();
            assert_eq!(Time(told.latency_ps), expected, "{name} {translation}");
            // Two halves that differ by an operation.
            close(told.rate, times.rate(operation, 4096, lookup), 5e-3);
        }
    }
}

#[test]
fn the_bus_is_that_of_the_host() {
    let (link, memory) = (Pcie::GEN3_X16, Host::HT400.memory);
    for bytes in [1, 64, 512] {
        let [read, write] = ["device-read", "device-write"].map(|name| sized("bus", name, bytes));
        assert_eq!(Time(read.latency_ps), link.read_time(bytes, memory));
        assert_eq!(Time(write.latency_ps), link.write_time(bytes));
    }
    let one = run("bus", "device-read", "tags = 1\nsize = '512 B'");
    close(one.rate * one.latency_ps as f64, 1e12, 1e-6);
    let long = sized("bus", "device-write", 65_536);
    close(long.bandwidth, link.raw() * link.write_efficiency(), 1e-6);
}
