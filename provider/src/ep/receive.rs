//! Posting receives, looking for messages that have come, taking receives back.

use super::core::{Core, State};
use super::end::{failure, tell};
use super::op::{Kind, Op};
use super::side::{Reported, Way};
use crate::abi::{
    ADDR_NOTAVAIL, ADDR_UNSPEC, CLAIM, COMPLETION, DISCARD, MULTI_RECV, PEEK, REMOTE_CQ_DATA, errno,
};
use crate::error::{Code, Outcome};
use crate::queue::cq::QueuedCompletion;
use crate::record::Posted;
use ayre::endpoint::{
    RemoteId,
    raw::{PostedReceive, Probed, Spans},
};
use ayre_guest::cell::{Guard, Policy};
use std::collections::hash_map::Entry;

/// A receive to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The program's number of whom it takes messages from, where it may say so.
    pub(crate) source: u64,
    /// Its tag and the bits of it that do not matter.
    pub(crate) tag: Option<(u64, u64)>,
    pub(crate) into: Spans,
    /// Where that begins.
    pub(crate) buf: usize,
    pub(crate) context: usize,
}

impl<L: Policy> Core<L> {
    /// Posts a receive.
    ///
    /// # Errors
    /// `ENOMEM` where as many wait as there is memory for; `EOPBADSTATE` before the endpoint is
    /// enabled; those of a peer that cannot be found.
    #[inline(always)]
    pub(crate) fn receive(&self, wanted: Wanted, reported: Reported) -> Outcome {
        self.posting(
            wanted,
            |wanted, state| Some(posted(wanted, state.rx.flags(reported))),
            #[inline(always)]
            |wanted| {
                self.state.with(
                    #[inline(always)]
                    |state| state.receive(wanted, reported),
                )
            },
        )
    }

    /// Looks for a message, or receives or throws away one that was found, as the flags say.
    ///
    /// # Errors
    /// `ENOMSG` where nothing was set aside for this context; those of [`Core::receive`].
    pub(crate) fn search(&self, wanted: Wanted, flags: u64) -> Outcome {
        self.posting(
            wanted,
            |wanted, state| {
                let takes = flags & (PEEK | DISCARD) == 0;
                takes.then(|| posted(wanted, state.rx.flags(Reported::By(flags))))
            },
            |wanted| {
                self.state.with(|state| match flags & PEEK {
                    0 => state.take(wanted, flags),
                    _ => state.peek(&wanted, flags),
                })
            },
        )
    }

    /// Takes a receive back; its end is told.
    ///
    /// # Errors
    /// `ENOENT` where none of this context waits.
    pub(crate) fn cancel(&self, context: usize) -> Outcome {
        // The lower half of what the engine keeps for us: see `op.rs`.
        let is_taken = self.state.with(|state| state.cancel(context as u64));
        if is_taken { Ok(()) } else { Err(Code(errno::ENOENT)) }
    }
}

/// A receive, for a recording.
fn posted(wanted: &Wanted, flags: u64) -> Posted {
    Posted {
        kind: match wanted.tag {
            Some(_) => "trecv",
            None if flags & MULTI_RECV != 0 => "mrecv",
            None => "recv",
        },
        to: ADDR_NOTAVAIL,
        tag: 0,
        bytes: wanted.into.len(),
        context: (flags & COMPLETION != 0).then_some(wanted.context),
    }
}

impl<L: Policy> State<L> {
    #[inline(always)]
    fn receive(&mut self, wanted: Wanted, reported: Reported) -> Outcome {
        let flags = self.rx.flags(reported);
        let Wanted { source, tag, into, buf, context } = wanted;
        let source = self.source(source)?;
        let is_many = flags & MULTI_RECV != 0 && tag.is_none();
        let many = is_many.then_some(self.min_multi_recv as u64);
        let (kind, is_told) = (Kind::receive(tag.is_some()), flags & COMPLETION != 0);
        let op = Op { context, buf, kind, is_told, is_many };
        let receive = PostedReceive { source, tag, into, context: op.into(), many };
        self.endpoint.receive(receive).map_err(|error| self.refused(ADDR_NOTAVAIL, error))
    }

    fn cancel(&mut self, label: u64) -> bool {
        // What ended before is told before.
        if self.rx.must_look() {
            return self.endpoint.cancel(label);
        }
        let Self { endpoint, tx, rx, peers, latest, counting, .. } = self;
        endpoint.cancel_now(label, |end| tell(end, (tx, rx), (peers, latest), counting.as_ref()))
    }

    /// The source that a receive accepts.
    #[inline(always)]
    fn source(&mut self, number: u64) -> Outcome<Option<RemoteId>> {
        if !self.is_enabled {
            return Err(Code(errno::EOPBADSTATE));
        }
        if !self.is_directed || number == ADDR_UNSPEC {
            return Ok(None);
        }
        match self.peers.remote(number) {
            Some(remote) => Ok(Some(remote)),
            None => self.look_up(number).map(Some),
        }
    }

    #[inline(never)]
    fn peek(&mut self, wanted: &Wanted, flags: u64) -> Outcome {
        if self.peers.remote(wanted.source).is_some_and(|remote| !self.endpoint.knows(remote)) {
            self.forget_stale();
        }
        let source = self.source(wanted.source)?;
        self.progress();
        let Some(found) = self.endpoint.find(source, wanted.tag) else {
            let completion = QueuedCompletion {
                tag: wanted.tag.map_or(0, |(tag, _)| tag),
                ..QueuedCompletion::new(wanted.context, flags_of(wanted))
            };
            self.rx.failed(Way::Message, failure(completion, Code(errno::ENOMSG), 0));
            return Ok(());
        };
        if flags & DISCARD != 0 {
            self.endpoint.discard(wanted.tag.is_some(), found.id);
        } else if flags & CLAIM != 0 {
            self.endpoint.set_aside(wanted.tag.is_some(), found.id);
            self.claimed.entry(wanted.context).or_default().push_back(found);
        }
        self.tell_found(wanted, &found, flags);
        Ok(())
    }

    /// Receives or discards a message that was set aside.
    #[inline(never)]
    fn take(&mut self, wanted: Wanted, flags: u64) -> Outcome {
        let Entry::Occupied(mut claimed) = self.claimed.entry(wanted.context) else {
            return Err(Code(errno::ENOMSG));
        };
        let found = claimed.get_mut().pop_front().expect("there is one, or no entry");
        if claimed.get().is_empty() {
            claimed.remove();
        }
        let is_tagged = wanted.tag.is_some();
        if flags & DISCARD != 0 {
            self.endpoint.discard(is_tagged, found.id);
            self.tell_found(&wanted, &found, flags);
            return Ok(());
        }
        let is_told = self.rx.flags(Reported::By(flags)) & COMPLETION != 0;
        let Wanted { context, buf, into, .. } = wanted;
        let kind = Kind::receive(is_tagged);
        let op = Op { context, buf, kind, is_told, is_many: false };
        let taken = self.endpoint.receive_found(is_tagged, found.id, (into, op.into()));
        taken.map_err(|error| self.refused(ADDR_NOTAVAIL, error))
    }

    /// A message was found, or thrown away.
    fn tell_found(&mut self, wanted: &Wanted, Probed { message, .. }: &Probed, flags: u64) {
        let data = if message.data.is_some() { REMOTE_CQ_DATA } else { 0 };
        let completion = QueuedCompletion {
            context: wanted.context,
            flags: flags_of(wanted) | data,
            len: message.len as usize,
            buf: 0,
            data: message.data.unwrap_or(0),
            tag: message.tag.unwrap_or(0),
            source: self.peers.number(message.source),
        };
        let is_told = self.rx.flags(Reported::By(flags)) & COMPLETION != 0;
        self.rx.ended(Way::Message, completion, is_told);
    }
}

fn flags_of(wanted: &Wanted) -> u64 {
    Kind::receive(wanted.tag.is_some()).flags()
}
