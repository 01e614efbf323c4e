//! An outsider that has messages sent to a group by one of its members, its door.
use super::message::Message;
use super::{Member, Refusal};
use crate::lane::Malformed;

/// The answer to an outsider's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was ordered: every member delivers it.
    Done,
    /// Nothing has happened; it may be asked again.
    Refused,
    /// The door is no member any more; whether the message was ordered is not known.
    Gone,
}

/// An outsider. It has one message under way at a time, so they keep their order. If its door dies,
/// whether the message under way was ordered is not known; at another door it is another outsider.
// spec: GRP-11
#[derive(Debug)]
pub struct Outsider {
    door: Member,
    waits: bool,
}

impl Outsider {
    /// An outsider with this door.
    pub const fn new(door: Member) -> Self {
        Self { door, waits: false }
    }

    /// The message to the door that has all members deliver the payload.
    pub fn ask<P>(&mut self, payload: P) -> Result<Message<'static, P>, Refusal> {
        if self.waits {
            return Err(Refusal::Busy);
        }
        self.waits = true;
        Ok(Message::Ask { payload })
    }

    /// A message has come.
    pub fn on_message<P>(
        &mut self,
        from: Member,
        message: &Message<'_, P>,
    ) -> Result<Answer, Malformed> {
        let answer = match *message {
            Message::Done => Answer::Done,
            Message::Refused => Answer::Refused,
            Message::Gone => Answer::Gone,
            _ => return Err(Malformed),
        };
        if from != self.door || !self.waits {
            return Err(Malformed);
        }
        self.waits = false;
        Ok(answer)
    }
}
