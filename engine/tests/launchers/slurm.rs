//! Slurm on two hosts of a test: its own daemons, which know no others, and go with their value.
//!
//! A host is a network namespace with a name and processes of its own. Hosts share files, so all
//! paths of Slurm contain the host's name. Otherwise its PMIx would want one folder for the same
//! step on both hosts, and the second one would refuse to start.
use crate::common::net_hosts::{Hosts, address};
use crate::common::{Directory, Family, Process};
use std::fs::File;
use std::process::{Command, Stdio};

/// A node of Slurm is a host.
const NODES: [&str; 2] = ["ay0", "ay1"];
/// The programs that it needs besides `ip`, and their packages.
const TOOLS: [&str; 7] =
    ["srun", "slurmctld", "slurmd", "nsenter", "setpriv", "timeout", "unshare"];
/// Seconds in which daemons that come up at all have come up.
const TIMEOUT: &str = "60";

/// Two hosts under one Slurm.
pub(crate) struct Cluster {
    // They go in this order.
    _daemons: Vec<Process>,
    directory: Directory,
    hosts: Hosts,
}

impl Cluster {
    /// Starts the daemons. None, and loud words, where Slurm is not there, or does not run a job
    /// of its own here.
    pub(crate) fn new(family: &Family) -> Option<Self> {
        if let Some(tool) = TOOLS.iter().find(|tool| !is_installed(tool)) {
            eprintln!("LEFT OUT: no {tool}, so NOTHING was tested with Slurm (scripts/deps.sh)");
            return None;
        }
        let (directory, hosts) = (Directory::new(), Hosts::new()?);
        let mut cluster = Self { _daemons: Vec::new(), directory, hosts };
        cluster.configure();
        cluster._daemons = [(0, "slurmctld"), (0, "slurmd"), (1, "slurmd")]
            .map(|(host, daemon)| cluster.start(family, host, daemon))
            .into();
        if cluster.runs("--mpi=none") {
            return Some(cluster);
        }
        for entry in cluster.directory.entries() {
            let is_log = entry.extension().is_some_and(|extension| extension == "log");
            let text = is_log.then(|| std::fs::read_to_string(&entry)).and_then(Result::ok);
            eprintln!("{}: {}", entry.display(), text.unwrap_or_default());
        }
        eprintln!("LEFT OUT: Slurm runs no job here, so NOTHING was tested with it");
        None
    }

    /// Whether Slurm starts ranks in this way, of a program that is none of ours.
    pub(crate) fn runs(&self, how: &str) -> bool {
        let words = ["timeout", TIMEOUT, "srun", "-N2", "-n2", how, "true"];
        self.command(0, &[], &words).status().expect("a program that is there").success()
    }

    /// Starts ranks of this program, each on the other host than the one before it.
    pub(crate) fn start_ranks(&self, family: &Family, how: &str, test: &str) -> Process {
        let own = std::env::current_exe().expect("this program");
        let own = own.to_str().expect("a path in UTF-8");
        let ranks =
            ["srun", "-N2", "-n4", "-O", "-K", "-m", "cyclic", "--input=none", "--label", how];
        let program = [own, test, "--exact", "--nocapture", "--include-ignored"];
        self.prepare(family, self.command(0, &[], &[&ranks[..], &program].concat()))
    }

    fn start(&self, family: &Family, host: usize, daemon: &str) -> Process {
        // What is left of its steps goes with it, and it with this program.
        let alone = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        let mut command = self.command(host, &alone, &[daemon, "-D"]);
        let log = self.directory.join(&format!("{}-{daemon}.log", NODES[host]));
        let log = File::create(log).expect("a log");
        command.stderr(Stdio::from(log));
        self.prepare(family, command)
    }

    fn prepare(&self, family: &Family, command: Command) -> Process {
        family.start_command(command, |command| {
            for name in ["PMI_FD", "PMIX_RANK", "HOST"] {
                command.env_remove(name);
            }
        })
    }

    /// A command on a host, in more namespaces of its own if so asked.
    fn command(&self, host: usize, more: &[&str], words: &[&str]) -> Command {
        let net = format!("--net=/run/netns/{}", self.hosts.of(host));
        let begin = "hostname \"$1\" && mount --bind \"$2\" /etc/hosts && shift 2 && exec \"$@\"";
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter", &net, "unshare", "--uts", "--mount"]);
        command.args(more).args(["sh", "-c", begin, "sh", NODES[host]]);
        command.arg(self.directory.join("hosts")).args(words);
        command.env("SLURM_CONF", self.directory.join("slurm.conf"));
        command
    }

    fn configure(&self) {
        let at = self.directory.path().display();
        let [first, second] = NODES;
        let [first_at, second_at] = [0, 1].map(|host| address(host, 0, false).ip());
        // Nobody else is on this network, so nobody needs to be told apart.
        let configuration = format!(
            "ClusterName=ayre\nSlurmctldHost={first}\n\
             AuthType=auth/none\nCredType=cred/none\nSlurmUser=root\nSlurmdUser=root\n\
             StateSaveLocation={at}\nSlurmctldPidFile={at}/slurmctld.pid\n\
             SlurmdPidFile={at}/%n.pid\nSlurmdSpoolDir={at}/%n\nTmpFS={at}/%n\n\
             ProctrackType=proctrack/linuxproc\nMpiDefault=none\n\
             NodeName={first} State=UNKNOWN\nNodeName={second} State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES\n"
        );
        let hosts = format!("127.0.0.1 localhost\n{first_at} {first}\n{second_at} {second}\n");
        for (name, text) in [("slurm.conf", configuration), ("hosts", hosts)] {
            std::fs::write(self.directory.join(name), text).expect("a file in an own folder");
        }
    }
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).exists())
}
