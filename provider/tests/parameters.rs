//! Parameters that a user sets in the environment.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ptr::null_mut;

#[test]
fn the_user_says_how_large_queues_are_and_how_much_memory_endpoints_may_take() {
    // SAFETY: this is the only test of the process, and libfabric is not loaded yet.
    unsafe {
        std::env::set_var("FI_AYRE_CQ_SIZE", "77");
        std::env::set_var("FI_AYRE_MEMORY", "1M");
    }
    let wishes = Wishes::default();
    let opened = wishes.opened();
    // Half of the memory, and 512 bytes for each: one more is no matter of waiting.
    let end = End::new(&opened, &wishes);
    let mut byte = 0_u8;
    let mut post = || {
        let place = std::ptr::from_mut(&mut byte).cast();
        call!(end.ep, tagged.recv(place, 1, null_mut(), ADDR_UNSPEC, 7, 0, null_mut()))
    };
    assert!((0..1024).all(|_| post() == 0));
    assert_eq!(post(), -(errno::ENOMEM as isize));
    end.close();
    for (asked, given) in [(0, 77), (5, 5)] {
        let (mut attr, mut cq) = (CqAttr { size: asked, ..blank() }, null_mut());
        assert_eq!(call!(opened.domain, ops.cq_open(&mut attr, &mut cq, null_mut())), 0);
        assert_eq!((attr.size, close(cq)), (given, 0));
    }
}
