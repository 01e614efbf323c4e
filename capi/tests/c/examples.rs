//! The examples, run as jobs: each checks itself.
use crate::built::{self, CHECKED, COMPILERS, Library};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An example in C, how it is called, and what it says then.
struct Example {
    name: &'static str,
    arguments: &'static [&'static str],
    /// The ranks of its job; 0 if it is none.
    ranks: usize,
    said: &'static str,
}

const HELLO: Example =
    Example { name: "hello.c", arguments: &[], ranks: 2, said: "rank 1: hello, neighbour" };
const HALO: Example =
    Example { name: "halo.c", arguments: &[], ranks: 4, said: "as computed alone" };
const KMEANS: Example = Example {
    name: "kmeans.c",
    arguments: &[concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/examples/data/iris.csv"), "3"],
    ranks: 4,
    said: "the clusters that one process finds",
};
const WORK_QUEUE: Example =
    Example { name: "work_queue.c", arguments: &[], ranks: 4, said: "148933 primes" };
const SERVER: Example = Example {
    name: "server.c",
    arguments: &["100"],
    ranks: 0,
    said: "100 clients, 2000 requests, sum 21000",
};

impl Example {
    fn built(&self, compiler: &str, flags: &[&str], library: Library) -> PathBuf {
        let source = built::folder().join("examples").join(self.name);
        let name = format!("example-{}-{compiler}{}", self.name, flags.concat());
        // The command `env` takes a word with this sign for a variable.
        let name = name.replace('=', "-");
        built::program_with(&name, &[source], (compiler, flags), library)
    }

    /// Runs the program, or its job with this many ranks, and looks at what it says. `watched` is
    /// the command that runs it.
    fn run(&self, program: &Path, watched: &[&str], (ranks, mode): (usize, &str)) {
        let mut words = watched.to_vec();
        words.push(program.to_str().expect("a path in UTF-8"));
        words.extend(self.arguments);
        let mut said = String::new();
        let job = folder_of(program, (ranks, mode));
        for process in start(&job, &words, (ranks, mode)) {
            let ended = process.wait_with_output().expect("it ends");
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "{program:?}, {ranks} {mode}: {errors}");
            said += &String::from_utf8_lossy(&ended.stdout);
        }
        assert!(said.contains(self.said), "{program:?}, {ranks} {mode}: {said}");
        std::fs::remove_dir_all(&job).expect("the folder of the job");
    }

    /// Runs it by all compilers, direct and mediated.
    fn check(&self) {
        for (compiler, mode) in COMPILERS.into_iter().zip(["direct", "mediated"].repeat(2)) {
            let program = self.built(compiler, &["-O2"], Library::Archive);
            self.run(&program, &[], (self.ranks, mode));
        }
    }

    /// Runs it with as few ranks as can be, and something that watches it.
    fn watch(&self, flags: &[&str], library: Library, watched: &[&str]) {
        let program = self.built("gcc", flags, library);
        self.run(&program, watched, (self.ranks.min(2), "direct"));
    }
}

/// A folder for a job. Its name is short, as sockets need it.
fn folder_of(program: &Path, way: (usize, &str)) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (program, way).hash(&mut hasher);
    let name = format!("ayre-c-{}-{:x}", std::process::id(), hasher.finish());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

/// Starts the ranks of a job that meet in a folder, as `ayre run` does, or a program alone.
fn start(job: &Path, words: &[&str], (ranks, mode): (usize, &str)) -> Vec<Child> {
    let process = |rank: usize| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("AYRE_MODE", mode);
        if ranks > 0 {
            command.env("AYRE_JOB", job).env("AYRE_RANK", rank.to_string());
            command.env("AYRE_SIZE", ranks.to_string());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    (0..ranks.max(1)).map(process).collect()
}

#[test]
fn hello_greets_by_all_compilers() {
    HELLO.check();
}

#[test]
fn halo_is_as_computed_alone_by_all_compilers() {
    HALO.check();
}

#[test]
fn kmeans_finds_the_clusters_of_one_process_by_all_compilers() {
    KMEANS.check();
}

#[test]
fn the_work_queue_counts_right_by_all_compilers() {
    WORK_QUEUE.check();
}

#[test]
fn a_server_in_an_event_loop_answers_its_clients_by_all_compilers() {
    SERVER.check();
    let thousand = "1000 clients, 20000 requests, sum 210000";
    let server = Example { arguments: &["1000"], said: thousand, ..SERVER };
    server.run(&server.built("gcc", &["-O2"], Library::Archive), &[], (0, "direct"));
}

const ALL: [Example; 5] = [HELLO, HALO, KMEANS, WORK_QUEUE, SERVER];

#[test]
fn all_examples_pass_the_address_sanitizer() {
    ALL.iter().for_each(|example| example.watch(&CHECKED, Library::Archive, &[]));
}

#[test]
fn all_examples_pass_the_thread_sanitizer() {
    let options = built::thread_options();
    let flags = ["-O1", "-fsanitize=thread"];
    ALL.iter().for_each(|example| example.watch(&flags, Library::Shared, &["env", &options]));
}

#[test]
fn all_examples_pass_valgrind() {
    ALL.iter().for_each(|example| example.watch(&["-O1"], Library::Archive, &built::VALGRIND));
}

/// The examples in C++, with each access to memory checked.
#[test]
fn the_examples_in_cpp_pass_the_address_sanitizer() {
    for example in
        [Example { name: "hello.cpp", ..HELLO }, Example { name: "kmeans.cpp", ..KMEANS }]
    {
        for (compiler, more) in [("g++", "-std=c++17"), ("clang++", "-fno-exceptions")] {
            let program =
                example.built(compiler, &[CHECKED[0], CHECKED[1], more], Library::Archive);
            example.run(&program, &[], (2, "direct"));
            example.run(&program, &[], (2, "mediated"));
        }
    }
}
