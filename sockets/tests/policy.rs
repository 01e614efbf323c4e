//! Policies: which connections go by rings, which are refused, and with whose processes. The ends
//! are processes of their own, of several users where the test may set them.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;

use common::call::{self, Family, Outcome, UNIX, error_name};
use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use common::seen::way_of;
use common::shared::Shared;
use std::ffi::c_int;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds after which a test hangs.
const DEADLINE: u64 = 20;

/// The variable that names the folder where the processes meet.
const FOLDER: &str = "AYRE_SOCKETS_TEST_FOLDER";

const POLICY: &str = "AYRE_SOCKETS_POLICY";

/// Requests and answers of a connection at most, and the bytes of each.
const ROUNDS: usize = 2000;
const BYTES: usize = 100;

/// After this number of them, the client looks by which way they go.
const LOOKS_EVERY: usize = 10;

/// Words of the shared memory.
const PORT: usize = 1;
const IS_SQUATTED: usize = 2;
const ENDED: usize = 3;
const LISTENS: usize = 4;

/// Users that no host has.
const ALICE: u32 = 40_001;
const BOB: u32 = 40_002;
const CAROL: u32 = 40_003;

before_main! {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder is named"));
    let shared = Shared::open(&folder.join("shared"));
    let seen = match role.as_str() {
        "server" => serve(&shared),
        "late server" => serve_late(&shared),
        "listener" => listen(&shared),
        "client" => ask(&shared),
        "late client" => {
            assert!(shared.wait(|shared| shared.get(IS_SQUATTED) != 0), "the name is taken");
            ask(&shared)
        }
        "last client" => {
            assert!(shared.wait(|shared| shared.get(LISTENS) != 0), "the late server listens");
            ask(&shared)
        }
        "squatter" => squat(&shared),
        other => panic!("no role {other}"),
    };
    fs::write(folder.join(role), seen).expect("the folder is writable");
    std::process::exit(0)
}

/// Accepts one connection, and answers.
fn serve(shared: &Shared) -> String {
    let (listener, port) = call::listener(call::family(), 0).expect("a listener");
    shared.set(PORT, port.into());
    answer(shared, listener)
}

/// As [`serve`], at a port whose name another process takes first.
fn serve_late(shared: &Shared) -> String {
    let listener = call::socket(Family::Tcp, 0).expect("a socket");
    let address = call::loopback(0);
    let length = call::ADDRESS_LENGTH;
    call!(bind(listener, (&raw const address).cast(), length)).expect("a port");
    shared.set(PORT, call::port_of(listener, false).expect("its number").into());
    assert!(shared.wait(|shared| shared.get(IS_SQUATTED) != 0), "the name is taken");
    call!(listen(listener, 1)).expect("it listens");
    shared.set(LISTENS, 1);
    answer(shared, listener)
}

fn answer(shared: &Shared, listener: c_int) -> String {
    let none = std::ptr::null_mut();
    let fd = call!(accept(listener, none, std::ptr::null_mut())).expect("a connection");
    talk(shared, fd as c_int, true)
}

/// Listens, and accepts nothing.
fn listen(shared: &Shared) -> String {
    let (_listener, port) = call::listener(call::family(), 0).expect("a listener");
    shared.set(PORT, port.into());
    assert!(shared.wait(|shared| shared.get(ENDED) > 0), "the client ends");
    String::new()
}

/// Connects, and asks.
fn ask(shared: &Shared) -> String {
    assert!(shared.wait(|shared| shared.get(PORT) != 0), "the server listens");
    let fd = call::socket(call::family(), 0).expect("a socket");
    match call::connect_to(fd, shared.get(PORT) as u16) {
        Ok(_) => talk(shared, fd, false),
        Err(error) => {
            shared.add(ENDED, 1);
            format!("connect: {}", error_name(error))
        }
    }
}

/// Takes the name of the server's port, and tells how much the first that comes has said.
fn squat(shared: &Shared) -> String {
    assert!(shared.wait(|shared| shared.get(PORT) != 0), "the server listens");
    let port = shared.get(PORT);
    let name = match call::family() {
        Family::Tcp => format!("ayre-sockets/{port}/127.0.0.1"),
        Family::Unix => format!("ayre-sockets/@ayre-test-{port:05}"),
    };
    let mut address = zeroed!(libc::sockaddr_un);
    address.sun_family = libc::AF_UNIX as u16;
    for (place, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *place = byte as i8;
    }
    let length = (size_of::<libc::sa_family_t>() + 1 + name.len()) as libc::socklen_t;
    let fd = call!(socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)).expect("a socket") as c_int;
    call!(bind(fd, (&raw const address).cast(), length)).expect("the name is free");
    call!(listen(fd, 8)).expect("it listens");
    shared.set(IS_SQUATTED, 1);
    let none = std::ptr::null_mut();
    let caller = call!(accept(fd, none, std::ptr::null_mut())).expect("a caller");
    format!("{:?}", call::read(caller as c_int, &mut [0; 64]))
}

/// Requests and answers, until both directions go by rings, or the last round; then what this end
/// has seen. A reader that never finds a ring empty never shows that it waits: a few
/// rounds are enough in almost all cases.
fn talk(shared: &Shared, fd: c_int, is_server: bool) -> String {
    let by_rings = || way_of(fd) == "rings";
    let mut round = 0;
    let done = loop {
        round += 1;
        let is_last = round == ROUNDS || (round % LOOKS_EVERY == 0 && !is_server && by_rings());
        let mut bytes = [u8::from(is_last); BYTES];
        let told = match is_server {
            true => receive(fd, &mut bytes).and_then(|()| send(fd, &bytes)),
            false => send(fd, &bytes).and_then(|()| receive(fd, &mut bytes)),
        };
        if told.is_err() || bytes[0] == 1 {
            break told;
        }
    };
    let seen = match done {
        Ok(()) => format!("talked by {}", way_of(fd)),
        Err(error) => error,
    };
    shared.add(ENDED, 1);
    assert!(shared.wait(|shared| shared.get(ENDED) > 1), "the other end ends");
    seen
}

fn whole(told: Outcome) -> Result<(), String> {
    match told {
        Ok(BYTES) => Ok(()),
        Ok(_) => Err("an end".to_owned()),
        Err(error) => Err(error_name(error)),
    }
}

fn send(fd: c_int, bytes: &[u8]) -> Result<(), String> {
    whole(call::send(fd, bytes, libc::MSG_NOSIGNAL))
}

fn receive(fd: c_int, bytes: &mut [u8]) -> Result<(), String> {
    whole(call::recv(fd, bytes, libc::MSG_WAITALL))
}

/// A process of a test.
#[derive(Clone, Copy)]
struct Part<'a> {
    role: &'a str,
    net: Net,
    user: Option<u32>,
    policy: Option<&'a str>,
}

fn part<'a>(role: &'a str, policy: &'a str) -> Part<'a> {
    Part { role, net: Net::Library, user: None, policy: Some(policy) }
}

fn plain(role: &str) -> Part<'_> {
    Part { role, net: Net::Plain, user: None, policy: None }
}

impl Part<'_> {
    fn of(self, user: u32) -> Self {
        Self { user: Some(user), ..self }
    }
}

/// Texts of the processes of a test, one for one, and the errors of all.
fn run<const N: usize>(parts: [Part<'_>; N]) -> ([String; N], String) {
    run_over(Family::Tcp, parts)
}

/// As [`run`], over sockets of a kind.
fn run_over<const N: usize>(family: Family, parts: [Part<'_>; N]) -> ([String; N], String) {
    let folder = Folder::new();
    let everybody = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o777));
    everybody(&folder.path).expect("the folder is ours");
    let _ = Shared::open(&folder.file("shared"));
    everybody(&folder.file("shared")).expect("the file is ours");
    let mut crew = Crew::new();
    for part in parts {
        let mut command = Crew::command(&folder, part.role, part.net);
        command.env(FOLDER, &folder.path).env_remove("AYRE_SOCKETS_REPORT").env_remove(POLICY);
        if family == Family::Unix {
            command.env(UNIX, "1");
        }
        if let Some(text) = part.policy {
            let file = folder.file(&format!("{}.policy", part.role));
            fs::write(&file, text).expect("the folder is ours");
            command.env(POLICY, file);
        }
        if let Some(user) = part.user {
            command.uid(user).gid(user);
        }
        crew.start(&mut command);
    }
    let ending = crew.wait(DEADLINE);
    let said = folder.text("errors");
    assert_eq!(ending, Ending::Well, "{said}");
    (parts.map(|part| folder.text(part.role)), said)
}

/// Whether this process may start others as other users; and there is a library to test.
fn may_be_others() -> bool {
    call!(geteuid()) == Ok(0) && library().is_some()
}

const RINGS: &str = "talked by rings";
const TCP: &str = "talked by TCP: ";

// spec: SOCK-30
#[test]
fn a_line_that_says_never_leaves_a_connection_to_the_kernel() {
    if library().is_none() {
        return;
    }
    let (seen, said) = run([part("server", "may *"), part("client", "may *")]);
    assert_eq!(seen, [RINGS, RINGS].map(str::to_owned), "{said}");
    let ([server, client], said) =
        run([part("server", "may *"), part("client", "never connect 127.0.0.0/8")]);
    assert_eq!([&*client, &*server], [&*format!("{TCP}policy"), &*format!("{TCP}no peer")]);
    assert_eq!(said, "");
    let ([server, client], _) =
        run([part("server", "never accept 127.0.0.1"), part("client", "may *")]);
    assert_eq!([&*client, &*server], [&*format!("{TCP}no peer"), &*format!("{TCP}policy")]);
    let other = run([part("server", "never * program=other"), part("client", "never *:1-9")]).0;
    assert_eq!(other, [RINGS, RINGS].map(str::to_owned), "no line is about these");
    let own = std::env::current_exe().expect("the test knows its path");
    let name = own.file_name().expect("it is a file").to_string_lossy();
    let by_name = format!("never * program={name}");
    let by_path = format!("never * program={}", own.display());
    let ([server, client], _) = run([part("server", &by_name), part("client", &by_path)]);
    assert_eq!([&*client, &*server], [&*format!("{TCP}policy"); 2]);
}

// spec: SOCK-31
#[test]
fn a_connection_that_must_go_by_a_ring_is_refused_where_it_cannot() {
    if library().is_none() {
        return;
    }
    let (seen, said) = run([part("server", "must *"), part("client", "# all\nmust *")]);
    assert_eq!((seen, &*said), ([RINGS, RINGS].map(str::to_owned), ""));
    let ([_, client], said) = run([plain("listener"), part("client", "# all\nmust *")]);
    assert_eq!(client, "connect: ECONNREFUSED");
    assert!(said.contains("client.policy:2: connection to 127.0.0.1:"), "{said}");
    assert!(said.contains("no process with the library is there"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let ([server, client], said) = run([part("server", "must accept *"), plain("client")]);
    assert_eq!(server, "ECONNRESET", "the client has {client}: {said}");
    assert!(["ECONNRESET", "EPIPE"].contains(&&*client), "{client}");
    assert!(said.contains("server.policy:1: connection at 127.0.0.1:"), "{said}");
}

// spec: SOCK-4, SOCK-31
#[test]
fn a_socket_whose_name_another_process_has_uses_no_ring() {
    if library().is_none() {
        return;
    }
    let client = part("last client", "may *");
    let (seen, said) = run([plain("squatter"), part("late server", "may *"), client]);
    assert_eq!(seen, ["Ok(8)", "talked by TCP: no door", "talked by TCP: not taken yet"], "{said}");
    let ([squatter_saw, server, client], said) =
        run([plain("squatter"), part("late server", "must accept *"), client]);
    assert_eq!((&*squatter_saw, &*server), ("Ok(8)", "ECONNRESET"), "the client has {client}");
    assert!(said.contains("the socket that listens has no door"), "{said}");
}

// spec: SOCK-30, SOCK-31
#[test]
fn lines_name_unix_sockets() {
    if library().is_none() {
        return;
    }
    let run = |server, client| run_over(Family::Unix, [server, client]);
    let strict = "must @ayre-test-*";
    let (seen, said) = run(part("server", "never *"), part("client", strict));
    assert_eq!((seen, &*said), ([RINGS, RINGS].map(str::to_owned), ""));
    let ([server, client], _) = run(part("server", "never accept @*"), part("client", "may *"));
    assert_eq!([&*client, &*server], [&*format!("{TCP}no peer"), &*format!("{TCP}policy")]);
    let ([_, client], said) = run(plain("listener"), part("client", strict));
    assert_eq!(client, "connect: ECONNREFUSED");
    assert!(said.contains("client.policy:1: connection to @ayre-test-"), "{said}");
    let ([server, client], said) = run(part("server", "must accept @*"), plain("client"));
    // It may have been sent a request before, and sends no answer.
    assert!(["an end", "EPIPE"].contains(&&*server), "{server}, the client has {client}: {said}");
    assert!(said.contains("server.policy:1: connection at @ayre-test-"), "{said}");
}

// spec: SOCK-33
#[test]
fn users_of_unix_sockets_are_trusted_where_both_policies_name_them() {
    if !may_be_others() {
        return;
    }
    let run = |server, client| run_over(Family::Unix, [server, client]);
    let (alice, bob) = (format!("may @* user={ALICE}"), format!("must @* user={BOB}"));
    let (seen, said) = run(part("server", &bob).of(ALICE), part("client", &alice).of(BOB));
    assert_eq!(seen, [RINGS, RINGS].map(str::to_owned), "{said}");
    let ([server, client], _) =
        run(part("server", "may *").of(ALICE), part("client", "may *").of(BOB));
    assert_eq!([&*server, &*client], ["talked by TCP: no peer", "talked by TCP: other user"]);
}

// spec: SOCK-52
#[test]
fn a_process_with_the_name_of_anothers_unix_socket_gets_no_connection() {
    if library().is_none() {
        return;
    }
    let parts = [plain("server"), plain("squatter"), part("late client", "may *")];
    let ([_, _, client], said) = run_over(Family::Unix, parts);
    assert_eq!(client, "talked by TCP: not the owner", "{said}");
}

// spec: SOCK-32
#[test]
fn a_malformed_policy_is_told_and_keeps_what_is_strict() {
    if library().is_none() {
        return;
    }
    let (seen, said) = run([part("server", "may *"), part("client", "\nmay 1.2.3\nmay *\n")]);
    assert_eq!(seen[1], format!("{TCP}policy"));
    assert!(said.contains("client.policy:2: expected an address"), "{said}");
    assert!(said.contains("found `1.2.3`") && said.lines().count() == 1, "{said}");
    let ([_, client], said) = run([part("listener", "may *"), part("client", "musst *")]);
    assert_eq!(client, "connect: ECONNREFUSED", "{said}");
    assert!(said.contains("client.policy:1: expected `may`, `never` or `must`"), "{said}");
    assert!(said.contains("client.policy:1: connection to "), "{said}");
}

// spec: SOCK-8, SOCK-33
#[test]
fn other_users_are_trusted_where_both_policies_name_them() {
    if !may_be_others() {
        return;
    }
    let (alice, bob) = (format!("may * user={ALICE}"), format!("must * user={BOB}"));
    let (seen, said) = run([part("server", &bob).of(ALICE), part("client", &alice).of(BOB)]);
    assert_eq!(seen, [RINGS, RINGS].map(str::to_owned), "{said}");
    let ([server, client], said) =
        run([part("server", "may *").of(ALICE), part("client", &alice).of(BOB)]);
    assert_eq!([&*server, &*client], ["talked by TCP: other user", "talked by TCP: not taken yet"]);
    assert_eq!(said, "");
    let ([server, client], _) =
        run([part("server", "may *").of(ALICE), part("client", "may *").of(BOB)]);
    assert_eq!([&*server, &*client], ["talked by TCP: no peer", "talked by TCP: other user"]);
    let ([_, client], said) =
        run([part("listener", "may *").of(ALICE), part("client", "must *").of(BOB)]);
    assert_eq!(client, "connect: ECONNREFUSED");
    assert!(said.contains("another user, whom the line does not name"), "{said}");
    let ([server, client], said) =
        run([part("server", "must accept *").of(ALICE), part("client", &alice).of(BOB)]);
    // It has read the first request, and sends no answer.
    assert!(["ECONNRESET", "EPIPE"].contains(&&*server), "{server}: {said}");
    assert_eq!(client, "ECONNRESET", "{said}");
    assert!(said.contains("server.policy:1: connection at 127.0.0.1:"), "{said}");
}

// spec: SOCK-34
#[test]
fn a_user_with_the_name_of_anothers_port_is_given_nothing() {
    if !may_be_others() {
        return;
    }
    let server = plain("server").of(ALICE);
    let squatter = plain("squatter").of(BOB);
    let client = |policy| part("late client", policy).of(CAROL);
    let policy = format!("may * user={BOB}");
    let ([_, squatter_saw, client_saw], said) = run([server, squatter, client(&policy)]);
    assert_eq!(client_saw, "talked by TCP: not the owner", "{said}");
    assert_eq!(squatter_saw, "Ok(0)", "an end without a word");
    let server = Part { role: "listener", ..server };
    let strict = format!("must * user={BOB}");
    let ([_, squatter_saw, client_saw], said) = run([server, squatter, client(&strict)]);
    assert_eq!((&*client_saw, &*squatter_saw), ("connect: ECONNREFUSED", "Ok(0)"));
    assert!(said.contains("does not have the socket"), "{said}");
}

// spec: SOCK-43
#[test]
fn a_variable_that_the_library_does_not_have_is_told() {
    let Some(library) = library() else { return };
    let said = |name| {
        let mut command = Command::new("true");
        let output = command.env("LD_PRELOAD", &library).env(name, "/none").output();
        String::from_utf8(output.expect("it runs").stderr).expect("it is text")
    };
    assert_eq!(said("AYRE_SOCKETS_REPORT"), "");
    let text = said("AYRE_SOCKETS_POLCY");
    assert!(text.contains("no variable AYRE_SOCKETS_POLCY; it has AYRE_SOCKETS, "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
