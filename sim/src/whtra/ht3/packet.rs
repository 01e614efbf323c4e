//! The CRC of each packet, and stomping (section II).
//!
//! A switch may forward a packet before its CRC has come. If the CRC is wrong then, the switch
//! sends it inverted. The end knows that the packet is invalid, and that its own link is not to
//! blame.
use crate::link::LinkTiming;
use crate::time::Time;
use crc::{CRC_32_ISO_HDLC, Crc};

/// Bytes of a CRC.
pub const CRC_BYTES: usize = 4;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The judgement about a packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its CRC is right.
    Good,
    /// Its CRC is inverted: an earlier link has spoilt it.
    Stomped,
    /// Its CRC is neither: this link has spoilt it.
    Bad,
}

/// Bytes with their CRC behind them.
pub fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = CRC.checksum(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// Judges bytes that have a CRC behind them.
pub fn judge(sealed: &[u8]) -> Verdict {
    let Some((bytes, crc)) = sealed.split_last_chunk::<CRC_BYTES>() else {
        return Verdict::Bad;
    };
    let (crc, right) = (u32::from_le_bytes(*crc), CRC.checksum(bytes));
    match crc ^ right {
        0 => Verdict::Good,
        u32::MAX => Verdict::Stomped,
        _ => Verdict::Bad,
    }
}

/// Forwards a packet as a switch does that learns at its end whether it was good. A good one stays
/// as it is.
pub fn forward(mut sealed: Vec<u8>) -> Vec<u8> {
    if judge(&sealed) == Verdict::Bad && sealed.len() >= CRC_BYTES {
        let data = sealed.len() - CRC_BYTES;
        let inverted = !CRC.checksum(&sealed[..data]);
        sealed[data..].copy_from_slice(&inverted.to_le_bytes());
    }
    sealed
}

/// The time of a packet over `hops` links with switches between them, which forward it when they
/// have its header (stomping), or when they have checked its CRC.
pub fn path(link: &LinkTiming, hops: u32, bytes: u32, header: u32, stomps: bool) -> Time {
    let each = link.span(if stomps { header } else { bytes });
    let wires = Time(link.wire.0 * u64::from(hops));
    Time(each.0 * u64::from(hops.saturating_sub(1))) + link.span(bytes) + wires
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::whtra::ht3::HT1600_8;

    fn flip(sealed: &mut [u8], random: &mut Random) {
        let bit = random.below(sealed.len() as u32 * 8) as usize;
        sealed[bit / 8] ^= 1 << (bit % 8);
    }

    #[test]
    fn a_spoilt_packet_is_never_good_behind_any_number_of_switches() {
        let mut random = Random::new(5, 0);
        for _ in 0..2_000 {
            let bytes = (0..72).map(|_| random.below(256) as u8).collect();
            let mut packet = seal(bytes);
            assert_eq!(judge(&forward(packet.clone())), Verdict::Good);
            flip(&mut packet, &mut random);
            assert_eq!(judge(&packet), Verdict::Bad);
            let mut stomped = forward(packet);
            assert_eq!(judge(&stomped), Verdict::Stomped);
            stomped = forward(stomped);
            assert_eq!(judge(&stomped), Verdict::Stomped);
            // A further error on a later link is that link's.
            flip(&mut stomped, &mut random);
            assert_eq!(judge(&stomped), Verdict::Bad);
        }
        assert_eq!(judge(&[1, 2]), Verdict::Bad);
    }

    #[test]
    fn stomping_saves_the_packet_less_its_header_at_each_switch() {
        let time = |stomps| path(&HT1600_8, 4, 76, 8, stomps).0;
        assert_eq!(time(false) - time(true), 3 * 68 * 1_250 / 4);
        assert_eq!(path(&HT1600_8, 1, 76, 8, true), path(&HT1600_8, 1, 76, 8, false));
    }
}
