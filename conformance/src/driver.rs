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
//! | `none` | there is nothing to take, or no room for an item or a message to a group |
//! | `busy` and the reason's place in [`Busy::ALL`](ayre::Busy::ALL) | there is no room |
//! | `fault` and its code | it can never succeed |
//! | `long` and a length | the next one does not fit the buffer |
//! | `died` and a peer | a wait or a collective has ended with this peer's death |
//! | `late` | a wait's time was up |
//! | `error`, a kind, and its words | set-up has failed, or a call of a messenger |
//!
//! Kinds of set-up are `system` and an errno, `exhausted`, `left` (the peer has), `rejected`,
//! `invalid`, each with words for people. The calls, and the words of their answers:
//!
//! ```text
//! open NUMBER MEDIATED            listen PATH
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
//! A driver and its port end with the driver's input; after `close` or `leave` it still reads and
//! writes its own memory. A notify of a batch names no peer. Steps of epochs have their places in
//! [`EPOCH_STEPS`], lock modes in [`HOLDS`]. REGISTERS and ENTRIES are two words, a first one and
//! an end. A MESSAGE of a deposit is its form, operand, mask and data. A form is `c` and the
//! instruction's word, or `e`, an entry and three registers; `p`, which only `stopped` answers, is
//! a probe.
//!
//! # Messengers
//!
//! After `messenger` the port is under a messenger, and takes the same calls as before. The
//! program's functions (handlers, stages, watchers of groups) stay with the suite and have numbers,
//! RUN, that the suite chooses. A call marked with `*` runs them: before its answer, the driver
//! writes a line for each that is due,
//!
//! ```text
//! run RUN PEER COUNT ARGUMENT... BYTES           a handler: source, arguments, payload
//! run RUN PEER NUMBER ARGUMENT x 4 INPUT         a stage: the stream's name, what it is told
//! run RUN view NUMBER TICKET PEERS PEERS         a watcher: members, and who of them is new
//! run RUN ended                                  a watcher: no member any more
//! ```
//!
//! and waits until the suite has written `ran`, or `panicked`, which the driver has its library see
//! as a panic (an exception, an error) of what it has run. Until then it answers calls: of all that
//! there are `read`, `write` and `own`, and what only a handler or a stage can do:
//!
//! ```text
//! post PEER CHANNEL HANDLER MESSAGE              (of a handler)
//! cast MEMBERSHIP HANDLER MESSAGE                (of a handler)
//! emit BYTES                                     (of a stage)
//! ```
//!
//! INPUT is `item` and its bytes, `closed`, `cut`, or `failed`, a reason and a peer. A CHANNEL is a
//! number, 0 for none; a HANDLER an id; a MESSAGE the number of arguments, these, and the payload;
//! PEERS are their number and they. A LIMIT is a number, or `-` for the usual one. Names of
//! handlers, stages and groups are bytes.
//!
//! ```text
//!   messenger LIMIT LIMIT LIMIT (overflow, landing, longest)          into_port
//!   handler RUN ARGUMENTS NAME, or its id        -> id
//!   announced PEER HANDLER ARGUMENTS             -> 1 if it is
//! * call PEER CHANNEL HANDLER MESSAGE          try_call PEER CHANNEL HANDLER MESSAGE
//! * poll                                         -> messages run
//! * serve TIME                                   -> messages run, one at least
//! * drain                                      * sync
//!   failures                                     -> of each: peer, handler, cause, 1 if it is ours
//!   forget PEER
//!   channel NUMBER LIMIT LIMIT LIMIT (priority, weight, room)
//!   hold_channel CHANNEL                         release_channel CHANNEL
//! * poll_only CHANNEL                            -> messages run
//!   backlog PEER CHANNEL                         -> bytes
//!
//!   stage RUN NAME                               -> id
//! * set_entry PEER ENTRY                       * clear_entry PEER PEER NUMBER
//!   let_set_entries MAY
//! * open_stream NUMBER                           -> stream
//! * stream COUNT, and so many PEER NAME ARGUMENT x 4                 -> stream
//! * push STREAM BYTES                          * try_push STREAM BYTES
//! * close_stream STREAM                        * cancel STREAM
//!
//!   group NAME PEERS, group_of_all NAME          -> group
//!   fix_schedule GROUP COLLECTIVE SCHEDULE (0 for none)
//! * collect GROUP LENS LENS LENS REQUEST         -> what was changed
//!   start GROUP REQUEST                          -> started
//!   finished STARTED                             -> 1 if it is
//! * finish STARTED                               -> what was changed
//! * adapt GROUP LIMIT                            record GROUP CALLS
//!   recording GROUP                              -> calls, and of each: number, begin, time,
//!                                                   collective, schedule, bytes, links, and of
//!                                                   each of these: sent, waiting, round trip
//!   recording_text GROUP                         -> bytes
//!
//!   found RUN NAME LIMIT LIMIT (window, requests)                    -> membership
//! * join RUN NAME PEER LIMIT LIMIT               -> membership
//! * multicast MEMBERSHIP HANDLER MESSAGE         try_multicast MEMBERSHIP HANDLER MESSAGE
//! * multicast_through NAME PEER HANDLER MESSAGE
//! * leave_group MEMBERSHIP                       members MEMBERSHIP  -> peers
//! ```
//!
//! An ENTRY is the stream's name (a peer and a number), the next peer and number, the stage's NAME,
//! four arguments, and 1 if the stage goes on. A REQUEST has six codes and lengths: the collective,
//! the root, the type of number, the combination (0 for none), the bytes that are read and those
//! that are changed. Without a combination, the type is the unsigned one of its size. LENS are `-`,
//! or their number and they: of each member, to each, from each.
//!
//! | error | of |
//! |---|---|
//! | `stream`, a reason's code, a peer | streams: failed |
//! | `entry`, an answer's code, a peer | streams: refused |
//! | `long` | streams and groups: too long |
//! | `mismatch`, a peer, bytes due and come, a CALL, the peer's if it is known | collectives |
//! | `given_up` and a peer | collectives |
//! | `outside` | groups: no member |
//! | `refused`, `unreachable`, `unknown`, and a peer | groups |
//! | `invalid` and words for people | collectives and groups |
//!
//! A CALL is the codes of collective and schedule, the root, the codes of combination and type of
//! number (0 for none), bytes.
mod depots;
mod errors;
mod fabric;
mod groups;
mod handles;
mod messenger;
mod multicast;
mod port;
mod serve;
mod streams;
mod values;
mod words;

pub use depots::{DrivenDepot, DrivenFrozen, DrivenInlet};
pub use fabric::{Door, Driven};
pub use groups::{DrivenGroup, DrivenStarted};
pub use handles::{DrivenGrant, DrivenLock, DrivenQueue, DrivenRegion, DrivenRemote};
pub use messenger::DrivenMessenger;
pub use port::DrivenPort;
pub use serve::serve;
pub use streams::DrivenStream;

use ayre::memory::{EpochStep, LockMode};

/// Steps of epochs, by the numbers that travel.
pub const EPOCH_STEPS: [EpochStep; 4] =
    [EpochStep::Post, EpochStep::Start, EpochStep::Complete, EpochStep::Wait];

/// Ways to hold a lock, by the numbers that travel.
pub const HOLDS: [LockMode; 2] = [LockMode::Shared, LockMode::Exclusive];
