//! The messages between the launcher and an agent, over the agent's standard input and output,
//! however those travel from host to host.
//!
//! The agent begins with a line that identifies it. Then both sides send messages, each a length of
//! four bytes, that number of bytes of postcard, and a line feed, as `srun` passes on whole lines
//! only. Lengths are bounded, and parsing is total.

use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::net::IpAddr;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::Mode;
use super::super::bind::Bind;
use super::super::output::Sink;

/// Longest message: a relayed line and what its neighbours in a pipe add.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes before a message: its length.
const LENGTH_BYTES: usize = 4;
/// The byte behind a message.
const END: u8 = b'\n';
/// The most lines before the greeting, such as a banner of `ssh` or of a login shell.
const BEFORE_LINES_MAX: usize = 256;
const BEFORE_BYTES_MAX: u64 = 64 << 10;
/// How much of a line stands in an error.
const SHOWN_CHARACTERS_MAX: usize = 200;
/// How every greeting begins, whatever the version.
const GREETING: &str = "ayre agent ";
/// Addresses of a rank, one for each path of its links, and of one that is found at any of them.
const PATHS_MAX: usize = 4;
pub(super) const ADDRESSES_MAX: usize = 8;

/// An order of the launcher to an agent. The agent stays while it can get orders.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Comes first, and once.
    Start(Box<Assignment>),
    /// Where a rank of another host is reached.
    Address(Address),
    /// Nobody reads this output any more.
    Unread(Sink),
    /// Send every rank a signal.
    Signal(i32),
    /// Have every rank end, by a signal if there is one.
    End { by: Option<i32> },
    /// Kill everything.
    Kill,
}

/// A report of an agent to the launcher.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// Where a rank of this host is reached.
    Address(Address),
    /// Output of ranks, in whole lines.
    Output { sink: Sink, text: Vec<u8> },
    /// A rank has ended, with this status as `wait` has it.
    Ended { rank: u16, status: i32 },
    /// The ranks could not be started.
    Refused { code: u8, message: String },
    /// No process is left, after `obeyed` orders to end or kill, and all output was sent. The agent
    /// stays: if the job fails, it must end the orphans of its ranks.
    Done { obeyed: u32 },
}

/// Where a rank listens for other hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) rank: u16,
    /// It may be found at any of the addresses; else they are paths, and all lead there.
    pub(super) is_any: bool,
    pub(super) at: Vec<SocketAddr>,
}

/// The task of an agent. Strings of the system are bytes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) first: u16,
    pub(super) count: u16,
    pub(super) size: u16,
    pub(super) program: Vec<Vec<u8>>,
    pub(super) environment: Secret<Vec<(Vec<u8>, Vec<u8>)>>,
    pub(super) directory: Vec<u8>,
    pub(super) bind: Bind,
    pub(super) mode: Option<Mode>,
    pub(super) prefix: bool,
    /// Interfaces, networks or addresses for the paths; none: wherever others may reach a rank.
    pub(super) net: Vec<String>,
    /// The key by which the ranks prove to each other that they belong to this job.
    pub(super) key: Secret<[u8; 32]>,
}

/// A value that errors and logs must not print: a key, or variables, which may be passwords.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Secret<T>(pub(super) T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

impl Address {
    /// Whether a rank can have such addresses.
    pub(super) fn is_valid(&self) -> bool {
        let is_address = |at: &SocketAddr| at.port() != 0 && !is_unspecified(at.ip());
        let most = if self.is_any { ADDRESSES_MAX } else { PATHS_MAX };
        (1..=most).contains(&self.at.len()) && self.at.iter().all(is_address)
    }
}

fn is_unspecified(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast()
}

/// A message as it is sent.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    let bytes = postcard::to_extend(message, vec![0; LENGTH_BYTES]);
    let mut bytes = bytes.expect("messages are made of what postcard can encode");
    let len = u32::try_from(bytes.len() - LENGTH_BYTES).expect("a message has at most megabytes");
    bytes[..LENGTH_BYTES].copy_from_slice(&len.to_le_bytes());
    bytes.push(END);
    bytes
}

/// Bytes behind the length.
fn rest_of(head: [u8; LENGTH_BYTES]) -> Result<usize> {
    let len = u32::from_le_bytes(head) as usize;
    ensure!(len <= MESSAGE_BYTES_MAX, "a message of {len} bytes is too long");
    Ok(len + 1)
}

/// Reads what is behind the length.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).context("a message makes no sense")?;
    ensure!(rest == [END], "a message does not end where it should");
    Ok(message)
}

/// Waits for the next message; none when the channel has ended between two.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>> {
    let mut head = [0; LENGTH_BYTES];
    let mut have = 0;
    while have < LENGTH_BYTES {
        match from.read(&mut head[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => bail!("the channel ended inside a message"),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut bytes = vec![0; rest_of(head)?];
    from.read_exact(&mut bytes).context("the channel ended inside a message")?;
    decode(&bytes).map(Some)
}

/// The bytes that have come from a channel which is read without blocking.
#[derive(Default)]
pub(super) struct Arrived {
    bytes: Vec<u8>,
}

impl Arrived {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that has come whole.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let Some(head) = self.bytes.first_chunk() else { return Ok(None) };
        let end = LENGTH_BYTES + rest_of(*head)?;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let message = decode(&self.bytes[LENGTH_BYTES..end])?;
        self.bytes.drain(..end);
        Ok(Some(message))
    }
}

/// The line with which an agent begins.
fn greeting() -> String {
    format!("{GREETING}{}\n", env!("CARGO_PKG_VERSION"))
}

pub(super) fn greet(to: &mut impl Write) -> io::Result<()> {
    to.write_all(greeting().as_bytes())?;
    to.flush()
}

/// Waits for an agent's greeting, and hands on the lines that come before it; false if it never
/// comes.
pub(super) fn expect_greeting(
    from: &mut impl BufRead,
    mut before: impl FnMut(&str),
) -> Result<bool> {
    let mut from = from.take(BEFORE_BYTES_MAX);
    let mut first = None;
    for _ in 0..BEFORE_LINES_MAX {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        // What says a word without ending the line has the greeting behind it.
        let cut = line.windows(GREETING.len()).position(|part| part == GREETING.as_bytes());
        let (text, greeted) = line.split_at(cut.unwrap_or(line.len()));
        if !text.is_empty() {
            let text = String::from_utf8_lossy(text).trim_end().to_owned();
            before(&text);
            first.get_or_insert(text);
        }
        if !greeted.is_empty() {
            return check_version(greeted).map(|()| true);
        }
        if !line.ends_with(b"\n") {
            break;
        }
    }
    if from.limit() > 0 && from.fill_buf()?.is_empty() {
        return Ok(false);
    }
    let first = first.unwrap_or_default();
    let shown: String = first.escape_debug().take(SHOWN_CHARACTERS_MAX).collect();
    bail!("what answers is no agent: it goes on from `{shown}` without a greeting")
}

fn check_version(greeted: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(greeted).trim_end().escape_debug().to_string();
    let version = text.strip_prefix(GREETING).unwrap_or_default();
    let own = env!("CARGO_PKG_VERSION");
    let shown: String = version.chars().take(SHOWN_CHARACTERS_MAX).collect();
    ensure!(version == own, "its ayre has version {shown}, this one {own} (--agent names another)");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(rank: u16, at: &[&str]) -> Address {
        let at = at.iter().map(|text| text.parse().unwrap()).collect();
        Address { rank, is_any: false, at }
    }

    fn messages() -> Vec<Report> {
        vec![
            Report::Address(address(7, &["10.0.0.1:5000", "[fe80::1]:80"])),
            Report::Output { sink: Sink::Stderr, text: vec![0xff; 1000] },
            Report::Ended { rank: 3, status: 0x0100 },
            Report::Refused { code: 127, message: "no such file".to_owned() },
            Report::Done { obeyed: 2 },
        ]
    }

    #[test]
    fn messages_survive_any_cut() {
        let bytes: Vec<u8> = messages().iter().flat_map(encode).collect();
        for size in [1, 2, 3, 7, 1000, bytes.len()] {
            let mut arrived = Arrived::default();
            let mut read = Vec::new();
            for piece in bytes.chunks(size) {
                arrived.push(piece);
                while let Some(report) = arrived.next::<Report>().unwrap() {
                    read.push(report);
                }
            }
            assert_eq!(read, messages(), "pieces of {size}");
        }
        let mut source = &bytes[..];
        for message in messages() {
            assert_eq!(read::<Report>(&mut source).unwrap(), Some(message));
        }
        assert!(read::<Report>(&mut source).unwrap().is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        let whole = encode(&messages()[0]);
        for cut in 1..whole.len() {
            assert!(read::<Report>(&mut &whole[..cut]).is_err(), "cut at {cut}");
        }
        let len = whole.len() as u32 - 5;
        for (len, rest) in [(len + 1, &[END][..]), (len - 1, &[]), (len, &[0])] {
            let end = whole.len() - usize::from(rest == [0]);
            let wrong = [&len.to_le_bytes(), &whole[4..end], rest].concat();
            assert!(read::<Report>(&mut &wrong[..]).is_err(), "{len} {rest:?}");
        }
        let mut arrived = Arrived::default();
        arrived.push(&[0xff; 8]);
        assert!(arrived.next::<Report>().is_err(), "a length beyond the limit");
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut state = 1_u32;
        for len in 0..200 {
            let mut bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            bytes.splice(0..0, (len as u32).to_le_bytes());
            // Whether it is a message or not, reading it ends.
            let _ = read::<Report>(&mut &bytes[..]);
            let _ = read::<Order>(&mut &bytes[..]);
        }
    }

    #[test]
    fn only_usable_addresses_are_valid() {
        assert!(address(0, &["10.0.0.1:1"]).is_valid());
        for at in [&[][..], &["10.0.0.1:0"], &["0.0.0.0:4"], &["10.0.0.1:1"; 5]] {
            assert!(!address(0, at).is_valid(), "{at:?}");
        }
    }

    /// Whether it greets, and what came before.
    fn greeted(text: &str) -> (Result<bool>, Vec<String>) {
        let mut before = Vec::new();
        let said = expect_greeting(&mut text.as_bytes(), |line| before.push(line.to_owned()));
        (said, before)
    }

    #[test]
    fn greetings_tell_agents_from_others() {
        assert!(greeted(&greeting()).0.unwrap() && !greeted("").0.unwrap());
        assert!(!greeted("Welcome to host b\n").0.unwrap(), "who ends is told by how it ends");
        let said = |text: &str| greeted(text).0.unwrap_err().to_string();
        assert!(said("ayre agent 0.0.9\n").contains("its ayre has version 0.0.9"));
        assert!(said(&format!("Welcome\n{}", "x".repeat(1 << 17))).contains("`Welcome`"));
        assert!(said(&"x\n".repeat(BEFORE_LINES_MAX + 1)).contains("no agent"));
        assert!(said(&"x".repeat(1 << 17)).len() < 300);
        assert!(said(&format!("{GREETING}{}\n", "9".repeat(5000))).len() < 300);
    }

    #[test]
    fn banners_before_a_greeting_are_handed_on() {
        let (said, before) = greeted(&format!("Welcome to b\r\n\nloading ... {}rest", greeting()));
        assert!(said.unwrap());
        assert_eq!(before, ["Welcome to b", "", "loading ..."]);
        let banner = "x\n".repeat(BEFORE_LINES_MAX - 1);
        assert!(greeted(&format!("{banner}{}", greeting())).0.unwrap());
    }

    #[test]
    fn bytes_after_a_greeting_stay_unread() {
        let text = format!("hi\n{}rest", greeting());
        let mut from = text.as_bytes();
        assert!(expect_greeting(&mut from, |_| {}).unwrap());
        assert_eq!(from, b"rest");
    }

    #[test]
    fn keys_and_variables_are_not_shown() {
        let assignment = Assignment {
            first: 0,
            count: 1,
            size: 1,
            program: Vec::new(),
            environment: Secret(vec![(b"PASSWORD".to_vec(), b"hunter2".to_vec())]),
            directory: Vec::new(),
            bind: Bind::None,
            mode: None,
            prefix: false,
            net: Vec::new(),
            key: Secret([0xab; 32]),
        };
        let shown = format!("{:?}", Order::Start(Box::new(assignment)));
        assert!(shown.contains("program") && shown.contains("key"), "{shown}");
        assert!(!shown.contains("171") && !shown.contains("104"), "{shown}");
    }
}
