//! Active messages: calls that are answered, and calls that follow each other at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::active::{Handler, Messenger};
use ayre::{PeerId, Port};

use super::super::case::{Case, Metric, Path};
use super::super::raw::buffer::Buffer;
use super::super::raw::{RawKind, Side};
use super::{Label, labelled, poll_until};

/// A messenger that several cases use, one at a time.
pub(crate) struct Talk {
    messenger: Messenger<u64>,
    peer: PeerId,
    count: Handler<0>,
    answer: Handler<0>,
    /// Answers without what it was sent: that all has come.
    confirm: Handler<0>,
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
        let mut ran = 0;
        messenger.sync(&mut ran)?;
        let (awaited, data) = (ran, Buffer::default());
        Ok(Rc::new(RefCell::new(Self {
            messenger,
            peer,
            count,
            answer,
            confirm,
            ran,
            awaited,
            data,
        })))
    }

    fn call(&mut self, handler: Handler<0>) -> Result<()> {
        Ok(self.messenger.call(&mut self.ran, self.peer, handler, [], &self.data)?)
    }

    /// Polls until so many more handlers have run; one poll may run some that are waited for later.
    fn serve(&mut self, count: u64) -> Result<()> {
        self.awaited += count;
        poll_until(|| {
            self.messenger.poll(&mut self.ran);
            Ok(self.ran >= self.awaited)
        })
    }
}

/// Calls of rank 0. Where each is answered, the latency of one way is half of it; else they follow
/// each other at once, and only the last one is answered, shortly.
pub(crate) struct Calls {
    pub(crate) label: Label,
    pub(crate) talk: Rc<RefCell<Talk>>,
    pub(crate) each_answered: bool,
}

impl Case for Calls {
    labelled!();

    fn operations(&self) -> u64 {
        if self.each_answered { 2 } else { 1 }
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
            if self.each_answered || number == iterations {
                talk.call(if self.each_answered { talk.answer } else { talk.confirm })?;
                talk.serve(1)?;
            } else {
                talk.call(talk.count)?;
            }
        }
        Ok(start.elapsed())
    }
}
