//! Active messages.

use super::param::{Direction, Parameters, StatusPtr, answer, answer_data, pointer_of};
use crate::abi::numbers::*;
use crate::abi::request::{AmFn, AmHandlerParam, EndFn, RequestParam};
use crate::abi::status::Status;
use crate::sys::handle;
use crate::sys::handler::Handler;
use crate::sys::packing::Packing;
use crate::sys::request::Told;
use crate::worker::{Data, Ep, HEADER_MAX, Kept, Note, Posted, WHOLE_MAX, Worker};
use ayre::endpoint::raw::{RawEndpoint, Span, Spans};
use ayre_guest::copy;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

/// Header and data of a message that are put into one piece before they are sent.
const JOINED_MAX: usize = 512;

/// A message to be sent: its endpoint, header, and how.
struct Outgoing<'a> {
    ep: &'a Ep,
    header: &'a [u8],
    note: Note,
    param: Parameters,
}

impl Outgoing<'_> {
    /// # Safety
    /// The memory is the program's for that until the operation has ended.
    unsafe fn send(&self, (buffer, count): (*mut c_void, usize)) -> Posted {
        let Self { header, param, .. } = self;
        if header.len() > HEADER_MAX {
            return Posted::Failed(Status::INVALID_PARAM);
        }
        let Some(size) = param.element() else {
            // SAFETY: the caller's promise.
            return match unsafe { param.packed((buffer, count), Direction::Out) } {
                Ok(data) => {
                    let is_offered = self.is_offered(data.len());
                    self.post((data.behind(header), None, is_offered))
                }
                Err(status) => Posted::Failed(status),
            };
        };
        let Some(len) = size.checked_mul(count) else {
            return Posted::Failed(Status::INVALID_PARAM);
        };
        // SAFETY: the caller's promise.
        let data = unsafe { Span::read_only(buffer.cast(), len) };
        let is_offered = self.is_offered(len);
        let is_short = header.len().saturating_add(len) <= RawEndpoint::inject_max();
        if is_short
            && !is_offered
            && !param.wish.never_at_once
            // SAFETY: the caller's promise.
            && let Some(posted) = unsafe { self.send_at_once((buffer, len), data) }
        {
            return posted;
        }
        self.post((Packing::of_header(header), Some(data), is_offered))
    }

    /// # Safety
    /// As [`Self::send`].
    #[inline]
    unsafe fn send_at_once(
        &self,
        (buffer, len): (*mut c_void, usize),
        data: Span,
    ) -> Option<Posted> {
        let Self { ep, header, note, .. } = *self;
        // SAFETY: the caller's promise; the endpoint's worker lives longer.
        let worker = unsafe { handle::at(ep.worker.0) };
        if header.is_empty() {
            return worker.send_active_at_once(ep.remote, note, data.into());
        }
        // SAFETY: memory that stays until the call returns, and the engine keeps none of it.
        unsafe {
            if header.len() + len <= JOINED_MAX {
                let mut joined = [0; JOINED_MAX];
                joined[..header.len()].copy_from_slice(header);
                joined[header.len()..][..len].copy_from_slice(copy::bytes(buffer, len));
                let joined = Span::read_only(joined.as_ptr(), header.len() + len);
                return worker.send_active_at_once(ep.remote, note, joined.into());
            }
            let both = Spans::new([Span::read_only(header.as_ptr(), header.len()), data])?;
            worker.send_active_at_once(ep.remote, note, both)
        }
    }

    /// Whether the data stay here until the receiver wants them.
    fn is_offered(&self, len: usize) -> bool {
        let flags = self.param.flags;
        let is_whole = flags & UCP_AM_SEND_FLAG_EAGER != 0;
        flags & UCP_AM_SEND_FLAG_RNDV != 0 || !is_whole && self.header.len() + len > WHOLE_MAX
    }

    fn post(&self, parts: (Packing, Option<Span>, bool)) -> Posted {
        // SAFETY: the endpoint's worker lives longer.
        let worker = unsafe { handle::at(self.ep.worker.0) };
        worker.send_active(self.ep.remote, self.note, parts, &self.param.wish)
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_am_send_nbx(
    ep: *const Ep,
    id: c_uint,
    header: *const c_void,
    header_length: usize,
    buffer: *const c_void,
    count: usize,
    param: *const RequestParam,
) -> StatusPtr {
    let Ok(id) = u16::try_from(id) else { return pointer_of(Status::INVALID_PARAM) };
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfSend);
        let replies = param.flags & UCP_AM_SEND_FLAG_REPLY != 0;
        let (ep, header) = (handle::at(ep), copy::bytes(header, header_length));
        let note = Note { id, header: header.len() as u32, replies };
        answer(Outgoing { ep, header, note, param }.send((buffer.cast_mut(), count)))
    }
}

/// The receiver gets all bytes at once.
///
/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_am_send_nb(
    ep: *const Ep,
    id: u16,
    buffer: *const c_void,
    count: usize,
    datatype: u64,
    end: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
    flags: c_uint,
) -> StatusPtr {
    let mut param = Parameters::of_callback(datatype, Told::OfSend(EndFn { send: end }), false);
    param.flags = flags & UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
    let note = Note { id, header: 0, replies: flags & UCP_AM_SEND_FLAG_REPLY != 0 };
    // SAFETY: the caller's promise.
    unsafe {
        let message = Outgoing { ep: handle::at(ep), header: &[], note, param };
        answer(message.send((buffer.cast_mut(), count)))
    }
}

/// # Safety
/// A handle of a worker; a function that takes such messages as long as it is registered.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_set_am_handler(
    worker: *const Worker,
    id: u16,
    function: AmFn,
    arg: *mut c_void,
    flags: u32,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let handler = function.is_some().then(|| Handler::old(function, arg, flags));
        handle::at(worker).set_handler(id, handler);
    }
    Status::OK
}

/// # Safety
/// As [`ucp_worker_set_am_handler`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_set_am_recv_handler(
    worker: *const Worker,
    param: *const AmHandlerParam,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let mask = (&raw const (*param).field_mask).read();
        let has = |bit| mask & bit != 0;
        if !has(UCP_AM_HANDLER_PARAM_FIELD_ID) || !has(UCP_AM_HANDLER_PARAM_FIELD_CB) {
            return Status::INVALID_PARAM;
        }
        let Ok(id) = u16::try_from((*param).id) else { return Status::INVALID_PARAM };
        let arg = if has(UCP_AM_HANDLER_PARAM_FIELD_ARG) { (*param).arg } else { null_mut() };
        let flags = if has(UCP_AM_HANDLER_PARAM_FIELD_FLAGS) { (*param).flags } else { 0 };
        let function = (*param).cb;
        let handler = function.is_some().then(|| Handler::new(function, arg, flags));
        handle::at(worker).set_handler(id, handler);
    }
    Status::OK
}

/// # Safety
/// A handle of a worker; data that one of its handlers has got, and has kept or gets now; memory
/// for them.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_am_recv_data_nbx(
    worker: *const Worker,
    data: *mut c_void,
    buffer: *mut c_void,
    count: usize,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let (worker, param) = (handle::at(worker), Parameters::of(param, Told::OfData));
        let into = (buffer, count);
        let posted = match worker.take_data(data) {
            Some(Kept::Whole(bytes, at)) => place(worker, &bytes[at..], into, &param),
            Some(Kept::Offered(data)) => match *data {
                Data::Here(bytes) => place(worker, &bytes, into, &param),
                Data::Elsewhere(found) => match param.memory(into, Direction::In) {
                    Ok(into) => worker.receive_data(&found, into, &param.wish),
                    Err(status) => {
                        worker.drop_offer(&found);
                        Posted::Failed(status)
                    }
                },
            },
            None => Posted::Failed(Status::INVALID_PARAM),
        };
        answer_data(posted, param.info.cast())
    }
}

/// Data that are here go into the program's memory.
///
/// # Safety
/// As [`ucp_am_recv_data_nbx`].
unsafe fn place(
    worker: &Worker,
    bytes: &[u8],
    (buffer, count): (*mut c_void, usize),
    param: &Parameters,
) -> Posted {
    // SAFETY: the caller's promise.
    let placed = unsafe {
        match param.element() {
            Some(size) => Ok(copy::fill(buffer, size.saturating_mul(count), bytes)),
            None => param.packed((buffer, count), Direction::In).and_then(|mut packing| {
                let placed = packing.fill(bytes);
                match packing.unpack(placed) {
                    Status::OK => Ok(placed),
                    status => Err(status),
                }
            }),
        }
    };
    let status = match placed {
        Ok(placed) if placed == bytes.len() => Status::OK,
        Ok(_) => Status::MESSAGE_TRUNCATED,
        Err(status) => status,
    };
    worker.received(status, bytes.len(), &param.wish)
}

/// # Safety
/// A handle of a worker; data that one of its handlers has kept, which are not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_am_data_release(worker: *const Worker, data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { handle::at(worker) }.release(data);
}
