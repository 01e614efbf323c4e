//! The suite's interface to messengers: the traits over which cases about active messages, and the
//! features built on them, are written.
//!
//! As with [`Port`], only plain data and handles of the implementation's own cross the interface.
//! The program's functions (handlers, stages, watchers) stay with the suite. An implementation
//! tells with what arguments to run one, and its calls come through [`Call`] and [`Flow`].
use crate::fabric::Fabric;
use crate::port::Port;
use ayre::active::{DroppedCall, Handler};
use ayre::channel::Channel;
use ayre::collective::Combine;
use ayre::collective::{Collective, GroupError, Schedule, Summand, Value};
use ayre::multicast::{Change, MulticastError};
use ayre::stream::{Input, PushError, StreamError, StreamName};
use ayre::{Fault, PeerId, PostError, ReceiveError, SetupError};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::time::Duration;

/// A fabric over whose ports there are messengers.
pub trait Messengers: Fabric {
    /// A messenger whose handlers work on an `S`.
    type Messenger<S>: Messenger<S, Port = Self::Port>;
}

/// One port with handlers, as its program sees it. A call that has to wait runs handlers meanwhile,
/// and so does every poll.
pub trait Messenger<S>: Active<S> + Channels<S> + Groups<S> + Multicast<S> + Streams<S> {}

impl<S, M: Active<S> + Channels<S> + Groups<S> + Multicast<S> + Streams<S>> Messenger<S> for M {}

/// Active messages.
pub trait Active<S>: Debug + Send + Sized {
    /// The port below it.
    type Port: Port;

    /// Over a port.
    fn new(port: Self::Port) -> Self {
        let messenger = Self::with_options(port, &MessengerOptions::new());
        messenger.expect("the usual limits")
    }
    /// With limits.
    fn with_options(port: Self::Port, options: &MessengerOptions) -> Result<Self, SetupError>;
    /// Its port.
    fn port(&mut self) -> &mut Self::Port;
    /// Its port, without it.
    fn into_port(self) -> Self::Port;
    /// Names what is run with messages.
    fn register<const N: usize>(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError>;
    /// Gives it a number that both sides know.
    fn register_static<const N: usize>(
        &mut self,
        id: u32,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError>;
    /// Whether a peer has said that it has this handler.
    fn is_announced<const N: usize>(&mut self, peer: PeerId, handler: Handler<N>) -> bool;
    /// Sends a message when there is room.
    fn call<const N: usize>(
        &mut self,
        state: &mut S,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault>;
    /// Sends a short message, if there is room.
    fn try_call<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError>;
    /// Runs what is found: how many messages that was.
    fn poll(&mut self, state: &mut S) -> usize;
    /// Waits for some.
    fn wait(&mut self, state: &mut S, timeout: Option<Duration>) -> Result<usize, ReceiveError>;
    /// Runs handlers as long as something holds.
    fn serve_while(
        &mut self,
        state: &mut S,
        holds: impl FnMut(&S) -> bool,
    ) -> Result<(), ReceiveError>;
    /// Waits until what handlers have sent has gone.
    fn flush(&mut self, state: &mut S);
    /// Waits for all peers, and runs what they have sent before.
    fn sync(&mut self, state: &mut S) -> Result<(), Fault>;
    /// Messages that were not run.
    fn failures(&mut self) -> impl Iterator<Item = DroppedCall>;
    /// Ends a connection and forgets it.
    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault>;
}

/// The environment of a handler, beside arguments and payload.
pub trait Call {
    /// The sender of the message.
    fn source(&self) -> PeerId;
    /// Sends a message, by a channel or by none: with which arguments to which handler, by its id.
    fn post(
        &mut self,
        to: (PeerId, Option<Channel>),
        handler: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError>;
    /// Sends a message to a group.
    fn post_to_group(
        &mut self,
        group: Membership,
        handler: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), MulticastError>;
}

impl dyn Call + '_ {
    /// Sends a message to the sender of this one.
    pub fn reply<const N: usize>(
        &mut self,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.send(self.source(), handler, arguments, payload)
    }

    /// Sends a message.
    pub fn send<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.post((to, None), handler.id(), &arguments, payload)
    }

    /// Sends a message by a channel to the sender of this one.
    pub fn reply_by<const N: usize>(
        &mut self,
        channel: Channel,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.post((self.source(), Some(channel)), handler.id(), &arguments, payload)
    }

    /// Sends a message to a group.
    pub fn multicast<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        self.post_to_group(group, handler.id(), &arguments, payload)
    }
}

/// Logical channels.
pub trait Channels<S>: Active<S> {
    /// Says how a channel is to be treated.
    fn open_channel(&mut self, number: u8, options: ChannelOptions) -> Result<Channel, SetupError>;
    /// Sends a message by a channel when there is room.
    fn call_by<const N: usize>(
        &mut self,
        state: &mut S,
        at: (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault>;
    /// Sends it if there is room.
    fn try_call_by<const N: usize>(
        &mut self,
        at: (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError>;
    /// Runs nothing that comes by a channel, until it is released.
    fn hold(&mut self, channel: Channel);
    /// Runs it again.
    fn release(&mut self, channel: Channel);
    /// Runs what comes by one channel, and nothing else.
    fn poll_only(&mut self, state: &mut S, channel: Channel) -> usize;
    /// Bytes that wait here.
    fn backlog(&mut self, peer: PeerId, channel: Channel) -> usize;

    /// Sends the next message by a channel.
    fn on(&mut self, channel: Channel) -> On<'_, Self, S> {
        On { by: self, channel, state: PhantomData }
    }
}

/// A messenger, by one of its channels.
#[derive(Debug)]
pub struct On<'a, M, S> {
    by: &'a mut M,
    channel: Channel,
    state: PhantomData<fn(S)>,
}

impl<S, M: Channels<S>> On<'_, M, S> {
    /// See [`Channels::call_by`].
    pub fn call<const N: usize>(
        &mut self,
        state: &mut S,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        self.by.call_by(state, (to, self.channel), handler, arguments, payload)
    }

    /// See [`Channels::try_call_by`].
    pub fn try_call<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.by.try_call_by((to, self.channel), handler, arguments, payload)
    }
}

/// Groups that do collectives.
pub trait Groups<S>: Active<S> {
    /// A group, at a member.
    type Group: Copy + Debug + Send;
    /// A collective that was begun.
    type Started<T>;

    /// A group of some of the peers and this port.
    fn group(&mut self, name: &str, members: &[PeerId]) -> Result<Self::Group, SetupError>;
    /// Of all of them.
    fn group_of_all(&mut self, name: &str) -> Result<Self::Group, SetupError>;
    /// Says how a collective is done.
    fn fix_schedule(
        &mut self,
        group: Self::Group,
        collective: Collective,
        schedule: Option<Schedule>,
    ) -> Result<(), GroupError>;
    /// Waits for all members.
    fn barrier(&mut self, state: &mut S, group: Self::Group) -> Result<(), GroupError>;
    /// The root's values are everybody's.
    fn broadcast<T: Value>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        root: usize,
        values: &mut [T],
    ) -> Result<(), GroupError>;
    /// All members' values, combined, are the root's.
    fn reduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        how: (usize, Combine),
        values: &mut [T],
    ) -> Result<(), GroupError>;
    /// They are everybody's.
    fn allreduce<T: Summand>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError>;
    /// Those of a member are its own and those of members before it.
    fn scan<T: Summand>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError>;
    /// Each member has its part of them.
    fn reduce_scatter<T: Summand>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        combine: Combine,
        values: &mut [T],
    ) -> Result<(), GroupError>;
    /// The root has all members' values: from and into.
    fn gather<T: Value>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        root: usize,
        values: (&[T], &mut [T]),
    ) -> Result<(), GroupError>;
    /// Each member has its part of the root's: from and into.
    fn scatter<T: Value>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        root: usize,
        values: (&[T], &mut [T]),
    ) -> Result<(), GroupError>;
    /// Everybody has all members' values.
    fn allgather<T: Value>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        own: &[T],
        all: &mut [T],
    ) -> Result<(), GroupError>;
    /// Each member has a block of each.
    fn alltoall<T: Value>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        out: &[T],
        come: &mut [T],
    ) -> Result<(), GroupError>;
    /// Does a collective on lent values.
    fn complete<T: Summand>(
        &mut self,
        state: &mut S,
        group: Self::Group,
        request: Request<'_, T>,
    ) -> Result<(), GroupError>;
    /// Begins one on its own values.
    fn start<T: Summand>(
        &mut self,
        group: Self::Group,
        request: Owned<T>,
    ) -> Result<Self::Started<T>, GroupError>;
    /// Whether it has ended.
    fn is_finished<T>(&mut self, started: &Self::Started<T>) -> bool;
    /// Waits for it, and has its values.
    fn finish<T: Value>(
        &mut self,
        state: &mut S,
        started: Self::Started<T>,
    ) -> Result<Vec<T>, GroupError>;
    /// Has schedules chosen by the load of links, which is exchanged once every `calls` calls.
    fn adapt(
        &mut self,
        state: &mut S,
        group: Self::Group,
        every: Option<NonZeroU32>,
    ) -> Result<(), GroupError>;
    /// Keeps records of the last `calls` calls.
    fn record(&mut self, group: Self::Group, calls: usize) -> Result<(), GroupError>;
    /// Those calls.
    fn recording(&mut self, group: Self::Group) -> Vec<Recorded>;
    /// Those calls as text.
    fn recording_text(&mut self, group: Self::Group) -> String;
}

/// Groups whose members come and go.
pub trait Multicast<S>: Active<S> {
    /// Founds a group.
    fn found(
        &mut self,
        name: &str,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, SetupError>;
    /// Becomes a member of a group that a peer is one of.
    fn join(
        &mut self,
        state: &mut S,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError>;
    /// Sends a message to all members when there is room.
    fn multicast<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError>;
    /// Sends it if there is room.
    fn try_multicast<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError>;
    /// Has a member send it: to a group of this name, by a peer.
    fn multicast_through<const N: usize>(
        &mut self,
        state: &mut S,
        to: (&str, PeerId),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError>;
    /// Is no member any more.
    fn leave(&mut self, state: &mut S, group: Membership) -> Result<(), MulticastError>;
    /// All members; none of a group that was left.
    fn members(&mut self, group: Membership) -> Vec<PeerId>;
}

/// A port's membership in a group, by a number that its messenger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership(pub usize);

/// Streams through stages.
pub trait Streams<S>: Active<S> {
    /// The end of a stream that items are pushed into.
    type Stream: Debug;

    /// Names what is run with items: the id that it is known by.
    fn stage(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut dyn Flow, Input<'_>) + Send + 'static,
    ) -> Result<u32, SetupError>;
    /// Sets an entry of a forwarding directory.
    fn set_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
        entry: Entry,
    ) -> Result<(), StreamError>;
    /// Clears it.
    fn clear_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
    ) -> Result<(), StreamError>;
    /// Whether peers may change entries here.
    fn let_peers_set_entries(&mut self, may: bool);
    /// A stream that begins here, along entries that are there.
    fn open_stream(&mut self, state: &mut S, number: u32) -> Result<Self::Stream, StreamError>;
    /// A stream with its entries.
    fn stream(&mut self, state: &mut S, hops: &[Hop]) -> Result<Self::Stream, StreamError>;
    /// Sends an item when there is room.
    fn push(
        &mut self,
        state: &mut S,
        stream: &Self::Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), StreamError>;
    /// Sends it if there is room.
    fn try_push(
        &mut self,
        state: &mut S,
        stream: &Self::Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), PushError>;
    /// Ends a stream, when all of it has come to its sink.
    fn close(&mut self, state: &mut S, stream: Self::Stream) -> Result<(), StreamError>;
    /// Ends it at once.
    fn cancel(&mut self, state: &mut S, stream: Self::Stream);
}

/// The environment of a stage, beside an item.
pub trait Flow {
    /// Sends an item on.
    fn emit(&mut self, item: Vec<u8>);
    /// The arguments in the entry that leads here.
    fn arguments(&self) -> [u64; 4];
    /// The stream, as its port names it.
    fn name(&self) -> StreamName;
}

mod words;

pub use words::{
    ChannelOptions, Entry, Hop, LinkUse, MessengerOptions, MulticastOptions, Owned, Recorded,
    Request, Stage, Values,
};
