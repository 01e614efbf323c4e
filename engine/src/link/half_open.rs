//! The acceptor of a port: its half-open links, and the means to check their openers.
use super::handshake::{OpenReader, Protection};
use super::opening::{self, Answered, Refused, Unopened};
use crate::log::tell;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use ayre_proto::link::half_open::{HALF_OPEN_MAX, HalfOpenTable, Place};
use ayre_proto::link::open::SetUp;
use ayre_proto::link::token_bucket::{TokenBucket, TokenBuckets};
use foldhash::quality::FixedState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

/// A cookie is good for this number of nanoseconds, and for as many again.
// spec: OPEN-21
const EPOCH: u64 = 8_000_000_000;
const _: () = assert!(EPOCH > HalfOpenTable::TIMEOUT, "a cookie outlasts a half-open link");

/// Half-open links, with the limits and the secret by which a port answers openers.
#[derive(Debug)]
pub(crate) struct Acceptor {
    pub(crate) table: HalfOpenTable,
    /// By place.
    answers: Vec<Option<Answered>>,
    open_reader: Option<OpenReader>,
    /// Makes cookies.
    secret: hmac::Key,
    groups: FixedState,
    pub(crate) reset_limit: TokenBucket,
    /// Limits of the answers to addresses of which nothing is known.
    answer_limits: TokenBuckets,
    /// The limit of what the log is told.
    log_limit: TokenBucket,
    /// The ports that may not open a link now; none may where this is none.
    pub(crate) taken: Option<Vec<u16>>,
    /// Those whose link has ended, as far as the port may not have forgotten them.
    pub(crate) gone: Vec<u16>,
    /// The last caller that could not be let in since the port accepts, and the reason.
    pub(crate) turned_away: Option<(SocketAddr, Unopened)>,
}

impl Acceptor {
    pub(crate) fn new(protection: &Protection, seed: u64, now: u64) -> Self {
        Self {
            table: HalfOpenTable::rack(now),
            answers: (0..HALF_OPEN_MAX).map(|_| None).collect(),
            open_reader: match protection {
                Protection::Sealed(terms) => Some(OpenReader::new(terms)),
                Protection::Plain => None,
            },
            secret: hmac::Key::new(HMAC_SHA256, &crate::random::bytes::<32>()),
            groups: FixedState::with_seed(seed),
            reset_limit: TokenBucket::rack(now),
            answer_limits: TokenBuckets::rack(now),
            log_limit: TokenBucket::new(4, 1_000_000_000, now),
            taken: None,
            gone: Vec::new(),
            turned_away: None,
        }
    }

    /// Ports of these numbers may not open a link from here on; none may where there is no list.
    pub(crate) fn accept_all_but(&mut self, taken: Option<Vec<u16>>) {
        if let Some(taken) = &taken {
            self.gone.retain(|number| taken.contains(number));
            self.turned_away = None;
        }
        self.taken = taken;
    }

    /// The link with this port has ended.
    pub(crate) fn on_link_ended(&mut self, number: u16) {
        if !self.gone.contains(&number) {
            self.gone.push(number);
        }
        debug_assert!(self.gone.len() <= 1 << 16, "each number is there once");
    }

    /// Somebody cannot be let in unless one of the two sides is configured otherwise: the log says
    /// so now and then, and who accepts is told in the end.
    // spec: OPEN-27
    pub(crate) fn turn_away(&mut self, at: SocketAddr, why: Unopened, now: u64) {
        if self.log_limit.take(now)
            && let Some(error) = why.rejection(at)
        {
            tell!(WARN, "{error}");
        }
        self.turned_away = Some((at, why));
    }

    /// The half-open link of an open that has come before, to the bit.
    // spec: OPEN-8
    pub(crate) fn known(&self, open: &[u8]) -> Option<Place> {
        let place = self.table.with_mark(mark(open))?;
        let answered = self.answers[place.index()].as_ref()?;
        (answered.open == open).then_some(place)
    }

    /// Whether its accept goes again, to this address: at a pace to where it went first, and within
    /// the bounds of answers to anywhere else.
    // spec: OPEN-8, OPEN-22
    pub(crate) fn repeats(&mut self, place: Place, to: SocketAddr, now: u64) -> bool {
        match &self.answers[place.index()] {
            Some(answered) if answered.from == to => self.table.repeat(place, now),
            Some(_) => self.may_answer(to, now),
            None => false,
        }
    }

    /// The set-up of an open, if it comes from a holder of the key, where there is one. An endpoint
    /// has the name that is made of its key.
    // spec: SEAL-9, SEAL-18
    pub(crate) fn read(&self, open: &[u8]) -> Result<SetUp, Refused> {
        let Some(reader) = &self.open_reader else { return Ok(SetUp::parse(open)?) };
        let said = reader.read(open)?;
        let set_up = SetUp::parse(&said.set_up)?;
        let named = opening::introduction(&set_up).map(|caller| caller.name);
        match said.by.is_none_or(|by| named == Some(by.name())) {
            true => Ok(set_up),
            false => Err(Refused),
        }
    }

    /// Whether an address of which nothing is known may be answered.
    // spec: OPEN-22
    pub(crate) fn may_answer(&mut self, to: SocketAddr, now: u64) -> bool {
        self.answer_limits.take(self.groups.hash_one(host_of(to)), now)
    }

    /// The cookie that an open from this address is to repeat.
    // spec: OPEN-21
    pub(crate) fn cookie(&self, from: SocketAddr, now: u64) -> u64 {
        let cookie = self.cookie_of(from, now / EPOCH);
        debug_assert!(self.is_proved(cookie, from, now), "what is given is good");
        cookie
    }

    /// Whether an open from this address repeats what this port has given to it just now.
    // spec: OPEN-21
    pub(crate) fn is_proved(&self, cookie: u64, from: SocketAddr, now: u64) -> bool {
        let epoch = now / EPOCH;
        let good = [epoch, epoch.saturating_sub(1)];
        cookie != 0 && good.iter().any(|epoch| self.cookie_of(from, *epoch) == cookie)
    }

    fn cookie_of(&self, from: SocketAddr, epoch: u64) -> u64 {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(&epoch.to_le_bytes());
        context.update(&ip.octets());
        context.update(&from.port().to_le_bytes());
        let tag = context.sign();
        let (words, _) = tag.as_ref().as_chunks();
        u64::from_le_bytes(words[0]).max(1)
    }

    pub(crate) fn keep(&mut self, place: Place, answered: Answered) {
        debug_assert!(self.table.get(place).is_some(), "an accept is of a half-open link");
        self.answers[place.index()] = Some(answered);
    }

    pub(crate) fn answered(&mut self, place: Place) -> Option<&mut Answered> {
        self.answers[place.index()].as_mut()
    }

    pub(crate) fn take(&mut self, place: Place) -> Option<Answered> {
        self.answers[place.index()].take()
    }
}

/// One number for all addresses that a host may have.
// spec: OPEN-9, OPEN-22
pub(crate) fn host_of(address: SocketAddr) -> u64 {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        // It may have all addresses of a network.
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

/// By which an open is known again: the first bytes of its key on the curve, or its nonce.
// spec: OPEN-21
pub(crate) fn mark(open: &[u8]) -> u64 {
    open.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::link::callee::Callee;
    use crate::link::handshake::Opening;
    use crate::link::identity::StaticKey;
    use crate::link::opening::{Introduction, sample};
    use crate::net::chance::Chance;

    /// An open in a name, of who brings these terms.
    fn open_in(name: crate::peer::agreement::Name, own: &Protection, callee: &Callee) -> Vec<u8> {
        let introduction = Introduction { name, pass: callee.pass };
        let open = sample(1 << 18, introduction);
        let Protection::Sealed(terms) = callee.protection_for(own) else { panic!("sealed") };
        Opening::begin(&terms, &open.encode()).1
    }

    // spec: SEAL-18
    #[test]
    fn an_open_in_the_name_of_another_endpoint_is_refused() {
        let [called, caller, other] = [(); 3].map(|()| StaticKey::new(&Chance::System));
        let (own_name, other_name) = (caller.fingerprint().name(), other.fingerprint().name());
        let callee = Callee::new(called.fingerprint(), None, false);
        let called = Callee::own(called, None, false);
        let caller = Callee::own(caller, None, false);
        let acceptor = Acceptor::new(&called.protection, 1, 0);
        let open = open_in(own_name, &caller.protection, &callee);
        assert!(acceptor.read(&open).is_ok());
        for name in [other_name, called.name, [0, 0]] {
            let open = open_in(name, &caller.protection, &callee);
            assert!(acceptor.read(&open).is_err(), "{name:?}");
        }
    }
}
