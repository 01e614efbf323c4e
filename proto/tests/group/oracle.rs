//! The agreement of members: checked at every delivery, and when nothing is under way any more.
use ayre_proto::group::{Label, Member, Standing, View};
use std::collections::BTreeMap;

/// The entry that a member has seen at one ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Message { sender: Member, number: u64, origin: Member, payload: u64 },
    View { number: u64, members: Vec<Member> },
}

/// The deliveries that one member has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The ticket of the first entry.
    pub(crate) first: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) members: Vec<Member>,
    ordered: BTreeMap<Member, u64>,
    /// It was in a view as one that leaves: that was its last entry.
    pub(crate) leaves: bool,
    /// It was told that it is no member, or will be none.
    pub(crate) left: bool,
}

impl Seen {
    pub(crate) fn founder(me: Member) -> Self {
        Self { first: 1, members: vec![me], ..Self::default() }
    }

    pub(crate) fn at(&self, ticket: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(ticket.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(crate) fn message(&mut self, label: Label, payload: u64) -> Entry {
        let Label { ticket, number, sender, origin } = label;
        assert!(!self.leaves && !self.left, "it has left");
        assert!(self.first > 0, "it is no member yet");
        assert_eq!(ticket, self.next(), "tickets have no gaps");
        assert!(self.members.contains(&sender), "{sender:?} is no member");
        let last = self.ordered.entry(sender).or_default();
        assert_eq!(number, *last + 1, "{sender:?}'s messages come in their order, each once");
        *last = number;
        let entry = Entry::Message { sender, number, origin, payload };
        self.entries.push(entry.clone());
        entry
    }

    pub(crate) fn view(&mut self, me: Member, ticket: u64, view: &View) -> Entry {
        assert!(!self.leaves && !self.left, "it has left");
        let mine = view.seats().iter().find(|seat| seat.member == me).expect("it has a seat");
        if self.first == 0 {
            assert_eq!(mine.standing, Standing::Joins, "its first view adds it");
            self.first = ticket;
        } else {
            assert_ne!(mine.standing, Standing::Joins, "it is in already");
            assert_eq!(ticket, self.next(), "tickets have no gaps");
            for seat in view.seats() {
                let is_old = self.members.contains(&seat.member);
                assert_eq!(is_old, seat.standing != Standing::Joins);
            }
        }
        for seat in view.seats() {
            let last = self.ordered.entry(seat.member).or_default();
            assert!(*last <= seat.ordered, "nothing that was ordered is forgotten");
            *last = seat.ordered;
        }
        self.leaves = mine.standing == Standing::Leaves;
        self.members = view.members().collect();
        let entry = Entry::View { number: view.number(), members: self.members.clone() };
        self.entries.push(entry.clone());
        entry
    }
}
