//! Atomics on peers' memory: which there are, through every call, and by several threads at once.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const KEY: u64 = 7;

fn code(code: i32) -> isize {
    -(code as isize)
}

/// Two ends, and numbers that peers may work on.
struct Scene {
    opened: Opened,
    ends: [End; 2],
    memory: Vec<u64>,
    mr: *mut FidMr,
}

/// The value that the provider has written.
fn there(result: &[u64; 1]) -> u64 {
    std::hint::black_box(result)[0]
}

fn bytes_of<T>(values: &[T]) -> &[u8] {
    // SAFETY: numbers are bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

impl Scene {
    fn new(wishes: Wishes, access: u64, memory: Vec<u64>) -> Self {
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let mr = register(&opened, bytes_of(&memory), access, KEY).unwrap();
        Self { opened, ends, memory, mr }
    }

    fn both(memory: Vec<u64>) -> Self {
        Self::new(Wishes::remote(), REMOTE_READ | REMOTE_WRITE, memory)
    }

    fn now(&self) -> &[u64] {
        std::hint::black_box(&self.memory)
    }

    /// Waits until the memory is like this, which the provider writes meanwhile.
    fn until(&self, wanted: &[u64]) {
        for _ in 0..50_000_000u64 {
            if self.now() == wanted {
                return;
            }
            self.ends.iter().for_each(give_time);
        }
        panic!("nothing comes");
    }

    fn ended(&self, kind: u64) {
        let (told, _) = next(&self.ends[0], &self.ends);
        assert_eq!((told.op_context as usize, told.flags), (0x55, ATOMIC | kind));
    }

    fn close(self) {
        let Self { opened, ends, mr, memory } = self;
        assert_eq!(close(mr), 0);
        ends.into_iter().for_each(End::close);
        drop((opened, memory));
    }
}

/// One atomic: the numbers that it takes, and libfabric's numbers of what it is.
#[derive(Clone, Copy)]
struct Atomic<'a> {
    datatype: u32,
    op: u32,
    operand: &'a [u64],
    compare: &'a [u64],
    result: &'a [u64],
    to: u64,
    key: u64,
}

impl Default for Atomic<'_> {
    fn default() -> Self {
        let (datatype, op, to, key) = (UINT64, SUM, 0, KEY);
        Self { datatype, op, operand: &[], compare: &[], result: &[], to, key }
    }
}

/// All of them in one piece, or in two.
fn ioc(numbers: &[u64]) -> [Ioc; 2] {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    [first, second].map(|it| Ioc { addr: it.as_ptr().cast_mut().cast(), count: it.len() })
}

/// One call, at the second number of the memory. The context is 0x55.
fn post(ends: &[End], how: &str, atomic: Atomic<'_>) -> isize {
    let Atomic { datatype, op, operand, compare, result, to, key } = atomic;
    let (ep, count, none) = (ends[0].ep, operand.len().max(result.len()), null_mut());
    let [iov, comparev, resultv] = [operand, compare, result].map(ioc);
    let (iov, comparev, resultv) = (iov.as_ptr(), comparev.as_ptr(), resultv.as_ptr().cast_mut());
    let [from, with, into] = [operand, compare, result].map(|it| it.as_ptr().cast::<c_void>());
    let (into, context, descs) = (into.cast_mut(), 0x55 as *mut c_void, null_mut());
    let address = 8;
    let rma_iov = RmaIoc { addr: address, count, key };
    let msg = MsgAtomic {
        msg_iov: iov,
        desc: null_mut(),
        iov_count: 2,
        addr: to,
        rma_iov: &rma_iov,
        rma_iov_count: 1,
        datatype,
        op,
        context,
        data: 0,
    };
    until_taken(ends, || match how {
        "write" => {
            call!(ep, atomic.write(from, count, none, to, address, key, datatype, op, context))
        }
        "writev" => {
            call!(ep, atomic.writev(iov, descs, 2, to, address, key, datatype, op, context))
        }
        "writemsg" => call!(ep, atomic.writemsg(&msg, COMPLETION)),
        "inject" => call!(ep, atomic.inject(from, count, to, address, key, datatype, op)),
        "readwrite" => call!(
            ep,
            atomic
                .readwrite(from, count, none, into, none, to, address, key, datatype, op, context)
        ),
        "readwritev" => call!(
            ep,
            atomic.readwritev(
                iov, descs, 2, resultv, descs, 2, to, address, key, datatype, op, context
            )
        ),
        "readwritemsg" => {
            call!(ep, atomic.readwritemsg(&msg, resultv, descs, 2, COMPLETION))
        }
        "compwrite" => call!(
            ep,
            atomic.compwrite(
                from, count, none, with, none, into, none, to, address, key, datatype, op, context
            )
        ),
        "compwritev" => call!(
            ep,
            atomic.compwritev(
                iov, descs, 2, comparev, descs, 2, resultv, descs, 2, to, address, key, datatype,
                op, context
            )
        ),
        "compwritemsg" => {
            call!(ep, atomic.compwritemsg(&msg, comparev, descs, 2, resultv, descs, 2, COMPLETION))
        }
        _ => unreachable!("{how}"),
    })
}

#[test]
fn every_atomic_call_changes_the_target_memory() {
    for (threading, to) in [(THREAD_SAFE, 0), (THREAD_DOMAIN, 0), (THREAD_DOMAIN, 1)] {
        let wishes = Wishes { threading, ..Wishes::remote() };
        let access = REMOTE_READ | REMOTE_WRITE;
        let mut scene = Scene::new(wishes, access, vec![1, 10, 20, 30, 5]);
        let operand = [100, 200, 300];
        let sum = Atomic { operand: &operand, to, ..Atomic::default() };
        let mut wanted = scene.memory.clone();
        for how in ["write", "writev", "writemsg", "inject"] {
            (0..3).for_each(|at| wanted[at + 1] += operand[at]);
            assert_eq!(post(&scene.ends, how, sum), 0);
            if how != "inject" {
                scene.ended(WRITE);
            }
            scene.until(&wanted);
        }
        for how in ["readwrite", "readwritev", "readwritemsg"] {
            let (old, result) = (wanted.clone(), [0; 3]);
            (0..3).for_each(|at| wanted[at + 1] += operand[at]);
            assert_eq!(post(&scene.ends, how, Atomic { result: &result, ..sum }), 0);
            scene.ended(READ);
            assert_eq!(std::hint::black_box(&result), &old[1..4], "{how}");
            assert_eq!(scene.now(), wanted);
        }
        for how in ["compwrite", "compwritev", "compwritemsg"] {
            scene.memory.copy_from_slice(&[1, 10, 20, 30, 5]);
            let (result, compare, op) = ([0; 3], [10, 21, 30], CSWAP);
            let swap = Atomic { op, compare: &compare, result: &result, ..sum };
            assert_eq!(post(&scene.ends, how, swap), 0);
            scene.ended(READ);
            assert_eq!(std::hint::black_box(&result), &[10, 20, 30], "{how}");
            assert_eq!(scene.now(), [1, 100, 20, 300, 5]);
        }
        scene.close();
    }
}

/// Each of libfabric's operations computes its named result from 12, or from 12 and 10.
#[test]
fn each_atomic_operation_computes_its_named_result() {
    let mut scene = Scene::both(vec![0, 0]);
    let fetched = [
        (MIN, 10, 10),
        (MAX, 10, 12),
        (SUM, 10, 22),
        (PROD, 10, 120),
        (LOR, 0, 1),
        (LAND, 0, 0),
        (BOR, 3, 15),
        (BAND, 10, 8),
        (LXOR, 10, 0),
        (BXOR, 10, 6),
        (ATOMIC_READ, 99, 12),
        (ATOMIC_WRITE, 10, 10),
    ];
    for (op, operand, wanted) in fetched {
        scene.memory.fill(12);
        let (operand, result) = ([operand], [0]);
        let atomic = Atomic { op, operand: &operand, result: &result, ..Atomic::default() };
        assert_eq!(post(&scene.ends, "readwrite", atomic), 0);
        scene.ended(READ);
        assert_eq!((scene.now(), there(&result)), (&[12, wanted][..], 12), "{op}");
        if op != ATOMIC_READ {
            scene.memory.fill(12);
            assert_eq!(post(&scene.ends, "write", Atomic { result: &[], ..atomic }), 0);
            scene.ended(WRITE);
            assert_eq!(scene.now(), [12, wanted], "{op}");
        }
    }
    // The comparand stands so to what is there: which of 11, 12 and 13 does.
    let compared = [
        (CSWAP, [false, true, false]),
        (CSWAP_NE, [true, false, true]),
        (CSWAP_LE, [true, true, false]),
        (CSWAP_LT, [true, false, false]),
        (CSWAP_GE, [false, true, true]),
        (CSWAP_GT, [false, false, true]),
    ];
    let compared = compared.into_iter().flat_map(|(op, swaps)| {
        [11, 12, 13].into_iter().zip(swaps).map(move |(with, swaps)| (op, with, swaps))
    });
    let compared = compared.map(|(op, with, swaps)| (op, with, if swaps { 10 } else { 12 }));
    for (op, with, wanted) in compared.chain([(MSWAP, 6, 10), (MSWAP, 4, 8)]) {
        scene.memory.fill(12);
        let (operand, compare, result) = ([10], [with], [0]);
        let (operand, compare, result) = (&operand, &compare, &result);
        let atomic = Atomic { op, operand, compare, result, ..Atomic::default() };
        assert_eq!(post(&scene.ends, "compwrite", atomic), 0);
        scene.ended(READ);
        assert_eq!((scene.now(), there(result)), (&[12, wanted][..], 12), "{op}");
    }
    scene.close();
}

/// Two and three make five, in the bytes of each kind of number.
#[test]
fn each_datatype_has_its_named_representation() {
    let mut scene = Scene::both(vec![0; 3]);
    let mut sums = |datatype, old: [u8; 16], new: [u8; 16], wanted: [u8; 16]| {
        let words = |bytes: [u8; 16]| {
            let (low, high) = bytes.split_at(8);
            [low, high].map(|half| u64::from_ne_bytes(half.try_into().unwrap()))
        };
        scene.memory[1..].copy_from_slice(&words(old));
        // The operand is read as one number of this kind.
        let operand = words(new);
        let at = operand.as_ptr().cast();
        let context = 0x55 as *mut c_void;
        let post = || {
            let (ep, none) = (scene.ends[0].ep, null_mut());
            call!(ep, atomic.write(at, 1, none, 0, 8, KEY, datatype, SUM, context))
        };
        assert_eq!(until_taken(&scene.ends, post), 0);
        scene.ended(WRITE);
        assert_eq!(scene.now()[1..], words(wanted), "{datatype}");
    };
    macro_rules! all {
        ($($datatype:ident: $type:ty),*) => {$({
            let bytes = |value: $type| {
                let mut bytes = [0; 16];
                bytes[..size_of::<$type>()].copy_from_slice(&value.to_ne_bytes());
                bytes
            };
            sums($datatype, bytes(2 as $type), bytes(3 as $type), bytes(5 as $type));
            // And of all its bytes.
            let (least, most) = (bytes(<$type>::MIN), bytes(<$type>::MAX));
            sums($datatype, least, most, bytes(<$type>::MIN + <$type>::MAX));
        })*};
    }
    all!(INT8: i8, UINT8: u8, INT16: i16, UINT16: u16, INT32: i32, UINT32: u32);
    all!(INT64: i64, UINT64: u64, FLOAT: f32, DOUBLE: f64);
    let pair = |real: f32, other: f32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&real.to_ne_bytes());
        bytes[4..8].copy_from_slice(&other.to_ne_bytes());
        bytes
    };
    sums(FLOAT_COMPLEX, pair(2.0, 0.5), pair(3.0, 1.0), pair(5.0, 1.5));
    let pair = |real: f64, other: f64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&real.to_ne_bytes());
        bytes[8..].copy_from_slice(&other.to_ne_bytes());
        bytes
    };
    sums(DOUBLE_COMPLEX, pair(2.0, 0.5), pair(3.0, 1.0), pair(5.0, 1.5));
    scene.close();
}

/// Whether there is this kind of atomic, of a family (changing, fetching, comparing).
fn is_there(family: usize, datatype: u32, op: u32) -> bool {
    let (is_integer, is_complex) = (datatype <= UINT64, datatype >= FLOAT_COMPLEX);
    let of_family = match family {
        0 => op <= BXOR || op == ATOMIC_WRITE,
        1 => op <= ATOMIC_WRITE,
        _ => (CSWAP..=MSWAP).contains(&op),
    };
    let of_number = match op {
        BOR | BAND | BXOR | MSWAP => is_integer,
        MIN | MAX | CSWAP_LE | CSWAP_LT | CSWAP_GE | CSWAP_GT => !is_complex,
        _ => true,
    };
    datatype <= DOUBLE_COMPLEX && of_family && of_number
}

#[test]
fn programs_can_ask_which_there_are() {
    let scene = Scene::both(vec![0; 2]);
    let (ep, domain) = (scene.ends[0].ep, scene.opened.domain);
    let sizes = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16];
    for (datatype, op) in (0..20).flat_map(|datatype| (0..22).map(move |op| (datatype, op))) {
        for (family, flags) in [0, FETCH_ATOMIC, COMPARE_ATOMIC].into_iter().enumerate() {
            let (mut count, mut attr) = (0, blank::<AtomicAttr>());
            let valid = match family {
                0 => call!(ep, atomic.writevalid(datatype, op, &mut count)),
                1 => call!(ep, atomic.readwritevalid(datatype, op, &mut count)),
                _ => call!(ep, atomic.compwritevalid(datatype, op, &mut count)),
            };
            let asked = call!(domain, ops.query_atomic(datatype, op, &mut attr, flags));
            let there = is_there(family, datatype, op);
            let wanted = if there { 0 } else { -errno::EOPNOTSUPP };
            assert_eq!((valid, asked), (wanted, wanted), "{family} {datatype} {op}");
            assert_eq!(attr.count, count);
            if there {
                assert!(count > 0 && attr.size == sizes[datatype as usize]);
            }
        }
    }
    let mut attr = blank::<AtomicAttr>();
    let mut query = |flags| call!(domain, ops.query_atomic(UINT64, SUM, &mut attr, flags));
    assert_eq!(query(FETCH_ATOMIC | COMPARE_ATOMIC), -errno::EBADFLAGS);
    assert_eq!((query(TAGGED), query(MSG)), (-errno::EOPNOTSUPP, -errno::EBADFLAGS));
    assert_eq!(call!(domain, ops.query_atomic(UINT64, SUM, null_mut(), 0)), -errno::EINVAL);
    scene.close();
}

#[test]
fn as_many_numbers_as_are_said_fit_into_a_call() {
    let scene = Scene::both(vec![1; 1025]);
    let ep = scene.ends[0].ep;
    let mut most = 0;
    assert_eq!(call!(ep, atomic.readwritevalid(UINT64, SUM, &mut most)), 0);
    let (operand, result) = (vec![5; most], vec![0; most]);
    let sum = Atomic { operand: &operand, result: &result, ..Atomic::default() };
    assert_eq!(post(&scene.ends, "readwrite", sum), 0);
    scene.ended(READ);
    assert!(std::hint::black_box(&result).iter().all(|old| *old == 1));
    assert!(scene.now()[1..=most].iter().all(|new| *new == 6) && scene.now()[most + 1] == 1);
    let more = vec![5; most + 1];
    let too_many = Atomic { operand: &more, ..Atomic::default() };
    assert_eq!(post(&scene.ends, "write", too_many), code(errno::EMSGSIZE));
    assert_eq!(call!(ep, atomic.compwritevalid(UINT64, CSWAP, &mut most)), 0);
    let all = vec![1; most];
    let swap = Atomic { op: CSWAP, operand: &all, compare: &all, result: &all, ..sum };
    assert_eq!(post(&scene.ends, "compwrite", swap), 0);
    scene.ended(READ);
    scene.close();
}

#[test]
fn an_atomic_without_the_right_completes_in_error() {
    for access in [REMOTE_WRITE, REMOTE_READ] {
        let scene = Scene::new(Wishes::remote(), access, vec![1; 2]);
        let (operand, result) = ([5], [77]);
        let sum = Atomic { operand: &operand, ..Atomic::default() };
        let fetch = Atomic { result: &result, ..sum };
        let refused = |how, atomic, kind, err| {
            assert_eq!(post(&scene.ends, how, atomic), 0);
            let failure = next_failure(&scene.ends[0], &scene.ends);
            assert_eq!((failure.err, failure.flags), (err, ATOMIC | kind));
            assert_eq!(failure.op_context as usize, if how == "inject" { 0 } else { 0x55 });
        };
        refused("readwrite", fetch, READ, errno::EACCES);
        if access == REMOTE_READ {
            refused("write", sum, WRITE, errno::EACCES);
            refused("inject", sum, WRITE, errno::EACCES);
            // Reading takes the right to read, and no more.
            assert_eq!(post(&scene.ends, "readwrite", Atomic { op: ATOMIC_READ, ..fetch }), 0);
            scene.ended(READ);
            assert_eq!(there(&result), 1);
        }
        refused("write", Atomic { key: 8, ..sum }, WRITE, errno::ENOKEY);
        // Rights are looked at first.
        let outside = if access == REMOTE_READ { errno::EACCES } else { errno::EINVAL };
        refused("write", Atomic { operand: &[5; 2], ..sum }, WRITE, outside);
        assert_eq!(scene.now(), [1; 2]);
        scene.close();
    }
}

#[test]
fn wrong_arguments_are_an_error_code() {
    let scene = Scene::both(vec![0; 9]);
    let (three, two) = ([1; 3], [1; 2]);
    let sum = Atomic { operand: &three, ..Atomic::default() };
    let refused = |how, atomic, err| assert_eq!(post(&scene.ends, how, atomic), code(err), "{how}");
    for how in ["write", "writev", "writemsg", "inject"] {
        refused(how, Atomic { operand: &[], ..sum }, errno::EINVAL);
        refused(how, Atomic { to: 2, ..sum }, errno::EINVAL);
        refused(how, Atomic { op: CSWAP, ..sum }, errno::EOPNOTSUPP);
        refused(how, Atomic { op: 99, ..sum }, errno::EOPNOTSUPP);
        refused(how, Atomic { op: ATOMIC_READ, ..sum }, errno::EOPNOTSUPP);
        refused(how, Atomic { datatype: LONG_DOUBLE, ..sum }, errno::EOPNOTSUPP);
        refused(how, Atomic { datatype: DOUBLE, op: BXOR, ..sum }, errno::EOPNOTSUPP);
    }
    for how in ["readwritev", "readwritemsg"] {
        refused(how, Atomic { result: &two, ..sum }, errno::EINVAL);
        refused(how, sum, errno::EINVAL);
    }
    let swap = Atomic { op: CSWAP, result: &three, ..sum };
    for how in ["compwritev", "compwritemsg"] {
        refused(how, Atomic { compare: &two, ..swap }, errno::EINVAL);
        refused(how, Atomic { compare: &three, op: SUM, ..swap }, errno::EOPNOTSUPP);
    }
    let ep = scene.ends[0].ep;
    let (iov, places) = (ioc(&two), [RmaIoc { addr: 0, count: 2, key: KEY }; 2]);
    let msg = MsgAtomic {
        msg_iov: iov.as_ptr(),
        iov_count: 2,
        rma_iov: places.as_ptr(),
        rma_iov_count: 1,
        datatype: UINT64,
        op: SUM,
        ..blank()
    };
    assert_eq!(call!(ep, atomic.writemsg(null(), 0)), code(errno::EINVAL));
    for flags in [TAGGED, REMOTE_CQ_DATA, PEEK] {
        assert_eq!(call!(ep, atomic.writemsg(&msg, flags)), code(errno::EBADFLAGS));
    }
    for rma_iov_count in [0, 2] {
        let wrong = MsgAtomic { rma_iov_count, ..msg };
        assert_eq!(call!(ep, atomic.writemsg(&wrong, 0)), code(errno::EINVAL));
    }
    let huge = [Ioc { count: usize::MAX, ..iov[0] }];
    let wrong = MsgAtomic { msg_iov: huge.as_ptr(), iov_count: 1, ..msg };
    assert_eq!(call!(ep, atomic.writemsg(&wrong, 0)), code(errno::EMSGSIZE));
    scene.close();
}

/// Endpoints of a domain, each of another thread, add to one number of an end that gives time.
#[test]
fn a_number_that_many_change_is_exact() {
    const EACH: u64 = 500;
    let scene = Scene::both(vec![0; 2]);
    let wishes = Wishes::remote();
    let target = name(scene.ends[1].ep);
    std::thread::scope(|scope| {
        let workers = [0, 1].map(|_| {
            let end = End::new(&scene.opened, &wishes);
            end.insert(&[target]);
            let end = Sent(end);
            scope.spawn(move || {
                let Sent(end) = { end };
                let ends = [end];
                let mut last = 0;
                for _ in 0..EACH {
                    let (one, old) = ([1], [0]);
                    let add = Atomic { operand: &one, result: &old, ..Atomic::default() };
                    assert_eq!(post(&ends, "readwrite", add), 0);
                    assert_eq!(next(&ends[0], &ends).0.flags, ATOMIC | READ);
                    let old = there(&old);
                    assert!(last == 0 || old > last, "what others see only grows");
                    last = old;
                }
                let [end] = ends;
                Sent(end)
            })
        });
        while !workers.iter().all(|worker| worker.is_finished()) {
            give_time(&scene.ends[1]);
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap().0.close());
    });
    assert_eq!(scene.now()[1], 2 * EACH);
    scene.close();
}

/// An end that another thread uses, as FI_THREAD_SAFE allows.
struct Sent(End);

// SAFETY: its handles are addresses, and the domain is a thread-safe one.
unsafe impl Send for Sent {}
