//! The addresses at which other hosts reach a rank, and their text.
use crate::net::chosen::{PATHS_MAX, PLACES_MAX};
use std::net::{SocketAddr, SocketAddrV6};

/// The first word of a rank's text if any one of its addresses may work.
const ANY: &str = "any";

/// The addresses of a rank for ranks of other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RankAddresses {
    /// Whether each address may or may not lead to the rank, so that callers try all. Otherwise
    /// they are paths of each link, and all lead there.
    pub(super) is_any: bool,
    pub(super) at: Vec<SocketAddr>,
}

impl RankAddresses {
    /// The addresses as words.
    // spec: LIFE-36
    pub(super) fn words(&self) -> Vec<String> {
        let most = if self.is_any { PLACES_MAX } else { PATHS_MAX };
        debug_assert!(self.at.len() <= most, "others take no more");
        let any = self.is_any.then(|| ANY.to_owned());
        any.into_iter().chain(self.at.iter().map(|at| told(*at).to_string())).collect()
    }

    /// Parses words; None if they are not valid. No words mean no addresses.
    // spec: LIFE-26, LIFE-36
    pub(super) fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut words = words.peekable();
        let is_any = words.next_if_eq(&ANY).is_some();
        let at: Vec<SocketAddr> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let most = if is_any { PLACES_MAX } else { PATHS_MAX };
        let is_some = !is_any || !at.is_empty();
        let is_sound = is_some && at.len() <= most && at.iter().copied().all(is_of_a_host);
        is_sound.then_some(Self { is_any, at })
    }
}

/// Removes the interface from an address: it has no meaning on other hosts.
fn told(at: SocketAddr) -> SocketAddr {
    match at {
        SocketAddr::V6(at) => SocketAddrV6::new(*at.ip(), at.port(), 0, 0).into(),
        at => at,
    }
}

fn is_of_a_host(at: SocketAddr) -> bool {
    at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::board::TEXT_CHARS_MAX;
    use super::*;

    // spec: LIFE-26, LIFE-36
    #[test]
    fn rank_addresses_round_trip_and_fit_every_key_value_store() {
        let read = |text: &str| RankAddresses::of_words(text.split(',').filter(|w| !w.is_empty()));
        let written = |text: &str| read(text).map(|read| read.words().join(","));
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
        let any = [&["any"][..], &[longest; PLACES_MAX]].concat().join(",");
        for text in ["", "10.0.0.1:7", "10.0.0.1:7,[fd00::1]:9", "any,[fe80::1]:7", &any] {
            assert_eq!(written(text).as_deref(), Some(text));
            assert!(text.len() <= TEXT_CHARS_MAX);
        }
        assert_eq!(written("any,[fe80::1%3]:7").as_deref(), Some("any,[fe80::1]:7"));
        let most = [longest; PATHS_MAX + 1].join(",");
        for text in ["any", "any,any", "10.0.0.1:7,any", &most, &format!("{any},{longest}")] {
            assert_eq!(read(text), None, "{text:?}");
        }
        for text in ["127.0.0.1", "127.0.0.1:0", "0.0.0.0:1", "224.0.0.1:1", "[::]:5", "a:1"] {
            assert_eq!(read(text), None, "{text:?}");
            assert_eq!(read(&format!("any,{text}")), None, "{text:?}");
        }
    }
}
