//! How links are driven between ports that are programs.
//!
//! `proto::link`'s defaults are those of adapters in one rack, whose answers come in microseconds.
//! A port answers when its program polls, or when the system runs it: where processors are shared,
//! that takes milliseconds, and says nothing about the network.
use ayre_proto::link::congestion::{Config, ONE, Scaling, Windows};
use ayre_proto::link::end::Drive;
use ayre_proto::link::rtt;
use std::time::Duration;

/// The calm window of short frames, in frames.
const CALM_MAX: u32 = 64;
/// The least window, in frames.
const LEAST: u32 = 8;
/// The bytes that 1 Gbit/s carries in a millisecond. A network that carries less in that time is
/// rare, and one whose queue is too long with it loses frames.
const CALM_BYTES: u32 = 125_000;
const _: () = assert!(LEAST < CALM_MAX, "links of short frames have more of them under way");

/// - Target delay 1 ms and more: what neither host says that it has caused is still not all the
///   network's, where the system's own threads wait for a processor. Queues of the network are
///   kept short by what a receiver's buffers hold, too.
/// - The window doubles in a round trip at first: round trips may take milliseconds.
/// - Delays leave a window of 64 frames as long as nothing is lost, fewer where frames are long:
///   see [`drive_frames`].
/// - Windows of at least eight frames: where nobody polls for an acknowledgement a few frames must
///   do. Where eight frames of each link are too much, the rest is lost, and waits for its timeout,
///   which doubles.
/// - Timeouts of at least 1 ms: a frame is rarely lost without later ones to tell of it.
pub(crate) fn drive((silence, dead_after): (Duration, Duration)) -> Drive {
    let mut drive = Drive::RACK;
    drive.timeout = rtt::Bounds { floor: 1_000_000, ..rtt::Bounds::RACK };
    drive.congestion = Config {
        base_target: 1_000_000,
        scaling: Scaling { range: 1_000_000, start: 8 * ONE, end: 64 * ONE },
        increase: ONE,
        slow_start: true,
        window: Windows {
            min: LEAST * ONE,
            calm: CALM_MAX * ONE,
            initial: 16 * ONE,
            max: 192 * ONE,
        },
        ..Config::RACK
    };
    drive.life.silence = (silence.as_nanos() as u64).max(1_000_000);
    drive.life.dead_after = (dead_after.as_nanos() as u64).max(drive.life.silence);
    drive
}

/// The drive for frames of this length: delays leave as many as a modest network carries in a
/// millisecond.
// spec: CONG-10
pub(crate) fn drive_frames(drive: &Drive, frame_max: u16) -> Drive {
    let mut drive = *drive;
    let frames = CALM_BYTES / u32::from(frame_max).max(1);
    drive.congestion.window.calm = frames.clamp(LEAST, CALM_MAX) * ONE;
    let Windows { min, calm, max, .. } = drive.congestion.window;
    assert!(min <= calm && calm <= max, "a calm link's window is one");
    drive
}
