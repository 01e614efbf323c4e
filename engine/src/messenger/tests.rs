//! A fifth feature, which repeats what it receives. Only the lists of features name it.
use super::*;
use crate::error::ReceiveError;
use crate::port::Port;
use crate::port::config::Config;
use ayre_proto::active::STATIC_IDS;
use std::sync::Arc;

/// The tag of its records, and the id of its long messages.
const ECHO: u32 = 31;
/// A byte that it refuses.
const REFUSED: u8 = 255;
/// How often bytes are sent back.
const TIMES: usize = 50;

/// The received bytes, and those to be sent back.
#[derive(Default)]
pub(super) struct Echo {
    heard: Vec<(PeerId, Vec<u8>)>,
    due: Vec<(PeerId, Vec<u8>)>,
    gone: Vec<PeerId>,
}

/// The messages to be sent.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<(PeerId, Vec<u8>)>);

impl Outbound for Calls {
    fn send(out: &mut Outgoing, to: PeerId, pass: Pass) -> Result<(), PostError> {
        let Outgoing { outbound, port, .. } = out;
        let calls: &mut Self = outbound.as_mut();
        while pass == Pass::Urgent
            && let Some(at) = calls.0.iter().position(|(peer, _)| *peer == to)
        {
            port.send(to, ECHO, &calls.0[at].1)?;
            calls.0.remove(at);
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        !self.0.is_empty()
    }
}

impl<S> Extension<S> for Echo {
    fn takes(tag: u32) -> bool {
        tag == ECHO
    }

    fn on_record(
        messenger: &mut Messenger<S>,
        _: &mut S,
        (source, _): (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed> {
        if messenger.buffer[..len] == [REFUSED] {
            return Err(Malformed);
        }
        let said = messenger.buffer[..len].to_vec();
        messenger.echo().due.push((source, said));
        messenger.out.has_more = true;
        Ok(0)
    }

    fn admits(long: &LongHead<'_>) -> bool {
        long.arguments.is_empty()
    }

    fn on_long(
        messenger: &mut Messenger<S>,
        _: &mut S,
        source: PeerId,
        _: (u32, &[u8]),
        payload: Vec<u8>,
    ) -> Result<usize, Malformed> {
        messenger.echo().heard.push((source, payload));
        Ok(1)
    }

    fn advance(messenger: &mut Messenger<S>, _: &mut S) -> usize {
        for (to, said) in std::mem::take(&mut messenger.echo().due) {
            let again = Arc::new(said.repeat(TIMES));
            messenger.out.owe_long(to, ECHO, &[], again);
        }
        0
    }

    fn is_due(messenger: &Messenger<S>) -> bool {
        let echo: &Self = messenger.features.as_ref();
        !echo.due.is_empty()
    }

    fn on_death(messenger: &mut Messenger<S>, peer: PeerId) {
        messenger.echo().gone.push(peer);
    }
}

impl<S> Messenger<S> {
    fn echo(&mut self) -> &mut Echo {
        self.features.as_mut()
    }

    fn say(&mut self, to: PeerId, said: &[u8]) {
        let calls: &mut Calls = self.out.outbound.as_mut();
        calls.0.push((to, said.to_vec()));
        self.out.stir();
    }
}

/// Two connected messengers.
fn pair() -> [Messenger<()>; 2] {
    let config = |number| Config::new().number(number);
    let (near, far) = Port::pair(config(0), config(1)).expect("two ports");
    [near, far].map(Messenger::new)
}

/// A messenger carries the records and long messages of a feature that it does not name, also those
/// that wait to be sent.
// spec: AM-12, AM-15
#[test]
fn an_unknown_feature_receives_its_messages() {
    let [mut near, mut far] = pair();
    let peers = [PeerId(0), PeerId(1)];
    for len in [1, 100, 1024] {
        let said = vec![len as u8; len];
        near.say(peers[1], &said);
        assert!(near.out.outbound.waits(), "it goes with the next poll");
        let ran: usize = (0..1000).map(|_| far.poll(&mut ()) + near.poll(&mut ())).sum();
        assert_eq!(ran, 1, "it is heard once");
        let heard = std::mem::take(&mut near.echo().heard);
        assert_eq!(heard, [(peers[1], said.repeat(TIMES))]);
        assert!(!near.out.outbound.waits() && far.echo().heard.is_empty());
    }
}

// spec: AM-11
#[test]
fn features_hear_of_deaths() {
    let [mut near, far] = pair();
    drop(far);
    assert_eq!(near.wait(&mut (), None), Err(ReceiveError::PeerDied(PeerId(1))));
    assert_eq!(near.echo().gone, [PeerId(1)]);
}

// spec: AM-15
#[test]
fn a_record_that_its_feature_refuses_ends_the_connection() {
    let [mut near, mut far] = pair();
    near.say(PeerId(1), &[REFUSED]);
    near.poll(&mut ());
    far.poll(&mut ());
    assert!(!far.out.port.is_alive(PeerId(0)));
}

/// No two features take the same records, and none takes the messenger's own or a handler's.
// spec: AM-15
#[test]
fn tags_belong_to_one_feature() {
    let takers: Vec<_> = (0..*STATIC_IDS.start() + 8).map(Features::<()>::takers).collect();
    let one = |tag: usize| usize::from(matches!(tag, 10..=15 | 18 | 19 | 31));
    let expected: Vec<_> = (0..takers.len()).map(one).collect();
    assert_eq!(takers, expected);
}
