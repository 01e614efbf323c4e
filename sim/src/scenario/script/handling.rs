//! Active messages: a node that waits runs the handlers of those that have come.
//!
//! A handler may compute, look at its node's memory, and call other nodes. It waits for nobody, as
//! the contract demands: a message without room is kept, and sent later. So it may not post
//! operations whose ends somebody has to wait for.
use super::error::OPERATIONS_MAX;
use super::node::Handling;
use super::post::{Tried, bytes_differ};
use super::runner::{Over, Runner};
use super::way::{Arrived, Kept, OWN, Way};
use super::{Arguments, Call, Line, ScriptError, ScriptFault, Statement, Who};
use ayre_proto::active::STATIC_IDS;
use ayre_proto::active::long::Message as Long;
use ayre_proto::active::record::Record;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::PeerId;

impl Runner<'_> {
    /// Sends an active message, if there is room. A long one is kept, and goes piece by piece.
    pub(super) fn call(&mut self, node: u32, call: &Call) -> Tried {
        let to = call.to.resolve(node, self.world.nodes);
        if call.is_long() {
            self.keep(node, to, call);
            return Tried::Over;
        }
        if !self.way(node, to).is_free() {
            return Tried::Busy;
        }
        self.keep(node, to, call);
        match self.way(node, to).kept.is_empty() {
            true => Tried::Over,
            false => {
                self.way(node, to).kept.clear();
                Tried::Busy
            }
        }
    }

    /// Sends a message as far as there is room, and keeps the rest.
    fn keep(&mut self, node: u32, to: u32, call: &Call) {
        let id = STATIC_IDS.start() + call.handler as u32;
        let (arguments, payload) = (call.arguments.bytes(), vec![call.fill; call.len as usize]);
        self.way(node, to).kept.push_back(Kept { id, arguments, payload, sent: 0 });
        self.send_kept(node, to);
    }

    /// Sends messages that were kept, as far as there is room.
    pub(super) fn send_kept(&mut self, node: u32, peer: u32) {
        let to = PeerId(peer as u16);
        while !self.way(node, peer).outward.is_held() {
            let Some(mut kept) = self.way(node, peer).kept.pop_front() else { return };
            let Kept { id, arguments, payload, sent } = &mut kept;
            let is_sent = if arguments.len() + payload.len() > EAGER_MAX {
                let long = Long { id: *id, arguments, payload };
                self.advance((node, peer), long, sent)
            } else {
                let (tag, bytes) = match arguments.len() + payload.len() {
                    0 => Record::Empty(*id).encode(),
                    _ => (*id, Default::default()),
                };
                let message = [&bytes[..], arguments, payload].concat();
                self.world.cluster.send(node, to, OWN + tag, &message).map(|()| true)
            };
            if !is_sent.unwrap_or_else(|_| self.world.cluster.connection(node, to).is_err()) {
                self.way(node, peer).kept.push_front(kept);
                return;
            }
        }
    }

    /// Whether a node keeps messages for others that live.
    pub(super) fn has_kept(&self, node: u32) -> bool {
        let peers = self.world.talks.get(&node).into_iter().flatten();
        let is_kept = |way: &Way| !way.kept.is_empty();
        peers.into_iter().any(|peer| self.ways.get(&(node, *peer)).is_some_and(is_kept))
    }

    /// Goes on with the handler that a node runs. Returns whether it has moved.
    pub(super) fn handle(&mut self, node: u32) -> Over {
        let script = self.world.script;
        let Some(handling) = &mut self.member_mut(node).handling else { return Ok(false) };
        let (at, source) = (handling.at, handling.source);
        let Some(line) = script.handlers[handling.handler].body.get(at) else {
            let begun = handling.begun;
            let member = self.member_mut(node);
            member.handling = None;
            member.served += 1;
            self.count_since("handler", begun);
            self.handle_next(node)?;
            return Ok(true);
        };
        match line.statement {
            Statement::Compute(span) => {
                let now = self.world.cluster.now();
                let end = now + span.time(self.cycle);
                let member = self.member_mut(node);
                if *member.wake.get_or_insert(end) > now {
                    return Ok(false);
                }
                member.wake = None;
            }
            Statement::Call(call) => {
                let to = if call.to == Who::Source { Who::Number(source) } else { call.to };
                let to = to.resolve(node, self.world.nodes);
                self.keep(node, to, &call);
            }
            Statement::Called { len, expect, arguments } => {
                self.called(node, line, (len, expect), arguments)?;
            }
            _ => {
                self.operate(node, line)?;
            }
        }
        if let Some(handling) = &mut self.member_mut(node).handling {
            handling.at += 1;
        }
        Ok(true)
    }

    /// Begins with the handler of the next message that has come, if none is run.
    pub(super) fn handle_next(&mut self, node: u32) -> Result<(), ScriptError> {
        let now = self.world.cluster.now();
        let member = self.member_mut(node);
        if member.handling.is_some() {
            return Ok(());
        }
        let Some((source, id, message)) = member.calls.pop_front() else { return Ok(()) };
        let handler = (id - STATIC_IDS.start()) as usize;
        member.handling = Some(Handling { handler, at: 0, source, message, begun: now });
        self.handled += 1;
        if self.handled > OPERATIONS_MAX {
            let script = self.world.script;
            let number = self.member_mut(node).line(script).map_or(1, |line| line.number);
            return Err(script.fail(number, ScriptFault::Calls));
        }
        Ok(())
    }

    /// Compares the message of a handler with what is expected.
    fn called(
        &self,
        node: u32,
        line: &Line,
        (len, expect): (u64, Option<u8>),
        arguments: Arguments,
    ) -> Result<(), ScriptError> {
        let Some(handling) = &self.member(node).handling else { return Ok(()) };
        let expected = arguments.bytes();
        let Some((own, payload)) = handling.message.split_at_checked(expected.len()) else {
            return Err(self.unexpected(node, line, "has fewer arguments".to_owned()));
        };
        let what = match () {
            () if own != expected => Some("has other arguments".to_owned()),
            () if payload.len() as u64 != len => {
                Some(format!("brought {} B, and {len} are expected", payload.len()))
            }
            () => expect.and_then(|expect| bytes_differ(payload, expect)),
        };
        what.map_or(Ok(()), |what| Err(self.unexpected(node, line, what)))
    }

    /// A message to a handler has come.
    pub(super) fn on_call(&mut self, node: u32, peer: u32, arrived: Arrived) {
        let Arrived { id, bytes } = arrived;
        self.member_mut(node).calls.push_back((peer, id, bytes));
    }
}
