//! The other end of each operation: who receives which message.
use super::{Access, Kind, Message, Name, Operation, Rank, RecordingError};
use std::collections::{HashMap, VecDeque};

/// Messages that match the same receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Channel {
    source: u32,
    target: u32,
    is_tagged: bool,
    tag: u64,
}

/// Joins the operations of all ranks to messages.
///
/// libfabric matches the messages of a channel in the order in which they were sent, with receives
/// in the order in which they were posted. So the first message belongs to the first receive.
pub(super) fn join(ranks: &mut [Rank]) -> Result<(), RecordingError> {
    let names = names(ranks)?;
    let mut numbers = Numbers::default();
    let mut sent: HashMap<Channel, VecDeque<u32>> = HashMap::new();
    visit(ranks, &names, |_, rank, number, it, peer| {
        if let Kind::Send { tagged } = it.kind {
            let channel = Channel { source: rank, target: peer, is_tagged: tagged, tag: it.tag };
            sent.entry(channel).or_default().push_back(number);
        }
    })?;
    visit(ranks, &names, |ranks, rank, number, it, peer| match it.kind {
        Kind::Receive { tagged } => {
            let channel = Channel { source: peer, target: rank, is_tagged: tagged, tag: it.tag };
            let Some(other) = sent.get_mut(&channel).and_then(VecDeque::pop_front) else { return };
            let message = Message { peer, number: numbers.next(peer, rank), answer: 0 };
            let other = &mut ranks[peer as usize].operations[other as usize];
            other.message = Some(Message { peer: rank, ..message });
            let bytes = other.bytes;
            let it = &mut ranks[rank as usize].operations[number as usize];
            (it.message, it.bytes) = (Some(message), bytes);
        }
        Kind::Write | Kind::Read => {
            let is_read = it.kind == Kind::Read;
            let answer = if is_read { numbers.next(peer, rank) } else { 0 };
            let message = Message { peer, number: numbers.next(rank, peer), answer };
            ranks[rank as usize].operations[number as usize].message = Some(message);
            let message = Message { peer: rank, ..message };
            let access = Access { message, bytes: it.bytes, is_read };
            ranks[peer as usize].accesses.push(access);
        }
        Kind::Send { .. } | Kind::Many => {}
    })
}

/// The ranks of all endpoints.
fn names(ranks: &[Rank]) -> Result<HashMap<Name, u32>, RecordingError> {
    let mut names = HashMap::new();
    for (number, rank) in (0..).zip(ranks) {
        for name in &rank.endpoints {
            if let Some(other) = names.insert(*name, number) {
                let (file, other) = (rank.file.clone(), ranks[other as usize].file.clone());
                return Err(RecordingError::Twice { file, other });
            }
        }
    }
    Ok(names)
}

/// Calls `visit` for each operation with a known peer: in the order of the ranks, and of each rank
/// in the order in which they were posted.
fn visit(
    ranks: &mut [Rank],
    names: &HashMap<Name, u32>,
    mut visit: impl FnMut(&mut [Rank], u32, u32, Operation, u32),
) -> Result<(), RecordingError> {
    for rank in 0..ranks.len() {
        for place in 0..ranks[rank].order.len() {
            let number = ranks[rank].order[place];
            let operation = ranks[rank].operations[number as usize];
            let Some(name) = operation.peer else { continue };
            let Some(peer) = names.get(&name) else {
                let (file, line) = (ranks[rank].file.clone(), operation.line);
                return Err(RecordingError::NoRank { file, line });
            };
            visit(ranks, rank as u32, number, operation, *peer);
        }
    }
    Ok(())
}

/// How many messages there are from each rank to each other one.
#[derive(Default)]
struct Numbers(HashMap<(u32, u32), u32>);

impl Numbers {
    fn next(&mut self, source: u32, target: u32) -> u32 {
        let next = self.0.entry((source, target)).or_default();
        *next += 1;
        *next - 1
    }
}
