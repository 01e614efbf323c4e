//! Streams of a messenger of another process.
use super::messenger::{DrivenMessenger, Run};
use super::port::Way;
use super::words::{Answer, Words, hex};
use crate::messenger::{Entry, Flow, Hop, Streams};
use ayre::stream::{Input, PushError, StreamEnd, StreamError, StreamName};
use ayre::{PeerId, SetupError};

/// The end of a stream that items are pushed into.
#[derive(Debug)]
pub struct DrivenStream(usize);

pub(super) type Stand<S> = Box<dyn FnMut(&mut S, &mut dyn Flow, Input<'_>) + Send>;

/// The environment of a stage.
struct Flowing {
    way: Way,
    name: StreamName,
    arguments: [u64; 4],
}

impl Flow for Flowing {
    fn emit(&mut self, item: Vec<u8>) {
        self.way.ask(&format!("emit {}", hex(&item))).done();
    }

    fn arguments(&self) -> [u64; 4] {
        self.arguments
    }

    fn name(&self) -> StreamName {
        self.name
    }
}

/// Runs a stage with what the driver has said.
pub(super) fn run<S>(stage: &mut Stand<S>, state: &mut S, way: Way, words: &mut Words<'_>) {
    let name = StreamName { peer: words.peer(), number: words.number() };
    let mut flow = Flowing { way, name, arguments: [(); 4].map(|()| words.number()) };
    let end = match words.word() {
        "item" => return stage(state, &mut flow, Input::Item(&words.bytes())),
        "closed" => StreamEnd::Closed,
        "cut" => StreamEnd::Cut,
        "failed" => StreamEnd::Failed(words.failure()),
        other => panic!("no stage is run with `{other}`"),
    };
    stage(state, &mut flow, Input::End(end));
}

fn arguments(of: [u64; 4]) -> String {
    of.map(|word| word.to_string()).join(" ")
}

fn name(of: StreamName) -> String {
    format!("{} {}", of.peer.0, of.number)
}

impl<S> Streams<S> for DrivenMessenger<S> {
    type Stream = DrivenStream;

    fn stage(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut dyn Flow, Input<'_>) + Send + 'static,
    ) -> Result<u32, SetupError> {
        let words = self.name("stage", &hex(name.as_bytes()), Run::Stage(Box::new(run)))?;
        Ok(Words::of(&words).number())
    }

    fn set_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        of: StreamName,
        entry: Entry,
    ) -> Result<(), StreamError> {
        let Entry { to, number, stage, arguments: told, goes_on } = entry;
        let (told, goes_on) = (arguments(told), u8::from(goes_on));
        let (of, stage) = (name(of), hex(stage.name.as_bytes()));
        let call = format!("set_entry {} {of} {} {number} {stage} {told} {goes_on}", at.0, to.0);
        self.attend(state, &call).streamed().map(drop)
    }

    fn clear_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        of: StreamName,
    ) -> Result<(), StreamError> {
        let call = format!("clear_entry {} {}", at.0, name(of));
        self.attend(state, &call).streamed().map(drop)
    }

    fn let_peers_set_entries(&mut self, may: bool) {
        self.ask(&format!("let_set_entries {}", u8::from(may))).done();
    }

    fn open_stream(&mut self, state: &mut S, number: u32) -> Result<DrivenStream, StreamError> {
        let words = self.attend(state, &format!("open_stream {number}")).streamed()?;
        Ok(DrivenStream(Words::of(&words).number()))
    }

    fn stream(&mut self, state: &mut S, hops: &[Hop]) -> Result<DrivenStream, StreamError> {
        let hop = |Hop { peer, stage, arguments: told }: &Hop| {
            format!(" {} {} {}", peer.0, hex(stage.name.as_bytes()), arguments(*told))
        };
        let words: String = hops.iter().map(hop).collect();
        let words = self.attend(state, &format!("stream {}{words}", hops.len())).streamed()?;
        Ok(DrivenStream(Words::of(&words).number()))
    }

    fn push(
        &mut self,
        state: &mut S,
        stream: &DrivenStream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), StreamError> {
        let call = format!("push {} {}", stream.0, hex(&item.into()));
        self.attend(state, &call).streamed().map(drop)
    }

    fn try_push(
        &mut self,
        state: &mut S,
        stream: &DrivenStream,
        item: impl Into<Vec<u8>>,
    ) -> Result<(), PushError> {
        let call = format!("try_push {} {}", stream.0, hex(&item.into()));
        match self.attend(state, &call) {
            Answer::Nothing => Err(PushError::Busy),
            other => Ok(other.streamed().map(drop)?),
        }
    }

    fn close(&mut self, state: &mut S, stream: DrivenStream) -> Result<(), StreamError> {
        self.attend(state, &format!("close_stream {}", stream.0)).streamed().map(drop)
    }

    fn cancel(&mut self, state: &mut S, stream: DrivenStream) {
        self.attend(state, &format!("cancel {}", stream.0)).done();
    }
}
