//! Active messages that have come: plain messages of the engine, for the program's functions.
//!
//! ```text
//!   whole     note: id, length of the header    bytes: header, data
//!   offered   note: the same                    bytes: header
//!             note: data                        bytes: data, which stay until they are received
//! ```
//!
//! The note is the immediate data. The messages of one source are handed over in their order, and
//! by one thread at a time.

use super::ends::landed;
use crate::log;
use crate::sys::handler::Handler;
use crate::sys::packing::Landing;
use ayre::endpoint::raw::{Probed, RawEndpoint};
use ayre::endpoint::{Received, RemoteId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The longest header.
pub(crate) const HEADER_MAX: usize = RawEndpoint::inject_max();
/// The longest message that is sent whole, unless the program wants that.
pub(crate) const WHOLE_MAX: usize = 16 << 10;

/// The note that goes with each message.
///
/// ```text
///   63               32 31       16 15     8 7      0
///  +-------------------+-----------+--------+--------+
///  | bytes of a header |    id     | reply  |  kind  |
///  +-------------------+-----------+--------+--------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: u16,
    pub(crate) header: u32,
    /// The sender offers an endpoint.
    pub(crate) replies: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Whole = 1,
    Header = 2,
    Data = 3,
}

impl Note {
    pub(super) fn to_data(self, kind: Kind) -> u64 {
        let Self { id, header, replies } = self;
        u64::from(header) << 32 | u64::from(id) << 16 | u64::from(replies) << 8 | kind as u64
    }

    fn of_data(data: u64) -> Option<(Self, Kind)> {
        let kind = [Kind::Whole, Kind::Header, Kind::Data];
        let kind = kind.into_iter().find(|kind| *kind as u64 == data & 0xFF)?;
        let note = Self {
            id: (data >> 16) as u16,
            header: (data >> 32) as u32,
            replies: data & 0x100 != 0,
        };
        (data & 0xFE00 == 0).then_some((note, kind))
    }
}

/// Bytes that have come, or stay with their sender.
#[derive(Debug)]
pub(crate) enum Data {
    Here(Box<[u8]>),
    Elsewhere(Probed),
}

impl Data {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::Elsewhere(found) => found.message.len as usize,
        }
    }
}

/// Data that the program has.
#[derive(Debug)]
pub(crate) enum Kept {
    /// From this place on.
    Whole(Arc<Box<[u8]>>, usize),
    Offered(Box<Data>),
}

/// A message for a handler.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) source: RemoteId,
    pub(super) note: Note,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    /// Header, then data.
    Whole(Box<[u8]>),
    /// Those of one on its way here: its number.
    Coming(u64, Landing),
    /// A header, and data that the handler may receive or not.
    Offered(Box<[u8]>, Data),
}

/// The active messages of a worker.
#[derive(Default)]
pub(super) struct Active {
    /// The program has asked for them.
    pub(super) is_on: bool,
    /// By their ids.
    handlers: Vec<Option<Handler>>,
    /// Headers whose data come next.
    headers: Vec<(RemoteId, Note, Box<[u8]>)>,
    /// Those behind one that is coming, by source.
    behind: Vec<(RemoteId, VecDeque<Arrival>)>,
    ready: VecDeque<Arrival>,
    is_telling: bool,
    /// Landings so far.
    landings: u64,
    /// Data that the program has, by its address for that.
    pub(super) kept: HashMap<usize, Kept>,
}

impl Active {
    pub(super) fn set(&mut self, id: u16, handler: Option<Handler>) {
        let id = usize::from(id);
        if self.handlers.len() <= id {
            self.handlers.resize(id + 1, None);
        }
        self.handlers[id] = handler;
    }

    fn handler(&self, id: u16) -> Option<Handler> {
        self.handlers.get(usize::from(id)).copied().flatten()
    }

    /// Whether messages are to be handed over.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether this thread is to hand messages over.
    #[inline(always)]
    pub(super) fn begin_telling(&mut self) -> bool {
        if self.ready.is_empty() || self.is_telling {
            return false;
        }
        self.is_telling = true;
        true
    }

    /// The next one, and its handler. None for the end of that.
    pub(super) fn next(&mut self) -> Option<(Arrival, Option<Handler>)> {
        let next = self.ready.pop_front();
        self.is_telling = next.is_some();
        next.map(|arrival| {
            let handler = self.handler(arrival.note.id);
            (arrival, handler)
        })
    }

    /// A message has come.
    pub(super) fn arrive(&mut self, received: &Received, data: Data, endpoint: &mut RawEndpoint) {
        let note = received.data.and_then(Note::of_data);
        let (Some((note, kind)), Some(source)) = (note, received.source) else {
            return self.refuse(data, endpoint);
        };
        let body = match (kind, data) {
            (Kind::Whole, Data::Here(bytes)) if bytes.len() >= note.header as usize => {
                Body::Whole(bytes)
            }
            (Kind::Whole, Data::Elsewhere(found)) if received.len >= u64::from(note.header) => {
                match self.fetch(&[], &found, endpoint) {
                    Some(coming) => coming,
                    None => return,
                }
            }
            (Kind::Header, Data::Here(bytes)) if bytes.len() == note.header as usize => {
                return self.headers.push((source, note, bytes));
            }
            (Kind::Data, data) => {
                let header = self.headers.iter().position(|(of, ..)| *of == source);
                let Some(header) = header else { return self.refuse(data, endpoint) };
                // Those of one source keep their order.
                let (_, note, header) = self.headers.remove(header);
                return self.offer(source, note, (header, data), endpoint);
            }
            (_, data) => return self.refuse(data, endpoint),
        };
        self.push(Arrival { source, note, body });
    }

    /// A header with data that have come separately: older handlers get them whole.
    fn offer(
        &mut self,
        source: RemoteId,
        note: Note,
        (header, data): (Box<[u8]>, Data),
        endpoint: &mut RawEndpoint,
    ) {
        let is_old = self.handler(note.id).is_some_and(|handler| handler.is_old());
        let body = match data {
            Data::Here(bytes) if is_old => Body::Whole([&*header, &*bytes].concat().into()),
            Data::Elsewhere(found) if is_old => match self.fetch(&header, &found, endpoint) {
                Some(coming) => coming,
                None => return,
            },
            data => Body::Offered(header, data),
        };
        self.push(Arrival { source, note, body });
    }

    /// Gets the bytes of a message that is still with its sender.
    fn fetch(&mut self, header: &[u8], found: &Probed, endpoint: &mut RawEndpoint) -> Option<Body> {
        self.landings += 1;
        let Some(mut landing) = Landing::new(header, found.message.len) else {
            log::warn("there is no memory for an active message, which is thrown away");
            endpoint.discard(false, found.id);
            return None;
        };
        let into = (landing.spans(), landed(self.landings));
        let fetched = endpoint.receive_found(false, found.id, into);
        fetched.is_ok().then_some(Body::Coming(self.landings, landing))
    }

    /// A message that no correct sender sends.
    fn refuse(&mut self, data: Data, endpoint: &mut RawEndpoint) {
        log::warn("an active message was not understood, and is thrown away");
        drop_data(data, endpoint);
    }

    /// Messages of one source keep their order.
    fn push(&mut self, arrival: Arrival) {
        let is_here = !matches!(arrival.body, Body::Coming(..));
        match self.behind.iter_mut().find(|(source, _)| *source == arrival.source) {
            Some((_, queue)) => queue.push_back(arrival),
            None if is_here => self.ready.push_back(arrival),
            None => self.behind.push((arrival.source, VecDeque::from([arrival]))),
        }
    }

    /// A message that was on its way is here, or will not come.
    pub(super) fn land(&mut self, number: u64, is_here: bool) {
        let Self { behind, ready, .. } = self;
        for (_, queue) in behind.iter_mut() {
            let is_it =
                |arrival: &Arrival| matches!(arrival.body, Body::Coming(it, _) if it == number);
            let Some(place) = queue.iter().position(is_it) else { continue };
            if let Some(arrival) = queue.remove(place).filter(|_| is_here) {
                queue.insert(place, arrival.landed());
            }
            while queue.front().is_some_and(|front| !matches!(front.body, Body::Coming(..))) {
                ready.extend(queue.pop_front());
            }
        }
        behind.retain(|(_, queue)| !queue.is_empty());
    }
}

impl Arrival {
    fn landed(self) -> Self {
        match self.body {
            Body::Coming(_, landing) => Self { body: Body::Whole(landing.into_bytes()), ..self },
            _ => self,
        }
    }
}

/// Data that nobody receives: their sender hears of it.
pub(super) fn drop_data(data: Data, endpoint: &mut RawEndpoint) {
    if let Data::Elsewhere(found) = data {
        endpoint.discard(false, found.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back_and_others_are_told_from_it() {
        for kind in [Kind::Whole, Kind::Header, Kind::Data] {
            for (id, header, replies) in [(0, 0, false), (u16::MAX, u32::MAX, true)] {
                let note = Note { id, header, replies };
                assert_eq!(Note::of_data(note.to_data(kind)), Some((note, kind)));
            }
        }
        for data in [0, 4, 0xFF, 0x201, 0x8001] {
            assert_eq!(Note::of_data(data), None, "{data:x}");
        }
    }
}
