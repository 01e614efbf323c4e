//! Aliases of endpoints: the same calls, with flags of their own.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};

const KEY: u64 = 0xa1;

/// Calls without flags.
const PLAIN: [&str; 21] = [
    "send",
    "sendv",
    "senddata",
    "tsend",
    "tsendv",
    "tsenddata",
    "recv",
    "recvv",
    "trecv",
    "trecvv",
    "read",
    "readv",
    "write",
    "writev",
    "writedata",
    "change",
    "changev",
    "fetch",
    "fetchv",
    "compare",
    "comparev",
];

/// Those that say in memory what they want, and how it is told.
const DESCRIBED: [&str; 9] = [
    "sendmsg",
    "tsendmsg",
    "recvmsg",
    "trecvmsg",
    "readmsg",
    "writemsg",
    "changemsg",
    "fetchmsg",
    "comparemsg",
];

const INJECTED: [&str; 7] =
    ["inject", "injectdata", "tinject", "tinjectdata", "rinject", "rinjectdata", "ainject"];

/// One endpoint that knows itself by number 0, told of nothing that does not ask for it, and memory
/// of its own that it works on.
struct Scene {
    _opened: Opened,
    end: End,
    mr: *mut FidMr,
    target: Vec<u64>,
    word: [u64; 4],
}

impl Scene {
    fn new() -> Self {
        let wishes = Wishes { cq_flags: SELECTIVE_COMPLETION, ..Wishes::remote() };
        let opened = wishes.opened();
        let end = End::new(&opened, &wishes);
        end.insert(&[name(end.ep)]);
        let target = vec![0u64; 4];
        // SAFETY: numbers are bytes.
        let bytes = unsafe { std::slice::from_raw_parts(target.as_ptr().cast(), 32) };
        let mr = register(&opened, bytes, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
        Self { _opened: opened, end, mr, target, word: [0; 4] }
    }

    fn alias(&self, flags: u64) -> *mut FidEp {
        alias(self.end.ep, flags).unwrap()
    }

    /// One call, by the endpoint or an alias of it.
    fn call(&mut self, ep: *mut FidEp, how: &str, context: usize) -> isize {
        let word = self.word.as_mut_ptr();
        until_taken(std::slice::from_ref(&self.end), || match how {
            "recv" | "recvv" | "trecv" | "trecvv" | "recvmsg" | "trecvmsg" => {
                receive(ep, how, word, context)
            }
            _ if how.contains("send") => send(ep, how, word, context),
            _ if how.contains("inject") => inject(ep, how, word),
            _ if how.starts_with("read") || how.starts_with("write") => {
                touch(ep, how, word, context)
            }
            _ => update(ep, how, word, context),
        })
    }

    /// Posts the operation that the call needs at the other end, without a report: a message, or a
    /// receive.
    fn other_half(&mut self, how: &str) {
        let base = self.end.ep;
        let half = match how {
            "recv" | "recvv" | "recvmsg" => "inject",
            "trecv" | "trecvv" | "trecvmsg" => "tinject",
            "inject" | "injectdata" => "recv",
            "tinject" | "tinjectdata" => "trecv",
            _ if how.starts_with("tsend") => "trecv",
            _ if how.starts_with("send") => "recv",
            _ => return,
        };
        assert_eq!(self.call(base, half, 0), 0);
    }

    /// The context of the next completion. Completions of remote writes to memory here are skipped.
    fn told(&self) -> usize {
        loop {
            let (told, _) = next(&self.end, &[]);
            if told.flags & REMOTE_WRITE == 0 {
                return told.op_context as usize;
            }
        }
    }

    fn silent(&self) {
        for _ in 0..64 {
            match self.end.read() {
                Ok((told, _)) => assert_ne!(told.flags & REMOTE_WRITE, 0, "{told:?}"),
                Err(status) => assert_eq!(status, -(errno::EAGAIN as isize)),
            }
        }
    }

    fn close(self) {
        assert_eq!(close(self.mr), 0);
        self.end.close();
    }

    fn close_with(self, alias: *mut FidEp) {
        assert_eq!(close(alias), 0);
        self.close();
    }
}

fn alias(ep: *mut FidEp, flags: u64) -> Result<*mut FidEp, i32> {
    let mut place: *mut Fid = null_mut();
    let mut wanted = FidAlias { fid: &mut place, flags };
    match control(ep, ALIAS, &mut wanted) {
        0 => Ok(place.cast()),
        status => Err(status),
    }
}

fn receive(ep: *mut FidEp, how: &str, word: *mut u64, context: usize) -> isize {
    let (start, none) = (word.cast::<c_void>(), null_mut());
    let (context, from) = (without_provenance_mut(context), ADDR_UNSPEC);
    let iov = [0, 1].map(|_| Iovec { iov_base: start, iov_len: 8 });
    let (msg_iov, iov_count, desc, addr) = (iov.as_ptr(), 2, null_mut(), from);
    let data = 0;
    let msg = Msg { msg_iov, desc, iov_count, addr, context, data };
    let (tag, ignore) = (1, 0);
    let tagged = MsgTagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data };
    match how {
        "recv" => call!(ep, msg.recv(start, 8, none, from, context)),
        "recvv" => call!(ep, msg.recvv(msg_iov, desc, 2, from, context)),
        "recvmsg" => call!(ep, msg.recvmsg(&msg, COMPLETION)),
        "trecv" => call!(ep, tagged.recv(start, 8, none, from, tag, 0, context)),
        "trecvv" => call!(ep, tagged.recvv(msg_iov, desc, 2, from, tag, 0, context)),
        _ => call!(ep, tagged.recvmsg(&tagged, COMPLETION)),
    }
}

fn send(ep: *mut FidEp, how: &str, word: *mut u64, context: usize) -> isize {
    let (start, none) = (word.cast::<c_void>(), null_mut());
    let (context, at) = (without_provenance_mut(context), start.cast_const());
    let iov = [0, 4].map(|by| Iovec { iov_base: start.wrapping_byte_add(by), iov_len: 4 });
    let (msg_iov, iov_count, desc, addr) = (iov.as_ptr(), 2, null_mut(), 0);
    let data = 9;
    let msg = Msg { msg_iov, desc, iov_count, addr, context, data };
    let (tag, ignore) = (1, 0);
    let tagged = MsgTagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data };
    match how {
        "send" => call!(ep, msg.send(at, 8, none, 0, context)),
        "sendv" => call!(ep, msg.sendv(msg_iov, desc, 2, 0, context)),
        "sendmsg" => call!(ep, msg.sendmsg(&msg, COMPLETION)),
        "senddata" => call!(ep, msg.senddata(at, 8, none, data, 0, context)),
        "tsend" => call!(ep, tagged.send(at, 8, none, 0, tag, context)),
        "tsendv" => call!(ep, tagged.sendv(msg_iov, desc, 2, 0, tag, context)),
        "tsendmsg" => call!(ep, tagged.sendmsg(&tagged, COMPLETION)),
        _ => call!(ep, tagged.senddata(at, 8, none, data, 0, tag, context)),
    }
}

fn inject(ep: *mut FidEp, how: &str, word: *mut u64) -> isize {
    let at = word.cast::<c_void>().cast_const();
    match how {
        "inject" => call!(ep, msg.inject(at, 8, 0)),
        "injectdata" => call!(ep, msg.injectdata(at, 8, 9, 0)),
        "tinject" => call!(ep, tagged.inject(at, 8, 0, 1)),
        "tinjectdata" => call!(ep, tagged.injectdata(at, 8, 9, 0, 1)),
        "rinject" => call!(ep, rma.inject(at, 8, 0, 0, KEY)),
        "rinjectdata" => call!(ep, rma.injectdata(at, 8, 9, 0, 0, KEY)),
        _ => call!(ep, atomic.inject(at, 1, 0, 0, KEY, UINT64, SUM)),
    }
}

fn touch(ep: *mut FidEp, how: &str, word: *mut u64, context: usize) -> isize {
    let (start, none) = (word.cast::<c_void>(), null_mut());
    let (context, at) = (without_provenance_mut(context), start.cast_const());
    let iov = [0, 4].map(|by| Iovec { iov_base: start.wrapping_byte_add(by), iov_len: 4 });
    let (msg_iov, iov_count, desc, addr) = (iov.as_ptr(), 2, null_mut(), 0);
    let (rma_iov, rma_iov_count, data) = (&RmaIov { addr: 8, len: 8, key: KEY }, 1, 9);
    let msg = MsgRma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data };
    match how {
        "read" => call!(ep, rma.read(start, 8, none, 0, 8, KEY, context)),
        "readv" => call!(ep, rma.readv(msg_iov, desc, 2, 0, 8, KEY, context)),
        "readmsg" => call!(ep, rma.readmsg(&msg, COMPLETION)),
        "write" => call!(ep, rma.write(at, 8, none, 0, 8, KEY, context)),
        "writev" => call!(ep, rma.writev(msg_iov, desc, 2, 0, 8, KEY, context)),
        "writemsg" => call!(ep, rma.writemsg(&msg, COMPLETION)),
        _ => call!(ep, rma.writedata(at, 8, none, data, 0, 8, KEY, context)),
    }
}

fn update(ep: *mut FidEp, how: &str, word: *mut u64, context: usize) -> isize {
    let context = without_provenance_mut(context);
    let place = |by| word.wrapping_add(by).cast::<c_void>();
    let piece = |by: usize| [by, by].map(|by| Ioc { addr: place(by), count: 1 });
    let (operand, compare, mut result) = (piece(0), piece(1), piece(2));
    let (one, other, into, none) = (place(0).cast_const(), place(1), place(2), null_mut());
    let other = other.cast_const();
    let (a, b, c) = (operand.as_ptr(), compare.as_ptr(), result.as_mut_ptr());
    let op = if how.starts_with("compare") { CSWAP } else { SUM };
    let (descs, rma_iov) = (null_mut(), &RmaIoc { addr: 8, count: 2, key: KEY });
    let msg = MsgAtomic {
        msg_iov: a,
        desc: descs,
        iov_count: 2,
        addr: 0,
        rma_iov,
        rma_iov_count: 1,
        datatype: UINT64,
        op,
        context,
        data: 0,
    };
    let (kind, flags) = (UINT64, COMPLETION);
    macro_rules! at_8 {
        ($slot:ident($($memory:expr),*)) => {
            call!(ep, atomic.$slot($($memory,)* 0, 8, KEY, kind, op, context))
        };
    }
    match how {
        "change" => at_8!(write(one, 1, none)),
        "changev" => at_8!(writev(a, descs, 2)),
        "changemsg" => call!(ep, atomic.writemsg(&msg, flags)),
        "fetch" => at_8!(readwrite(one, 1, none, into, none)),
        "fetchv" => at_8!(readwritev(a, descs, 2, c, descs, 2)),
        "fetchmsg" => call!(ep, atomic.readwritemsg(&msg, c, descs, 2, flags)),
        "compare" => at_8!(compwrite(one, 1, none, other, none, into, none)),
        "comparev" => at_8!(compwritev(a, descs, 2, b, descs, 2, c, descs, 2)),
        _ => call!(ep, atomic.compwritemsg(&msg, b, descs, 2, c, descs, 2, flags)),
    }
}

#[test]
fn every_call_has_the_flags_of_its_alias() {
    let mut scene = Scene::new();
    let base = scene.end.ep;
    let (sends, receives) = (scene.alias(SEND | COMPLETION), scene.alias(RECV | COMPLETION));
    for (number, how) in PLAIN.into_iter().enumerate() {
        let alias = if how.contains("recv") { receives } else { sends };
        for (ep, context) in [(base, 0), (alias, number + 1)] {
            scene.other_half(how);
            assert_eq!(scene.call(ep, how, context), 0, "{how}");
        }
        assert_eq!(scene.told(), number + 1, "{how}: that of the alias is told");
        scene.silent();
    }
    for (number, how) in DESCRIBED.into_iter().enumerate() {
        scene.other_half(how);
        assert_eq!(scene.call(receives, how, number + 1), 0, "{how}");
        assert_eq!(scene.told(), number + 1, "{how}");
        scene.silent();
    }
    for how in INJECTED {
        scene.other_half(how);
        assert_eq!(scene.call(sends, how, 0), 0, "{how}");
        scene.silent();
    }
    assert_eq!((close(sends), close(receives)), (0, 0));
    scene.close();
}

#[test]
fn an_alias_performs_the_operations_of_its_endpoint() {
    let mut scene = Scene::new();
    let alias = scene.alias(SEND | COMPLETION);
    scene.word = [5, 0, 0, 0];
    assert_eq!(scene.call(alias, "writedata", 1), 0);
    assert_eq!(scene.told(), 1);
    assert_eq!(scene.call(alias, "fetchv", 2), 0);
    assert_eq!(scene.told(), 2);
    assert_eq!(std::hint::black_box(&scene.target)[..], [0, 10, 5, 0]);
    scene.word = [0, 0, 0, 0];
    assert_eq!(scene.call(alias, "readv", 3), 0);
    assert_eq!(scene.told(), 3);
    assert_eq!(std::hint::black_box(&scene.word)[0], 10);
    scene.close_with(alias);
}

#[test]
fn an_injecting_alias_refuses_operations_that_cannot_be_injected() {
    let scene = Scene::new();
    let one = scene.alias(SEND | INJECT);
    let (long, none) = ([0_u8; 4097], null_mut());
    let (at, len) = (long.as_ptr().cast::<c_void>(), long.len());
    let iov = Iovec { iov_base: at.cast_mut(), iov_len: len };
    let said = [
        call!(one, msg.send(at, len, none, 0, none)),
        call!(one, msg.sendv(&iov, null_mut(), 1, 0, none)),
        call!(one, msg.senddata(at, len, none, 9, 0, none)),
        call!(one, tagged.send(at, len, none, 0, 1, none)),
        call!(one, rma.write(at, len, none, 0, 0, KEY, none)),
    ];
    assert_eq!(said, [-(errno::EMSGSIZE as isize); 5]);
    scene.close_with(one);
}

#[test]
fn an_alias_answers_queries_as_its_endpoint_does() {
    let mut scene = Scene::new();
    let (base, alias) = (scene.end.ep, scene.alias(0));
    assert_eq!(name(alias), name(base));
    let mut bytes = name(base);
    let (mut value, mut room) = (4096usize, size_of::<usize>());
    // SAFETY: the alias is open, and there is as much memory as is said.
    unsafe {
        let (ops, cm, at) = (*(*alias).ops, *(*alias).cm, fid(alias));
        let place = (&raw mut value).cast::<c_void>();
        assert_eq!(cm.setname.unwrap()(at, bytes.as_mut_ptr().cast(), 64), 0);
        let level = (OPT_ENDPOINT, OPT_MIN_MULTI_RECV);
        assert_eq!(ops.setopt.unwrap()(at, level.0, level.1, place, room), 0);
        value = 0;
        let get = (*(*base).ops).getopt.unwrap();
        assert_eq!(get(fid(base), level.0, level.1, place, &mut room), 0);
        assert_eq!(value, 4096);
        assert_eq!(ops.getopt.unwrap()(at, level.0, 99, place, &mut room), -errno::ENOPROTOOPT);
        assert_eq!(scene.call(alias, "recv", 7), 0);
        assert_eq!(ops.cancel.unwrap()(at, 7 as *mut c_void), 0);
    }
    assert_eq!(next_failure(&scene.end, &[]).err, errno::ECANCELED);
    let left = |ep: *mut FidEp| (call!(ep, ops.rx_size_left()), call!(ep, ops.tx_size_left()));
    assert_eq!(left(alias), left(base));
    let (mut ours, mut its) = (0, 0);
    for (slot, op) in [("change", SUM), ("fetch", ATOMIC_READ), ("compare", CSWAP)] {
        let valid = |ep: *mut FidEp, count: &mut usize| match slot {
            "change" => call!(ep, atomic.writevalid(UINT64, op, count)),
            "fetch" => call!(ep, atomic.readwritevalid(UINT64, op, count)),
            _ => call!(ep, atomic.compwritevalid(UINT64, op, count)),
        };
        assert_eq!((valid(alias, &mut ours), valid(base, &mut its)), (0, 0));
        assert_eq!(ours, its);
    }
    assert_eq!(control(alias, ENABLE, null_mut::<u8>()), 0);
    scene.close_with(alias);
}

#[test]
fn its_flags_are_its_own() {
    let scene = Scene::new();
    let base = scene.end.ep;
    let get = |ep: *mut FidEp, mut flags: u64| (control(ep, GETOPSFLAG, &mut flags), flags);
    let set = |ep: *mut FidEp, mut flags: u64| control(ep, SETOPSFLAG, &mut flags);
    assert_eq!(set(base, RECV | COMPLETION), 0);
    let first = scene.alias(SEND | DELIVERY_COMPLETE);
    assert_eq!((get(first, SEND), get(first, RECV)), ((0, DELIVERY_COMPLETE), (0, COMPLETION)));
    assert_eq!(set(first, SEND | INJECT_COMPLETE), 0);
    let second = alias(first, RECV).unwrap();
    assert_eq!((get(second, SEND), get(second, RECV)), ((0, INJECT_COMPLETE), (0, 0)));
    assert_eq!((get(base, SEND), get(base, RECV)), ((0, 0), (0, COMPLETION)));
    for wrong in [0, SEND | RECV] {
        assert_eq!((get(first, wrong).0, set(first, wrong)), (-errno::EINVAL, -errno::EINVAL));
    }
    assert_eq!(set(first, SEND | FENCE), -errno::EBADFLAGS);
    // The first is no endpoint: the second does not need it.
    assert_eq!((close(first), close(base)), (0, -errno::EBUSY));
    assert_eq!(get(second, SEND), (0, INJECT_COMPLETE));
    scene.close_with(second);
}

#[test]
fn an_invalid_alias_is_an_error_code() {
    let scene = Scene::new();
    let base = scene.end.ep;
    for (flags, status) in [
        (SEND | RECV, -errno::EINVAL),
        (COMPLETION, -errno::EINVAL),
        (SEND | PEEK, -errno::EBADFLAGS),
        (RECV | 1 << 60, -errno::EBADFLAGS),
    ] {
        assert_eq!(alias(base, flags), Err(status), "{flags:#x}");
    }
    assert_eq!(alias(scene.end.cq.cast(), SEND), Err(-errno::ENOSYS));
    assert_eq!(alias(scene.end.av.cast(), SEND), Err(-errno::ENOSYS));
    assert_eq!(control(base, ALIAS, null_mut::<u8>()), -errno::EINVAL);
    let one = scene.alias(SEND);
    assert_eq!(bind(one, scene.end.cq, SEND), -errno::ENOSYS);
    scene.close_with(one);
}

/// Calls in pieces look at them before the endpoint does.
#[test]
fn pieces_that_are_not_there_are_refused() {
    let scene = Scene::new();
    let one = scene.alias(SEND | COMPLETION);
    let (mut word, none, descs) = (0_u64, null_mut(), null_mut());
    let start = (&raw mut word).cast::<c_void>();
    let iov = [Iovec { iov_base: start, iov_len: 8 }];
    let numbers = [Ioc { addr: start, count: 1 }];
    let (iov, numbers) = (iov.as_ptr(), numbers.as_ptr());
    for (by, count) in [(1, 1), (0, usize::MAX)] {
        let (iov, numbers) = (iov.wrapping_byte_add(by), numbers.wrapping_byte_add(by));
        let said = [
            call!(one, rma.readv(iov, descs, count, 0, 8, KEY, none)),
            call!(one, rma.writev(iov, descs, count, 0, 8, KEY, none)),
            call!(one, atomic.writev(numbers, descs, count, 0, 8, KEY, UINT64, SUM, none)),
        ];
        assert_eq!(said, [-(errno::EINVAL as isize); 3], "{by} {count:#x}");
    }
    scene.close_with(one);
}
