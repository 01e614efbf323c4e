//! Rules of the link as scripts: time in microseconds, port, what it does, sends, and gets.
//!
//! Each reads like a figure of spec/85, 86 and 87, and [`play`] says what its words mean.
mod play;

use ayre_proto::link::Repair;
use play::Play;

/// The whole of an opening, in its three frames.
// spec: OPEN-6, OPEN-7, OPEN-10, LINK-18
#[test]
fn an_opening() {
    Play::new(Repair::Selective, 1).run(
        "0    a opens
         0    a > open
         10   b < open
         10   b > accept
         10   b is alone
         20   a < accept
         20   a > probe
         20   a is Open
         30   b < probe
         30   b > room 0 to 0
         30   b is Open
         40   a < room 0 to 0
         3200 a is Open",
    );
}

/// The open, the accept and the confirmation are each lost once; the accept stays the same.
// spec: OPEN-6, OPEN-7, OPEN-8, LINK-18
#[test]
fn an_opening_over_losses() {
    Play::new(Repair::Selective, 1).run(
        "0    a opens
         0    a > open
         10   b x open
         100  a > open
         110  b < open
         110  b > accept
         120  a x accept
         300  a > open
         310  b < open
         310  b > accept
         320  a < accept
         320  a > probe
         330  b x probe
         420  a > probe
         430  b < probe
         430  b > room 0 to 0
         430  b is Open
         440  a < room 0 to 0",
    );
}

/// An open that comes again when there is a link gets an accept, and changes nothing; an accept
/// that comes again neither.
// spec: OPEN-7, OPEN-9, OPEN-10
#[test]
fn an_open_sent_by_a_stranger_again() {
    Play::new(Repair::Selective, 1).run(
        "0    a opens
         0    a > open
         10   b = open
         10   b > accept
         20   a = accept
         20   a > probe
         30   b < probe
         30   b > room 0 to 0
         40   a < room 0 to 0
         500  b < open
         500  b > accept
         510  a < accept
         520  a < accept
         520  a is Open
         520  b is Open",
    );
}

/// Nobody answers.
// spec: OPEN-6
#[test]
fn an_opening_that_is_given_up() {
    Play::new(Repair::Selective, 2).run(
        "0    a opens
         0    a > open
         100  a > open by 1
         300  a > open
         700  a > open by 1
         1100 a > open
         1500 a > open by 1
         1900 a > open
         1999 a is Asking
         2000 a is GivenUp",
    );
}

/// Arrived frames are acknowledged after 20 us, or with the sixteenth one.
// spec: LINK-13
#[test]
fn acknowledging_arrived_frames() {
    Play::linked().run(&format!(
        "0    a sends 1
         0    a > data 0
         10   b < data 0
         30   b > room 1 to 128
         40   a < room 1 to 128
         50   a sends 16
         {sent}
         {got}
         60   b > room 17 to 128",
        sent = (1..17).map(|nth| format!("50 a > data {nth}\n")).collect::<String>(),
        got = (1..17).map(|nth| format!("60 b < data {nth}\n")).collect::<String>(),
    ));
}

/// A frame is lost. Frames before their turn are acknowledged at once, and the third one asks for
/// the lost frame. Three later ones of its path tell the sender the same.
// spec: LINK-8, LINK-10, LINK-13
#[test]
fn a_frame_that_is_overtaken() {
    Play::linked().run(
        "10   a sends 5
         10   a > data 0
         10   a > data 1
         10   a > data 2
         10   a > data 3
         10   a > data 4
         20   b x data 0
         20   b < data 1
         20   b > room 0 and 1 to 128
         21   b < data 2
         21   b > room 0 and 1,2 to 128
         22   b < data 3
         22   b > room 0 and 1,2,3 to 128 misses it
         29   b < data 4
         29   b > room 0 and 1,2,3,4 to 128
         30   a < room 0 and 1 to 128
         31   a < room 0 and 1,2 to 128
         32   a < room 0 and 1,2,3 to 128 misses it
         32   a > data 0
         39   a < room 0 and 1,2,3,4 to 128
         42   b < data 0
         42   b > room 5 to 128
         52   a < room 5 to 128",
    );
}

/// The sender knows by itself that a frame was overtaken, when three later ones of its path have
/// arrived. Two are not enough, unless it is late too, by a quarter more than a round trip.
// spec: LINK-8
#[test]
fn two_later_frames_tell_something() {
    Play::linked().run(
        "10   a sends 3
         10   a > data 0
         10   a > data 1
         10   a > data 2
         20   b x data 0
         20   b < data 1
         20   b > room 0 and 1 to 128
         20   b < data 2
         20   b > room 0 and 1,2 to 128
         30   a < room 0 and 1 to 128
         30   a < room 0 and 1,2 to 128
         35   a > data 0
         45   b < data 0
         45   b > room 3 to 128
         55   a < room 3 to 128",
    );
}

/// A frame that is asked for does not come. The request is repeated no sooner than a round trip
/// later, and then only after twice that. This receiver knows no round trip yet, only the timeout.
// spec: LINK-10
#[test]
fn requests_for_a_frame() {
    Play::linked().run(
        "10   a sends 8
         10   a > data 0
         10   a > data 1
         10   a > data 2
         10   a > data 3
         10   a > data 4
         10   a > data 5
         10   a > data 6
         10   a > data 7
         11   a restarts
         20   b < data 1
         20   b > room 0 and 1 to 128
         20   b < data 2
         20   b > room 0 and 1,2 to 128
         20   b < data 3
         20   b > room 0 and 1,2,3 to 128 misses it
         119  b < data 4
         119  b > room 0 and 1,2,3,4 to 128
         120  b < data 5
         120  b > room 0 and 1,2,3,4,5 to 128 misses it
         319  b < data 6
         319  b > room 0 and 1,2,3,4,5,6 to 128
         320  b < data 7
         320  b > room 0 and 1,2,3,4,5,6,7 to 128 misses it
         330  b < data 0
         330  b > room 8 to 128",
    );
}

/// The last frame is lost, and so is its repetition: nobody misses it, and time tells.
// spec: LINK-8, RTT-4
#[test]
fn a_frame_that_times_out() {
    Play::linked().run(
        "0    a sends 1
         0    a > data 0
         10   b x data 0
         100  a > data 0
         110  b x data 0
         300  a > data 0
         310  b < data 0
         330  b > room 1 to 128
         340  a < room 1 to 128",
    );
}

/// The last frame is lost. A round trip takes 20 us, its variation is 10 with the first and 7.5
/// with the second, and an acknowledgement may be delayed by 20. The frame is sent again 70 us
/// later, 20 and 4 x 7.5 and 20, which is 30 before the timeout.
// spec: LINK-26, RTT-2
#[test]
fn a_tail_that_is_lost() {
    Play::linked().run(
        "10   a sends 1
         10   a > data 0
         20   b < data 0
         40   b > room 1 to 128
         50   a < room 1 to 128
         60   a sends 1
         60   a > data 1
         70   b < data 1
         90   b > room 2 to 128
         100  a < room 2 to 128
         110  a sends 1
         110  a > data 2
         120  b x data 2
         180  a > data 2
         190  b < data 2
         210  b > room 3 to 128
         220  a < room 3 to 128",
    );
}

/// A frame that comes again is taken in once, by its packet number and by its own.
// spec: LINK-2, LINK-15
#[test]
fn a_frame_that_comes_again() {
    Play::linked().run(
        "0    a sends 1
         0    a > data 0
         10   b = data 0
         20   b < data 0
         30   b > room 1 to 128
         40   a x room 1 to 128
         100  a > data 0
         110  b < data 0
         110  b > room 1 to 128
         120  a < room 1 to 128",
    );
}

/// A sender without credit asks for it, once a timeout, and so finds what was lost on the way.
// spec: LINK-4, LINK-14
#[test]
fn a_credit_that_is_lost() {
    Play::opened(1).run(
        "0    b gives 1
         0    b > room 0 to 1
         10   a < room 0 to 1
         10   a sends 2
         10   a > data 0
         20   b < data 0
         40   b > room 1 to 1
         50   a < room 1 to 1
         50   a > probe
         60   b < probe
         60   b > room 1 to 1
         70   a < room 1 to 1
         100  b takes 1
         100  b gives 1
         100  b > room 1 to 2
         110  a x room 1 to 2
         150  a > probe
         160  b < probe
         160  b > room 1 to 2
         170  a < room 1 to 2
         170  a sends 1
         170  a > data 1",
    );
}

/// Nothing comes any more.
// spec: LINK-17
#[test]
fn a_silence() {
    let probes = [3200, 3300, 3500].into_iter().chain((3900..16000).step_by(400));
    let probes = probes.map(|at| format!("{at} a > probe\n{at} b > probe\n"));
    let end = "15999 a is Open
         16000 a is Closed(Silent)
         16000 b is Closed(Silent)";
    Play::linked().run(&probes.chain([end.to_owned()]).collect::<String>());
}

/// The other side was restarted. It knows nothing of the link, and says so. It is asked more and
/// more rarely, and the link is given up a quarter of the silence later. A new one is opened.
// spec: LINK-18, LINK-19, LINK-21, OPEN-11, OPEN-12
#[test]
fn a_restart() {
    Play::linked().run(
        "0    b restarts
         3200 a > probe
         3210 b < probe
         3210 b > reset
         3220 a < reset
         3300 a > probe
         3310 b < probe
         3310 b > reset
         3320 a < reset
         3500 a > probe
         3510 b x probe
         3900 a > probe
         3910 b x probe
         4300 a > probe
         4310 b x probe
         4700 a > probe
         4710 b x probe
         5100 a > probe
         5110 b x probe
         5500 a > probe
         5510 b x probe
         5900 a > probe
         5910 b x probe
         6300 a > probe
         6419 a is Open
         6420 a is Closed(Reset)
         6500 a opens
         6500 a > open
         6510 b < open
         6510 b > accept
         6515 b < probe
         6515 b > reset
         6515 b is alone
         6520 a < accept
         6520 a > probe
         6525 a < reset
         6530 b < probe
         6530 b > room 0 to 0
         6530 b is Open
         6540 a < room 0 to 0
         6540 a is Open",
    );
}

/// A side leaves; its close, or the answer to it, is lost.
// spec: LINK-20
#[test]
fn a_close() {
    Play::linked().run(
        "0    a closes
         0    a > close
         10   b x close
         100  a > close
         110  b < close
         110  b > close answer
         110  b is Closed(Peer)
         120  a x close answer
         300  a > close
         310  b < close
         310  b > close answer
         320  a < close answer
         320  a is Closed(Local)
         9999 b is Closed(Peer)",
    );
}

/// A side leaves, and nobody is there to hear of it.
// spec: LINK-20
#[test]
fn an_unanswered_close() {
    Play::linked().run(
        "0    b restarts
         0    a closes
         0    a > close
         100  a > close
         300  a > close
         699  a is Closing
         700  a is Closed(Local)",
    );
    Play::linked().run(
        "0    b restarts
         0    a closes
         0    a > close
         10   b < close
         10   b > reset
         20   a < reset
         20   a is Closed(Local)",
    );
}

/// A receiver forgets what it kept before its turn. Its earlier acknowledgements of that come late,
/// and are void; all that it does not have is sent again.
// spec: LINK-12, LINK-22, LINK-23, LINK-24
#[test]
fn a_warm_reset() {
    Play::linked().run(
        "0    a sends 3
         0    a > data 0
         0    a > data 1
         0    a > data 2
         10   b x data 0
         10   b < data 1
         10   b > room 0 and 1 to 128
         11   b < data 2
         11   b > room 0 and 1,2 to 128
         12   b loses its mind
         12   b > resync 1
         20   a < room 0 and 1 to 128
         22   a < resync 1
         22   a > resync 1 answer
         22   a > data 0
         22   a > data 1
         22   a > data 2
         25   a < room 0 and 1,2 to 128
         32   b x resync 1 answer
         32   b < data 0
         33   b < data 1
         34   b < data 2
         52   b > room 3 to 128
         62   a < room 3 to 128
         112  b > resync 1
         122  a < resync 1
         122  a > resync 1 answer
         132  b < resync 1 answer",
    );
}

/// Two paths take the frames in turn. One is far slower. Its frames come out of their turn, are
/// acknowledged at once, and asked for after three. Yet they are not lost: none of their own path
/// has overtaken them, and the request is older than their sending.
// spec: LINK-8, LINK-10, PATH-2
#[test]
fn frames_of_two_paths() {
    Play::linked_by(2).run(
        "10   a sends 8
         10   a > data 0
         10   a > data 1 by 1
         10   a > data 2
         10   a > data 3 by 1
         10   a > data 4
         10   a > data 5 by 1
         10   a > data 6
         10   a > data 7 by 1
         20   b < data 0
         20   b < data 2
         20   b > room 1 and 2 to 128 by 1
         20   b < data 4
         20   b > room 1 and 2,4 to 128
         20   b < data 6
         20   b > room 1 and 2,4,6 to 128 misses it by 1
         30   a < room 1 and 2 to 128 by 1
         30   a < room 1 and 2,4 to 128
         30   a < room 1 and 2,4,6 to 128 misses it by 1
         60   b < data 1 by 1
         60   b > room 3 and 4,6 to 128
         60   b < data 3 by 1
         60   b > room 5 and 6 to 128 by 1
         60   b < data 5 by 1
         60   b > room 7 to 128
         60   b < data 7 by 1
         80   b > room 8 to 128 by 1
         90   a < room 8 to 128 by 1",
    );
}
