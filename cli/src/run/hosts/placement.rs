//! Which ranks run on which host: those of a host are consecutive.

use std::collections::HashSet;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

/// A host of `--hosts`, and how many ranks it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(super) name: String,
    pub(super) slots: Option<u16>,
}

/// A host and its ranks, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) ranks: Range<u16>,
}

/// Reads one host, with `:slots` behind it or not; an IPv6 address stands in brackets then.
pub(crate) fn parse_host(text: &str) -> Result<Host> {
    let (name, slots) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix(':').context("after `]` comes `:`")?)),
        None => match text.split_once(':') {
            // More colons than one: an address.
            Some((_, slots)) if slots.contains(':') => (text, None),
            Some((name, slots)) => (name, Some(slots)),
            None => (text, None),
        },
    };
    check_name(name)?;
    let slots = slots.map(parse_slots).transpose()?;
    Ok(Host { name: name.to_owned(), slots })
}

/// Refuses what is no name of a host: it goes into commands, perhaps through a shell
/// ([`super::via`]).
pub(super) fn check_name(name: &str) -> Result<()> {
    ensure!(!name.is_empty(), "a host has no name");
    // A program that takes a host's name among its options would take this one for an option.
    ensure!(!name.starts_with('-'), "a host's name does not begin with `-`");
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_:@%[]".contains(letter);
    if let Some(other) = name.chars().find(|letter| !is_allowed(*letter)) {
        bail!("a host's name has letters, digits and .-_:@%[] only, not {other:?}");
    }
    Ok(())
}

fn parse_slots(text: &str) -> Result<u16> {
    match text.parse() {
        Ok(0) | Err(_) => bail!("`{text}` is not a number of ranks"),
        Ok(slots) => Ok(slots),
    }
}

/// Fills the hosts in turn. Without a number of ranks, each host gets as many as it has slots, by
/// default one. With a number but no slots anywhere, all hosts get the same number, and the first
/// ones one more.
pub(super) fn place(
    hosts: &[Host],
    per_host: Option<u16>,
    ranks: Option<u16>,
) -> Result<Vec<Place>> {
    let mut names = HashSet::new();
    for host in hosts {
        ensure!(names.insert(&host.name), "{0} is named twice: write {0}:slots", host.name);
    }
    let has_slots = per_host.is_some() || hosts.iter().any(|host| host.slots.is_some());
    let counts = match ranks {
        Some(ranks) if !has_slots => spread(ranks, hosts.len()),
        _ => {
            let slots: Vec<_> =
                hosts.iter().map(|host| host.slots.or(per_host).unwrap_or(1)).collect();
            fill(&slots, ranks)?
        }
    };
    Ok(number(hosts, &counts))
}

fn spread(ranks: u16, hosts: usize) -> Vec<usize> {
    let ranks = usize::from(ranks);
    (0..hosts).map(|index| ranks / hosts + usize::from(index < ranks % hosts)).collect()
}

fn fill(slots: &[u16], ranks: Option<u16>) -> Result<Vec<usize>> {
    let room: usize = slots.iter().map(|slots| usize::from(*slots)).sum();
    let mut left = ranks.map_or(room, usize::from);
    ensure!(
        left <= room,
        "{left} ranks do not fit: the hosts have {room} slots (--hosts HOST:RANKS, or --per-host)"
    );
    ensure!(left <= ayre::PEERS_MAX, "{left} ranks are more than the {} of a job", ayre::PEERS_MAX);
    let mut take = |slots: &u16| {
        let count = left.min(usize::from(*slots));
        left -= count;
        count
    };
    Ok(slots.iter().map(&mut take).collect())
}

/// The hosts that have ranks, with them.
fn number(hosts: &[Host], counts: &[usize]) -> Vec<Place> {
    let mut first = 0;
    let mut places = Vec::new();
    for (host, count) in hosts.iter().zip(counts).filter(|(_, count)| **count > 0) {
        let end = first + *count as u16;
        places.push(Place { host: host.name.clone(), ranks: first..end });
        first = end;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(hosts: &str, per_host: Option<u16>, ranks: Option<u16>) -> Result<Vec<Range<u16>>> {
        let hosts: Vec<_> = hosts.split(',').map(|text| parse_host(text).unwrap()).collect();
        let places = place(&hosts, per_host, ranks)?;
        Ok(places.into_iter().map(|place| place.ranks).collect())
    }

    #[test]
    fn hosts_have_slots_or_not() {
        let host = |name: &str, slots| Host { name: name.to_owned(), slots };
        assert_eq!(parse_host("a").unwrap(), host("a", None));
        assert_eq!(parse_host("u@a.b:12").unwrap(), host("u@a.b", Some(12)));
        assert_eq!(parse_host("::1").unwrap(), host("::1", None));
        assert_eq!(parse_host("fe80::1%eth0").unwrap(), host("fe80::1%eth0", None));
        assert_eq!(parse_host("[::1]").unwrap(), host("::1", None));
        assert_eq!(parse_host("[::1]:2").unwrap(), host("::1", Some(2)));
        for text in ["", ":2", "a:", "a:0", "a:x", "a:70000", "[::1]2", "-oProxy", "[-v]:2"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn host_names_with_shell_characters_are_refused() {
        for letter in " \t\n;&|<>()$`\\\"'*?~#!={},/é\0".chars() {
            for text in [format!("a{letter}b"), format!("{letter}a"), format!("[a{letter}]:2")] {
                assert!(parse_host(&text).is_err(), "{text:?}");
            }
        }
        assert!(parse_host("x;echo INJECTED>&2;true").is_err());
    }

    #[test]
    fn ranks_of_a_host_are_consecutive() {
        assert_eq!(placed("a,b", None, None).unwrap(), [0..1, 1..2]);
        assert_eq!(placed("a:2,b:3", None, None).unwrap(), [0..2, 2..5]);
        assert_eq!(placed("a,b:3", Some(2), None).unwrap(), [0..2, 2..5]);
        assert_eq!(placed("a,b", None, Some(5)).unwrap(), [0..3, 3..5]);
        assert_eq!(placed("a,b,c", None, Some(2)).unwrap(), [0..1, 1..2]);
        assert_eq!(placed("a:4,b:4", None, Some(5)).unwrap(), [0..4, 4..5]);
        assert_eq!(placed("a:4,b:4,c", None, Some(6)).unwrap(), [0..4, 4..6]);
    }

    #[test]
    fn a_placement_that_does_not_fit_is_refused() {
        assert!(placed("a:2,b:2", None, Some(5)).is_err());
        assert!(placed("a,b", Some(1), Some(3)).is_err());
        assert!(placed("a,b", Some(600), None).is_err());
        assert!(placed("a,b,a", None, None).is_err());
    }
}
