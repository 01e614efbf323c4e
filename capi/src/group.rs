//! Groups of processes, and how they do collectives.
use crate::access::ayre_peer;
use crate::border::{self, In, Out, Text, TextBuffer};
use crate::error::{Failure, Outcome, mismatch, number, status};
use crate::interface::Made;
use crate::place::handle;
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::active::Messenger;
use ayre::collective::{
    CallMismatch, CallShape, Collective, Group, LinkUse, RecordedCall, Schedule,
};
use std::ffi::c_int;
use std::num::NonZeroU32;

/// A group of processes that do collectives together, at one of its members.
pub struct ayre_group(#[allow(dead_code, reason = "opaque")] Made<Group>);
handle!(ayre_group of Made<Group>);

/// One member has to do with all others.
pub const AYRE_SCHEDULE_STAR: u32 = 1;
/// Along a binomial tree.
pub const AYRE_SCHEDULE_TREE: u32 = 2;
/// In rounds, with partners twice as far away each time.
pub const AYRE_SCHEDULE_DOUBLING: u32 = 3;
/// Each block goes the shortest way.
pub const AYRE_SCHEDULE_SPREAD: u32 = 4;
/// Along neighbours, block by block.
pub const AYRE_SCHEDULE_RING: u32 = 5;

/// Makes a group of `members_count` members, this port among them, which is a messenger. All
/// members make it under the same name of 1 to 64 bytes, with the same members in the same order.
/// Sends nothing, and does not block.
///
/// A group lasts as long as the messenger. The handle is closed by `ayre_group_close`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_of(
    port: Out<ayre_port>,
    name: Text,
    members: In<ayre_peer>,
    members_count: usize,
    group: Out<*mut ayre_group>,
) -> c_int {
    status(|| {
        group.hand_out(|| {
            let mut port = port.held()?;
            let members: Vec<_> =
                members.array(members_count)?.iter().copied().map(PeerId).collect();
            let group = port.messenger()?.collectives().group(name.text()?, &members)?;
            Ok(port.made(group))
        })
    })
}

/// Makes a group of this port and all its peers, in the order of their numbers. In a job this is
/// the order of the ranks. The rest is as for `ayre_group_of`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_of_all(
    port: Out<ayre_port>,
    name: Text,
    group: Out<*mut ayre_group>,
) -> c_int {
    status(|| {
        group.hand_out(|| {
            let mut port = port.held()?;
            let group = port.messenger()?.collectives().group_of_all(name.text()?)?;
            Ok(port.made(group))
        })
    })
}

/// Closes the handle of a group. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_close(group: Out<ayre_group>) -> c_int {
    border::closed(group)
}

/// Makes a call of a group, by the messenger that has made it.
pub(crate) fn with_group<T>(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    call: impl FnOnce(&mut Messenger<()>, Group) -> Outcome<T>,
) -> Outcome<T> {
    let mut port = port.held()?;
    let group = *group.shared()?.at(&port)?;
    call(port.messenger()?, group)
}

/// Lists the members of a group in their order, at most `room` of them. Returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_members(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    peers: Out<ayre_peer>,
    room: usize,
) -> i64 {
    number(|| {
        with_group(port, group, |messenger, group| {
            peers.list(messenger.collectives().members(group)?.iter().copied(), room)
        })
    })
}

/// Fixes the schedule by which a group does a collective, the same one at all members: one of
/// `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`, or 0 to leave the choice to the library. Floating
/// point sums ignore a schedule that would change their result.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_fix_schedule(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    collective: u32,
    schedule: u32,
) -> c_int {
    status(|| {
        with_group(port, group, |messenger, group| {
            let collective = Collective::ALL.into_iter().find(|one| *one as u32 == collective);
            let collective = collective.ok_or(NO_COLLECTIVE)?;
            let found = Schedule::ALL.into_iter().find(|one| *one as u32 == schedule);
            if found.is_none() && schedule != 0 {
                return Err(Failure::Argument("there is no schedule of this number"));
            }
            Ok(messenger.collectives().fix_schedule(group, collective, found)?)
        })
    })
}

pub(crate) const NO_COLLECTIVE: Failure =
    Failure::Argument("there is no collective of this number");

/// Lets a group choose its schedules by the load of its links, whose members exchange the loads
/// after `every` calls; 0 returns to the usual schedules. Blocks until all members have called this
/// with the same number, and runs handlers meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_adapt(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    every: u32,
) -> c_int {
    status(|| {
        with_group(port, group, |messenger, group| {
            Ok(messenger.collectives().adapt(&mut (), group, NonZeroU32::new(every))?)
        })
    })
}

/// Records the last `calls` collectives of a group from now on; 0 ends the recording. Calls that do
/// not wait, or that fail, are not recorded.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_record(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    calls: usize,
) -> c_int {
    status(|| {
        with_group(port, group, |messenger, group| {
            Ok(messenger.collectives().record(group, calls)?)
        })
    })
}

/// A collective that was recorded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_recorded_call {
    /// The number of the collective in its group, the same at all members.
    pub number: u32,
    /// `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`.
    pub collective: u32,
    /// `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`.
    pub schedule: u32,
    /// The start of the call, in nanoseconds since the recording began.
    pub begin_ns: u64,
    /// The duration at this member, in nanoseconds.
    pub time_ns: u64,
    /// Bytes of the vector, or of a block.
    pub bytes: usize,
}

/// The load of the link to a member during a recorded call: zeros for this member and for those on
/// this host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_link_use {
    /// Frames with a payload that the link sent during the call, for any user of the link.
    pub sent: u64,
    /// Frames that waited to be sent or acknowledged when the call began.
    pub waiting: u32,
    /// The smoothed round trip at the end of the call, in nanoseconds.
    pub round_trip_ns: u64,
}

/// Lists the recorded calls of a group, the oldest first, at most `room` of them. Returns how many
/// there are. `links` gets the links of each call behind each other, one for each member; it may be
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_recorded(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    calls: Out<ayre_recorded_call>,
    links: Out<ayre_link_use>,
    room: usize,
) -> i64 {
    number(|| {
        with_group(port, group, |messenger, group| {
            let mut found = 0;
            for call in messenger.collectives().recording(group) {
                if found < room {
                    calls.fill_at(found, call)?;
                    let uses = call.links.iter().enumerate();
                    let first = found * call.links.len();
                    for (member, link) in uses.filter(|_| !links.is_null()) {
                        links.fill_at(first + member, *link)?;
                    }
                }
                found += 1;
            }
            Ok(found as i64)
        })
    })
}

/// Writes the recording of a group as text, for `ayre study`, into `text`, which has `room` bytes.
/// Returns the length of the text; if it is not below `room`, the text is cut.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_recording(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    text: TextBuffer,
    room: usize,
) -> i64 {
    number(|| {
        with_group(port, group, |messenger, group| {
            let mut found = Vec::new();
            let written = messenger.collectives().write_recording(group, &mut found);
            let found = String::from_utf8_lossy(&found);
            written.map_err(|_| Failure::Argument("there is no memory for the text"))?;
            text.say(&found, room)?;
            Ok(found.len() as i64)
        })
    })
}

impl From<RecordedCall<'_>> for ayre_recorded_call {
    fn from(call: RecordedCall<'_>) -> Self {
        Self {
            number: call.number,
            collective: call.collective as u32,
            schedule: call.schedule as u32,
            begin_ns: call.begin_ns,
            time_ns: call.time_ns,
            bytes: call.bytes,
        }
    }
}

impl From<LinkUse> for ayre_link_use {
    fn from(link: LinkUse) -> Self {
        let LinkUse { sent, waiting, round_trip_ns, .. } = link;
        Self { sent, waiting, round_trip_ns }
    }
}

/// The parameters of a collective that must be equal at all members.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_call_shape {
    /// `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`; 0 if it is not known.
    pub collective: u32,
    /// `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`.
    pub schedule: u32,
    /// The root.
    pub root: u32,
    /// How values are combined; 0 if they are not.
    pub combine: u32,
    /// Their type; 0 if they are not combined.
    pub number: u32,
    /// Bytes of the vector; 0 where members have blocks.
    pub bytes: u64,
}

/// How the collectives of two members differ.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_mismatch {
    /// The other member.
    pub peer: ayre_peer,
    /// Bytes of its values that were due.
    pub due: u32,
    /// Bytes that have come.
    pub came: u32,
    /// The collective of this member.
    pub ours: ayre_call_shape,
    /// The collective of the other one.
    pub theirs: ayre_call_shape,
}

/// The details of the last error of this thread, if it was `AYRE_MISMATCH`. Returns 1 if it was,
/// else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_error_mismatch(details: Out<ayre_mismatch>) -> c_int {
    let Some((peer, CallMismatch { ours, theirs, bytes: [due, came] })) = mismatch() else {
        return 0;
    };
    let theirs = theirs.map_or_else(ayre_call_shape::default, Into::into);
    details.fill(ayre_mismatch { peer: peer.0, due, came, ours: ours.into(), theirs });
    1
}

impl From<CallShape> for ayre_call_shape {
    fn from(CallShape { task, operation, bytes }: CallShape) -> Self {
        let (combine, number) = operation.map_or((0, 0), |(one, of)| (one.code(), of.code()));
        Self {
            collective: task.collective as u32,
            schedule: task.schedule as u32,
            root: task.root as u32,
            combine: combine.into(),
            number: number.into(),
            bytes,
        }
    }
}
