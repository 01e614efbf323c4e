//! Where an endpoint is found.
use crate::connection::Name;
use crate::error::SetupError;
use crate::job::host_number;
use rustix::net::SocketAddrUnix;
use rustix::rand::{GetRandomFlags, getrandom};

const VERSION: u8 = 1;

/// An endpoint's address: bytes that a program hands to others by whatever means it has. Nobody can
/// guess one.
///
/// ```text
///   byte 0  version   8  host   16  name   32  zeros   64
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    host: u64,
    name: Name,
}

impl Address {
    /// Bytes of an address.
    pub const BYTES: usize = 64;

    pub(super) fn new() -> Result<Self, SetupError> {
        let mut name = [0; 16];
        // Asks the system: programs that only share memory need no generator of their own.
        let got = getrandom(&mut name, GetRandomFlags::empty());
        let whole = got.map_err(SetupError::os("getrandom"))? == name.len();
        assert!(whole, "so few bytes come at once");
        let [low, high] = [0, 8].map(|at| word(&name, at));
        Ok(Self { host: host_number()?, name: [low, high] })
    }

    pub(super) fn name(&self) -> Name {
        self.name
    }

    /// Whether who is there can share memory with who is at the other one.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        self.host == other.host
    }

    /// As it is handed over.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        for (place, word) in bytes[8..].as_chunks_mut().0.iter_mut().zip(self.words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Reads what [`Address::to_bytes`] gave; none where it is no address.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let address = Self { host: word(bytes, 8), name: [word(bytes, 16), word(bytes, 24)] };
        (address.to_bytes() == *bytes).then_some(address)
    }

    fn words(&self) -> [u64; 3] {
        [self.host, self.name[0], self.name[1]]
    }

    /// Its socket, which has a name and no file.
    pub(super) fn socket(&self) -> Result<SocketAddrUnix, SetupError> {
        let name = format!("ayre-{:016x}{:016x}", self.name[0], self.name[1]);
        SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(SetupError::os("socket name"))
    }

    /// Of an endpoint that has called and whose address nobody has handed over yet.
    pub(super) fn of_neighbour(&self, name: Name) -> Self {
        Self { host: self.host, name }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..].first_chunk().expect("a whole word");
    u64::from_le_bytes(*word)
}
