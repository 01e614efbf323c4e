//! Peers that go, as programs hear of it.

mod common;

use ayre_ucp::abi::context::WorkerParams;
use ayre_ucp::abi::numbers::UCP_EP_CLOSE_FLAG_FORCE;
use ayre_ucp::abi::numbers::UCP_OP_ATTR_FIELD_FLAGS;
use ayre_ucp::abi::status::Status;
use common::*;
use std::ptr::null_mut;

/// A worker, and an endpoint to it that has been used.
fn peer(world: &World, losses: &Losses) -> (Pointer, Pointer) {
    let (params, mut worker): (WorkerParams, _) = (empty(), null_mut());
    // SAFETY: the structure is as its mask says.
    let made = unsafe { ucp_worker_create(world.contexts[1], &raw const params, &raw mut worker) };
    assert_eq!(made, Status::OK);
    let ep = losses.connect(world.workers[0], &address_of(worker));
    let sent = world.send_by(ep, &[1], 1);
    world.until(|| {
        // SAFETY: the worker is there.
        unsafe { ucp_worker_progress(worker) };
        world.has_ended(sent)
    });
    (worker, ep)
}

fn close(world: &World, ep: Pointer, flags: u32) -> Status {
    let mut param = How::new().param;
    (param.op_attr_mask, param.flags) = (UCP_OP_ATTR_FIELD_FLAGS, flags);
    // SAFETY: it is not used again.
    world.end(Begun::of(unsafe { ucp_ep_close_nbx(ep, &raw const param) })).0
}

/// The function is called once, from progress; then each call on the endpoint fails.
#[test]
fn the_end_of_a_peer_is_told_once() {
    let (world, losses) = (World::new(), Losses::default());
    let (worker, ep) = peer(&world, &losses);
    let (mut into, out) = ([0; 8], vec![1; 1 << 20]);
    let pending = world.send_by(ep, &out, 2);
    assert!(losses.all().is_empty());
    // SAFETY: it is not used again.
    unsafe { ucp_worker_destroy(worker) };
    world.until(|| !losses.all().is_empty());
    (0..1000).for_each(|_| world.progress());
    assert_eq!(losses.all(), [(ep, Status::CONNECTION_RESET)]);
    assert_eq!(world.end(pending).0, Status::CONNECTION_RESET);
    assert_eq!(world.send_by(ep, &[1], 1), Begun::Failed(Status::CONNECTION_RESET));
    assert_eq!(close(&world, ep, UCP_EP_CLOSE_FLAG_FORCE), Status::OK);
    // Others go on.
    let received = world.receive(1, &mut into, (3, u64::MAX), &How::new());
    assert_eq!(world.end(world.send(0, &[7; 8], 3, &How::new())).0, Status::OK);
    assert_eq!((world.end(received).0, into), (Status::OK, [7; 8]));
}

/// Each endpoint to that peer hears of it, but those that are closed before.
#[test]
fn closed_endpoints_hear_nothing() {
    let (world, losses, others) = (World::new(), Losses::default(), Losses::default());
    let (worker, ep) = peer(&world, &losses);
    let [second, third] =
        [&losses, &others].map(|to| to.connect(world.workers[0], &address_of(worker)));
    assert_eq!(close(&world, third, 0), Status::OK);
    // SAFETY: it is not used again.
    unsafe { ucp_worker_destroy(worker) };
    world.until(|| losses.all().len() == 2);
    let mut told: Vec<_> = losses.all().iter().map(|(ep, _)| *ep).collect();
    told.sort_unstable();
    let mut expected = [ep, second];
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert!(others.all().is_empty());
    for ep in expected {
        assert_eq!(close(&world, ep, UCP_EP_CLOSE_FLAG_FORCE), Status::OK);
    }
}
