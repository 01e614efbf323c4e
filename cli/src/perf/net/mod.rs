//! `ayre perf --net`: Ayre between ports of two hosts, beside the sockets of the system.
//!
//! Two ranks communicate over addresses that the user gives. If he names network namespaces, each
//! rank is in one of its own, and so on a host of its own. They keep in step through shared memory,
//! so that only the measured traffic goes over the network.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

mod catalogue;
mod flood;
mod limits;
mod linked;
mod loss;
mod tcp;
mod there_and_back;
mod udp;

use super::report::Row;
use super::runner::{Plan, Runner};
use super::side::Side;
use super::{Args, Printer, wanted_sizes};
use catalogue::Operation;
use limits::{Limit, Limits};

/// The cases to measure over the network, and the addresses.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Measure ports of two hosts, beside UDP and TCP
    #[arg(long, conflicts_with_all = ["mode", "procs"])]
    net: bool,

    /// The addresses of the two ranks
    #[arg(
        long,
        value_name = "A,B",
        requires = "net",
        default_value = "127.0.0.1,127.0.0.1",
        value_parser = parse_two::<IpAddr>,
    )]
    between: [IpAddr; 2],

    /// The network namespaces of the two ranks, by name or by path
    #[arg(long, value_name = "NS1,NS2", requires = "net", value_parser = parse_two::<String>)]
    netns: Option<[String; 2]>,

    /// Measure ports that send Ethernet frames of their own, too; takes CAP_NET_RAW
    #[arg(long, requires = "net")]
    ethernet: bool,
}

impl Options {
    /// Whether the network is what is measured.
    pub(super) fn is_on(&self) -> bool {
        self.net
    }

    /// Puts this rank where it was asked to be. Sockets that are open already stay where they are.
    pub(super) fn enter(&self, rank: usize) -> Result<()> {
        let Some(name) = self.netns.as_ref().map(|names| &names[rank]) else { return Ok(()) };
        let path = if name.contains('/') { name.clone() } else { format!("/run/netns/{name}") };
        let namespace = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let namespace = namespace.with_context(|| format!("could not open {path}"))?;
        move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&namespace),
            Some(LinkNameSpaceType::Network),
        )
        .with_context(|| format!("could not enter {path} (are you root?)"))
    }

    /// Where a rank is, at any port.
    fn of(&self, rank: usize) -> SocketAddr {
        SocketAddr::new(self.between[rank], 0)
    }
}

/// The intended time of a repetition: the system's sockets are slower than shared memory, and
/// disturbances last longer.
const REPETITION: Duration = Duration::from_millis(10);
/// Long puts, and as long writes.
const BULK: &[usize] = &[4 << 10, 64 << 10, LARGEST];
const LARGEST: usize = 1 << 20;

/// Measures everything that was asked for. All ranks measure; rank 0 prints.
pub(super) fn measure_all(args: &Args, side: Side<'_>, plan: Plan) -> Result<()> {
    let plan = if args.quick { plan } else { Plan { repetition: REPETITION, ..plan } };
    let mut printer = Printer::new(args, &side)?;
    let mut limits = Limits::open(&side, &args.net)?;
    let operations = catalogue::operations(&side, &args.net)?;
    let mut runner = Runner::new(side, plan);
    for limit in Limit::ALL {
        let limit = limits.get(limit);
        for size in wanted_sizes(args, limit) {
            printer.print(&runner.measure_beside(limit, None, size)?)?;
        }
    }
    for Operation { mut case, limit, path } in operations {
        let limit = limits.get(limit);
        for size in wanted_sizes(args, &*case) {
            let row = runner.measure_beside(&mut *case, Some(limit), size)?;
            printer.print(&Row { path, ..row })?;
        }
    }
    loss::measure(args, runner.side(), plan, &mut printer)?;
    printer.end(runner.side());
    Ok(())
}

/// Two values with a comma between them.
fn parse_two<T>(text: &str) -> Result<[T; 2]>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let (first, second) = text.split_once(',').ok_or_else(|| anyhow!("expected two"))?;
    Ok([first.parse()?, second.parse()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_exactly_two_addresses() {
        let two = parse_two::<IpAddr>("10.0.0.1,fd00::2").unwrap();
        assert_eq!(two.map(|address| address.to_string()), ["10.0.0.1", "fd00::2"]);
        assert!(parse_two::<IpAddr>("10.0.0.1").is_err());
        assert!(parse_two::<IpAddr>("10.0.0.1,10.0.0.2,10.0.0.3").is_err());
    }
}
