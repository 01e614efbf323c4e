//! Ports of another process, behind a driver: how the suite reaches libraries of other languages.
//!
//! A driver is a small program over the library under test. It is one port; it reads calls from its
//! standard input, makes them, and writes what came of each to its standard output, a line each.
//! [`Driven`] is the fabric of such ports, [`serve()`] a driver over the engine's Rust interface:
//! one for C or for Python does the same.
//!
//! ```text
//!   suite  -- "put 0 64 x0102ff 1 7 0" -->  driver (one process, one port)
//!          <-- "ok 12" -------------------
//! ```
//!
//! A line is words with a blank between two. Numbers are decimal; bytes are hexadecimal behind an
//! `x`; a part of a region is `r`, its number, offset and length with colons between. A handle is
//! a number that the driver has given out, one sequence for each kind. `*` stands for a handle that
//! another port has given out; no lock or frozen depot has one. For these a driver keeps some of a
//! port beside its own. Rights, classes, atomics, faults and notifications have the bits and codes
//! of `spec/`. Options of an operation are three words: classes, tag, value. A time is in
//! microseconds, `-` for ever.
//!
//! | answer | when |
//! |---|---|
//! | `ok` and words | it is done |
//! | `none` | there is nothing (of a look for a message, a record, a notification) |
//! | `busy` and the reason's place in [`BUSY`] | there is no room |
//! | `fault` and its code | it can never succeed |
//! | `long` and a length | the next one does not fit the buffer |
//! | `died` and a peer | a wait has ended with this peer's death |
//! | `late` | a wait's time was up |
//! | `error`, a kind, and words for people | set-up has failed |
//!
//! Kinds are `system` and an errno, `exhausted`, `left` (the peer has), `rejected`, `invalid`. The
//! calls, and the words of their answers:
//!
//! ```text
//! open NUMBER                     listen PATH
//! connect PATH, accept, loopback               -> peer
//! peers                                        -> peers
//! mode PEER, alive PEER                        -> 1 if mediated, alive
//! disconnect PEER                 leave, close                   progress
//! count busy REASON, count fault CODE, count malformed           -> how often
//!
//! alloc BYTES SEALED, register BYTES           -> region
//! deregister REGION               write REGION OFFSET BYTES
//! read REGION OFFSET LENGTH                    -> bytes
//! own REGION OFFSET WIDTH OP OPERAND COMPARE   -> value, 1 if it has happened
//! share PEER REGION START END RIGHTS NAME      -> grant, slot, generation
//! remote PEER NAME                             -> remote, length, rights, slot, generation
//! narrow REMOTE START END RIGHTS               -> as before
//! revoke GRANT                                 -> 1 if the region was moved
//!
//! put REMOTE OFFSET SOURCE OPTIONS             -> ticket
//! puts REMOTE OFFSET SOURCE ROWS OPTIONS       -> ticket
//! get REMOTE OFFSET INTO OPTIONS               -> ticket, and the bytes of INTO then
//! gets REMOTE OFFSET INTO ROWS OPTIONS         -> as before
//! word REMOTE OFFSET VALUE OPTIONS             -> ticket
//! notify PEER OPTIONS                          -> ticket
//! atomic REMOTE OFFSET WIDTH OP OPERAND COMPARE OPTIONS          -> ticket
//! fetch REMOTE OFFSET WIDTH OP OPERAND COMPARE OPTIONS           -> as own
//! batch PEER COUNT, and so many put, word, atomic, notify        -> ticket, if it is not empty
//! epoch REMOTE OFFSET STEP                     -> as own
//! lock REMOTE OFFSET PROCESSES                 -> lock
//! held LOCK                                    -> hold, or none
//! try LOCK HOLD                                -> 1 if it is held now
//! hold LOCK HOLD (which waits)    unlock LOCK
//! flush PEER                      barrier
//! flushed PEER                                 -> 1 if all has ended
//!
//! note, wait TIME                              -> source, and the record's two words
//! send PEER TAG BYTES             post PEER TAG BYTES (which waits for room)
//! look LENGTH, receive LENGTH TIME             -> source, tag, length, bytes
//! queue BYTES                                  -> queue, longest record
//! produces PEER NAME                           -> produced, longest record
//! producer PEER QUEUE NAME        remove QUEUE PEER
//! producers QUEUE                              -> peers
//! enqueue PRODUCED BYTES
//! dequeue QUEUE LENGTH, take QUEUE LENGTH TIME -> source, length, bytes
//!
//! depot                                        -> depot
//! has DEPOT REGISTER                           -> value
//! set DEPOT REGISTER VALUE        protect DEPOT FIRST LAST PROTECTION
//! store DEPOT AT COUNT, and so many WORD OPERAND ENTERS
//! freeze DEPOT                                 -> frozen
//! kept FROZEN REGISTER                         -> value
//! keep FROZEN REGISTER VALUE      thaw FROZEN
//! inlet PEER DEPOT REGION START END RIGHTS REGISTERS ENTRIES LONGEST HOLDS NAME   -> inlet
//! enters PEER NAME                             -> entered
//! shut INLET                                   -> 1 if the region was moved
//! deposit ENTERED MESSAGE OPTIONS              -> ticket
//! reply ENTERED MESSAGE INLET MESSAGE LENGTH TAKES TAG VALUE OPTIONS              -> ticket
//! answer ENTERED MESSAGE INTO                  -> value, 1 if declined, the bytes of INTO then
//! stopped INLET                                -> cause, form, operand, mask, length, 1 if it
//!                                                 brings data, 1 if it asks, tag, value, data
//! resume INLET                                 -> 1 if a test of it holds
//! skip INLET                      reset INLET                    rejoin ENTERED
//! ```
//!
//! A driver ends, and its port with it, where its input does; after `close` or `leave` it still
//! reads and writes its own memory. A notify of a batch names no peer; steps of epochs have their
//! places in [`EPOCH_STEPS`], holds in [`HOLDS`]. REGISTERS and ENTRIES are two words, a first one
//! and an end. A MESSAGE is its form, operand, mask and data; a form is `c` and the instruction's
//! word, or `e`, an entry and three registers; `p`, which only `stopped` answers, is a probe. There
//! are no calls for messengers yet.
mod depots;
mod fabric;
mod handles;
mod port;
mod serve;
mod words;

pub use depots::{DrivenDepot, DrivenFrozen, DrivenInlet};
pub use fabric::{Door, Driven};
pub use handles::{DrivenGrant, DrivenLock, DrivenQueue, DrivenRegion, DrivenRemote};
pub use port::DrivenPort;
pub use serve::serve;

use ayre::{Busy, EpochStep, Hold};

/// Reasons for no room, by the numbers that travel.
pub const BUSY: [Busy; 9] = [
    Busy::MessageLaneFull,
    Busy::RequestLaneFull,
    Busy::NotificationsFull,
    Busy::TooManyOutstanding,
    Busy::QueueFull,
    Busy::Connecting,
    Busy::DepotLocked,
    Busy::OverflowFull,
    Busy::ChannelFull,
];

/// Steps of epochs, by the numbers that travel.
pub const EPOCH_STEPS: [EpochStep; 4] =
    [EpochStep::Post, EpochStep::Start, EpochStep::Complete, EpochStep::Wait];

/// Ways to hold a lock, by the numbers that travel.
pub const HOLDS: [Hold; 2] = [Hold::Shared, Hold::Exclusive];
