//! A messenger of another process, whose handlers, stages and watchers run here: within a call.
use super::multicast::{self, Watch};
use super::port::{DrivenPort, Way};
use super::streams::{self, Stand};
use super::words::{Answer, Words, hex, limit, message, time};
use crate::messenger::{Active, Call, ChannelOptions, Channels, Membership, MessengerOptions};
use ayre::active::{DropCause, DroppedCall, Handler};
use ayre::channel::Channel;
use ayre::multicast::MulticastError;
use ayre::{Fault, PeerId, PostError, ReceiveError, SetupError};
use std::fmt::{self, Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

type Handle<S> = Box<dyn FnMut(&mut S, &mut dyn Call, &[u64], &[u8]) + Send>;

/// A function that a program has registered.
pub(super) enum Run<S> {
    Handler(Handle<S>),
    Stage(Stand<S>),
    Watcher(Watch<S>),
}

/// A messenger behind a driver.
pub struct DrivenMessenger<S> {
    port: DrivenPort,
    /// By the numbers that travel.
    runs: Vec<Run<S>>,
}

impl<S> Debug for DrivenMessenger<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrivenMessenger").field("port", &self.port).finish_non_exhaustive()
    }
}

/// The environment of a handler.
struct Called {
    way: Way,
    source: PeerId,
}

impl Call for Called {
    fn source(&self) -> PeerId {
        self.source
    }

    fn post(
        &mut self,
        (to, by): (PeerId, Option<Channel>),
        handler: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let by = by.map_or(0, Channel::number);
        let call = format!("post {} {by} {handler} {}", to.0, message(arguments, payload));
        self.way.ask(&call).posted().map(drop)
    }

    fn post_to_group(
        &mut self,
        group: Membership,
        handler: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let call = format!("cast {} {handler} {}", group.0, message(arguments, payload));
        self.way.ask(&call).multicast().map(drop)
    }
}

impl<S> DrivenMessenger<S> {
    pub(super) fn ask(&self, call: &str) -> Answer {
        self.port.ask(call)
    }

    /// Makes a call within which the driver has things run here.
    pub(super) fn attend(&mut self, state: &mut S, call: &str) -> Answer {
        let way = self.port.way().clone();
        let mut line = way.exchange(call);
        while let Some(due) = line.strip_prefix("run ") {
            let mut words = Words::of(due);
            let ended = catch_unwind(AssertUnwindSafe(|| self.run(state, &way, &mut words)));
            line = way.exchange(if ended.is_ok() { "ran" } else { "panicked" });
        }
        Answer::read(&line)
    }

    fn run(&mut self, state: &mut S, way: &Way, words: &mut Words<'_>) {
        match &mut self.runs[words.number::<usize>()] {
            Run::Handler(run) => {
                let mut call = Called { way: way.clone(), source: words.peer() };
                let (arguments, payload) = words.message();
                run(state, &mut call, &arguments, &payload);
            }
            Run::Stage(run) => streams::run(run, state, way.clone(), words),
            Run::Watcher(run) => multicast::run(run, state, words),
        }
    }

    /// Keeps what is to be run: the number that travels.
    pub(super) fn keep(&mut self, run: Run<S>) -> usize {
        self.runs.push(run);
        self.runs.len() - 1
    }

    /// Has the driver name what is to be run.
    pub(super) fn name(
        &mut self,
        call: &str,
        words: &str,
        run: Run<S>,
    ) -> Result<String, SetupError> {
        let run = self.keep(run);
        self.ask(&format!("{call} {run} {words}")).set_up()
    }

    fn handler<const N: usize>(
        &mut self,
        name: &str,
        mut run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        let run: Handle<S> = Box::new(move |state, call, arguments, payload| {
            run(state, call, arguments.try_into().expect("as many"), payload);
        });
        let words = self.name("handler", &format!("{N} {name}"), Run::Handler(run))?;
        Ok(Handler::with_id(Words::of(&words).number()).expect("a handler's id"))
    }
}

/// A message to a peer, by a channel or by none.
fn to<const N: usize>(
    peer: PeerId,
    by: Option<Channel>,
    handler: Handler<N>,
    arguments: [u64; N],
    payload: &[u8],
) -> String {
    let by = by.map_or(0, Channel::number);
    format!("{} {by} {} {}", peer.0, handler.id(), message(&arguments, payload))
}

impl<S> Active<S> for DrivenMessenger<S> {
    type Port = DrivenPort;

    fn with_options(port: DrivenPort, options: &MessengerOptions) -> Result<Self, SetupError> {
        let MessengerOptions { overflow, landing, longest } = *options;
        let [overflow, landing, longest] = [overflow, landing, longest].map(limit);
        port.ask(&format!("messenger {overflow} {landing} {longest}")).set_up()?;
        Ok(Self { port, runs: Vec::new() })
    }

    fn port(&mut self) -> &mut DrivenPort {
        &mut self.port
    }

    fn into_port(self) -> DrivenPort {
        self.ask("into_port").done();
        self.port
    }

    fn register<const N: usize>(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        self.handler(&hex(name.as_bytes()), run)
    }

    fn register_static<const N: usize>(
        &mut self,
        id: u32,
        run: impl FnMut(&mut S, &mut dyn Call, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        self.handler(&id.to_string(), run)
    }

    fn is_announced<const N: usize>(&mut self, peer: PeerId, handler: Handler<N>) -> bool {
        let call = format!("announced {} {} {N}", peer.0, handler.id());
        Words::of(&self.ask(&call).done()).flag()
    }

    fn call<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        let call = format!("call {}", to(peer, None, handler, arguments, payload));
        self.attend(state, &call).ended().map(drop)
    }

    fn try_call<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let call = format!("try_call {}", to(peer, None, handler, arguments, payload));
        self.ask(&call).posted().map(drop)
    }

    fn poll(&mut self, state: &mut S) -> usize {
        Words::of(&self.attend(state, "poll").done()).number()
    }

    fn wait(&mut self, state: &mut S, timeout: Option<Duration>) -> Result<usize, ReceiveError> {
        let answer = self.attend(state, &format!("serve {}", time(timeout)));
        Ok(Words::of(&answer.received()?.expect("a wait has an end")).number())
    }

    fn serve_while(
        &mut self,
        state: &mut S,
        mut holds: impl FnMut(&S) -> bool,
    ) -> Result<(), ReceiveError> {
        while holds(state) {
            self.wait(state, None)?;
        }
        Ok(())
    }

    fn flush(&mut self, state: &mut S) {
        self.attend(state, "drain").done();
    }

    fn sync(&mut self, state: &mut S) -> Result<(), Fault> {
        self.attend(state, "sync").ended().map(drop)
    }

    fn failures(&mut self) -> impl Iterator<Item = DroppedCall> {
        let words = self.ask("failures").done();
        let numbers = Words::of(&words).numbers::<u32>();
        let (all, _) = numbers.as_chunks::<4>();
        let read = |[peer, handler, cause, is_ours]: &[u32; 4]| {
            let causes = [DropCause::Unknown, DropCause::Malformed, DropCause::Panicked];
            let cause = causes.into_iter().find(|one| *one as u32 == *cause).expect("a cause");
            let peer = PeerId(u16::try_from(*peer).expect("a peer"));
            DroppedCall { peer, handler: *handler, cause, is_ours: *is_ours == 1 }
        };
        all.iter().map(read).collect::<Vec<_>>().into_iter()
    }

    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.ask(&format!("forget {}", peer.0)).ended().map(drop)
    }
}

impl<S> Channels<S> for DrivenMessenger<S> {
    fn open_channel(&mut self, number: u8, options: ChannelOptions) -> Result<Channel, SetupError> {
        let ChannelOptions { priority, weight, room } = options;
        let (priority, weight, room) = (limit(priority), limit(weight), limit(room));
        self.ask(&format!("channel {number} {priority} {weight} {room}")).set_up()?;
        Ok(Channel::with_number(number).expect("a channel's number"))
    }

    fn call_by<const N: usize>(
        &mut self,
        state: &mut S,
        (peer, by): (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        let call = format!("call {}", to(peer, Some(by), handler, arguments, payload));
        self.attend(state, &call).ended().map(drop)
    }

    fn try_call_by<const N: usize>(
        &mut self,
        (peer, by): (PeerId, Channel),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let call = format!("try_call {}", to(peer, Some(by), handler, arguments, payload));
        self.ask(&call).posted().map(drop)
    }

    fn hold(&mut self, channel: Channel) {
        self.ask(&format!("hold_channel {}", channel.number())).done();
    }

    fn release(&mut self, channel: Channel) {
        self.ask(&format!("release_channel {}", channel.number())).done();
    }

    fn poll_only(&mut self, state: &mut S, channel: Channel) -> usize {
        let answer = self.attend(state, &format!("poll_only {}", channel.number()));
        Words::of(&answer.done()).number()
    }

    fn backlog(&mut self, peer: PeerId, channel: Channel) -> usize {
        let call = format!("backlog {} {}", peer.0, channel.number());
        Words::of(&self.ask(&call).done()).number()
    }
}
