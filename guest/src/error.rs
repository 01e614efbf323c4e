//! Errors in words for the log: each once, and a call without an answer after a while.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most texts that are remembered as told; all further ones count as new.
const TOLD_MAX: usize = 4096;

static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a text is to be told: not a second time in this process.
pub fn is_new(text: &str) -> bool {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.contains(text) {
        return false;
    }
    if told.len() < TOLD_MAX {
        told.insert(text.to_owned());
    }
    true
}

/// After this time a call without an answer is told of. Programs that have been told to try again
/// until then would go on in silence.
const TOLD_AFTER: Duration = Duration::from_secs(5);

/// A call that was not looked at for longer has been answered, or given up.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Since when calls have no answer, by the library's numbers of the peers.
#[derive(Debug, Default)]
pub struct Unanswered(HashMap<u64, Asked>);

#[derive(Debug)]
struct Asked {
    since: Instant,
    seen: Instant,
    is_told: bool,
}

impl Unanswered {
    /// A program has been told once more that a peer has not answered yet. The words about that,
    /// if it is time for them; `whom` has those for the peer, and for the addresses that were
    /// tried. `progress` is how the peer's program makes progress.
    #[cold]
    pub fn look(
        &mut self,
        number: u64,
        whom: impl FnOnce() -> (String, String),
        progress: &str,
    ) -> Option<String> {
        self.is_due(number, Instant::now()).then(|| {
            let ((whom, tried), seconds) = (whom(), TOLD_AFTER.as_secs());
            let at = if tried.is_empty() { "" } else { " at " };
            format!(
                "{whom}: no answer within {seconds} s{at}{tried}, and the call goes on; its \
                 process answers when it makes progress ({progress}), and between hosts firewalls \
                 must let UDP through"
            )
        })
    }

    fn is_due(&mut self, number: u64, now: Instant) -> bool {
        let new = || Asked { since: now, seen: now, is_told: false };
        let asked = self.0.entry(number).or_insert_with(new);
        if now - asked.seen > PAUSE_MAX {
            *asked = new();
        }
        asked.seen = now;
        now - asked.since >= TOLD_AFTER && !std::mem::replace(&mut asked.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_new_once() {
        assert!(is_new("the peer at 10.0.0.1:7000: it has left"));
        assert!(!is_new("the peer at 10.0.0.1:7000: it has left"));
        assert!(is_new("the peer at 10.0.0.2:7000: it has left"));
    }

    #[test]
    fn silence_is_told_once_while_the_program_goes_on_asking() {
        let (mut unanswered, began) = (Unanswered::default(), Instant::now());
        let at = |tenths| began + Duration::from_millis(100) * tenths;
        let due = |unanswered: &mut Unanswered, range: std::ops::Range<u32>| {
            range.filter(|tenths| unanswered.is_due(7, at(*tenths))).collect::<Vec<_>>()
        };
        assert_eq!(due(&mut unanswered, 0..100), [50]);
        // A pause: this is another call.
        assert_eq!(due(&mut unanswered, 120..200), [170]);
    }
}
