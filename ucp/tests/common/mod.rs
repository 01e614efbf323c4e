//! Two workers of this process, by the functions that programs call.

// Each test needs a part of it.
#![allow(dead_code, clippy::missing_safety_doc)]

use ayre_ucp::abi::context::{ContextAttr, Params, WorkerParams};
use ayre_ucp::abi::endpoint::EpParams;
use ayre_ucp::abi::handles::Ep;
use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::request::{EndFn, GenericDtOps, RecvInfo, RequestParam, TagRecvInfo};
use ayre_ucp::abi::status::Status;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

pub(crate) type Pointer = *mut c_void;
type SendFn = unsafe extern "C" fn(Pointer, Status, Pointer);
pub(crate) type RecvFn = unsafe extern "C" fn(Pointer, Status, *const TagRecvInfo, Pointer);

#[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
// SAFETY: the functions of the library, by their declarations in C.
unsafe extern "C" {
    pub(crate) fn ucp_init_version(
        a: c_uint,
        b: c_uint,
        p: *const Params,
        c: Pointer,
        to: *mut Pointer,
    ) -> Status;
    pub(crate) fn ucp_cleanup(context: Pointer);
    fn ucp_context_query(context: Pointer, attr: *mut ContextAttr) -> Status;
    pub(crate) fn ucp_worker_create(
        context: Pointer,
        p: *const WorkerParams,
        to: *mut Pointer,
    ) -> Status;
    pub(crate) fn ucp_worker_destroy(worker: Pointer);
    pub(crate) fn ucp_worker_progress(worker: Pointer) -> c_uint;
    fn ucp_worker_get_address(worker: Pointer, to: *mut *mut u8, len: *mut usize) -> Status;
    fn ucp_worker_release_address(worker: Pointer, address: *mut u8);
    fn ucp_ep_create(worker: Pointer, p: *const EpParams, to: *mut Pointer) -> Status;
    pub(crate) fn ucp_ep_close_nbx(ep: Pointer, p: *const RequestParam) -> Pointer;
    pub(crate) fn ucp_ep_flush_nbx(ep: Pointer, p: *const RequestParam) -> Pointer;
    fn ucp_tag_send_nbx(
        ep: Pointer,
        b: *const c_void,
        n: usize,
        tag: u64,
        p: *const RequestParam,
    ) -> Pointer;
    fn ucp_tag_send_sync_nbx(
        ep: Pointer,
        b: *const c_void,
        n: usize,
        tag: u64,
        p: *const RequestParam,
    ) -> Pointer;
    pub(crate) fn ucp_tag_send_nb(
        ep: Pointer,
        b: *const c_void,
        n: usize,
        datatype: u64,
        tag: u64,
        end: SendFn,
    ) -> Pointer;
    fn ucp_tag_recv_nbx(
        worker: Pointer,
        b: Pointer,
        n: usize,
        tag: u64,
        mask: u64,
        p: *const RequestParam,
    ) -> Pointer;
    pub(crate) fn ucp_tag_recv_nb();
    fn ucp_tag_probe_nb(
        worker: Pointer,
        tag: u64,
        mask: u64,
        removes: c_int,
        info: *mut TagRecvInfo,
    ) -> Pointer;
    fn ucp_tag_msg_recv_nbx(
        worker: Pointer,
        b: Pointer,
        n: usize,
        message: Pointer,
        p: *const RequestParam,
    ) -> Pointer;
    pub(crate) fn ucp_request_check_status(request: Pointer) -> Status;
    pub(crate) fn ucp_request_test(request: Pointer, info: *mut TagRecvInfo) -> Status;
    pub(crate) fn ucp_request_free(request: Pointer);
    pub(crate) fn ucp_request_release(request: Pointer);
    pub(crate) fn ucp_request_cancel(worker: Pointer, request: Pointer);
    pub(crate) fn ucp_dt_create_generic(
        ops: *const GenericDtOps,
        context: Pointer,
        to: *mut u64,
    ) -> Status;
    pub(crate) fn ucp_dt_destroy(datatype: u64);
    pub(crate) fn ucs_status_string(status: Status) -> *const c_char;
}

/// Features that there are.
const FEATURES: u64 = UCP_FEATURE_TAG
    | UCP_FEATURE_RMA
    | UCP_FEATURE_AMO32
    | UCP_FEATURE_AMO64
    | UCP_FEATURE_AM
    | UCP_FEATURE_WAKEUP;

/// Rounds of progress that something may take.
const ROUNDS: usize = 100_000_000;

/// A structure whose mask says that nothing is set.
pub(crate) fn empty<T: Copy>() -> T {
    // SAFETY: structures of numbers and pointers that may be null.
    unsafe { std::mem::zeroed() }
}

/// The program's choices for the requests of a context.
#[derive(Clone, Copy, Default)]
pub(crate) struct Requests {
    pub(crate) size: usize,
    pub(crate) init: Option<unsafe extern "C" fn(Pointer)>,
    pub(crate) cleanup: Option<unsafe extern "C" fn(Pointer)>,
}

/// Makes a context with these features.
pub(crate) fn init(features: u64, requests: Requests) -> Result<Pointer, Status> {
    let mut params: Params = empty();
    params.field_mask = UCP_PARAM_FIELD_FEATURES
        | UCP_PARAM_FIELD_REQUEST_SIZE
        | UCP_PARAM_FIELD_REQUEST_INIT
        | UCP_PARAM_FIELD_REQUEST_CLEANUP;
    params.features = features;
    (params.request_size, params.request_init) = (requests.size, requests.init);
    params.request_cleanup = requests.cleanup;
    let mut context = null_mut();
    // SAFETY: the structure is as its mask says.
    match unsafe { ucp_init_version(1, 13, &raw const params, null_mut(), &raw mut context) } {
        Status::OK => Ok(context),
        status => Err(status),
    }
}

/// Two workers, each of a context of its own, that have an endpoint to each other.
pub(crate) struct World {
    pub(crate) contexts: [Pointer; 2],
    pub(crate) workers: [Pointer; 2],
    /// That of each worker to the other one.
    pub(crate) eps: [Pointer; 2],
}

// SAFETY: workers of the mode *multi* may be used by any thread.
unsafe impl Sync for World {}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Requests::default(), UCS_THREAD_MODE_SINGLE)
    }

    pub(crate) fn with(requests: Requests, threads: c_uint) -> Self {
        Self::of(FEATURES, requests, threads)
    }

    /// With these features alone.
    pub(crate) fn of(features: u64, requests: Requests, threads: c_uint) -> Self {
        let contexts = [(); 2].map(|()| init(features, requests).expect("there are these"));
        let workers = contexts.map(|context| {
            let (mut params, mut worker): (WorkerParams, _) = (empty(), null_mut());
            params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
            params.thread_mode = threads;
            // SAFETY: the structure is as its mask says.
            let status = unsafe { ucp_worker_create(context, &raw const params, &raw mut worker) };
            assert_eq!(status, Status::OK);
            worker
        });
        let [a, b] = workers;
        let eps = [connect(a, &address_of(b)).unwrap(), connect(b, &address_of(a)).unwrap()];
        let this = Self { contexts, workers, eps };
        // The first message waits for the connection.
        for from in [0, 1] {
            let mut into = [0];
            let received = this.receive(1 - from, &mut into, (0, 0), &How::new());
            assert_eq!(this.end(this.send(from, &[7], 0, &How::new())).0, Status::OK);
            assert_eq!((this.end(received).0, into), (Status::OK, [7]));
        }
        this
    }

    pub(crate) fn head_bytes(&self) -> usize {
        let mut attr: ContextAttr = empty();
        attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
        // SAFETY: the structure is as its mask says.
        assert_eq!(unsafe { ucp_context_query(self.contexts[0], &raw mut attr) }, Status::OK);
        attr.request_size
    }

    /// Makes progress at both sides until it is so.
    pub(crate) fn until(&self, mut is_so: impl FnMut() -> bool) {
        let comes = (0..ROUNDS).any(|_| {
            self.progress();
            is_so()
        });
        assert!(comes, "it does not come about");
    }

    pub(crate) fn progress(&self) {
        for worker in self.workers {
            // SAFETY: it is there.
            unsafe { ucp_worker_progress(worker) };
        }
    }

    /// Sends from one side to the other.
    pub(crate) fn send(&self, from: usize, bytes: &[u8], tag: u64, how: &How) -> Begun {
        let (at, len) = how.memory_or((bytes.as_ptr().cast_mut().cast(), bytes.len()));
        let send = if how.is_synchronous { ucp_tag_send_sync_nbx } else { ucp_tag_send_nbx };
        // SAFETY: memory that stays until the end.
        Begun::of(unsafe { send(self.eps[from], at, len, tag, &raw const how.param) })
    }

    /// Sends by an endpoint that is not of these workers' own.
    pub(crate) fn send_by(&self, ep: Pointer, bytes: &[u8], tag: u64) -> Begun {
        let (start, param) = (bytes.as_ptr().cast(), How::new().param);
        // SAFETY: memory that stays until the end.
        Begun::of(unsafe { ucp_tag_send_nbx(ep, start, bytes.len(), tag, &raw const param) })
    }

    /// Whether an operation has ended well; its request is given back then.
    pub(crate) fn has_ended(&self, begun: Begun) -> bool {
        let Begun::Request(request) = begun else { return begun == Begun::Done };
        // SAFETY: the request was not given back.
        unsafe {
            let status = ucp_request_check_status(request);
            if status == Status::OK {
                ucp_request_free(request);
            }
            status == Status::OK
        }
    }

    pub(crate) fn receive(&self, at: usize, into: &mut [u8], tag: (u64, u64), how: &How) -> Begun {
        let (to, len) = how.memory_or((into.as_mut_ptr().cast(), into.len()));
        let worker = self.workers[at];
        // SAFETY: memory that stays until the end.
        Begun::of(unsafe { ucp_tag_recv_nbx(worker, to, len, tag.0, tag.1, &raw const how.param) })
    }

    /// Looks for a message, as soon as one may have come.
    pub(crate) fn probe(
        &self,
        at: usize,
        tag: (u64, u64),
        removes: bool,
    ) -> Option<(Pointer, TagRecvInfo)> {
        let mut info = empty();
        // SAFETY: the worker is there.
        let found = unsafe {
            ucp_tag_probe_nb(self.workers[at], tag.0, tag.1, removes.into(), &raw mut info)
        };
        (!found.is_null()).then_some((found, info))
    }

    pub(crate) fn receive_found(
        &self,
        at: usize,
        into: &mut [u8],
        message: Pointer,
        how: &How,
    ) -> Begun {
        let (worker, to) = (self.workers[at], into.as_mut_ptr().cast());
        // SAFETY: memory that stays until the end, and a message of a probe.
        Begun::of(unsafe {
            ucp_tag_msg_recv_nbx(worker, to, into.len(), message, &raw const how.param)
        })
    }

    /// Waits for the end of an operation, and gives its request back.
    pub(crate) fn end(&self, begun: Begun) -> (Status, TagRecvInfo) {
        let mut info: TagRecvInfo = empty();
        match begun {
            Begun::Done => (Status::OK, info),
            Begun::Failed(status) => (status, info),
            Begun::Request(request) => {
                // SAFETY: the request was not given back.
                self.until(
                    || unsafe { ucp_request_test(request, &raw mut info) } != Status::IN_PROGRESS,
                );
                // SAFETY: as above.
                let status = unsafe { ucp_request_check_status(request) };
                // SAFETY: as above.
                unsafe { ucp_request_free(request) };
                (status, info)
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for ep in self.eps {
            // SAFETY: it is not used again.
            let begun = Begun::of(unsafe { ucp_ep_close_nbx(ep, &How::new().param) });
            if !std::thread::panicking() {
                assert_eq!(self.end(begun).0, Status::OK);
            }
        }
        // SAFETY: nothing of them is used again.
        unsafe {
            self.workers.iter().for_each(|worker| ucp_worker_destroy(*worker));
            self.contexts.iter().for_each(|context| ucp_cleanup(*context));
        }
    }
}

/// The bytes of a worker's address.
pub(crate) fn address_of(worker: Pointer) -> Vec<u8> {
    let (mut at, mut len) = (null_mut(), 0);
    // SAFETY: the worker is there, and the address is released once.
    unsafe {
        assert_eq!(ucp_worker_get_address(worker, &raw mut at, &raw mut len), Status::OK);
        let bytes = std::slice::from_raw_parts(at, len).to_vec();
        ucp_worker_release_address(worker, at);
        bytes
    }
}

/// Hears of the end of an endpoint's peer.
#[derive(Default)]
pub(crate) struct Losses(std::cell::RefCell<Vec<(Pointer, Status)>>);

impl Losses {
    extern "C" fn on_loss(arg: Pointer, ep: *mut Ep, status: Status) {
        // SAFETY: the test's own.
        unsafe { &*arg.cast::<Self>() }.0.borrow_mut().push((ep.cast(), status));
    }

    pub(crate) fn all(&self) -> Vec<(Pointer, Status)> {
        self.0.borrow().clone()
    }

    /// An endpoint whose losses are told here.
    pub(crate) fn connect(&self, worker: Pointer, address: &[u8]) -> Pointer {
        let (mut params, mut ep): (EpParams, _) = (empty(), null_mut());
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
            | UCP_EP_PARAM_FIELD_ERR_HANDLER
            | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.address = address.as_ptr().cast();
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = Some(Self::on_loss);
        params.err_handler.arg = (&raw const *self).cast_mut().cast();
        // SAFETY: the structure is as its mask says.
        let made = unsafe { ucp_ep_create(worker, &raw const params, &raw mut ep) };
        assert_eq!(made, Status::OK);
        ep
    }
}

/// An endpoint to the worker with this address.
pub(crate) fn connect(worker: Pointer, address: &[u8]) -> Result<Pointer, Status> {
    let (mut params, mut ep): (EpParams, _) = (empty(), null_mut());
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address.as_ptr().cast();
    // SAFETY: the structure is as its mask says.
    match unsafe { ucp_ep_create(worker, &raw const params, &raw mut ep) } {
        Status::OK => Ok(ep),
        status => Err(status),
    }
}

/// How an operation is wanted.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) param: RequestParam,
    pub(crate) is_synchronous: bool,
    /// In place of the bytes: for datatypes.
    pub(crate) memory: Option<(Pointer, usize)>,
}

impl How {
    pub(crate) fn new() -> Self {
        Self { param: empty(), is_synchronous: false, memory: None }
    }

    pub(crate) fn synchronous(mut self) -> Self {
        self.is_synchronous = true;
        self
    }

    pub(crate) fn flags(mut self, flags: u32) -> Self {
        self.param.op_attr_mask |= flags;
        self
    }

    pub(crate) fn datatype(mut self, datatype: u64, memory: (Pointer, usize)) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        (self.param.datatype, self.memory) = (datatype, Some(memory));
        self
    }

    /// Elements of that many bytes, where the memory is given in these.
    pub(crate) fn elements(mut self, size: usize) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        self.param.datatype = (size as u64) << UCP_DATATYPE_SHIFT;
        self
    }

    /// Where an atomic finds its second operand, and what was there before goes.
    pub(crate) fn reply(mut self, place: &mut [u8; 8]) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        self.param.reply_buffer = place.as_mut_ptr().cast();
        self
    }

    pub(crate) fn memory_or(&self, usual: (Pointer, usize)) -> (Pointer, usize) {
        self.memory.unwrap_or(usual)
    }

    pub(crate) fn request(mut self, request: Pointer) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
        self.param.request = request;
        self
    }

    /// Tag and length of a receive that ends in its call go there.
    pub(crate) fn info(mut self, info: &mut TagRecvInfo) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_RECV_INFO;
        self.param.recv_info = RecvInfo { tag_info: info };
        self
    }

    /// The end of a receive is told there.
    pub(crate) fn told_of_receive(mut self, told: &Told) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        self.param.cb = EndFn { recv: Some(Told::of_receive) };
        self.param.user_data = (&raw const *told).cast_mut().cast();
        self
    }

    /// The end of a send is told there.
    pub(crate) fn told_of_send(mut self, told: &Told) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        self.param.cb = EndFn { send: Some(Told::of_send) };
        self.param.user_data = (&raw const *told).cast_mut().cast();
        self
    }
}

/// Ends that a function of the program's was told.
#[derive(Default)]
pub(crate) struct Told(std::cell::RefCell<Vec<(Status, u64, usize)>>);

impl Told {
    extern "C" fn of_receive(_: Pointer, status: Status, info: *const TagRecvInfo, user: Pointer) {
        // SAFETY: the test's own, and what UCP hands over.
        let (told, info) = unsafe { (&*user.cast::<Self>(), &*info) };
        told.0.borrow_mut().push((status, info.sender_tag, info.length));
    }

    extern "C" fn of_send(_: Pointer, status: Status, user: Pointer) {
        // SAFETY: the test's own.
        unsafe { &*user.cast::<Self>() }.0.borrow_mut().push((status, 0, 0));
    }

    pub(crate) extern "C" fn of_data(_: Pointer, status: Status, length: usize, user: Pointer) {
        // SAFETY: the test's own.
        unsafe { &*user.cast::<Self>() }.0.borrow_mut().push((status, 0, length));
    }

    pub(crate) fn all(&self) -> Vec<(Status, u64, usize)> {
        self.0.borrow().clone()
    }
}

/// How an operation stands behind its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Done,
    Failed(Status),
    Request(Pointer),
}

impl Begun {
    pub(crate) fn of(returned: Pointer) -> Self {
        match returned.addr() as isize {
            0 => Self::Done,
            status @ -99..0 => Self::Failed(Status(status as i8)),
            _ => Self::Request(returned),
        }
    }

    pub(crate) fn request(self) -> Pointer {
        match self {
            Self::Request(request) => request,
            other => panic!("a request, not {other:?}"),
        }
    }
}
