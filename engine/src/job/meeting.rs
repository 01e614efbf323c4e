//! The meeting of ranks at a launcher's board.
//!
//! Each rank publishes a card with its host and the name of its socket there. Ranks of one host
//! then connect by sockets without files, so that a death leaves no files behind. In a job of
//! several hosts, rank 0 draws the job's key and publishes it, sealed for each rank. Each rank then
//! opens its port to the other hosts and publishes its addresses.
use super::addresses::RankAddresses;
use super::board::Board;
use super::choices::Choices;
use super::secret::{Recipient, seal};
use super::{Beginning, Job, Route, wrong};
use crate::error::SetupError;
use crate::machine::host;
use crate::port::Port;
use crate::port::setup::Listener;
use crate::random;
use zeroize::Zeroizing;

/// The first words of every card of this version.
const CARD: &str = "ayre-card-2";
/// Stands for a public key on the cards of plain jobs.
const PLAIN: &str = "plain";
/// Names of the published texts. For a key, the recipient's rank follows.
const CARD_NAME: &str = "ayre-card";
const KEY_NAME: &str = "ayre-key-";
const NET_NAME: &str = "ayre-net";
const NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// The card of a rank, for all others.
#[derive(Clone, PartialEq, Eq)]
struct Card {
    /// See [`host::identity`].
    host: String,
    /// The name of its socket, which has no file.
    socket: String,
    /// See [`host::processors`].
    processors: String,
    host_name: String,
    /// The public key to which the job's key is sealed, or [`PLAIN`].
    protection: String,
}

impl Card {
    fn text(&self) -> String {
        let Self { host, socket, processors, host_name, protection } = self;
        [CARD, host, socket, processors, host_name, protection].join("/")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('/').map(str::to_owned);
        if fields.next()? != CARD {
            return None;
        }
        let mut field = || fields.next();
        let card = Self {
            host: field()?,
            socket: field()?,
            processors: field()?,
            host_name: field()?,
            protection: field()?,
        };
        let is_card = fields.next().is_none() && !card.host.is_empty() && is_name(&card.socket);
        is_card.then_some(card)
    }
}

/// The result of the ranks' meeting.
pub(super) struct Meeting {
    board: Box<dyn Board>,
    listener: Option<Listener>,
    /// This rank as a recipient of the job's key; None in plain jobs.
    recipient: Option<Recipient>,
    cards: Vec<Card>,
    /// The addresses of ranks of other hosts, by rank, once all have published them.
    places: Vec<RankAddresses>,
}

impl std::fmt::Debug for Meeting {
    /// Leaves out the secrets of this process.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { board, listener, .. } = self;
        out.debug_struct("Meeting").field("board", board).field("listener", listener).finish()
    }
}

/// Meets the other ranks. Blocks until all have come.
// spec: LIFE-24, LIFE-25, SEAL-13
pub(super) fn hold(mut board: Box<dyn Board>, choices: Choices) -> Result<Job, SetupError> {
    let (rank, size) = (board.rank(), board.size());
    let socket = format!("ayre-{}", *random::secret::<NAME_BYTES>());
    // Before its name is published, so that a rank that knows it can connect.
    let listener = Listener::at_name(&socket)?;
    let recipient = if choices.plain { None } else { Some(Recipient::new()?) };
    let protection = recipient.as_ref().map_or(PLAIN, Recipient::public).to_owned();
    let (host, processors, host_name) = (host::identity(), host::processors(), host::name());
    let card = Card { host, socket, processors, host_name, protection };
    let texts = board.exchange(CARD_NAME, &card.text())?;
    let cards = parse_each(&texts, Card::parse)?;
    debug_assert_eq!(cards.len(), size, "each rank has a card");
    check_protection(&cards)?;
    let here: Vec<_> = cards.iter().filter(|other| other.host == card.host).collect();
    let processors = host::count_processors(here.iter().map(|card| card.processors.as_str()));
    let count = here.len();
    let (listener, places) = (Some(listener), Vec::new());
    let meeting = Meeting { board, listener, recipient, cards, places };
    let route = Route::Meeting(Box::new(meeting));
    Ok(Job { rank: rank as u16, size, here: count, processors, choices, route })
}

/// Checks that all ranks have the same protection, so that none can be made to do without.
fn check_protection(cards: &[Card]) -> Result<(), SetupError> {
    let is_plain = |card: &Card| card.protection == PLAIN;
    match cards.iter().position(|card| is_plain(card) != is_plain(&cards[0])) {
        None => Ok(()),
        Some(rank) => Err(wrong(format!("AYRE_PROTECTION of rank {rank} is not that of rank 0"))),
    }
}

impl Meeting {
    pub(super) fn listen(&mut self) -> Result<Listener, SetupError> {
        self.listener.take().ok_or_else(|| SetupError::invalid("a rank listens once"))
    }

    /// The job's key, which rank 0 distributes. Blocks until all ranks have come.
    // spec: SEAL-13
    pub(super) fn key(&mut self) -> Result<Zeroizing<String>, SetupError> {
        debug_assert!(self.recipient.is_some(), "a job in plain text has no key");
        let own = self.board.rank();
        if own != 0 {
            self.board.fence()?;
            let sealed = self.board.get(0, &format!("{KEY_NAME}{own}"))?;
            let key = self.recipient.as_ref().and_then(|recipient| recipient.open(&sealed));
            return key.ok_or_else(|| wrong("what rank 0 has put up is no key for this rank"));
        }
        debug_assert_eq!(self.cards.len(), self.board.size(), "each rank has a card");
        let key = random::secret::<KEY_BYTES>();
        for (rank, card) in self.cards.iter().enumerate().skip(1) {
            self.board.put(&format!("{KEY_NAME}{rank}"), &seal(&key, &card.protection)?)?;
        }
        self.board.fence()?;
        Ok(key)
    }

    /// Publishes this rank's addresses, and reads those of all others. Blocks until they have come.
    // spec: LIFE-25, LIFE-36
    pub(super) fn publish(&mut self, own: &RankAddresses) -> Result<(), SetupError> {
        let texts = self.board.exchange(NET_NAME, &own.words().join(","))?;
        self.places = parse_each(&texts, parse_places)?;
        debug_assert_eq!(self.places.len(), self.cards.len(), "each rank is somewhere");
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        self.board.finish();
    }

    /// Whether some ranks do not know their host.
    pub(super) fn has_unknown_hosts(&self) -> bool {
        self.cards.iter().any(|card| card.host.starts_with(host::UNKNOWN_HOST))
    }

    fn is_here(&self, card: &Card) -> bool {
        card.host == self.cards[self.board.rank()].host
    }
}

impl Port {
    pub(super) fn begin_after_meeting(
        &mut self,
        meeting: &Meeting,
        rank: u16,
    ) -> Result<Beginning, SetupError> {
        let (whom, rank) = (Some(rank), usize::from(rank));
        debug_assert!(rank < meeting.board.rank(), "a rank calls those below");
        let card = &meeting.cards[rank];
        // Also where the two do not claim to be on one host: a rank that answers is on this host.
        if let Some(begun) = self.begin_connect_to(&card.socket)? {
            return Ok(Beginning::Here(begun));
        }
        match meeting.places.get(rank) {
            _ if meeting.is_here(card) => Err(SetupError::peer_left()),
            Some(RankAddresses { is_any, at }) if !at.is_empty() => {
                Ok(Beginning::Elsewhere(self.begin_connect_by((at, *is_any), whom)?))
            }
            _ => Err(wrong(format!(
                "rank {rank}, of host `{}`, is not found here, and has no address elsewhere",
                card.host_name
            ))),
        }
    }
}

/// Parses the text of each rank; one that is not valid is an error.
fn parse_each<T>(
    texts: &[String],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, SetupError> {
    let each = texts.iter().enumerate().map(|(rank, text)| {
        let not_of_ours = || wrong(format!("rank {rank} has put up nothing of this version's"));
        parse(text).ok_or_else(not_of_ours)
    });
    each.collect()
}

fn parse_places(text: &str) -> Option<RankAddresses> {
    match text {
        "" => Some(RankAddresses::default()),
        text => RankAddresses::of_words(text.split(',')),
    }
}

fn is_name(text: &str) -> bool {
    text.strip_prefix("ayre-").is_some_and(|digits| {
        digits.len() == 2 * NAME_BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::board::TEXT_CHARS_MAX;
    use super::*;
    use proptest::prelude::*;

    fn card() -> Card {
        Card {
            host: host::identity(),
            socket: format!("ayre-{}", *random::secret::<NAME_BYTES>()),
            processors: host::processors(),
            host_name: host::name(),
            protection: Recipient::new().unwrap().public().to_owned(),
        }
    }

    // spec: LIFE-24
    #[test]
    fn a_rank_card_round_trips_and_fits_every_key_value_store() {
        let mut card = card();
        assert!(Card::parse(&card.text()) == Some(card.clone()));
        card.processors = "0,".repeat(150);
        card.host_name = "h".repeat(64);
        assert!(card.text().len() <= TEXT_CHARS_MAX, "{}", card.text().len());
    }

    #[test]
    fn a_card_of_another_form_is_refused() {
        let text = card().text();
        for (from, to) in [("card-2", "card-1"), ("/ayre-", "/other-"), ("/", "//")] {
            assert!(Card::parse(&text.replacen(from, to, 1)).is_none(), "{from} {to}");
        }
        assert!(Card::parse(&format!("{text}/more")).is_none());
        assert!(Card::parse(text.rsplit_once('/').unwrap().0).is_none());
        for text in [",", "any", "any,", "127.0.0.1:1,", "127.0.0.1:0"] {
            assert_eq!(parse_places(text), None, "{text:?}");
        }
    }

    // spec: SEAL-13
    #[test]
    fn one_that_wants_no_protection_where_others_do_is_named() {
        let sealed = card();
        let plain = Card { protection: PLAIN.to_owned(), ..card() };
        let other = card();
        assert!(check_protection(&[sealed.clone(), other.clone()]).is_ok());
        assert!(check_protection(&[plain.clone(), plain.clone()]).is_ok());
        for cards in [[sealed, other.clone(), plain.clone()], [plain.clone(), plain, other]] {
            let error = check_protection(&cards).unwrap_err().to_string();
            assert!(error.contains("rank 2"), "{error}");
        }
    }

    const NEARLY_CARDS: &str = "(ayre-card-1)?(any)?[a-z0-9/.:,\\-\\[\\]é]{0,80}";

    proptest! {
        #[test]
        fn any_text_is_a_card_or_is_refused(text in NEARLY_CARDS) {
            let _ = (Card::parse(&text), parse_places(&text));
        }
    }
}
