//! Streams, as programs call them.
use super::effects::{Flow, Input, Registered, Stage};
use super::laid::Laid;
use super::state::StreamTable;
use crate::active::Messenger;
use crate::error::SetupError;
use ayre_proto::active::NAME_MAX;
use ayre_proto::stream::{EntryAnswer, ITEM_MAX, StreamFailure};
use ayre_proto::units::PeerId;
use std::fmt;

/// The source of a stream, which is to be [closed](Streams::close).
#[must_use = "a stream ends when it is closed"]
#[derive(Debug)]
pub struct Stream {
    pub(super) number: u32,
    pub(super) place: u16,
    pub(super) laid: Laid,
}

/// Why a stream has ended before its time, or could not be laid.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It has failed at a port.
    // spec: PIPE-14
    #[error("the stream has failed at port {}: {}", .0.at.index(), .0.why)]
    Failed(StreamFailure),
    /// A port does not set, or clear, an entry.
    // spec: PIPE-6
    #[error("port {} does not change its directory: {:?}", .0.index(), .1)]
    Refused(PeerId, EntryAnswer),
    /// The item is longer than [`ITEM_MAX`].
    #[error("an item has at most {ITEM_MAX} bytes")]
    TooLong,
}

/// Why an item was not pushed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no room: the next port, or a later one, is behind.
    #[error("the stream has no room")]
    Busy,
    /// There will be none.
    #[error(transparent)]
    Ended(#[from] StreamError),
}

crate::error::debug_is_display!(StreamError, PushError);

/// The streams of a [`Messenger`], which [`Messenger::streams`] returns.
pub struct Streams<'a, S>(pub(super) &'a mut Messenger<S>);

impl<S> fmt::Debug for Streams<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Streams").field(&self.0).finish()
    }
}

impl<S> Messenger<S> {
    /// Returns the view through which this process registers stages, and opens and feeds streams.
    #[inline]
    pub const fn streams(&mut self) -> Streams<'_, S> {
        Streams(self)
    }
}

impl<S> Streams<'_, S> {
    /// Registers a stage. It is run in the calls that run handlers.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a name that is empty, too long or taken.
    // spec: PIPE-2, PIPE-19
    pub fn stage(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut Flow<'_>, Input<'_>) + Send + 'static,
    ) -> Result<Stage, SetupError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(SetupError::invalid("a stage's name has 1 to 64 bytes"));
        }
        let stage = Stage::named(name);
        if self.0.stream_table().stages.iter().any(|registered| registered.id == stage.id) {
            return Err(SetupError::invalid("a stage of this name is registered"));
        }
        self.0.stream_table().stages.push(Registered { id: stage.id, run: Box::new(run) });
        Ok(stage)
    }

    /// Begins a stream whose entry stands in this port's directory, under its own name and this
    /// number.
    ///
    /// # Errors
    /// [`StreamError::Failed`] where there is no entry, the stream is fed already, or no room.
    // spec: PIPE-3, PIPE-5
    pub fn open(&mut self, state: &mut S, number: u32) -> Result<Stream, StreamError> {
        let at = self.0.out.port.id;
        let (streams, out) = self.0.stream_table_and_out();
        let (place, _) = streams.with((state, out), |machine, _| machine.open(number));
        let place = place.map_err(|why| StreamError::Failed(StreamFailure { why, at }))?;
        streams.overs.remove(&number);
        debug_assert!(streams.is_clear(place), "nothing is left of the one before");
        Ok(Stream { number, place, laid: Laid::default() })
    }

    /// Pushes an item; waits for room, running handlers and stages.
    ///
    /// # Errors
    /// [`StreamError::TooLong`]; [`StreamError::Failed`] when the stream has ended.
    // spec: PIPE-9, PIPE-19
    pub fn push(
        &mut self,
        state: &mut S,
        stream: &Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), StreamError> {
        let item = item.into();
        self.0.wait_until(state, |messenger| messenger.has_room(stream).unwrap_or(true));
        self.0.has_room(stream)?;
        self.0.put_in(state, stream, item)
    }

    /// Pushes an item, or nothing. Runs no handler, but stages of this port.
    ///
    /// # Errors
    /// [`PushError::Busy`] with nothing done; else as [`Streams::push`].
    // spec: PIPE-9, PIPE-19
    pub fn try_push(
        &mut self,
        state: &mut S,
        stream: &Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), PushError> {
        if !self.0.has_room(stream)? {
            return Err(PushError::Busy);
        }
        Ok(self.0.put_in(state, stream, item.into())?)
    }

    /// Ends a stream behind its last item, and waits until its sink has heard of it, running
    /// handlers and stages.
    ///
    /// # Errors
    /// [`StreamError::Failed`]: something has not come to the sink, or not all.
    // spec: PIPE-13
    pub fn close(&mut self, state: &mut S, stream: Stream) -> Result<(), StreamError> {
        let (streams, out) = self.0.stream_table_and_out();
        if !streams.overs.contains_key(&stream.number) {
            streams.with((&mut *state, &mut *out), |machine, _| machine.close(stream.place));
            streams.advance(state, out);
        }
        let number = stream.number;
        self.0.wait_until(state, |messenger| messenger.stream_table().overs.contains_key(&number));
        let ended = self.0.stream_table().overs.remove(&number).unwrap_or(Ok(()));
        self.0.forget_laid(stream.laid, ended.is_ok());
        ended.map_err(StreamError::Failed)
    }

    /// Gives a stream up: all its stages hear that it was cancelled.
    // spec: PIPE-14
    pub fn cancel(&mut self, state: &mut S, stream: Stream) {
        let (streams, out) = self.0.stream_table_and_out();
        if streams.overs.remove(&stream.number).is_none() {
            streams.with((&mut *state, &mut *out), |machine, side| {
                machine.cancel(stream.place, side);
            });
            streams.overs.remove(&stream.number);
            streams.advance(state, out);
        }
        self.0.forget_laid(stream.laid, false);
    }
}

impl<S> Messenger<S> {
    fn put_in(&mut self, state: &mut S, stream: &Stream, item: Vec<u8>) -> Result<(), StreamError> {
        if item.len() > ITEM_MAX {
            return Err(StreamError::TooLong);
        }
        let (streams, out) = self.stream_table_and_out();
        streams.with((&mut *state, &mut *out), |machine, side| {
            let emitted = &mut side.queue(stream.place).emitted;
            debug_assert!(emitted.is_empty(), "there is room for one item");
            emitted.push_back(item);
            machine.feed(stream.place);
        });
        streams.advance(state, out);
        Ok(())
    }

    /// Whether a stream takes an item, unless it has ended.
    fn has_room(&self, stream: &Stream) -> Result<bool, StreamError> {
        let streams: &StreamTable<S> = self.features.as_ref();
        match streams.overs.get(&stream.number) {
            Some(Err(failure)) => Err(StreamError::Failed(*failure)),
            _ => Ok(streams.is_clear(stream.place)),
        }
    }
}
