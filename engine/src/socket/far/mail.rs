//! Letters by an endpoint. Buffers are used again and again.
use crate::endpoint::{
    Address, Endpoint, EndpointOptions, Finished, Outcome, Pattern, Received, RemoteId,
};
use crate::error::{DisconnectReason, PostError, SetupError};
use ayre_proto::lane::Malformed;
use ayre_proto::socket::far::{BYTES_MOST, Envelope, HEAD_WORDS, Letter};
use rustix::fd::BorrowedFd;
use std::time::Duration;

const HEAD_BYTES: usize = 8 * HEAD_WORDS;
const LETTER_BYTES: usize = HEAD_BYTES + BYTES_MOST as usize;

/// Receives that wait at a time. Letters beyond them are kept by the endpoint.
const RECEIVES: usize = 32;

/// Buffers that are kept for letters.
const SPARE: usize = 32;

/// The fate of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    Yes,
    /// There is no room now.
    NotYet,
    /// The far process has gone.
    Never,
}

#[derive(Debug)]
pub(super) struct Mail {
    endpoint: Endpoint,
    spare: Vec<Vec<u8>>,
    /// Those to whom letters were posted that may wait for an acknowledgement of earlier ones.
    posted_to: Vec<RemoteId>,
}

impl Mail {
    pub(super) fn open(options: &EndpointOptions) -> Result<Self, SetupError> {
        let endpoint = Endpoint::open_with(options)?;
        let mut this = Self { endpoint, spare: Vec::new(), posted_to: Vec::new() };
        (0..RECEIVES).for_each(|_| this.post_receive(Vec::new()));
        Ok(this)
    }

    /// Takes what has come from the network, and looks after all links.
    pub(super) fn serve(&mut self) {
        self.endpoint.serve();
    }

    /// Looks once at the network. Whether something has come.
    pub(super) fn glance(&mut self) -> bool {
        self.endpoint.glance()
    }

    /// Delivers what was sent, at most for this long.
    pub(super) fn deliver(&mut self, limit: Duration) {
        self.endpoint.deliver(limit);
    }

    /// Forgets a far process that has gone. False where it is in use still.
    pub(super) fn forget(&mut self, remote: RemoteId) -> bool {
        self.endpoint.forget(remote)
    }

    pub(super) fn address(&self) -> Address {
        self.endpoint.address()
    }

    pub(super) fn remote(&mut self, at: &Address) -> Result<RemoteId, SetupError> {
        self.endpoint.remote(at)
    }

    /// Whether nothing can come from a far process any more.
    pub(super) fn has_gone(&self, remote: RemoteId) -> bool {
        self.endpoint.reason(remote).is_some()
    }

    /// As [`Self::has_gone`], with the reason.
    pub(super) fn why_gone(&self, remote: RemoteId) -> Option<&DisconnectReason> {
        self.endpoint.reason(remote)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }

    pub(super) fn rest(&mut self) -> bool {
        self.endpoint.rest()
    }

    pub(super) fn wake(&mut self) {
        self.endpoint.wake();
    }

    fn post_receive(&mut self, mut buffer: Vec<u8>) {
        buffer.resize(LETTER_BYTES, 0);
        // Without memory for it, letters are received by the others.
        let _ = self.endpoint.post_receive(Pattern::any(), buffer);
    }

    /// Sends a letter with `len` bytes of a ring, which `fill` writes.
    pub(super) fn send(
        &mut self,
        to: RemoteId,
        letter: &Letter,
        (len, fill): (usize, impl FnOnce(&mut [u8])),
    ) -> Posted {
        let Envelope { tag, words } = letter.to_envelope();
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(HEAD_BYTES + len, 0);
        let (head, bytes) = buffer.split_at_mut(HEAD_BYTES);
        for (place, word) in head.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        fill(bytes);
        match self.endpoint.post_send(to, tag, buffer) {
            Ok(_) => {
                if self.posted_to.last() != Some(&to) {
                    self.posted_to.push(to);
                }
                Posted::Yes
            }
            Err(not_posted) => {
                self.keep(not_posted.buffer);
                match not_posted.error {
                    PostError::Busy(_) => Posted::NotYet,
                    PostError::Fault(_) => Posted::Never,
                }
            }
        }
    }

    fn keep(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Sends what was posted.
    pub(super) fn push_out(&mut self) {
        for remote in self.posted_to.drain(..) {
            self.endpoint.push_out(remote);
        }
    }

    /// The next letter that has come.
    pub(super) fn receive(&mut self) -> Option<Arrived> {
        loop {
            let Finished { buffer, outcome, .. } = self.endpoint.next_finished()?;
            match outcome {
                Outcome::Received(Received { source: Some(from), tag, placed, len, .. }) => {
                    let is_whole = placed == len;
                    let tag = tag.filter(|_| is_whole).ok_or(Malformed);
                    let letter = tag.and_then(|tag| read(tag, &buffer[..placed as usize]));
                    return Some(Arrived { from, letter, buffer });
                }
                Outcome::Sent => self.keep(buffer),
                _ => {}
            }
        }
    }

    /// A letter was taken.
    pub(super) fn give_back(&mut self, arrived: Arrived) {
        self.post_receive(arrived.buffer);
    }
}

/// A letter that has come.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) from: RemoteId,
    pub(super) letter: Result<Letter, Malformed>,
    buffer: Vec<u8>,
}

impl Arrived {
    /// Where bytes of a ring begin: those that the letter has, and others.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[HEAD_BYTES..]
    }
}

fn read(tag: u64, bytes: &[u8]) -> Result<Letter, Malformed> {
    let (head, bytes) = bytes.split_at_checked(HEAD_BYTES).ok_or(Malformed)?;
    let mut words = [0; HEAD_WORDS];
    for (word, place) in words.iter_mut().zip(head.as_chunks().0) {
        *word = u64::from_le_bytes(*place);
    }
    Letter::of_envelope(&Envelope { tag, words }, bytes.len() as u64)
}
