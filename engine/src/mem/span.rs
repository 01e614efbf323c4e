//! The program's memory for an operation, until that has completed.
use arrayvec::ArrayVec;
use std::ptr::NonNull;

/// The most ranges in the memory of one operation.
pub const SPANS_MAX: usize = 4;

/// A range of the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: its maker has vouched for the range until the operation has completed, in whichever
// thread.
unsafe impl Send for Span {}

impl Span {
    /// Memory to read, for a message that is sent.
    ///
    /// # Safety
    /// The range must be readable, and nobody may write it, until its operation has completed.
    pub const unsafe fn read_only(start: *const u8, len: usize) -> Self {
        // SAFETY: the same promise. Its user never writes to it: only received bytes are written.
        unsafe { Self::new(start.cast_mut(), len) }
    }

    /// Memory to write, for a message that is received.
    ///
    /// # Safety
    /// The range must be readable and writable, and nobody else may use it, until its operation has
    /// completed. The memory of an endpoint's memory region must stay until that is withdrawn, and
    /// others may use it meanwhile. For a length of 0 the pointer may be null.
    pub const unsafe fn new(start: *mut u8, len: usize) -> Self {
        match NonNull::new(start) {
            Some(start) => Self { start, len },
            None => Self { start: NonNull::dangling(), len: 0 },
        }
    }

    /// Memory that the program gives up for ever.
    pub fn of_static(bytes: &'static mut [u8]) -> Self {
        // SAFETY: the only reference that exists is given up.
        unsafe { Self::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// The length in bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: readable, and nobody writes it while the operation is pending: new().
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: writable, and nobody else uses it while the operation is pending: new().
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// The memory of one operation: up to [`SPANS_MAX`] ranges, which count as one sequence of bytes.
#[derive(Clone, Debug)]
pub struct Spans {
    first: Span,
    /// Nearly all operations have one range: this keeps the structure short.
    more: Option<Box<More>>,
    len: usize,
}

type More = ArrayVec<Span, { SPANS_MAX - 1 }>;

impl Default for Spans {
    fn default() -> Self {
        Self::from(Span { start: NonNull::dangling(), len: 0 })
    }
}

impl From<Span> for Spans {
    #[inline(always)]
    fn from(first: Span) -> Self {
        Self { len: first.len, first, more: None }
    }
}

impl Spans {
    /// These ranges; `None` where there are more than [`SPANS_MAX`], or the sum of lengths
    /// overflows.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Option<Self> {
        let mut spans = spans.into_iter().filter(|span| span.len > 0);
        let mut all = spans.next().map_or_else(Self::default, Self::from);
        for span in spans {
            all.more.get_or_insert_default().try_push(span).ok()?;
            all.len = all.len.checked_add(span.len)?;
        }
        Some(all)
    }

    /// The length of all ranges in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes, if they are contiguous.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        if self.more.is_none() { Some(self.first.bytes()) } else { None }
    }

    /// The longest contiguous piece from an offset on, of at most `max` bytes.
    pub(crate) fn piece(&self, offset: usize, max: usize) -> &[u8] {
        let Some((span, at)) = self.find(offset) else { return &[] };
        let bytes = &span.bytes()[at..];
        &bytes[..bytes.len().min(max)]
    }

    /// Bytes of the first range, if it contains all of them.
    #[inline(always)]
    pub(crate) fn first_mut(&mut self, offset: usize, len: usize) -> Option<&mut [u8]> {
        let end = offset.checked_add(len)?;
        self.first.bytes_mut().get_mut(offset..end)
    }

    /// The longest contiguous piece from an offset on, of at most `max` bytes, for writing.
    #[inline]
    pub(crate) fn piece_mut(&mut self, offset: usize, max: usize) -> &mut [u8] {
        let (span, at) = match offset < self.first.len {
            true => (&mut self.first, offset),
            false => match self.find_further(offset) {
                Some((further, at)) => (further, at),
                None => return &mut [],
            },
        };
        let bytes = &mut span.bytes_mut()[at..];
        let len = bytes.len().min(max);
        &mut bytes[..len]
    }

    /// Copies bytes out, from an offset on.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        let mut at = 0;
        while at < into.len() {
            let piece = self.piece(offset + at, into.len() - at);
            assert!(!piece.is_empty(), "what is read is there");
            into[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
    }

    /// Copies bytes in, from an offset on; bytes beyond the end are ignored.
    pub(crate) fn write(&mut self, offset: usize, from: &[u8]) {
        let mut at = 0;
        while at < from.len() {
            let piece = self.piece_mut(offset + at, from.len() - at);
            if piece.is_empty() {
                return;
            }
            let len = piece.len();
            piece.copy_from_slice(&from[at..at + len]);
            at += len;
        }
    }

    fn find(&self, offset: usize) -> Option<(&Span, usize)> {
        let mut at = offset;
        for span in std::iter::once(&self.first).chain(self.more.iter().flat_map(|it| it.iter())) {
            if at < span.len {
                return Some((span, at));
            }
            at -= span.len;
        }
        None
    }

    /// The range and the place of an offset beyond the first range, for writing.
    #[cold]
    fn find_further(&mut self, offset: usize) -> Option<(&mut Span, usize)> {
        let mut at = offset - self.first.len;
        for span in self.more.iter_mut().flat_map(|it| it.iter_mut()) {
            if at < span.len {
                return Some((span, at));
            }
            at -= span.len;
        }
        None
    }
}
