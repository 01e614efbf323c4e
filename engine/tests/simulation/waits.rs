//! Waits of messengers and endpoints end by the clock of their simulated network.
use ayre::active::{Call, Handler, Messenger};
use ayre::endpoint::raw::{CompletionKind, OutgoingMessage, PostedReceive, RawEndpoint, Spans};
use ayre::{
    Config, EndpointOptions, NetOptions, PeerId, PostError, ReceiveError, Simulation, Spin,
};
use std::time::Duration;

const LATENCY: Duration = Duration::from_micros(3);
/// The times for which a port waits, shorter and longer than the next step of its link.
const WAITS: [u64; 4] = [1, 50, 999, 20_000];
/// Polls after which what does not come is taken never to.
const ROUNDS: usize = 1_000_000;

const ASK: u32 = 32;
const TELL: u32 = 33;

fn handler(id: u32) -> Handler<0> {
    Handler::with_id(id).expect("an id of the program's")
}

fn tell(_: &mut (), call: &mut Call<'_>, []: [u64; 0], _: &[u8]) {
    call.reply(handler(TELL), [], &[1; 500]).expect("it is kept where there is no room");
}

fn messengers(simulation: &Simulation) -> [Messenger<()>; 2] {
    let configs = (0..2).map(|number| Config::new().number(number));
    let ports = simulation.mesh(&NetOptions::plain(), configs).expect("all connect");
    let messengers = ports.into_iter().map(|port| {
        let mut messenger = Messenger::new(port);
        messenger.register_static(ASK, tell).expect("a new id");
        messenger.register_static(TELL, |(), _, [], _| ()).expect("a new id");
        messenger
    });
    messengers.collect::<Vec<_>>().try_into().expect("two")
}

/// Waits for nothing, for several times, each of which passes by the network's clock to the end
/// and no further.
fn wait_in_vain(simulation: &Simulation, messenger: &mut Messenger<()>) {
    for micros in WAITS {
        let (begin, time) = (simulation.now(), Duration::from_micros(micros));
        let waited = messenger.wait(&mut (), Some(time));
        assert!(matches!(waited, Err(ReceiveError::TimedOut)), "{waited:?}");
        assert_eq!(simulation.now(), begin + time);
    }
}

// spec: NET-17
#[test]
fn a_messengers_wait_ends_at_its_deadline_by_the_networks_clock() {
    let simulation = Simulation::new(LATENCY);
    let [mut near, _far] = messengers(&simulation);
    wait_in_vain(&simulation, &mut near);
}

/// Room wakes nobody, so a messenger that waits for it does not sleep but polls again and again.
// spec: NET-17
#[test]
fn a_messengers_wait_ends_at_its_deadline_while_replies_wait_for_room() {
    let simulation = Simulation::new(LATENCY);
    let [mut near, mut far] = messengers(&simulation);
    let full =
        (0..ROUNDS).find_map(|_| near.try_call(PeerId(1), handler(TELL), [], &[2; 500]).err());
    assert!(matches!(full, Some(PostError::Busy(_))), "{full:?}");
    far.try_call(PeerId(0), handler(ASK), [], &[]).expect("there is room");
    near.wait(&mut (), None).expect("it comes");
    wait_in_vain(&simulation, &mut near);
    near.try_call(PeerId(1), handler(TELL), [], &[]).expect_err("the reply waits before it");
}

/// Two endpoints, of which the first one has sent the other a message.
fn connected(simulation: &Simulation) -> [RawEndpoint; 2] {
    let options = EndpointOptions::new().simulated(simulation).spin(Spin::SHARED).plain();
    let [mut near, mut far] = [(); 2].map(|()| RawEndpoint::open_with(&options).expect("it opens"));
    let remote = near.remote(&far.address()).expect("it is reached");
    let bytes = Spans::default();
    let receive = PostedReceive { source: None, tag: None, into: bytes, context: 0, many: None };
    far.receive(receive).expect("there is room");
    let bytes = Spans::default();
    let message = OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
    let (mut is_sent, mut has_come) = (false, false);
    let mut rounds = 0..ROUNDS;
    while !has_come {
        rounds.next().expect("it comes");
        is_sent = is_sent || near.send(remote, &message).is_ok();
        near.progress(|_| ());
        far.progress(|end| has_come |= matches!(end.what, CompletionKind::Received(_)));
    }
    [near, far]
}

// spec: NET-17
#[test]
fn an_endpoints_waits_end_at_their_deadline_by_the_networks_clock() {
    let simulation = Simulation::new(LATENCY);
    let [mut near, _far] = connected(&simulation);
    for micros in WAITS {
        let end = simulation.now() + Duration::from_micros(micros);
        let mut rounds = 0..ROUNDS;
        while simulation.now() < end {
            rounds.next().expect("time goes on while it waits");
            near.wait(Some(end - simulation.now()), |end| panic!("{end:?}"));
        }
        assert_eq!(simulation.now(), end);
    }
}
