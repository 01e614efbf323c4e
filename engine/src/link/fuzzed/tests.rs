//! The fuzz targets without a fuzzer: the same scripts, from random bytes and from the vectors.
use super::*;
use proptest::prelude::*;

/// Bytes among which small numbers are frequent, as they are in meaningful scripts.
fn any_script() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), 0_u8..8, Just(255_u8), 64_u8..112,];
    proptest::collection::vec(byte, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    // spec: FRAME-6, LINK-11, LINK-15, SEAL-4
    #[test]
    fn any_datagrams(bytes in any_script()) {
        datagrams(&bytes);
    }

    // spec: FRAME-6, OPEN-3, OPEN-5, OPEN-9, SEAL-8, SEAL-9
    #[test]
    fn any_set_ups(bytes in any_script()) {
        set_ups(&bytes);
    }

    // spec: OPEN-12, LINK-19, LINK-20, LINK-23
    #[test]
    fn any_endings(bytes in any_script()) {
        endings(&bytes);
    }
}

/// The header of a sealed open is changed on its way: that is no reason to refuse it under the key.
/// The fuzzer has found this script.
// spec: SEAL-10
#[test]
fn a_changed_header_around_an_open_causes_no_refusal() {
    let script = [
        5, 65, 0, 22, 186, 0, 39, 186, 186, 186, 186, 102, 0, 0, 0, 0, 0, 0, 0, 66, 0, 0, 0, 67, 0,
        161, 0, 161,
    ];
    let filled = [&script[..], &[255; 12], &[11; 5], &[128, 204, 65, 0, 242], &[120; 9]].concat();
    endings(&filled);
}

/// The bytes that stand behind one of these words in the vectors.
fn vectors(text: &str, word: &str) -> Vec<Vec<u8>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.split(' ').nth(1));
    let digits = lines.filter(|digits| digits.len() > 2);
    let pairs = |digits: &str| {
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
    };
    digits.filter_map(pairs).collect()
}

/// A script of this attack that sends the bytes as a datagram, from both addresses.
fn sending(choices: u8, bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u16).to_le_bytes();
    let once = |disguised| [&[255, 0, 1, len[0], len[1]], bytes, &[disguised, 1]].concat();
    [vec![choices, 5], once(0), once(1)].concat()
}

// spec: FRAME-6, OPEN-3, SEAL-10
#[test]
fn vectors_for_another_port_have_no_effect() {
    let mut all = vectors(include_str!("../../../../vectors/frame.txt"), "parse");
    all.extend(vectors(include_str!("../../../../vectors/opening.txt"), "parse"));
    assert!(all.len() > 30, "{} vectors", all.len());
    for bytes in all {
        (0..8).for_each(|choices| datagrams(&sending(choices, &bytes)));
    }
}
