//! Runs a GOAL schedule in the LogGOPS model and prints when each rank finishes, as LogGOPSim does:
//! `goal FILE [path|ended|times=N] [L=NS] [o=NS] [g=NS] [G=NS] [O=NS] [S=BYTES]`.
//! Or writes a usual one: `goal write dissemination|broadcast|doubling|ring|alltoall RANKS BYTES`.
use ayre_sim::goal::{LogGops, Pattern, Schedule, Start, run};
use ayre_sim::time::Time;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("the name of a file is missing")?;
    if file == "write" {
        return write(&arguments.collect::<Vec<_>>());
    }
    let mut times = 1;
    let mut model = LogGops::LOGGOPSIM;
    let mut path = false;
    for argument in arguments {
        match argument.as_str() {
            "path" => path = true,
            "ended" => model.hosts.start = Start::WhenEnded,
            other => match other.strip_prefix("times=") {
                Some(number) => times = number.parse()?,
                None => set(&mut model, other)?,
            },
        }
    }
    let schedule = Schedule::read(BufReader::new(File::open(&file)?))?;
    for _ in 1..times {
        run(&schedule, &model, path)?;
    }
    let report = run(&schedule, &model, path)?;
    println!("{} ranks, {} events", schedule.ranks(), report.events);
    if schedule.ranks() <= 16 {
        for (rank, at) in report.finish.iter().enumerate() {
            println!("Host {rank}: {}", at.0 / 1_000);
        }
    }
    println!("Maximum finishing time at host {}: {}", report.last_rank(), report.end().0 / 1_000);
    for step in &report.path {
        println!("{}: rank {} {:?} of line {}", step.at, step.rank, step.kind, step.line);
    }
    Ok(())
}

fn write(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [name, ranks, bytes] = arguments else {
        return Err("the pattern, ranks and bytes are expected".into());
    };
    let pattern = match name.as_str() {
        "dissemination" => Pattern::Dissemination,
        "broadcast" => Pattern::Broadcast,
        "doubling" => Pattern::Doubling,
        "ring" => Pattern::Ring,
        "alltoall" => Pattern::AllToAll,
        _ => return Err(format!("there is no pattern {name}").into()),
    };
    let mut text = String::new();
    pattern.write(ranks.parse()?, bytes.parse()?, &mut text)?;
    print!("{text}");
    Ok(())
}

fn set(model: &mut LogGops, argument: &str) -> Result<(), Box<dyn Error>> {
    let (name, value) = argument.split_once('=').ok_or("NAME=VALUE is expected")?;
    let value: u32 = value.parse()?;
    let time = Time::from_nanos(value.into());
    match name {
        "L" => model.latency = time,
        "o" => model.hosts.overhead = time,
        "g" => model.hosts.gap = time,
        "G" => model.gap_per_byte = time,
        "O" => model.hosts.overhead_per_byte = time,
        "S" => model.hosts.eager = value.into(),
        _ => return Err(format!("there is no parameter {name}").into()),
    }
    Ok(())
}
