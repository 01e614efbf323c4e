//! Connections with processes of other hosts. One endpoint of the process carries them. For each
//! far process there is a pair, both of whose sides are here. The program has one, as if the peer
//! were of this host; proxies have the other. [`ayre_proto::socket::far`] says what they tell each
//! other.
//!
//! | file | subject |
//! |---|---|
//! | `mail.rs` | letters by the endpoint |
//! | `end.rs` | the proxy's end of a connection |
//! | `office.rs` | the proxies of all far processes |
//! | `invitation.rs` | how two hosts find each other |
//! | `attendant.rs` | the thread that serves the proxies while no other one does |
//!
//! The thread that rings a proxy serves it, in [`Far::pump`], or leaves that to the one that is
//! there. A thread that looks for bytes of a far process looks at the endpoint by itself, and
//! sleeps at the endpoint's descriptor. While the program computes, and where several of its
//! threads use the endpoint, the attendant does.
mod attendant;
mod end;
mod invitation;
mod mail;
mod office;

use self::attendant::{Attendant, no_thread};
use self::invitation::{Invitation, Letterbox};
use self::mail::Mail;
use self::office::{Caller, Office};
use super::meeting::Ends;
use super::pair::{Pair, Proxies};
use crate::endpoint::{Address, EndpointOptions};
use crate::error::SetupError;
use crate::mem::socket::OFFER_WORDS;
use crate::net::clock::Clock;
use crate::random;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::fork::{Shared, generation};
use crate::sys::thread;
use ayre_proto::socket::far::Token;
use rustix::fd::RawFd;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Debug, Display};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Invitations that are kept until the program has connected.
const STRAYS_MOST: usize = 64;

/// Cycles between two looks at the endpoint, at least.
const CYCLES_PER_LOOK: u64 = 1 << 11;

/// An end of a connection that may be carried to another host.
pub trait Party: Debug + Send + Sync {
    /// The process that has the other end is found: the connection is to be offered in this pair,
    /// by this name.
    fn meet(&self, pair: &Arc<Pair>, name: &Ends);

    /// The far reader has gone, or wants bytes by the kernel: see
    /// [`Connection::follow_reader`](super::Connection::follow_reader).
    fn follow_reader(&self);

    /// The link with that process did not come about, for this reason: the connection stays with
    /// TCP.
    fn has_no_link(&self, why: &dyn Display);
}

/// The connections of this process with other hosts.
#[derive(Debug)]
pub struct Far {
    office: Shared<Office>,
    /// There is something to do for the one who has the office.
    has_news: AtomicBool,
    address: Address,
    letterbox: Letterbox,
    parties: Shared<Parties>,
    attendant: Arc<Attendant>,
    /// When a thread has looked at the endpoint last.
    looked: AtomicU64,
    generation: u64,
}

/// Ends that wait for the processes that have the other ones.
#[derive(Debug, Default)]
struct Parties {
    waiting: BTreeMap<[u64; OFFER_WORDS], Weak<dyn Party>>,
    /// How many of them lived when that was last looked at.
    lived: usize,
    strays: VecDeque<Invitation>,
}

impl Parties {
    fn add(&mut self, name: &Ends, party: Weak<dyn Party>) {
        if self.waiting.len() > 2 * self.lived + STRAYS_MOST {
            self.waiting.retain(|_, party| party.strong_count() > 0);
            self.lived = self.waiting.len();
        }
        self.waiting.insert(name.words(), party);
    }

    fn take(&mut self, name: &Ends) -> Option<Arc<dyn Party>> {
        self.waiting.remove(&name.words())?.upgrade()
    }
}

impl Far {
    /// Opens the endpoint, a port for invitations, and starts the attendant.
    ///
    /// # Errors
    /// As [`Endpoint::open_with`](crate::endpoint::Endpoint::open_with); [`SetupError::Os`] and
    /// [`SetupError::Exhausted`] where all ports for invitations are in use, or the system refuses
    /// a descriptor or a thread.
    pub fn open(options: &EndpointOptions) -> Result<Arc<Self>, SetupError> {
        let options = options.clone();
        // It takes more stack than threads of programs may have.
        let opener = thread::start("ayre-sockets", move || Self::open_here(&options));
        opener.map_err(no_thread)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn open_here(options: &EndpointOptions) -> Result<Arc<Self>, SetupError> {
        let mail = Mail::open(options)?;
        let letterbox = Letterbox::open()?;
        let attendant = Attendant::new([letterbox.fd(), mail.as_fd()])?;
        let this = Arc::new(Self {
            address: mail.address(),
            office: Shared::new(Office::new(mail)),
            has_news: AtomicBool::new(false),
            letterbox,
            parties: Shared::new(Parties::default()),
            attendant: Arc::new(attendant),
            looked: AtomicU64::new(0),
            generation: generation(),
        });
        Attendant::start(&this)?;
        Ok(this)
    }

    /// The code that shows others where to send their invitations.
    pub fn code(&self) -> u16 {
        self.letterbox.code()
    }

    /// An end that has connected, and may be invited.
    pub fn expect(self: &Arc<Self>, name: &Ends, party: Weak<dyn Party>) {
        let mut parties = self.parties.lock();
        parties.add(name, party);
        let is_it = |stray: &Invitation| stray.name.words() == name.words();
        let stray = parties.strays.iter().position(is_it);
        let stray = stray.and_then(|place| parties.strays.remove(place));
        drop(parties);
        if let Some(invitation) = stray {
            self.on_invitation(invitation);
        }
    }

    /// Invites the process that shows this code, and has connected from there, to carry a
    /// connection that this process has accepted.
    pub fn invite(&self, name: &Ends, (from, code): (SocketAddr, u16), party: Weak<dyn Party>) {
        let token = random::words();
        self.parties.lock().add(&Ends::Far(token), party);
        let invitation = Invitation { address: self.address, name: *name, token };
        self.letterbox.send(&invitation, from.ip(), code);
    }

    /// Takes the invitations that have come.
    fn take_invitations(self: &Arc<Self>) {
        while let Some((from, invitation)) = self.letterbox.receive() {
            // A process has no link with itself.
            if is_from_peer(&invitation, from) && invitation.address != self.address {
                self.on_invitation(invitation);
            }
        }
    }

    fn on_invitation(self: &Arc<Self>, invitation: Invitation) {
        let mut parties = self.parties.lock();
        let Some(party) = parties.take(&invitation.name) else {
            if parties.strays.len() >= STRAYS_MOST {
                parties.strays.pop_front();
            }
            return parties.strays.push_back(invitation);
        };
        drop(parties);
        self.introduce(&party, &Caller::At(invitation.address), invitation.token);
    }

    /// Hands a connection to the pair with the process that has its other end.
    fn introduce(self: &Arc<Self>, party: &Arc<dyn Party>, caller: &Caller, token: Token) {
        let this: Weak<Self> = Arc::downgrade(self);
        match self.with(|office| office.pair_with(caller, this)) {
            Ok(pair) => {
                party.meet(&pair, &Ends::Far(token));
                self.with(|office| office.set_party((&pair, token), Arc::downgrade(party)));
            }
            Err(error) => party.has_no_link(&error),
        }
    }

    /// Tells those whose links did not come about.
    // spec: SOCK-75
    fn tell_unlinked(&self) {
        for (party, why) in self.with(Office::take_unlinked) {
            if let Some(party) = party.upgrade() {
                party.has_no_link(&format_args!("no link with another host: {why}"));
            }
        }
    }

    /// Has those do as their far readers want who are to.
    fn follow_readers(&self) {
        let parties = self.with(Office::take_followers);
        parties.iter().filter_map(Weak::upgrade).for_each(|party| party.follow_reader());
    }

    /// Takes those of other hosts that have met us, and whose connections this process has
    /// accepted. Whether there were any.
    fn take_callers(self: &Arc<Self>) -> bool {
        let callers = self.with(Office::take_callers);
        for (caller, token) in &callers {
            let (caller, token) = (*caller, *token);
            match self.parties.lock().take(&Ends::Far(token)) {
                Some(party) => self.introduce(&party, &Caller::Known(caller), token),
                None => self.with(|office| office.forget_caller(caller, token)),
            }
        }
        !callers.is_empty()
    }

    /// Works with the office, as soon as it is free.
    fn with<T>(&self, act: impl FnOnce(&mut Office) -> T) -> T {
        let mut office = self.office.lock();
        let result = act(&mut office);
        self.leave(office);
        result
    }

    /// Behind work with the office. The attendant does what has to be done without it.
    fn leave(&self, office: impl Deref<Target = Office>) {
        if office.has_errands() {
            self.attendant.call();
        }
        drop(office);
        self.catch_up();
    }

    /// Works with the office, if it is free.
    fn try_with<T>(&self, act: impl FnOnce(&mut Office) -> T) {
        if let Some(mut office) = self.office.try_lock() {
            act(&mut office);
            self.leave(office);
        }
    }

    /// Sends what others have left to the one that had the office.
    fn catch_up(&self) {
        while self.has_news.load(Ordering::SeqCst) {
            // The one that has it looks again when it is done.
            let Some(mut office) = self.office.try_lock() else { return };
            if self.has_news.swap(false, Ordering::SeqCst) {
                office.serve_lines();
            }
        }
    }

    /// Sends what programs have written, hands on what has come, and looks after the links.
    fn pump(&self) {
        self.with(Office::work);
    }

    /// Has this thread use the endpoint in the attendant's place. Whether it does.
    fn borrow(&self) -> bool {
        if !self.attendant.is_only_user() {
            self.end_looks();
            return false;
        }
        if self.attendant.lend() {
            self.with(Office::wake);
            self.attendant.call();
        }
        true
    }

    fn note_look(&self) {
        self.looked.store(super::cycles(), Ordering::Relaxed);
    }

    /// Sends all that the program has written and said, before it ends or another one takes its
    /// place. Waits until the other hosts have it, at most for this long.
    pub fn finish(&self, limit: Duration) {
        if self.generation != generation() {
            return;
        }
        let clock = Clock::system();
        let until = clock.within(limit);
        while self.with(Office::is_busy) && !clock.is_over(until) {
            std::thread::yield_now();
        }
        self.with(|office| office.deliver(limit));
    }
}

/// Whether an invitation comes from the host that the connection is with.
fn is_from_peer(invitation: &Invitation, from: IpAddr) -> bool {
    matches!(invitation.name, Ends::Tcp(ends) if ends.taker.ip().to_canonical() == from)
}

impl Drop for Far {
    fn drop(&mut self) {
        self.attendant.stop();
    }
}

impl Proxies for Far {
    fn pump(&self) {
        self.has_news.store(true, Ordering::SeqCst);
        self.catch_up();
    }

    fn offered(&self, program: &Pair, offer: (u32, [u64; OFFER_WORDS])) {
        self.with(|office| {
            office.offered(program, offer);
            office.serve_lines();
        });
    }

    // spec: SOCK-65
    fn is_settled(&self, program: &Pair, slot: u32) -> bool {
        self.with(|office| office.is_settled(program, slot))
    }

    fn hold(&self, act: &mut dyn FnMut()) {
        self.with(|_| act());
    }

    fn begin_looks(&self) {
        self.borrow();
    }

    fn end_looks(&self) {
        if self.attendant.take_back() {
            self.attendant.call();
        }
    }

    fn rest(&self) -> Option<RawFd> {
        if !self.borrow() {
            return None;
        }
        let rests = self.with(Office::rest);
        self.note_look();
        if !rests {
            self.end_looks();
        }
        rests.then(|| self.attendant.endpoint())
    }

    fn serve(&self) {
        if self.borrow() {
            self.try_with(Office::rise);
            self.note_look();
        }
    }

    fn look(&self) {
        let now = super::cycles();
        if self.attendant.is_lent()
            && now.wrapping_sub(self.looked.load(Ordering::Relaxed)) > CYCLES_PER_LOOK
        {
            self.try_with(Office::glance);
            self.note_look();
        }
    }

    fn is_of_this_process(&self) -> bool {
        self.generation == generation()
    }
}
