//! Endpoints: messages of any length by address and tag, and memory by key.
use crate::access::timeout;
use crate::border::{self, Buffer, Bytes, In, Out, Text, TextBuffer, User, iovec};
use crate::error::{self, Failure, Outcome, count, flag, number, status};
use crate::place::handle;
use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    Comparison, CompletionKind, ExposeError, MemoryRegion, MemoryRegions, OutgoingMessage,
    PostedReceive, RawEndpoint, RemoteAddress, RmaUpdate, RmaWrite, SPANS_MAX, Sent, Span, Spans,
};
use ayre::endpoint::{Address, Received, RemoteId};
use ayre::{EndpointOptions, Rights};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// A port that others find by its address, and whose messages go to the receives that match them.
/// An endpoint is used by one thread at a time, and makes progress in its calls only.
///
/// A buffer that was posted belongs to the library until the operation's completion is taken, or
/// the endpoint is closed: do not change, read or free it before.
pub struct ayre_endpoint(#[allow(dead_code, reason = "opaque")] Opened);
handle!(ayre_endpoint of Opened);

/// An endpoint with what has ended and was not taken yet.
#[derive(Debug)]
pub struct Opened {
    raw: RawEndpoint,
    regions: MemoryRegions,
    ended: VecDeque<ayre_completion>,
}

/// Another endpoint, as this one names it. 0 is none.
pub type ayre_remote = u64;

/// Only endpoints of this host reach the endpoint.
pub const AYRE_LOCAL: u32 = 1;
/// Bytes of the text of an address, its zero byte included.
pub const AYRE_ADDRESS_TEXT: usize = 129;
const _: () = assert!(AYRE_ADDRESS_TEXT == 2 * Address::BYTES + 1);
/// A source of messages: any endpoint.
pub const AYRE_ANY: ayre_remote = 0;

/// The kind of a completion: a message was sent, and its buffer is the program's again.
pub const AYRE_SENT: u32 = 1;
/// A message is in the buffer of a receive.
pub const AYRE_RECEIVED: u32 = 2;
/// A receive was cancelled.
pub const AYRE_CANCELLED: u32 = 3;
/// A write is done at the target.
pub const AYRE_WRITTEN: u32 = 4;
/// The bytes that were read are in the buffer.
pub const AYRE_READ_DONE: u32 = 5;
/// An atomic is done at the target, and its result is in the buffer.
pub const AYRE_UPDATED: u32 = 6;

/// The end of an operation that was posted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_completion {
    /// As the program gave it.
    pub context: User,
    /// `AYRE_SENT` and the others.
    pub kind: u32,
    /// `AYRE_OK`, or the code of a fault.
    pub status: c_int,
    /// Of a message that was received.
    pub received: ayre_received,
}

/// A message that was received, or that waits to be.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_received {
    /// The sender.
    pub source: ayre_remote,
    /// Its tag.
    pub tag: u64,
    /// The length of the message in bytes.
    pub len: u64,
    /// How many of them are in the buffer: fewer, where there was no room.
    pub placed: u64,
}

/// The messages that a receive takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_pattern {
    /// Their sender, or `AYRE_ANY`.
    pub source: ayre_remote,
    /// Their tag.
    pub tag: u64,
    /// The bits of the tag that may differ.
    pub ignored: u64,
}

/// A place in the memory of another endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_remote_address {
    /// The endpoint.
    pub remote: ayre_remote,
    /// The key under which it has exposed the memory.
    pub key: u64,
    /// The first byte, counted from the beginning of that memory.
    pub offset: u64,
}

impl From<Received> for ayre_received {
    fn from(it: Received) -> Self {
        let source = it.source.map_or(AYRE_ANY, RemoteId::number);
        Self { source, tag: it.tag.unwrap_or_default(), len: it.len, placed: it.placed }
    }
}

impl ayre_pattern {
    fn source(&self) -> Outcome<Option<RemoteId>> {
        if self.source == AYRE_ANY { Ok(None) } else { remote_of(self.source).map(Some) }
    }

    fn tag(&self) -> (u64, u64) {
        (self.tag & !self.ignored, self.ignored)
    }
}

fn remote_of(number: ayre_remote) -> Outcome<RemoteId> {
    RemoteId::with_number(number)
        .ok_or(Failure::Argument("a remote comes from ayre_endpoint_remote"))
}

impl ayre_remote_address {
    fn address(&self) -> Outcome<RemoteAddress> {
        let remote = remote_of(self.remote)?;
        Ok(RemoteAddress { remote, key: self.key, address: self.offset })
    }
}

impl Opened {
    fn open(options: &EndpointOptions) -> Outcome<Self> {
        let mut raw = RawEndpoint::open_with(options)?;
        let regions = MemoryRegions::new();
        raw.share(&regions);
        Ok(Self { raw, regions, ended: VecDeque::new() })
    }

    /// Notes the end of an operation for the program to take.
    fn tell(ended: &mut VecDeque<ayre_completion>, end: ayre::endpoint::raw::Completion) {
        let (kind, received) = match end.what {
            CompletionKind::Sent => (AYRE_SENT, None),
            CompletionKind::Received(received) => (AYRE_RECEIVED, Some(received)),
            CompletionKind::Cancelled => (AYRE_CANCELLED, None),
            CompletionKind::Written => (AYRE_WRITTEN, None),
            CompletionKind::Read => (AYRE_READ_DONE, None),
            CompletionKind::Updated => (AYRE_UPDATED, None),
            // Nothing of the program's has ended.
            CompletionKind::RmaEvent(_) => return,
        };
        let context = User::with_number(end.context as u64);
        let status = end.result.err().map_or(error::AYRE_OK, error::fault);
        let received = received.map_or_else(Default::default, ayre_received::from);
        ended.push_back(ayre_completion { context, kind, status, received });
    }

    fn progress(&mut self) {
        let Self { raw, ended, .. } = self;
        raw.progress(|end| Self::tell(ended, end));
    }

    fn send(&mut self, to: ayre_remote, tag: u64, bytes: Spans, context: User) -> Outcome<()> {
        let (tag, label) = (Some(tag), context.number().into());
        let message = OutgoingMessage { tag, data: None, bytes, context: label, delivered: false };
        if self.raw.send(remote_of(to)?, &message)? == Sent::Completed {
            self.note_sent(context);
        }
        Ok(())
    }

    fn receive(&mut self, pattern: &ayre_pattern, into: Spans, context: User) -> Outcome<()> {
        let (source, tag) = (pattern.source()?, Some(pattern.tag()));
        let context = context.number().into();
        Ok(self.raw.receive(PostedReceive { source, tag, into, context, many: None })?)
    }

    fn write(&mut self, to: &ayre_remote_address, bytes: Spans, context: User) -> Outcome<()> {
        let context = context.number().into();
        let write = RmaWrite { bytes, data: None, context, inject: false };
        // A write that needs its memory no longer ends later all the same, at the target.
        Ok(self.raw.write(to.address()?, &write).map(drop)?)
    }

    fn read(&mut self, from: &ayre_remote_address, into: Spans, context: User) -> Outcome<()> {
        Ok(self.raw.read(from.address()?, into, context.number().into())?)
    }

    fn note_sent(&mut self, context: User) {
        let (kind, received) = (AYRE_SENT, ayre_received::default());
        self.ended.push_back(ayre_completion { context, kind, status: error::AYRE_OK, received });
    }

    /// Hands completions out. Returns how many.
    fn take(&mut self, into: Out<ayre_completion>, room: usize) -> Outcome<usize> {
        let taken = self.ended.len().min(room);
        if taken > 0 {
            into.given()?;
        }
        for (at, end) in self.ended.drain(..taken).enumerate() {
            into.fill_at(at, end)?;
        }
        Ok(taken)
    }
}

/// Opens an endpoint as the user's variables `AYRE_*` say. `flags` is 0 or `AYRE_LOCAL`. Does not
/// block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_open(flags: u32, endpoint: Out<*mut ayre_endpoint>) -> c_int {
    status(|| {
        endpoint.hand_out(|| {
            let options = EndpointOptions::of_variables()?;
            match flags {
                0 => Opened::open(&options),
                AYRE_LOCAL => Opened::open(&options.local()),
                _ => Err(Failure::Argument("the flags are 0 or AYRE_LOCAL")),
            }
        })
    })
}

/// Closes an endpoint. Blocks at most for a second, while what was sent to other hosts is
/// delivered. All buffers are the program's again then. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_close(endpoint: Out<ayre_endpoint>) -> c_int {
    border::closed(endpoint)
}

/// Writes where others find the endpoint, as text to be passed on by any means, into `text`, which
/// has `AYRE_ADDRESS_TEXT` bytes. A process that knows the address may send to the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_address(
    endpoint: Out<ayre_endpoint>,
    text: TextBuffer,
    room: usize,
) -> c_int {
    status(|| {
        if room < AYRE_ADDRESS_TEXT {
            return Err(Failure::Argument("the text of an address has AYRE_ADDRESS_TEXT bytes"));
        }
        text.say(&endpoint.held()?.raw.address().to_text(), room)
    })
}

/// Names the endpoint at an address, and begins to connect with it. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_remote(
    endpoint: Out<ayre_endpoint>,
    address: Text,
    remote: Out<ayre_remote>,
) -> c_int {
    status(|| {
        remote.given()?;
        let address = Address::from_text(address.text()?)
            .ok_or(Failure::Argument("the text is no address of ayre_endpoint_address"))?;
        remote.fill(endpoint.held()?.raw.remote(&address)?.number());
        Ok(())
    })
}

/// Forgets a remote. Returns 0 if operations under way use it, or if it is unknown, else 1.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_forget(endpoint: Out<ayre_endpoint>, remote: ayre_remote) -> c_int {
    flag(|| Ok(endpoint.held()?.raw.forget(remote_of(remote)?)))
}

/// The most pieces of memory that an operation of an endpoint has.
pub const AYRE_ENDPOINT_IOV: usize = 4;
const _: () = assert!(AYRE_ENDPOINT_IOV == SPANS_MAX);

/// Posts a message of any length. Messages to one endpoint arrive in order. Does not block: a
/// completion of kind `AYRE_SENT` gives the buffer back. `AYRE_BUSY_CONNECTING` until the other
/// endpoint has answered: poll, and try again.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_send(
    endpoint: Out<ayre_endpoint>,
    to: ayre_remote,
    tag: u64,
    data: Bytes,
    len: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.send(to, tag, data.span(len)?.into(), context))
}

/// Posts a message of `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`.
/// The rest is as for `ayre_endpoint_send`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_sendv(
    endpoint: Out<ayre_endpoint>,
    to: ayre_remote,
    tag: u64,
    data: In<iovec>,
    count: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.send(to, tag, data.spans_read(count)?, context))
}

/// Posts a receive. The oldest message that matches goes into the buffer; what has no room there is
/// lost. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_receive(
    endpoint: Out<ayre_endpoint>,
    pattern: ayre_pattern,
    into: Buffer,
    room: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.receive(&pattern, into.span(room)?.into(), context))
}

/// Posts a receive into `count` pieces of memory, one behind the other, at most
/// `AYRE_ENDPOINT_IOV`. The rest is as for `ayre_endpoint_receive`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_receivev(
    endpoint: Out<ayre_endpoint>,
    pattern: ayre_pattern,
    into: In<iovec>,
    count: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.receive(&pattern, into.spans(count)?, context))
}

/// Cancels the oldest receive with this context that has no message yet: it ends with
/// `AYRE_CANCELLED`. Returns 1 if there was one, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_cancel(endpoint: Out<ayre_endpoint>, context: User) -> c_int {
    flag(|| Ok(endpoint.held()?.raw.cancel(context.number())))
}

/// Looks for the oldest message that matches and that no receive has taken, and leaves it there.
/// Returns 1 if there is one, else 0. Makes progress. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_probe(
    endpoint: Out<ayre_endpoint>,
    pattern: ayre_pattern,
    message: Out<ayre_received>,
) -> c_int {
    flag(|| {
        let mut held = endpoint.held()?;
        held.progress();
        let found = held.raw.find(pattern.source()?, Some(pattern.tag()));
        found.into_iter().for_each(|found| message.fill(found.message));
        Ok(found.is_some())
    })
}

/// Makes progress, and takes the completions of operations that have ended, at most `room`, the
/// oldest first. Returns how many. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_poll(
    endpoint: Out<ayre_endpoint>,
    completions: Out<ayre_completion>,
    room: usize,
) -> i64 {
    number(|| {
        let mut held = endpoint.held()?;
        held.progress();
        held.take(completions, room).map(|taken| taken as i64)
    })
}

/// Takes completions as `ayre_endpoint_poll` does. Waits for the first one for `timeout_us`
/// microseconds; for ever if that is negative. Returns 0 when that time is over. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_wait(
    endpoint: Out<ayre_endpoint>,
    completions: Out<ayre_completion>,
    room: usize,
    timeout_us: i64,
) -> i64 {
    number(|| {
        if room == 0 {
            return Err(Failure::Argument("a wait has room for a completion"));
        }
        let mut held = endpoint.held()?;
        let until = timeout(timeout_us).and_then(|time| Instant::now().checked_add(time));
        held.progress();
        while held.ended.is_empty() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let Opened { raw, ended, .. } = &mut *held;
            raw.wait(left, |end| Opened::tell(ended, end));
        }
        held.take(completions, room).map(|taken| taken as i64)
    })
}

/// The endpoint's descriptor for event loops, as `ayre_port_fd` is a port's. It belongs to the
/// endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_fd(endpoint: Out<ayre_endpoint>) -> c_int {
    count(|| Ok(endpoint.held()?.raw.as_fd().as_raw_fd() as usize))
}

/// Prepares for the program's sleep at the endpoint's descriptor. Returns 1 if the program may
/// sleep, until `ayre_endpoint_wake`; 0 if it has to poll first.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_rest(endpoint: Out<ayre_endpoint>) -> c_int {
    flag(|| {
        let mut held = endpoint.held()?;
        let Opened { raw, ended, .. } = &mut *held;
        // A rest may follow a rest.
        raw.wake();
        Ok(ended.is_empty() && raw.rest(|end| Opened::tell(ended, end)))
    })
}

/// Ends a rest of the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_wake(endpoint: Out<ayre_endpoint>) -> c_int {
    status(|| {
        endpoint.held()?.raw.wake();
        Ok(())
    })
}

/// Exposes memory of the program to the endpoint's remotes, under a key of the program's choice.
/// `rights` are `AYRE_READ` and `AYRE_WRITE`, or-ed. The memory has to stay until
/// `ayre_endpoint_withdraw`, or until the endpoint is closed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_expose(
    endpoint: Out<ayre_endpoint>,
    key: u64,
    base: Buffer,
    len: usize,
    rights: u32,
) -> c_int {
    status(|| {
        let memory: Vec<Span> = vec![base.span(len)?];
        let (read, write) = (Rights::READ.bits(), Rights::WRITE.bits());
        let rights = u8::try_from(rights).ok().filter(|bits| bits & !(read | write) == 0);
        let rights = rights.map(Rights::from_bits_truncate);
        let rights = rights.ok_or(Failure::Argument("the rights are AYRE_READ and AYRE_WRITE"))?;
        let region = MemoryRegion { key, base: 0, memory, rights };
        endpoint.held()?.regions.expose(region).map_err(|why| {
            Failure::Argument(match why {
                ExposeError::KeyTaken => "the key is in use",
                ExposeError::TooMany => "the endpoint exposes as much as it can: withdraw some",
                ExposeError::TooManySpans | ExposeError::TooLong => "no memory is that long",
            })
        })
    })
}

/// Withdraws the memory of a key: no remote touches it any more when the call returns. Returns 1 if
/// there was one, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_withdraw(endpoint: Out<ayre_endpoint>, key: u64) -> c_int {
    flag(|| Ok(endpoint.held()?.regions.withdraw(key)))
}

/// Writes to memory of another endpoint. Does not block: a completion of kind `AYRE_WRITTEN` says
/// that it is done there, or refused. Operations on one endpoint, messages included, are done in
/// the order of posting.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_write(
    endpoint: Out<ayre_endpoint>,
    to: ayre_remote_address,
    from: Bytes,
    len: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.write(&to, from.span(len)?.into(), context))
}

/// Writes `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`. The rest is
/// as for `ayre_endpoint_write`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_writev(
    endpoint: Out<ayre_endpoint>,
    to: ayre_remote_address,
    from: In<iovec>,
    count: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.write(&to, from.spans_read(count)?, context))
}

/// Reads `len` bytes of another endpoint's memory. Does not block: they are in the buffer with the
/// completion of kind `AYRE_READ_DONE`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_read(
    endpoint: Out<ayre_endpoint>,
    from: ayre_remote_address,
    into: Buffer,
    len: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.read(&from, into.span(len)?.into(), context))
}

/// Reads into `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`. The rest
/// is as for `ayre_endpoint_read`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_readv(
    endpoint: Out<ayre_endpoint>,
    from: ayre_remote_address,
    into: In<iovec>,
    count: usize,
    context: User,
) -> c_int {
    status(|| endpoint.held()?.read(&from, into.spans(count)?, context))
}

/// The type of a number in an endpoint's memory, beside `AYRE_I8` to `AYRE_F64`: complex, of two
/// `float`, the real part first.
pub const AYRE_C32: u32 = 11;
/// Complex, of two `double`.
pub const AYRE_C64: u32 = 12;

/// The effect of an atomic on a number in an endpoint's memory, beside `AYRE_COMBINE_MIN` to
/// `AYRE_COMBINE_BXOR`: none. It has no operand.
pub const AYRE_COMBINE_READ: u32 = 11;
/// The number becomes the operand.
pub const AYRE_COMBINE_WRITE: u32 = 12;
/// It becomes the operand if the comparand is equal to it.
pub const AYRE_COMBINE_CSWAP: u32 = 13;
/// If the comparand is not equal to it.
pub const AYRE_COMBINE_CSWAP_NE: u32 = 14;
/// If the comparand is less, or equal.
pub const AYRE_COMBINE_CSWAP_LE: u32 = 15;
/// If the comparand is less.
pub const AYRE_COMBINE_CSWAP_LT: u32 = 16;
/// If the comparand is greater, or equal.
pub const AYRE_COMBINE_CSWAP_GE: u32 = 17;
/// If the comparand is greater.
pub const AYRE_COMBINE_CSWAP_GT: u32 = 18;
/// Its bits become those of the operand where the comparand's are 1.
pub const AYRE_COMBINE_MSWAP: u32 = 19;

const _: () = {
    let first = Combine::CompareSwap(Comparison::Eq).code() as u32;
    let last = Combine::CompareSwap(Comparison::Gt).code() as u32;
    assert!(first == AYRE_COMBINE_CSWAP && last == AYRE_COMBINE_CSWAP_GT);
    assert!(Combine::MaskedSwap.code() as u32 == AYRE_COMBINE_MSWAP);
    assert!(Number::C64.code() as u32 == AYRE_C64);
};

/// An atomic on numbers in an endpoint's memory. They need not be aligned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_endpoint_atomic {
    /// Its effect: `AYRE_COMBINE_MIN` to `AYRE_COMBINE_MSWAP`. Not every type has each.
    pub combine: u32,
    /// The type of the numbers: `AYRE_I8` to `AYRE_C64`.
    pub number: u32,
    /// How many numbers. Operands and comparands have at most 1024 bytes together.
    pub count: usize,
    /// An operand for each, but for `AYRE_COMBINE_READ`.
    pub operands: Bytes,
    /// A comparand for each, of `AYRE_COMBINE_CSWAP` to `AYRE_COMBINE_MSWAP`.
    pub comparands: Bytes,
    /// Room for the numbers that were there before; NULL if they are not wanted.
    pub before: Buffer,
}

impl ayre_endpoint_atomic {
    fn update(&self, context: User) -> Outcome<RmaUpdate> {
        let code = |code: u32| u8::try_from(code).ok();
        let op = code(self.combine).and_then(Combine::from_code);
        let op = op.ok_or(Failure::Argument("no such atomic: see AYRE_COMBINE_MIN"))?;
        let number = code(self.number).and_then(Number::from_code);
        let number = number.ok_or(Failure::Argument("no such type of number: see AYRE_I8"))?;
        let len = self.count.saturating_mul(number.size());
        let spans =
            |is_used, from: Bytes| from.span(if is_used { len } else { 0 }).map(Spans::from);
        let before = if self.before.is_null() { None } else { Some(self.before.span(len)?.into()) };
        Ok(RmaUpdate {
            op,
            number,
            operand: spans(op.has_operand(), self.operands)?,
            compare: spans(op.has_comparand(), self.comparands)?,
            result: before,
            data: None,
            context: context.number().into(),
        })
    }
}

/// Performs an atomic on memory of another endpoint: nothing that reaches the memory by an endpoint
/// comes in between. Does not block: a completion of kind `AYRE_UPDATED` says that it is done, or
/// refused. Operands and comparands may be used again when the call returns.
///
/// It needs the right `AYRE_WRITE`, and `AYRE_READ` where it brings the numbers before.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_endpoint_update(
    endpoint: Out<ayre_endpoint>,
    at: ayre_remote_address,
    what: In<ayre_endpoint_atomic>,
    context: User,
) -> c_int {
    status(|| {
        let mut held = endpoint.held()?;
        Ok(held.raw.update(at.address()?, &what.given()?.update(context)?)?)
    })
}
