//! How the two ends of a stream tell each other their positions, and wake each other. One end
//! publishes, and then looks whether the other one sleeps. The other one says that it sleeps, and
//! then looks at the positions. `model_doorbell.rs` runs this code through all interleavings.
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use ayre_proto::socket::Wants;

/// Tells how far this end has come.
#[inline]
pub(crate) fn tell(position: &AtomicU64, value: u64) {
    // SOCK-R1, SOCK-R2: the bytes before it were copied in, or out.
    position.store(value, Ordering::Release);
}

/// How far the other end says that it has come.
#[inline]
pub(crate) fn told(position: &AtomicU64) -> u64 {
    // SOCK-A1, SOCK-A2: the bytes before it are there, or were copied out.
    position.load(Ordering::Acquire)
}

/// A word by which an end says whether it is to be woken. Once it has gone, it says nothing else,
/// unless it comes back before the other end has claimed what it has left.
pub(crate) struct Doorbell<'a>(&'a AtomicU32);

impl<'a> Doorbell<'a> {
    pub(crate) fn over(word: &'a AtomicU32) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) fn get(&self) -> Wants {
        // SOCK-A6: all that the end did before it has gone.
        Wants::of_word(self.0.load(Ordering::Acquire))
    }

    /// Says it, unless this end has gone; then orders what is looked at next behind that.
    pub(crate) fn set(&self, wants: Wants) {
        let word = wants.to_word();
        // Relaxed: the exchange decides.
        let mut last = self.0.load(Ordering::Relaxed);
        while !Wants::of_word(last).is_gone() {
            // SOCK-R6: this end's positions.
            match self.0.compare_exchange(last, word, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(found) => last = found,
            }
        }
        // FENCE-A1: the other end publishes and then looks at this word, behind a fence of its own.
        fence(Ordering::SeqCst);
    }

    /// This end, which has gone, wants bytes by the kernel again. False where the other end has
    /// claimed what it has left. Orders what is looked at next behind that.
    pub(crate) fn come_back(&self) -> bool {
        let (gone, kernel) = (Wants::Gone.to_word(), Wants::Kernel.to_word());
        // SOCK-R6: this end's positions. Relaxed: a claimed word tells nothing else.
        let result = self.0.compare_exchange(gone, kernel, Ordering::Release, Ordering::Relaxed);
        // FENCE-A1: the other end publishes and then looks at this word, behind a fence of its own.
        fence(Ordering::SeqCst);
        result.is_ok()
    }

    /// Claims what the other end, which has gone, has left. False where it has come back.
    pub(crate) fn claim(&self) -> bool {
        let (gone, claimed) = (Wants::Gone.to_word(), Wants::Claimed.to_word());
        // SOCK-A6: all that the end did before it has gone.
        match self.0.compare_exchange(gone, claimed, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => true,
            Err(found) => found == claimed,
        }
    }

    /// The wish of the other end, after all that was published before.
    #[inline]
    pub(crate) fn look(&self) -> Wants {
        // FENCE-R1: pairs with the fence of set().
        fence(Ordering::SeqCst);
        self.get()
    }

    /// Has a bell ring once: changes [`Wants::Bell`] to [`Wants::Looking`], and
    /// [`Wants::KernelBell`] to [`Wants::Kernel`]. False where the word has changed since.
    pub(crate) fn take(&self, from: Wants) -> bool {
        let to = if from.is_ring() { Wants::Looking } else { Wants::Kernel };
        let (from, to) = (from.to_word(), to.to_word());
        // Relaxed: it only decides which thread rings.
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// A word by which the owner of a bell says whether it is to be rung: once in each sleep.
pub(crate) struct Sleep<'a>(&'a AtomicU32);

/// The owner sleeps, or is about to.
const ASLEEP: u32 = 0;
/// It is awake, or was rung.
const AWAKE: u32 = 1;

impl<'a> Sleep<'a> {
    pub(crate) fn over(word: &'a AtomicU32) -> Self {
        Self(word)
    }

    /// The owner is about to sleep; orders what it looks at next behind that.
    pub(crate) fn begin(&self) {
        // SOCK-R7: which counter the bell has. The fence orders all else.
        self.0.store(ASLEEP, Ordering::Release);
        // FENCE-A1: one that rings marks, and then looks at this word, behind a fence of its own.
        fence(Ordering::SeqCst);
    }

    /// The owner is awake, and looks at marks before it sleeps again.
    pub(crate) fn end(&self) {
        // Relaxed: one that sees it late rings in vain.
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether the owner was rung since it began to sleep.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: the bell's counter wakes.
        self.0.load(Ordering::Relaxed) != ASLEEP
    }

    /// Behind a mark: whether the bell is to be rung.
    pub(crate) fn disturb(&self) -> bool {
        // FENCE-R1: pairs with the fence of begin().
        fence(Ordering::SeqCst);
        // Relaxed: the exchange decides which thread rings. SOCK-A7: the counter of the sleeper.
        self.0.load(Ordering::Relaxed) == ASLEEP && self.0.swap(AWAKE, Ordering::Acquire) == ASLEEP
    }
}
