//! Groups of a messenger of another process whose members come and go.
use super::messenger::{DrivenMessenger, Run};
use super::words::{Words, hex, limit, message};
use crate::messenger::{Membership, Multicast, MulticastOptions};
use ayre::active::Handler;
use ayre::multicast::{Change, MulticastError};
use ayre::{PeerId, SetupError};

pub(super) type Watch<S> = Box<dyn FnMut(&mut S, &Change) + Send>;

/// Runs a watcher with what the driver has said.
pub(super) fn run<S>(watch: &mut Watch<S>, state: &mut S, words: &mut Words<'_>) {
    let change = match words.word() {
        "view" => Change::View {
            number: words.number(),
            ticket: words.number(),
            members: words.peers(),
            joined: words.peers(),
        },
        "ended" => Change::Ended,
        other => panic!("no watcher is run with `{other}`"),
    };
    watch(state, &change);
}

fn limits(MulticastOptions { window, requests }: MulticastOptions) -> String {
    format!("{} {}", limit(window), limit(requests))
}

impl<S> Multicast<S> for DrivenMessenger<S> {
    fn found(
        &mut self,
        name: &str,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, SetupError> {
        let call = format!("{} {}", hex(name.as_bytes()), limits(options));
        let words = self.name("found", &call, Run::Watcher(Box::new(watch)))?;
        Ok(Membership(Words::of(&words).number()))
    }

    fn join(
        &mut self,
        state: &mut S,
        name: &str,
        door: PeerId,
        options: MulticastOptions,
        watch: impl FnMut(&mut S, &Change) + Send + 'static,
    ) -> Result<Membership, MulticastError> {
        // It may be run before the call ends.
        let run = self.keep(Run::Watcher(Box::new(watch)));
        let (name, limits) = (hex(name.as_bytes()), limits(options));
        let words = self.attend(state, &format!("join {run} {name} {} {limits}", door.0));
        Ok(Membership(Words::of(&words.multicast()?).number()))
    }

    fn multicast<const N: usize>(
        &mut self,
        state: &mut S,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let message = message(&arguments, payload);
        let call = format!("multicast {} {} {message}", group.0, handler.id());
        self.attend(state, &call).multicast().map(drop)
    }

    fn try_multicast<const N: usize>(
        &mut self,
        group: Membership,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let message = message(&arguments, payload);
        let call = format!("try_multicast {} {} {message}", group.0, handler.id());
        self.ask(&call).multicast().map(drop)
    }

    fn multicast_through<const N: usize>(
        &mut self,
        state: &mut S,
        (name, door): (&str, PeerId),
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), MulticastError> {
        let (name, message) = (hex(name.as_bytes()), message(&arguments, payload));
        let call = format!("multicast_through {name} {} {} {message}", door.0, handler.id());
        self.attend(state, &call).multicast().map(drop)
    }

    fn leave(&mut self, state: &mut S, group: Membership) -> Result<(), MulticastError> {
        self.attend(state, &format!("leave_group {}", group.0)).multicast().map(drop)
    }

    fn members(&mut self, group: Membership) -> Vec<PeerId> {
        let words = self.ask(&format!("members {}", group.0)).done();
        Words::of(&words).numbers().into_iter().map(PeerId).collect()
    }
}
