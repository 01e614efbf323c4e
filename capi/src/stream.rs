//! Streams: pipelines of stages at several ports, which items pass in order.
use crate::access::ayre_peer;
use crate::border::{self, Bytes, In, Out, Text, User};
use crate::error::{Failure, Outcome, status, stream_failure};
use crate::interface::{Interface, Made};
use crate::place::{Lender, Loan, handle};
use crate::port::ayre_port;
use ayre::stream::{Entry, Flow, Hop, ITEM_MAX, Input, Stage, Stream, StreamEnd, StreamName};
use ayre::{Fault, PeerId};
use std::ffi::{c_int, c_void};
use std::panic::resume_unwind;

/// The source of a stream. `ayre_stream_finish` ends the stream.
pub struct ayre_stream(#[allow(dead_code, reason = "opaque")] Made<Stream>);
handle!(ayre_stream of Made<Stream>);

/// The stream that a stage runs for, by which it emits items. It is valid until the stage returns:
/// a later use is an error.
pub struct ayre_flow(#[allow(dead_code, reason = "opaque")] Loan<Flow<'static>>);
handle!(ayre_flow of Loan<Flow<'static>>);

/// The longest item in bytes.
pub const AYRE_ITEM_MAX: usize = 1 << 20;
const _: () = assert!(AYRE_ITEM_MAX == ITEM_MAX);

/// A stage gets an item.
pub const AYRE_STAGE_ITEM: c_int = 0;
/// The stream has ended: all items have come.
pub const AYRE_STAGE_CLOSED: c_int = 1;
/// All items on this way have come: an entry was cleared or replaced.
pub const AYRE_STAGE_CUT: c_int = 2;
/// The stream has failed: more was to come.
pub const AYRE_STAGE_FAILED: c_int = 3;

/// The input of a stage.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_stage_input {
    /// `AYRE_STAGE_ITEM`, or the end of the stream: `AYRE_STAGE_CLOSED`, `AYRE_STAGE_CUT` or
    /// `AYRE_STAGE_FAILED`. At its end a stage may still emit items; after a failure they are lost.
    pub kind: c_int,
    /// The bytes of an item.
    pub item: *const c_void,
    /// Their number.
    pub len: usize,
    /// The reason of a failure: `AYRE_STREAM_STAGE_FAILED` to `AYRE_STREAM_CANCELLED`.
    pub why: c_int,
    /// The port where it failed; after a death, the port that died.
    pub at: ayre_peer,
}

/// A stage, under the rules of an `ayre_handler`. The input is valid until it returns. It returns
/// 0. Another number ends the stream with `AYRE_STREAM_STAGE_FAILED`.
pub type ayre_stage = Option<
    extern "C-unwind" fn(user: User, flow: *mut ayre_flow, input: *const ayre_stage_input) -> c_int,
>;

/// Registers a stage under a name of 1 to 64 bytes. The port is a messenger. The stage runs in the
/// calls that run handlers. `user` goes to each run, until the port closes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_register_stage(
    port: Out<ayre_port>,
    name: Text,
    run: ayre_stage,
    user: User,
) -> c_int {
    status(|| {
        let mut port = port.held()?;
        port.messenger()?.streams().stage(name.text()?, standing(run, user)?)?;
        Ok(())
    })
}

/// The function that the engine runs with the input of a stage.
fn standing(
    run: ayre_stage,
    user: User,
) -> Outcome<impl FnMut(&mut (), &mut Flow<'_>, Input<'_>) + Send + 'static> {
    let run = run.ok_or(Failure::Argument("the stage is NULL"))?;
    let mut lender = Lender::<ayre_flow>::new();
    Ok(move |(): &mut (), flow: &mut Flow<'_>, input: Input<'_>| {
        let input = ayre_stage_input::from(input);
        let ended = lender.during(flow, |flow| run(user, flow, &raw const input));
        if ended != 0 {
            // The engine takes it for a panic of a stage. No hook speaks of it.
            resume_unwind(Box::new("the stage says so"));
        }
    })
}

impl From<Input<'_>> for ayre_stage_input {
    fn from(input: Input<'_>) -> Self {
        let end = |kind| Self { kind, item: std::ptr::null(), len: 0, why: 0, at: 0 };
        match input {
            Input::Item(item) => {
                Self { item: item.as_ptr().cast(), len: item.len(), ..end(AYRE_STAGE_ITEM) }
            }
            Input::End(StreamEnd::Closed) => end(AYRE_STAGE_CLOSED),
            Input::End(StreamEnd::Cut) => end(AYRE_STAGE_CUT),
            Input::End(StreamEnd::Failed(failure)) => {
                let (why, at) = (stream_failure(failure.why), failure.at.0);
                Self { why, at, ..end(AYRE_STAGE_FAILED) }
            }
        }
    }
}

/// Sends an item on, out of a stage, to the next stage. Does not block: items wait for room in
/// order. `AYRE_FAULT_TOO_LONG` for more than `AYRE_ITEM_MAX` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_flow_emit(flow: Out<ayre_flow>, item: Bytes, len: usize) -> c_int {
    status(|| {
        let (mut flow, item) = (flow.held()?, item.bytes(len)?);
        if item.len() > ITEM_MAX {
            return Err(Fault::TooLong.into());
        }
        flow.emit(item);
        Ok(())
    })
}

/// The four arguments of the entry that leads to a stage.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_flow_arguments(flow: Out<ayre_flow>, arguments: Out<u64>) -> c_int {
    status(|| {
        let found = flow.held()?.arguments();
        (0..).zip(found).try_for_each(|(at, word)| arguments.fill_at(at, word))
    })
}

/// The name of a stream at a port: the port that feeds it there, and a number.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_stream_name {
    /// The port that feeds the stream.
    pub peer: ayre_peer,
    /// Its number.
    pub number: u32,
}

impl From<StreamName> for ayre_stream_name {
    fn from(StreamName { peer, number }: StreamName) -> Self {
        Self { peer: peer.0, number }
    }
}

impl From<ayre_stream_name> for StreamName {
    fn from(ayre_stream_name { peer, number }: ayre_stream_name) -> Self {
        Self { peer: PeerId(peer), number }
    }
}

/// The name of the stream that a stage runs for, unique at this port while the stream exists.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_flow_name(flow: Out<ayre_flow>, name: Out<ayre_stream_name>) -> c_int {
    status(|| {
        let found = flow.held()?.name();
        name.given()?;
        name.fill(found);
        Ok(())
    })
}

/// A stage of a pipeline.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_hop {
    /// The port of the stage: it may be the one of the hop before, or this port.
    pub peer: ayre_peer,
    /// The name under which it is registered there.
    pub stage: Text,
    /// The arguments that it gets.
    pub arguments: [u64; 4],
}

/// Lays a pipeline and opens its stream. Blocks until all ports have answered, and runs handlers
/// meanwhile.
///
/// Errors: `AYRE_ENTRY_DENIED` to `AYRE_ENTRY_UNKNOWN` where a port refuses, and
/// `AYRE_STREAM_STAGE_FAILED` to `AYRE_STREAM_CANCELLED`. `ayre_error_peer` names the port.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_lay(
    port: Out<ayre_port>,
    hops: In<ayre_hop>,
    count: usize,
    stream: Out<*mut ayre_stream>,
) -> c_int {
    status(|| {
        stream.hand_out(|| {
            let mut port = port.held()?;
            let hop = |hop: &ayre_hop| {
                let stage = Stage::named(hop.stage.text()?);
                Ok(Hop::new(PeerId(hop.peer), stage).arguments(hop.arguments))
            };
            let hops: Outcome<Vec<_>> = hops.array(count)?.iter().map(hop).collect();
            let stream = port.messenger()?.streams().lay(&mut (), &hops?)?;
            Ok(port.made(stream))
        })
    })
}

/// Opens a stream at its source, whose entry is in this port's directory, under this port and this
/// number. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_open(
    port: Out<ayre_port>,
    number: u32,
    stream: Out<*mut ayre_stream>,
) -> c_int {
    status(|| {
        stream.hand_out(|| {
            let mut port = port.held()?;
            let stream = port.messenger()?.streams().open(&mut (), number)?;
            Ok(port.made(stream))
        })
    })
}

/// Pushes an item of at most `AYRE_ITEM_MAX` bytes. Blocks for room, and runs handlers and stages
/// meanwhile. Errors are those of a stream that has failed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_push(
    port: Out<ayre_port>,
    stream: Out<ayre_stream>,
    item: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, stream) = (port.held()?, stream.held()?);
        let (stream, item) = (stream.at(&port)?, item.bytes(len)?);
        Ok(port.messenger()?.streams().push(&mut (), stream, item)?)
    })
}

/// Pushes an item if there is room: else `AYRE_BUSY_STREAM`. Does not block. Runs stages of this
/// port, but no handlers.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_try_push(
    port: Out<ayre_port>,
    stream: Out<ayre_stream>,
    item: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, stream) = (port.held()?, stream.held()?);
        let (stream, item) = (stream.at(&port)?, item.bytes(len)?);
        Ok(port.messenger()?.streams().try_push(&mut (), stream, item)?)
    })
}

/// The source behind a handle of this port, which ends.
fn take(port: &Interface, stream: Out<ayre_stream>) -> Outcome<Stream> {
    stream.held()?.at(port)?;
    Ok(stream.close()?.into_thing())
}

/// Ends a stream behind its last item. Blocks until all its stages have run with the end, and runs
/// handlers and stages meanwhile. The handle is closed, also after an error, which says that not
/// all items have reached the last stage.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_finish(port: Out<ayre_port>, stream: Out<ayre_stream>) -> c_int {
    status(|| {
        let mut port = port.held()?;
        let stream = take(&port, stream)?;
        Ok(port.messenger()?.streams().close(&mut (), stream)?)
    })
}

/// Cancels a stream: all its stages get the end with `AYRE_STREAM_CANCELLED`. Does not block. The
/// handle is closed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_cancel(port: Out<ayre_port>, stream: Out<ayre_stream>) -> c_int {
    status(|| {
        let mut port = port.held()?;
        let stream = take(&port, stream)?;
        port.messenger()?.streams().cancel(&mut (), stream);
        Ok(())
    })
}

/// Closes the handle of a stream whose port was closed. A stream does not end by it. NULL is
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_stream_close(stream: Out<ayre_stream>) -> c_int {
    border::closed(stream)
}

/// An entry of a forwarding directory: the next port of a stream, and the stage there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_entry {
    /// The next port, and the number of the stream there.
    pub to: ayre_stream_name,
    /// The name of the stage there.
    pub stage: Text,
    /// The arguments that it gets.
    pub arguments: [u64; 4],
    /// 1 if the stage is not the last one: without an entry there, the stream fails.
    pub goes_on: c_int,
    /// 1 if the entry is removed after the first stream that has used it.
    pub is_once: c_int,
}

/// Sets or replaces an entry of the directory of the port `at`, under the name of a stream there.
/// Blocks for the answer, and runs handlers and stages meanwhile. Items that were sent before go
/// the old way. Errors are those of `ayre_stream_lay`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_set_entry(
    port: Out<ayre_port>,
    at: ayre_peer,
    name: ayre_stream_name,
    entry: In<ayre_entry>,
) -> c_int {
    status(|| {
        let (mut port, given) = (port.held()?, entry.given()?);
        let stage = Stage::named(given.stage.text()?);
        let entry = Entry::new(PeerId(given.to.peer), given.to.number, stage);
        let entry = entry.arguments(given.arguments);
        let entry = if given.goes_on == 0 { entry } else { entry.goes_on() };
        let entry = if given.is_once == 0 { entry } else { entry.once() };
        Ok(port.messenger()?.streams().set_entry(&mut (), PeerId(at), name.into(), entry)?)
    })
}

/// Clears an entry of the directory of the port `at`. The rest is as for `ayre_set_entry`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_clear_entry(
    port: Out<ayre_port>,
    at: ayre_peer,
    name: ayre_stream_name,
) -> c_int {
    status(|| {
        let mut port = port.held()?;
        Ok(port.messenger()?.streams().clear_entry(&mut (), PeerId(at), name.into())?)
    })
}

/// Sets whether peers may set and clear entries here: 1, as at first, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_let_peers_set_entries(port: Out<ayre_port>, may: c_int) -> c_int {
    status(|| {
        port.held()?.messenger()?.streams().let_peers_set_entries(may != 0);
        Ok(())
    })
}
