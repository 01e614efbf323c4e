//! The proxies of all far processes, and the letters between them.
use super::end::{End, Stand};
use super::mail::{Arrived, Mail, Posted};
use super::{Far, Party};
use crate::endpoint::{Address, RemoteId};
use crate::error::{DisconnectReason, SetupError};
use crate::mem::socket::{OFFER_WORDS, PairMemory};
use crate::socket::meeting::Ends;
use crate::socket::pair::{Bell, PROXY, Pair, Proxies};
use ayre_proto::lane::Malformed;
use ayre_proto::socket::far::{Letter, Message, Token};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Ends of far processes that are kept until this process has offered the connection.
const STRAYS_MOST: usize = 1024;

/// How often the endpoint is asked to rest, before that is put off.
const RESTS: usize = 16;

/// How this process knows a far process.
#[derive(Debug)]
pub(super) enum Caller {
    /// One that has met us.
    Known(RemoteId),
    /// One at this address.
    At(Address),
}

#[derive(Debug)]
pub(super) struct Office {
    mail: Mail,
    /// The endpoint rests: what comes wakes the attendant.
    is_resting: bool,
    lines: Vec<Line>,
    /// Connections of which far processes have told before the program: sender, token, slot.
    strays: VecDeque<(RemoteId, Token, u32)>,
    /// Those of them that nobody has looked at.
    callers: Vec<(RemoteId, Token)>,
    /// Those who are to do as their far readers want, and that nobody has told.
    followers: Vec<Weak<dyn Party>>,
    /// Those whose links did not come about, and that nobody has told.
    unlinked: Vec<(Weak<dyn Party>, DisconnectReason)>,
}

/// A far process.
#[derive(Debug)]
struct Line {
    remote: RemoteId,
    /// The side of the program.
    program: Arc<Pair>,
    /// The side of the proxies, and the bell at which they are rung.
    pair: Arc<Pair>,
    bell: Bell,
    ends: BTreeMap<u32, End>,
    /// Those for whose messages the link had no room.
    waiting: Vec<u32>,
    has_gone: bool,
}

impl Office {
    pub(super) fn new(mail: Mail) -> Self {
        let (lines, strays) = (Vec::new(), VecDeque::new());
        let (callers, followers, unlinked) = (Vec::new(), Vec::new(), Vec::new());
        Self { mail, is_resting: false, lines, strays, callers, followers, unlinked }
    }

    /// The pair with a far process: both processes offer their connections in one.
    pub(super) fn pair_with(
        &mut self,
        caller: &Caller,
        far: Weak<Far>,
    ) -> Result<Arc<Pair>, SetupError> {
        let remote = match caller {
            Caller::Known(remote) => *remote,
            Caller::At(address) => self.mail.remote(address)?,
        };
        if let Some(line) = self.lines.iter().find(|line| line.remote == remote) {
            return Ok(line.program.clone());
        }
        let line = Line::new(remote)?;
        line.program.set_far(far as Weak<dyn Proxies>, self.mail.address().is_plain());
        let program = line.program.clone();
        self.lines.push(line);
        Ok(program)
    }

    /// The program's end of a connection that it has offered.
    pub(super) fn set_party(&mut self, (program, token): (&Pair, Token), party: Weak<dyn Party>) {
        let Some(line) = self.line_of(program) else { return };
        if let Some(end) = line.ends.values_mut().find(|end| end.has_token(token)) {
            end.set_party(party);
            let follower = end.follower();
            self.followers.extend(follower);
        }
    }

    /// Whether there is something to do without the office.
    pub(super) fn has_errands(&self) -> bool {
        !(self.callers.is_empty() && self.followers.is_empty() && self.unlinked.is_empty())
    }

    pub(super) fn take_followers(&mut self) -> Vec<Weak<dyn Party>> {
        std::mem::take(&mut self.followers)
    }

    pub(super) fn take_unlinked(&mut self) -> Vec<(Weak<dyn Party>, DisconnectReason)> {
        std::mem::take(&mut self.unlinked)
    }

    pub(super) fn take_callers(&mut self) -> Vec<(RemoteId, Token)> {
        std::mem::take(&mut self.callers)
    }

    /// This process has not accepted the connection that a caller names.
    pub(super) fn forget_caller(&mut self, caller: RemoteId, token: Token) {
        self.strays.retain(|stray| (stray.0, stray.1) != (caller, token));
    }

    fn line_of(&mut self, program: &Pair) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| std::ptr::eq(&raw const *line.program, program))
    }

    pub(super) fn is_settled(&mut self, program: &Pair, slot: u32) -> bool {
        let end = self.line_of(program).and_then(|line| line.ends.get(&slot));
        end.is_none_or(End::is_settled)
    }

    /// The program has offered a connection.
    pub(super) fn offered(&mut self, program: &Pair, (number, name): (u32, [u64; OFFER_WORDS])) {
        let Some(token) = Ends::token(&name) else { return };
        let is_of = |line: &&mut Line| std::ptr::eq(&raw const *line.program, program);
        let Some(line) = self.lines.iter_mut().find(is_of) else { return };
        let how = (&name, line.program.has_plain_link());
        let taken = line.pair.slot(number).and_then(|slot| End::take(number, slot, how));
        let Some(mut end) = taken else { return };
        let is_it = |stray: &(RemoteId, Token, u32)| (stray.0, stray.1) == (line.remote, token);
        let stray = self.strays.iter().position(is_it);
        if let Some((.., theirs)) = stray.and_then(|place| self.strays.remove(place)) {
            end.meet(theirs);
            line.program.be_met();
        }
        line.ends.insert(number, end);
        line.waiting.push(number);
    }

    /// Takes what has come, sends what is due, and looks after all links.
    pub(super) fn work(&mut self) {
        // Those who have gone may have written before.
        self.mail.serve();
        while self.take_letters() {
            self.mail.serve();
        }
        self.serve_lines();
        let Self { lines, mail, unlinked, .. } = self;
        for line in lines.iter_mut().filter(|line| !line.has_gone) {
            let Some(why) = mail.why_gone(line.remote) else { continue };
            if !line.program.is_met() {
                let parties = line.ends.values().filter_map(End::party);
                unlinked.extend(parties.map(|party| (party, why.clone())));
            }
            line.end();
        }
        lines.retain(|line| !line.has_gone || !mail.forget(line.remote));
    }

    fn take(&mut self, arrived: &Arrived) {
        let line = self.lines.iter_mut().find(|line| line.remote == arrived.from);
        match (arrived.letter, line) {
            (Ok(Letter::Meet { slot, token }), line) => {
                let met = line.and_then(|line| line.meet(token, slot));
                if met.is_none() && self.strays.len() < STRAYS_MOST {
                    self.strays.push_back((arrived.from, token, slot));
                    self.callers.push((arrived.from, token));
                }
            }
            (Ok(Letter::About { slot, message }), Some(line)) => {
                match line.take(slot, &message, arrived.bytes()) {
                    Ok(follower) => self.followers.extend(follower),
                    Err(Malformed) => line.end(),
                }
            }
            (Err(Malformed), Some(line)) => line.end(),
            (_, None) => {}
        }
    }

    /// Before a sleep at the endpoint's descriptor. False where there is something to do soon.
    pub(super) fn rest(&mut self) -> bool {
        for _ in 0..RESTS {
            self.is_resting = self.is_resting || self.mail.rest();
            if self.is_resting {
                break;
            }
            self.work();
        }
        // To rest, the endpoint looks at the network, and may have found room.
        if self.is_resting && self.is_waiting() {
            self.serve_lines();
        }
        self.is_resting && !self.is_waiting()
    }

    /// Behind a sleep at the endpoint's descriptor.
    pub(super) fn rise(&mut self) {
        if !self.glance() {
            self.work();
        }
    }

    /// Whether letters have had no room.
    fn is_waiting(&self) -> bool {
        self.lines.iter().any(|line| !line.waiting.is_empty())
    }

    /// Sends what is due.
    pub(super) fn serve_lines(&mut self) {
        let Self { lines, mail, .. } = self;
        lines.iter_mut().for_each(|line| line.serve(mail));
        mail.push_out();
    }

    /// Whether there were any.
    fn take_letters(&mut self) -> bool {
        let mut any = false;
        while let Some(arrived) = self.mail.receive() {
            self.take(&arrived);
            self.mail.give_back(arrived);
            any = true;
        }
        any
    }

    /// A process has gone, and its line is to end.
    fn has_lost_one(&self) -> bool {
        self.lines.iter().any(|line| self.mail.has_gone(line.remote))
    }

    /// Looks once whether something has come.
    pub(super) fn glance(&mut self) -> bool {
        self.wake();
        let has_come = self.mail.glance();
        if has_come {
            self.take_letters();
            self.serve_lines();
        }
        if self.has_lost_one() {
            self.work();
        }
        has_come
    }

    /// The endpoint is looked at from now on.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.is_resting) {
            self.mail.wake();
        }
    }

    /// Whether letters are to be sent.
    pub(super) fn is_busy(&mut self) -> bool {
        self.work();
        self.lines.iter().any(Line::is_busy)
    }

    /// Delivers what was sent, at most for this long.
    pub(super) fn deliver(&mut self, limit: Duration) {
        self.mail.deliver(limit);
    }
}

impl Line {
    fn new(remote: RemoteId) -> Result<Self, SetupError> {
        let told = |errno| SetupError::Os { call: "a pair with another host", errno };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (near, far) = made.map_err(told)?;
        let (memory, file) = PairMemory::make()?;
        let program = Pair::new(memory, near, 0).map_err(told)?;
        let memory = PairMemory::open(file.as_fd())?.ok_or_else(|| told(Errno::PROTO))?;
        let pair = Pair::unlisted(memory, far, 0).map_err(told)?;
        let bell = pair.bell().ok_or_else(|| told(Errno::MFILE))?;
        assert_eq!(bell.number(), PROXY, "it is the first bell of its side");
        let (ends, waiting, has_gone) = (BTreeMap::new(), Vec::new(), false);
        Ok(Self { remote, program, pair: Arc::new(pair), bell, ends, waiting, has_gone })
    }

    /// The far process has an end of a connection. None where the program has none yet.
    fn meet(&mut self, token: Token, theirs: u32) -> Option<()> {
        let (number, end) = self.ends.iter_mut().find(|(_, end)| end.is_named(token))?;
        end.meet(theirs);
        self.program.be_met();
        self.waiting.push(*number);
        Some(())
    }

    /// Takes a message of the far process. Returns the program's end, if that is to do as its far
    /// reader wants.
    fn take(
        &mut self,
        slot: u32,
        message: &Message,
        bytes: &[u8],
    ) -> Result<Option<Weak<dyn Party>>, Malformed> {
        let Self { ends, pair, bell, remote, .. } = self;
        let end = ends.get_mut(&slot).ok_or(Malformed)?;
        end.take_message(message, bytes, Stand { pair, bell, remote: *remote })?;
        // What it has said may call for an answer.
        self.waiting.push(slot);
        Ok(end.follower())
    }

    /// Sends what is due of all connections that were rung for, or had to wait.
    fn serve(&mut self, mail: &mut Mail) {
        if self.has_gone || mail.has_gone(self.remote) {
            return;
        }
        let Self { ends, pair, bell, remote, waiting, .. } = self;
        let mut due = std::mem::take(waiting);
        bell.take_marks(|slot| due.push(slot));
        for number in due {
            let Some(end) = ends.get_mut(&number) else { continue };
            let at = Stand { pair, bell, remote: *remote };
            match end.serve(mail, at) {
                Ok(Posted::Yes) => {}
                Ok(Posted::NotYet) => waiting.push(number),
                // All connections with a process that is not to be trusted, or has gone.
                Ok(Posted::Never) | Err(Malformed) => return self.end(),
            }
            if end.is_over() {
                end.leave(pair);
                ends.remove(&number);
            }
        }
    }

    /// Whether messages wait for room, or the program has closed connections of which the far
    /// process was not told. One that has not met this one wants no bytes by a link.
    fn is_busy(&self) -> bool {
        let is_met = !self.has_gone && self.program.is_met();
        is_met && (!self.waiting.is_empty() || self.bell.is_marked())
    }

    /// Nothing comes from the far process any more, or nothing that is true.
    fn end(&mut self) {
        if std::mem::replace(&mut self.has_gone, true) {
            return;
        }
        self.program.end();
        let Self { ends, pair, .. } = self;
        ends.values_mut().for_each(|end| end.break_off(pair));
    }
}
