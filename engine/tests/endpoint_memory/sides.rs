//! Two endpoints, or one and itself, of which one touches the other's windows.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    Completion, CompletionKind, Context, MemoryRegions, OutgoingMessage, RawEndpoint,
    RemoteAddress, RmaEvent, RmaUpdate, RmaWrite, Span, Spans,
};
use ayre::{EndpointOptions, Fault, PostError, Spin};
use std::collections::VecDeque;

pub(crate) fn whole(bytes: &mut [u8]) -> Span {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended
    // and their windows are withdrawn.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

pub(crate) fn span(bytes: &mut [u8]) -> Spans {
    whole(bytes).into()
}

/// These bytes in one to four parts.
pub(crate) fn parts(bytes: &mut [u8], seed: usize) -> Spans {
    let len = (bytes.len() / (1 + seed % 4)).max(bytes.len().div_ceil(4)).max(1);
    Spans::new(bytes.chunks_mut(len).map(whole)).expect("four are few")
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// The near endpoint accesses the far one's memory regions; `far` is unconnected where it accesses
/// its own.
pub(crate) struct Sides {
    pub(crate) near: RawEndpoint,
    pub(crate) far: RawEndpoint,
    /// The owner of the memory regions, as the near endpoint names it, and the endpoint that
    /// accesses them.
    pub(crate) to: RemoteId,
    pub(crate) back: RemoteId,
    pub(crate) windows: MemoryRegions,
    ends: VecDeque<Completion>,
    told: VecDeque<RmaEvent>,
    pub(crate) far_ends: Vec<Completion>,
}

/// With a ring so narrow that little fills it.
fn open() -> RawEndpoint {
    let options = EndpointOptions::new().spin(Spin::SHARED).ring(1 << 18);
    RawEndpoint::open_with(&options).expect("an endpoint")
}

impl Sides {
    pub(crate) fn new(to_itself: bool) -> Self {
        let [mut near, mut far] = [0, 1].map(|_| open());
        let [at_near, at_far] = [near.address(), far.address()];
        let windows = MemoryRegions::new();
        let (to, back) = if to_itself {
            near.share(&windows);
            let itself = near.remote(&at_near).expect("itself");
            (itself, itself)
        } else {
            far.share(&windows);
            let back = far.remote(&at_near).expect("a neighbour");
            (near.remote(&at_far).expect("a neighbour"), back)
        };
        let (ends, told, far_ends) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let mut sides = Self { near, far, to, back, windows, ends, told, far_ends };
        sides.check_lives();
        sides
    }

    pub(crate) fn spot(&self, key: u64, address: u64) -> RemoteAddress {
        RemoteAddress { remote: self.to, key, address }
    }

    pub(crate) fn progress(&mut self) {
        let Self { near, far, ends, told, far_ends, .. } = self;
        let mut sort = |end: Completion, others: &mut dyn FnMut(Completion)| match end.what {
            CompletionKind::RmaEvent(touched) => {
                assert_eq!((end.context, end.result), (0, Ok(())));
                told.push_back(touched);
            }
            _ => others(end),
        };
        near.progress(|end| sort(end, &mut |end| ends.push_back(end)));
        far.progress(|end| sort(end, &mut |end| far_ends.push(end)));
    }

    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..10_000_000 {
            if is_so(self) {
                return;
            }
            self.progress();
        }
        panic!("it does not come to be: {:?} {:?}", self.ends, self.told);
    }

    /// Posts, however long it takes.
    pub(crate) fn post<T>(&mut self, mut what: impl FnMut(&mut Self) -> Result<T, PostError>) -> T {
        let mut posted = None;
        self.until(|sides| match what(sides) {
            Ok(it) => {
                posted = Some(it);
                true
            }
            Err(PostError::Busy(_)) => false,
            Err(error) => panic!("{error}"),
        });
        posted.expect("it was posted")
    }

    pub(crate) fn write(&mut self, to: RemoteAddress, write: &RmaWrite) {
        let _ = self.post(|sides| sides.near.write(to, write));
    }

    pub(crate) fn read(&mut self, from: RemoteAddress, into: Spans) {
        self.post(|sides| sides.near.read(from, into.clone(), 6));
    }

    pub(crate) fn update(&mut self, at: RemoteAddress, update: &RmaUpdate) {
        self.post(|sides| sides.near.update(at, update));
    }

    /// The next end at the near one.
    pub(crate) fn end(&mut self) -> (Context, CompletionKind, Result<(), Fault>) {
        self.until(|sides| !sides.ends.is_empty());
        let end = self.ends.pop_front().expect("there is one");
        (end.context, end.what, end.result)
    }

    /// The next that the windows' owner is told of.
    pub(crate) fn touched(&mut self) -> RmaEvent {
        self.until(|sides| !sides.told.is_empty());
        self.told.pop_front().expect("there is one")
    }

    /// Messages still go.
    pub(crate) fn check_lives(&mut self) {
        let mut bytes = [1];
        let message = OutgoingMessage {
            tag: Some(99),
            data: None,
            bytes: span(&mut bytes),
            context: 0,
            delivered: false,
        };
        let _ = self.post(|sides| sides.near.send(sides.to, &message));
        let is_itself = self.to == self.back && self.near.address() != self.far.address();
        let find = |sides: &mut Self| {
            sides.far.find(None, Some((99, 0))).or_else(|| sides.near.find(None, Some((99, 0))))
        };
        self.until(|sides| find(sides).is_some());
        let id = find(self).expect("it was found").id;
        assert!(self.far.discard(true, id) || (is_itself && self.near.discard(true, id)));
    }

    /// The far one dies, and another one is there in its place.
    pub(crate) fn replace_far(&mut self) {
        self.far = open();
        self.near.wake();
    }

    pub(crate) fn has_no_ends(&self) -> bool {
        self.ends.is_empty()
    }

    /// The windows' owner has been told of nothing.
    pub(crate) fn check_nothing_told(&self) {
        assert!(self.told.is_empty(), "{:?}", self.told);
    }
}
