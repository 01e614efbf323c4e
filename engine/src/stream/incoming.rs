//! Receiving the streams' messages of peers, and items.
use super::state::StreamTable;
use crate::active::outgoing::Outgoing;
use crate::active::{Extension, LongHead, Messenger};
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{ITEM, ITEM_MAX, Message, STREAM, weight};
use ayre_proto::units::PeerId;

/// The most messages that a peer may be owed, more than its streams and entries need.
// spec: PIPE-17
const OWED_MAX: usize = 16_384;

impl<S> Extension<S> for StreamTable<S> {
    fn takes(tag: u32) -> bool {
        matches!(tag, ITEM | STREAM)
    }

    // spec: PIPE-17, PIPE-18
    #[inline(never)]
    fn on_record(
        messenger: &mut Messenger<S>,
        state: &mut S,
        (source, tag): (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed> {
        messenger.stream_table().met(source, true);
        let bytes = &messenger.buffer[..len];
        let taken = match bytes.split_first_chunk() {
            Some((number, item)) if tag == ITEM => {
                let (number, item) = (u32::from_le_bytes(*number), item.to_vec());
                messenger.take_item(state, source, number, item)
            }
            None if tag == ITEM => Err(Malformed),
            _ if messenger.out.owes_more(source, STREAM, OWED_MAX) => Err(Malformed),
            _ => Message::parse(bytes).and_then(|message| messenger.hear(state, source, message)),
        };
        let ran = taken.unwrap_or_else(|Malformed| {
            messenger.out.port.end_malformed_lane(source);
            0
        });
        // Behind the message, which may be the last one of a peer that has gone.
        let (streams, out) = messenger.stream_table_and_out();
        Ok(ran + streams.bury(state, out))
    }

    fn admits(long: &LongHead<'_>) -> bool {
        long.id == ITEM && long.total <= ITEM_MAX as u64 && long.arguments.len() == 8
    }

    fn on_long(
        messenger: &mut Messenger<S>,
        state: &mut S,
        source: PeerId,
        (_, argument): (u32, &[u8]),
        item: Vec<u8>,
    ) -> Result<usize, Malformed> {
        let number = argument.try_into().map(u64::from_le_bytes).map_err(|_| Malformed)?;
        let number = u32::try_from(number).map_err(|_| Malformed)?;
        messenger.take_item(state, source, number, item)
    }

    #[inline(always)]
    fn advance(messenger: &mut Messenger<S>, state: &mut S) -> usize {
        let (streams, out) = messenger.stream_table_and_out();
        if streams.is_due(out) { streams.advance(state, out) } else { 0 }
    }

    fn is_due(messenger: &Messenger<S>) -> bool {
        let streams: &Self = messenger.features.as_ref();
        streams.is_due(&messenger.out)
    }

    fn on_death(messenger: &mut Messenger<S>, peer: PeerId) {
        messenger.stream_table().on_death(peer);
    }
}

impl<S> Messenger<S> {
    #[inline(always)]
    pub(super) fn stream_table(&mut self) -> &mut StreamTable<S> {
        self.features.as_mut()
    }

    /// The streams, and the sending side.
    #[inline(always)]
    pub(super) fn stream_table_and_out(&mut self) -> (&mut StreamTable<S>, &mut Outgoing) {
        (self.features.as_mut(), &mut self.out)
    }

    /// Takes an item that has arrived whole.
    // spec: PIPE-8
    fn take_item(
        &mut self,
        state: &mut S,
        source: PeerId,
        number: u32,
        item: Vec<u8>,
    ) -> Result<usize, Malformed> {
        debug_assert!(item.len() <= ITEM_MAX, "a longer one is refused before");
        let (streams, out) = self.stream_table_and_out();
        let taken = streams.with((&mut *state, &mut *out), |machine, side| {
            if let Some(place) = machine.on_item(source, number, weight(item.len()))? {
                side.queue(place).arrived.push_back(item);
            }
            Ok(())
        });
        taken.0?;
        Ok(streams.advance(state, out))
    }

    // spec: PIPE-6, PIPE-17
    fn hear(
        &mut self,
        state: &mut S,
        source: PeerId,
        message: Message,
    ) -> Result<usize, Malformed> {
        if let Message::Answer { request, answer } = message {
            return self.stream_table().on_answer(source, request, answer).map(|()| 0);
        }
        let (streams, out) = self.stream_table_and_out();
        let (taken, ran) = streams.with((&mut *state, &mut *out), |machine, side| {
            machine.on_message(source, message, side)
        });
        taken?;
        Ok(ran + streams.advance(state, out))
    }
}
