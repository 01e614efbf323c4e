//! Endpoints: what is bound to them, what they tell of, and whom they find.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

fn tsend(end: &End, bytes: &[u8], to: u64, context: usize) -> isize {
    let (start, at) = (bytes.as_ptr().cast(), context as *mut c_void);
    call!(end.ep, tagged.send(start, bytes.len(), null_mut(), to, 7, at))
}

fn trecv(end: &End, into: &mut [u8], from: u64, context: usize) -> isize {
    let (start, at) = (into.as_mut_ptr().cast(), context as *mut c_void);
    call!(end.ep, tagged.recv(start, into.len(), null_mut(), from, 7, 0, at))
}

fn code(code: i32) -> isize {
    -(code as isize)
}

#[test]
fn an_endpoint_works_when_all_is_bound_that_it_needs() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ep = open_ep(&opened).unwrap();
    let cq = open_cq(&opened, |_| ()).unwrap();
    let (av, eq) = (open_av(&opened, 0), open_eq(&opened, 0, WAIT_NONE));
    let enable = || control(ep, ENABLE, null_mut::<u8>());
    assert_eq!(enable(), -errno::ENOCQ);
    assert_eq!(bind(ep, cq, 0), -errno::EINVAL);
    assert_eq!(bind(ep, cq, SEND | READ), -errno::EBADFLAGS);
    assert_eq!(bind(ep, cq, SEND), 0);
    assert_eq!(enable(), -errno::ENOCQ);
    assert_eq!((bind(ep, cq, SEND), bind(ep, cq, RECV)), (-errno::EINVAL, 0));
    assert_eq!(enable(), -errno::ENOAV);
    assert_eq!((bind(ep, av, 1), bind(ep, av, 0)), (-errno::EBADFLAGS, 0));
    assert_eq!((bind(ep, av, 0), bind(ep, eq, 0)), (-errno::EINVAL, 0));
    let end = End { ep, cq, av };
    end.insert(&[name(ep)]);
    assert_eq!(tsend(&end, &[], 0, 0), code(errno::EOPBADSTATE));
    assert_eq!(trecv(&end, &mut [], 0, 0), code(errno::EOPBADSTATE));
    assert_eq!((enable(), enable()), (0, 0));
    assert_eq!(trecv(&end, &mut [], 0, 3), 0);
    assert_eq!(
        until_taken(&[], || {
            give_time(&end);
            tsend(&end, &[], 0, 0)
        }),
        0
    );
    assert_eq!((close(cq), close(av), close(eq)), (-errno::EBUSY, -errno::EBUSY, -errno::EBUSY));
    end.close();
    assert_eq!(close(eq), 0);
}

#[test]
fn no_slot_of_an_endpoint_is_empty() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ep = open_ep(&opened).unwrap();
    // SAFETY: the endpoint is open, and its tables are words, as many as their sizes say.
    unsafe {
        let FidEp { ops, cm, msg, rma, tagged, atomic, collective, .. } = *ep;
        let tables: [*const usize; 7] = [
            ops.cast(),
            cm.cast(),
            msg.cast(),
            rma.cast(),
            tagged.cast(),
            atomic.cast(),
            collective.cast(),
        ];
        for table in tables {
            let slots = std::slice::from_raw_parts(table, *table / size_of::<usize>());
            assert!(slots.len() > 1 && slots.iter().all(|slot| *slot != 0));
        }
    }
    let none = null_mut();
    // What was not asked for refuses.
    assert_eq!(call!(ep, rma.read(none, 0, none, 0, 0, 0, none)), code(errno::ENOSYS));
    assert_eq!(call!(ep, ops.tx_ctx(0, null_mut(), null_mut(), none)), -errno::ENOSYS);
    assert!(call!(ep, ops.tx_size_left()) > 0);
    assert_eq!(close(ep), 0);
    let only = Wishes { caps: TAGGED, ..wishes }.opened();
    let ep = open_ep(&only).unwrap();
    assert_eq!(call!(ep, msg.send(none, 0, none, 0, none)), code(errno::ENOSYS));
    assert_eq!(close(ep), 0);
}

#[test]
fn flags_of_operations_can_be_changed() {
    let wishes = Wishes { tx_flags: DELIVERY_COMPLETE, ..Wishes::default() };
    let opened = wishes.opened();
    let selective = Wishes { cq_flags: SELECTIVE_COMPLETION, ..wishes };
    let ends = End::pair(&opened, &selective);
    let ep = ends[0].ep;
    let get = |direction: u64| {
        let mut flags = direction;
        (control(ep, GETOPSFLAG, &mut flags), flags)
    };
    let set = |mut flags: u64| control(ep, SETOPSFLAG, &mut flags);
    assert_eq!((get(SEND), get(RECV)), ((0, DELIVERY_COMPLETE), (0, 0)));
    for neither in [0, SEND | RECV] {
        assert_eq!((get(neither), set(neither)), ((-errno::EINVAL, neither), -errno::EINVAL));
    }
    assert_eq!(set(SEND | PEEK), -errno::EBADFLAGS);
    assert_eq!(control(ep, GETOPSFLAG, null_mut::<u64>()), -errno::EINVAL);
    let mut flags = SEND;
    assert_eq!(control(ends[0].cq, GETOPSFLAG, &mut flags), -errno::ENOSYS);
    assert_eq!(control(ends[0].cq, SETOPSFLAG, &mut flags), -errno::ENOSYS);
    // Silent at first, then told: the second message is the first that is heard of.
    assert_eq!(until_taken(&ends, || tsend(&ends[0], &[1], 0, 1)), 0);
    assert_eq!(set(SEND | COMPLETION), 0);
    assert_eq!(get(SEND), (0, COMPLETION));
    assert_eq!(until_taken(&ends, || tsend(&ends[0], &[2], 0, 2)), 0);
    assert_eq!(next(&ends[0], &ends).0.op_context as usize, 2);
    ends.into_iter().for_each(End::close);
}

#[test]
fn options_and_names() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ep = open_ep(&opened).unwrap();
    let (mut value, mut room) = (0usize, 8usize);
    // SAFETY: the endpoint is open, and there is as much room as is said.
    unsafe {
        let (ops, cm) = (*(*ep).ops, *(*ep).cm);
        let (at, place) = (fid(ep), (&raw mut value).cast::<c_void>());
        let get = |level, option, room| ops.getopt.unwrap()(at, level, option, place, room);
        assert_eq!(get(OPT_ENDPOINT, OPT_MIN_MULTI_RECV, &mut room), 0);
        assert_eq!(get(OPT_ENDPOINT, OPT_CM_DATA_SIZE, &mut room), 0);
        assert_eq!(get(OPT_ENDPOINT, OPT_CM_DATA_SIZE, &mut 4), -errno::ETOOSMALL);
        assert_eq!(get(OPT_ENDPOINT, 99, &mut room), -errno::ENOPROTOOPT);
        assert_eq!(get(1, OPT_MIN_MULTI_RECV, &mut room), -errno::ENOPROTOOPT);
        let set = |option, len: usize| {
            ops.setopt.unwrap()(at, OPT_ENDPOINT, option, (&raw const len).cast(), len)
        };
        assert_eq!((set(OPT_MIN_MULTI_RECV, 8), set(OPT_MIN_MULTI_RECV, 4)), (0, -errno::EINVAL));
        assert_eq!(set(OPT_CM_DATA_SIZE, 8), -errno::ENOPROTOOPT);
        let mut own = name(ep);
        let mut short = 10;
        let getname = cm.getname.unwrap();
        assert_eq!(getname(at, own.as_mut_ptr().cast(), &mut short), -errno::ETOOSMALL);
        assert_eq!((short, getname(at, null_mut(), null_mut())), (64, -errno::EINVAL));
        let mut other = own;
        other[20] ^= 1;
        let setname = cm.setname.unwrap();
        assert_eq!(setname(at, own.as_mut_ptr().cast(), 64), 0);
        assert_eq!(setname(at, other.as_mut_ptr().cast(), 64), -errno::EADDRNOTAVAIL);
        assert_eq!(setname(at, other.as_mut_ptr().cast(), 9), -errno::EINVAL);
    }
    assert_eq!(close(ep), 0);
}

#[test]
fn wrong_arguments_are_an_error_code() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (ep, none, bytes) = (ends[0].ep, null_mut(), [0u8; 5000]);
    let start = bytes.as_ptr().cast();
    assert_eq!(tsend(&ends[0], &[], 2, 0), code(errno::EINVAL));
    assert_eq!(tsend(&ends[0], &[], ADDR_UNSPEC, 0), code(errno::EINVAL));
    assert_eq!(trecv(&ends[0], &mut [], 2, 0), code(errno::EINVAL));
    assert_eq!(call!(ep, tagged.inject(start, 5000, 0, 1)), code(errno::EMSGSIZE));
    assert_eq!(call!(ep, msg.inject(start, 5000, 0)), code(errno::EMSGSIZE));
    assert_eq!(call!(ep, msg.send(start, usize::MAX, none, 0, none)), code(errno::EMSGSIZE));
    let iov = [Iovec { iov_base: null_mut(), iov_len: 0 }; 9]
        .map(|_| Iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: 8 });
    assert_eq!(call!(ep, msg.sendv(iov.as_ptr(), null_mut(), 9, 0, none)), code(errno::EINVAL));
    assert_eq!(call!(ep, msg.sendmsg(null(), 0)), code(errno::EINVAL));
    // Not a message without bytes: MPI_BOTTOM comes this way, when an MPI has lost where it lies.
    let nowhere = Iovec { iov_base: null_mut(), iov_len: 8 };
    assert_eq!(call!(ep, msg.send(null_mut(), 8, none, 0, none)), code(errno::EINVAL));
    assert_eq!(call!(ep, msg.inject(null_mut(), 8, 0)), code(errno::EINVAL));
    assert_eq!(call!(ep, msg.sendv(&nowhere, null_mut(), 1, 0, none)), code(errno::EINVAL));
    assert_eq!(call!(ep, msg.recv(null_mut(), 8, none, 0, none)), code(errno::EINVAL));
    assert_eq!(call!(ep, msg.recv(null_mut(), 0, none, 0, none)), 0);
    let msg = Msg { msg_iov: &iov[0], iov_count: 1, addr: 0, ..blank() };
    assert_eq!(call!(ep, msg.sendmsg(&msg, TRIGGER)), code(errno::EBADFLAGS));
    assert_eq!(call!(ep, msg.recvmsg(&msg, INJECT)), code(errno::EBADFLAGS));
    let (mut ep, info) = (null_mut(), opened.infos.0);
    let domain = opened.domain;
    assert_eq!(call!(domain, ops.endpoint(null_mut(), &mut ep, none)), -errno::EINVAL);
    assert_eq!(call!(domain, ops.endpoint(info, null_mut(), none)), -errno::EINVAL);
    let mut other = opened.infos.get().unwrap();
    other.ep().r#type = EP_MSG;
    assert_eq!(call!(domain, ops.endpoint(other.0, &mut ep, none)), -errno::EINVAL);
    ends.into_iter().for_each(End::close);
}

#[test]
fn operations_are_told_of_as_the_program_chooses() {
    let wishes = Wishes { cq_flags: SELECTIVE_COMPLETION, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (mut into, from) = ([0; 8], [5; 8]);
    // Of queues there are those it was enabled with.
    assert_eq!(bind(ends[0].ep, ends[1].cq, SEND), -errno::EINVAL);
    assert_eq!(trecv(&ends[1], &mut into, ADDR_UNSPEC, 1), 0);
    assert_eq!(until_taken(&ends, || tsend(&ends[0], &from, 0, 2)), 0);
    loop {
        ends.iter().for_each(give_time);
        // The provider writes it meanwhile.
        if std::hint::black_box(&into) == &from {
            break;
        }
    }
    assert!(ends[0].read().is_err() && ends[1].read().is_err());
    let iov = Iovec { iov_base: into.as_mut_ptr().cast(), iov_len: 8 };
    let msg = MsgTagged { msg_iov: &iov, iov_count: 1, tag: 7, ..blank() };
    assert_eq!(call!(ends[1].ep, tagged.recvmsg(&msg, COMPLETION)), 0);
    assert_eq!(until_taken(&ends, || call!(ends[0].ep, tagged.sendmsg(&msg, COMPLETION))), 0);
    assert_eq!(next(&ends[1], &ends).0.flags, TAGGED | RECV);
    assert_eq!(next(&ends[0], &ends).0.flags, TAGGED | SEND);
    ends.into_iter().for_each(End::close);
}

#[test]
fn counters_count_operations_without_a_completion() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let [sent, received] = [0, 1].map(|_| open_cntr(&opened, WAIT_NONE));
    let (ep, av) = (open_ep(&opened).unwrap(), open_av(&opened, 0));
    let cq = open_cq(&opened, |_| ()).unwrap();
    assert_eq!(bind(ep, cq, SEND | RECV | SELECTIVE_COMPLETION), 0);
    assert_eq!(
        (bind(ep, sent, SEND | WRITE), bind(ep, received, RECV), bind(ep, av, 0)),
        (0, 0, 0)
    );
    assert_eq!(bind(ep, received, RECV), -errno::EINVAL);
    assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
    // Some programs bind one more when they know what for.
    let late = open_cntr(&opened, WAIT_NONE);
    assert_eq!((bind(ep, late, READ), bind(ep, late, READ)), (0, -errno::EINVAL));
    assert_eq!((bind(ep, late, 0), close(late)), (-errno::EINVAL, -errno::EBUSY));
    let end = End { ep, cq, av };
    end.insert(&[name(ep)]);
    let mut into = [0; 8];
    for _ in 0..10 {
        assert_eq!(trecv(&end, &mut into, ADDR_UNSPEC, 1), 0);
        while call!(ep, tagged.inject([1u8; 8].as_ptr().cast(), 8, 0, 7)) != 0 {}
    }
    while call!(received, ops.read()) < 10 {}
    assert_eq!((call!(sent, ops.read()), call!(sent, ops.readerr())), (10, 0));
    assert_eq!(trecv(&end, &mut into[..4], ADDR_UNSPEC, 1), 0);
    while call!(ep, tagged.inject([1u8; 8].as_ptr().cast(), 8, 0, 7)) != 0 {}
    while call!(received, ops.readerr()) == 0 {}
    assert_eq!(end.failure().err, errno::ETRUNC);
    end.close();
    assert_eq!((close(sent), close(received), close(late)), (0, 0, 0));
}

#[test]
fn delivery_is_told_when_it_has_happened() {
    let wishes = Wishes { tx_flags: DELIVERY_COMPLETE, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let mut into = vec![0; 3000];
    for len in [8, 3000] {
        let from = vec![9; len];
        assert_eq!(until_taken(&ends, || tsend(&ends[0], &from, 0, 2)), 0);
        (0..1000).for_each(|_| ends.iter().for_each(give_time));
        assert!(ends[0].read().is_err(), "nobody has received it");
        assert_eq!(trecv(&ends[1], &mut into[..len], 0, 1), 0);
        assert_eq!(next(&ends[0], &ends).0.op_context as usize, 2);
        assert_eq!(next(&ends[1], &ends).0.len, len);
    }
    ends.into_iter().for_each(End::close);
}

#[test]
fn a_directed_receive_takes_only_messages_of_its_source() {
    for (caps, is_directed) in [(TAGGED | DIRECTED_RECV, true), (TAGGED, false)] {
        let wishes = Wishes { caps, ..Wishes::default() };
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let mut rooms = [[0; 8]; 2];
        // Its own first, then the other's; it is the other who sends.
        for (from, room) in rooms.iter_mut().enumerate() {
            assert_eq!(trecv(&ends[1], room, 1 - from as u64, from), 0);
        }
        assert_eq!(until_taken(&ends, || tsend(&ends[0], &[3; 8], 0, 2)), 0);
        let (told, source) = next(&ends[1], &ends);
        assert_eq!((told.op_context as usize, source), (usize::from(is_directed), 0));
        ends.into_iter().for_each(End::close);
    }
}

#[test]
fn removing_a_peer_ends_operations_under_way_with_it() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (long, mut into) = (vec![1; 100_000], [0; 8]);
    assert_eq!(until_taken(&ends, || tsend(&ends[0], &long, 0, 2)), 0);
    assert_eq!(trecv(&ends[0], &mut into, 0, 3), 0);
    assert_eq!(call!(ends[0].av, ops.remove(&mut 0, 1, 0)), 0);
    let mut failed = [0, 1].map(|_| next_failure(&ends[0], &ends));
    failed.sort_by_key(|failure| failure.op_context as usize);
    let told = failed.map(|failure| (failure.op_context as usize, failure.err));
    assert_eq!(told, [(2, errno::ENOTCONN), (3, errno::ENOTCONN)]);
    assert_eq!(tsend(&ends[0], &[], 0, 2), code(errno::EINVAL));
    ends.into_iter().for_each(End::close);
}

#[test]
fn a_peer_that_has_gone_is_an_error() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let [near, far] = End::pair(&opened, &wishes);
    let mut into = [0; 8];
    let ends = [near, far];
    assert_eq!(until_taken(&ends, || tsend(&ends[0], &[1], 0, 2)), 0);
    let [near, far] = ends;
    assert_eq!(next(&near, &[]).0.op_context as usize, 2);
    assert_eq!(trecv(&near, &mut into, 0, 3), 0);
    far.close();
    let failure = next_failure(&near, &[]);
    assert_eq!((failure.op_context as usize, failure.err), (3, errno::ENOTCONN));
    let words = call!(near.cq, ops.strerror(failure.prov_errno, null(), null_mut(), 0));
    // SAFETY: it has an end.
    let words = unsafe { CStr::from_ptr(words) }.to_string_lossy();
    assert!(words.starts_with("the endpoint ") && words.ends_with(": it has left"), "{words}");
    assert_eq!(tsend(&near, &[1], 0, 2), code(errno::ENOTCONN));
    near.close();
}

#[test]
fn clients_come_and_go() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let mut server = End::new(&opened, &wishes);
    for number in 0..5 {
        let mut into = [0; 64];
        assert_eq!(trecv(&server, &mut into, ADDR_UNSPEC, 1), 0);
        let client = End::new(&opened, &wishes);
        client.insert(&[name(server.ep)]);
        let ends = [server, client];
        assert_eq!(until_taken(&ends, || tsend(&ends[1], &name(ends[1].ep), 0, 2)), 0);
        assert_eq!(next(&ends[0], &ends).0.op_context as usize, 1);
        assert_eq!(into, name(ends[1].ep));
        assert_eq!(ends[0].insert(&[into]), [number]);
        assert_eq!(until_taken(&ends, || tsend(&ends[0], &[1; 8], number, 3)), 0);
        assert_eq!(trecv(&ends[1], &mut into, ADDR_UNSPEC, 4), 0);
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 2);
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 4);
        assert_eq!(next(&ends[0], &ends).0.op_context as usize, 3);
        let [kept, gone] = ends;
        gone.close();
        server = kept;
    }
    server.close();
}

#[test]
fn a_place_is_found_and_only_one_has_it() {
    let wishes = Wishes::default();
    let port = (20_000 + std::process::id() % 20_000).to_string();
    let caps = |info: &mut Info| info.caps = wishes.caps;
    let hints = Infos::hints_with(caps);
    let place = |flags| hints.get_at(API, Some("127.0.0.1"), Some(&port), flags).unwrap();
    let mut opened = Opened::new(&hints);
    opened.infos = place(SOURCE);
    let server = End::new(&opened, &wishes);
    assert_eq!(open_ep(&opened), Err(-errno::EADDRINUSE));
    let to = place(0);
    opened.infos = hints.get().unwrap();
    let client = End::new(&opened, &wishes);
    let mut address = [0; 64];
    // SAFETY: the address is as long as is said.
    unsafe { std::ptr::copy_nonoverlapping(to.info().dest_addr.cast(), address.as_mut_ptr(), 64) };
    let mut nobody = address;
    nobody[4] ^= 0x80;
    let mut elsewhere = address;
    elsewhere[20..24].copy_from_slice(&[192, 0, 2, 1]);
    assert_eq!(client.insert(&[address, nobody, elsewhere]), [0, 1, 2]);
    let ends = [server, client];
    assert_eq!(until_taken(&ends, || tsend(&ends[1], &[7], 0, 2)), 0);
    assert_eq!(tsend(&ends[1], &[7], 1, 2), code(errno::ECONNREFUSED));
    assert_eq!(tsend(&ends[1], &[7], 2, 2), code(errno::EHOSTUNREACH));
    let mut into = [0];
    assert_eq!(trecv(&ends[0], &mut into, ADDR_UNSPEC, 1), 0);
    assert_eq!(next(&ends[0], &ends).1, ADDR_NOTAVAIL);
    assert_eq!(into, [7]);
    ends.into_iter().for_each(End::close);
    let again = place(SOURCE);
    opened.infos = again;
    assert_eq!(close(open_ep(&opened).unwrap()), 0);
}

#[test]
fn a_sleeper_wakes_when_a_message_comes() {
    for wait_obj in [WAIT_UNSPEC, WAIT_FD] {
        let wishes = Wishes { wait_obj, ..Wishes::default() };
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let mut into = [0; 8];
        // They know each other before one sleeps.
        assert_eq!(trecv(&ends[1], &mut into, 0, 1), 0);
        assert_eq!(until_taken(&ends, || tsend(&ends[0], &[1; 8], 0, 2)), 0);
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 1);
        assert_eq!(next(&ends[0], &ends).0.op_context as usize, 2);
        for round in 0..100u8 {
            assert_eq!(trecv(&ends[1], &mut into, 0, 1), 0);
            let sleeper = ends[1].cq as usize;
            let thread = std::thread::spawn(move || {
                let (cq, mut told): (_, Told) = (sleeper as *mut FidCq, blank());
                let place = (&raw mut told).cast();
                let read = call!(cq, ops.sread(place, 1, null(), 60_000));
                (read, told.op_context as usize)
            });
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            assert_eq!(until_taken(&ends[..1], || tsend(&ends[0], &[round; 8], 0, 2)), 0);
            assert_eq!(thread.join().unwrap(), (1, 1));
            assert_eq!(into, [round; 8]);
            assert_eq!(next(&ends[0], &[]).0.op_context as usize, 2);
        }
        ends.into_iter().for_each(End::close);
    }
}

/// The client sends a message to the server, which has its number for it: whose it was told to be.
fn ask(server: &End, client: &End, to_server: u64) -> u64 {
    let (mut into, ends) = ([0; 8], [server, client].map(|it| End { ..*it }));
    assert_eq!(trecv(server, &mut into, ADDR_UNSPEC, 1), 0);
    // It hears who calls at one of many polls. Each of the caller's is a look at its networks.
    let sent = || {
        (0..64).for_each(|_| give_time(server));
        tsend(client, b"question", to_server, 2)
    };
    assert_eq!(until_taken(&ends, sent), 0);
    next(client, &ends);
    let (_, source) = next(server, &ends);
    assert_eq!(&into, b"question");
    source
}

/// The server answers.
fn answer(server: &End, client: &End, to_client: u64) {
    let (mut into, ends) = ([0; 6], [server, client].map(|it| End { ..*it }));
    assert_eq!(trecv(client, &mut into, ADDR_UNSPEC, 1), 0);
    assert_eq!(until_taken(&ends, || tsend(server, b"answer", to_client, 2)), 0);
    next(server, &ends);
    next(client, &ends);
    assert_eq!(&into, b"answer");
}

// spec: ENV-40
#[test]
fn clients_one_after_the_other_are_served_and_numbers_stay_the_programs() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let (server, other) = (End::new(&opened, &wishes), End::new(&opened, &wishes));
    let there = [name(server.ep)];
    let to_other = server.insert(&[name(other.ep)])[0];
    assert_eq!(ask(&server, &other, other.insert(&there)[0]), to_other);
    answer(&server, &other, to_other);
    // It leaves, and the server's engine forgets it, as others come.
    assert_eq!(call!(other.av, ops.remove(&mut 0, 1, 0)), 0);
    let mut numbers = Vec::new();
    for _ in 0..1030 {
        let client = End::new(&opened, &wishes);
        let to_server = client.insert(&there)[0];
        // Programs learn who has asked from the question.
        ask(&server, &client, to_server);
        let number = server.insert(&[name(client.ep)])[0];
        answer(&server, &client, number);
        assert_eq!(ask(&server, &client, to_server), number);
        client.close();
        numbers.push(number);
    }
    assert_eq!(numbers, (1..=1030).collect::<Vec<_>>(), "nobody else has the number of one");
    // Of who calls, and of who is called.
    assert_eq!(ask(&server, &other, other.insert(&there)[0]), to_other, "it is known again");
    answer(&server, &other, to_other);
    for gone in [1, 600, 1030] {
        let failed = until_taken(&[End { ..server }], || tsend(&server, b"x", gone, 3));
        assert_eq!(failed, code(errno::ENOTCONN), "{gone} has gone");
    }
    [server, other].into_iter().for_each(End::close);
}

// spec: ENV-40
#[test]
fn more_addresses_than_an_endpoint_knows_others_can_be_inserted() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let [near, far] = [0, 1].map(|_| End::new(&opened, &wishes));
    let nobody = |at: usize| {
        let mut name = name(far.ep);
        let secret = &mut name[16..24];
        secret.iter_mut().zip(at.to_le_bytes()).for_each(|(byte, other)| *byte ^= other);
        name
    };
    let names: Vec<_> = (0..3000).map(nobody).collect();
    let numbers = near.insert(&names);
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
    let to_near = far.insert(&[name(near.ep)])[0];
    assert_eq!(ask(&near, &far, to_near), 0);
    answer(&near, &far, 0);
    [near, far].into_iter().for_each(End::close);
}
