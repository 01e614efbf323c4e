//! Two processes of one host use each kind of operation. With any Cargo features of `ayre`, and
//! with none: `scripts/features.sh` runs this without them.
mod common;

use ayre::active::Messenger;
use ayre::endpoint::{Address, Endpoint, Pattern};
use ayre::{Config, Mode, PeerId, Port, PostOptions, RegionOptions, Rights};
use common::{Line, with_processes};
use std::path::PathBuf;

const LEN: usize = 1 << 20;
/// A tag of messages.
const TAG: u64 = 7;

/// A process's view of the other one.
struct Side {
    port: Port,
    other: PeerId,
    number: u8,
}

impl Side {
    /// Process 0 listens, process 1 connects once it is told that 0 does.
    fn connect(number: u64, line: &Line) -> Self {
        let socket = PathBuf::from(std::env::var_os("SOCKET").unwrap());
        let mode = if std::env::var_os("DIRECT").is_some() { Mode::Direct } else { Mode::Mediated };
        let mut port = Port::open(Config::new().number(number as u16).mode(mode)).unwrap();
        let other = match number {
            0 => {
                port.listen(socket).unwrap();
                line.say(0);
                port.accept().unwrap()
            }
            _ => port.connect(socket).unwrap(),
        };
        assert_eq!(port.mode(other), Ok(mode));
        Self { port, other, number: number as u8 }
    }

    fn exchange_short_messages(&mut self) {
        let own = [self.number; 40];
        self.port.send_wait(self.other, 3, &own).unwrap();
        let mut theirs = [9; 40];
        let message = self.port.recv(&mut theirs, None).unwrap();
        assert_eq!((message.source, message.tag, message.len), (self.other, 3, 40));
        assert_eq!(theirs, [1 - self.number; 40]);
    }

    /// Each writes the other's memory, reads back what it has written, and adds to a word of it.
    fn put_and_get(&mut self) {
        let Self { port, other, number } = self;
        let region = port.alloc(LEN, RegionOptions::new()).unwrap();
        port.share(*other, &region, 0..LEN, Rights::all(), 0).unwrap();
        let remote = port.accept_region(*other, 0).unwrap();
        let pattern = |number: u8| -> Vec<u8> { (8..LEN).map(|at| at as u8 ^ number).collect() };
        let written = PostOptions::new().completer().tag(5);
        port.put(&remote, 8, &pattern(*number), written).unwrap();
        assert_eq!(port.wait_notification(None).unwrap().tag, 5);
        let mut theirs = vec![0; LEN - 8];
        region.read(8, &mut theirs);
        assert!(theirs == pattern(1 - *number), "what the other one has put");
        port.get(&remote, 8, &mut theirs, PostOptions::new()).unwrap();
        port.flush(*other).unwrap();
        assert!(theirs == pattern(*number), "what this one has put");
        assert_eq!([10, 20].map(|add| port.fetch_add(&remote, 0, add).unwrap()), [0, 10]);
        self.exchange_short_messages();
    }

    /// Endpoints find each other by the addresses that the ports hand over.
    fn exchange_matched_messages(&mut self) {
        let mut endpoint = Endpoint::open().unwrap();
        self.port.send_wait(self.other, 0, &endpoint.address().to_bytes()).unwrap();
        let mut address = [0; Address::BYTES];
        self.port.recv(&mut address, None).unwrap();
        let remote = endpoint.remote(&Address::from_bytes(&address).unwrap()).unwrap();
        for len in [16, LEN] {
            let receive = endpoint.post_receive(Pattern::tag(TAG), vec![9; len]).unwrap();
            endpoint.send(remote, TAG, &vec![self.number; len]).unwrap();
            let finished = endpoint.wait(None).unwrap();
            assert_eq!(finished.request, receive);
            assert_eq!(finished.received().unwrap().placed, len as u64);
            assert!(finished.buffer == vec![1 - self.number; len]);
        }
        // Neither goes before the other one has got everything.
        self.exchange_short_messages();
    }

    /// Each calls a handler of the other one, which replies.
    fn call(self) {
        #[derive(Default)]
        struct State {
            heard: Vec<u8>,
            answer: u64,
        }
        let Self { port, other, number } = self;
        let mut messenger = Messenger::new(port);
        let answer =
            messenger.register("answer", |state: &mut State, _, [length], _| state.answer = length);
        let answer = answer.unwrap();
        let text = messenger.register("text", move |state: &mut State, call, [], text| {
            state.heard = text.to_vec();
            call.reply(answer, [text.len() as u64], &[]).unwrap();
        });
        let (text, mut state) = (text.unwrap(), State::default());
        messenger.sync(&mut state).unwrap();
        messenger.call(&mut state, other, text, [], &[number; 3000]).unwrap();
        let is_open = |state: &State| state.answer == 0 || state.heard.is_empty();
        messenger.serve_while(&mut state, is_open).unwrap();
        messenger.sync(&mut state).unwrap();
        assert_eq!((state.heard, state.answer), (vec![1 - number; 3000], 3000));
    }
}

// spec: LIFE-6
#[test]
fn two_processes_of_a_host_use_each_kind_of_operation() {
    with_processes(
        |number, line| {
            let mut side = Side::connect(number % 2, &line);
            side.exchange_short_messages();
            side.put_and_get();
            side.exchange_matched_messages();
            side.call();
        },
        |family| {
            for mode in ["DIRECT", "MEDIATED"] {
                let socket = family.directory().join(mode);
                let start = || {
                    family.start_with(|command| _ = command.env("SOCKET", &socket).env(mode, "1"))
                };
                let mut listener = start();
                assert_eq!(listener.line.hear(), 0, "it listens");
                let mut caller = start();
                listener.succeeds();
                caller.succeeds();
            }
        },
    );
}

/// Variables and addresses that need an absent feature are errors that name the feature.
#[cfg(not(any(feature = "net", feature = "tuning")))]
mod absent {
    use super::*;
    use ayre::error::LinkMismatch;
    use ayre::{EndpointOptions, SetupError};

    #[track_caller]
    fn assert_lacks<T>(result: Result<T, SetupError>, name: &str, feature: &str) {
        match result.err() {
            Some(SetupError::Environment(why)) => assert_eq!(
                why,
                format!(
                    "{name} is set, and this program's Ayre was built without the Cargo feature \
                     `{feature}`"
                )
            ),
            other => panic!("{name}: {other:?}"),
        }
    }

    // spec: LIFE-30
    #[test]
    fn a_variable_of_an_absent_feature_is_an_error_that_names_the_feature() {
        with_processes(
            |_, _| {
                let name = std::env::var("NAME").unwrap();
                match std::env::var("FEATURE") {
                    Ok(feature) => {
                        assert_lacks(Port::open(Config::new()), &name, &feature);
                        assert_lacks(Endpoint::open(), &name, &feature);
                    }
                    Err(_) => drop((Port::open(Config::new()).unwrap(), Endpoint::open().unwrap())),
                }
            },
            |family| {
                for (name, value, feature) in [
                    ("AYRE_NET", "lo", Some("net")),
                    ("AYRE_KEY", "/key", Some("net")),
                    ("AYRE_SILENCE", "3", Some("net")),
                    ("AYRE_TUNING", "/tuning.toml", Some("tuning")),
                    ("AYRE_NET", "none", None),
                    ("AYRE_TUNING", "none", None),
                ] {
                    let mut process = family.start_with(|command| {
                        command.env(name, value).env("NAME", name);
                        feature.map(|feature| command.env("FEATURE", feature));
                    });
                    process.succeeds();
                }
            },
        );
    }

    // spec: ENV-32
    #[test]
    fn an_address_of_another_host_is_refused_and_the_error_names_the_feature() {
        let mut endpoint = Endpoint::open().unwrap();
        let mut elsewhere = endpoint.address().to_bytes();
        // Of another host, and of another name: this one is called here whatever the host.
        elsewhere[8] ^= 1;
        elsewhere[16] ^= 1;
        let error = endpoint.remote(&Address::from_bytes(&elsewhere).unwrap()).unwrap_err();
        assert!(matches!(error, SetupError::NoLink { why: LinkMismatch::NoNet, .. }), "{error}");
        assert!(error.to_string().contains("Cargo feature `net`"), "{error}");
        let words =
            EndpointOptions::of_settings("FI_", |word| (word == "net").then(|| "lo".into()));
        assert_lacks(words, "FI_AYRE_NET", "net");
    }
}
