//! Connections between hosts: the proxy, which stands in for the end on the other host.
//!
//! On each host the program's end works on the memory of a pair, as if its peer were a process of
//! this host. The proxy has the other side of that memory. It tells the proxy of the other host, in
//! messages that arrive in order, what the program's words say, and the bytes of its ring. Bytes of
//! the kernel's segments go by TCP; here they only count.
//!
//! ```text
//!   program  --words, ring-->  proxy  ==messages==>  proxy  --words, ring-->  program
//!            <-------------           <============          <-------------
//! ```
//!
//! Bytes lie at the same places in the rings of both hosts. A writer has them in its own ring until
//! the far reader has taken them. So its room is that of the far ring, and it can take back all
//! that the far reader leaves.
//!
//! TCP and messages overtake each other. Bytes of a ring that come first wait for their mark. Bytes
//! of the kernel that come first would be read in the place of those of the ring before them. So a
//! writer leaves the ring only when the far proxy knows where that segment began: [`way_out`].
use super::{MARKS, Outgoing, RING, SMALL, Span, Taken, To, Wants, Written, is_ring};
use crate::lane::Malformed;

mod message;

pub use self::message::{BYTES_MOST, Envelope, HEAD_WORDS, Letter, Message, Token};

/// A reader tells how far it has come when it is this far behind.
const LAG_MOST: u64 = RING / 8;

/// As what a reader wants bytes, as far as the other host has to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// By the kernel.
    #[default]
    Kernel,
    /// By the ring, whether the reader is awake or sleeps.
    Ring,
    /// Never by the ring again.
    Gone,
}

impl Way {
    const fn of(wants: Wants) -> Self {
        match wants {
            Wants::Gone | Wants::Claimed => Self::Gone,
            wants if wants.is_ring() => Self::Ring,
            _ => Self::Kernel,
        }
    }
}

/// How far one host has come with the bytes of the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How far its program has read.
    pub taken: Taken,
    /// The last segment whose beginning its proxy has told the program.
    pub known: u32,
}

/// The words of the program's end, which its proxy reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// How far it has written.
    pub written: Written,
    /// How far it has read.
    pub taken: Taken,
    /// How its reader wants bytes.
    pub wants: Wants,
    /// It writes nothing any more.
    pub is_ended: bool,
    /// It uses the connection no longer.
    pub has_left: bool,
}

/// Bytes that the program has written to the ring of a segment. None: the segment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The segment.
    pub segment: u32,
    /// The position of the first byte.
    pub at: u64,
    /// The position that lies at the ring's first byte.
    pub origin: u64,
    /// The number of bytes, at most [`BYTES_MOST`].
    pub len: u64,
}

impl Piece {
    /// The place of the bytes in the rings of both hosts.
    pub const fn span(&self) -> Span {
        Span::at(self.at, self.origin, self.len)
    }
}

/// The program is to be told of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The far writer has come further. The message's bytes belong into the ring first.
    Written {
        /// The bytes of the message.
        span: Span,
        /// The words that the program was told last; at most one segment earlier.
        before: Written,
        /// Those to tell it.
        after: Written,
    },
    /// The far reader wants bytes in this way.
    Wants(Way),
    /// The far writer writes nothing any more.
    Ended,
    /// Only the progress has changed.
    None,
}

/// A wish of a reader, numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wish {
    number: u32,
    way: Way,
}

/// The proxy of one connection, on one of its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    /// How far the program's writing was told to the far proxy.
    departed: Taken,
    /// How far far writing was told to the program.
    arrived: Written,
    /// How far the program has read far bytes, as the far proxy was told.
    told: Progress,
    /// How far the far reader has come.
    far: Progress,
    /// The wish of the program's reader, as the far proxy was told.
    wish: Wish,
    /// The last wish of ours that the far writer keeps to.
    heard: u32,
    /// The wish of the far reader, and the number of the last one that was answered.
    far_wish: Wish,
    answered: u32,
    is_end_told: bool,
    is_leave_told: bool,
    has_far_left: bool,
}

impl Proxy {
    /// The next message that is due, by the program's words. They must have been read after the
    /// program was told of all messages that came.
    ///
    /// # Errors
    /// [`Malformed`] where the words cannot be true.
    // spec: SOCK-62, SOCK-64
    pub fn due(&self, words: &Words) -> Result<Option<Message>, Malformed> {
        if self.is_leave_told {
            return Ok(None);
        }
        let progress = Progress { taken: words.taken, known: self.arrived.segment };
        // A reader that has gone gets the rest by the kernel.
        if self.far_wish.way != Way::Gone
            && let Some(piece) = self.next_piece(&words.written)?
        {
            return Ok(Some(Message::Write { piece, progress }));
        }
        let way = Way::of(words.wants);
        Ok(if self.owes_answer(&words.written) {
            Some(Message::Heard { number: self.far_wish.number })
        } else if way != self.wish.way && self.wish.way != Way::Gone {
            Some(Message::Wish { number: self.wish.number.wrapping_add(1), way, progress })
        } else if self.is_progress_due(&progress) {
            Some(Message::Progress(progress))
        } else if words.is_ended && !self.is_end_told {
            Some(Message::End)
        } else if words.has_left {
            Some(Message::Leave)
        } else {
            None
        })
    }

    /// The program's next bytes of a ring's segment, or the beginning of a segment.
    fn next_piece(&self, written: &Written) -> Result<Option<Piece>, Malformed> {
        let Taken { head, segment } = self.departed;
        let ahead = written.segment.wrapping_sub(segment);
        if ahead as usize >= MARKS {
            return Err(Malformed);
        }
        // Words that are older than others: more is there than they tell.
        let end_of = |segment: u32| match segment == written.segment {
            true => written.tail,
            false => written.marks[segment as usize % MARKS],
        };
        let piece = |segment, at: u64| {
            let end = if is_ring(segment) { end_of(segment).min(written.tail) } else { at };
            let len = end.saturating_sub(at).min(BYTES_MOST);
            Piece { segment, at, origin: written.origin, len }
        };
        let here = piece(segment, head);
        if here.len > 0 {
            return Ok(Some(here));
        }
        if ahead == 0 {
            return Ok(None);
        }
        let mark = end_of(segment);
        let is_true = mark >= head && (mark == head || !is_ring(segment));
        if is_true { Ok(Some(piece(segment.wrapping_add(1), mark))) } else { Err(Malformed) }
    }

    /// Whether a wish for the kernel is kept to, and was not answered: what the program writes to
    /// the ring later begins behind another wish.
    fn owes_answer(&self, written: &Written) -> bool {
        let Wish { number, way } = self.far_wish;
        let is_kept = !is_ring(written.segment) && written.segment == self.departed.segment;
        number != self.answered && way == Way::Kernel && is_kept
    }

    /// Whether the far writer may wait for what was not told yet.
    fn is_progress_due(&self, now: &Progress) -> bool {
        let Taken { head, segment } = now.taken;
        let lag = head.saturating_sub(self.told.taken.head);
        let Written { tail, origin, segment: last, .. } = self.arrived;
        // It may leave a ring only then, and counts the ring as delivered only then.
        let is_kept = self.wish.way == Way::Kernel && self.heard == self.wish.number;
        let is_news = self.told.known != last && (is_ring(last) || is_kept);
        // One that keeps to a small ring waits until that is empty.
        let is_empty = is_ring(last) && head == tail;
        let is_small_full = is_empty && lag > 0 && tail.wrapping_sub(origin) >= SMALL;
        // It has no room for another mark.
        let told = self.told.taken.segment;
        let is_passed = segment != told && last.wrapping_sub(told) as usize + 1 >= MARKS;
        // Bytes by the kernel count, too, once it begins a ring.
        let may_be_ring = is_ring(last) || segment != last || self.wish.way == Way::Ring;
        is_news || is_small_full || is_passed || (may_be_ring && lag >= LAG_MOST)
    }

    /// Counts a message that was sent, as [`Self::due`] has told it.
    pub fn sent(&mut self, message: &Message) {
        debug_assert!(!self.is_leave_told, "nothing follows a leave");
        match *message {
            Message::Write { piece, progress } => {
                let step = piece.segment.wrapping_sub(self.departed.segment);
                debug_assert!(step <= 1, "each segment is told");
                debug_assert!(piece.at >= self.departed.head, "a stream goes forwards");
                self.departed = Taken { head: piece.at + piece.len, segment: piece.segment };
                self.told = progress;
            }
            Message::Heard { number } => {
                debug_assert_eq!(number, self.far_wish.number, "the last wish is answered");
                self.answered = number;
            }
            Message::Wish { number, way, progress } => {
                debug_assert_ne!(self.wish.way, Way::Gone, "that is the last wish");
                self.wish = Wish { number, way };
                self.told = progress;
            }
            Message::Progress(progress) => self.told = progress,
            Message::End => self.is_end_told = true,
            Message::Leave => self.is_leave_told = true,
        }
    }

    /// Takes a message of the far proxy. The far reader's progress is [`Self::far_progress`] then.
    ///
    /// # Errors
    /// [`Malformed`] where it cannot be true, without effect.
    // spec: SOCK-61, SOCK-66
    pub fn on(&mut self, message: &Message, words: &Words) -> Result<Change, Malformed> {
        if self.has_far_left {
            return Err(Malformed);
        }
        match *message {
            Message::Write { piece, progress } => {
                self.check_progress(&progress)?;
                let before = self.arrived;
                let after = self.after(&piece, words)?;
                debug_assert!(after.tail >= before.tail, "a stream goes forwards");
                (self.far, self.arrived) = (progress, after);
                // A reader that has gone gets the bytes by the kernel.
                let len = if words.wants.is_gone() { 0 } else { piece.len };
                return Ok(Change::Written { span: Span { len, ..piece.span() }, before, after });
            }
            Message::Heard { number } => {
                if number != self.wish.number && number.wrapping_sub(self.wish.number) < 1 << 31 {
                    return Err(Malformed);
                }
                self.heard = number;
            }
            Message::Wish { number, way, progress } => {
                self.check_progress(&progress)?;
                let is_next = number == self.far_wish.number.wrapping_add(1);
                if !is_next || self.far_wish.way == Way::Gone {
                    return Err(Malformed);
                }
                (self.far, self.far_wish) = (progress, Wish { number, way });
                return Ok(Change::Wants(way));
            }
            Message::Progress(progress) => {
                self.check_progress(&progress)?;
                self.far = progress;
            }
            Message::End => return Ok(Change::Ended),
            Message::Leave => self.has_far_left = true,
        }
        Ok(Change::None)
    }

    /// The words of the far writer behind a piece.
    fn after(&self, piece: &Piece, words: &Words) -> Result<Written, Malformed> {
        let before = self.arrived;
        let mut after = before;
        let Piece { segment, at, origin, len } = *piece;
        let step = segment.wrapping_sub(before.segment);
        let is_behind = segment.wrapping_sub(words.taken.segment) as usize >= MARKS;
        // A ring's segment ends where its bytes end; one of the kernel's ends anywhere behind.
        let is_next = match is_ring(before.segment) {
            true => at == before.tail,
            false => step == 1 && at >= before.tail && at >= words.taken.head,
        };
        if step > 1 || is_behind || !is_next || (len > 0 && !is_ring(segment)) {
            return Err(Malformed);
        }
        if step == 1 {
            after.marks[before.segment as usize % MARKS] = at;
            after.segment = segment;
        }
        if origin != before.origin && len > 0 {
            // Only an empty ring begins anew.
            if at != words.taken.head || origin != at {
                return Err(Malformed);
            }
            after.origin = origin;
        }
        after.tail = at.checked_add(len).ok_or(Malformed)?;
        let has_room = len == 0 || after.tail.wrapping_sub(words.taken.head) <= RING;
        if has_room && len <= BYTES_MOST { Ok(after) } else { Err(Malformed) }
    }

    /// Whether the far reader can have come so far.
    fn check_progress(&self, progress: &Progress) -> Result<(), Malformed> {
        let ahead = |newer: u32, older: u32| newer.wrapping_sub(older) < 1 << 31;
        let is_later = ahead(progress.known, self.far.known)
            && ahead(progress.taken.segment, self.far.taken.segment)
            && progress.taken.head >= self.far.taken.head;
        let is_told = ahead(self.departed.segment, progress.known)
            && ahead(progress.known, progress.taken.segment);
        if is_later && is_told { Ok(()) } else { Err(Malformed) }
    }

    /// How far the far reader has come: what the program's writer is told.
    pub const fn far_progress(&self) -> Progress {
        self.far
    }

    /// How far the far reader has come for good, where the link has died behind these words of the
    /// program's writer: it takes back all else. None: bytes of a ring are lost, or would come
    /// twice.
    // spec: SOCK-70
    pub fn last_progress(&self, written: &Written) -> Option<Progress> {
        let Progress { taken, known } = self.far;
        let Written { segment, ref marks, .. } = *written;
        if self.far_wish.way == Way::Gone {
            return Some(self.far);
        }
        if is_ring(segment) || (taken.segment != segment && known != segment) {
            return None;
        }
        if taken.segment == segment {
            return Some(self.far);
        }
        // All of the rings before that segment has come to the far host.
        let head = marks[segment.wrapping_sub(1) as usize % MARKS];
        Some(Progress { taken: Taken { head, segment }, known })
    }

    /// The wish of the far reader.
    pub const fn far_way(&self) -> Way {
        self.far_wish.way
    }

    /// How far far writing was told to the program.
    pub const fn arrived(&self) -> Written {
        self.arrived
    }

    /// Whether no byte comes by the ring any more, unless the program's reader wants it again.
    // spec: SOCK-65
    pub fn is_settled(&self, wants: Wants) -> bool {
        let is_told = self.wish.way == Way::of(wants) && self.wish.way == Way::Kernel;
        is_told && self.heard == self.wish.number && !is_ring(self.arrived.segment)
    }

    /// Whether the far program uses the connection no longer.
    pub const fn has_far_left(&self) -> bool {
        self.has_far_left
    }

    /// Whether neither host uses the connection any more.
    pub const fn is_over(&self) -> bool {
        self.is_leave_told && self.has_far_left
    }
}

/// The way of the next bytes of a writer whose reader is on another host. It is as that of
/// [`Outgoing::way`], but leaves a ring only when the far proxy knows where that segment began.
///
/// # Errors
/// As [`Outgoing::way`].
// spec: SOCK-63
pub fn way_out(out: &mut Outgoing, progress: &Progress, by_ring: bool) -> Result<To, Malformed> {
    let segment = out.written.segment;
    let is_unknown = is_ring(segment) && progress.known != segment;
    if is_unknown && !by_ring && !out.is_left {
        return Ok(To::Wait);
    }
    out.way(progress.taken, by_ring)
}

#[cfg(test)]
mod tests;
