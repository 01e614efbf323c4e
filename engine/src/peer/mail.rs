//! The control channel of a connection whose peer is on another host: two queues in memory, one for
//! each direction, between the port and what carries its connection.
use super::loss::Loss;
use super::packet::{Arrival, Packet};
use crate::error::{Fault, SetupError};
use crate::sync::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// Packets that wait for the other side.
// spec: LIM-1
const PACKETS_MAX: usize = 512;

/// One end of a control channel in memory.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    boxes: Arc<Mutex<Boxes>>,
    /// Whether any port's end of this wire has something to take.
    any: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Boxes {
    to_port: VecDeque<Packet>,
    to_wire: VecDeque<Packet>,
    closed: Option<Fault>,
    loss: Option<Loss>,
}

impl Mail {
    /// `any` tells the port, without a lock, that it has something to take.
    pub(crate) fn new(any: &Arc<AtomicBool>) -> Self {
        Self { boxes: Arc::default(), any: any.clone() }
    }

    /// The port says something to its peer.
    pub(crate) fn send(&self, packet: Packet) -> Result<(), SetupError> {
        let mut boxes = self.boxes();
        if boxes.closed.is_some() {
            return Err(SetupError::peer_left());
        }
        if boxes.to_wire.len() >= PACKETS_MAX {
            return Err(SetupError::exhausted("room for offers at the peer"));
        }
        boxes.to_wire.push_back(packet);
        Ok(())
    }

    /// Packets from the peer to the port.
    pub(crate) fn receive(&self) -> Arrival {
        let mut boxes = self.boxes();
        match boxes.to_port.pop_front() {
            Some(packet) => {
                // Relaxed: as below. Whoever takes some and not all comes back for the others.
                self.any.store(true, Ordering::Relaxed);
                Arrival::Packet(packet)
            }
            None => match boxes.closed {
                None => Arrival::Nothing,
                Some(Fault::Malformed) => Arrival::Malformed,
                Some(Fault::PeerRestarted) => Arrival::Restarted,
                Some(_) => Arrival::Closed,
            },
        }
    }

    /// Packets from the port to the peer.
    pub(crate) fn collect(&self) -> Option<Packet> {
        self.boxes().to_wire.pop_front()
    }

    /// Hands the port what its peer says. Packets beyond the limit are dropped, as the port itself
    /// does with offers that nobody accepts.
    pub(crate) fn deliver(&self, packet: Packet) {
        let mut boxes = self.boxes();
        if boxes.to_port.len() < PACKETS_MAX {
            boxes.to_port.push_back(packet);
            // Relaxed: the lock orders what the flag stands for.
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Nothing comes any more, for this reason.
    pub(crate) fn close(&self, why: Fault, loss: Option<Loss>) {
        let mut boxes = self.boxes();
        (boxes.closed, boxes.loss) = (Some(why), loss);
        // Relaxed: as above.
        self.any.store(true, Ordering::Relaxed);
    }

    /// Why nothing comes any more, where neither side has left.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.boxes().loss
    }

    fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
