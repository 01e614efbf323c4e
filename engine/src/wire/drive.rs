//! How links are driven between ports that are programs.
//!
//! `proto::link`'s defaults are those of adapters in one rack, whose answers come in microseconds.
//! A port answers when its program polls, or when the system runs it: where processors are shared,
//! that takes milliseconds, and says nothing about the network.
use ayre_proto::link::congestion::{Config, ONE, Scaling, Windows};
use ayre_proto::link::end::Drive;
use ayre_proto::link::rtt;
use std::time::Duration;

/// - Target delay 1 ms and more: the queues that delay tells of are mostly those before a port
///   that is not running. Those of the network are kept short by what a receiver's buffers hold.
/// - Windows of at least eight frames: a program that was held up once would crawl for long, and
///   where nobody polls for an acknowledgement a few frames must do. What eight frames of each link
///   are too much for is lost, and waits for its timeout, which doubles.
/// - Timeouts of at least 1 ms: a frame is rarely lost without later ones to tell of it.
pub(super) fn drive(silence: Duration) -> Drive {
    let mut drive = Drive::RACK;
    drive.timeout = rtt::Bounds { floor: 1_000_000, ..rtt::Bounds::RACK };
    drive.congestion = Config {
        base_target: 1_000_000,
        scaling: Scaling { range: 1_000_000, start: 8 * ONE, end: 64 * ONE },
        increase: ONE,
        window: Windows { min: 8 * ONE, initial: 16 * ONE, max: 192 * ONE },
        ..Config::RACK
    };
    drive.life.silence = (silence.as_nanos() as u64).max(1_000_000);
    drive
}
