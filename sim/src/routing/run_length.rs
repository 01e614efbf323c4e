//! Ways as strings that packets carry, in the form of EXTOLL's network (section 2.6 of its thesis).
//!
//! ```text
//!   character:  | port: 4 bits | hops on channel 0: 6 bits | hops on channel 1: 6 bits |
//!   string:     four characters in 64 bits, the first one in the lowest bits
//! ```
//!
//! Each crossbar sends a packet to the port of the first character and counts down: the hops on
//! channel 0 first. A character that has come to zero is taken off. The last character is the port
//! of the node, with one hop.
use super::Step;
use core::fmt;
use thiserror::Error;

/// Hops that a character counts on each channel.
const HOPS_MAX: u16 = 63;
/// Ports that a character names.
const PORTS: u16 = 16;
/// Characters of a string.
const CHARACTERS: usize = 4;
const CHARACTER_BITS: u32 = 16;

/// A way in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength(pub u64);

/// Why a way is no string.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RunLengthError {
    /// The way changes its direction too often.
    #[error("the way takes {0} characters, and a string has {CHARACTERS}")]
    Long(usize),
    /// A router has too many ports.
    #[error("port {0}: a character names ports below {PORTS}")]
    Port(u16),
    /// There are too many channels.
    #[error("virtual channel {0}: a character counts hops on channels 0 and 1")]
    Channel(u16),
}

/// A run of hops by one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    port: u16,
    hops: [u16; 2],
}

impl RunLength {
    /// The string of a way. A hop that may choose between channels takes the first one.
    ///
    /// # Errors
    /// See [`RunLengthError`].
    pub fn new(way: &[Step]) -> Result<Self, RunLengthError> {
        let mut runs: Vec<Run> = Vec::new();
        for Step { hop, .. } in way {
            if hop.port >= PORTS {
                return Err(RunLengthError::Port(hop.port));
            }
            let channel = usize::from(hop.first);
            if channel > 1 {
                return Err(RunLengthError::Channel(hop.first));
            }
            match runs.last_mut() {
                Some(run) if run.takes(hop.port, channel) => run.hops[channel] += 1,
                _ => {
                    let mut hops = [0; 2];
                    hops[channel] = 1;
                    runs.push(Run { port: hop.port, hops });
                }
            }
        }
        if runs.len() > CHARACTERS {
            return Err(RunLengthError::Long(runs.len()));
        }
        let string = runs
            .iter()
            .rev()
            .fold(0, |string, run| string << CHARACTER_BITS | u64::from(run.character()));
        Ok(Self(string))
    }

    /// The work of a crossbar: the port and channel by which the packet leaves, with the string
    /// that it carries on. None if the string has come to its end.
    pub fn step(self) -> Option<(u16, u16, Self)> {
        let mut run = Run::from_character(self.0 as u16)?;
        let channel = usize::from(run.hops[0] == 0);
        run.hops[channel] -= 1;
        let rest = self.0 >> CHARACTER_BITS;
        let left = match run.hops {
            [0, 0] => rest,
            _ => rest << CHARACTER_BITS | u64::from(run.character()),
        };
        Some((run.port, channel as u16, Self(left)))
    }
}

impl Run {
    /// Whether one more hop fits this run: hops on channel 0 come first.
    fn takes(&self, port: u16, channel: usize) -> bool {
        let in_order = channel == 1 || self.hops[1] == 0;
        self.port == port && in_order && self.hops[channel] < HOPS_MAX
    }

    fn character(&self) -> u16 {
        self.port << 12 | self.hops[0] << 6 | self.hops[1]
    }

    fn from_character(character: u16) -> Option<Self> {
        let hops = [character >> 6 & HOPS_MAX, character & HOPS_MAX];
        (hops != [0, 0]).then_some(Self { port: character >> 12, hops })
    }
}

/// `port:hops+hops` for each character, such as `0:3+29 4:1+0`.
impl fmt::Display for RunLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut gap = "";
        while let Some(run) = Run::from_character(rest as u16) {
            write!(f, "{gap}{}:{}+{}", run.port, run.hops[0], run.hops[1])?;
            rest >>= CHARACTER_BITS;
            gap = " ";
        }
        Ok(())
    }
}
