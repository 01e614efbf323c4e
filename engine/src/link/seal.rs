//! Sealed datagrams: frames that only the two ends of a link can read, and only they can make.
//!
//! ```text
//!  at                16                                    16 + frame         + 16
//!  +------+----+-----+----------+----------------------------+---------------+
//!  | 2, 0 | to | packet         |  the frame, encrypted      |      tag      |
//!  +------+----+-----+----------+----------------------------+---------------+
//!  '- prefix: clear, authentic -'
//! ```
//!
//! AES-256-GCM; the nonce is the packet number, which never comes twice, and each direction has
//! keys of its own. After 2^24 packets a direction goes over to the next key without a word.
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ayre_proto::link::frame::HEADER_BYTES;
use ayre_proto::link::replay::REPLAY_WINDOW;
use std::fmt;
use zeroize::Zeroizing;

/// Bytes before the frame: what the nonce is made of, and whose datagram it is.
pub(crate) const PREFIX_BYTES: usize = 16;
/// Bytes behind the frame.
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// The version of a bare frame is 1.
const VERSION: u8 = 2;
/// The bits of a prefix's first byte that tell the version.
const VERSION_MASK: u8 = 15;
/// A packet's number without these bits is its epoch: the packets of one key.
const EPOCH_BITS: u32 = 24;
/// The nonce that makes the next key.
const REKEY: u64 = u64::MAX;
/// Where a frame's header repeats the prefix.
const FRAME_TO: usize = 8;
const FRAME_PACKET: usize = 24;
const _: () = assert!(FRAME_TO + 4 <= HEADER_BYTES, "a header has the index");
const _: () = assert!(FRAME_PACKET + 8 <= HEADER_BYTES, "and the packet's number");
const _: () = assert!(REPLAY_WINDOW < 1 << EPOCH_BITS, "two keys are alive at a time");
const _: () = assert!(VERSION & VERSION_MASK == VERSION, "a first byte has room for it");

/// The sender does not hold the key, or the network has damaged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not come from the holder of the key")]
pub(crate) struct Forged;

/// The keys of one end of a link, for both directions.
pub(crate) struct Keys {
    outward: Outward,
    inward: Inward,
}

impl Keys {
    /// From what the handshake has agreed on.
    pub(crate) fn new(outward: &[u8; KEY_BYTES], inward: &[u8; KEY_BYTES]) -> Self {
        Self {
            outward: Outward { last: 0, key: Key::new(outward) },
            inward: Inward { epoch: 0, key: Key::new(inward), former: None, next: None },
        }
    }

    /// Seals a datagram: [`PREFIX_BYTES`] zeros, a frame, and room for the tag. The prefix is
    /// written, the frame encrypted where it is, the tag written behind it.
    ///
    /// `to` and `packet` are those of the frame's header. Packet numbers grow from call to call,
    /// and no epoch is left out: a number that comes twice would give both frames away, so that is
    /// an assertion.
    // spec: SEAL-1, SEAL-2, SEAL-3
    pub(crate) fn seal(&mut self, to: u32, packet: u64, datagram: &mut [u8]) {
        let (room, sealed) =
            datagram.split_first_chunk_mut::<PREFIX_BYTES>().expect("there is room for the prefix");
        let (frame, tag) =
            sealed.split_last_chunk_mut::<TAG_BYTES>().expect("there is room for the tag");
        debug_assert_eq!(*room, [0; PREFIX_BYTES], "the room before a frame is kept free");
        debug_assert!(repeats(frame, to, packet), "a frame's header repeats its prefix");
        *room = prefix(to, packet);
        *tag = self.outward.key_of(packet).seal(packet, *room, frame);
    }

    /// Opens a datagram where it is: the frame. If it is forged, its bytes are worth nothing.
    ///
    /// It does not ask whether the packet has come before: that is for the link (LINK-15), which
    /// must not hear of a packet that is not authentic.
    // spec: SEAL-3, SEAL-4, SEAL-5
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<&'a mut [u8], Forged> {
        let to = sealed_for(datagram).ok_or(Forged)?;
        let (prefix, sealed) =
            datagram.split_first_chunk_mut::<PREFIX_BYTES>().expect("longer than a prefix");
        let packet = packet_of(prefix);
        let frame = self.inward.key_of(packet)?.open(packet, *prefix, sealed)?;
        self.inward.on_authentic(packet);
        if repeats(frame, to, packet) { Ok(frame) } else { Err(Forged) }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs = (epoch(self.outward.last), self.inward.epoch);
        f.debug_struct("Keys").field("epochs", &epochs).finish_non_exhaustive()
    }
}

/// The index of the link that a sealed datagram is for, as its clear prefix tells: nothing else of
/// it was looked at, and anybody can write that. None if it is no sealed datagram.
// spec: SEAL-1
pub(crate) fn sealed_for(datagram: &[u8]) -> Option<u32> {
    let is_long_enough = datagram.len() >= PREFIX_BYTES + HEADER_BYTES + TAG_BYTES;
    let &[first, _, _, _, a, b, c, d, ..] = datagram else { return None };
    let is_sealed = is_long_enough && first & VERSION_MASK == VERSION;
    is_sealed.then_some(u32::from_le_bytes([a, b, c, d]))
}

/// The direction in which this end sends.
struct Outward {
    /// The highest packet number so far; its epoch is the key's.
    last: u64,
    key: Key,
}

impl Outward {
    // spec: SEAL-3, SEAL-5
    fn key_of(&mut self, packet: u64) -> &Key {
        assert!(self.last < packet && packet < REKEY, "a packet number never comes twice");
        match epoch(packet) - epoch(self.last) {
            0 => {}
            1 => self.key = self.key.next(),
            _ => panic!("no epoch is left out"),
        }
        self.last = packet;
        &self.key
    }
}

/// The direction in which the other side sends.
struct Inward {
    /// Of the newest authentic packet.
    epoch: u64,
    key: Key,
    /// For what was overtaken when the epoch turned.
    former: Option<Key>,
    /// Made when a packet claims to need it, and kept: a forger has it made once.
    next: Option<Key>,
}

impl Inward {
    // spec: SEAL-5
    fn key_of(&mut self, packet: u64) -> Result<&Key, Forged> {
        let claimed = epoch(packet);
        if claimed == self.epoch {
            Ok(&self.key)
        } else if claimed == self.epoch + 1 {
            Ok(self.next.get_or_insert_with(|| self.key.next()))
        } else if claimed + 1 == self.epoch {
            self.former.as_ref().ok_or(Forged)
        } else {
            Err(Forged)
        }
    }

    // spec: SEAL-5, SEAL-6
    fn on_authentic(&mut self, packet: u64) {
        if epoch(packet) > self.epoch {
            let next = self.next.take().expect("the packet was opened with it");
            self.former = Some(std::mem::replace(&mut self.key, next));
            self.epoch = epoch(packet);
        }
        // What the former key protects would be too old for the link by now.
        if packet >= (self.epoch << EPOCH_BITS) + REPLAY_WINDOW {
            self.former = None;
        }
        debug_assert!(epoch(packet) <= self.epoch, "epochs only grow");
        debug_assert!(self.former.is_none() || self.epoch > 0, "the first key follows none");
    }
}

/// The key of one direction and epoch. The library overwrites it when it is dropped.
struct Key(LessSafeKey);

impl Key {
    // spec: SEAL-2
    fn new(secret: &[u8; KEY_BYTES]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, secret).expect("a key of 256 bits");
        Self(LessSafeKey::new(key))
    }

    /// The key of the next epoch: Noise's function REKEY.
    // spec: SEAL-5
    fn next(&self) -> Self {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        let _tag = self
            .0
            .seal_in_place_separate_tag(nonce(REKEY), Aad::empty(), &mut secret[..])
            .expect("a key is not too long to be encrypted");
        Self::new(&secret)
    }

    fn seal(&self, packet: u64, prefix: [u8; PREFIX_BYTES], frame: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce(packet), Aad::from(prefix), frame)
            .expect("a frame is not too long to be encrypted");
        tag.as_ref().try_into().expect("a tag of 16 bytes")
    }

    fn open<'a>(
        &self,
        packet: u64,
        prefix: [u8; PREFIX_BYTES],
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Forged> {
        self.0.open_in_place(nonce(packet), Aad::from(prefix), sealed).map_err(|_| Forged)
    }
}

const fn epoch(packet: u64) -> u64 {
    packet >> EPOCH_BITS
}

/// As Noise makes it for AESGCM.
// spec: SEAL-2
fn nonce(packet: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&packet.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

// spec: SEAL-1
fn prefix(to: u32, packet: u64) -> [u8; PREFIX_BYTES] {
    let mut bytes = [0; PREFIX_BYTES];
    bytes[0] = VERSION;
    bytes[4..8].copy_from_slice(&to.to_le_bytes());
    bytes[8..].copy_from_slice(&packet.to_le_bytes());
    bytes
}

const fn packet_of(prefix: &[u8; PREFIX_BYTES]) -> u64 {
    let [_, _, _, _, _, _, _, _, packet @ ..] = *prefix;
    u64::from_le_bytes(packet)
}

/// Whether a frame's header has these fields of its prefix.
// spec: SEAL-4
fn repeats(frame: &[u8], to: u32, packet: u64) -> bool {
    frame.len() >= HEADER_BYTES
        && frame[FRAME_TO..].starts_with(&to.to_le_bytes())
        && frame[FRAME_PACKET..].starts_with(&packet.to_le_bytes())
}

#[cfg(test)]
mod tests;
