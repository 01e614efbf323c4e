//! Recordings as text: the schedules that they make, and what damage is called.
use super::*;
use crate::goal::{LogGops, Report, Schedule, run};
use proptest::prelude::*;

/// Recordings of these ranks, whose endpoints are 0, 1, ... and have these numbers.
fn texts(ranks: &[&str]) -> Vec<(String, String)> {
    let peers = |_| (0..ranks.len()).map(|peer| format!("peer {peer} {peer:032x}\n"));
    let text = |(rank, lines): (usize, &&str)| {
        let peers: String = peers(rank).collect();
        let lines: String = lines.lines().map(|line| format!("{}\n", line.trim())).collect();
        let text = format!("ayre record 1\nendpoint {rank:032x}\n{peers}{lines}end 9000\n");
        (format!("{rank}.record"), text)
    };
    ranks.iter().enumerate().map(text).collect()
}

fn read(texts: &[(String, String)]) -> Result<Recordings, RecordingError> {
    Recordings::read(texts.iter().map(|(name, text)| (name.clone(), text.as_bytes())))
}

fn goal(ranks: &[&str]) -> String {
    let mut goal = String::new();
    read(&texts(ranks)).unwrap().write(&mut goal).unwrap();
    goal
}

fn schedule(ranks: &[&str]) -> (Schedule, Report) {
    let schedule = Schedule::read(goal(ranks).as_bytes()).unwrap();
    let report = run(&schedule, &LogGops::LOGGOPSIM, false).unwrap();
    (schedule, report)
}

/// `o + L + (bytes - 1) G + o`.
fn one_way(bytes: u64) -> Time {
    let LogGops { hosts, latency, gap_per_byte } = LogGops::LOGGOPSIM;
    Time(2 * hosts.overhead.0 + latency.0 + (bytes - 1) * gap_per_byte.0)
}

const PING: &str = "trecv 0 2 - 0 64
    tsend 0 1 1 7 8
    done 0 tsend 1 - 0 0
    done 0 trecv 2 1 9 16";

#[test]
fn a_ping_pong_takes_two_messages_and_the_time_between_them() {
    let pong = "trecv 0 5 - 0 64
        done 3 trecv 5 0 7 8
        tsend 4000 6 0 9 16";
    let (schedule, report) = schedule(&[PING, pong]);
    assert_eq!(report.finish[0], one_way(8) + Time::from_nanos(4_000) + one_way(16));
    // Two operations of rank 0, and of rank 1 besides that the 3 ns and the 4000 ns.
    assert_eq!((schedule.operations().len(), schedule.requirements()), (6, 3));
}

#[test]
fn time_before_an_end_is_read_does_not_wait_for_it() {
    let send = "tsend 0 1 1 7 1";
    let overlapping = "trecv 0 5 - 0 64
        done 50000 trecv 5 0 7 1";
    let waiting = "trecv 0 5 - 0 64
        done 0 trecv 5 0 7 8
        tsend 50000 6 0 9 16";
    let after = Time::from_nanos(50_000);
    // The CPU takes the message in its `o`, whether that is before or after its own time.
    assert_eq!(
        schedule(&[send, overlapping]).1.finish[1],
        after + LogGops::LOGGOPSIM.hosts.overhead
    );
    let back = "tsend 0 1 1 7 8
        trecv 0 2 - 0 64
        done 0 trecv 2 1 9 16";
    assert_eq!(schedule(&[back, waiting]).1.finish[0], one_way(8) + after + one_way(16));
}

#[test]
fn messages_of_a_tag_meet_receives_in_the_order_of_posting() {
    let send = "tsend 0 1 1 7 100
        tsend 0 1 1 8 300
        tsend 0 1 1 7 200";
    let receive = "trecv 0 1 - 0 999
        trecv 0 2 - 0 999
        trecv 0 3 - 0 999
        done 1 trecv 3 0 7 200
        done 1 trecv 2 0 8 300
        done 1 trecv 1 0 7 100";
    let goal = goal(&[send, receive]);
    for (operation, bytes) in [("o0", 100), ("o1", 300), ("o2", 200)] {
        let tag = |word: &str| {
            let begin = format!("{operation}: {word} {bytes}b ");
            let line = goal.lines().find(|line| line.starts_with(&begin)).unwrap();
            line.rsplit_once(' ').unwrap().1.to_owned()
        };
        assert_eq!(tag("send"), tag("recv"), "{goal}");
    }
}

#[test]
fn memory_for_many_messages_makes_a_receive_of_each() {
    let send = "send 0 - 1 0 1000
        send 0 - 1 0 2000
        send 0 - 1 0 3000";
    let receive = "mrecv 0 4 - 0 4096
        mrecv 0 4 - 0 4096
        done 1 recv 4 0 0 1000
        done 1 mrecv 4 0 0 2000
        done 1 mrecv 4 0 0 3000";
    let (schedule, _) = schedule(&[send, receive]);
    assert_eq!(schedule.operations().iter().filter(|it| it.size >= 1000).count(), 6);
    assert_eq!(read(&texts(&[send, receive])).unwrap().left_out(), 0);
}

#[test]
fn a_read_takes_a_question_and_an_answer_and_a_write_one_message() {
    let writes = schedule(&["write 0 1 1 0 100\ndone 0 write 1 - 0 0", ""]).1;
    assert_eq!(writes.finish[1], one_way(100));
    let reads = schedule(&["read 0 1 1 0 100\ndone 0 read 1 - 0 0", ""]).1;
    assert_eq!(reads.finish[0], one_way(1) + one_way(100));
}

#[test]
fn operations_without_a_partner_or_an_end_are_left_out_and_counted() {
    let alone = "trecv 0 5 - 0 64
        trecv 0 6 - 0 64
        fail 0 trecv 6
        tsend 0 7 1 7 8
        done 0 trecv 99 1 7 8";
    let recordings = read(&texts(&[alone, ""])).unwrap();
    assert_eq!((recordings.left_out(), recordings.took()), (3, Time::from_nanos(9_000)));
    assert_eq!(schedule(&[alone, ""]).0.operations().len(), 0);
}

#[test]
fn a_recording_that_is_cut_anywhere_is_an_error() {
    let whole = texts(&[PING, ""]);
    assert!(read(&whole).is_ok());
    for bytes in 0..whole[0].1.len() {
        let mut cut = whole.clone();
        cut[0].1.truncate(bytes);
        let error = read(&cut).unwrap_err();
        assert!(matches!(error, RecordingError::Cut { .. }), "{bytes}: {error}");
    }
}

#[test]
fn wrong_lines_are_named_with_their_file() {
    for (line, words) in [
        ("sned 0 1 1 7 8", "a word that begins a line, and there is \"sned\""),
        ("tsend 0 1 1 7", "the number of bytes, and there is the end of the line"),
        ("tsend 0 1 1 7 8 9", "the end of the line, and there is \"9\""),
        ("tsend 0 1 5 7 8", "a peer that has a line above, and there is \"5\""),
        ("tsend 0 1 - 7 8", "a peer that has a line above, and there is \"-\""),
        ("tsend 0 1 1 7 -8", "the number of bytes, and there is \"-8\""),
        ("tsend 0 1 1 7 1099511627777", "the number of bytes is 1099511627777, and the limit is"),
        ("done 0 lost 1", "the kind of an operation, and there is \"lost\""),
        ("endpoint 12", "the 32 digits of an endpoint, and there is \"12\""),
        ("end 7", "nothing after \"end\", and there is \"end\""),
        ("\u{e9}", "a word that begins a line, and there is"),
    ] {
        let error = read(&texts(&[PING, line])).unwrap_err().to_string();
        assert!(error.starts_with("1.record, line ") && error.contains(words), "{error}");
    }
    let long = "x".repeat(300);
    let error = read(&texts(&[&long])).unwrap_err().to_string();
    assert!(error.contains("line 4: expected a line of up to 255 bytes"), "{error}");
    let other = [("a".to_owned(), "ayre record 2\n".to_owned())];
    let error = read(&other).unwrap_err().to_string();
    assert!(error.starts_with("a, line 1: expected \"ayre record 1\""), "{error}");
}

#[test]
fn recordings_that_do_not_belong_together_are_errors() {
    let mut two = texts(&[PING, ""]);
    two.truncate(1);
    let error = read(&two).unwrap_err();
    assert_eq!(error, RecordingError::NoRank { file: "0.record".into(), line: 5 });
    let twice = [two[0].clone(), ("1.record".to_owned(), two[0].1.clone())];
    let error = read(&twice).unwrap_err();
    let (file, other) = ("1.record".to_owned(), "0.record".to_owned());
    assert_eq!(error, RecordingError::Twice { file, other });
}

#[test]
fn folders_are_read_in_the_order_of_ranks() {
    let folder = std::env::temp_dir().join(format!("ayre-recordings-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let error = Recordings::read_folder(&folder).unwrap_err().to_string();
    assert!(error.contains("no file there has a name such as 0.record"), "{error}");
    let whole = texts(&[PING, "tsend 0 6 0 9 16", "", "tsend 0 - 0 1 1"]);
    let names = ["2.record", "10.record", "2-2.record", "3.record"];
    for ((_, text), name) in whole.iter().zip(names) {
        fs::write(folder.join(name), text).unwrap();
    }
    let recordings = Recordings::read_folder(&folder).unwrap();
    let read: Vec<_> = recordings.ranks.iter().map(|rank| Path::new(&rank.file)).collect();
    // The second domain of rank 2 has posted nothing.
    assert_eq!(read, ["2.record", "3.record", "10.record"].map(|name| folder.join(name)));
    fs::remove_dir_all(&folder).unwrap();
    let missing = Recordings::read_folder(&folder).unwrap_err();
    let (place, kind) = (folder.display().to_string(), ErrorKind::NotFound);
    assert_eq!(missing, RecordingError::Input { place, kind });
}

proptest! {
    #[test]
    fn damage_is_an_error_or_makes_another_schedule(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let whole = texts(&[PING, "read 5 1 0 0 100\ndone 7 read 1 - 0 0"]);
        let mut bytes = whole[0].1.clone().into_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let texts = [("a".to_owned(), &bytes[..]), ("b".to_owned(), whole[1].1.as_bytes())];
        if let Ok(recordings) = Recordings::read(texts) {
            let mut goal = String::new();
            recordings.write(&mut goal).unwrap();
            let schedule = Schedule::read(goal.as_bytes()).unwrap();
            prop_assert!(run(&schedule, &LogGops::LOGGOPSIM, false).is_ok(), "{}", goal);
        }
    }
}
