//! A driver's calls about streams.
use super::super::super::errors::failure;
use super::super::super::words::{Answer, Words, hex};
use super::super::{Held, Made, done, keep, nothing};
use super::{Messaging, run};
use crate::messenger::{Entry, Flow, Hop, Stage, Streams};
use ayre::stream::{Input, PushError, StreamEnd, StreamName};

fn stage_of(number: usize) -> impl FnMut(&mut Held, &mut dyn Flow, Input<'_>) + Send + 'static {
    move |held, flow, input| {
        let StreamName { peer, number: own } = flow.name();
        let [a, b, c, d] = flow.arguments();
        let input = match input {
            Input::Item(item) => format!("item {}", hex(item)),
            Input::End(StreamEnd::Closed) => "closed".into(),
            Input::End(StreamEnd::Cut) => "cut".into(),
            Input::End(StreamEnd::Failed(why)) => format!("failed {}", failure(why)),
        };
        let due = format!("{number} {} {own} {a} {b} {c} {d} {input}", peer.0);
        run(held, &due, |name, words| {
            assert_eq!(name, "emit", "a stage's only call");
            flow.emit(words.bytes());
            nothing(())
        });
    }
}

fn name(words: &mut Words<'_>) -> StreamName {
    StreamName { peer: words.peer(), number: words.number() }
}

/// A stage, whose name stays: the driver ends with the suite.
fn stage(words: &mut Words<'_>) -> Stage {
    Stage::named(words.name().leak())
}

fn entry(words: &mut Words<'_>) -> Entry {
    let entry = Entry::new(words.peer(), words.number(), stage(words));
    let entry = entry.arguments([(); 4].map(|()| words.number()));
    if words.flag() { entry.goes_on() } else { entry }
}

fn hop(words: &mut Words<'_>) -> Hop {
    Hop::new(words.peer(), stage(words)).arguments([(); 4].map(|()| words.number()))
}

impl Messaging {
    pub(super) fn about_entries(
        &mut self,
        call: &str,
        words: &mut Words<'_>,
        held: &mut Held,
    ) -> Made {
        let messenger = &mut self.messenger;
        match call {
            "stage" => {
                let run = stage_of(words.number());
                done(messenger.stage(&words.name(), run)?)
            }
            "set_entry" => {
                let (at, name) = (words.peer(), name(words));
                nothing(messenger.set_entry(held, at, name, entry(words))?)
            }
            "clear_entry" => {
                let at = words.peer();
                nothing(messenger.clear_entry(held, at, name(words))?)
            }
            _ => {
                messenger.let_peers_set_entries(words.flag());
                nothing(())
            }
        }
    }

    pub(super) fn about_streams(
        &mut self,
        call: &str,
        words: &mut Words<'_>,
        held: &mut Held,
    ) -> Made {
        let Self { messenger, streams, .. } = self;
        match call {
            "open_stream" => {
                let stream = messenger.open_stream(held, words.number())?;
                return done(keep(streams, Some(stream)));
            }
            "stream" => {
                let hops: Vec<_> = (0..words.number()).map(|_: usize| hop(words)).collect();
                let stream = messenger.stream(held, &hops)?;
                return done(keep(streams, Some(stream)));
            }
            _ => {}
        }
        let place = &mut streams[words.number::<usize>()];
        let (stream, over) = match call {
            "push" | "try_push" => (place.as_ref(), None),
            _ => (None, place.take()),
        };
        match (call, stream, over) {
            ("push", Some(stream), _) => nothing(messenger.push(held, stream, words.bytes())?),
            (_, Some(stream), _) => match messenger.try_push(held, stream, words.bytes()) {
                Ok(()) => nothing(()),
                Err(PushError::Busy) => Ok(Answer::Nothing),
                Err(PushError::Ended(why)) => Err(why.into()),
            },
            ("close_stream", _, Some(stream)) => nothing(messenger.close(held, stream)?),
            (_, _, Some(stream)) => {
                messenger.cancel(held, stream);
                nothing(())
            }
            _ => panic!("a stream that has ended"),
        }
    }
}
