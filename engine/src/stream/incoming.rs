//! Taking what peers say of streams, and their items.
use crate::active::Messenger;
use ayre_proto::active::record::{ITEM, STREAM};
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{Message, weight};
use ayre_proto::units::PeerId;

/// Messages that a peer may be owed: more than streams and entries that it can have need.
// spec: PIPE-17
const OWED_MAX: usize = 16_384;

impl<S> Messenger<S> {
    /// Takes a record of a stream that lies in the buffer; returns how many stages were run.
    // spec: PIPE-17, PIPE-18
    #[inline(never)]
    pub(crate) fn take_stream(
        &mut self,
        state: &mut S,
        (source, tag): (PeerId, u32),
        len: usize,
    ) -> usize {
        self.streams.met(source, true);
        let bytes = &self.buffer[..len];
        let taken = match bytes.split_first_chunk() {
            Some((number, item)) if tag == ITEM => {
                let (number, item) = (u32::from_le_bytes(*number), item.to_vec());
                self.take_item(state, source, number, item)
            }
            None if tag == ITEM => Err(Malformed),
            _ if self.out.owes_more(source, STREAM, OWED_MAX) => Err(Malformed),
            _ => Message::parse(bytes).and_then(|message| self.hear(state, source, message)),
        };
        let ran = taken.unwrap_or_else(|Malformed| {
            self.out.port.end_malformed_lane(source);
            0
        });
        // Not before: this may be the last that one says who has gone.
        ran + self.streams.bury(state, &mut self.out)
    }

    /// The same of one that has come by the landing.
    pub(crate) fn take_long_item(
        &mut self,
        state: &mut S,
        source: PeerId,
        argument: &[u8],
        item: Vec<u8>,
    ) -> Result<usize, Malformed> {
        let number = argument.try_into().map(u64::from_le_bytes).map_err(|_| Malformed)?;
        let number = u32::try_from(number).map_err(|_| Malformed)?;
        self.take_item(state, source, number, item)
    }

    /// What is due of streams in a poll; returns how many stages were run.
    #[inline(always)]
    pub(crate) fn advance_streams(&mut self, state: &mut S) -> usize {
        match self.streams.is_due(&self.out) {
            true => self.streams.advance(state, &mut self.out),
            false => 0,
        }
    }

    /// An item has come whole.
    // spec: PIPE-8
    fn take_item(
        &mut self,
        state: &mut S,
        source: PeerId,
        number: u32,
        item: Vec<u8>,
    ) -> Result<usize, Malformed> {
        let taken = self.streams.with((&mut *state, &mut self.out), |machine, side| {
            if let Some(place) = machine.on_item(source, number, weight(item.len()))? {
                side.queue(place).arrived.push_back(item);
            }
            Ok(())
        });
        taken.0?;
        Ok(self.streams.advance(state, &mut self.out))
    }

    // spec: PIPE-6, PIPE-17
    fn hear(
        &mut self,
        state: &mut S,
        source: PeerId,
        message: Message,
    ) -> Result<usize, Malformed> {
        if let Message::Answer { request, answer } = message {
            return self.streams.on_answer(source, request, answer).map(|()| 0);
        }
        let (taken, ran) = self.streams.with((&mut *state, &mut self.out), |machine, side| {
            machine.on_message(source, message, side)
        });
        taken?;
        Ok(ran + self.streams.advance(state, &mut self.out))
    }
}
