//! Interfaces whose semantics differ from the protocol's.
//!
//! A node stays `proto`'s. Its interface stands before it, and a [`Profile`] says how that differs:
//!
//! | difference | the protocol alone | with the profile |
//! |---|---|---|
//! | [messages](Mailboxes) | a lane for each peer, with credits | one mailbox, which drops |
//! | [locks](Locks) | words of any shared region | a lock space of each node |
//! | [memory](Pages) | ranges of any length | operations within a page; a TLB; fences in time |
//!
//! A profile may also have the times of the interface's [units](Profile::units).
use super::memory::Local;
use super::pages::{Page, Pages};
use super::{Cluster, Lock};
use crate::extoll::lock::{LOCKS, LockSpace};
use crate::extoll::mailbox::{self, Mailbox};
use crate::extoll::{Parameters, prototype_clock};
use crate::host::Host;
use crate::time::Time;
use ayre_proto::execute::Action;
use ayre_proto::fault::Fault;
use ayre_proto::limits::LINE;
use ayre_proto::node::peer::Message;
use ayre_proto::node::{Order, PostError};
use ayre_proto::units::PeerId;
use thiserror::Error;

/// The tag of messages to and from lock units.
pub(super) const LOCK_TAG: u32 = u32::MAX;
/// Words of a lock unit's answer: the number of the request, the word, and whether it was changed.
pub(super) const ANSWER: usize = 3;
/// Entries of the greatest TLB.
const ENTRIES_MAX: u32 = 1 << 20;

/// The differences of interfaces from the protocol; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Messages go to a mailbox that drops.
    pub mailbox: Option<Mailboxes>,
    /// Each node has a lock space.
    pub locks: Option<Locks>,
    /// Memory is translated by page.
    pub pages: Option<Pages>,
    /// The times of the units that frames pass, which come on top of those of the stages. Frames
    /// have the lengths of EXTOLL's packets then. Without them a frame takes the stages' times.
    pub units: Option<Parameters>,
}

/// Mailboxes of nodes. No credit of a program's holds a sender: the interface takes each message
/// at once, and its mailbox keeps the message or drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailboxes {
    /// Slots of each.
    pub slots: u32,
    /// Bytes of the longest message.
    pub longest: u32,
    /// From the write of a message to the handler of its interrupt.
    pub interrupt: Time,
}

/// Lock spaces of nodes. They need no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locks {
    /// Processes of a node, each with its locks.
    pub processes: u32,
    /// Requests that a node's lock unit may park.
    pub places: usize,
}

impl Profile {
    /// EXTOLL's prototype: messages of VELO (section 7.4), pages of RMA (7.5.1), and the lock unit
    /// as it was built, which parks nothing. Reconstructed: the thesis says how the size of a
    /// mailbox is set, and gives none.
    pub fn extoll() -> Self {
        let (host, clock) = (Host::HT400, prototype_clock());
        Self {
            mailbox: Some(Mailboxes { slots: 1024, longest: 64, interrupt: host.interrupt }),
            locks: Some(Locks { processes: 32, places: 0 }),
            pages: Some(Pages::extoll(&host, clock)),
            units: Some(Parameters::composed(&host, clock)),
        }
    }

    /// Checks that the parts fit each other.
    ///
    /// # Errors
    /// [`ProfileError`] where they do not.
    pub fn check(&self) -> Result<(), ProfileError> {
        match (self.mailbox, self.locks) {
            (None, Some(_)) => Err(ProfileError::Locks),
            (Some(Mailboxes { slots, longest, .. }), _) if slots < mailbox::slots(longest) => {
                Err(ProfileError::Slots { slots, longest })
            }
            _ => self.check_pages(),
        }
    }

    fn check_pages(&self) -> Result<(), ProfileError> {
        let Some(Pages { bytes, entries, .. }) = self.pages else { return Ok(()) };
        if !bytes.is_power_of_two() || bytes < LINE as u64 {
            return Err(ProfileError::Page(bytes));
        }
        let is_possible = (1..=ENTRIES_MAX).contains(&entries);
        if is_possible { Ok(()) } else { Err(ProfileError::Entries(entries)) }
    }

    /// Checks that an operation lies in one page at each of its ends (section 7.5.1). Only a local
    /// end in a region has an address.
    pub(super) fn check_order(&self, order: &Order<Local>) -> Result<(), Refusal> {
        let Some(pages) = self.pages.filter(|_| order.command.action != Action::Notify) else {
            return Ok(());
        };
        let claim = order.command.claim;
        let local = match &order.local {
            Some(Local::Region(_, base)) => (*base, order.shape.local_span().unwrap_or(u64::MAX)),
            Some(Local::Bytes(_) | Local::Buffer(_)) | None => (0, 0),
        };
        for (offset, len) in [(claim.offset, claim.len), local] {
            if !pages.holds(offset, len) {
                return Err(Refusal::Page { offset, len, page: pages.bytes });
            }
        }
        Ok(())
    }

    /// The page at the operation's local end, if it has one.
    pub(super) fn local_page(&self, order: &Order<Local>) -> Option<Page> {
        let bytes = self.pages.map_or(1, |pages| pages.bytes);
        Some(match order.local.as_ref()? {
            Local::Region(number, base) => Page::Own(*number, base / bytes),
            Local::Bytes(_) | Local::Buffer(_) => Page::Buffer,
        })
    }

    /// Checks a message that a program sends.
    pub(super) fn check_message(&self, tag: u32, len: usize) -> Result<(), Refusal> {
        match self.mailbox {
            Some(Mailboxes { longest, .. }) if len > longest as usize => {
                Err(Refusal::Message { len, longest })
            }
            _ if self.locks.is_some() && tag == LOCK_TAG => Err(Refusal::Tag(tag)),
            _ => Ok(()),
        }
    }
}

/// Why a profile is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// Requests for locks are messages.
    #[error("lock spaces without mailboxes: only an interface with mailboxes takes messages")]
    Locks,
    /// No message of the greatest length would ever find room.
    #[error("mailboxes of {slots} slots: the longest message, of {longest} B, takes more")]
    Slots {
        /// Slots of each.
        slots: u32,
        /// Bytes of the longest message.
        longest: u32,
    },
    /// Pages of this length are no pages.
    #[error("pages of {0} B: a page has a power of two of bytes, {LINE} at least")]
    Page(u64),
    /// The TLB is empty, or too large.
    #[error("a TLB of {0} entries: it has 1 to {ENTRIES_MAX}")]
    Entries(u32),
}

/// Why a call is refused. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The node refuses it.
    #[error("the node refuses it: {0:?}")]
    Node(PostError),
    /// The message is too long for the mailbox.
    #[error("a message of {len} B: mailboxes take at most {longest} B")]
    Message {
        /// Its bytes.
        len: usize,
        /// Bytes of the longest one.
        longest: u32,
    },
    /// The message has the tag of requests for locks.
    #[error("a message with tag {0}: the lock units use this tag")]
    Tag(u32),
    /// The operation leaves a page, at one of its ends.
    #[error("{len} B at offset {offset}: an operation lies in one page of {page} B")]
    Page {
        /// The offset in the capability, or in the own region.
        offset: u64,
        /// Its bytes.
        len: u64,
        /// Bytes of a page.
        page: u64,
    },
    /// There is no such lock.
    #[error(
        "lock {number} of process {process}: there are {processes} processes with {LOCKS} locks",
        process = lock.process,
        number = lock.number
    )]
    Lock {
        /// The lock.
        lock: Lock,
        /// Processes of a node.
        processes: u32,
    },
}

impl From<PostError> for Refusal {
    fn from(error: PostError) -> Self {
        Self::Node(error)
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Node(fault.into())
    }
}

/// A message in a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The node that has sent it.
    pub source: PeerId,
    /// The message.
    pub message: Message,
}

/// A request for a lock: its word gets the addend if it is at most the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    /// The lock.
    pub lock: Lock,
    /// The word has to be at most this.
    pub limit: i32,
    /// The number to add.
    pub addend: i32,
}

impl Cluster {
    /// A node's mailbox, if nodes have one.
    pub fn mailbox(&self, node: u32) -> Option<&Mailbox<Mail>> {
        self.members[node as usize].interface.mailbox.as_ref()
    }

    /// A node's mailbox, for the kernel, which enables it and lets it interrupt.
    pub fn mailbox_mut(&mut self, node: u32) -> Option<&mut Mailbox<Mail>> {
        self.members[node as usize].interface.mailbox.as_mut()
    }

    /// A node's locks. There are none without the profile's lock space.
    pub fn locks(&self, node: u32) -> &LockSpace {
        &self.members[node as usize].interface.locks
    }

    /// Asks a peer's lock unit. Returns the number of the request, which is in the
    /// [answer](super::Event::Lock).
    ///
    /// # Errors
    /// [`Refusal`]. A node has no room for it while many messages to the peer are on their way.
    pub fn lock(&mut self, node: u32, to: PeerId, request: LockRequest) -> Result<u32, Refusal> {
        let lock = request.lock;
        let processes = self.profile.locks.map_or(0, |locks| locks.processes);
        lock.place(processes).ok_or(Refusal::Lock { lock, processes })?;
        self.call(node, to, |member| {
            let (number, data) = member.interface.ask(&request);
            member.node.send(to, LOCK_TAG, &data)?;
            Ok(number)
        })
    }
}
