//! Active messages: handlers, and calls of them.
use crate::access::{ayre_peer, timeout};
use crate::border::{Bytes, In, Out, Text, User};
use crate::error::{Failure, Outcome, count, flag, number, status};
use crate::interface::Interface;
use crate::place::{Lender, Loan, handle};
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::active::{ARGUMENTS_MAX, Call, DropCause, DroppedCall, Handler, MessengerOptions};
use std::ffi::{c_int, c_void};
use std::panic::resume_unwind;

/// The most arguments of a call.
pub const AYRE_ARGUMENTS_MAX: usize = 8;
const _: () = assert!(AYRE_ARGUMENTS_MAX == ARGUMENTS_MAX);

/// A call that a handler runs for, by which it replies. It is valid until the handler returns: a
/// later use is an error.
pub struct ayre_token(#[allow(dead_code, reason = "opaque")] Loan<Call<'static>>);
handle!(ayre_token of Loan<Call<'static>>);

/// A handler: `count` arguments and `len` bytes of payload, which are valid until it returns. A
/// payload of no bytes may be NULL.
///
/// `user` is the pointer that was registered. The handler runs on the thread that calls
/// `ayre_poll`, `ayre_wait`, or a function that says that it runs handlers. It returns 0. Another
/// number says that it has failed: the message is reported to its sender as
/// `AYRE_DROPPED_FAILED`.
///
/// In a handler the port is in use: its functions return `AYRE_HANDLE_IN_USE`, so use the token. A
/// handler neither leaves by `longjmp` nor throws: an exception of C++ ends the process.
pub type ayre_handler = Option<
    extern "C-unwind" fn(
        user: User,
        token: *mut ayre_token,
        arguments: *const u64,
        count: usize,
        payload: *const c_void,
        len: usize,
    ) -> c_int,
>;

/// Limits of a messenger. 0 stands for the usual limit, and NULL for all of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_messenger_options {
    /// Bytes of messages of handlers that may wait for room: usually 16 MiB.
    pub overflow: usize,
    /// Bytes of memory for each peer that sends long messages: a power of two from 4 KiB to 16 MiB.
    pub landing: usize,
    /// Bytes of the longest payload that is accepted: usually 64 MiB, which is the most.
    pub longest: usize,
}

/// Makes a messenger of a port: it calls handlers of its peers, and runs its own. Does not block.
///
/// The handle stays the port's, for everything but short messages, which belong to handlers from
/// now on: `ayre_send` and `ayre_recv` return `AYRE_INVALID`. A port that is a messenger already
/// stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_messenger_start(
    port: Out<ayre_port>,
    options: In<ayre_messenger_options>,
) -> c_int {
    status(|| {
        let given = options.get().copied().unwrap_or_default();
        let mut options = MessengerOptions::new();
        for (bytes, set) in [
            (given.overflow, MessengerOptions::overflow as fn(_, _) -> _),
            (given.landing, MessengerOptions::landing),
            (given.longest, MessengerOptions::longest),
        ] {
            options = if bytes == 0 { options } else { set(options, bytes) };
        }
        options.check()?;
        port.held()?.become_of(|port| port.into_messenger(options));
        Ok(())
    })
}

/// Makes a port of a messenger again. Its handlers, groups and streams end; messages that wait for
/// room are lost, unless `ayre_messenger_flush` has sent them. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_messenger_stop(port: Out<ayre_port>) -> c_int {
    status(|| {
        port.held()?.become_of(|messenger| Interface::Port(messenger.into_port()));
        Ok(())
    })
}

/// Makes a call for handlers of this number of arguments.
macro_rules! counted {
    ($count:expr, $many:ident => $call:expr) => {
        counted!($count, $many => $call; 0 1 2 3 4 5 6 7 8)
    };
    ($count:expr, $many:ident => $call:expr; $($number:literal)+) => {
        match $count {
            $($number => {
                const $many: usize = $number;
                $call
            })+
            _ => Err(Failure::Argument("a call has at most 8 arguments")),
        }
    };
}

/// Registers a handler of `arguments` arguments under a name of 1 to 64 bytes. Each peer is told of
/// it before the next message. Returns its id, which is the same at all processes.
///
/// `user` goes to each run of the handler. It is used until the port closes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_register_handler(
    port: Out<ayre_port>,
    name: Text,
    arguments: usize,
    run: ayre_handler,
    user: User,
) -> i64 {
    number(|| {
        let (mut port, name) = (port.held()?, name.text()?);
        let messenger = port.messenger()?;
        counted!(arguments, N => {
            Ok(messenger.register::<N>(name, running(given(run)?, user))?.id())
        })
    })
}

/// Registers a handler under an id from 32 to 255, on which the processes have agreed. Peers can
/// call it before any name is announced. The rest is as for `ayre_register_handler`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_register_static_handler(
    port: Out<ayre_port>,
    id: u32,
    arguments: usize,
    run: ayre_handler,
    user: User,
) -> c_int {
    status(|| {
        let mut port = port.held()?;
        let messenger = port.messenger()?;
        counted!(arguments, N => {
            messenger.register_static::<N>(id, running(given(run)?, user))?;
            Ok(())
        })
    })
}

/// A handler that is there.
fn given(run: ayre_handler) -> Outcome<ayre_handler> {
    run.is_some().then_some(run).ok_or(Failure::Argument("the handler is NULL"))
}

/// The function that the engine runs with a message.
fn running<const N: usize>(
    run: ayre_handler,
    user: User,
) -> impl FnMut(&mut (), &mut Call<'_>, [u64; N], &[u8]) + Send + 'static {
    let mut lender = Lender::<ayre_token>::new();
    move |(), call, arguments, payload| {
        let (words, bytes, len) = (arguments.as_ptr(), payload.as_ptr().cast(), payload.len());
        let ended = lender
            .during(call, |token| run.map_or(0, |run| run(user, token, words, N, bytes, len)));
        if ended != 0 {
            // The engine takes it for a panic of a handler. No hook speaks of it.
            resume_unwind(Box::new("the handler says so"));
        }
    }
}

/// The id of a handler's name, whether or not a handler is registered under it.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_handler_id(name: Text) -> i64 {
    number(|| Ok(Handler::<0>::named(name.text()?).id()))
}

/// 1 if a peer has announced a handler of this id and this number of arguments.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_is_announced(
    port: Out<ayre_port>,
    peer: ayre_peer,
    handler: u32,
    arguments: usize,
) -> c_int {
    flag(|| {
        let mut port = port.held()?;
        let messenger = port.messenger()?;
        counted!(arguments, N => {
            Ok(messenger.is_announced(PeerId(peer), with_id::<N>(handler)?))
        })
    })
}

pub(crate) fn with_id<const N: usize>(id: u32) -> Outcome<Handler<N>> {
    match Handler::with_id(id) {
        Some(handler) => Ok(handler),
        None => Err(Failure::Argument("no handler has such an id")),
    }
}

/// Makes a call whose arguments are an array, of which C gives a pointer and a number.
macro_rules! with_arguments {
    (($given:expr, $count:expr, $id:expr), |$handler:ident, $arguments:ident| $call:expr) => {{
        let given = $given.array($count)?;
        $crate::active::with_arguments!(@match given, $id, $handler, $arguments, $call,
            0 1 2 3 4 5 6 7 8)
    }};
    (@match $given:ident, $id:expr, $handler:ident, $arguments:ident, $call:expr,
        $($number:literal)+) => {
        match $given.len() {
            $($number => {
                let $handler = $crate::active::with_id::<$number>($id)?;
                let $arguments = *$given.first_chunk::<$number>().unwrap_or(&[0; $number]);
                $call
            })+
            _ => Err($crate::error::Failure::Argument("a call has at most 8 arguments")),
        }
    };
}
pub(crate) use with_arguments;

/// Calls a handler of a peer, by its id, with `count` arguments and `len` bytes of payload, at most
/// 64 MiB. Blocks until the message has room, and runs handlers meanwhile.
///
/// `arguments` may be NULL if there are none, and `payload` if it has no bytes. Both may be used
/// again when the call returns. A handler that the peer does not have is no error here: see
/// `ayre_failures`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_call(
    port: Out<ayre_port>,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, payload) = (port.held()?, payload.bytes(len)?);
        let messenger = port.messenger()?;
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(messenger.call(&mut (), PeerId(to), handler, arguments, payload)?)
        })
    })
}

/// Calls a handler as `ayre_call` does, with at most 1024 bytes, arguments included, if there is
/// room: else it is busy. Does not block, and runs no handler.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_try_call(
    port: Out<ayre_port>,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, payload) = (port.held()?, payload.bytes(len)?);
        let messenger = port.messenger()?;
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(messenger.try_call(PeerId(to), handler, arguments, payload)?)
        })
    })
}

/// Runs the handlers of messages that have come. Does not block. Returns how many have run.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_poll(port: Out<ayre_port>) -> c_int {
    count(|| Ok(port.held()?.messenger()?.poll(&mut ())))
}

/// Waits until handlers have run, for `timeout_us` microseconds; for ever if that is negative.
/// Returns how many have run.
///
/// `AYRE_TIMED_OUT`, or `AYRE_PEER_DIED`, once for each peer: `ayre_error_peer` names it.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_wait(port: Out<ayre_port>, timeout_us: i64) -> c_int {
    count(|| Ok(port.held()?.messenger()?.wait(&mut (), timeout(timeout_us))?))
}

/// Waits until all living peers have begun as many syncs as this port. Blocks, and runs handlers
/// meanwhile. Then all handlers that peers had registered before are known here, and all messages
/// that they had sent before have been run.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_sync(port: Out<ayre_port>) -> c_int {
    status(|| Ok(port.held()?.messenger()?.sync(&mut ())?))
}

/// Waits until all messages are sent that handlers have sent, and those by channels. Blocks, and
/// runs handlers meanwhile. A program that will not poll for a while calls it first.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_messenger_flush(port: Out<ayre_port>) -> c_int {
    status(|| {
        port.held()?.messenger()?.flush(&mut ());
        Ok(())
    })
}

/// The cause of a message that was not run: its destination has no such handler, or another one by
/// this id.
pub const AYRE_DROPPED_UNKNOWN: c_int = 1;
/// It has fewer arguments than its handler takes, or a longer payload than its destination takes.
pub const AYRE_DROPPED_MALFORMED: c_int = 2;
/// The handler has failed: it has returned another number than 0, or has panicked.
pub const AYRE_DROPPED_FAILED: c_int = 3;

/// A message whose handler was not run, or has failed, here or at a peer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_dropped_call {
    /// The peer: its sender, or its destination if `is_ours`.
    pub peer: ayre_peer,
    /// The id of the handler.
    pub handler: u32,
    /// `AYRE_DROPPED_UNKNOWN`, `AYRE_DROPPED_MALFORMED` or `AYRE_DROPPED_FAILED`.
    pub cause: c_int,
    /// 1 if this port has sent the message.
    pub is_ours: c_int,
}

/// Takes messages whose handlers were not run, the oldest first, at most `room` of them. Returns
/// how many were taken: as many as `room` says that there may be more. Does not block. The last
/// 1024 are kept.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_failures(
    port: Out<ayre_port>,
    calls: Out<ayre_dropped_call>,
    room: usize,
) -> c_int {
    count(|| {
        let mut port = port.held()?;
        let messenger = port.messenger()?;
        if room > 0 {
            calls.given()?;
        }
        let mut taken = 0;
        for failure in messenger.failures().take(room) {
            calls.fill_at(taken, failure)?;
            taken += 1;
        }
        Ok(taken)
    })
}

impl From<DroppedCall> for ayre_dropped_call {
    fn from(DroppedCall { peer, handler, cause, is_ours }: DroppedCall) -> Self {
        let cause = match cause {
            DropCause::Unknown => AYRE_DROPPED_UNKNOWN,
            DropCause::Malformed => AYRE_DROPPED_MALFORMED,
            DropCause::Panicked => AYRE_DROPPED_FAILED,
        };
        Self { peer: peer.0, handler, cause, is_ours: is_ours.into() }
    }
}

/// The sender of the message that a handler runs for.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_token_source(token: Out<ayre_token>) -> c_int {
    count(|| Ok(token.held()?.source().index()))
}

/// Calls a handler of the sender of the message that a handler runs for. The rest is as for
/// `ayre_token_send`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_token_reply(
    token: Out<ayre_token>,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut call, payload) = (token.held()?, payload.bytes(len)?);
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(call.reply(handler, arguments, payload)?)
        })
    })
}

/// Calls a handler of any peer, out of a handler. Does not block: a message without room is kept
/// and sent later, in order. `AYRE_BUSY_OVERFLOW` where those that are kept have reached the limit
/// of the messenger.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_token_send(
    token: Out<ayre_token>,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut call, payload) = (token.held()?, payload.bytes(len)?);
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(call.send(PeerId(to), handler, arguments, payload)?)
        })
    })
}
