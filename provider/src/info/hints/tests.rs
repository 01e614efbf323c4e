//! Every hint, met and unmet, against an offer of everything.

use super::*;
use crate::info::offer::{CAPABILITIES, KINDS};

const API: u32 = version(1, 17);

/// Capabilities that every program gets.
const REACH: u64 = LOCAL_COMM | REMOTE_COMM;

fn full() -> Offer {
    Offer::of(CAPABILITIES, true)
}

fn none() -> Hints<'static> {
    Hints {
        caps: 0,
        addr_format: 0,
        source: &[],
        destination: &[],
        tx: None,
        rx: None,
        ep: None,
        domain: None,
        domain_name: None,
        fabric: None,
        fabric_name: None,
    }
}

/// Attributes without a wish, as a program gets them from `fi_allocinfo`.
fn blank() -> (TxAttr, RxAttr, EpAttr, DomainAttr) {
    let answer = Offer::of(&[], false).answer(&KINDS[0], API);
    let tx = TxAttr { caps: 0, ..answer.tx };
    let ep = EpAttr { r#type: 0, protocol: 0, protocol_version: 0, ..answer.ep };
    let domain = DomainAttr {
        threading: 0,
        control_progress: 0,
        data_progress: 0,
        resource_mgmt: 0,
        av_type: 0,
        mr_key_size: 0,
        cq_cnt: 0,
        cntr_cnt: 0,
        mr_iov_limit: 0,
        max_err_data: 0,
        mr_cnt: 0,
        ..answer.domain
    };
    (tx, answer.rx, ep, domain)
}

fn ask(hints: &Hints<'_>) -> Met<Answer> {
    hints.answer(&full(), &KINDS[0], API)
}

fn refused(hints: &Hints<'_>) -> &'static str {
    ask(hints).map(|_| ()).unwrap_err().what
}

#[test]
fn without_wishes_everything_is_offered() {
    let answer = ask(&none()).unwrap();
    assert_eq!(answer.caps, full().caps);
    assert_eq!(answer.tx.caps | answer.rx.caps | answer.domain.caps, answer.caps);
    assert_eq!(answer.domain.mr_mode, 0);
    assert_eq!(answer.domain.threading, THREAD_SAFE);
}

#[test]
fn capabilities_come_with_their_ways() {
    let answer = ask(&Hints { caps: TAGGED, ..none() }).unwrap();
    assert_eq!(answer.caps, TAGGED | SEND | RECV | REACH);
    let answer = ask(&Hints { caps: MSG | SEND | RMA, ..none() }).unwrap();
    let memory = READ | WRITE | REMOTE_READ | REMOTE_WRITE;
    assert_eq!(answer.caps, MSG | SEND | RMA | memory | REACH);
    assert_eq!(answer.rx.caps & SEND, 0);
    for other in [COLLECTIVE, HMEM, MULTICAST, 1 << 60] {
        assert_eq!(refused(&Hints { caps: MSG | other, ..none() }), "capabilities");
    }
}

#[test]
fn names_must_be_ours() {
    for (fabric, domain, wrong) in [
        (Some(c"ayre-shm"), Some(c"shm"), None),
        (Some(c"ayre"), None, Some("fabric name")),
        (None, Some(c"shm0"), Some("domain name")),
    ] {
        let hints = Hints { fabric_name: fabric, domain_name: domain, ..none() };
        assert_eq!(ask(&hints).err().map(|unmet| unmet.what), wrong);
    }
    assert_eq!(refused(&Hints { addr_format: SOCKADDR_IN, ..none() }), "address format");
    assert!(ask(&Hints { addr_format: Address::FORMAT, ..none() }).is_ok());
}

#[test]
fn choices_of_a_domain_are_echoed() {
    let (_, _, _, blank) = blank();
    for threading in THREAD_SAFE..=THREAD_ENDPOINT {
        let domain = Some(DomainAttr { threading, ..blank });
        let answer = ask(&Hints { domain, ..none() }).unwrap();
        assert_eq!(answer.domain.threading, threading);
    }
    for av_type in [AV_UNSPEC, AV_MAP, AV_TABLE] {
        let domain = Some(DomainAttr { av_type, resource_mgmt: RM_DISABLED, ..blank });
        let answer = ask(&Hints { domain, ..none() }).unwrap().domain;
        assert_eq!((answer.av_type, answer.resource_mgmt), (av_type, RM_DISABLED));
    }
    let manual = Offer::of(CAPABILITIES, false);
    let domain = Some(DomainAttr { data_progress: PROGRESS_AUTO, ..blank });
    let hints = Hints { domain, ..none() };
    assert!(hints.answer(&full(), &KINDS[0], API).is_ok());
    let refused = hints.answer(&manual, &KINDS[0], API).unwrap_err();
    assert_eq!(refused.to_string(), "data progress: asked for 1, have [2]");
}

#[test]
fn bits_of_memory_are_those_asked_for() {
    let new = version(1, 5);
    assert_eq!(mr_mode(0, new), 0);
    assert_eq!(mr_mode(MR_VIRT_ADDR, new), MR_VIRT_ADDR);
    assert_eq!(mr_mode(MR_PROV_KEY | MR_LOCAL | MR_ENDPOINT, new), MR_PROV_KEY);
    assert_eq!(mr_mode(MR_BASIC, new), MR_BASIC);
    assert_eq!(mr_mode(0, version(1, 4)), MR_SCALABLE);
}

#[test]
fn too_much_is_refused() {
    let (tx, rx, ep, domain) = blank();
    let with_domain = |domain| Hints { domain: Some(domain), ..none() };
    let with_ep = |ep| Hints { ep: Some(ep), ..none() };
    let with_tx = |tx| Hints { tx: Some(tx), ..none() };
    let with_rx = |rx| Hints { rx: Some(rx), ..none() };
    assert!(ask(&with_domain(domain)).is_ok() && ask(&with_ep(ep)).is_ok());
    assert!(ask(&with_tx(tx)).is_ok() && ask(&with_rx(rx)).is_ok());
    for (hints, wrong) in [
        (with_domain(DomainAttr { mr_key_size: 9, ..domain }), "MR key size"),
        (with_domain(DomainAttr { cq_data_size: 9, ..domain }), "CQ data size"),
        (with_domain(DomainAttr { threading: 9, ..domain }), "threading"),
        (with_domain(DomainAttr { caps: SHARED_AV, ..domain }), "domain capabilities"),
        (with_domain(DomainAttr { max_ep_srx_ctx: 1, ..domain }), "shared receive contexts"),
        (with_domain(DomainAttr { auth_key_size: 1, ..domain }), "authorisation key"),
        (with_ep(EpAttr { r#type: EP_MSG, ..ep }), "endpoint type"),
        (with_ep(EpAttr { protocol: 3, ..ep }), "protocol"),
        (with_ep(EpAttr { max_msg_size: usize::MAX, ..ep }), "message size"),
        (with_ep(EpAttr { rx_ctx_cnt: SHARED_CONTEXT, ..ep }), "receive contexts"),
        (with_tx(TxAttr { caps: MULTICAST, ..tx }), "transmit capabilities"),
        (with_tx(TxAttr { op_flags: COMMIT_COMPLETE, ..tx }), "transmit flags"),
        (with_tx(TxAttr { comp_order: ORDER_STRICT, ..tx }), "order of transmit completions"),
        (with_tx(TxAttr { inject_size: 1 << 20, ..tx }), "injected bytes"),
        (with_rx(RxAttr { caps: COLLECTIVE, ..rx }), "receive capabilities"),
        (with_rx(RxAttr { msg_order: 1 << 20, ..rx }), "receive order"),
        (with_rx(RxAttr { iov_limit: 1000, ..rx }), "pieces of a reception"),
    ] {
        assert_eq!(refused(&hints), wrong);
    }
}

#[test]
fn a_side_may_be_narrowed() {
    let (tx, ..) = blank();
    // What is the domain's is no mistake there.
    let caps = MSG | SEND | REACH;
    let tx = TxAttr { caps, msg_order: ORDER_SAS, op_flags: DELIVERY_COMPLETE, ..tx };
    let answer = ask(&Hints { caps: MSG | RMA, tx: Some(tx), ..none() }).unwrap();
    assert_eq!(answer.tx.caps, MSG | SEND);
    assert_eq!(answer.tx.op_flags, DELIVERY_COMPLETE);
    assert_eq!(answer.rx.caps & RMA, RMA);
}

/// As Sandia OpenSHMEM asks.
#[test]
fn each_side_may_be_asked_for_everything() {
    let (tx, rx, ..) = blank();
    let caps = MSG | SEND | RECV | MULTI_RECV;
    let sides = (Some(TxAttr { caps, ..tx }), Some(RxAttr { caps, ..rx }));
    let answer = ask(&Hints { caps, tx: sides.0, rx: sides.1, ..none() }).unwrap();
    assert_eq!((answer.tx.caps, answer.rx.caps), (MSG | SEND, MSG | RECV | MULTI_RECV));
}
