//! A family's memory, as another process of its user reads it from the file. The family writes
//! meanwhile, so words that belong together may differ by what is under way.
use super::{
    FAMILY_BYTES, FAMILY_MAGIC, FIRST_SEAT, HOLDERS, KERNEL_READ, KERNEL_WRITTEN, MOST_HOLDERS,
    OWN_TAKEN, OWN_WRITTEN, Owner, REASON, REASON_WORDS, REASONS, SEAT_BYTES, SEGMENT, SOCKET,
    TAIL,
};
use ayre_proto::socket::Reason;
use rustix::fd::BorrowedFd;
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::pread;

/// The longest piece that is read at once: whole seats.
const PIECE: usize = 1024 * SEAT_BYTES as usize;

/// All that a family tells of its connections.
#[derive(Clone, Debug)]
pub(crate) struct SeenFamily {
    reasons: Vec<u8>,
    pub(crate) seats: Vec<SeenSeat>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenSeat {
    pub(crate) socket: SeenSocket,
    pub(crate) reason: Reason,
    /// The processes of the family that have it.
    pub(crate) holders: usize,
    pub(crate) outward: SeenDirection,
    pub(crate) inward: SeenDirection,
}

/// The socket of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenSocket {
    /// The number that no other socket of the host has.
    Number(u64),
    /// The descriptor of the process that has it alone. It has not asked the kernel for the number.
    Descriptor(Owner),
}

impl SeenSocket {
    /// In the word of a descriptor.
    const IS_DESCRIPTOR: u64 = 1 << 63;

    pub(super) const fn word(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Descriptor(Owner { process, fd }) => {
                Self::IS_DESCRIPTOR | (process as u64) << 32 | fd as u64
            }
        }
    }

    /// None in a seat that was never used.
    const fn of_word(word: u64) -> Option<Self> {
        match word {
            0 => None,
            _ if word & Self::IS_DESCRIPTOR != 0 => {
                let process = ((word & !Self::IS_DESCRIPTOR) >> 32) as u32;
                Some(Self::Descriptor(Owner { process, fd: word as u32 }))
            }
            _ => Some(Self::Number(word)),
        }
    }
}

/// One direction, as this end believes it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenDirection {
    /// Bytes by either way.
    pub(crate) bytes: u64,
    /// Those of them by the kernel.
    pub(crate) by_kernel: u64,
    pub(crate) segment: u32,
}

fn word(bytes: &[u8], place: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[place..place + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], place: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[place..place + 4]);
    u32::from_ne_bytes(half)
}

impl SeenFamily {
    /// Reads the file of a family. None where it is another file.
    pub(crate) fn read(file: BorrowedFd<'_>) -> Option<Self> {
        let mut magic = [0; 8];
        let is_long = fstat(file).is_ok_and(|stat| stat.st_size as u64 >= FAMILY_BYTES);
        if !is_long || pread(file, &mut magic, 0) != Ok(8) || word(&magic, 0) != FAMILY_MAGIC {
            return None;
        }
        let mut reasons = vec![0; 8 * REASON_WORDS as usize];
        fill(file, &mut reasons, REASONS)?;
        let mut seats = Vec::new();
        let mut at = FIRST_SEAT;
        // A seat that nobody has used yet has no memory.
        while let Some(place) = data_from(file, at) {
            let first = place.max(at) - (place.max(at) - FIRST_SEAT) % SEAT_BYTES;
            let mut piece = vec![0; PIECE.min((FAMILY_BYTES - first) as usize)];
            fill(file, &mut piece, first)?;
            seats.extend(piece.chunks_exact(SEAT_BYTES as usize).filter_map(SeenSeat::of));
            at = first + piece.len() as u64;
        }
        Some(Self { reasons, seats })
    }

    /// Why a socket has no seat, as far as that was kept: that of a process, by its own number,
    /// and its descriptor.
    pub(crate) fn reason(&self, process: u32, fd: u32) -> Reason {
        let of = Owner { process, fd };
        of.reason(word(&self.reasons, (of.place() - REASONS) as usize))
    }
}

fn fill(file: BorrowedFd<'_>, into: &mut [u8], from: u64) -> Option<()> {
    let mut done = 0;
    while done < into.len() {
        let len = pread(file, &mut into[done..], from + done as u64).ok().filter(|len| *len > 0)?;
        done += len;
    }
    Some(())
}

/// Where the file has memory next.
fn data_from(file: BorrowedFd<'_>, at: u64) -> Option<u64> {
    seek(file, SeekFrom::Data(at)).ok().filter(|place| *place < FAMILY_BYTES)
}

impl SeenSeat {
    /// None where nobody has the seat.
    fn of(bytes: &[u8]) -> Option<Self> {
        let socket = SeenSocket::of_word(word(bytes, SOCKET))?;
        let holder = |i: &usize| half(bytes, HOLDERS + 4 * i) != 0;
        let holders = (0..MOST_HOLDERS).filter(holder).count();
        let outward = SeenDirection {
            bytes: word(bytes, OWN_WRITTEN + TAIL),
            by_kernel: word(bytes, KERNEL_WRITTEN),
            segment: word(bytes, OWN_WRITTEN + SEGMENT) as u32,
        };
        let inward = SeenDirection {
            bytes: word(bytes, OWN_TAKEN),
            by_kernel: word(bytes, KERNEL_READ),
            segment: word(bytes, OWN_TAKEN + 8) as u32,
        };
        let reason = Reason::of_word(half(bytes, REASON));
        (holders != 0).then_some(Self { socket, reason, holders, outward, inward })
    }
}
