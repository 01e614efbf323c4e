//! Completions of the engine, and their reports to queues and counters.

use super::op::Op;
use super::peers::Peers;
use super::side::{Side, Way};
use crate::abi::{
    ATOMIC, MULTI_RECV, READ, REMOTE_CQ_DATA, REMOTE_READ, REMOTE_WRITE, RMA, WRITE, errno,
};
use crate::domain::DomainObject;
use crate::error::Code;
use crate::error::trouble;
use crate::queue::cq::{Failure, QueuedCompletion};
use ayre::Fault;
use ayre::endpoint::Received;
use ayre::endpoint::raw::{Completion, CompletionKind, LatestFailure, RmaEvent, RmaKind};
use ayre_guest::cell::{Guard, Policy};
use std::hint::black_box;
use std::sync::Arc;

/// Something has ended.
#[inline(always)]
pub(super) fn tell<L: Policy>(
    end: Completion,
    (tx, rx): (&mut Side<L>, &mut Side<L>),
    (peers, latest): (&mut Peers, &LatestFailure),
    counting: Option<&Arc<DomainObject<L>>>,
) {
    match end {
        Completion { context, what: CompletionKind::Received(received), result: Ok(()) }
            if received.placed == received.len =>
        {
            let op = Op::from(context);
            rx.ended(Way::Message, arrival(&op, &received, peers), op.is_told);
        }
        // Kept out of memory until here: what is told most is not stored for what is not.
        end => tell_other(black_box(end), (tx, rx), (peers, latest), counting),
    }
}

/// Reports a completion of a less frequent kind.
#[inline(never)]
fn tell_other<L: Policy>(
    Completion { context, what, result }: Completion,
    (tx, rx): (&mut Side<L>, &mut Side<L>),
    (peers, latest): (&mut Peers, &LatestFailure),
    counting: Option<&Arc<DomainObject<L>>>,
) {
    let op = Op::from(context);
    match what {
        CompletionKind::Received(received) => {
            let completion = arrival(&op, &received, peers);
            let olen = (received.len - received.placed) as usize;
            rx.failed(
                Way::Message,
                match result {
                    Ok(()) => failure(completion, Code(errno::ETRUNC), olen),
                    Err(fault) => Failure { olen, ..failed(completion, fault, latest) },
                },
            );
        }
        CompletionKind::Sent
        | CompletionKind::Written
        | CompletionKind::Read
        | CompletionKind::Updated => {
            let flags = op.kind.flags();
            let (way, completion) = (way(flags), QueuedCompletion::new(op.context, flags));
            match result {
                Ok(()) => tx.ended(way, completion, op.is_told),
                Err(fault) => tx.failed(way, failed(completion, fault, latest)),
            }
        }
        CompletionKind::RmaEvent(touched) => {
            let completion = touch(&touched, peers);
            rx.ended(way_of_touch(&touched), completion, touched.data.is_some());
            if touched.kind != RmaKind::Read
                && let Some(domain) = counting
            {
                domain.regions.with(|regions| regions.changed(touched.key));
            }
        }
        CompletionKind::Cancelled => {
            let many = if op.is_many { MULTI_RECV } else { 0 };
            let completion = QueuedCompletion::new(op.context, op.kind.flags() | many);
            rx.failed(Way::Message, failure(completion, Code(errno::ECANCELED), 0));
        }
    }
}

/// As what an operation of ours is counted.
#[inline]
fn way(flags: u64) -> Way {
    match flags & (READ | WRITE) {
        0 => Way::Message,
        READ => Way::Read,
        _ => Way::Write,
    }
}

/// As what is counted what a peer has done to our memory.
pub(super) fn way_of_touch(touched: &RmaEvent) -> Way {
    match touched.kind {
        RmaKind::Read | RmaKind::Fetched => Way::Read,
        RmaKind::Wrote | RmaKind::Updated => Way::Write,
    }
}

/// The report of a peer's access to our memory.
#[inline]
fn touch(touched: &RmaEvent, peers: &mut Peers) -> QueuedCompletion {
    let data = if touched.data.is_some() { REMOTE_CQ_DATA } else { 0 };
    let kind = match touched.kind {
        RmaKind::Wrote => RMA | REMOTE_WRITE,
        RmaKind::Read => RMA | REMOTE_READ,
        RmaKind::Updated => ATOMIC | REMOTE_WRITE,
        RmaKind::Fetched => ATOMIC | REMOTE_READ,
    };
    QueuedCompletion {
        len: touched.len as usize,
        data: touched.data.unwrap_or(0),
        source: peers.number(Some(touched.source)),
        ..QueuedCompletion::new(0, kind | data)
    }
}

/// A message that was received.
#[inline(always)]
fn arrival(op: &Op, received: &Received, peers: &mut Peers) -> QueuedCompletion {
    let data = if received.data.is_some() { REMOTE_CQ_DATA } else { 0 };
    let over = if op.is_many && received.released { MULTI_RECV } else { 0 };
    QueuedCompletion {
        context: op.context,
        flags: op.kind.flags() | data | over,
        len: received.placed as usize,
        buf: op.buf + received.offset as usize,
        data: received.data.unwrap_or(0),
        tag: received.tag.unwrap_or(0),
        source: peers.number(received.source),
    }
}

/// The failure of an operation with a fault: if its peer has ended with that, with the reason.
fn failed(completion: QueuedCompletion, fault: Fault, latest: &LatestFailure) -> Failure {
    match latest.with(fault) {
        None => failure(completion, trouble::of_fault(fault), 0),
        Some((text, reason)) => {
            let code = trouble::of_reason(&reason);
            let prov_errno = trouble::number_of(&text, code);
            Failure { prov_errno, ..failure(completion, code, 0) }
        }
    }
}

pub(super) fn failure(completion: QueuedCompletion, code: Code, olen: usize) -> Failure {
    Failure { completion, olen, err: code.0, prov_errno: code.0, data: Vec::new() }
}
