//! Address translation: the ATU, and the ways that the thesis compares it with (section 5.2).
use crate::host::Host;
use crate::time::{Clock, Time};

/// Cycles from a request to its response if the TLB has the entry (table 5-8).
pub const HIT: u64 = 9;
/// Cycles from a request to the read of the table (table 5-8).
pub const TO_READ: u64 = 11;
/// Cycles from the table's entry to the response (table 5-8).
pub const FROM_READ: u64 = 9;
/// A packet passes the channel of translations every second cycle (section 5.2.9).
pub const CYCLES_PER_PACKET: u64 = 2;

/// A translation that misses: one read of the table, which takes `read`.
pub fn miss(clock: Clock, read: Time) -> Time {
    clock.span(TO_READ) + read + clock.span(FROM_READ)
}

/// Translations per second that the channel can carry.
pub fn ceiling(clock: Clock) -> f64 {
    1e12 / clock.span(CYCLES_PER_PACKET).0 as f64
}

/// Least and most time of a translation by an interrupt (section 5.2.1): the interrupt, the walk,
/// and the answer to the device.
pub fn by_interrupt(host: &Host) -> (Time, Time) {
    let rest = host.interrupt + host.to_device;
    (rest + host.walk.0, rest + host.walk.1)
}

/// Translation before the command is issued, by a flat table in the kernel (section 5.2.2): both
/// ends of an operation.
pub fn before_flat(host: &Host) -> Time {
    host.system_call + host.memory + host.memory
}

/// Translation before the command is issued, by a walk of the page table: least and most time.
pub fn before_walk(host: &Host) -> (Time, Time) {
    let both = |walk: Time| host.system_call + walk + walk;
    (both(host.walk.0), both(host.walk.1))
}

/// Registering a page for a flat table (section 5.2.2), whose walk takes `walk`.
pub fn register(host: &Host, walk: Time) -> Time {
    host.system_call + walk + host.memory
}

/// Deregistering a page.
pub fn deregister(host: &Host) -> Time {
    host.system_call + host.unpin + host.memory
}

/// A walk of all `levels` of the page table by the device (section 5.2.5).
pub fn full_walk(host: &Host, levels: u64) -> Time {
    Time(host.device_read.0 * levels)
}

/// Bits of a network logical address below the number of the table (section 5.3).
const BITS_IN_TABLE: u32 = 18 + 12;
/// Bytes of a table's entry.
const ENTRY: u64 = 8;

/// Bytes that can be mapped by so large an on-chip directory: `entries` tables of 2^18 pages.
pub fn mappable(entries: u64) -> u64 {
    entries << BITS_IN_TABLE
}

/// Bytes of tables for memory of this size.
pub fn tables(memory: u64) -> u64 {
    (memory >> 12) * ENTRY
}
