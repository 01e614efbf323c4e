//! Tests of the table of variables, and of wrong values.
use super::*;

// spec: LIFE-30
#[test]
fn the_page_has_the_same_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
    let page = std::fs::read_to_string(page).unwrap();
    // The last cell of a row names another page.
    let has = |row: &str| page.lines().any(|line| line.starts_with(row));
    for Setting { name, values, default, meaning, .. } in SETTINGS {
        let row = format!("| `{name}` | {values} | {default} | {meaning} | ");
        assert!(has(&row), "docs/settings.md is to have: {row}");
    }
    for (name, meaning) in OF_LAUNCHERS {
        let row = format!("| `{name}` | set by the launcher | - | {meaning} | ");
        assert!(has(&row), "docs/settings.md is to have: {row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `AYRE_")).count();
    assert_eq!(rows, SETTINGS.len() + OF_LAUNCHERS.len(), "docs/settings.md has others");
}

// spec: LIFE-30
#[test]
fn a_default_that_is_a_word_is_one_of_the_values() {
    for setting in SETTINGS {
        let words: Vec<_> = setting.default.split('`').collect();
        if let ["", word, ""] = words[..] {
            assert_eq!((setting.check)(word), Ok(()), "{}", setting.name);
        }
    }
}

// spec: LIFE-30
#[test]
fn a_wrong_value_is_reported_with_the_allowed_ones() {
    for (name, text, said) in [
        (MODE, "fast", "AYRE_MODE=fast: there is no `fast`; it may be `direct`, `mediated`"),
        (MODE, "", "AYRE_MODE=: there is no ``"),
        (GROUP, "no-such-group", "AYRE_GROUP=no-such-group: /etc/group has no `no-such-group`"),
        (PROTECTION, "none", "AYRE_PROTECTION=none: there is no `none`; it may be `sealed`"),
        (PORTS, "0-5", "AYRE_PORTS=0-5: a range of UDP ports is first-last, from 1 to 65535"),
        (FAULTS, "loss=5", "AYRE_FAULTS=loss=5: `5` is no value for loss, which takes a share"),
        (CAPTURE, "job.pcap", "AYRE_CAPTURE=job.pcap: all ranks would write this one file"),
        (SILENCE, "3s", "AYRE_SILENCE=3s: `3s` is no number of seconds from 0.001 to 1e9"),
        (DEAD_AFTER, "0", "AYRE_DEAD_AFTER=0: `0` is no number of seconds"),
        (MEMORY, "1000k", "AYRE_MEMORY=1000k: 1024000 bytes are too few"),
        (MEMORY, "1T", "AYRE_MEMORY=1T: `1T` is no number of bytes such as `512M`; it may be"),
        (NET, "a,b,c,d,e", "AYRE_NET=a,b,c,d,e: 5 of them, and there are at most 4 paths"),
    ] {
        let setting = SETTINGS.iter().find(|setting| setting.name == name).unwrap();
        let why = (setting.check)(text).unwrap_err();
        let error = wrong(name, text, &why).to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!([group_number("root"), group_number("2000")], [Ok(0), Ok(2000)]);
    let read = ["7", "2k", "3M", "4G", "", "M", "-1", "20000000000G"].map(|text| bytes(text).ok());
    let known = [7, 2 << 10, 3 << 20, 4 << 30].map(Some);
    assert!(read[..4] == known && read[4..] == [None; 4], "{read:?}");
    assert_eq!(net_words(" eth1,, 10.0.0.0/8,").unwrap(), ["eth1", "10.0.0.0/8"]);
}

// spec: NET-13
#[test]
fn each_rank_and_each_port_has_a_capture_of_its_own() {
    let of = |pattern: &str, rank| capture_of(Path::new(pattern), rank);
    assert_eq!(of("/tmp/one.pcap", Some(3)), Path::new("/tmp/one.pcap"));
    assert_eq!(of("a/{rank}.x.pcap", Some(3)), Path::new("a/3.x.pcap"));
    assert_eq!(of("a/{rank}.x.pcap", Some(4)), Path::new("a/4.x.pcap"));
    assert_eq!(of("a/{rank}.x.pcap", Some(3)), Path::new("a/3-2.x.pcap"));
    let has_none = RANKS.iter().all(|name| std::env::var_os(name).is_none());
    let process = format!("a/{}", std::process::id());
    assert!(!has_none || of("a/{rank}", None) == Path::new(&process));
}

// spec: LIFE-30
#[test]
fn an_unknown_name_is_refused_with_the_list() {
    let error = check_name("AYRE_MODES").unwrap_err().to_string();
    assert!(error.contains("no variable AYRE_MODES"), "{error}");
    SETTINGS.iter().for_each(|setting| assert!(error.contains(setting.name), "{error}"));
    let of_launchers = OF_LAUNCHERS.iter().map(|(name, _)| *name);
    for name in of_launchers.chain(["AYRE_SEED", "AYRE_TEST_CHILD"]) {
        assert!(check_name(name).is_ok(), "{name}");
    }
}

// spec: LIFE-30
#[test]
fn variables_of_sockets_are_known_by_name() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sockets.md");
    let page = std::fs::read_to_string(page).unwrap();
    for name in OF_SOCKETS {
        assert!(check_name(name).is_ok(), "{name}");
        assert!(page.contains(&format!("| `{name}=")), "docs/sockets.md is to have {name}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `AYRE_SOCKETS")).count();
    assert_eq!(rows, OF_SOCKETS.len(), "docs/sockets.md has others");
    let error = check_name("AYRE_SOCKETS_POLCY").unwrap_err().to_string();
    assert!(error.contains("no variable AYRE_SOCKETS_POLCY; it has AYRE_SOCKETS,"), "{error}");
    assert!(error.contains("AYRE_SOCKETS_POLICY, ") && !error.contains(MODE), "{error}");
}
