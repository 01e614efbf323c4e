//! Pages of shared memory that two endpoints of a host have accessed, after no, little and much
//! traffic through their rings.
use super::common::system::{memory_files, touched};
use super::common::{Line, with_processes};
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span};
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{EndpointOptions, PostError, Spin};

/// Bytes of each ring, of one direction.
const RING: usize = 1 << 20;
/// The bytes of a ring that are used at first.
const NARROW: usize = 1 << 16;
/// The memory that two endpoints share besides their rings, by the table of limits.
const LANES: usize = 48 << 10;
const PAGE: usize = 4096;

/// Two endpoints of this process, the first of which sends to the second.
struct Pair {
    near: RawEndpoint,
    far: RawEndpoint,
    remote: RemoteId,
    from: Vec<u8>,
    into: Vec<u8>,
}

impl Pair {
    /// Connected, and their long messages go by the ring.
    fn new() -> Self {
        let step = Step { from: 0, method: Method::Pipeline };
        let tuning = Tuning::new().with_steps(Use::Receive, vec![step]).expect("a step");
        let options = EndpointOptions::new().spin(Spin::SHARED).local().ring(RING).tuning(tuning);
        let open = || RawEndpoint::open_with(&options).expect("an endpoint");
        let (mut near, far) = (open(), open());
        let remote = near.remote(&far.address()).expect("a neighbour");
        let (from, into) = (vec![7; 1 << 20], vec![0; 1 << 20]);
        let mut pair = Self { near, far, remote, from, into };
        pair.pass(1, 0);
        pair
    }

    /// Sends messages of `len` bytes, each when the one before was received.
    fn pass(&mut self, messages: usize, len: usize) {
        for _ in 0..messages {
            self.into[..len].fill(0);
            // SAFETY: the buffers are kept, and kept off, until what was posted has ended.
            let [from, into] = [&mut self.from, &mut self.into]
                .map(|bytes| unsafe { Span::new(bytes.as_mut_ptr(), len) });
            let receive = PostedReceive {
                source: None,
                tag: Some((1, 0)),
                into: into.into(),
                context: 1,
                many: None,
            };
            self.far.receive(receive).expect("there is room");
            let (tag, data, bytes) = (Some(1), None, from.into());
            let message = OutgoingMessage { tag, data, bytes, context: 2, delivered: false };
            let (mut due, mut is_sent) = (2, false);
            while due > 0 || !is_sent {
                if !is_sent {
                    match self.near.send(self.remote, &message) {
                        Ok(sent) => {
                            (is_sent, due) = (true, due - usize::from(sent == Sent::Completed))
                        }
                        Err(PostError::Busy(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                for endpoint in [&mut self.near, &mut self.far] {
                    endpoint.progress(|end| {
                        end.result.expect("both are there");
                        due -= 1;
                    });
                }
            }
            assert!(self.into[..len].iter().all(|byte| *byte == 7));
        }
    }
}

fn ring_bytes_resident() -> usize {
    touched(&memory_files().into_iter().filter(|file| file.len >= 2 * RING).collect::<Vec<_>>())
}

fn count(_: &Line) {
    let mut pair = Pair::new();
    let idle = ring_bytes_resident();
    assert!(idle > 0 && idle <= LANES, "{idle} bytes of lanes");
    let rings = || ring_bytes_resident() - idle;
    // What fits the lane goes by the lane.
    pair.pass(5000, 512);
    assert_eq!(rings(), 0, "nothing has gone by the ring");
    pair.pass(1, 513);
    assert!(rings() <= PAGE, "where it lies, which may be a page of the lanes' end");
    // Less than goes twice through what is used at first.
    pair.pass(31, 4096);
    let light = rings();
    assert!((NARROW - PAGE..=NARROW).contains(&light), "{light} bytes of what is used at first");
    // Four times as much as the ring holds, one message at a time.
    pair.pass(4 * RING / 16384, 16384);
    let heavy = rings();
    assert!((RING - PAGE..=RING).contains(&heavy), "{heavy} bytes: all of one of the two rings");
    pair.pass(20, RING);
    assert_eq!(rings(), heavy, "and no more");
    eprintln!("bytes touched: idle {idle}, used a little {light}, used much {heavy}");
}

// spec: LIM-2, ENV-42
#[test]
fn an_endpoints_peer_costs_as_much_memory_as_goes_through_its_rings() {
    with_processes(|_, line| count(&line), |family| family.start().succeeds());
}

fn count_of_bursts(_: &Line) {
    let mut pair = Pair::new();
    let idle = ring_bytes_resident();
    // Longer than what is used at first, in parts that wait for the reader.
    pair.pass(1, 1 << 18);
    let burst = ring_bytes_resident() - idle;
    assert!((NARROW..=1 << 18).contains(&burst), "{burst} bytes for a burst");
}

// spec: ENV-42
#[test]
fn a_burst_touches_no_more_than_its_bytes() {
    with_processes(|_, line| count_of_bursts(&line), |family| family.start().succeeds());
}
