//! Any words of a peer about a stream whose bytes go by a ring: what the fuzzer and the tests with
//! random bytes share.
use ayre_proto::socket::{
    From, Incoming, MARKS, Outgoing, RING, Span, Taken, TakenBack, To, Wants, Written,
};

/// Bytes of a script that one step consumes.
pub(crate) const STEP: usize = 24;

/// A script's numbers.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number near one that would be true, or any.
    fn near(&mut self, truth: u64) -> u64 {
        let (choice, small) = (self.byte(), u64::from(self.byte()));
        match choice % 8 {
            0..3 => truth,
            3 => truth.wrapping_add(small),
            4 => truth.wrapping_sub(small),
            5 => truth.wrapping_add(small * RING / 64),
            6 => u64::MAX - small,
            _ => small << (choice >> 3),
        }
    }
}

fn check(span: Span) {
    assert!(span.place < RING && span.len <= RING, "beside the ring: {span:?}");
}

/// Both ends of this side go on by what the peer says, step by step. In any case, they stay in
/// the ring, and never count more than there was.
pub(crate) fn stream(script: &[u8]) {
    let (mut inward, mut out) = (Incoming::default(), Outgoing::default());
    let (mut theirs, mut taken) = (Written::default(), Taken::default());
    for step in script.chunks(STEP) {
        let mut choices = Choices(step);
        let wants = Wants::of_word(choices.near(2) as u32);
        assert_eq!(Wants::of_word(wants.to_word()), wants);
        match choices.byte() % 4 {
            0 | 1 => read(&mut inward, &mut theirs, &mut choices),
            2 => write(&mut out, &mut taken, wants, &mut choices),
            _ => take_back(&mut out, &mut taken, &mut choices),
        }
    }
}

fn read(end: &mut Incoming, theirs: &mut Written, choices: &mut Choices<'_>) {
    let head = end.taken.head;
    theirs.tail = choices.near(theirs.tail.max(head));
    theirs.origin = choices.near(theirs.origin);
    theirs.segment = choices.near(u64::from(theirs.segment)) as u32;
    theirs.marks[usize::from(choices.byte()) % MARKS] = choices.near(head);
    let before = end.taken;
    let Ok(way) = end.way(theirs) else { return };
    assert_eq!(end.taken.head, before.head, "nothing was taken yet");
    let ahead = end.taken.segment.wrapping_sub(before.segment);
    assert!((ahead as usize) < MARKS, "a mark is passed once");
    assert_eq!(end.way(theirs), Ok(way), "the answer is the same without news");
    let most = match way {
        From::Kernel(most) => most,
        From::Ring(span) => {
            check(span);
            span.len
        }
    };
    end.took(most.min(u64::from(choices.byte())));
}

fn write(end: &mut Outgoing, taken: &mut Taken, wants: Wants, choices: &mut Choices<'_>) {
    taken.head = choices.near(taken.head);
    taken.segment = choices.near(u64::from(end.written.segment)) as u32;
    let before = *end;
    let way = end.way(*taken, wants.is_ring());
    assert_eq!(end.written.tail, before.written.tail, "nothing was written yet");
    assert!(end.written.segment.wrapping_sub(before.written.segment) <= 1);
    let room = match way {
        Ok(To::Ring(free)) => {
            check(free);
            assert!(!end.is_left, "the reader has gone");
            free.len
        }
        Ok(To::Kernel) => u64::MAX,
        Ok(To::Wait) | Err(_) => 0,
    };
    end.wrote(room.min(u64::from(choices.byte()) << (choices.byte() % 12)));
}

fn take_back(end: &mut Outgoing, taken: &mut Taken, choices: &mut Choices<'_>) {
    taken.head = choices.near(taken.head);
    taken.segment = choices.near(u64::from(end.written.segment)) as u32;
    match end.take_back(*taken) {
        Ok(TakenBack::Span(span)) => {
            check(span);
            assert!(span.len <= end.written.tail, "no more than was written");
            assert_eq!(end.way(*taken, true), Ok(To::Kernel), "the reader has gone");
            assert!(matches!(
                end.take_back(*taken),
                Ok(TakenBack::Span(Span { len: 0, .. })) | Err(_)
            ));
        }
        // The connection is reset then; the script goes on with a new one.
        Ok(TakenBack::Broken) | Err(_) => *end = Outgoing::default(),
    }
    // Leaving is for good, so that most of a script would say nothing.
    if !choices.byte().is_multiple_of(4) {
        *end = Outgoing { is_left: false, ..*end };
    }
}
