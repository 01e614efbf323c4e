//! Tests of the language of policies.
use super::*;
use alloc::format;
use alloc::string::ToString;
use proptest::prelude::*;

fn users(name: &str) -> Option<u32> {
    (name == "alice").then_some(1000)
}

fn read(text: &str) -> Policy {
    let (policy, faults) = Policy::read(text, users);
    assert_eq!(faults, []);
    policy
}

fn question(act: Act, at: &str) -> Question<'_> {
    let at = at.parse().map_or(Place::Unix(at), Place::Tcp);
    Question { act, at, programs: &[], user: Some(1000) }
}

fn verdict(policy: &Policy, question: &Question<'_>) -> (Verdict, u32) {
    let ruling = policy.judge(question);
    (ruling.verdict, ruling.line)
}

// spec: SOCK-30
#[test]
fn the_first_line_that_matches_decides() {
    let policy = read(
        "# comment\n\nnever 10.1.0.0/16 # and this\nmust connect 10.0.0.0/8:7000-7999\r\n\
         may [fd00::]/8:80\nnever *\n",
    );
    let of = |act, at| verdict(&policy, &question(act, at));
    assert_eq!(of(Act::Connect, "10.1.2.3:7000"), (Verdict::Never, 3));
    assert_eq!(of(Act::Connect, "10.2.2.3:7000"), (Verdict::Must, 4));
    assert_eq!(of(Act::Accept, "10.2.2.3:7000"), (Verdict::Never, 6), "not its act");
    assert_eq!(of(Act::Connect, "10.2.2.3:8000"), (Verdict::Never, 6), "not its ports");
    assert_eq!(of(Act::Accept, "[fd12::1]:80"), (Verdict::May, 5));
    assert_eq!(of(Act::Accept, "[fe80::1]:80"), (Verdict::Never, 6));
    assert_eq!(verdict(&read(""), &question(Act::Accept, "1.2.3.4:5")), (Verdict::May, 0));
    assert!(read("\n # nothing\n").is_empty());
}

// spec: SOCK-30
#[test]
fn programs_are_named_by_file_or_by_path() {
    let programs = ["/usr/bin/redis-server", "/usr/bin/redis-check-rdb"].map(str::to_owned);
    let question = Question { programs: &programs, ..question(Act::Connect, "1.2.3.4:5") };
    let of = |line: &str| verdict(&read(line), &question).1;
    assert_eq!(of("never * program=redis-check-rdb"), 1);
    assert_eq!(of("never * program=redis-server"), 1);
    assert_eq!(of("never * program=/usr/bin/redis-server"), 1);
    assert_eq!(of("never * program=/opt/redis-server"), 0);
    assert_eq!(of("never * program=redis"), 0);
}

// spec: SOCK-30
#[test]
fn unix_sockets_are_named_by_path_or_by_abstract_name() {
    let policy = read(
        "never *\nmust /run/redis.sock\nmay accept /run/app/*\nnever @x*\nmust [::]/0\nmust @*",
    );
    let of = |at| verdict(&policy, &question(Act::Connect, at));
    assert_eq!(of("/run/redis.sock"), (Verdict::Must, 2));
    assert_eq!(of("/run/redis.sock2"), (Verdict::May, 0));
    assert_eq!(of("/run/app/1"), (Verdict::May, 0), "not its act");
    assert_eq!(verdict(&policy, &question(Act::Accept, "/run/app/1")), (Verdict::May, 3));
    assert_eq!([of("@x"), of("@xyz"), of("@y")].map(|(_, line)| line), [4, 4, 6]);
    assert_eq!(of("1.2.3.4:80"), (Verdict::Never, 1), "`*` is all of TCP");
}

// spec: SOCK-30, SOCK-33
#[test]
fn a_line_for_a_user_waits_for_the_peer_unless_it_is_strict() {
    let policy = read("may *:1 user=alice\nmust *:2 user=7\nnever *");
    let of = |at, user| policy.judge(&Question { user, ..question(Act::Connect, at) });
    assert!(of("1.2.3.4:1", Some(1000)).names_user);
    assert_eq!(of("1.2.3.4:1", Some(7)).line, 3);
    assert_eq!(of("1.2.3.4:1", None).line, 3);
    assert_eq!(of("1.2.3.4:2", None).verdict, Verdict::Must);
    assert_eq!(of("1.2.3.4:2", Some(1000)).line, 3);
    let some = |at| policy.allows_some(&question(Act::Connect, at));
    assert_eq!([some("1.2.3.4:1"), some("1.2.3.4:2"), some("1.2.3.4:3")], [true, true, false]);
    assert!(read("never * user=7").allows_some(&question(Act::Connect, "1.2.3.4:1")));
    assert!(policy.names(7) && policy.names(1000) && !policy.names(0));
}

// spec: SOCK-32
#[test]
fn a_malformed_line_is_named_with_what_was_expected() {
    for (text, expected, found) in [
        ("mus *", "`may`, `never` or `must`", "mus"),
        ("may", "an address", ""),
        ("may connect", "an address", ""),
        ("may ::1/128", "an address", "::1/128"),
        ("may [::1", "an address", "[::1"),
        ("may 1.2.3.4/33", "an address", "1.2.3.4/33"),
        ("may [::]/129", "an address", "[::]/129"),
        ("may 1.2.3.4:9-8", "a port", "1.2.3.4:9-8"),
        ("may *:65536", "a port", "*:65536"),
        ("may * user=bob", "a user", "bob"),
        ("may * user=1 user=2", "`program=NAME` or `user=USER`", "user=2"),
        ("may * program=", "`program=NAME` or `user=USER`", "program="),
        ("may * 80", "`program=NAME` or `user=USER`", "80"),
    ] {
        let (_, faults) = Policy::read(&format!("may *:1\n{text}\n"), users);
        let [fault] = &*faults else { panic!("{text}: {faults:?}") };
        assert!(fault.expected.starts_with(expected), "{text}: {fault}");
        assert_eq!((fault.line, &*fault.found), (2, found), "{text}");
    }
    let (_, faults) = Policy::read("may", users);
    assert!(faults[0].to_string().ends_with("found the end of the line"), "{faults:?}");
}

// spec: SOCK-32
#[test]
fn a_policy_with_a_malformed_line_allows_no_ring_and_keeps_what_is_strict() {
    let broken = |text| {
        let (policy, faults) = Policy::read(text, users);
        assert_eq!(faults.len(), 1);
        assert!(!policy.is_empty() && !policy.allows_some(&question(Act::Accept, "1.2.3.4:5")));
        policy.judge(&question(Act::Accept, "1.2.3.4:5")).verdict
    };
    assert_eq!(broken("may 1.2.3.4/99"), Verdict::Never);
    assert_eq!(broken("never 1.2.3.4/99\nmay *"), Verdict::Never);
    assert_eq!(broken("never 1.2.3.4/99\nmust *:5"), Verdict::Must);
    assert_eq!(broken("must 1.2.3.4/99"), Verdict::Must);
    assert_eq!(broken("mustn't *"), Verdict::Must, "it may have said so");
    assert_eq!(broken("may *:5\nmsut *"), Verdict::Never, "the first line that matches");
    assert_eq!(
        Policy::unreadable().judge(&question(Act::Accept, "1.2.3.4:5")).verdict,
        Verdict::Must
    );
}

/// A line as text, and whether it matches the question of the test below.
fn line() -> impl Strategy<Value = (String, Verdict, bool)> {
    let verdict = prop_oneof![
        Just(("may", Verdict::May)),
        Just(("never", Verdict::Never)),
        Just(("must", Verdict::Must)),
    ];
    let act = prop_oneof![Just(("", true)), Just((" connect", true)), Just((" accept", false))];
    let network = prop_oneof![
        Just(("*".to_owned(), true)),
        (0u32..=32, any::<u32>()).prop_map(|(bits, mask)| {
            let own = Ipv4Addr::new(10, 20, 30, 40).to_bits();
            let kept = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            (format!("{}/{bits}", Ipv4Addr::from_bits(own & kept | mask & !kept)), true)
        }),
        (1u32..=32, 0u32..32).prop_map(|(bits, flipped)| {
            let own = Ipv4Addr::new(10, 20, 30, 40).to_bits();
            let at = flipped % bits;
            (format!("{}/{bits}", Ipv4Addr::from_bits(own ^ 1 << (31 - at))), false)
        }),
        Just(("[::]/0".to_owned(), false)),
    ];
    let ports = prop_oneof![
        Just((String::new(), true)),
        (0u16..=80, 80u16..).prop_map(|(first, last)| (format!(":{first}-{last}"), true)),
        (81u16..).prop_map(|port| (format!(":{port}"), false)),
    ];
    let user = prop_oneof![Just(("", true)), Just((" user=alice", true)), Just((" user=5", false))];
    (verdict, act, network, ports, user).prop_map(|(verdict, act, network, ports, user)| {
        let text = format!("{}{} {}{}{}", verdict.0, act.0, network.0, ports.0, user.0);
        (text, verdict.1, act.1 && network.1 && ports.1 && user.1)
    })
}

proptest! {
    // spec: SOCK-30
    #[test]
    fn a_policy_answers_as_its_lines_one_for_one(lines in prop::collection::vec(line(), 0..8)) {
        let text: String = lines.iter().map(|(text, ..)| format!("{text}\n")).collect();
        let expected = lines.iter().zip(1..).find(|((.., matches), _)| *matches);
        let expected = expected.map_or((Verdict::May, 0), |((_, word, _), line)| (*word, line));
        prop_assert_eq!(verdict(&read(&text), &question(Act::Connect, "10.20.30.40:80")), expected);
    }

    // spec: SOCK-32
    #[test]
    fn any_text_is_read_and_a_broken_one_allows_nothing(
        text in "([a-z0-9@*/:. =#\\[\\]\\-\n]|may |must )*"
    ) {
        let (policy, faults) = Policy::read(&text, users);
        let asked = question(Act::Connect, "10.20.30.40:80");
        let ruling = policy.judge(&asked);
        prop_assert!(faults.is_empty() || ruling.verdict != Verdict::May);
        prop_assert!(faults.is_empty() || !policy.allows_some(&asked));
        prop_assert!(ruling.line as usize <= text.lines().count());
    }
}
