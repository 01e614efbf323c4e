//! Remote queues: many producers, one consumer.
use crate::access::{ayre_peer, timeout};
use crate::border::{self, Buffer, Bytes, Out};
use crate::error::{self, Outcome, number, status, taken};
use crate::place::handle;
use crate::port::ayre_port;
use ayre::message::Record;
use ayre::{PeerId, Port, Queue, ReceiveError, RemoteQueue};
use std::ffi::c_int;

/// The consumer's end of a queue.
pub struct ayre_queue(#[allow(dead_code, reason = "opaque")] Queue);
handle!(ayre_queue of Queue);

/// A producer's end of a queue.
pub struct ayre_remote_queue(#[allow(dead_code, reason = "opaque")] RemoteQueue);
handle!(ayre_remote_queue of RemoteQueue);

/// A record that was taken; its bytes are in the buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_record {
    /// The producer. After `AYRE_PEER_DIED` it is the peer that has died.
    pub source: ayre_peer,
    /// The length in bytes. After `AYRE_TOO_LONG` it is the length of the next record.
    pub len: usize,
}

/// Makes a queue with `capacity` bytes for each producer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_create_queue(
    port: Out<ayre_port>,
    capacity: usize,
    queue: Out<*mut ayre_queue>,
) -> c_int {
    status(|| queue.hand_out(|| Ok(port.held()?.create_queue(capacity)?)))
}

/// The longest record in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_queue_record_max(queue: Out<ayre_queue>) -> i64 {
    number(|| Ok(queue.held()?.record_max() as i64))
}

/// Closes the consumer's handle of a queue. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_queue_close(queue: Out<ayre_queue>) -> c_int {
    border::closed(queue)
}

/// Lets a peer produce, under a name that it uses in `ayre_accept_queue`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_share_queue(
    port: Out<ayre_port>,
    peer: ayre_peer,
    queue: Out<ayre_queue>,
    name: u64,
) -> c_int {
    status(|| Ok(port.held()?.share_queue(PeerId(peer), &mut *queue.held()?, name)?))
}

/// Accepts the queue that a peer has shared, or shares soon, under a name. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_accept_queue(
    port: Out<ayre_port>,
    peer: ayre_peer,
    name: u64,
    queue: Out<*mut ayre_remote_queue>,
) -> c_int {
    status(|| queue.hand_out(|| Ok(port.held()?.accept_queue(PeerId(peer), name)?)))
}

/// The longest record in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_queue_record_max(queue: Out<ayre_remote_queue>) -> i64 {
    number(|| Ok(queue.held()?.record_max() as i64))
}

/// The peer that consumes what is enqueued here.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_queue_peer(queue: Out<ayre_remote_queue>) -> c_int {
    error::peer(|| Ok(queue.held()?.peer()))
}

/// Closes a producer's handle of a queue. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_queue_close(queue: Out<ayre_remote_queue>) -> c_int {
    border::closed(queue)
}

/// Lists the peers that produce, at most `room` of them. Returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_queue_producers(
    queue: Out<ayre_queue>,
    peers: Out<ayre_peer>,
    room: usize,
) -> i64 {
    number(|| peers.list(queue.held()?.producers(), room))
}

/// Takes no more records of a peer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remove_producer(
    port: Out<ayre_port>,
    queue: Out<ayre_queue>,
    peer: ayre_peer,
) -> c_int {
    status(|| {
        port.held()?.remove_producer(&mut *queue.held()?, PeerId(peer));
        Ok(())
    })
}

/// Enqueues a record. Does not block: the buffer may be used again when the call returns.
/// `AYRE_BUSY_QUEUE` where the consumer has to take earlier ones first.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_enqueue(
    port: Out<ayre_port>,
    queue: Out<ayre_remote_queue>,
    record: Bytes,
    len: usize,
) -> c_int {
    status(|| Ok(port.held()?.enqueue(&mut *queue.held()?, record.bytes(len)?)?))
}

/// Takes the next record into a buffer of `room` bytes. Returns 1 if there was one, else 0. Does
/// not block. A record that is longer than the buffer stays: `AYRE_TOO_LONG`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_dequeue(
    port: Out<ayre_port>,
    queue: Out<ayre_queue>,
    into: Buffer,
    room: usize,
    record: Out<ayre_record>,
) -> c_int {
    take((port, queue), into, room, record, |port, queue, into| port.dequeue(queue, into))
}

/// Takes the next record. Waits for it for `timeout_us` microseconds; for ever if that is negative.
/// Returns 1. The rest is as for `ayre_dequeue`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_dequeue_wait(
    port: Out<ayre_port>,
    queue: Out<ayre_queue>,
    into: Buffer,
    room: usize,
    record: Out<ayre_record>,
    timeout_us: i64,
) -> c_int {
    let until = timeout(timeout_us);
    let wait = |port: &mut Port, queue: &mut Queue, into: &mut [u8]| {
        port.dequeue_wait(queue, into, until).map(Some)
    };
    take((port, queue), into, room, record, wait)
}

fn take(
    (port, queue): (Out<ayre_port>, Out<ayre_queue>),
    into: Buffer,
    room: usize,
    record: Out<ayre_record>,
    take: impl FnOnce(&mut Port, &mut Queue, &mut [u8]) -> Result<Option<Record>, ReceiveError>,
) -> c_int {
    let take = || -> Outcome<bool> {
        record.given()?;
        let found = take(&mut *port.held()?, &mut *queue.held()?, into.buffer(room)?)?;
        Ok(found.map(|found| record.fill(found)).is_some())
    };
    taken(take, |also| {
        let _ = record.change(|record| match also {
            Ok(len) => record.len = len,
            Err(died) => record.source = died.0,
        });
    })
}

impl From<Record> for ayre_record {
    fn from(Record { source, len }: Record) -> Self {
        Self { source: source.0, len }
    }
}
