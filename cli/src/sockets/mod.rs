//! `ayre sockets`: runs a program whose stream sockets go by shared memory where its peer has the
//! library, too.
//!
//! The program takes this process's place, so that its signals and its exit status are its own.

pub(crate) mod list;
mod tcp;
mod unix;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use ayre::endpoint::EndpointOptions;
use ayre::socket::policy::Policy;
use ayre::socket::user_named;

/// The file's name where it is installed, and where cargo has built it.
const NAMES: [&str; 2] = ["libayre-sockets.so", "libayre_sockets.so"];

/// The variable that names the library itself.
const LIBRARY: &str = "AYRE_SOCKETS_LIBRARY";

/// The loader's variable: libraries that come before the C library.
const PRELOAD: &str = "LD_PRELOAD";

/// The codes of a program that was not found, and of one that cannot be executed, as shells have
/// them.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// The arguments of `ayre sockets`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    after_help = "The program's own programs have the library, too. AYRE_SOCKETS=off in the \
    environment leaves all bytes to the kernel."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// The folder where programs of several network namespaces meet, such as those of containers
    #[arg(long, value_name = "FOLDER")]
    meet: Option<PathBuf>,
    /// Connections with other hosts go by encrypted links: the file of the key that both ends have.
    /// Or `plain`: by plain links
    #[arg(long, value_name = "KEYFILE")]
    hosts: Option<PathBuf>,
    /// Each process that had a peer appends a line here at its end: connections, and bytes by way
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Which connections may, must not and must go by shared memory; in place of
    /// /etc/ayre/sockets.policy
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the connections of processes that run with the library, and by which way bytes go
    List(list::Args),
}

/// Executes the program, or does what is asked in its place.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.action {
        Some(Action::List(args)) => list::run(args),
        None => execute(args),
    }
}

/// The path of a key from any folder. A mistake is told here, and not by each process.
fn read_key(path: &Path) -> Result<PathBuf> {
    EndpointOptions::new().key_file(path)?;
    Ok(fs::canonicalize(path)?)
}

/// Executes the program; comes back only where that fails.
// spec: SOCK-1, SOCK-43
fn execute(args: &Args) -> Result<ExitCode> {
    ayre::settings::check_sockets()?;
    let library = library()?;
    let mut program = Command::new(&args.program[0]);
    program.args(&args.program[1..]).env(PRELOAD, preloaded(&library, env::var_os(PRELOAD)));
    if let Some(folder) = &args.meet {
        // An error is told here, and not by each process of the program.
        let folder = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
        program.env("AYRE_SOCKETS_MEET", folder);
    }
    if let Some(key) = &args.hosts {
        let is_plain = key == Path::new("plain");
        let key = if is_plain { key.clone() } else { read_key(key)? };
        program.env("AYRE_SOCKETS_HOSTS", key);
    }
    if let Some(report) = &args.report {
        // The program may change its folder.
        program.env("AYRE_SOCKETS_REPORT", absolute(report)?);
    }
    if let Some(policy) = &args.policy {
        program.env("AYRE_SOCKETS_POLICY", checked(policy)?);
    }
    if let Some(why) = found(&args.program[0]).as_deref().and_then(obstacle) {
        let name = args.program[0].display();
        eprintln!("ayre: {name} {why}: it runs without the library, and all its bytes go by TCP");
    }
    let error = program.exec();
    eprintln!("ayre: {}: {error}", args.program[0].display());
    let is_absent = error.kind() == io::ErrorKind::NotFound;
    Ok(ExitCode::from(if is_absent { NOT_FOUND } else { NOT_EXECUTABLE }))
}

/// The path of a policy that each process of the program will read. A mistake in it is told here.
// spec: SOCK-32
fn checked(path: &Path) -> Result<PathBuf> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let (_, faults) = Policy::read(&String::from_utf8_lossy(&text), user_named);
    if !faults.is_empty() {
        let told = faults.iter().map(|it| format!("{}:{}: {it}", path.display(), it.line));
        bail!("{}", told.collect::<Vec<_>>().join("\n"));
    }
    // The program may change its folder.
    Ok(fs::canonicalize(path)?)
}

/// Where the library is: as the user says, or as it was built or installed.
fn library() -> Result<PathBuf> {
    if let Some(path) = env::var_os(LIBRARY) {
        let path = fs::canonicalize(&path).with_context(|| format!("{LIBRARY}={}", path.display()));
        return path.and_then(loadable);
    }
    let tool = env::current_exe().context("the place of this program")?;
    let folders = folders(&tool);
    let places = || folders.iter().flat_map(|folder| NAMES.map(|name| folder.join(name)));
    if let Some(found) = places().find(|place| place.is_file()) {
        return loadable(found);
    }
    let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    bail!(
        "{} is not in {}: build it by `cargo build --release -p ayre-sockets`, or name the file in \
         {LIBRARY}",
        NAMES[0],
        looked.join(", ")
    );
}

/// The folders where the library is looked for.
fn folders(tool: &Path) -> Vec<PathBuf> {
    let beside = tool.parent().unwrap_or_else(|| Path::new("/"));
    let lib = beside.parent().unwrap_or_else(|| Path::new("/")).join("lib");
    let debian = PathBuf::from(format!("/usr/lib/{}-linux-gnu/ayre", env::consts::ARCH));
    vec![beside.to_owned(), lib.clone(), lib.join("ayre"), debian]
}

/// The loader takes a list that spaces and colons part: a path that has one would be two.
fn loadable(path: PathBuf) -> Result<PathBuf> {
    let parts = |byte: &u8| matches!(byte, b' ' | b':');
    if path.as_os_str().as_bytes().iter().any(parts) {
        bail!("{}: {PRELOAD} takes no path with a space or a colon", path.display());
    }
    Ok(path)
}

/// The list of libraries to load first. Those that are there already keep their place: one that
/// replaces functions of the C library expects to be asked first.
fn preloaded(library: &Path, before: Option<OsString>) -> OsString {
    let mut list = before.unwrap_or_default();
    let is_there = |one: &[u8]| one == library.as_os_str().as_bytes();
    if list.as_bytes().split(|byte| matches!(byte, b' ' | b':')).any(is_there) {
        return list;
    }
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

/// The file that will be executed, found as a shell does.
fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// Why a program cannot take the library.
// spec: SOCK-2
fn obstacle(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let it = file.metadata().ok()?;
    // Users that the program has already are no change of rights.
    let is_other_user =
        it.mode() & libc::S_ISUID != 0 && it.uid() != rustix::process::geteuid().as_raw();
    let group = libc::S_ISGID | libc::S_IXGRP;
    let is_other_group =
        it.mode() & group == group && it.gid() != rustix::process::getegid().as_raw();
    if is_other_user || is_other_group {
        return Some("changes its user or group as it starts");
    }
    let mut headers = vec![0; 4096];
    let len = file.read(&mut headers).ok()?;
    match Elf::of(&headers[..len])? {
        Elf::Dynamic => None,
        Elf::Static => Some("is linked statically"),
        Elf::Foreign => Some("is built for another processor"),
    }
}

/// A program, as its headers tell.
#[derive(Debug, PartialEq, Eq)]
enum Elf {
    /// A loader links it as it starts.
    Dynamic,
    /// No library is loaded.
    Static,
    /// Libraries for this processor are not for it.
    Foreign,
}

impl Elf {
    /// The kind of a program, by the first bytes of its file. None where they are no program's: a
    /// script, which another program runs, or headers elsewhere in the file.
    fn of(bytes: &[u8]) -> Option<Self> {
        const X86_64: u64 = 62;
        const INTERPRETER: u64 = 3;
        let word = |at: usize, len: usize| {
            let mut word = [0; 8];
            word[..len].copy_from_slice(bytes.get(at..)?.get(..len)?);
            Some(u64::from_le_bytes(word))
        };
        if bytes.get(..4)? != b"\x7fELF" {
            return None;
        }
        // 64 bits, the lower byte first.
        if bytes.get(4..6)? != [2, 1] || word(18, 2)? != X86_64 {
            return Some(Self::Foreign);
        }
        let (table, size, count) = (word(32, 8)?, word(54, 2)?, word(56, 2)?);
        for i in 0..count {
            let place = usize::try_from(table.checked_add(i * size)?).ok()?;
            if word(place, 4)? == INTERPRETER {
                return Some(Self::Dynamic);
            }
        }
        Some(Self::Static)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of a program with these parts.
    fn program(parts: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * parts.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&62u16.to_le_bytes());
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(parts.len() as u16).to_le_bytes());
        for (i, part) in parts.iter().enumerate() {
            bytes[64 + 56 * i..][..4].copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    // spec: SOCK-2
    #[test]
    fn headers_tell_whether_a_program_is_linked_as_it_starts() {
        assert_eq!(Elf::of(&program(&[6, 3, 1])), Some(Elf::Dynamic));
        assert_eq!(Elf::of(&program(&[1, 2])), Some(Elf::Static));
        let mut other = program(&[3]);
        other[18] = 183;
        assert_eq!(Elf::of(&other), Some(Elf::Foreign));
        other[4] = 1;
        assert_eq!(Elf::of(&other), Some(Elf::Foreign), "32 bits");
        assert_eq!(Elf::of(b"#!/bin/sh\n"), None);
        assert_eq!(Elf::of(b""), None);
    }

    #[test]
    fn headers_that_are_cut_short_or_lie_tell_nothing() {
        let whole = program(&[1, 1, 1]);
        for len in 0..whole.len() - 56 {
            assert!(Elf::of(&whole[..len]).is_none_or(|it| it != Elf::Static), "{len}");
        }
        let mut lying = program(&[1]);
        lying[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Elf::of(&lying), None);
    }

    // spec: SOCK-1
    #[test]
    fn libraries_that_are_loaded_already_keep_their_place() {
        let ours = Path::new("/lib/ours.so");
        assert_eq!(preloaded(ours, None), "/lib/ours.so");
        assert_eq!(preloaded(ours, Some("".into())), "/lib/ours.so");
        assert_eq!(preloaded(ours, Some("a.so b.so".into())), "a.so b.so:/lib/ours.so");
        assert_eq!(preloaded(ours, Some("/lib/ours.so".into())), "/lib/ours.so");
    }

    #[test]
    fn paths_that_the_loader_would_part_are_refused() {
        assert!(loadable("/a b/c.so".into()).is_err());
        assert!(loadable("/a:b/c.so".into()).is_err());
        assert!(loadable("/ab/c.so".into()).is_ok());
    }
}
