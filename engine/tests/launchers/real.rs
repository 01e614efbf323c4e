//! Libraries and launchers of others.
use super::common::{Directory, Family, Process, with_processes};
use super::slurm::Cluster;
use super::{greet, refuse};
use ayre::Port;
use std::path::PathBuf;
use std::process::Command;

/// A folder with a `libpmix` of our own.
fn library() -> Directory {
    let directory = Directory::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/launchers/pmix.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-shared", "-fPIC", source, "-o"]);
    assert!(compiler.arg(directory.join("libpmix.so.2")).status().unwrap().success());
    directory
}

/// A rank of a job of one below a launcher that speaks PMIx.
fn start_by_pmix(
    family: &Family,
    library: &Directory,
    prepare: impl FnOnce(&mut Command),
) -> Process {
    family.start_with(|command| {
        command.env("LD_LIBRARY_PATH", library.path());
        command.env("PMIX_NAMESPACE", "job").env("PMIX_RANK", "0").env_remove("PMI_FD");
        prepare(command);
    })
}

/// Joins a job of one, or finds that it cannot be, for the reason that it is told.
fn join_or_refuse() {
    if std::env::var_os("NAMED").is_some() {
        return refuse();
    }
    let port = Port::join().unwrap();
    assert_eq!((port.rank(), port.size()), (0, 1));
}

// spec: LIFE-23, LIFE-26
#[test]
fn pmix_answers_are_validated() {
    const WRONG: [(&str, &str); 15] = [
        ("init", "PMIX_ERROR"),
        ("rank", "rank 1 of 1 ranks"),
        ("no size", "PMIX_ERR_NOT_FOUND"),
        ("null size", "a value is missing"),
        ("size of another type", "a value has another type"),
        ("put", "PMIX_ERROR"),
        ("commit", "PMIX_ERROR"),
        ("fence", "PMIX_ERROR"),
        ("fence later", "PMIX_ERROR"),
        ("fence for ever", "timed out waiting for the launcher"),
        ("no text", "PMIX_ERR_NOT_FOUND"),
        ("null text", "a value is missing"),
        ("text of another type", "a value has another type"),
        ("text is null", "a value has another type"),
        ("bytes", "a value has another type"),
    ];
    with_processes(
        |_, _| join_or_refuse(),
        |family| {
            let library = library();
            for how in ["PMIX_AS_USUAL", "PMIX_AT_ONCE"] {
                let prepare = |command: &mut Command| {
                    command.env(how, "").env_remove("NAMED");
                };
                start_by_pmix(family, &library, prepare).succeeds();
            }
            let expect = |wrong: &str, named: &str, how: &str| {
                println!("{wrong}: {named}");
                let prepare = |command: &mut Command| {
                    command.env("PMIX_WRONG", wrong).env("NAMED", named).env(how, "");
                };
                start_by_pmix(family, &library, prepare).succeeds();
            };
            for (wrong, named) in WRONG {
                let how = if wrong == "fence for ever" { "HASTY" } else { "PMIX_AS_USUAL" };
                expect(wrong, named, how);
            }
            expect("put", "status -1", "PMIX_SPEECHLESS");
        },
    );
}

/// An example, built with this test: `cargo test` builds both.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(std::path::Path::parent).unwrap();
    profile.join("examples").join(name)
}

/// Runs an example by a launcher that is installed here.
fn run_by(launcher: &str, options: &[&str]) {
    let mut command = Command::new(launcher);
    command.args(options).arg(example("hello"));
    for name in ["AYRE_JOB", "AYRE_RANK", "AYRE_SIZE", "PMI_FD", "PMIX_RANK"] {
        command.env_remove(name);
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // It need not be there on a machine without others.
    command.env("OMPI_MCA_plm_rsh_agent", "false");
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("LEFT OUT: no {launcher}, so NOTHING was tested with it (scripts/deps.sh)");
            return;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for rank in 0..4 {
        assert!(text.contains(&format!("rank {rank}: hello, neighbour")), "{text}");
    }
}

// spec: LIFE-23
#[test]
fn mpich_starts_ranks() {
    run_by("mpiexec.hydra", &["-n", "4"]);
}

// spec: LIFE-23
#[test]
fn open_mpi_starts_ranks() {
    run_by("mpirun.openmpi", &["--oversubscribe", "-n", "4"]);
}

/// One of four ranks on two hosts, as Slurm sees it too.
fn talk_below_slurm() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let mut port = Port::join().unwrap();
    assert_eq!((port.rank(), port.size()), (number("SLURM_PROCID"), 4));
    assert_eq!(port.rank() % 2, number("SLURM_NODEID"), "the next rank is of the other host");
    greet(&mut port);
    let links = port.wire_report().unwrap().links;
    let mut peers: Vec<_> = links.iter().map(|link| link.peer).collect();
    peers.sort_unstable();
    let others = [1, 3].map(|other| other - port.rank() % 2);
    assert_eq!(peers, others, "links with those of the other host");
    assert!(links.iter().all(|link| link.is_sealed), "{links:?}");
    port.barrier().unwrap();
    port.leave().ok();
}

// spec: LIFE-23, LIFE-24, LIFE-25, SEAL-13
#[test]
fn slurm_starts_ranks_on_two_hosts() {
    with_processes(
        |_, _| talk_below_slurm(),
        |family| {
            let Some(cluster) = Cluster::new(family) else { return };
            for how in ["--mpi=pmi2", "--mpi=pmix"] {
                if !cluster.runs(how) {
                    eprintln!("LEFT OUT: this Slurm has no {how}, so it was NOT tested");
                    continue;
                }
                cluster
                    .start_ranks(family, how, "real::slurm_starts_ranks_on_two_hosts")
                    .succeeds();
            }
        },
    );
}
