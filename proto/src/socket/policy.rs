//! The policy of sockets: which connections may go by rings, which must not, and which must.
//!
//! ```text
//!   may|never|must  [connect|accept]  ADDRESS[/BITS][:PORT[-PORT]]  [program=NAME]  [user=USER]
//!   may|never|must  [connect|accept]  PATH or @NAME                 [program=NAME]  [user=USER]
//! ```
//!
//! The first line that matches a connection decides; without one it may. The address is that of
//! the end that listens, so that a line means one thing at both ends. It is `*` for all of TCP, an
//! IPv4 address, or an IPv6 address in brackets. A Unix socket is named by its path, or by its
//! abstract name behind `@`; with `*` at their end for all that begin so. A program is named by its
//! file or by the whole path, and is the one that asks. A user is the peer's.
//!
//! In a policy with a malformed line, no connection may go by a ring. One that must is refused, and
//! a malformed line that may have said `must` says so for all connections.
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;

/// The word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By a ring where that works, and by the kernel otherwise.
    May,
    /// By the kernel.
    Never,
    /// By a ring, or not at all.
    Must,
}

/// The part of a process in the opening of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It connects.
    Connect,
    /// It accepts.
    Accept,
}

/// Where the end of a connection listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The address and port of TCP.
    Tcp(SocketAddr),
    /// The path of a Unix socket, or `@` and its abstract name.
    Unix(&'a str),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(at) => at.fmt(f),
            Self::Unix(name) => name.fmt(f),
        }
    }
}

/// A connection, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The part of the process that asks.
    pub act: Act,
    /// The place of the end that listens.
    pub at: Place<'a>,
    /// The paths of the program that asks: as it was started, and without links.
    pub programs: &'a [String],
    /// The peer's user. None where no peer has shown itself: then a line that names a user counts
    /// only if it says `must`.
    pub user: Option<u32>,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The word of the line.
    pub verdict: Verdict,
    /// The number of the line; 0: none has matched.
    pub line: u32,
    /// The line names the peer's user.
    pub names_user: bool,
}

/// A malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its number.
    pub line: u32,
    /// The words that should have stood there.
    pub expected: &'static str,
    /// The word that stands there; empty: nothing more.
    pub found: String,
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.found.is_empty() {
            true => write!(f, "expected {}, found the end of the line", self.expected),
            false => write!(f, "expected {}, found `{}`", self.expected, self.found),
        }
    }
}

/// A policy that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    lines: Vec<Line>,
    is_broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    number: u32,
    verdict: Verdict,
    act: Option<Act>,
    places: Places,
    program: Option<String>,
    user: Option<u32>,
}

/// The places that a line names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Places {
    /// Without a network: all.
    Tcp(Option<Network>, RangeInclusive<u16>),
    /// One name, or all that begin with it.
    Unix { name: String, is_whole: bool },
}

/// Addresses of one family that begin with the same bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Network {
    first: IpAddr,
    bits: u32,
}

impl Policy {
    /// The policy in which all connections must go by a ring: in the place of one that cannot be
    /// read.
    pub fn unreadable() -> Self {
        Self { lines: [Line::of_all(0, Verdict::Must)].into(), is_broken: true }
    }

    /// Reads a policy, and finds its malformed lines. `user` tells the number of a user's name.
    pub fn read(text: &str, user: impl Fn(&str) -> Option<u32>) -> (Self, Vec<Fault>) {
        let (mut lines, mut faults) = (Vec::new(), Vec::new());
        for (number, text) in (1..).zip(text.lines()) {
            let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
            let Some(first) = words.next() else { continue };
            match Line::read((number, first), words, &user) {
                Ok(line) => lines.push(line),
                Err((expected, found)) => {
                    faults.push(Fault { line: number, expected, found: found.to_owned() });
                    if !["may", "never"].contains(&first) {
                        lines.push(Line::of_all(number, Verdict::Must));
                    }
                }
            }
        }
        let this = Self { lines, is_broken: !faults.is_empty() };
        this.check();
        (this, faults)
    }

    fn check(&self) {
        if cfg!(debug_assertions) {
            let mut last = 0;
            for line in &self.lines {
                debug_assert!(line.number > last || self.is_broken, "lines stand in their order");
                debug_assert!(line.program != Some(String::new()), "a program has a name");
                line.places.check();
                last = line.number;
            }
        }
    }

    /// Whether all connections may go by rings: there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.is_broken
    }

    /// The answer for a connection.
    pub fn judge(&self, question: &Question<'_>) -> Ruling {
        self.check();
        let found = self.lines.iter().find(|line| line.matches(question));
        let ruling =
            found.map_or(Ruling { verdict: Verdict::May, line: 0, names_user: false }, |line| {
                Ruling { verdict: line.verdict, line: line.number, names_user: line.user.is_some() }
            });
        let ruling = match (self.is_broken, ruling.verdict) {
            (true, Verdict::May) => Ruling { verdict: Verdict::Never, ..ruling },
            _ => ruling,
        };
        debug_assert!(
            ruling.verdict != Verdict::May || self.allows_some(question),
            "a connection with one user's processes is one with some users'"
        );
        ruling
    }

    /// Whether there are users with whose processes the connection may go by a ring. The question's
    /// own user does not matter.
    pub fn allows_some(&self, question: &Question<'_>) -> bool {
        self.check();
        let mut lines = self.lines.iter().filter(|line| line.is_about(question));
        let deciding = lines.find(|line| line.verdict != Verdict::Never || line.user.is_none());
        !self.is_broken && deciding.is_none_or(|line| line.verdict != Verdict::Never)
    }

    /// Whether a line names a user.
    pub fn names(&self, user: u32) -> bool {
        self.lines.iter().any(|line| line.user == Some(user))
    }
}

/// The words that should have stood at a place of a line, and those that do.
type Malformed<'a> = (&'static str, &'a str);

impl Line {
    /// A line about all of TCP.
    fn of_all(number: u32, verdict: Verdict) -> Self {
        let places = Places::Tcp(None, 0..=u16::MAX);
        Self { number, verdict, act: None, places, program: None, user: None }
    }

    fn read<'a>(
        (number, first): (u32, &'a str),
        words: impl Iterator<Item = &'a str>,
        user: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, Malformed<'a>> {
        let verdict = match first {
            "may" => Verdict::May,
            "never" => Verdict::Never,
            "must" => Verdict::Must,
            other => return Err(("`may`, `never` or `must`", other)),
        };
        let mut line = Self::of_all(number, verdict);
        let mut words = words.peekable();
        line.act = match words.peek() {
            Some(&"connect") => Some(Act::Connect),
            Some(&"accept") => Some(Act::Accept),
            _ => None,
        };
        if line.act.is_some() {
            words.next();
        }
        line.places = Places::read(words.next().unwrap_or_default())?;
        for word in words {
            match word.split_once('=') {
                Some(("program", name)) if line.program.is_none() && !name.is_empty() => {
                    line.program = Some(name.to_owned());
                }
                Some(("user", name)) if line.user.is_none() => {
                    let number = name.parse().ok().or_else(|| user(name));
                    line.user = Some(number.ok_or(("a user of this host", name))?);
                }
                _ => return Err(("`program=NAME` or `user=USER`, each once", word)),
            }
        }
        Ok(line)
    }

    fn matches(&self, question: &Question<'_>) -> bool {
        let is_user = match (self.user, question.user) {
            (None, _) => true,
            (Some(_), None) => self.verdict == Verdict::Must,
            (Some(named), Some(user)) => named == user,
        };
        is_user && self.is_about(question)
    }

    /// Whether all but the user matches.
    fn is_about(&self, question: &Question<'_>) -> bool {
        let is_act = self.act.is_none_or(|act| act == question.act);
        let is_program = |name: &String| {
            question.programs.iter().any(|path| match name.contains('/') {
                true => name == path,
                false => path.rsplit('/').next() == Some(name),
            })
        };
        let is_there = self.places.contains(question.at);
        is_act && is_there && self.program.as_ref().is_none_or(is_program)
    }
}

impl Places {
    fn read(word: &str) -> Result<Self, Malformed<'_>> {
        if !word.starts_with(['/', '@']) {
            return range(word).map(|(network, ports)| Self::Tcp(network, ports));
        }
        let (name, is_whole) = word.strip_suffix('*').map_or((word, true), |name| (name, false));
        Ok(Self::Unix { name: name.to_owned(), is_whole })
    }

    fn check(&self) {
        match self {
            Self::Tcp(network, ports) => {
                debug_assert!(!ports.is_empty(), "a line is about some port");
                let bits = network.as_ref().map_or(0, |network| network.bits);
                debug_assert!(bits <= u128::BITS, "a network has no more bits than addresses");
            }
            Self::Unix { name, .. } => debug_assert!(!name.is_empty(), "a name begins somehow"),
        }
    }

    fn contains(&self, place: Place<'_>) -> bool {
        match (self, place) {
            (Self::Tcp(network, ports), Place::Tcp(at)) => {
                let is_there = network.as_ref().is_none_or(|all| all.contains(at.ip()));
                is_there && ports.contains(&at.port())
            }
            (Self::Unix { name, is_whole: true }, Place::Unix(at)) => name == at,
            (Self::Unix { name, is_whole: false }, Place::Unix(at)) => at.starts_with(&**name),
            _ => false,
        }
    }
}

/// The addresses and ports that a word names.
fn range(word: &str) -> Result<(Option<Network>, RangeInclusive<u16>), Malformed<'_>> {
    // The colons in brackets are the address's own.
    let behind = word.find(']').unwrap_or(0);
    let (network, ports) = match word[behind..].find(':') {
        Some(colon) => (&word[..behind + colon], Some(&word[behind + colon + 1..])),
        None => (word, None),
    };
    let network = match network {
        "*" => None,
        named => Some(Network::read(named).ok_or((
            "an address: `*`, IPv4, or IPv6 in brackets, and `/BITS` where it is a network; or the \
             path or `@name` of a Unix socket",
            word,
        ))?),
    };
    let ports = ports.map_or(Some(0..=u16::MAX), |text| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    });
    Ok((network, ports.ok_or(("a port from 0 to 65535, or two with `-` between them", word))?))
}

impl Network {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let six = address.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
        let first = match six {
            Some(inner) => IpAddr::V6(inner?.parse::<Ipv6Addr>().ok()?),
            None => IpAddr::V4(address.parse::<Ipv4Addr>().ok()?),
        };
        let most = if first.is_ipv4() { u32::BITS } else { u128::BITS };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        (bits <= most).then_some(Self { first, bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        debug_assert!(self.first.is_ipv6() || self.bits <= u32::BITS, "bits lie in the address");
        let equal = match (self.first, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        equal >= self.bits
    }
}

#[cfg(test)]
mod tests;
