//! A way between two nodes whose programs exchange more than plain messages: portions of
//! collectives, and long ones by a landing.
//!
//! Messages of `send` and those of the script itself come by one lane. The tags from [`OWN`] on
//! tell them apart: they are the protocol's, counted from there.
use crate::cluster::{Cluster, Local, Refusal};
use ayre_proto::active::long::{LongReceiver, LongSender, Message as Long, Way as LongWay};
use ayre_proto::active::record::Record;
use ayre_proto::collective::portion::{HEADER, Header, Window};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Fault;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::node::peer::Message;
use ayre_proto::node::{Order, PostError};
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId};
use std::collections::VecDeque;

/// The first tag that `send` cannot have.
pub(super) const OWN: u32 = u32::MAX - 255;
/// Bytes of a landing: pieces of whole portions find room in it.
pub(super) const LANDING: u64 = 1 << 17;
/// Bytes of a portion that goes in one message with its header.
pub(super) const WHOLE_MAX: usize = EAGER_MAX - HEADER;

/// Messages between a node and a peer, at the node.
#[derive(Debug)]
pub(super) struct Way {
    /// Messages of `send` that have been passed by.
    pub(super) messages: VecDeque<Message>,
    pub(super) portions: VecDeque<(Header, Vec<u8>)>,
    pub(super) window: Window,
    pub(super) outward: LongSender,
    pub(super) inward: LongReceiver,
    /// The last bytes that were put and are not told of.
    pub(super) untold: Option<(u64, usize)>,
    /// The long message that is coming, as far as it is there.
    pub(super) arrived: Arrived,
    /// Messages to handlers that wait for room.
    pub(super) kept: VecDeque<Kept>,
}

/// A message of the script itself: its number, and its bytes behind its arguments.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) id: u32,
    pub(super) bytes: Vec<u8>,
}

/// A message to a handler.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: u32,
    pub(super) arguments: Vec<u8>,
    pub(super) payload: Vec<u8>,
    /// Bytes of a long one that are sent.
    pub(super) sent: usize,
}

impl Way {
    /// Landings are there from the beginning: set-up takes no time.
    pub(super) fn new() -> Self {
        let (mut outward, mut inward) = (LongSender::default(), LongReceiver::default());
        let made = outward.find_landing(&mut Nowhere);
        made.and_then(|_| outward.on_landing(LANDING).map_err(|_| ()))
            .expect("a landing of this length is wanted");
        inward.on_want().expect("it is wanted once");
        inward.make(LANDING);
        inward.gave();
        let (messages, portions) = (VecDeque::new(), VecDeque::new());
        let (window, arrived, kept) = (Window::default(), Arrived::default(), VecDeque::new());
        Self { messages, portions, window, outward, inward, untold: None, arrived, kept }
    }

    /// Whether a message need not wait behind another one.
    pub(super) fn is_free(&self) -> bool {
        self.kept.is_empty() && !self.outward.is_held()
    }

    /// A piece of a long message has come: its place in the landing, and whether it is the last.
    pub(super) fn piece(&mut self, len: u64) -> (u64, bool) {
        let taken = self.inward.take(len).expect(SOUND);
        (taken.piece.offset, taken.is_last)
    }
}

pub(super) const SOUND: &str = "nodes keep to the protocol";

/// Records that nobody needs.
struct Nowhere;

impl LongWay for Nowhere {
    type Error = ();

    fn say(&mut self, _: &Record<'_>) -> Result<(), ()> {
        Ok(())
    }

    fn open(&mut self, _: u64) -> Result<(), ()> {
        Ok(())
    }

    fn put(&mut self, _: u64, _: &[u8]) -> Result<(), ()> {
        Ok(())
    }

    fn longest_put(&mut self) -> usize {
        usize::MAX
    }

    fn offers(&self, _: &Long<'_>) -> Option<u64> {
        None
    }
}

/// The lane and the landing of a peer.
pub(super) struct WayTo<'a> {
    pub(super) cluster: &'a mut Cluster,
    pub(super) node: u32,
    pub(super) to: PeerId,
    pub(super) key: Option<Key>,
    pub(super) untold: &'a mut Option<(u64, usize)>,
}

impl LongWay for WayTo<'_> {
    type Error = Refusal;

    fn say(&mut self, record: &Record<'_>) -> Result<(), Refusal> {
        let (tag, bytes) = record.encode();
        self.cluster.send(self.node, self.to, OWN + tag, &bytes)?;
        *self.untold = None;
        Ok(())
    }

    fn open(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        // Bytes that were put before their record found no room are not put again.
        if *self.untold == Some((offset, bytes.len())) {
            return Ok(());
        }
        let key = self.key.ok_or(PostError::Fault(Fault::ForeignHandle))?;
        let len = bytes.len() as u64;
        let (claim, classes) = (Claim { key, offset, len }, Classes::empty());
        let command = Command { action: Action::Put, classes, tag: 0, value: 0, claim };
        let local = Some(Local::Bytes(bytes.to_vec()));
        let order = Order { command, shape: Shape::contiguous(len), local };
        self.cluster.post(self.node, self.to, order)?;
        *self.untold = Some((offset, bytes.len()));
        Ok(())
    }

    fn longest_put(&mut self) -> usize {
        usize::MAX
    }

    fn offers(&self, _: &Long<'_>) -> Option<u64> {
        None
    }
}
