//! Faults of files.
use thiserror::Error;

/// A fault in a topology's file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {fault}")]
pub struct FileError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub fault: FileFault,
}

/// A fault in a line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FileFault {
    /// No statement begins so.
    #[error("{0:?} is no statement: those are `router`, `link`, `node` and `end`")]
    Statement(String),
    /// A statement has another form.
    #[error("the statement is to be `{0}`")]
    Form(&'static str),
    /// A name that is none.
    #[error("{0:?} is no name: 1 to 64 letters, digits and `_`, `.`, `-`, the first one no `-`")]
    Name(String),
    /// A name that is taken.
    #[error("there is a {what} {name} already")]
    Taken {
        /// Router or node.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that nothing has.
    #[error("there is no router {0} up to this line")]
    Unknown(String),
    /// A number that is none.
    #[error("{word:?} is no number of {what} from {least} to {limit}")]
    Number {
        /// Which number.
        what: &'static str,
        /// The word there.
        word: String,
        /// The least number.
        least: u16,
        /// The greatest.
        limit: u16,
    },
    /// A port has something at it.
    #[error("port {port} of router {router} is taken")]
    PortTaken {
        /// The router.
        router: String,
        /// The port.
        port: u16,
    },
    /// A router has no free port.
    #[error("router {router} has no free port left of its {ports}")]
    Ports {
        /// The router.
        router: String,
        /// How many it has.
        ports: u16,
    },
    /// A link that is there.
    #[error("there is a link from {from} to {to} already; parallel links all have to name ports")]
    Parallel {
        /// The router that it begins at.
        from: String,
        /// The router that it ends at.
        to: String,
    },
    /// A link to its own router.
    #[error("the link leads from router {0} to itself")]
    Itself(String),
    /// There is no `end`.
    #[error("the file was cut: its last line is to be `{0}`")]
    Cut(&'static str),
    /// There is something behind the end.
    #[error("there is something behind the end")]
    Behind,
    /// There are too few nodes.
    #[error("there are {0} nodes, and there have to be at least 2")]
    Few(usize),
    /// There are too many routers or nodes.
    #[error("there are more than {limit} {what}")]
    Many {
        /// Routers or nodes.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Something else is expected in DOT.
    #[error("{expected} is expected, and there is {found:?}")]
    Dot {
        /// The thing expected.
        expected: &'static str,
        /// The word there.
        found: String,
    },
}

/// Why a text names no links of a topology.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LinkError {
    /// A link has another form.
    #[error("`{0}` names no link: it is ROUTER--ROUTER or ROUTER:PORT, by their names")]
    Form(String),
    /// A name that nothing has.
    #[error("`{word}`: there is no router `{router}`")]
    Unknown {
        /// The link's name.
        word: String,
        /// The router's name.
        router: String,
    },
    /// Routers without a link, or a port without one.
    #[error("there is no link `{0}`")]
    NoLink(String),
}

/// A fault with its line.
pub(super) type Fault = (usize, FileFault);
