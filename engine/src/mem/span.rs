//! Memory of the program that an operation works on until it has ended.
use arrayvec::ArrayVec;
use std::ptr::NonNull;

/// Parts of which the memory of one operation may consist.
pub const SPANS_MAX: usize = 4;

/// A range of the program's own memory.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: whoever made it has vouched for the range until the operation has ended, whichever thread
// performs that.
unsafe impl Send for Span {}

impl Span {
    /// Memory from which is read: for a message that is sent.
    ///
    /// # Safety
    /// The range must be readable, and nobody may write it, until the operation that it is for has
    /// ended.
    pub const unsafe fn read_only(start: *const u8, len: usize) -> Self {
        // SAFETY: the same promise; that nothing is written to it, its user sees to: only what is
        // received is.
        unsafe { Self::new(start.cast_mut(), len) }
    }

    /// Memory for a message that is received.
    ///
    /// # Safety
    /// The range must be readable and writable, and nobody else may use it, until the operation
    /// that it is for has ended. Memory of a window must stay until that is withdrawn, and others
    /// may use it meanwhile. Where there are no bytes, the pointer may be null.
    pub const unsafe fn new(start: *mut u8, len: usize) -> Self {
        match NonNull::new(start) {
            Some(start) => Self { start, len },
            None => Self { start: NonNull::dangling(), len: 0 },
        }
    }

    /// Memory that is given up for good.
    pub fn of_static(bytes: &'static mut [u8]) -> Self {
        // SAFETY: the only reference there will ever be is given up.
        unsafe { Self::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: readable, and nobody writes it while the operation is under way: new().
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: writable, and nobody else uses it while the operation is under way: new().
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// The memory of one operation: up to [`SPANS_MAX`] ranges, one behind the other.
#[derive(Clone, Debug)]
pub struct Spans {
    first: Span,
    /// Nearly all operations have one range: this keeps what is handed around for them short.
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
    /// These ranges; none where there are too many, or together more than there can be.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Option<Self> {
        let mut spans = spans.into_iter().filter(|span| span.len > 0);
        let mut all = spans.next().map_or_else(Self::default, Self::from);
        for span in spans {
            all.more.get_or_insert_default().try_push(span).ok()?;
            all.len = all.len.checked_add(span.len)?;
        }
        Some(all)
    }

    /// Bytes in all.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes, where they lie in one piece.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        if self.more.is_none() { Some(self.first.bytes()) } else { None }
    }

    /// The longest piece that begins at an offset, of at most so many bytes.
    pub(crate) fn piece(&self, offset: usize, max: usize) -> &[u8] {
        let Some((span, at)) = self.find(offset) else { return &[] };
        let bytes = &span.bytes()[at..];
        &bytes[..bytes.len().min(max)]
    }

    /// Bytes of the first range, where all of them lie in it.
    #[inline(always)]
    pub(crate) fn first_mut(&mut self, offset: usize, len: usize) -> Option<&mut [u8]> {
        let end = offset.checked_add(len)?;
        self.first.bytes_mut().get_mut(offset..end)
    }

    /// The longest piece that begins at an offset, of at most so many bytes, to be written.
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

    /// Copies bytes in, from an offset on; what does not fit is left.
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

    /// The same behind the first one, to be written.
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
