//! Jobs over several hosts: an agent on each starts the ranks there.
//!
//! ```text
//!                                            job directory
//!   launcher -- ssh -- agent on a: ranks 0, 1     0.sock, 1.sock, 2.addr, 3.addr, key
//!            `- ssh -- agent on b: ranks 2, 3     0.addr, 1.addr, 2.sock, 3.sock, key
//! ```
//!
//! The launcher talks with an agent over that one's input and output, so what starts it (`ssh`,
//! `srun`, ...) also proves who is who and keeps others out, and no port is opened. Each host has a
//! job directory of its own. Besides what ranks of one host are told, an agent tells its ranks
//!
//! | variable | is |
//! |---|---|
//! | `AYRE_HOST_RANKS` | `first..end`: the ranks of this host, without the one behind `..` |
//! | `AYRE_ADDRESSES` | if the user has named networks: the IP addresses to listen at, up to four |
//!
//! and it writes the job's key, 64 hexadecimal digits, to `key` in the directory. A rank that has
//! peers on other hosts writes `<rank>.addr` there ([`files`]); the files of all other hosts'
//! ranks appear beside it.

mod agent;
mod channel;
mod files;
mod here;
mod placement;
mod remote;
mod slurm;
mod uplink;
mod via;

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use ayre::network::PortRange;

pub(crate) use self::agent::run as serve;
use self::channel::{Assignment, Secret};
use self::placement::{Host, Place, parse_host};
use self::remote::Remote;
use self::via::{Agent, Via};
use super::Args;
use super::directory::random;
use super::job::{Job, JobSignals};
use super::ranks::OF_OTHER_JOBS;

/// The arguments of `ayre run` for jobs on several hosts.
#[derive(clap::Args)]
#[command(next_help_heading = "Several hosts")]
pub(super) struct Options {
    /// Hosts to run on, each with the number of ranks it takes; their ranks have no input. One that
    /// is this machine, by name or address, needs no ssh. Within a Slurm allocation, without this
    /// and -n, all of its hosts and tasks
    #[arg(long, value_name = "HOST[:RANKS],...", value_delimiter = ',', value_parser = parse_host)]
    hosts: Vec<Host>,

    /// How many ranks a host takes that is named without a number
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u16).range(1..))]
    per_host: Option<u16>,

    /// How to start {command} on {host}, in place of ssh, on this machine too
    #[arg(long, value_name = "TEMPLATE")]
    via: Option<Via>,

    /// How long the hosts may take to answer before the job fails
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = super::parse_seconds)]
    connect_timeout: Duration,

    /// The tool `ayre` on the hosts, if it is not where it is here
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// The places where ranks listen for other hosts: an interface, a network such as 10.1.0.0/16
    /// or an address, for each of up to four paths, all of which are used. By default those of
    /// AYRE_NET, or all addresses that others may reach, of which each link uses one that answers
    #[arg(long, value_name = "INTERFACE|NETWORK,...", value_delimiter = ',')]
    net: Vec<String>,

    /// UDP ports that ranks take for links between hosts, those that a firewall lets pass:
    /// FIRST-LAST, with one for each rank of a host and each path. By default those of AYRE_PORTS,
    /// or any that are free
    #[arg(long, value_name = "FIRST-LAST")]
    ports: Option<PortRange>,

    /// After how long without a sign of life a rank of another host is not heard: what goes to it
    /// waits; by default what AYRE_SILENCE says, or 3
    #[arg(long, value_name = "SECONDS", value_parser = ayre::settings::seconds)]
    silence: Option<Duration>,

    /// After how long without a sign of life a rank of another host is taken for dead; by default
    /// what AYRE_DEAD_AFTER says, or 60
    #[arg(long, value_name = "SECONDS", value_parser = ayre::settings::seconds)]
    dead_after: Option<Duration>,

    /// For closed networks: links between hosts are neither encrypted nor authenticated. Anybody
    /// who can read the network can then read and write the ranks' memory
    #[arg(long)]
    plain: bool,

    /// Variables to set for the ranks, or to hand on; those that begin with AYRE_ always are
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
}

/// Where the ranks of a job run, and how to get there.
pub(super) struct Layout {
    places: Vec<Place>,
    via: Via,
    /// The user's own way to start agents is gone everywhere.
    is_own_way: bool,
}

impl Options {
    /// The hosts of the job; none if it runs on this machine only.
    pub(super) fn layout(&self, ranks: Option<u16>) -> Result<Option<Layout>> {
        let allocated = match (self.hosts.is_empty(), ranks) {
            (true, None) => slurm::allocation()
                .context("the allocation of Slurm (with -n N or --hosts it is not looked at)")?,
            _ => None,
        };
        let (hosts, usual) = match allocated {
            Some(hosts) => (hosts, Via::srun()),
            None if self.hosts.is_empty() => {
                ensure!(!self.is_given(), "this is for several hosts: name them with --hosts");
                return Ok(None);
            }
            None => (self.hosts.clone(), Via::ssh()),
        };
        let places = placement::place(&hosts, self.per_host, ranks)?;
        ensure!(!places.is_empty(), "no host takes a rank");
        let is_own_way = self.via.is_some();
        Ok(Some(Layout { places, via: self.via.clone().unwrap_or(usual), is_own_way }))
    }

    /// Whether anything was asked for that only several hosts have.
    fn is_given(&self) -> bool {
        self.per_host.is_some()
            || self.via.is_some()
            || self.agent.is_some()
            || !self.net.is_empty()
            || self.ports.is_some()
            || self.silence.is_some()
            || self.dead_after.is_some()
            || self.plain
            || !self.env.is_empty()
    }

    fn agent(&self) -> Result<Agent> {
        let path = match &self.agent {
            Some(path) => path.clone(),
            None => env::current_exe().context("finding out where this program is")?,
        };
        Ok(Agent { path })
    }
}

/// Runs the job; the exit code is the job's.
pub(super) fn run(args: &Args, layout: &Layout) -> Result<ExitCode> {
    crate::sys::keep_child_status();
    let assignments = assignments(args, &layout.places)?;
    // Before the signals are blocked, and with them for whatever this process starts. One that
    // comes until then ends this process; the agents see that and end too.
    let started = remote::start(layout, &args.hosts.agent()?)?;
    let signals = JobSignals::block().context("setting up signal handling")?;
    let remote = Remote::attend(started, assignments, args.hosts.connect_timeout)?;
    let code = Job::new(args, signals, remote).run()?;
    Ok(ExitCode::from(code))
}

fn assignments(args: &Args, places: &[Place]) -> Result<Vec<Assignment>> {
    let size = places.last().map_or(0, |place| place.ranks.end);
    let directory = env::current_dir().context("the working directory")?;
    let environment = environment(&args.hosts)?;
    let net = match &args.hosts.net[..] {
        [] => ayre::settings::net()?,
        given => given.to_vec(),
    };
    let key = Secret(random()?);
    let assignment = |place: &Place| Assignment {
        first: place.ranks.start,
        count: place.ranks.end - place.ranks.start,
        size,
        program: args.program.iter().map(|word| word.as_bytes().to_vec()).collect(),
        environment: Secret(environment.clone()),
        directory: directory.as_os_str().as_bytes().to_vec(),
        bind: args.bind.clone(),
        mode: args.mode,
        prefix: args.prefix,
        net: net.clone(),
        key: key.clone(),
    };
    Ok(places.iter().map(assignment).collect())
}

/// The variables that go along, as bytes; what options say is stronger.
// spec: LIFE-23
fn environment(options: &Options) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let is_ours = |name: &OsString| {
        name.as_bytes().starts_with(b"AYRE_") && !OF_OTHER_JOBS.iter().any(|other| name == other)
    };
    let ours = env::vars_os().filter(|(name, _)| is_ours(name));
    let mut all: Vec<_> = ours.map(|(name, value)| (name.into_vec(), value.into_vec())).collect();
    for text in &options.env {
        let bytes = text.as_bytes();
        let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => (&bytes[..at], bytes[at + 1..].to_vec()),
            None => {
                let Some(value) = env::var_os(text) else {
                    bail!("there is no variable {} to hand on", text.display());
                };
                (bytes, value.into_vec())
            }
        };
        ensure!(!name.is_empty() && !bytes.contains(&0), "a variable has no name");
        all.push((name.to_vec(), value));
    }
    if options.plain {
        all.push((b"AYRE_PROTECTION".to_vec(), b"plain".to_vec()));
    }
    if let Some(range) = options.ports {
        all.push((b"AYRE_PORTS".to_vec(), range.to_string().into_bytes()));
    }
    for (name, time) in [("AYRE_SILENCE", options.silence), ("AYRE_DEAD_AFTER", options.dead_after)]
    {
        let text = time.map(|time| time.as_secs_f64().to_string().into_bytes());
        all.extend(text.map(|text| (name.as_bytes().to_vec(), text)));
    }
    if !options.net.is_empty() {
        all.push((b"AYRE_NET".to_vec(), options.net.join(",").into_bytes()));
    }
    Ok(all)
}
