//! Objects: every slot of every table, the order of closing, and mistaken handles.

mod common;

use ayre_fi::abi::*;
use common::*;
use std::ptr::null_mut;

/// The words of a table after its size, all of them functions.
fn slots<T>(table: *const T) -> Vec<usize> {
    // SAFETY: a table is words, as many as its size says.
    unsafe {
        let words = table.cast::<usize>();
        let size = *words;
        assert_eq!(size, size_of::<T>());
        std::slice::from_raw_parts(words.add(1), size / size_of::<usize>() - 1).to_vec()
    }
}

#[test]
fn no_slot_is_empty() {
    for opened in Opened::of_each_kind() {
        let (cq, cntr) = (open_cq(&opened, |_| ()).unwrap(), open_cntr(&opened, WAIT_NONE));
        let (eq, av) = (open_eq(&opened, 0, WAIT_NONE), open_av(&opened, 0));
        // SAFETY: the objects are open.
        let tables = unsafe {
            [
                slots((*fid(opened.fabric)).ops),
                slots((*opened.fabric).ops),
                slots((*opened.domain).ops),
                slots((*opened.domain).mr),
                slots((*cq).ops),
                slots((*cntr).ops),
                slots((*eq).ops),
                slots((*av).ops),
            ]
        };
        for (at, table) in tables.iter().enumerate() {
            assert!(!table.is_empty() && table.iter().all(|slot| *slot != 0), "table {at}");
        }
        for status in [close(cq), close(cntr), close(eq), close(av)] {
            assert_eq!(status, 0);
        }
    }
}

#[test]
fn unsupported_calls_return_enosys() {
    let opened = &Opened::new(&Infos::hints());
    let (fabric, domain) = (opened.fabric, opened.domain);
    let info = opened.infos.0;
    let refused = -errno::ENOSYS;
    let (mut ep, mut pep, mut stx) = (null_mut(), null_mut(), null_mut());
    assert_eq!(call!(fabric, ops.passive_ep(info, &mut pep, null_mut())), refused);
    assert_eq!(call!(fabric, ops.domain2(info, &mut null_mut(), 1, null_mut())), refused);
    assert_eq!(call!(domain, ops.endpoint2(info, &mut ep, 1, null_mut())), refused);
    assert_eq!(call!(domain, ops.scalable_ep(info, &mut ep, null_mut())), refused);
    assert_eq!(call!(domain, ops.stx_ctx(null_mut(), &mut stx, null_mut())), refused);
    assert_eq!(call!(domain, ops.srx_ctx(null_mut(), &mut ep, null_mut())), refused);
    assert_eq!(call!(domain, ops.query_collective(0, null_mut(), 0)), refused);
    let mut table = null_mut();
    let open = call!(fid(domain), ops.ops_open(c"any".as_ptr(), 0, &mut table, null_mut()));
    assert_eq!(open, refused);
    let set = call!(fid(domain), ops.ops_set(c"any".as_ptr(), 0, null_mut(), null_mut()));
    assert_eq!(set, refused);
    assert_eq!(call!(fid(domain), ops.tostr(null_mut(), 0)), refused);
    assert_eq!(control(domain, ALIAS, &mut table), refused);
    assert_eq!(bind(fabric, domain, 0), refused);
}

#[test]
fn objects_in_use_cannot_be_closed() {
    for opened in Opened::of_each_kind() {
        let cq = open_cq(&opened, |_| ()).unwrap();
        assert_eq!(close(opened.domain), -errno::EBUSY);
        assert_eq!(close(opened.fabric), -errno::EBUSY);
        let eq = open_eq(&opened, 0, WAIT_NONE);
        let av = open_av(&opened, 0);
        assert_eq!(bind(av, eq, 0), 0);
        assert_eq!(close(eq), -errno::EBUSY);
        assert_eq!((close(av), close(eq), close(cq)), (0, 0, 0));
        assert_eq!(close(opened.domain), 0);
        let mut domain = null_mut();
        let status = call!(opened.fabric, ops.domain(opened.infos.0, &mut domain, null_mut()));
        assert_eq!((status, close(domain), close(opened.fabric)), (0, 0, 0));
        std::mem::forget(opened);
    }
}

#[test]
fn contexts_and_classes_are_in_the_heads() {
    let opened = Opened::new(&Infos::hints());
    let cq = open_cq(&opened, |_| ()).unwrap();
    // SAFETY: the objects are open.
    let (cq_head, domain_head) = unsafe { (*fid(cq), *fid(opened.domain)) };
    assert_eq!((cq_head.fclass, cq_head.context as usize), (CLASS_CQ, 0xc0));
    assert_eq!(domain_head.fclass, CLASS_DOMAIN);
    assert_eq!(close(cq), 0);
}

#[test]
fn a_mistaken_handle_is_an_error_code() {
    let opened = Opened::new(&Infos::hints());
    let cq = open_cq(&opened, |_| ()).unwrap();
    let cntr = open_cntr(&opened, WAIT_NONE);
    // SAFETY: the object is open.
    let table = unsafe { *(*fid(cq)).ops };
    // SAFETY: these functions look handles up.
    unsafe {
        assert_eq!(table.close.unwrap()(null_mut()), -errno::EINVAL);
        assert_eq!(table.bind.unwrap()(fid(cq), null_mut(), 0), -errno::EINVAL);
        assert_eq!(table.control.unwrap()(null_mut(), GETWAIT, null_mut()), -errno::EINVAL);
    }
    let av = open_av(&opened, 0);
    assert_eq!(bind(av, cntr, 0), -errno::EINVAL);
    assert_eq!(bind(opened.domain, cq, 0), -errno::EINVAL);
    assert_eq!(control(cq, GETWAIT, null_mut::<u8>()), -errno::EINVAL);
    assert_eq!((close(av), close(cq), close(cntr)), (0, 0, 0));
    // SAFETY: as above; a closed object is none.
    unsafe {
        assert_eq!(table.close.unwrap()(fid(cq)), -errno::EINVAL);
        assert_eq!(table.bind.unwrap()(fid(opened.domain), fid(cq), 0), -errno::EINVAL);
    }
}

#[test]
fn wrong_attributes_are_an_error_code() {
    let opened = Opened::new(&Infos::hints());
    let (fabric, domain) = (opened.fabric, opened.domain);
    let (invalid, bad_flags) = (-errno::EINVAL, -errno::EBADFLAGS);
    let mut place = null_mut();
    assert_eq!(call!(domain, ops.cq_open(null_mut(), &mut place, null_mut())), invalid);
    assert_eq!(call!(domain, ops.cq_open(&mut blank(), null_mut(), null_mut())), invalid);
    assert_eq!(open_cq(&opened, |attr| attr.format = 9), Err(invalid));
    assert_eq!(open_cq(&opened, |attr| attr.flags = 1), Err(bad_flags));
    assert_eq!(open_cq(&opened, |attr| attr.wait_obj = WAIT_MUTEX_COND), Err(-errno::ENOSYS));
    assert_eq!(open_cq(&opened, |attr| attr.wait_obj = WAIT_SET), Err(invalid));
    let mut cntr = null_mut();
    let mut wrong = CntrAttr { events: 7, ..blank() };
    assert_eq!(call!(domain, ops.cntr_open(&mut wrong, &mut cntr, null_mut())), invalid);
    let mut wrong = CntrAttr { flags: 7, ..blank() };
    assert_eq!(call!(domain, ops.cntr_open(&mut wrong, &mut cntr, null_mut())), bad_flags);
    let mut av = null_mut();
    let mut wrong = AvAttr { r#type: 7, ..blank() };
    assert_eq!(call!(domain, ops.av_open(&mut wrong, &mut av, null_mut())), invalid);
    let mut wrong = AvAttr { name: c"shared".as_ptr(), ..blank() };
    assert_eq!(call!(domain, ops.av_open(&mut wrong, &mut av, null_mut())), -errno::ENOSYS);
    let mut eq = null_mut();
    let mut wrong = EqAttr { flags: 1, ..blank() };
    assert_eq!(call!(fabric, ops.eq_open(&mut wrong, &mut eq, null_mut())), bad_flags);
    let mut wait = null_mut();
    assert_eq!(call!(fabric, ops.wait_open(&mut blank(), &mut wait)), invalid);
    let mut poll = null_mut();
    let mut wrong = PollAttr { flags: 1 };
    assert_eq!(call!(domain, ops.poll_open(&mut wrong, &mut poll)), bad_flags);
    assert_eq!(call!(fabric, ops.domain(null_mut(), &mut null_mut(), null_mut())), invalid);
    assert_eq!(call!(fabric, ops.trywait(null_mut(), -1)), invalid);
    assert_eq!(call!(fabric, ops.trywait(null_mut(), 1)), invalid);
}

#[test]
fn a_fabric_is_opened_by_name() {
    let mut infos = Infos::hints().get().unwrap();
    let attr = infos.fabric();
    // SAFETY: the name is the info's, which frees what is there.
    unsafe {
        libc::free(attr.name.cast());
        attr.name = libc::strdup(c"another".as_ptr());
    }
    assert_eq!(try_fabric(attr), Err(-errno::ENODATA));
}
