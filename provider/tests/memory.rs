//! Address vectors and registered memory, through libfabric's tables.

mod common;

use ayre_fi::abi::*;
use common::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

type Address = [u8; 64];

fn insert_service(av: *mut FidAv, node: &CStr, service: &CStr, number: &mut u64) -> i32 {
    call!(av, ops.insertsvc(node.as_ptr(), service.as_ptr(), number, 0, null_mut()))
}

fn lookup(av: *mut FidAv, number: u64) -> Option<Address> {
    let (mut address, mut room) = ([0u8; 64], 64);
    let status = call!(av, ops.lookup(number, address.as_mut_ptr().cast(), &mut room));
    assert!(status == 0 || status == -errno::EINVAL);
    assert!(room == 64);
    (status == 0).then_some(address)
}

#[test]
fn inserted_addresses_are_looked_up_equal() {
    for opened in Opened::of_each_kind() {
        let av = open_av(&opened, 0);
        let mut number = 9;
        assert_eq!(insert_service(av, c"127.0.0.1", c"5000", &mut number), 1);
        assert_eq!(number, 0);
        let first = lookup(av, 0).unwrap();
        let mut both = [first, first];
        both[1][5] += 1;
        let (mut numbers, place) = ([9; 2], both.as_ptr().cast::<c_void>());
        let insert = call!(av, ops.insert(place, 2, numbers.as_mut_ptr(), 0, null_mut()));
        assert_eq!((insert, numbers), (2, [1, 2]));
        assert_eq!(lookup(av, 2), Some(both[1]));
        assert_eq!(call!(av, ops.insert(place, 1, null_mut(), MORE, null_mut())), 1);
        assert_eq!(call!(av, ops.remove(numbers.as_mut_ptr(), 2, 0)), 0);
        assert_eq!(call!(av, ops.remove(numbers.as_mut_ptr(), 2, 0)), -errno::EINVAL);
        assert_eq!(call!(av, ops.remove(numbers.as_mut_ptr(), 1, 1)), -errno::EBADFLAGS);
        assert_eq!(lookup(av, 1), None);
        assert_eq!(call!(av, ops.insert(place, 1, numbers.as_mut_ptr(), 0, null_mut())), 1);
        assert_eq!(numbers[0], 1);
        assert_eq!(close(av), 0);
    }
}

#[test]
fn an_invalid_address_is_not_inserted() {
    let opened = Opened::new(&Infos::hints());
    let av = open_av(&opened, 0);
    let mut number = 0;
    assert_eq!(insert_service(av, c"127.0.0.1", c"5000", &mut number), 1);
    let wrong = [lookup(av, 0).unwrap(), [7; 64]];
    let (mut numbers, mut codes) = ([0; 2], [9; 2]);
    let (place, context) = (wrong.as_ptr().cast::<c_void>(), codes.as_mut_ptr().cast());
    let insert = call!(av, ops.insert(place, 2, numbers.as_mut_ptr(), SYNC_ERR, context));
    assert_eq!((insert, numbers, codes), (1, [1, ADDR_NOTAVAIL], [0, errno::EINVAL]));
    let insert = |place, count, flags, context| {
        call!(av, ops.insert(place, count, null_mut(), flags, context))
    };
    assert_eq!(insert(place, 2, SYNC_ERR, null_mut()), -errno::EINVAL);
    assert_eq!(insert(place, 2, AV_USER_ID, null_mut()), -errno::EBADFLAGS);
    assert_eq!(insert(null(), 2, 0, null_mut()), -errno::EINVAL);
    assert_eq!(insert(place, usize::MAX, 0, null_mut()), -errno::EINVAL);
    assert_eq!(insert(null(), 0, 0, null_mut()), 0);
    assert_eq!(insert_service(av, c"no host", c"5000", &mut number), 0);
    assert_eq!(number, ADDR_NOTAVAIL);
    let svc = call!(av, ops.insertsvc(null(), null(), null_mut(), 0, null_mut()));
    assert_eq!(svc, -errno::EINVAL);
    let sym = call!(av, ops.insertsym(null(), 1, null(), 1, null_mut(), 0, null_mut()));
    assert_eq!(sym, -errno::EINVAL);
    assert_eq!(call!(av, ops.lookup(0, null_mut(), null_mut())), -errno::EINVAL);
    assert_eq!(close(av), 0);
}

#[test]
fn ranges_are_inserted_in_order() {
    let opened = Opened::new(&Infos::hints());
    let av = open_av(&opened, SYMMETRIC);
    let (node, service, mut numbers) = (c"10.1.1.1".as_ptr(), c"5000".as_ptr(), [9; 6]);
    let place = numbers.as_mut_ptr();
    assert_eq!(call!(av, ops.insertsym(node, 2, service, 3, place, 0, null_mut())), 6);
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    let mut text = [0 as c_char; 64];
    let mut room = text.len();
    let last = lookup(av, 5).unwrap();
    call!(av, ops.straddr(last.as_ptr().cast(), text.as_mut_ptr(), &mut room));
    // SAFETY: it was written with its end.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    assert_eq!((text, room), (c"fi_ayre://10.1.1.2:5002", 24));
    let mut short = [0 as c_char; 8];
    let mut room = short.len();
    call!(av, ops.straddr(last.as_ptr().cast(), short.as_mut_ptr(), &mut room));
    assert_eq!((short[7], room), (0, 24));
    assert_eq!(close(av), 0);
}

#[test]
fn an_asynchronous_vector_reports_to_its_queue() {
    let opened = Opened::new(&Infos::hints());
    let (av, eq) = (open_av(&opened, COMPLETION), open_eq(&opened, 0, WAIT_NONE));
    let wrong = [[7u8; 64]; 2];
    let context = 0x77 as *mut c_void;
    let insert = || {
        let place = wrong.as_ptr().cast();
        call!(av, ops.insert(place, 2, null_mut(), 0, context))
    };
    assert_eq!(insert(), -errno::ENOEQ);
    assert_eq!(bind(av, eq, 5), -errno::EBADFLAGS);
    assert_eq!((bind(av, eq, 0), insert()), (0, 0));
    let (mut event, mut entry) = (0, blank::<EqEntry>());
    let place = (&raw mut entry).cast::<c_void>();
    let size = size_of::<EqEntry>();
    assert_eq!(call!(eq, ops.read(&mut event, place, size, 0)), -(errno::EAVAIL as isize));
    for index in 0..2 {
        let mut failure = blank::<EqErrEntry>();
        let count = call!(eq, ops.readerr(&mut failure, 0));
        assert_eq!(count, size_of::<EqErrEntry>() as isize);
        assert_eq!((failure.fid, failure.context), (fid(av), context));
        assert_eq!((failure.data, failure.err), (index, errno::EINVAL));
    }
    assert_eq!(call!(eq, ops.read(&mut event, place, size, 0)), size as isize);
    assert_eq!((event, entry.fid, entry.context, entry.data), (AV_COMPLETE, fid(av), context, 0));
    assert_eq!((close(av), close(eq)), (0, 0));
}

/// The key, and what the first byte is called.
fn raw(mr: *mut FidMr) -> (u64, u64) {
    let (mut base, mut key, mut size) = (0, [0u8; 8], 8);
    let (base_addr, raw_key) = (&raw mut base, key.as_mut_ptr());
    let mut attr = MrRawAttr { flags: 0, base_addr, raw_key, key_size: &mut size };
    assert_eq!((control(mr, GET_RAW_MR, &mut attr), size), (0, 8));
    (u64::from_be_bytes(key), base)
}

#[test]
fn addressing_and_keys_are_as_asked_for() {
    let memory = [0u8; 64];
    for mode in [0, MR_VIRT_ADDR, MR_PROV_KEY, MR_VIRT_ADDR | MR_PROV_KEY] {
        let mut hints = Infos::hints();
        hints.domain().mr_mode = mode;
        let opened = Opened::new(&hints);
        let mr = register(&opened, &memory, REMOTE_WRITE, 1234).unwrap();
        // SAFETY: it is open.
        let key = unsafe { (*mr).key };
        assert_eq!(key == 1234, mode & MR_PROV_KEY == 0);
        let base = if mode & MR_VIRT_ADDR == 0 { 0 } else { memory.as_ptr() as u64 };
        assert_eq!(raw(mr), (key, base));
        let second = register(&opened, &memory, REMOTE_WRITE, 1234);
        match mode & MR_PROV_KEY {
            0 => assert_eq!(second, Err(-errno::ENOKEY)),
            _ => assert_eq!(close(second.unwrap()), 0),
        }
        assert_eq!(close(mr), 0);
        let again = register(&opened, &memory, REMOTE_WRITE, 1234).unwrap();
        assert_eq!(close(again), 0);
    }
}

#[test]
fn all_three_ways_of_registering_check_their_arguments() {
    for opened in Opened::of_each_kind() {
        let (memory, domain) = ([0u8; 64], fid(opened.domain));
        let at = memory.as_ptr().cast_mut().cast();
        let iov = [libc::iovec { iov_base: at, iov_len: 64 }; 17];
        let mut mr = null_mut();
        // SAFETY: the table is the domain's, and the memory is there.
        unsafe {
            let table = *(*opened.domain).mr;
            let regv = |count, offset, access, flags, mr: &mut *mut FidMr| {
                let iov = iov.as_ptr();
                let regv = table.regv.unwrap();
                regv(domain, iov, count, access, offset, 1, flags, mr, null_mut())
            };
            assert_eq!(regv(0, 0, READ, 0, &mut mr), -errno::EINVAL);
            assert_eq!(regv(17, 0, READ, 0, &mut mr), -errno::EINVAL);
            assert_eq!(regv(2, 1, READ, 0, &mut mr), -errno::EINVAL);
            assert_eq!(regv(2, 0, 1, 0, &mut mr), -errno::EINVAL);
            assert_eq!(regv(2, 0, READ, 1, &mut mr), -errno::EBADFLAGS);
            assert_eq!(regv(2, 0, READ, 0, &mut mr), 0);
            assert_eq!(close(mr), 0);
            let regattr = table.regattr.unwrap();
            let mut attr = MrAttr { mr_iov: iov.as_ptr(), iov_count: 1, ..blank() };
            assert_eq!(regattr(domain, null(), 0, &mut mr), -errno::EINVAL);
            assert_eq!(regattr(domain, &attr, 0, null_mut()), -errno::EINVAL);
            assert_eq!(regattr(null_mut(), &attr, 0, &mut mr), -errno::EINVAL);
            attr.iface = 1;
            assert_eq!(regattr(domain, &attr, 0, &mut mr), -errno::ENOSYS);
            attr.iface = 0;
            attr.context = 0x99 as *mut c_void;
            assert_eq!(regattr(domain, &attr, RMA_EVENT, &mut mr), 0);
            assert_eq!((*fid(mr)).context, attr.context);
            assert_eq!(control(mr, ENABLE, null_mut::<u8>()), 0);
            assert_eq!(close(mr), 0);
        }
    }
}

#[test]
fn memory_counts_with_a_counter_of_its_domain() {
    let (opened, other) = (Opened::new(&Infos::hints()), Opened::new(&Infos::hints()));
    let mr = register(&opened, &[0; 8], REMOTE_WRITE, 1).unwrap();
    let (ours, theirs) = (open_cntr(&opened, WAIT_NONE), open_cntr(&other, WAIT_NONE));
    assert_eq!(bind(mr, ours, 0), -errno::EBADFLAGS);
    assert_eq!(bind(mr, theirs, REMOTE_WRITE), -errno::EDOMAIN);
    assert_eq!(bind(mr, ours, REMOTE_WRITE), 0);
    assert_eq!(close(ours), -errno::EBUSY);
    assert_eq!((close(mr), close(ours), close(theirs)), (0, 0, 0));
}

#[test]
fn keys_of_others_are_mapped() {
    let opened = Opened::new(&Infos::hints());
    let (mut raw_key, mut key) = (77u64.to_be_bytes(), 0);
    let raw_key = raw_key.as_mut_ptr();
    let mut map = MrMapRaw { flags: 0, base_addr: 0, raw_key, key_size: 8, key: &mut key };
    assert_eq!((control(opened.domain, MAP_RAW_MR, &mut map), key), (0, 77));
    assert_eq!(control(opened.domain, UNMAP_KEY, &mut key), 0);
    map.key_size = 7;
    assert_eq!(control(opened.domain, MAP_RAW_MR, &mut map), -errno::EINVAL);
    // Each is asked of its own kind only.
    let mr = register(&opened, &[0; 8], REMOTE_WRITE, 1).unwrap();
    assert_eq!(
        (control(mr, REFRESH, &mut key), control(mr, REFRESH, null_mut::<u8>())),
        (0, -errno::EINVAL)
    );
    assert_eq!(control(opened.domain, REFRESH, &mut key), -errno::ENOSYS);
    assert_eq!(control(mr, MAP_RAW_MR, &mut map), -errno::ENOSYS);
    assert_eq!((control(mr, UNMAP_KEY, &mut key), close(mr)), (-errno::ENOSYS, 0));
}

#[test]
fn registrations_report_where_the_domain_says() {
    let opened = Opened::new(&Infos::hints());
    let eq = open_eq(&opened, 0, WAIT_NONE);
    assert_eq!(bind(opened.domain, eq, REG_MR), 0);
    assert_eq!(bind(opened.domain, eq, REG_MR), -errno::EINVAL);
    assert_eq!(bind(opened.domain, eq, 1), -errno::EBADFLAGS);
    let mr = register(&opened, &[0; 8], REMOTE_WRITE, 1).unwrap();
    let (mut event, mut entry) = (0, blank::<EqEntry>());
    let place = (&raw mut entry).cast::<c_void>();
    let count = call!(eq, ops.read(&mut event, place, size_of::<EqEntry>(), 0));
    assert_eq!((count as usize, event), (size_of::<EqEntry>(), MR_COMPLETE));
    assert_eq!(entry.fid, fid(mr));
    assert_eq!((close(mr), close(eq)), (0, -errno::EBUSY));
    assert_eq!((close(opened.domain), close(eq), close(opened.fabric)), (0, 0, 0));
    std::mem::forget(opened);
}
