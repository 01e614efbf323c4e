//! The parts between a node and its program under a [`Profile`]: a mailbox and a lock unit.
//!
//! ```text
//!   node --messages--> tag of locks ? --no---> mailbox ---> program
//!                            '----yes--> lock unit --answer--> node
//! ```
//!
//! Requests for locks and their answers are short messages of the protocol, and the unit applies
//! the protocol's atomic to its words. They are no commands: a node executes the commands of a peer
//! in their order. A parked one would hold up all later ones of its peer, the one that gives the
//! lock back among them. A lock unit answers messages whenever it likes.
use super::frames::{Heap, Passing, Sending};
use super::profile::{ANSWER, LOCK_TAG, LockRequest, Mail, Profile};
use super::{Event, Program};
use crate::extoll::lock::{Answer, Lock, LockSpace, Request};
use crate::extoll::mailbox::Mailbox;
use crate::time::Time;
use ayre_proto::node::effects::Host;
use ayre_proto::node::initiator::Refused;
use ayre_proto::node::peer::Message;
use ayre_proto::node::{Node, PostError};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// Words of a request: its number, the lock, the limit and the addend.
const REQUEST: usize = 5;

/// The parts of a node's interface that its profile has.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) mailbox: Option<Mailbox<Mail>>,
    pub(super) locks: LockSpace,
    /// Requests for locks that the program has made.
    requests: u32,
    /// Answers that have found no room yet.
    answers: VecDeque<Answer>,
}

impl Interface {
    pub(super) fn new(profile: &Profile) -> Self {
        let locks = profile.locks.map(|locks| LockSpace::new(locks.processes, locks.places));
        Self {
            mailbox: profile.mailbox.map(|mailbox| Mailbox::new(mailbox.slots)),
            locks: locks.unwrap_or_default(),
            requests: 0,
            answers: VecDeque::new(),
        }
    }

    /// The program asks a lock unit: the number of the request, and its message.
    pub(super) fn ask(&mut self, request: &LockRequest) -> (u32, Vec<u8>) {
        self.requests = self.requests.wrapping_add(1);
        let LockRequest { lock: Lock { process, number }, limit, addend } = *request;
        let words = [self.requests, process, number, limit as u32, addend as u32];
        (self.requests, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Takes a peer's next message for the program out of the mailbox. Messages of others are not
    /// passed by: the ring has one end.
    pub(super) fn read(&mut self, from: PeerId) -> Option<Message> {
        let mailbox = self.mailbox.as_mut()?;
        mailbox.peek().filter(|mail| mail.source == from)?;
        mailbox.read().map(|mail| mail.message)
    }

    /// Takes all messages that have come, and answers requests.
    pub(super) fn take_in(
        &mut self,
        profile: &Profile,
        (node, now): (&mut Node<Heap, Program>, Time),
        host: &mut Host<'_, Program, Sending<'_>>,
    ) {
        if profile.mailbox.is_none() && profile.locks.is_none() {
            return;
        }
        for peer in (0..host.wire.is_dead.len()).map(|number| PeerId(number as u16)) {
            while let Some(message) = node.receive(peer, host) {
                if message.tag == LOCK_TAG {
                    self.on_lock(peer, &message.bytes, host.program);
                } else {
                    self.on_mail(profile, Mail { source: peer, message }, now, host.wire);
                }
            }
        }
        let waiting = self.answers.len();
        for _ in 0..waiting {
            let Some(answer) = self.answers.pop_front() else { break };
            let to = PeerId(answer.node as u16);
            let words = [answer.number, answer.value as u32, u32::from(answer.success)];
            let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            match node.send(to, LOCK_TAG, &data) {
                Err(PostError::Refused(Refused::NoRoom)) => self.answers.push_back(answer),
                // If the node has gone, no wait is left to end.
                Ok(()) | Err(_) => node.serve(to, now.0 / super::step::NANO, host),
            }
        }
    }

    fn on_mail(&mut self, profile: &Profile, mail: Mail, now: Time, wire: &mut Sending<'_>) {
        let (Some(mailbox), Some(mailboxes)) = (&mut self.mailbox, profile.mailbox) else { return };
        let is_written = mailbox.arrive(mail.message.bytes.len() as u32, mail);
        if is_written && mailbox.interrupts {
            let place = wire.underway.add(Passing::Interrupt(wire.own));
            wire.underway.arrives(now + mailboxes.interrupt, place);
        }
    }

    /// A request, or an answer to one.
    fn on_lock(&mut self, peer: PeerId, bytes: &[u8], program: &mut Program) {
        if let Some([number, value, success]) = words::<ANSWER>(bytes) {
            let (node, value, success) = (u32::from(peer.0), value as i32, success != 0);
            program.events.push_back(Event::Lock(peer, Answer { node, number, value, success }));
        } else if let Some([number, process, lock, limit, addend]) = words::<REQUEST>(bytes) {
            let (node, lock) = (u32::from(peer.0), Lock { process, number: lock });
            let request = Request { node, number, limit: limit as i32, addend: addend as i32 };
            self.answers.extend(self.locks.request(lock, request).into_iter().flatten());
        }
    }
}

/// The words of a message that has exactly `N` of them.
fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let (words, rest) = bytes.as_chunks();
    let words: [[u8; 4]; N] = words.try_into().ok().filter(|_| rest.is_empty())?;
    Some(words.map(u32::from_le_bytes))
}
