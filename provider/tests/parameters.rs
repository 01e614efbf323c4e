//! Parameters that a user sets in the environment.

mod common;

use ayre_fi::abi::*;
use common::*;
use std::ptr::null_mut;

#[test]
fn the_size_of_queues_is_what_the_user_says() {
    // SAFETY: this is the only test of the process, and libfabric is not loaded yet.
    unsafe { std::env::set_var("FI_AYRE_CQ_SIZE", "77") };
    let opened = Opened::new(&Infos::hints());
    for (asked, given) in [(0, 77), (5, 5)] {
        let (mut attr, mut cq) = (CqAttr { size: asked, ..blank() }, null_mut());
        assert_eq!(call!(opened.domain, ops.cq_open(&mut attr, &mut cq, null_mut())), 0);
        assert_eq!((attr.size, close(cq)), (given, 0));
    }
}
