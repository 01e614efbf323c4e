//! Active messages, by the functions that programs call: what UCX's programs rely on.

#![allow(clippy::missing_safety_doc)]

mod common;

use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::request::{AmHandlerParam, AmRecvParam, DtIov, EndFn, RecvInfo, RequestParam};
use ayre_ucp::abi::status::Status;
use common::*;
use std::cell::RefCell;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::slice;

type OldFn = unsafe extern "C" fn(Pointer, Pointer, usize, Pointer, c_uint) -> Status;
type SendNbx = unsafe extern "C" fn(
    Pointer,
    c_uint,
    *const c_void,
    usize,
    *const c_void,
    usize,
    *const RequestParam,
) -> Pointer;
type SendNb = unsafe extern "C" fn(
    Pointer,
    u16,
    *const c_void,
    usize,
    u64,
    Option<unsafe extern "C" fn(Pointer, Status, Pointer)>,
    c_uint,
) -> Pointer;

#[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
// SAFETY: the functions of the library, by their declarations in C.
unsafe extern "C" {
    fn ucp_am_send_nbx();
    fn ucp_am_send_nb();
    fn ucp_am_recv_data_nbx(
        worker: Pointer,
        data: Pointer,
        b: Pointer,
        n: usize,
        p: *const RequestParam,
    ) -> Pointer;
    fn ucp_am_data_release(worker: Pointer, data: Pointer);
    fn ucp_worker_set_am_recv_handler(worker: Pointer, p: *const AmHandlerParam) -> Status;
    fn ucp_worker_set_am_handler(
        worker: Pointer,
        id: u16,
        f: Option<OldFn>,
        arg: Pointer,
        flags: u32,
    ) -> Status;
}

const ID: u16 = 0xFFFF;

/// A message as the handler has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    header: Vec<u8>,
    /// None of data that were offered.
    data: Option<Vec<u8>>,
    len: usize,
    attr: u64,
    reply: Pointer,
    pointer: Pointer,
}

/// Notes what comes.
struct Handler {
    seen: RefCell<Vec<Seen>>,
    answer: Status,
}

impl Handler {
    fn new(answer: Status) -> Self {
        Self { seen: RefCell::default(), answer }
    }

    /// # Safety
    /// As UCP calls it, with a handler or receiver.
    unsafe extern "C" fn on_message(
        arg: Pointer,
        header: *const c_void,
        header_length: usize,
        data: Pointer,
        len: usize,
        param: *const AmRecvParam,
    ) -> Status {
        // SAFETY: the test's own, and what UCP hands over.
        unsafe {
            let (handler, attr) = (&*arg.cast::<Self>(), (*param).recv_attr);
            let bytes = |start: *const c_void, len| match len {
                0 => Vec::new(),
                _ => slice::from_raw_parts(start.cast::<u8>(), len).to_vec(),
            };
            let is_offered = attr & UCP_AM_RECV_ATTR_FLAG_RNDV != 0;
            handler.seen.borrow_mut().push(Seen {
                header: bytes(header, header_length),
                data: (!is_offered).then(|| bytes(data, len)),
                len,
                attr,
                reply: (*param).reply_ep.cast(),
                pointer: data,
            });
            handler.answer
        }
    }

    /// # Safety
    /// As UCP calls it, with a handler or receiver.
    unsafe extern "C" fn on_old_message(
        arg: Pointer,
        data: Pointer,
        len: usize,
        reply: Pointer,
        flags: c_uint,
    ) -> Status {
        let recv_attr = u64::from(flags) << 32;
        let param = AmRecvParam { recv_attr, reply_ep: reply.cast() };
        // SAFETY: as above.
        unsafe { Self::on_message(arg, null_mut(), 0, data, len, &raw const param) }
    }

    fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Waits for a message.
    fn next(&self, world: &World) -> Seen {
        world.until(|| self.count() > 0);
        self.seen.borrow_mut().remove(0)
    }
}

fn register(world: &World, handler: &Handler, flags: u32) {
    let mut param: AmHandlerParam = empty();
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID
        | UCP_AM_HANDLER_PARAM_FIELD_CB
        | UCP_AM_HANDLER_PARAM_FIELD_ARG
        | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    (param.id, param.flags) = (ID.into(), flags);
    param.cb = Some(Handler::on_message);
    param.arg = (&raw const *handler).cast_mut().cast();
    // SAFETY: the handler outlives the messages.
    let set = unsafe { ucp_worker_set_am_recv_handler(world.workers[1], &raw const param) };
    assert_eq!(set, Status::OK);
}

fn send(world: &World, header: &[u8], data: &[u8], flags: u32, how: &How) -> Begun {
    let mut param = how.param;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    let (at, count) = how.memory_or((data.as_ptr().cast_mut().cast(), data.len()));
    // SAFETY: its declaration in C, and memory that stays until the end.
    Begun::of(unsafe {
        let call: SendNbx = std::mem::transmute(ucp_am_send_nbx as unsafe extern "C" fn());
        let (ep, start) = (world.eps[0], header.as_ptr().cast());
        call(ep, ID.into(), start, header.len(), at, count, &raw const param)
    })
}

fn receive(world: &World, data: Pointer, into: &mut [u8], how: &How) -> Begun {
    let (start, len) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: memory that stays until the end.
    Begun::of(unsafe {
        ucp_am_recv_data_nbx(world.workers[1], data, start, len, &raw const how.param)
    })
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(29).wrapping_add(seed)).collect()
}

#[test]
fn messages_of_all_lengths_come_whole_where_the_sender_wants_that() {
    let (world, handler) = (World::new(), Handler::new(Status::OK));
    register(&world, &handler, UCP_AM_FLAG_WHOLE_MSG);
    for header in [0, 1, 100, 4096] {
        for len in [0, 1, 8, 412, 512, 513, 4096, 5000, 70_000, 1 << 20] {
            let (header, data) = (pattern(header, 3), pattern(len, 7));
            let sent = send(&world, &header, &data, UCP_AM_SEND_FLAG_EAGER, &How::new());
            let seen = handler.next(&world);
            assert_eq!(world.end(sent).0, Status::OK);
            assert_eq!((seen.header == header, seen.len), (true, len), "{} {len}", header.len());
            assert_eq!(seen.data, Some(data), "{} {len}", header.len());
            assert_eq!((seen.attr, seen.reply), (0, null_mut()));
        }
    }
    let long = send(&world, &[0; 4097], &[], 0, &How::new());
    assert_eq!(long, Begun::Failed(Status::INVALID_PARAM));
}

/// Without flags, a long message is offered; with one, a short one is, too.
#[test]
fn offered_data_are_received_or_dropped() {
    let world = World::new();
    for (len, flags) in [
        (1 << 20, 0),
        (1 << 20, UCP_AM_SEND_FLAG_RNDV),
        (20_000, 0),
        (8, UCP_AM_SEND_FLAG_RNDV),
        (0, UCP_AM_SEND_FLAG_RNDV),
    ] {
        for receives in [true, false] {
            let answer = if receives { Status::IN_PROGRESS } else { Status::OK };
            let handler = Handler::new(answer);
            register(&world, &handler, 0);
            let (data, mut into) = (pattern(len, 1), vec![0; len]);
            let sent = send(&world, b"header", &data, flags, &How::new());
            let seen = handler.next(&world);
            assert_eq!((&*seen.header, seen.len, &seen.data), (&b"header"[..], len, &None));
            assert_eq!(seen.attr, UCP_AM_RECV_ATTR_FLAG_RNDV);
            if receives {
                let told = Told::default();
                let received =
                    receive(&world, seen.pointer, &mut into, &How::new().told_of_data(&told));
                assert_eq!((world.end(received).0, into == data), (Status::OK, true), "{len}");
                assert!(told.all().len() <= 1);
            }
            assert_eq!(world.end(sent).0, Status::OK, "{len} {receives}");
            let again = receive(&world, seen.pointer, &mut into, &How::new());
            assert_eq!(again, Begun::Failed(Status::INVALID_PARAM), "it is gone");
        }
    }
}

/// Received in the handler, as UCXX does it.
#[test]
fn a_handler_receives_data_itself() {
    struct Receiver {
        worker: Pointer,
        into: RefCell<Vec<u8>>,
        begun: RefCell<Option<Begun>>,
    }
    /// # Safety
    /// As UCP calls it, with a handler or receiver.
    unsafe extern "C" fn on_message(
        arg: Pointer,
        _header: *const c_void,
        _header_length: usize,
        data: Pointer,
        len: usize,
        _param: *const AmRecvParam,
    ) -> Status {
        // SAFETY: the test's own, and what UCP hands over.
        unsafe {
            let receiver = &*arg.cast::<Receiver>();
            let mut into = receiver.into.borrow_mut();
            into.resize(len, 0);
            let (start, param) = (into.as_mut_ptr().cast(), How::new().param);
            let begun = ucp_am_recv_data_nbx(receiver.worker, data, start, len, &raw const param);
            *receiver.begun.borrow_mut() = Some(Begun::of(begun));
        }
        Status::OK
    }
    let world = World::new();
    let (into, begun) = (RefCell::default(), RefCell::default());
    let receiver = Receiver { worker: world.workers[1], into, begun };
    let mut param: AmHandlerParam = empty();
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID
        | UCP_AM_HANDLER_PARAM_FIELD_CB
        | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = ID.into();
    param.cb = Some(on_message);
    param.arg = (&raw const receiver).cast_mut().cast();
    // SAFETY: the receiver outlives the messages.
    let set = unsafe { ucp_worker_set_am_recv_handler(world.workers[1], &raw const param) };
    assert_eq!(set, Status::OK);
    for len in [20_000, 1 << 20] {
        let data = pattern(len, 2);
        let sent = send(&world, &[], &data, UCP_AM_SEND_FLAG_RNDV, &How::new());
        world.until(|| receiver.begun.borrow().is_some());
        let begun = receiver.begun.borrow_mut().take().unwrap();
        assert_eq!((world.end(begun).0, world.end(sent).0), (Status::OK, Status::OK));
        assert_eq!(*receiver.into.borrow(), data);
    }
}

#[test]
fn a_handler_may_keep_data_if_it_has_said_so() {
    let (world, handler) = (World::new(), Handler::new(Status::IN_PROGRESS));
    register(&world, &handler, UCP_AM_FLAG_PERSISTENT_DATA);
    let messages: Vec<_> = (1..=4).map(|i| pattern(i * 100, i as u8)).collect();
    for data in &messages {
        assert_eq!(world.end(send(&world, b"h", data, 0, &How::new())).0, Status::OK);
    }
    world.until(|| handler.count() == messages.len());
    for (seen, data) in handler.seen.borrow().iter().zip(&messages) {
        assert_eq!(seen.attr, UCP_AM_RECV_ATTR_FLAG_DATA);
        // SAFETY: kept until it is released.
        let kept = unsafe { slice::from_raw_parts(seen.pointer.cast::<u8>(), seen.len) };
        assert_eq!(kept, data);
    }
    let seen = handler.seen.borrow().clone();
    let (mut into, mut len) = (vec![0; 200], 0);
    let mut how = How::new();
    how.param.op_attr_mask |= UCP_OP_ATTR_FIELD_RECV_INFO;
    how.param.recv_info = RecvInfo { length: &raw mut len };
    assert_eq!(receive(&world, seen[1].pointer, &mut into, &how), Begun::Done);
    assert_eq!((&into, len), (&messages[1], 200));
    let short = receive(&world, seen[2].pointer, &mut into[..10], &How::new());
    assert_eq!(short, Begun::Failed(Status::MESSAGE_TRUNCATED));
    for seen in &seen {
        // SAFETY: it is not used again; nothing happens to what was received.
        unsafe { ucp_am_data_release(world.workers[1], seen.pointer) };
    }
    let gone = receive(&world, seen[0].pointer, &mut into, &How::new());
    assert_eq!(gone, Begun::Failed(Status::INVALID_PARAM));
}

/// The endpoint for replies is the one that the program has made to the sender.
#[test]
fn a_reply_goes_to_the_sender() {
    let (world, handler) = (World::new(), Handler::new(Status::OK));
    register(&world, &handler, 0);
    let sent = send(&world, &[], b"ping", UCP_AM_SEND_FLAG_REPLY, &How::new());
    let seen = handler.next(&world);
    assert_eq!(world.end(sent).0, Status::OK);
    assert_eq!(seen.attr, UCP_AM_RECV_ATTR_FIELD_REPLY_EP);
    assert_eq!(seen.reply, world.eps[1]);
}

/// A worker that has no endpoint to the sender gets one, and may close it.
#[test]
fn an_endpoint_for_replies_is_made_where_there_is_none() {
    let (world, handler) = (World::new(), Handler::new(Status::OK));
    register(&world, &handler, 0);
    let third = World::new();
    let ep = connect(third.workers[0], &address_of(world.workers[1])).unwrap();
    let mut param = How::new().param;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY;
    // SAFETY: its declaration in C, and memory that stays until the end.
    let sent = Begun::of(unsafe {
        let call: SendNbx = std::mem::transmute(ucp_am_send_nbx as unsafe extern "C" fn());
        call(ep, ID.into(), null_mut(), 0, b"ping".as_ptr().cast(), 4, &raw const param)
    });
    world.until(|| {
        third.progress();
        handler.count() == 1
    });
    assert_eq!(third.end(sent).0, Status::OK);
    let reply = handler.seen.borrow()[0].reply;
    assert!(!reply.is_null() && !world.eps.contains(&reply));
    for _ in 0..2 {
        // SAFETY: as above.
        let sent = Begun::of(unsafe {
            let call: SendNbx = std::mem::transmute(ucp_am_send_nbx as unsafe extern "C" fn());
            call(ep, ID.into(), null_mut(), 0, b"ping".as_ptr().cast(), 4, &raw const param)
        });
        assert_eq!(third.end(sent).0, Status::OK);
    }
    world.until(|| handler.count() == 3);
    assert!(handler.seen.borrow().iter().all(|seen| seen.reply == reply), "it is one");
    // SAFETY: neither is used again.
    let closes = unsafe {
        [ucp_ep_close_nbx(reply, &How::new().param), ucp_ep_close_nbx(ep, &How::new().param)]
    };
    assert_eq!(world.end(Begun::of(closes[0])).0, Status::OK);
    assert_eq!(third.end(Begun::of(closes[1])).0, Status::OK);
}

/// Messages of one sender come in their order, however long they are.
#[test]
fn messages_keep_their_order() {
    let (world, handler) = (World::new(), Handler::new(Status::OK));
    register(&world, &handler, 0);
    let lens = [8, 300_000, 8, 5000, 1 << 20, 0, 70_000, 1];
    let all: Vec<_> = lens.iter().map(|len| pattern(*len, *len as u8)).collect();
    let sent: Vec<_> = all
        .iter()
        .map(|data| send(&world, &[], data, UCP_AM_SEND_FLAG_EAGER, &How::new()))
        .collect();
    for begun in sent {
        assert_eq!(world.end(begun).0, Status::OK);
    }
    world.until(|| handler.count() == lens.len());
    for (seen, data) in handler.seen.borrow().iter().zip(&all) {
        assert!(seen.data.as_ref() == Some(data), "{} {}", seen.len, data.len());
    }
}

/// Older handlers get all bytes at once, whatever the sender has chosen.
#[test]
fn older_functions_work_with_whole_messages() {
    let (world, handler) = (World::new(), Handler::new(Status::OK));
    let arg = (&raw const handler).cast_mut().cast();
    let flags = UCP_AM_FLAG_PERSISTENT_DATA;
    // SAFETY: the handler outlives the messages.
    let set = unsafe {
        let worker = world.workers[1];
        ucp_worker_set_am_handler(worker, ID, Some(Handler::on_old_message), arg, flags)
    };
    assert_eq!(set, Status::OK);
    for len in [0, 8, 20_000, 1 << 20] {
        let (data, byte) = (pattern(len, 4), 1 << UCP_DATATYPE_SHIFT);
        // SAFETY: its declaration in C, and memory that stays until the end.
        let sent = Begun::of(unsafe {
            let call: SendNb = std::mem::transmute(ucp_am_send_nb as unsafe extern "C" fn());
            call(world.eps[0], ID, data.as_ptr().cast(), len, byte, None, 0)
        });
        let seen = handler.next(&world);
        assert_eq!((world.end(sent).0, seen.data.as_ref() == Some(&data)), (Status::OK, true));
        let sent = send(&world, &[], &data, UCP_AM_SEND_FLAG_RNDV, &How::new());
        let seen = handler.next(&world);
        assert_eq!(world.end(sent).0, Status::OK);
        assert!(seen.data == Some(data), "{len}");
        // They know no headers.
        let sent = send(&world, b"head", &[], 0, &How::new());
        assert_eq!(world.end(sent).0, Status::OK);
    }
    (0..1000).for_each(|_| world.progress());
    assert_eq!(handler.count(), 0);
}

#[test]
fn data_in_pieces_are_sent_and_received() {
    let (world, handler) = (World::new(), Handler::new(Status::IN_PROGRESS));
    register(&world, &handler, 0);
    for flags in [UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV] {
        let (a, b) = (pattern(100, 1), pattern(30_000, 2));
        let piece =
            |bytes: &[u8]| DtIov { buffer: bytes.as_ptr().cast_mut().cast(), length: bytes.len() };
        let mut pieces = [piece(&a), piece(&b)];
        let how = How::new().datatype(UCP_DATATYPE_IOV, (pieces.as_mut_ptr().cast(), 2));
        let sent = send(&world, b"h", &[], flags, &how);
        let seen = handler.next(&world);
        let all = [&*a, &*b].concat();
        if flags == UCP_AM_SEND_FLAG_EAGER {
            assert!(seen.data == Some(all));
        } else {
            let (mut one, mut other) = (vec![0; 20_000], vec![0; 10_100]);
            let mut pieces = [piece(&one), piece(&other)];
            let into = (pieces.as_mut_ptr().cast(), 2);
            let param = How::new().datatype(UCP_DATATYPE_IOV, into).param;
            // SAFETY: memory that stays until the end.
            let received = Begun::of(unsafe {
                let (data, (at, count)) = (seen.pointer, into);
                ucp_am_recv_data_nbx(world.workers[1], data, at, count, &raw const param)
            });
            assert_eq!(world.end(received).0, Status::OK);
            assert!([&*one, &*other].concat() == all);
            (one[0], other[0]) = (0, 0);
        }
        assert_eq!(world.end(sent).0, Status::OK);
    }
}

/// A message without a handler is dropped, and its sender ends well.
#[test]
fn messages_without_a_handler_are_dropped() {
    let world = World::new();
    for (len, flags) in [(8, 0), (1 << 20, 0), (100_000, UCP_AM_SEND_FLAG_EAGER)] {
        let sent = send(&world, b"h", &pattern(len, 0), flags, &How::new());
        assert_eq!(world.end(sent).0, Status::OK, "{len}");
    }
    let handler = Handler::new(Status::OK);
    register(&world, &handler, 0);
    assert_eq!(world.end(send(&world, &[], b"last", 0, &How::new())).0, Status::OK);
    assert_eq!(handler.next(&world).data, Some(b"last".to_vec()));
}

impl How {
    /// The end of a receive of data is told there.
    fn told_of_data(mut self, told: &Told) -> Self {
        self.param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        self.param.cb = EndFn { recv_bytes: Some(Told::of_data) };
        self.param.user_data = (&raw const *told).cast_mut().cast();
        self
    }
}
