//! The command that runs programs with the library for sockets.

use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ayre::socket::{Addresses, Connection, Door, Ends, Pair, Reason, keep_reason};
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix};
use serde_json::{Value, json};

/// A folder with a library that does nothing: the loader warns of it, and goes on.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ayre-sockets-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("libayre-sockets.so"), b"").unwrap();
        Self(path)
    }

    fn library(&self) -> PathBuf {
        self.0.join("libayre-sockets.so")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The tool, with nothing of the library in its environment.
fn tool(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.arg("sockets");
    command.env_remove("LD_PRELOAD").env_remove("AYRE_SOCKETS");
    for name in ["LIBRARY", "REPORT", "POLICY"] {
        command.env_remove(format!("AYRE_SOCKETS_{name}"));
    }
    command
}

fn with_library(folder: &Folder) -> Command {
    let mut command = tool(Path::new(env!("CARGO_BIN_EXE_ayre")));
    command.env("AYRE_SOCKETS_LIBRARY", folder.library());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The value of a variable that the program `env` has printed.
fn value(output: &Output, name: &str) -> Option<String> {
    let said = text(&output.stdout);
    said.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

// spec: SOCK-1
#[test]
fn a_program_has_the_library_behind_those_that_are_loaded_already() {
    let folder = Folder::new("loaded");
    let library = folder.library().display().to_string();
    let output = with_library(&folder).arg("env").output().unwrap();
    assert_eq!(value(&output, "LD_PRELOAD"), Some(library.clone()), "{output:?}");
    assert_eq!(value(&output, "AYRE_SOCKETS_REPORT"), None);
    let other = "/none/other.so";
    let output = with_library(&folder).arg("env").env("LD_PRELOAD", other).output().unwrap();
    assert_eq!(value(&output, "LD_PRELOAD"), Some(format!("{other}:{library}")));
}

// spec: SOCK-1
#[test]
fn files_are_named_so_that_they_are_found_from_any_folder() {
    let folder = Folder::new("files");
    fs::create_dir(folder.0.join("meet")).unwrap();
    let mut command = with_library(&folder);
    command.args(["--meet", "meet", "--report", "report", "--", "env"]);
    let output = command.current_dir(&folder.0).output().unwrap();
    let meet = fs::canonicalize(folder.0.join("meet")).unwrap();
    assert_eq!(value(&output, "AYRE_SOCKETS_MEET"), Some(meet.display().to_string()));
    let report = value(&output, "AYRE_SOCKETS_REPORT").unwrap();
    assert!(report.starts_with('/') && report.ends_with("/report"), "{report}");
    let refused = with_library(&folder).args(["--meet", "/none", "env"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("/none"), "{refused:?}");
}

// spec: SOCK-60
#[test]
fn a_key_for_other_hosts_is_read_before_the_program_starts() {
    let folder = Folder::new("hosts");
    let run = |hosts: &str| {
        let mut command = with_library(&folder);
        command.args(["--hosts", hosts, "--", "env"]).current_dir(&folder.0).output().unwrap()
    };
    assert_eq!(value(&run("plain"), "AYRE_SOCKETS_HOSTS").as_deref(), Some("plain"));
    let key = folder.0.join("key");
    fs::write(&key, "0".repeat(64)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run("key");
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("chmod 600"), "{refused:?}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let key = fs::canonicalize(key).unwrap().display().to_string();
    assert_eq!(value(&run("key"), "AYRE_SOCKETS_HOSTS"), Some(key));
}

// spec: SOCK-32
#[test]
fn a_policy_with_a_mistake_starts_nothing() {
    let folder = Folder::new("policy");
    let run = |text: &str| {
        fs::write(folder.0.join("policy"), text).unwrap();
        let mut command = with_library(&folder);
        command.args(["--policy", "policy", "--", "env"]);
        command.current_dir(&folder.0).output().unwrap()
    };
    let policy = value(&run("must *:80 user=root\n"), "AYRE_SOCKETS_POLICY").unwrap();
    assert_eq!(Path::new(&policy), fs::canonicalize(folder.0.join("policy")).unwrap());
    let refused = run("may *\nmust *:eighty\nsome *\n");
    assert_eq!((refused.status.code(), &*text(&refused.stdout)), (Some(125), ""));
    let said = text(&refused.stderr);
    assert!(
        said.contains("policy:2: expected a port") && said.contains("found `*:eighty`"),
        "{said}"
    );
    assert!(said.contains("policy:3: expected `may`, `never` or `must`, found `some`"), "{said}");
    let absent = with_library(&folder).args(["--policy", "/none", "env"]).output().unwrap();
    assert_eq!(absent.status.code(), Some(125));
    assert!(text(&absent.stderr).contains("/none"), "{absent:?}");
}

// spec: SOCK-43
#[test]
fn a_variable_that_the_library_does_not_have_starts_nothing() {
    let folder = Folder::new("variable");
    let refused = with_library(&folder).arg("env").env("AYRE_SOCKETS_POLCY", "/none").output();
    let refused = refused.unwrap();
    assert_eq!((refused.status.code(), &*text(&refused.stdout)), (Some(125), ""));
    let said = text(&refused.stderr);
    assert!(said.contains("no variable AYRE_SOCKETS_POLCY; it has AYRE_SOCKETS, "), "{said}");
}

// spec: SOCK-1
#[test]
fn a_program_with_the_name_of_a_command_is_run_behind_dashes_or_an_option() {
    let folder = Folder::new("list");
    for arguments in [&["--", "list"][..], &["--report", "/none", "list"], &["true", "list"]] {
        let output = with_library(&folder).args(arguments).output().unwrap();
        let expected = if arguments[0] == "true" { 0 } else { 127 };
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {output:?}");
    }
}

/// The lines of `ayre sockets list` that are about sockets of this process at this address.
fn listed(at: SocketAddr) -> Vec<Value> {
    let output = tool(Path::new(env!("CARGO_BIN_EXE_ayre"))).args(["list", "--json"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let is_own = |row: &Value| row["process"] == std::process::id();
    let is_there = |row: &Value| row["local"] == at.to_string();
    all.into_iter().filter(|row| is_own(row) && is_there(row)).collect()
}

// spec: SOCK-35, SOCK-36
#[test]
fn connections_of_this_user_are_listed_with_their_ways_and_reasons() {
    let name = format!("ayre-sockets-list-test/{}", std::process::id());
    let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let door = Door::open(&name).unwrap();
    let maker = Pair::knock(&name, 7, |_| true).unwrap();
    let taker = door.callers(|_| true).pop().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taker_at = listener.local_addr().unwrap();
    let near = TcpStream::connect(taker_at).unwrap();
    let (far, maker_at) = listener.accept().unwrap();
    let [one, other] = [&near, &far].map(|socket| {
        let connection = Connection::new().unwrap();
        connection.show(socket.as_fd());
        connection
    });
    let of = Ends::Tcp(Addresses { maker: maker_at, taker: taker_at });
    assert!(one.offer(&maker, &of));
    assert_eq!(listed(maker_at)[0]["reason"], "not taken yet");
    assert!(other.take(&taker, taker.find(&of).unwrap()));
    other.want_bytes(None);
    let flags = SendFlags::NOSIGNAL;
    assert_eq!(one.write(near.as_fd(), &[IoSlice::new(&[7; 300])], flags), Ok(300));
    let mut into = [0; 100];
    let mut into = [IoSliceMut::new(&mut into)];
    assert_eq!(other.read(far.as_fd(), &mut into, RecvFlags::empty()), Ok(100));
    let [near_row, far_row] = [maker_at, taker_at].map(|at| listed(at).remove(0));
    let ring = |bytes| json!({ "way": "ring", "ring_bytes": bytes, "tcp_bytes": 0, "queued": 200 });
    assert_eq!((&near_row["out"], &far_row["in"]), (&ring(300), &ring(100)));
    assert_eq!((&near_row["reason"], &near_row["state"]), (&json!(""), &json!("ESTAB")));
    assert_eq!((&near_row["remote"], &near_row["in"]["way"]), (&far_row["local"], &json!("tcp")));
    let plain = TcpStream::connect(taker_at).unwrap();
    keep_reason(plain.as_fd(), Reason::NoPeer);
    let rows = listed(plain.local_addr().unwrap());
    assert_eq!(
        (&rows[0]["reason"], &rows[0]["out"]["ring_bytes"]),
        (&json!("no peer"), &Value::Null)
    );
    assert_eq!(rows.len(), 1);
    let table = tool(Path::new(env!("CARGO_BIN_EXE_ayre"))).arg("list").output().unwrap();
    let table = text(&table.stdout);
    let own = table.lines().find(|line| line.contains(&format!("  {maker_at}  {taker_at}")));
    assert!(own.is_some_and(|line| line.contains("  ring 300/0  tcp 0/0")), "{table}");
    assert_eq!(listed(taker_at).len(), 1, "not the listener, nor what waits to be accepted");
}

// spec: SOCK-1
#[test]
fn the_status_and_the_signal_are_the_programs() {
    let folder = Folder::new("status");
    let run = |script: &str| {
        let mut command = with_library(&folder);
        command.args(["--", "sh", "-c", script]).output().unwrap()
    };
    assert_eq!(run("exit 7").status.code(), Some(7));
    assert_eq!(
        run("kill -USR1 $$").status.signal(),
        Some(10),
        "the program was the tool's process"
    );
    let mut command = with_library(&folder);
    command.args(["sh", "-c", "echo $$"]).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let own = child.id();
    assert_eq!(text(&child.wait_with_output().unwrap().stdout).trim(), own.to_string());
    let absent = with_library(&folder).arg("/none/program").output().unwrap();
    assert_eq!(absent.status.code(), Some(127), "{absent:?}");
    let folder_itself = with_library(&folder).arg(&folder.0).output().unwrap();
    assert_eq!(folder_itself.status.code(), Some(126), "{folder_itself:?}");
}

// spec: SOCK-1
#[test]
fn the_library_is_found_beside_the_tool_and_in_lib() {
    let folder = Folder::new("places");
    let beside = folder.0.join("bin");
    fs::create_dir_all(&beside).unwrap();
    let installed = beside.join("ayre");
    fs::copy(env!("CARGO_BIN_EXE_ayre"), &installed).unwrap();
    let run = || tool(&installed).arg("env").output().unwrap();
    // The package may be installed here.
    if !Path::new("/usr/lib/x86_64-linux-gnu/ayre/libayre-sockets.so").exists() {
        let output = run();
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(why.contains("cargo build --release -p ayre-sockets"), "{why}");
        assert!(why.contains("AYRE_SOCKETS_LIBRARY"), "{why}");
        assert!(why.contains(&beside.display().to_string()), "{why}");
    }
    for place in ["lib/ayre/libayre-sockets.so", "lib/libayre_sockets.so", "bin/libayre_sockets.so"]
    {
        let place = folder.0.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, b"").unwrap();
        assert_eq!(value(&run(), "LD_PRELOAD"), Some(place.display().to_string()));
    }
    let mut command = tool(&installed);
    let named = command.arg("env").env("AYRE_SOCKETS_LIBRARY", "/none.so").output().unwrap();
    assert_eq!(named.status.code(), Some(125));
    assert!(text(&named.stderr).contains("AYRE_SOCKETS_LIBRARY=/none.so"), "{named:?}");
}

// spec: SOCK-2
#[test]
fn a_program_that_cannot_take_the_library_is_named_and_run() {
    let folder = Folder::new("static");
    // A program of two system calls' worth: it exits with 9. Nothing links it as it starts.
    let code = [0xbf, 9, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    let program = folder.0.join("program");
    fs::write(&program, elf(&code)).unwrap();
    let mode = |bits| PermissionsExt::from_mode(bits);
    fs::set_permissions(&program, mode(0o755)).unwrap();
    let output = with_library(&folder).arg(&program).output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("linked statically") && said.lines().count() == 1, "{said}");
    let ordinary = with_library(&folder).arg("true").output().unwrap();
    assert!(!text(&ordinary.stderr).contains("ayre: "), "{ordinary:?}");
}

/// A program that consists of this code.
fn elf(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    let mut bytes = vec![0; 120];
    let mut put = |at: usize, value: u64, len: usize| {
        bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    };
    let all = 120 + code.len() as u64;
    put(0, u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0"), 8);
    // Of a program, for this processor, in this version; entry, headers.
    [(16, 2, 2), (18, 62, 2), (20, 1, 4), (24, BASE + 120, 8), (32, 64, 8)]
        .into_iter()
        .for_each(|(at, value, len)| put(at, value, len));
    [(52, 64, 2), (54, 56, 2), (56, 1, 2)]
        .into_iter()
        .for_each(|(at, value, len)| put(at, value, len));
    // One part: to be loaded, readable and executable.
    [(64, 1, 4), (68, 5, 4), (80, BASE, 8), (88, BASE, 8), (96, all, 8), (104, all, 8)]
        .into_iter()
        .for_each(|(at, value, len)| put(at, value, len));
    put(112, 4096, 8);
    bytes.extend_from_slice(code);
    bytes
}
