//! The limits and the exceptions, all in one place: a change to a rule is a change to this file.

/// Lines of a function, from its `fn` to its closing brace: what fits a screen.
pub(crate) const FUNCTION_LINES: usize = 70;

/// Lines of code in a file: blank lines and comments are free.
pub(crate) const FILE_LINES: usize = 600;

/// Parameters of a function, `self` included; not of one that C calls, whose list C decides.
pub(crate) const PARAMETERS: usize = 6;

/// Characters in a line.
pub(crate) const LINE_CHARS: usize = 100;

/// A file whose first line contains this is generated and exempt from the limits.
pub(crate) const GENERATED: &str = "@generated";

/// Words that mark unfinished work; none may stay in a comment.
pub(crate) const UNFINISHED_WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

/// Macros that mark unfinished work.
pub(crate) const UNFINISHED_MACROS: &[&str] = &["dbg!", "todo!", "unimplemented!"];

/// Where `unsafe` may stand: the folders whose reviewers look for it, then the harnesses.
pub(crate) const UNSAFE_HOMES: &[&str] = &[
    "engine/src/endpoint/owned.rs",
    "engine/src/mem/",
    "engine/src/port/raw.rs",
    "engine/src/sys/",
    "cli/src/sys/",
    "cli/src/sys.rs",
    "cli/src/perf/side/",
    "capi/src/border.rs",
    "capi/src/place.rs",
    "guest/src/cell.rs",
    "guest/src/copy.rs",
    "provider/src/abi/",
    "provider/src/calls/",
    "provider/src/sys/",
    "provider/tests/",
    "sockets/src/abi/",
    "sockets/src/sys/",
    "sockets/tests/",
    "ucp/src/abi/",
    "ucp/src/calls/",
    "ucp/src/sys/",
    "ucp/examples/",
    "ucp/tests/",
    "python/src/buffer.rs",
    "python/src/export.rs",
    "sockets/tests/",
    "engine/tests/",
    "fuzz/",
];

/// Where atomics may be taken from the standard library or from loom, and why.
pub(crate) const ATOMIC_HOMES: &[(&str, &str)] = &[
    ("engine/src/sync.rs", "the facade that all other code goes through"),
    ("sockets/tests/", "processes of tests meet in shared memory, without the engine"),
    ("engine/tests/", "tests choose between the standard library and loom themselves"),
    ("capi/src/place.rs", "marks of handles, which threads hand over"),
    ("python/src/buffer.rs", "views of a region, which threads count"),
    ("cli/src/sys", "flags that signal handlers set"),
    ("cli/src/perf/raw/", "the raw limits of the machine are measured beneath the engine"),
    ("cli/src/perf/side/", "what they share lies beneath the engine, too"),
    ("engine/src/sys/hidden.rs", "marks of descriptors, beside which no model runs"),
    ("sockets/", "the library is beside the engine: tables and flags of the whole process"),
    ("ucp/", "threads of a program look at its requests, without the engine"),
    ("sim/src/network/meeting.rs", "the simulator is beside the engine, and its threads meet here"),
];

/// Where every memory ordering names its label.
pub(crate) const LABELLED_HOMES: &[&str] = &["engine/src/mem/"];

/// Where labels are looked for when release and acquire are matched.
pub(crate) const LABEL_SOURCES: &[&str] = &["engine/src/"];

/// Calls that one file makes for all the others.
pub(crate) struct OneHome {
    /// The finding's text.
    pub(crate) what: &'static str,
    pub(crate) home: &'static str,
    /// Where the rule holds.
    pub(crate) folders: &'static [&'static str],
    /// Files that hold nothing but tests, under another name, and others that it is not about.
    pub(crate) exempt: &'static [&'static str],
    /// Parts of paths that name the calls.
    pub(crate) calls: &'static [&'static [&'static str]],
}

/// Which calls those are. `File::open` and the like count as making a descriptor; what reads or
/// writes a whole file within one call does not.
pub(crate) const ONE_HOME: &[OneHome] = &[
    OneHome {
        what: "the system's clock is read",
        home: "engine/src/clock.rs",
        folders: &["engine/src/"],
        exempt: &[],
        calls: &[
            &["Instant", "now"],
            &["SystemTime"],
            &["clock_gettime"],
            &["nanosleep"],
            &["elapsed"],
            &["thread", "sleep"],
            &["thread", "park_timeout"],
        ],
    },
    OneHome {
        what: "a port is told the time",
        home: "engine/src/net/clock.rs",
        folders: &["engine/src/"],
        // What stands outside of ports: jobs, the log, other processes' looks, real networks, what
        // drives a simulated one, shared queues, and a lease, which is about the program.
        exempt: &[
            "engine/src/endpoint/lease.rs",
            "engine/src/job/",
            "engine/src/link/look.rs",
            "engine/src/link/pcap.rs",
            "engine/src/link/stats_socket.rs",
            "engine/src/log.rs",
            "engine/src/net/interfaces.rs",
            "engine/src/net/no_room.rs",
            "engine/src/net/simulation",
            "engine/src/net/udp.rs",
            "engine/src/shared/",
        ],
        calls: &[&["clock", "now"], &["clock", "nanos"], &["clock", "since_1970"]],
    },
    OneHome {
        what: "threads are started",
        home: "engine/src/sys/thread.rs",
        folders: &["engine/src/", "guest/src/", "provider/src/"],
        exempt: &["engine/src/mem/model"],
        calls: &[&["thread", "spawn"], &["thread", "scope"], &["thread", "Builder"]],
    },
    OneHome {
        what: "descriptors are made",
        home: "engine/src/sys/descriptor.rs",
        folders: &["engine/src/", "guest/src/", "provider/src/"],
        // Descriptors in a program that does not know of the library are hidden from its calls as
        // they are made.
        exempt: &["engine/src/socket/", "engine/src/sys/hidden.rs"],
        calls: &[
            &["net", "accept_with"],
            &["epoll", "create"],
            &["eventfd"],
            &["fcntl_dupfd_cloexec"],
            &["File", "create"],
            &["File", "open"],
            &["fs", "open"],
            &["fs", "openat"],
            &["inotify", "init"],
            &["memfd_create"],
            &["OpenOptions"],
            &["pidfd_open"],
            &["pipe_with"],
            &["socket_peerpidfd"],
            &["socket_with"],
            &["socketpair"],
            &["timerfd_create"],
            &["try_clone"],
            &["try_clone_to_owned"],
            &["TcpListener"],
            &["TcpStream"],
            &["UdpSocket"],
            &["UnixDatagram"],
            &["UnixListener"],
            &["UnixStream"],
        ],
    },
];

/// The chapter that defines the terms.
pub(crate) const GLOSSARY: &str = "spec/00-glossary.md";

/// Words of a requirement in `spec/`; its tables and the lists below it are free.
pub(crate) const REQUIREMENT_WORDS: usize = 60;

/// Words of a sentence in `spec/`, pages and doc comments.
pub(crate) const SENTENCE_WORDS: usize = 30;

/// Words with which no sentence begins: they stand for a subject that has a name.
pub(crate) const OPENINGS: &[&str] =
    &["Else", "Who", "Whoever", "Whom", "Whose", "What", "Whatever", "Such"];

/// Words behind "The same" at the beginning of a sentence that leaves out its noun.
pub(crate) const ELLIPSES: &[&str] = &[
    "a", "and", "as", "at", "but", "by", "for", "if", "in", "of", "on", "over", "that", "when",
    "where", "while", "with",
];

/// Words and phrases that texts have no use for, in small letters, and what stands there instead.
pub(crate) const RETIRED_PHRASES: &[(&str, &str)] = &[
    ("as above", "the thing itself"),
    ("doorstep", "handshake, half-open table or listener"),
    ("ears", "reachability table"),
    ("keeper", "progress thread"),
    ("patience", "budget of polls"),
    ("sieve", "packet filter"),
    ("so many", "the number"),
    ("stranger", "unconnected host, process or sender"),
    ("strangers", "unconnected hosts, processes or senders"),
    ("such a", "the thing itself"),
    ("such an", "the thing itself"),
    ("whoever", "the subject"),
    ("whomever", "the object"),
];

/// Macros that state what must hold, in every build or in those with debug assertions.
pub(crate) const ASSERTIONS: &[&str] =
    &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];

/// A room of state machines, whose code says what holds.
pub(crate) struct Assertive {
    /// The room: the density of assertions holds for it as a whole, for each folder in it, and for
    /// the files directly in it.
    pub(crate) folder: &'static str,
    /// In 1,000 lines of code, at least.
    pub(crate) per_thousand: usize,
}

/// Which rooms those are.
pub(crate) const ASSERTIVE: &[Assertive] = &[
    Assertive { folder: "proto/src/", per_thousand: 20 },
    Assertive { folder: "engine/src/active/", per_thousand: 20 },
    Assertive { folder: "engine/src/collective/", per_thousand: 20 },
    Assertive { folder: "engine/src/depot/", per_thousand: 20 },
    Assertive { folder: "engine/src/deposit/", per_thousand: 20 },
    Assertive { folder: "engine/src/endpoint/", per_thousand: 20 },
    Assertive { folder: "engine/src/job/", per_thousand: 20 },
    Assertive { folder: "engine/src/link/", per_thousand: 20 },
    Assertive { folder: "engine/src/channel/", per_thousand: 20 },
    Assertive { folder: "engine/src/multicast/", per_thousand: 20 },
    Assertive { folder: "engine/src/net/", per_thousand: 20 },
    Assertive { folder: "engine/src/port/", per_thousand: 20 },
    Assertive { folder: "engine/src/stream/", per_thousand: 20 },
];

/// Folders without a clock; every folder named `tests` is one too.
pub(crate) const CLOCKLESS: &[&str] = &["netsim/", "proto/", "sim/"];

/// Folders that need no attention by the citation check: the tools cite requirements as examples.
pub(crate) const UNCITED: &[&str] = &["xtask/"];

/// Folders, and files, that hold nothing but tests; what instructions are counted of is gated as
/// they are.
pub(crate) const TEST_FOLDERS: &[&str] =
    &["conformance/", "fuzz/", "engine/measurements/instructions.rs", "engine/src/link/fuzzed"];

/// The packages of the workspace that a package may depend on.
pub(crate) struct Layer {
    /// The folder of the package, or of several.
    pub(crate) folder: &'static str,
    /// The packages that it may be built on.
    pub(crate) uses: &'static [&'static str],
    /// The further packages that its tests may use.
    pub(crate) tests_use: &'static [&'static str],
}

/// The layers, bottom to top: the first entry whose folder holds a package decides.
pub(crate) const LAYERS: &[Layer] = &[
    Layer { folder: "netsim/", uses: &[], tests_use: &[] },
    Layer { folder: "proto/", uses: &[], tests_use: &["ayre-netsim"] },
    Layer { folder: "sim/", uses: &["ayre-proto"], tests_use: &[] },
    Layer {
        folder: "engine/",
        uses: &["ayre-netsim", "ayre-proto"],
        tests_use: &["ayre-conformance"],
    },
    Layer {
        folder: "conformance/",
        uses: &["ayre", "ayre-proto", "ayre-sim"],
        tests_use: &["ayre-conformance"],
    },
    Layer { folder: "xtask/", uses: &[], tests_use: &[] },
    Layer { folder: "fuzz/", uses: &["ayre", "ayre-proto", "ayre-sim"], tests_use: &[] },
    Layer {
        folder: "cli/",
        uses: &["ayre", "ayre-proto", "ayre-sim"],
        tests_use: &["ayre-conformance"],
    },
    Layer { folder: "guest/", uses: &["ayre"], tests_use: &[] },
    Layer { folder: "provider/", uses: &["ayre", "ayre-guest"], tests_use: &["ayre-sim"] },
    Layer { folder: "sockets/", uses: &["ayre"], tests_use: &[] },
    Layer { folder: "ucp/", uses: &["ayre", "ayre-guest"], tests_use: &[] },
    Layer { folder: "", uses: &["ayre", "ayre-proto"], tests_use: &["ayre-conformance"] },
];

/// How the modules of a crate may import from each other.
pub(crate) struct CrateRules {
    /// The sources.
    pub(crate) folder: &'static str,
    /// The modules at the crate's root, bottom to top: each imports only from layers below its own.
    pub(crate) layers: &'static [&'static str],
}

pub(crate) const CRATES: &[CrateRules] = &[
    CrateRules {
        folder: "sim/src/",
        layers: &[
            "random time",
            "calendar link packet topology",
            "machine routing stats work",
            "host",
            "dart extoll grim network nic",
            "cluster forth goal report",
            "whtra",
            "interface",
            "evidence scenario",
        ],
    },
    CrateRules {
        folder: "proto/src/",
        layers: &[
            "combine fault heap keyed limits refusal segment units",
            "alu",
            "lane lock matching notify xlate",
            "collective envelope execute group ring rma stream",
            "active command endpoint pending",
            "deposit link logical socket",
            "node",
        ],
    },
    CrateRules {
        folder: "engine/src/",
        layers: &[
            "port_range process random sync",
            "error sys",
            "clock folder machine settings text_file",
            "log tuning",
            "mem",
            "depot net peer",
            "target",
            "link",
            "port",
            "active deposit endpoint job shared",
            "channel collective guest multicast socket stream",
            "host memory message messenger network",
        ],
    },
    CrateRules { folder: "guest/src/", layers: &["cell copy error layout wait", "progress"] },
    CrateRules {
        folder: "provider/src/",
        layers: &["abi", "sys", "error", "info object record", "queue", "domain", "ep", "calls"],
    },
    CrateRules {
        folder: "ucp/src/",
        layers: &[
            "abi",
            "status",
            "address config key log",
            "sys",
            "context",
            "rkey worker",
            "calls",
        ],
    },
    CrateRules {
        folder: "capi/src/",
        layers: &[
            "error",
            "error_text place",
            "border",
            "access",
            "interface",
            "port",
            "active group memory stream",
            "channel collective multicast operation",
            "deposit endpoint message queue rest together",
        ],
    },
    CrateRules {
        folder: "python/src/",
        layers: &[
            "error",
            "buffer value",
            "call interface signals",
            "port",
            "active memory",
            "channel collective multicast stream",
            "deposit endpoint export message operation queue shared together",
            "awaiting",
        ],
    },
    CrateRules {
        folder: "cli/src/",
        layers: &["deposit manual page sys", "info run study", "net perf sim sockets", "top tune"],
    },
    CrateRules {
        folder: "xtask/src/",
        layers: &[
            "api finding header instructions rules tokens vectors",
            "source",
            "tree",
            "modules spec",
            "tidy",
        ],
    },
];

/// Whether `path` lies in one of `folders`.
pub(crate) fn is_under(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether the file at `path` holds nothing but tests.
pub(crate) fn is_test_file(path: &str) -> bool {
    is_under(path, TEST_FOLDERS) || is_in_tests_folder(path) || path.ends_with("/tests.rs")
}

/// Whether `path` lies in a folder named `tests`.
pub(crate) fn is_in_tests_folder(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| part == "tests")
}
