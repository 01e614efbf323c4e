//! In place of `linked` where the feature `net` is off: no peer is on another host.
use super::Device;
use crate::link::lock;
use crate::port::remote::SharedWire;
use crate::sync::AtomicBool;
use ayre_proto::units::PeerId;
use std::convert::Infallible;
use std::sync::Arc;

/// The device of a link: there is none.
#[derive(Debug)]
pub(crate) struct Linked(Infallible);

impl Linked {
    pub(super) fn new(_: PeerId, wire: SharedWire, _: Arc<AtomicBool>) -> Self {
        match *lock(wire.get().expect("a port with links has a wire")) {}
    }
}

impl Device for Linked {
    fn how(&self) -> &'static str {
        match self.0 {}
    }
}
