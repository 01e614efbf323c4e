//! A driver over the engine.
mod deposits;
mod messengers;

use super::words::{Answer, Words, handle, hex, kind};
use super::{EPOCH_STEPS, HOLDS};
use ayre::deposit::{Depot, Frozen, Inlet, InletOptions, RemoteInlet};
use ayre::memory::{
    Atomic, AtomicOp, Batch, Classes, Fenced, Fetched, GetDestination, Grant, LocalSlice, Lock,
    PutSource, Strided, Ticket, Width, try_epoch_step,
};
use ayre::{
    Busy, Config, Fault, Mode, Notification, Port, PostOptions, Queue, Region, RegionOptions,
    RemoteQueue, RemoteRegion, Rights, SetupError, Spin,
};
use deposits::{about_depots, about_inlets};
use messengers::Messaging;
use std::io::{BufRead, Write};
use std::time::Duration;

/// Reads calls from standard input until it ends, and writes an answer to each.
///
/// # Panics
/// Where a call is none that a driver has.
pub fn serve() {
    let Some(open) = hear() else { return };
    let mut words = Words::of(&open);
    assert_eq!(words.word(), "open", "a driver is one port, which is opened first");
    let config = Config::new().number(words.number()).spin(Spin::SHARED);
    let config = config.mode(if words.flag() { Mode::Mediated } else { Mode::Direct });
    let port = Port::open(config.linger(Duration::from_millis(50))).expect("a port opens");
    let held = foreign().expect("memory is there");
    let mut driver = Driver { port: Some(port), messaging: None, held };
    answer(&Answer::Done(String::new()));
    while let Some(line) = hear() {
        let mut words = Words::of(&line);
        let call = words.word();
        answer(&driver.make(call, &mut words).unwrap_or_else(|why| why));
    }
}

/// The suite's next line, if there is one more.
fn hear() -> Option<String> {
    std::io::stdin().lock().lines().next()?.ok()
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    // A suite that has closed its end sends no further calls: the next read ends the driver.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn answer(answer: &Answer) {
    say(&answer.write());
}

/// The result of a call; an error of the library, in the form in which it is written.
type Made = Result<Answer, Answer>;

/// A port, by itself or under a messenger, and what it has given out.
struct Driver {
    port: Option<Port>,
    messaging: Option<Messaging>,
    held: Held,
}

/// Handles, by their numbers.
#[derive(Default)]
struct Held {
    regions: Vec<Region>,
    remotes: Vec<RemoteRegion>,
    grants: Vec<Option<Grant>>,
    queues: Vec<Queue>,
    produced: Vec<RemoteQueue>,
    locks: Vec<Lock<'static>>,
    depots: Vec<&'static Depot>,
    frozen: Vec<Option<Frozen<'static>>>,
    inlets: Vec<Option<Inlet>>,
    entered: Vec<RemoteInlet>,
}

/// The first handle of each kind belongs to another port, for calls with a handle that this port
/// has not given out: `*` stands for it. Locks and frozen depots have none.
fn foreign() -> Result<Held, SetupError> {
    let mut port = Port::open(Config::new())?;
    let (own, mut held) = (port.connect_loopback()?, Held::default());
    let region = port.alloc(64, RegionOptions::new())?;
    held.grants.push(Some(port.share(own, &region, 0..64, Rights::all(), 1)?));
    held.remotes.push(port.accept_region(own, 1)?);
    let mut queue = port.create_queue(64)?;
    port.share_queue(own, &mut queue, 1)?;
    held.produced.push(port.accept_queue(own, 1)?);
    held.queues.push(queue);
    let depot: &'static Depot = Box::leak(Box::new(port.create_depot()?));
    let inlet = port.share_inlet(own, depot, (&region, 0..64), &InletOptions::new(), 1)?;
    held.entered.push(port.accept_inlet(own, 1)?);
    held.inlets.push(Some(inlet));
    held.depots.push(depot);
    held.regions.push(region);
    Ok(held)
}

fn keep<T>(all: &mut Vec<T>, one: T) -> usize {
    all.push(one);
    all.len() - 1
}

fn done(words: impl std::fmt::Display) -> Made {
    Ok(Answer::Done(words.to_string()))
}

fn nothing((): ()) -> Made {
    done("")
}

fn ticket(ticket: Ticket) -> Made {
    done(ticket.0)
}

fn fetched(Fetched { value, success }: Fetched) -> Made {
    done(format!("{value} {}", u8::from(success)))
}

fn noted(note: Option<Notification>) -> Made {
    let Some(note) = note else { return Ok(Answer::Nothing) };
    let [first, second] = note.encode();
    done(format!("{} {first} {second}", note.source.0))
}

fn options(words: &mut Words<'_>) -> PostOptions {
    let classes = Classes::from_bits_truncate(words.number());
    PostOptions::new().notify(classes).tag(words.number()).value(words.number())
}

fn atomic(words: &mut Words<'_>) -> Atomic {
    let width = if words.number::<u8>() == 4 { Width::W32 } else { Width::W64 };
    let op = AtomicOp::from_code(words.number()).expect("an atomic");
    Atomic { width, op, operand: words.number(), compare: words.number() }
}

fn rows(words: &mut Words<'_>) -> Strided {
    let (row_len, rows) = (words.number(), words.number());
    Strided { row_len, rows, local_stride: words.number(), remote_stride: words.number() }
}

/// A part of a region, if the word is one.
fn part<'a>(word: &str, regions: &'a [Region]) -> Option<LocalSlice<'a>> {
    let mut words = word.strip_prefix('r')?.split(':');
    let [region, offset, len] = [(); 3].map(|()| words.next().expect("three numbers"));
    let [offset, len] = [offset, len].map(|word| word.parse::<usize>().expect("a number"));
    Some(regions[handle(region)].slice(offset..offset + len))
}

fn remote_words(number: usize, remote: &RemoteRegion) -> Made {
    let (len, rights, key) = (remote.len(), remote.rights().bits(), remote.key());
    done(format!("{number} {len} {rights} {} {}", key.slot, key.generation))
}

impl Driver {
    fn make(&mut self, call: &str, words: &mut Words<'_>) -> Made {
        let Self { port, messaging, held } = self;
        match call {
            "leave" => return nothing(port.take().expect("a port leaves once").leave()?),
            "close" => {
                (*port, *messaging) = (None, None);
                return nothing(());
            }
            "messenger" => {
                let port = port.take().expect("a port has one messenger");
                *messaging = Some(Messaging::new(port, words)?);
                return nothing(());
            }
            "into_port" => {
                *port = messaging.take().map(Messaging::into_port);
                return nothing(());
            }
            "read" | "write" | "own" => return about_own_memory(held, call, words),
            "has" | "set" | "protect" | "store" | "freeze" | "kept" | "keep" | "thaw" => {
                return about_depots(held, call, words);
            }
            _ => {}
        }
        if let Some(made) =
            messaging.as_mut().and_then(|messaging| messaging.make(call, words, held))
        {
            return made;
        }
        let own = messaging.as_mut().map(Messaging::port).or(port.as_mut());
        let port = own.expect("nothing is called of a port that has left");
        match call {
            "listen" | "connect" | "accept" | "loopback" | "peers" | "mode" | "alive"
            | "disconnect" | "progress" | "count" => about_peers(port, call, words),
            "alloc" | "register" | "deregister" | "share" | "remote" | "revoke" | "narrow" => {
                about_memory(port, held, call, words)
            }
            "put" | "puts" | "get" | "gets" => transfers(port, held, call, words),
            "word" | "notify" | "atomic" | "fetch" | "batch" | "epoch" | "flush" | "flushed"
            | "barrier" => operates(port, held, call, words),
            "note" | "wait" | "send" | "post" | "look" | "receive" => {
                about_messages(port, call, words)
            }
            "lock" | "held" | "try" | "hold" | "unlock" => about_locks(port, held, call, words),
            "depot" | "inlet" | "enters" | "shut" | "rejoin" | "deposit" | "reply" | "answer"
            | "stopped" | "resume" | "skip" | "reset" => about_inlets(port, held, call, words),
            _ => about_queues(port, held, call, words),
        }
    }
}

fn about_peers(port: &mut Port, call: &str, words: &mut Words<'_>) -> Made {
    match call {
        "listen" => nothing(port.listen(words.word())?),
        "connect" => done(port.connect(words.word())?.0),
        "accept" => done(port.accept()?.0),
        "loopback" => done(port.connect_loopback()?.0),
        "peers" => {
            let peers: Vec<_> = port.peers().map(|peer| peer.0.to_string()).collect();
            done(peers.join(" "))
        }
        "mode" => done(u8::from(port.mode(words.peer())? == Mode::Mediated)),
        "alive" => done(u8::from(port.is_alive(words.peer()))),
        "disconnect" => nothing(port.disconnect(words.peer())?),
        "progress" => {
            port.progress();
            nothing(())
        }
        _ => {
            let counters = port.counters();
            done(match words.word() {
                "busy" => counters.busy(Busy::ALL[words.number::<usize>()]),
                "fault" => counters.faults(Fault::from_code(words.number())),
                _ => counters.malformed(),
            })
        }
    }
}

fn about_own_memory(held: &Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { regions, .. } = held;
    match call {
        "read" => {
            let (region, offset) = (&regions[words.handle()], words.number());
            let mut bytes = vec![0; words.number()];
            region.read(offset, &mut bytes);
            done(hex(&bytes))
        }
        "write" => {
            let (region, offset) = (&regions[words.handle()], words.number());
            region.write(offset, &words.bytes());
            nothing(())
        }
        _ => {
            let (region, offset) = (&regions[words.handle()], words.number());
            fetched(region.atomic(offset, &atomic(words)))
        }
    }
}

fn about_memory(port: &mut Port, held: &mut Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { regions, remotes, grants, .. } = held;
    match call {
        "alloc" => {
            let (len, options) = (words.number(), RegionOptions::new());
            let options = if words.flag() { options.sealed() } else { options };
            done(keep(regions, port.alloc(len, options)?))
        }
        "register" => {
            let bytes = words.bytes();
            let (all, _) = bytes.as_chunks::<8>();
            let all = all.iter().map(|word| u64::from_le_bytes(*word)).collect();
            done(keep(regions, port.register(all)?))
        }
        "deregister" => nothing(port.deregister(&regions[words.handle()])?),
        "share" => {
            let (peer, region) = (words.peer(), &regions[words.handle()]);
            let part = words.number()..words.number();
            let rights = Rights::from_bits_truncate(words.number());
            let grant = port.share(peer, region, part, rights, words.number())?;
            let key = grant.key();
            done(format!("{} {} {}", keep(grants, Some(grant)), key.slot, key.generation))
        }
        "remote" => {
            let number = keep(remotes, port.accept_region(words.peer(), words.number())?);
            remote_words(number, &remotes[number])
        }
        "narrow" => {
            let remote = &remotes[words.handle()];
            let part = words.number()..words.number();
            let narrow = remote.narrow(part, Rights::from_bits_truncate(words.number()))?;
            let number = keep(remotes, narrow);
            remote_words(number, &remotes[number])
        }
        _ => {
            let grant = grants[words.handle()].take().expect("it is revoked once");
            done(u8::from(port.revoke(grant)? == Fenced::Moved))
        }
    }
}

fn about_locks(port: &mut Port, held: &mut Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { remotes, locks, .. } = held;
    if call == "lock" {
        let remote = &remotes[words.handle()];
        // The driver ends with its port, and its locks with both.
        let word = Box::leak(Box::new(remote.narrow(0..remote.len(), remote.rights())?));
        return done(keep(locks, Lock::new(word, words.number(), words.number())));
    }
    let lock = &mut locks[words.number::<usize>()];
    match call {
        "held" => match lock.held() {
            Some(hold) => done(kind(hold)),
            None => Ok(Answer::Nothing),
        },
        "try" => done(u8::from(lock.try_lock(port, HOLDS[words.number::<usize>()])?)),
        "hold" => nothing(lock.lock(port, HOLDS[words.number::<usize>()])?),
        _ => nothing(lock.unlock(port)?),
    }
}

/// Where bytes are, at the port that posts.
enum Local<'a> {
    Part(LocalSlice<'a>),
    /// The program's own.
    Bytes(Vec<u8>),
}

fn transfers(port: &mut Port, held: &mut Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { regions, remotes, .. } = held;
    let (remote, offset) = (&remotes[words.handle()], words.number());
    let word = words.word();
    let mut local = match part(word, regions) {
        Some(part) => Local::Part(part),
        None => Local::Bytes(Words::of(word).bytes()),
    };
    let shape = call.ends_with('s').then(|| rows(words));
    let options = options(words);
    if call.starts_with("put") {
        let from = match &local {
            Local::Part(part) => PutSource::Region(*part),
            Local::Bytes(bytes) => PutSource::Bytes(bytes),
        };
        return ticket(match shape {
            Some(rows) => port.put_strided(remote, offset, from, rows, options)?,
            None => port.put(remote, offset, from, options)?,
        });
    }
    let into = match &mut local {
        Local::Part(part) => GetDestination::Region(*part),
        Local::Bytes(bytes) => GetDestination::Bytes(bytes),
    };
    let got = match shape {
        Some(rows) => port.get_strided(remote, offset, into, rows, options)?,
        None => port.get(remote, offset, into, options)?,
    };
    match local {
        Local::Part(_) => ticket(got),
        Local::Bytes(bytes) => done(format!("{} {}", got.0, hex(&bytes))),
    }
}

/// An operation of a batch.
enum Work<'a> {
    Put(&'a RemoteRegion, u64, Local<'a>),
    Word(&'a RemoteRegion, u64, u64),
    Atomic(&'a RemoteRegion, u64, Atomic),
    Notify,
}

fn work<'a>(held: &'a Held, words: &mut Words<'_>) -> (Work<'a>, PostOptions) {
    let call = words.word();
    if call == "notify" {
        return (Work::Notify, options(words));
    }
    let (remote, offset) = (&held.remotes[words.handle()], words.number());
    let work = match call {
        "put" => {
            let word = words.word();
            let part = part(word, &held.regions).map(Local::Part);
            let local = part.unwrap_or_else(|| Local::Bytes(Words::of(word).bytes()));
            Work::Put(remote, offset, local)
        }
        "word" => Work::Word(remote, offset, words.number()),
        _ => Work::Atomic(remote, offset, atomic(words)),
    };
    (work, options(words))
}

fn posts_together(port: &mut Port, held: &Held, words: &mut Words<'_>) -> Made {
    let (peer, count) = (words.peer(), words.number::<usize>());
    let works: Vec<_> = (0..count).map(|_| work(held, words)).collect();
    let mut batch = Batch::new(peer);
    for (work, options) in &works {
        match work {
            Work::Put(to, offset, Local::Part(part)) => batch.put(to, *offset, *part, *options),
            Work::Put(to, offset, Local::Bytes(bytes)) => batch.put(to, *offset, bytes, *options),
            Work::Word(to, offset, value) => batch.put_immediate(to, *offset, *value, *options),
            Work::Atomic(on, offset, what) => batch.atomic(on, *offset, *what, *options),
            Work::Notify => batch.notify(*options),
        };
    }
    let posted = port.release(&batch)?;
    done(posted.map_or_else(String::new, |ticket| ticket.0.to_string()))
}

fn operates(port: &mut Port, held: &Held, call: &str, words: &mut Words<'_>) -> Made {
    match call {
        "batch" => posts_together(port, held, words),
        "notify" => ticket(port.notify(words.peer(), options(words))?),
        "flush" => nothing(port.flush(words.peer())?),
        "flushed" => done(u8::from(port.is_flushed(words.peer()))),
        "barrier" => nothing(port.barrier()?),
        _ => {
            let (remote, offset) = (&held.remotes[words.handle()], words.number());
            if call == "epoch" {
                let step = EPOCH_STEPS[words.number::<usize>()];
                return fetched(try_epoch_step(port, remote, offset, step)?);
            }
            if call == "word" {
                let value = words.number();
                return ticket(port.put_immediate(remote, offset, value, options(words))?);
            }
            let what = atomic(words);
            match call {
                "atomic" => ticket(port.atomic(remote, offset, what, options(words))?),
                _ => fetched(port.fetch(remote, offset, what, options(words))?),
            }
        }
    }
}

fn about_messages(port: &mut Port, call: &str, words: &mut Words<'_>) -> Made {
    match call {
        "note" => noted(port.poll_notification()),
        "wait" => noted(Some(port.wait_notification(words.time())?)),
        "send" => nothing(port.send(words.peer(), words.number(), &words.bytes())?),
        "post" => nothing(port.send_wait(words.peer(), words.number(), &words.bytes())?),
        _ => {
            let mut into = vec![0; words.number()];
            let found = match call {
                "look" => port.try_recv(&mut into)?,
                _ => Some(port.recv(&mut into, words.time())?),
            };
            let Some(found) = found else { return Ok(Answer::Nothing) };
            let bytes = hex(&into[..found.len]);
            done(format!("{} {} {} {bytes}", found.source.0, found.tag, found.len))
        }
    }
}

fn about_queues(port: &mut Port, held: &mut Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { queues, produced, .. } = held;
    match call {
        "queue" => {
            let queue = port.create_queue(words.number())?;
            let longest = queue.record_max();
            done(format!("{} {longest}", keep(queues, queue)))
        }
        "producer" => {
            let (peer, queue) = (words.peer(), &mut queues[words.handle()]);
            nothing(port.share_queue(peer, queue, words.number())?)
        }
        "produces" => {
            let queue = port.accept_queue(words.peer(), words.number())?;
            let longest = queue.record_max();
            done(format!("{} {longest}", keep(produced, queue)))
        }
        "producers" => {
            let queue = &queues[words.handle()];
            let peers: Vec<_> = queue.producers().map(|peer| peer.0.to_string()).collect();
            done(peers.join(" "))
        }
        "remove" => {
            let queue = &mut queues[words.handle()];
            port.remove_producer(queue, words.peer());
            nothing(())
        }
        "enqueue" => {
            let queue = &mut produced[words.handle()];
            nothing(port.enqueue(queue, &words.bytes())?)
        }
        "dequeue" | "take" => {
            let queue = &mut queues[words.handle()];
            let mut into = vec![0; words.number()];
            let found = match call {
                "dequeue" => port.dequeue(queue, &mut into)?,
                _ => Some(port.dequeue_wait(queue, &mut into, words.time())?),
            };
            let Some(found) = found else { return Ok(Answer::Nothing) };
            done(format!("{} {} {}", found.source.0, found.len, hex(&into[..found.len])))
        }
        _ => panic!("no call `{call}`"),
    }
}
