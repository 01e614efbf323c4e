//! Addresses of workers as bytes, which programs hand on.
//!
//! ```text
//!     0  mark: 8 bytes   8  length: 4   12  form: 4   16  64 bits of a name   24  address: 64
//! ```
//!
//! Programs hand them on without their length, and with other bytes behind them.

use ayre::endpoint::Address;

/// Bytes of an address.
pub(crate) const BYTES: usize = HEAD + Address::BYTES;

const HEAD: usize = 24;
const MARK: [u8; 8] = *b"ayre-ucp";
const FORM: u32 = 1;

/// The bytes of an address.
pub(crate) fn to_bytes(address: &Address) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MARK);
    bytes[8..12].copy_from_slice(&(BYTES as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&FORM.to_le_bytes());
    let own = address.to_bytes();
    bytes[16..HEAD].copy_from_slice(&name_of(&own).to_le_bytes());
    bytes[HEAD..].copy_from_slice(&own);
    bytes
}

/// The address in these bytes, and its name. None where they are another library's, or of another
/// version.
pub(crate) fn of_bytes(bytes: &[u8; BYTES]) -> Option<(Address, u64)> {
    let (head, own) = bytes.split_first_chunk::<HEAD>()?;
    let is_ours = head[..8] == MARK
        && head[8..12] == (BYTES as u32).to_le_bytes()
        && head[12..16] == FORM.to_le_bytes();
    let address = Address::from_bytes(own.try_into().ok()?).filter(|_| is_ours)?;
    let name = u64::from_le_bytes(head[16..HEAD].try_into().ok()?);
    (name == name_of(own)).then_some((address, name))
}

/// 64 bits that no other worker of a job has: a sum of the address's words (FNV-1a).
fn name_of(address: &[u8]) -> u64 {
    address.iter().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ayre::endpoint::{Endpoint, EndpointOptions};

    #[test]
    fn an_address_comes_back_and_others_are_told_from_it() {
        let endpoint = Endpoint::open_with(&EndpointOptions::new()).unwrap();
        let bytes = to_bytes(&endpoint.address());
        let (address, name) = of_bytes(&bytes).unwrap();
        assert_eq!(address, endpoint.address());
        assert_ne!(name, 0);
        for place in 0..BYTES {
            let mut spoilt = bytes;
            spoilt[place] ^= 1;
            assert_eq!(of_bytes(&spoilt), None, "byte {place}");
        }
    }
}
