//! Opening links between ports of different hosts, as far as they know.
use ayre::error::Refusal;
use ayre::network::Ethernet;
use ayre::{Config, NetOptions, PeerId, Port, ReceiveError, SetupError, Spin};
use std::net::SocketAddr;
use std::time::Duration;

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn open(number: u16, options: &NetOptions) -> (Port, Vec<SocketAddr>) {
    let config = Config::new().number(number).spin(Spin::SHARED);
    let config = config.setup_timeout(Duration::from_secs(5)).linger(Duration::from_millis(50));
    let mut port = Port::open(config).expect("a port");
    let addresses = port.open_net(options).expect("an address of this host");
    (port, addresses)
}

fn here(options: NetOptions) -> NetOptions {
    options.at("127.0.0.1:0".parse().expect("an address"))
}

fn sealed(key: &str) -> NetOptions {
    here(NetOptions::sealed(key).expect("a key"))
}

fn hurried(number: u16, options: &NetOptions) -> (Port, Vec<SocketAddr>) {
    let config = Config::new().number(number).setup_timeout(Duration::from_millis(300));
    let mut port = Port::open(config).expect("a port");
    let addresses = port.open_net(options).expect("an address of this host");
    (port, addresses)
}

/// Both connect; the near port's result.
fn connect(near: &mut Port, far: &mut Port, to: &[SocketAddr]) -> Result<PeerId, SetupError> {
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| near.connect_net(to));
        let accepted = far.accept();
        let connected = connecting.join().expect("no panic");
        assert_eq!(accepted.is_ok(), connected.is_ok(), "{accepted:?}, {connected:?}");
        connected
    })
}

// spec: LIFE-20
#[test]
fn ports_of_one_kind_and_key_connect() {
    for options in [sealed(KEY), here(NetOptions::plain())] {
        let ((mut near, _), (mut far, to)) = (open(1, &options), open(2, &options));
        assert_eq!(connect(&mut near, &mut far, &to).expect("the same options"), PeerId(2));
        near.send(PeerId(2), 7, b"hello").expect("room");
        let mut buffer = [0; 8];
        let message = far.recv(&mut buffer, None).expect("a message");
        assert_eq!((message.source, message.tag, &buffer[..5]), (PeerId(1), 7, &b"hello"[..]));
    }
}

/// Sent and received frames stand in the capture as they were before encryption, at both ends.
// spec: NET-13
#[test]
fn a_capture_of_an_encrypted_link_can_be_read() {
    let folder = std::env::temp_dir().join(format!("ayre-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let options = sealed(KEY).capture(folder.join("{rank}.pcap"));
    let ((mut near, _), (mut far, to)) = (open(1, &options), open(2, &options));
    connect(&mut near, &mut far, &to).expect("the same options");
    let said = b"nobody else can read this";
    near.send(PeerId(2), 7, said).expect("room");
    let mut buffer = [0; 64];
    far.recv(&mut buffer, None).expect("a message");
    drop((near, far));
    for number in [1, 2] {
        let bytes = std::fs::read(folder.join(format!("{number}.pcap"))).expect("a capture");
        let times = bytes.windows(said.len()).filter(|bytes| bytes == said).count();
        assert!(times >= 1, "it is not in the capture of port {number}");
    }
    std::fs::remove_dir_all(&folder).expect("nobody uses it");
}

/// Each poll of links is a call of the system: some dozens, and then it sleeps until something is
/// due, and asks again a few times.
// spec: WAIT-4, WAIT-5
#[test]
fn a_wait_of_a_port_with_links_sleeps_after_some_dozens_of_calls() {
    let options = here(NetOptions::plain()).ethernet(Ethernet::Never);
    let config = |number| Config::new().number(number).spin(Spin::DEDICATED);
    let [mut near, mut far] = [1, 2].map(|number| Port::open(config(number)).expect("a port"));
    let to = far.open_net(&options).expect("an address of this host");
    near.open_net(&options).expect("an address of this host");
    connect(&mut near, &mut far, &to).expect("the same options");
    let calls = |port: &Port| port.wire_report().expect("a wire").nets[0].calls;
    let (mut buffer, before) = ([0; 8], calls(&far));
    let nothing = far.recv(&mut buffer, Some(Duration::from_millis(100)));
    assert_eq!(nothing, Err(ReceiveError::TimedOut));
    let calls = calls(&far) - before;
    assert!(calls < 500, "{calls} calls");
}

// spec: LIFE-20
#[test]
fn a_connect_times_out_while_the_peer_does_not_accept() {
    let options = sealed(KEY);
    let (_far, to) = open(2, &options);
    let (mut near, _) = hurried(1, &options);
    let waited = near.connect_net(&to);
    assert!(matches!(waited, Err(SetupError::TimedOut(_))), "{waited:?}");
}

/// Both sides say why.
// spec: SEAL-10, SEAL-12, OPEN-25, OPEN-27
#[test]
fn ports_of_other_keys_are_strangers() {
    let plain = here(NetOptions::plain());
    let pairs = [(sealed(OTHER), Refusal::Key), (plain, Refusal::Protection)];
    for (theirs, reason) in pairs {
        let ours = sealed(KEY);
        for (near, far) in [(&ours, &theirs), (&theirs, &ours)] {
            let ((mut far, to), (mut near, _)) = (hurried(2, far), hurried(1, near));
            std::thread::scope(|scope| {
                let accepting = scope.spawn(|| far.accept());
                match near.connect_net(&to) {
                    Err(SetupError::Refused { why, peer }) => {
                        assert_eq!(why, reason);
                        assert!(peer.contains(&to[0].to_string()), "{peer}");
                    }
                    other => panic!("{other:?}"),
                }
                match accepting.join().expect("no panic") {
                    Err(SetupError::Rejected { why, peer }) => {
                        assert_eq!(why, reason);
                        assert!(peer.starts_with("127.0.0.1:"), "{peer}");
                    }
                    other => panic!("{other:?}"),
                }
            });
        }
    }
}

/// Somebody else has the number, or it is the port's own.
#[test]
fn a_number_that_is_taken_is_refused() {
    for options in [sealed(KEY), here(NetOptions::plain())] {
        let (mut far, to) = open(2, &options);
        let (mut near, _) = open(1, &options);
        connect(&mut near, &mut far, &to).expect("the first of its number");
        for number in [1, 2] {
            let (mut other, _) = open(number, &options);
            let (mut third, _) = open(3, &options);
            std::thread::scope(|scope| {
                let accepting = scope.spawn(|| far.accept());
                let refused = other.connect_net(&to);
                assert!(
                    matches!(refused, Err(SetupError::Refused { .. })),
                    "{number}: {refused:?}"
                );
                third.connect_net(&to).expect("a number that is free");
                assert_eq!(accepting.join().expect("no panic").expect("a peer"), PeerId(3));
            });
            far.disconnect(PeerId(3)).expect("it was connected");
        }
    }
}

/// A port whose program does not poll is not taken for dead.
// spec: WIRE-7
#[test]
fn a_port_that_computes_stays_alive() {
    let silence = Duration::from_millis(200);
    let options = sealed(KEY).silence(silence);
    let ((mut near, _), (mut far, to)) = (open(1, &options), open(2, &options));
    connect(&mut near, &mut far, &to).expect("the same options");
    let waited = near.recv(&mut [0; 8], Some(5 * silence));
    assert_eq!(waited, Err(ReceiveError::TimedOut), "nobody has died");
    far.send(PeerId(1), 3, &[1]).expect("room");
    assert_eq!(near.recv(&mut [0; 8], None).map(|message| message.tag), Ok(3));
}

/// An operation that is posted when nothing is under way is on its way when the call returns.
// spec: WIRE-6
#[test]
fn a_single_message_needs_no_further_call() {
    let options = sealed(KEY);
    let ((mut near, _), (mut far, to)) = (open(1, &options), open(2, &options));
    connect(&mut near, &mut far, &to).expect("the same options");
    // What connecting has left to acknowledge.
    let _ = far.recv(&mut [0; 8], Some(Duration::from_millis(50)));
    near.progress();
    near.send(PeerId(2), 3, &[1]).expect("room");
    assert_eq!(far.recv(&mut [0; 8], None).map(|message| message.tag), Ok(3));
}

// spec: LIFE-20
#[test]
fn options_that_cannot_be_are_invalid() {
    let mut port = Port::open(Config::new()).expect("a port");
    let five = (0..5).fold(NetOptions::plain(), |options, _| here(options));
    let five = port.open_net(&five);
    assert!(matches!(five, Err(SetupError::Invalid(_))), "{five:?}");
    let short = port.open_net(&here(NetOptions::plain()).datagram_max(100));
    assert!(matches!(short, Err(SetupError::Invalid(_))), "{short:?}");
    assert!(NetOptions::sealed("abc").is_err());
    let early = port.connect_net(&["127.0.0.1:9".parse().expect("an address")]);
    assert!(matches!(early, Err(SetupError::Invalid(_))), "{early:?}");
    port.open_net(&here(NetOptions::plain())).expect("an address of this host");
    let again = port.open_net(&here(NetOptions::plain()));
    assert!(matches!(again, Err(SetupError::Invalid(_))), "{again:?}");
}
