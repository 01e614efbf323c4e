//! Active messages: calls that are answered, and calls that follow each other at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::active::{Handler, Messenger};
use ayre::channel::{Channel, ChannelOptions};
use ayre::{PeerId, Port};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::{Label, labelled, poll_until};

/// A messenger that several cases use, one at a time.
pub(crate) struct Talk {
    messenger: Messenger<u64>,
    peer: PeerId,
    count: Handler<0>,
    answer: Handler<0>,
    /// Answers without what it was sent: that all has come.
    confirm: Handler<0>,
    /// Takes bulk data, and does nothing.
    sink: Handler<0>,
    bulk: Channel,
    urgent: Channel,
    /// Handlers that have run, and that were waited for.
    ran: u64,
    awaited: u64,
    data: Buffer,
}

impl Talk {
    /// Joins the job with a port of its own. Collective.
    pub(crate) fn join() -> Result<Rc<RefCell<Self>>> {
        let port = Port::join()?;
        let peer = port.peer(1 - port.rank()).context("there are two ranks")?;
        let mut messenger = Messenger::new(port);
        let count = messenger.register("count", |ran: &mut u64, _, [], _: &[u8]| *ran += 1)?;
        let answer = messenger.register("answer", move |ran: &mut u64, call, [], data| {
            *ran += 1;
            let answered = call.reply(count, [], data);
            debug_assert!(answered.is_ok(), "the peer waits for it");
        })?;
        let confirm = messenger.register("confirm", move |ran: &mut u64, call, [], _| {
            *ran += 1;
            let answered = call.reply(count, [], &[]);
            debug_assert!(answered.is_ok(), "the peer waits for it");
        })?;
        let sink = messenger.register("sink", |_: &mut u64, _, [], _| ())?;
        let bulk = messenger.channels().open(1, ChannelOptions::new())?;
        let urgent = messenger.channels().open(2, ChannelOptions::new().priority(7))?;
        let mut ran = 0;
        messenger.sync(&mut ran)?;
        let (awaited, data) = (ran, Buffer::default());
        Ok(Rc::new(RefCell::new(Self {
            messenger,
            peer,
            count,
            answer,
            confirm,
            sink,
            bulk,
            urgent,
            ran,
            awaited,
            data,
        })))
    }

    fn call(&mut self, handler: Handler<0>) -> Result<()> {
        Ok(self.messenger.call(&mut self.ran, self.peer, handler, [], &self.data)?)
    }

    /// Polls until `count` more handlers have run; one poll may run some that are waited for later.
    fn serve(&mut self, count: u64) -> Result<()> {
        self.awaited += count;
        poll_until(|| {
            self.messenger.poll(&mut self.ran);
            Ok(self.ran >= self.awaited)
        })
    }
}

/// The answers to calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Each call has what it was sent for an answer: the latency of one way is half of the time.
    Long,
    /// Each call has a short answer.
    Short,
    /// Calls follow each other at once, and the last one has a short answer.
    Last,
}

/// Calls of rank 0.
pub(crate) struct Calls {
    pub(crate) label: Label,
    pub(crate) talk: Rc<RefCell<Talk>>,
    pub(crate) answers: Answers,
}

impl Case for Calls {
    labelled!();

    fn operations(&self) -> u64 {
        if self.answers == Answers::Long { 2 } else { 1 }
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.talk.borrow_mut().data = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let talk = &mut *self.talk.borrow_mut();
        let start = Instant::now();
        if !side.measures() {
            talk.serve(iterations)?;
            // A long answer takes more polls than the one that has run its handler.
            talk.messenger.flush(&mut talk.ran);
            return Ok(start.elapsed());
        }
        for number in 1..=iterations {
            if self.answers == Answers::Last && number < iterations {
                talk.call(talk.count)?;
            } else {
                let is_long = self.answers == Answers::Long;
                talk.call(if is_long { talk.answer } else { talk.confirm })?;
                talk.serve(1)?;
            }
        }
        Ok(start.elapsed())
    }
}

/// A message that waits for its answer, and its way; bulk data goes another way all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// By an urgent channel, and there is no bulk data.
    Nothing,
    /// By an urgent channel.
    Bulk,
    /// By the channel of the bulk data itself.
    Behind,
}

/// Calls of rank 0 by a channel, each answered: half of the time until then.
pub(crate) struct Urgent {
    pub(crate) label: Label,
    pub(crate) talk: Rc<RefCell<Talk>>,
    pub(crate) beside: Beside,
}

/// Bytes of a message of bulk data.
const BULK_BYTES: usize = 64 << 10;

impl Case for Urgent {
    labelled!();

    fn operations(&self) -> u64 {
        2
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.talk.borrow_mut().data = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let talk = &mut *self.talk.borrow_mut();
        let mut elapsed = Duration::ZERO;
        if !side.measures() {
            // The last one comes behind all bulk data.
            talk.serve(iterations + 1)?;
            talk.messenger.flush(&mut talk.ran);
            return Ok(elapsed);
        }
        let by = if self.beside == Beside::Behind { talk.bulk } else { talk.urgent };
        let bulk = vec![0; BULK_BYTES];
        for _ in 0..iterations {
            let mut bulk_waits = self.beside != Beside::Nothing;
            while bulk_waits {
                let sent = talk.messenger.on(talk.bulk).try_call(talk.peer, talk.sink, [], &bulk);
                bulk_waits = sent.is_ok();
            }
            let start = Instant::now();
            talk.messenger.on(by).call(&mut talk.ran, talk.peer, talk.answer, [], &talk.data)?;
            talk.serve(1)?;
            elapsed += start.elapsed();
        }
        talk.messenger.on(talk.bulk).call(&mut talk.ran, talk.peer, talk.confirm, [], &[])?;
        talk.serve(1)?;
        Ok(elapsed)
    }
}
