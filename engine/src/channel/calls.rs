//! The view of a messenger's channels, and sending by a channel.
use crate::active::{Call, Handler, Messenger};
use crate::error::{Fault, PostError, SetupError};
use ayre_proto::logical::{NUMBERS, PRIORITIES, WEIGHT_MAX};
use ayre_proto::units::PeerId;
use std::fmt;

/// The limits of options, for an error.
const OPTIONS: &str = "a channel has a number from 1 to 255, a priority from 0 to 7, and a weight \
                       from 1 to 16";

/// A logical channel, which both ends know by its number.
// spec: CHAN-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    pub(super) number: u8,
}

impl Channel {
    /// Returns the channel of a number from 1 to 255, and `None` for 0.
    pub const fn with_number(number: u8) -> Option<Self> {
        if number == 0 { None } else { Some(Self { number }) }
    }

    /// Returns the number.
    pub const fn number(self) -> u8 {
        self.number
    }
}

/// The options of a channel at this end.
#[derive(Clone, Copy, Debug)]
pub struct ChannelOptions {
    pub(super) priority: u8,
    pub(super) weight: u8,
    pub(super) room: usize,
}

impl ChannelOptions {
    /// Returns the default options, which each method states.
    pub const fn new() -> Self {
        Self { priority: 0, weight: 1, room: 1 << 20 }
    }

    /// Sets the priority, 0 (the default) to 7. Channels of higher priority always come first.
    // spec: CHAN-6
    pub const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the share among channels of the same priority, 1 (the default) to 16.
    // spec: CHAN-6
    pub const fn weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the bytes of messages that may wait here for one peer by this channel. The default is
    /// 1 MiB. One message always fits.
    // spec: CHAN-4
    pub const fn room(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A messenger or a handler's [`Call`] that sends by a channel.
#[derive(Debug)]
pub struct On<'a, T> {
    by: &'a mut T,
    channel: Channel,
}

/// The logical channels of a [`Messenger`], which [`Messenger::channels`] returns.
pub struct Channels<'a, S>(&'a mut Messenger<S>);

impl<S> fmt::Debug for Channels<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channels").field(&self.0).finish()
    }
}

impl<S> Messenger<S> {
    /// Returns the view that opens and controls logical channels. [`Messenger::on`] sends by one.
    #[inline]
    pub const fn channels(&mut self) -> Channels<'_, S> {
        Channels(self)
    }

    /// Returns the messenger as one that sends by a channel.
    pub const fn on(&mut self, channel: Channel) -> On<'_, Self> {
        On { by: self, channel }
    }
}

impl<S> Channels<'_, S> {
    /// Opens a channel at this end, for all peers. Its options replace those of an earlier call
    /// with the same number. Sends nothing.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a number, priority or weight out of its range.
    // spec: CHAN-1, CHAN-6
    pub fn open(&mut self, number: u8, options: ChannelOptions) -> Result<Channel, SetupError> {
        let is_sound = options.priority < PRIORITIES && (1..=WEIGHT_MAX).contains(&options.weight);
        if !NUMBERS.contains(&number) || !is_sound {
            return Err(SetupError::invalid(OPTIONS));
        }
        self.0.out.logical().set(number, options);
        self.0.inbox().set(number, options);
        Ok(Channel { number })
    }

    /// Stops running messages of a channel. When the channel's window is full, further messages
    /// stay at their senders. Other channels go on.
    // spec: CHAN-11
    pub fn hold(&mut self, channel: Channel) {
        self.0.inbox().hold(channel.number);
    }

    /// Runs messages of a held channel again, first those that have arrived meanwhile.
    // spec: CHAN-11
    pub fn release(&mut self, channel: Channel) {
        self.0.inbox().release(channel.number);
        self.0.out.has_more = true;
    }

    /// Takes arrived messages. Runs those of this channel, held or not, and those without a
    /// channel. Never blocks. Returns the number of handlers that were run.
    // spec: CHAN-11
    pub fn poll_only(&mut self, state: &mut S, channel: Channel) -> usize {
        debug_assert!(self.0.inbox().only.is_none(), "one poll at a time");
        self.0.inbox().only = Some(channel.number);
        let ran = self.0.poll(state) + self.0.run_by_channels(state);
        self.0.inbox().only = None;
        ran
    }

    /// Returns the bytes of messages that wait here for a peer by a channel.
    // spec: CHAN-4
    pub fn backlog(&mut self, peer: PeerId, channel: Channel) -> usize {
        self.0.out.logical().ends(peer).map_or(0, |ends| ends.backlog(channel.number))
    }
}

impl<S> On<'_, Messenger<S>> {
    /// Sends a message of any length by the channel. Waits until the message is sent or has room in
    /// the channel's queue, and runs handlers meanwhile.
    ///
    /// # Errors
    /// The errors of [`Messenger::call`].
    // spec: CHAN-2, CHAN-4
    #[inline]
    pub fn call<const N: usize>(
        &mut self,
        state: &mut S,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        let at = (to, self.channel.number);
        match self.by.out.send_by(at, handler.id(), &arguments, payload) {
            Ok(()) => Ok(()),
            Err(PostError::Fault(fault)) => Err(fault),
            Err(PostError::Busy(_)) => {
                self.by.post_until(state, |out| out.send_by(at, handler.id(), &arguments, payload))
            }
        }
    }

    /// Sends a message of any length by the channel, if it can be sent or has room in the channel's
    /// queue. Never blocks, and runs no handler.
    ///
    /// # Errors
    /// [`Busy::ChannelFull`](crate::Busy::ChannelFull) with nothing done; the [`Fault`]s of
    /// [`Messenger::call`].
    // spec: CHAN-4
    #[inline]
    pub fn try_call<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.by.out.send_by((to, self.channel.number), handler.id(), &arguments, payload)
    }
}

impl<'a> Call<'a> {
    /// Returns the call as one that sends by a channel.
    pub const fn on(&mut self, channel: Channel) -> On<'_, Self> {
        On { by: self, channel }
    }
}

impl On<'_, Call<'_>> {
    /// Sends a message by the channel to the sender of this one. Never blocks.
    ///
    /// # Errors
    /// The errors of [`On::send`].
    // spec: CHAN-2, CHAN-4
    #[inline]
    pub fn reply<const N: usize>(
        &mut self,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.send(self.by.source(), handler, arguments, payload)
    }

    /// Sends a message by the channel to any peer. Never blocks.
    ///
    /// # Errors
    /// [`Busy::ChannelFull`](crate::Busy::ChannelFull) if the channel's queue to that peer has no
    /// room; the faults of [`Call::send`].
    // spec: CHAN-2, CHAN-4
    #[inline]
    pub fn send<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.by.out.send_by((to, self.channel.number), handler.id(), &arguments, payload)
    }
}
