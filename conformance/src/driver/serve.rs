//! A driver over the engine.
use super::words::{Answer, Words, hex};
use super::{BUSY, EPOCH_STEPS};
use ayre::{
    Atomic, AtomicOp, Batch, Classes, Config, Destination, Fault, Fenced, Fetched, Grant,
    LocalSlice, Mode, Notification, Options, Port, Queue, Region, RegionOptions, RemoteQueue,
    RemoteRegion, Rights, Source, Spin, Strided, Ticket, Width, try_epoch_step,
};
use std::io::{BufRead, Write};
use std::time::Duration;

/// Reads calls from standard input until it ends, and writes an answer to each.
///
/// # Panics
/// Where a call is none that a driver has.
pub fn serve() {
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let Some(open) = lines.next() else { return };
    let mut words = Words::of(&open);
    assert_eq!(words.word(), "open", "a driver is one port, which is opened first");
    let config = Config::new().number(words.number()).mode(Mode::Direct).spin(Spin::SHARED);
    let port = Port::open(config.linger(Duration::from_millis(50))).expect("a port opens");
    let mut driver = Driver { port: Some(port), held: Held::default() };
    answer(&Answer::Done(String::new()));
    for line in lines {
        let mut words = Words::of(&line);
        let call = words.word();
        answer(&driver.make(call, &mut words).unwrap_or_else(|why| why));
    }
}

fn answer(answer: &Answer) {
    let mut out = std::io::stdout();
    // A suite that has closed its end sends no further calls: the next read ends the driver.
    let _ = writeln!(out, "{}", answer.write()).and_then(|()| out.flush());
}

/// What came of a call; what the library has refused, as it is written.
type Made = Result<Answer, Answer>;

/// A port, and what it has given out.
struct Driver {
    port: Option<Port>,
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

fn options(words: &mut Words<'_>) -> Options {
    let classes = Classes::from_bits_truncate(words.number());
    Options::new().notify(classes).tag(words.number()).value(words.number())
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
    let numbers = word.strip_prefix('r')?.split(':').map(|number| number.parse().ok());
    let [number, offset, len]: [usize; 3] = numbers.collect::<Option<Vec<_>>>()?.try_into().ok()?;
    Some(regions[number].slice(offset..offset + len))
}

fn remote_words(number: usize, remote: &RemoteRegion) -> Made {
    let (len, rights, key) = (remote.len(), remote.rights().bits(), remote.key());
    done(format!("{number} {len} {rights} {} {}", key.slot, key.generation))
}

impl Driver {
    fn make(&mut self, call: &str, words: &mut Words<'_>) -> Made {
        if call == "leave" {
            self.port.take().expect("a port leaves once").leave()?;
            return nothing(());
        }
        let Self { port, held } = self;
        let port = port.as_mut().expect("nothing is called of a port that has left");
        match call {
            "listen" | "connect" | "accept" | "loopback" | "peers" | "mode" | "alive"
            | "disconnect" | "progress" | "count" => about_peers(port, call, words),
            "alloc" | "register" | "deregister" | "read" | "write" | "own" | "share" | "remote"
            | "revoke" | "narrow" => about_memory(port, held, call, words),
            "put" | "puts" | "get" | "gets" => transfers(port, held, call, words),
            "word" | "notify" | "atomic" | "fetch" | "batch" | "epoch" | "flush" | "flushed"
            | "barrier" => operates(port, held, call, words),
            "note" | "wait" | "send" | "post" | "look" | "receive" => {
                about_messages(port, call, words)
            }
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
                "busy" => counters.busy(BUSY[words.number::<usize>()]),
                "fault" => counters.faults(Fault::from_code(words.number())),
                _ => counters.malformed(),
            })
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
        "deregister" => nothing(port.deregister(&regions[words.number::<usize>()])?),
        "read" => {
            let (region, offset) = (&regions[words.number::<usize>()], words.number());
            let mut bytes = vec![0; words.number()];
            region.read(offset, &mut bytes);
            done(hex(&bytes))
        }
        "write" => {
            let (region, offset) = (&regions[words.number::<usize>()], words.number());
            region.write(offset, &words.bytes());
            nothing(())
        }
        "own" => {
            let (region, offset) = (&regions[words.number::<usize>()], words.number());
            fetched(region.atomic(offset, &atomic(words)))
        }
        "share" => {
            let (peer, region) = (words.peer(), &regions[words.number::<usize>()]);
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
            let remote = &remotes[words.number::<usize>()];
            let part = words.number()..words.number();
            let narrow = remote.narrow(part, Rights::from_bits_truncate(words.number()))?;
            let number = keep(remotes, narrow);
            remote_words(number, &remotes[number])
        }
        _ => {
            let grant = grants[words.number::<usize>()].take().expect("it is revoked once");
            done(u8::from(port.revoke(grant)? == Fenced::Moved))
        }
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
    let (remote, offset) = (&remotes[words.number::<usize>()], words.number());
    let word = words.word();
    let mut local = match part(word, regions) {
        Some(part) => Local::Part(part),
        None => Local::Bytes(Words::of(word).bytes()),
    };
    let shape = call.ends_with('s').then(|| rows(words));
    let options = options(words);
    if call.starts_with("put") {
        let from = match &local {
            Local::Part(part) => Source::Region(*part),
            Local::Bytes(bytes) => Source::Bytes(bytes),
        };
        return ticket(match shape {
            Some(rows) => port.put_strided(remote, offset, from, rows, options)?,
            None => port.put(remote, offset, from, options)?,
        });
    }
    let into = match &mut local {
        Local::Part(part) => Destination::Region(*part),
        Local::Bytes(bytes) => Destination::Bytes(bytes),
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

fn work<'a>(held: &'a Held, words: &mut Words<'_>) -> (Work<'a>, Options) {
    let call = words.word();
    if call == "notify" {
        return (Work::Notify, options(words));
    }
    let (remote, offset) = (&held.remotes[words.number::<usize>()], words.number());
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
            let (remote, offset) = (&held.remotes[words.number::<usize>()], words.number());
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
            let (peer, queue) = (words.peer(), &mut queues[words.number::<usize>()]);
            nothing(port.share_queue(peer, queue, words.number())?)
        }
        "produces" => {
            let queue = port.accept_queue(words.peer(), words.number())?;
            let longest = queue.record_max();
            done(format!("{} {longest}", keep(produced, queue)))
        }
        "producers" => {
            let queue = &queues[words.number::<usize>()];
            let peers: Vec<_> = queue.producers().map(|peer| peer.0.to_string()).collect();
            done(peers.join(" "))
        }
        "remove" => {
            let queue = &mut queues[words.number::<usize>()];
            port.remove_producer(queue, words.peer());
            nothing(())
        }
        "enqueue" => {
            let queue = &mut produced[words.number::<usize>()];
            nothing(port.enqueue(queue, &words.bytes())?)
        }
        "dequeue" | "take" => {
            let queue = &mut queues[words.number::<usize>()];
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
