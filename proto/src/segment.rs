//! Cutting transfers: strided ones into rows, long ones into pieces that fit a lane.

/// A transfer of `rows` rows of `row_len` bytes each; contiguous is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a row.
    pub row_len: u64,
    /// Number of rows.
    pub rows: u64,
    /// Bytes from the start of a row to the start of the next in the initiator's buffer.
    pub local_stride: u64,
    /// Distance of rows in the target's range.
    pub remote_stride: u64,
}

/// One contiguous piece of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset in the initiator's buffer.
    pub local: u64,
    /// Offset from the transfer's first byte at the target.
    pub remote: u64,
    /// Bytes.
    pub len: u64,
}

impl Shape {
    /// A contiguous transfer.
    #[inline]
    pub const fn contiguous(len: u64) -> Self {
        Self { row_len: len, rows: 1, local_stride: 0, remote_stride: 0 }
    }

    /// Bytes from the first to the last byte in the initiator's buffer; `None` on overflow.
    pub const fn local_span(&self) -> Option<u64> {
        span(self.rows, self.row_len, self.local_stride)
    }

    /// Bytes from the first to the last byte at the target; `None` on overflow.
    pub const fn remote_span(&self) -> Option<u64> {
        span(self.rows, self.row_len, self.remote_stride)
    }

    /// The pieces in order, none longer than `limit`, of a transfer whose spans do not overflow. A
    /// transfer of no bytes is one empty piece, so that it still completes and notifies.
    // spec: PUT-3
    pub fn pieces(&self, limit: u64) -> Pieces {
        assert!(limit > 0, "a piece holds at least a byte");
        let empty = self.rows == 0 || self.row_len == 0;
        let shape = if empty { Self::contiguous(0) } else { *self };
        Pieces { shape, limit, row: 0, within: 0 }
    }

    /// Whether bytes of the initiator's buffer lie within one row: where an answer may land.
    pub const fn holds_local(&self, offset: u64, len: u64) -> bool {
        let (row, within) = match self.local_stride {
            0 => (0, offset),
            stride => (offset / stride, offset % stride),
        };
        (len == 0 && offset == 0)
            || row < self.rows && within <= self.row_len && len <= self.row_len - within
    }

    /// The number of pieces that [`Shape::pieces`] gives.
    pub const fn count(&self, limit: u64) -> u64 {
        if self.rows == 0 || self.row_len == 0 {
            return 1;
        }
        self.rows.saturating_mul(self.row_len.div_ceil(limit))
    }
}

// spec: STR-2
const fn span(rows: u64, row_len: u64, stride: u64) -> Option<u64> {
    if rows == 0 || row_len == 0 {
        return Some(0);
    }
    match (rows - 1).checked_mul(stride) {
        Some(last) => last.checked_add(row_len),
        None => None,
    }
}

/// Iterator over the pieces of a transfer.
#[derive(Clone, Debug)]
pub struct Pieces {
    shape: Shape,
    limit: u64,
    row: u64,
    within: u64,
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let Shape { row_len, rows, local_stride, remote_stride } = self.shape;
        if self.row == rows {
            return None;
        }
        debug_assert!(self.row < rows, "pieces end with the last row");
        debug_assert!(self.within < row_len || row_len == 0, "a row that is done is left");
        let left = row_len - self.within;
        let len = if left < self.limit { left } else { self.limit };
        let piece = Piece {
            local: self.row * local_stride + self.within,
            remote: self.row * remote_stride + self.within,
            len,
        };
        self.within += len;
        if self.within == row_len {
            self.row += 1;
            self.within = 0;
        }
        Some(piece)
    }
}
