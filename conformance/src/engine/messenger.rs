//! The engine's messengers, as the suite's.
mod groups;

pub(crate) use groups::Started;

use super::Executor;
use super::one_thread::OneThread;
use crate::messenger::{
    Active, Call, ChannelOptions, Channels, Entry, Flow, Hop, Membership, MessengerOptions,
    Messengers, Multicast, MulticastOptions, Streams,
};
use ayre::active::{DroppedCall, Handler, Messenger};
use ayre::channel::Channel;
use ayre::multicast::{Change, MulticastError};
use ayre::stream::{Input, PushError, Stage, StreamError, StreamName};
use ayre::{Fault, PeerId, Port, PostError, ReceiveError, SetupError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The engine's memberships. The suite names each by its index here.
type Memberships = Mutex<Vec<ayre::multicast::Membership>>;

/// A messenger of the engine.
pub struct Member<S> {
    inner: Messenger<S>,
    memberships: Arc<Memberships>,
}

impl<S> std::fmt::Debug for Member<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Messengers for Executor {
    type Messenger<S> = Member<S>;
}

impl Messengers for OneThread {
    type Messenger<S> = Member<S>;
}

fn found(memberships: &Memberships, group: Membership) -> ayre::multicast::Membership {
    memberships.lock().expect("nobody panics with it")[group.0]
}

fn kept(memberships: &Memberships, group: ayre::multicast::Membership) -> Membership {
    let mut all = memberships.lock().expect("nobody panics with it");
    all.push(group);
    Membership(all.len() - 1)
}

/// The environment of a handler of the engine.
struct Called<'a, 'b> {
    call: &'a mut ayre::active::Call<'b>,
    memberships: &'a Memberships,
}

/// Makes a call whose arguments are an array as long as a slice.
macro_rules! counted {
    ($slice:expr, |$arguments:ident| $call:expr) => {
        counted!($slice, |$arguments| $call, 0 1 2 3 4 5 6 7 8)
    };
    ($slice:expr, |$arguments:ident| $call:expr, $($count:literal)+) => {
        match $slice.len() {
            $($count => {
                let $arguments: [u64; $count] = $slice.try_into().expect("as many");
                $call
            })+
            many => panic!("a message has at most 8 arguments, and not {many}"),
        }
    };
}

fn handler<const N: usize>(id: u32) -> Handler<N> {
    Handler::with_id(id).expect("a handler's id")
}

impl Call for Called<'_, '_> {
    fn source(&self) -> PeerId {
        self.call.source()
    }

    fn post(
        &mut self,
        (to, by): (PeerId, Option<Channel>),
        id: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let is_reply = to == self.call.source();
        counted!(arguments, |arguments| match (by, is_reply) {
            (None, true) => self.call.reply(handler(id), arguments, payload),
            (None, false) => self.call.send(to, handler(id), arguments, payload),
            (Some(by), true) => self.call.on(by).reply(handler(id), arguments, payload),
            (Some(by), false) => self.call.on(by).send(to, handler(id), arguments, payload),
        })
    }

    fn post_to_group(
        &mut self,
        group: Membership,
        id: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let group = found(self.memberships, group);
        counted!(arguments, |arguments| {
            self.call.multicast(group, handler(id), arguments, payload)
        })
    }
}

/// The function that the engine runs with a message.
fn running<S, const N: usize>(
    memberships: &Arc<Memberships>,
    mut run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
) -> impl FnMut(&mut S, &mut ayre::active::Call<'_>, [u64; N], &[u8]) + Send + 'static {
    let memberships = Arc::clone(memberships);
    move |state, call, arguments, payload| {
        run(state, &mut Called { call, memberships: &memberships }, arguments, payload);
    }
}

impl<S> Active<S> for Member<S> {
    type Port = Port;

    fn new(port: Port) -> Self {
        Self { inner: Messenger::new(port), memberships: Arc::default() }
    }

    fn with_options(port: Port, options: &MessengerOptions) -> Result<Self, SetupError> {
        let mut engines = ayre::active::MessengerOptions::new();
        if let Some(bytes) = options.overflow {
            engines = engines.overflow(bytes);
        }
        if let Some(bytes) = options.landing {
            engines = engines.landing(bytes);
        }
        if let Some(bytes) = options.longest {
            engines = engines.longest(bytes);
        }
        let inner = Messenger::with_options(port, engines)?;
        Ok(Self { inner, memberships: Arc::default() })
    }

    fn port(&mut self) -> &mut Port {
        self.inner.port()
    }

    fn into_port(self) -> Port {
        self.inner.into_port()
    }

    fn register<const N: usize>(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        self.inner.register(name, running(&self.memberships, run))
    }

    fn register_static<const N: usize>(
        &mut self,
        id: u32,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        self.inner.register_static(id, running(&self.memberships, run))
    }

    fn is_announced<const N: usize>(&mut self, peer: PeerId, handler: Handler<N>) -> bool {
        self.inner.is_announced(peer, handler)
    }

    fn call<const N: usize>(
        &mut self,
        state: &mut S,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        self.inner.call(state, to, handler, arguments, payload)
    }

    fn try_call<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.inner.try_call(to, handler, arguments, payload)
    }

    fn poll(&mut self, state: &mut S) -> usize {
        self.inner.poll(state)
    }

    fn wait(&mut self, state: &mut S, timeout: Option<Duration>) -> Result<usize, ReceiveError> {
        self.inner.wait(state, timeout)
    }

    fn serve_while(
        &mut self,
        state: &mut S,
        holds: impl FnMut(&S) -> bool,
    ) -> Result<(), ReceiveError> {
        self.inner.serve_while(state, holds)
    }

    fn flush(&mut self, state: &mut S) {
        self.inner.flush(state);
    }

    fn sync(&mut self, state: &mut S) -> Result<(), Fault> {
        self.inner.sync(state)
    }

    fn failures(&mut self) -> impl Iterator<Item = DroppedCall> {
        self.inner.failures()
    }

    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.inner.disconnect(peer)
    }
}

impl<S> Channels<S> for Member<S> {
    fn open_channel(&mut self, number: u8, options: ChannelOptions) -> Result<Channel, SetupError> {
        let mut engines = ayre::channel::ChannelOptions::new();
        if let Some(priority) = options.priority {
            engines = engines.priority(priority);
        }
        if let Some(weight) = options.weight {
            engines = engines.weight(weight);
        }
        if let Some(bytes) = options.room {
            engines = engines.room(bytes);
        }
        self.inner.channels().open(number, engines)
    }

    fn call_by<const N: usize>(
        &mut self,
        state: &mut S,
        (to, channel): (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        self.inner.on(channel).call(state, to, handler, arguments, payload)
    }

    fn try_call_by<const N: usize>(
        &mut self,
        (to, channel): (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.inner.on(channel).try_call(to, handler, arguments, payload)
    }

    fn hold(&mut self, channel: Channel) {
        self.inner.channels().hold(channel);
    }

    fn release(&mut self, channel: Channel) {
        self.inner.channels().release(channel);
    }

    fn poll_only(&mut self, state: &mut S, channel: Channel) -> usize {
        self.inner.channels().poll_only(state, channel)
    }

    fn backlog(&mut self, peer: PeerId, channel: Channel) -> usize {
        self.inner.channels().backlog(peer, channel)
    }
}

impl From<MulticastOptions> for ayre::multicast::MulticastOptions {
    fn from(options: MulticastOptions) -> Self {
        let mut engines = Self::new();
        if let Some(messages) = options.window {
            engines = engines.window(messages);
        }
        if let Some(messages) = options.requests {
            engines = engines.requests(messages);
        }
        engines
    }
}

impl<S> Multicast<S> for Member<S> {
    fn found(
        &mut self,
        name: &str,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, SetupError> {
        let group = self.inner.multicast().found(name, options.into(), watch)?;
        Ok(kept(&self.memberships, group))
    }

    fn join(
        &mut self,
        state: &mut S,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError> {
        let group = self.inner.multicast().join(state, name, door, options.into(), watch)?;
        Ok(kept(&self.memberships, group))
    }

    fn multicast<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let group = found(&self.memberships, group);
        self.inner.multicast().send(state, group, handler, arguments, payload)
    }

    fn try_multicast<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let group = found(&self.memberships, group);
        self.inner.multicast().try_send(group, handler, arguments, payload)
    }

    fn multicast_through<const N: usize>(
        &mut self,
        state: &mut S,
        to: (&str, PeerId),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        self.inner.multicast().send_through(state, to, handler, arguments, payload)
    }

    fn leave(&mut self, state: &mut S, group: Membership) -> Result<(), MulticastError> {
        self.inner.multicast().leave(state, found(&self.memberships, group))
    }

    fn members(&mut self, group: Membership) -> Vec<PeerId> {
        self.inner.multicast().members(found(&self.memberships, group))
    }
}

impl Flow for ayre::stream::Flow<'_> {
    fn emit(&mut self, item: Vec<u8>) {
        Self::emit(self, item);
    }

    fn arguments(&self) -> [u64; 4] {
        Self::arguments(self)
    }

    fn name(&self) -> StreamName {
        Self::name(self)
    }
}

impl From<Entry> for ayre::stream::Entry {
    fn from(entry: Entry) -> Self {
        let Entry { to, number, stage, arguments, goes_on } = entry;
        let engines = Self::new(to, number, Stage::named(stage.name)).arguments(arguments);
        if goes_on { engines.goes_on() } else { engines }
    }
}

impl<S> Streams<S> for Member<S> {
    type Stream = ayre::stream::Stream;

    fn stage(
        &mut self,
        name: &str,
        mut run: impl FnMut(&mut S, &mut dyn Flow, Input<'_>) + Send + 'static,
    ) -> Result<u32, SetupError> {
        Ok(self
            .inner
            .streams()
            .stage(name, move |state, flow, input| run(state, flow, input))?
            .id())
    }

    fn set_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
        entry: Entry,
    ) -> Result<(), StreamError> {
        self.inner.streams().set_entry(state, at, name, entry.into())
    }

    fn clear_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
    ) -> Result<(), StreamError> {
        self.inner.streams().clear_entry(state, at, name)
    }

    fn let_peers_set_entries(&mut self, may: bool) {
        self.inner.streams().let_peers_set_entries(may);
    }

    fn open_stream(&mut self, state: &mut S, number: u32) -> Result<Self::Stream, StreamError> {
        self.inner.streams().open(state, number)
    }

    fn stream(&mut self, state: &mut S, hops: &[Hop]) -> Result<Self::Stream, StreamError> {
        let hop = |Hop { peer, stage, arguments }: &Hop| {
            ayre::stream::Hop::new(*peer, Stage::named(stage.name)).arguments(*arguments)
        };
        let hops: Vec<_> = hops.iter().map(hop).collect();
        self.inner.streams().lay(state, &hops)
    }

    fn push(
        &mut self,
        state: &mut S,
        stream: &Self::Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), StreamError> {
        self.inner.streams().push(state, stream, item)
    }

    fn try_push(
        &mut self,
        state: &mut S,
        stream: &Self::Stream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), PushError> {
        self.inner.streams().try_push(state, stream, item)
    }

    fn close(&mut self, state: &mut S, stream: Self::Stream) -> Result<(), StreamError> {
        self.inner.streams().close(state, stream)
    }

    fn cancel(&mut self, state: &mut S, stream: Self::Stream) {
        self.inner.streams().cancel(state, stream);
    }
}
