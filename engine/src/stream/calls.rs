//! The view of a messenger's streams.
use super::effects::{Flow, Input, Registered, Stage};
use super::laid::Laid;
use super::state::StreamTable;
use crate::active::Messenger;
use crate::error::SetupError;
use ayre_proto::active::NAME_MAX;
use ayre_proto::stream::{EntryAnswer, ITEM_MAX, StreamFailure};
use ayre_proto::units::PeerId;
use std::fmt;

/// The source of a stream. [`Streams::close`] ends the stream; dropping the source does not.
#[must_use = "a stream ends when it is closed"]
#[derive(Debug)]
pub struct Stream {
    pub(super) number: u32,
    pub(super) place: u16,
    pub(super) laid: Laid,
}

/// The reason why a stream has ended early, or could not be laid.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The stream has failed at a port.
    // spec: PIPE-14
    #[error("the stream has failed at port {}: {}", .0.at.index(), .0.why)]
    Failed(StreamFailure),
    /// A port refuses to set or clear an entry.
    // spec: PIPE-6
    #[error("port {} refuses to change its forwarding directory: {:?}", .0.index(), .1)]
    Refused(PeerId, EntryAnswer),
    /// The program has interrupted the call.
    #[error("the program has interrupted the call")]
    Interrupted,
    /// The item is longer than [`ITEM_MAX`] bytes.
    #[error("the item exceeds {ITEM_MAX} bytes, the limit of an item")]
    TooLong,
}

/// The reason why an item was not pushed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no room yet, because the next port or a later one is slow.
    #[error(
        "the stream has no room, because a later stage is slow: poll the messenger and try again"
    )]
    Busy,
    /// The stream has ended, or the item is too long.
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
    /// Registers a stage under a name of 1 to 64 bytes. It runs in the calls that run handlers.
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
            return Err(SetupError::invalid("a stage of this name is registered already"));
        }
        self.0.stream_table().stages.push(Registered { id: stage.id, run: Box::new(run) });
        Ok(stage)
    }

    /// Opens a stream at its source. Its entry must be in this port's directory, under this port
    /// and this number. Never blocks.
    ///
    /// # Errors
    /// [`StreamError::Failed`] if there is no entry, no room, or the stream has a source already.
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

    /// Pushes an item. Waits for room, and runs handlers and stages meanwhile.
    ///
    /// # Errors
    /// [`StreamError::TooLong`]; [`StreamError::Failed`] if the stream has ended.
    /// [`StreamError::Interrupted`] with nothing done.
    // spec: PIPE-9, PIPE-19
    pub fn push(
        &mut self,
        state: &mut S,
        stream: &Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), StreamError> {
        let item = item.into();
        if !self.0.wait_until(state, |messenger| messenger.has_room(stream).unwrap_or(true)) {
            return Err(StreamError::Interrupted);
        }
        self.0.has_room(stream)?;
        self.0.put_in(state, stream, item)
    }

    /// Pushes an item if there is room. Never blocks. Runs stages of this port, but no handlers.
    ///
    /// # Errors
    /// [`PushError::Busy`] with nothing done; the errors of [`Streams::push`].
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

    /// Ends a stream behind its last item, and waits until all its stages have run with the end.
    /// Runs handlers and stages meanwhile.
    ///
    /// # Errors
    /// [`StreamError::Failed`] if not all items have reached the last stage.
    /// [`StreamError::Interrupted`]: then the stream is cancelled.
    // spec: PIPE-13
    pub fn close(&mut self, state: &mut S, stream: Stream) -> Result<(), StreamError> {
        let (streams, out) = self.0.stream_table_and_out();
        if !streams.overs.contains_key(&stream.number) {
            streams.with((&mut *state, &mut *out), |machine, _| machine.close(stream.place));
            streams.advance(state, out);
        }
        let number = stream.number;
        let is_over =
            |messenger: &mut Messenger<S>| messenger.stream_table().overs.contains_key(&number);
        if !self.0.wait_until(state, is_over) {
            self.cancel(state, stream);
            return Err(StreamError::Interrupted);
        }
        let ended = self.0.stream_table().overs.remove(&number).unwrap_or(Ok(()));
        self.0.forget_laid(stream.laid, ended.is_ok());
        ended.map_err(StreamError::Failed)
    }

    /// Cancels a stream. All its stages get the end with this reason. Never blocks.
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

    /// Whether a stream has room for an item, or the error with which it has ended.
    fn has_room(&self, stream: &Stream) -> Result<bool, StreamError> {
        let streams: &StreamTable<S> = self.features.as_ref();
        match streams.overs.get(&stream.number) {
            Some(Err(failure)) => Err(StreamError::Failed(*failure)),
            _ => Ok(streams.is_clear(stream.place)),
        }
    }
}
