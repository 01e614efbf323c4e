//! Cutting transfers: whatever the shape and the limit, the pieces are the transfer.
mod common;

use ayre_proto::segment::{Piece, Shape};
use common::word;
use proptest::prelude::*;

fn small_shapes() -> impl Strategy<Value = Shape> {
    (0..40u64, 0..12u64, 0..60u64, 0..60u64).prop_map(
        |(row_len, rows, local_stride, remote_stride)| Shape {
            row_len,
            rows,
            local_stride,
            remote_stride,
        },
    )
}

fn any_shapes() -> impl Strategy<Value = Shape> {
    (word(), word(), word(), word()).prop_map(|(row_len, rows, local_stride, remote_stride)| {
        Shape { row_len, rows, local_stride, remote_stride }
    })
}

/// Where each byte comes from and goes to, byte by byte.
fn bytes_of(shape: &Shape) -> Vec<(u64, u64)> {
    let row = |row: u64| {
        (0..shape.row_len)
            .map(move |at| (row * shape.local_stride + at, row * shape.remote_stride + at))
    };
    (0..shape.rows).flat_map(row).collect()
}

fn span(shape: &Shape, stride: u64) -> Option<u64> {
    if shape.rows == 0 || shape.row_len == 0 {
        return Some(0);
    }
    let last = u128::from(shape.rows - 1) * u128::from(stride);
    u64::try_from(last + u128::from(shape.row_len)).ok()
}

proptest! {
    // spec: STR-1, PUT-3
    #[test]
    fn pieces_move_each_byte_once_and_in_order(shape in small_shapes(), limit in 1..50u64) {
        let pieces: Vec<Piece> = shape.pieces(limit).collect();
        let moved: Vec<(u64, u64)> = pieces
            .iter()
            .flat_map(|piece| (0..piece.len).map(|at| (piece.local + at, piece.remote + at)))
            .collect();
        prop_assert_eq!(moved, bytes_of(&shape));
        prop_assert_eq!(pieces.len() as u64, shape.count(limit));
        prop_assert!(pieces.iter().all(|piece| piece.len <= limit));
        let empty = shape.rows == 0 || shape.row_len == 0;
        prop_assert!(empty || pieces.iter().all(|piece| piece.len > 0));
    }

    // spec: PUT-3
    #[test]
    fn a_transfer_of_no_bytes_is_one_empty_piece(
        rows in word(),
        stride in word(),
        limit in 1..u64::MAX,
    ) {
        let strides = (stride, stride / 2);
        for (row_len, rows) in [(0, rows), (rows, 0)] {
            let (local_stride, remote_stride) = strides;
            let shape = Shape { row_len, rows, local_stride, remote_stride };
            let pieces: Vec<Piece> = shape.pieces(limit).collect();
            prop_assert_eq!(pieces, [Piece { local: 0, remote: 0, len: 0 }]);
            prop_assert_eq!(shape.count(limit), 1);
            prop_assert_eq!((shape.local_span(), shape.remote_span()), (Some(0), Some(0)));
        }
    }

    // spec: STR-2, CAP-5
    #[test]
    fn spans_do_not_wrap(shape in any_shapes()) {
        prop_assert_eq!(shape.local_span(), span(&shape, shape.local_stride));
        prop_assert_eq!(shape.remote_span(), span(&shape, shape.remote_stride));
    }

    #[test]
    fn counts_saturate(shape in any_shapes(), limit in 1..u64::MAX) {
        let rows = u128::from(shape.rows) * u128::from(shape.row_len.div_ceil(limit));
        let count = u64::try_from(rows.max(1)).unwrap_or(u64::MAX);
        prop_assert_eq!(shape.count(limit), count);
    }

    /// Where both spans exist, no piece leaves them, however long the transfer.
    // spec: STR-2
    #[test]
    fn pieces_stay_within_the_spans(shape in any_shapes(), limit in 1..u64::MAX) {
        if let (Some(local), Some(remote)) = (shape.local_span(), shape.remote_span()) {
            for piece in shape.pieces(limit).take(100) {
                prop_assert!(piece.local <= local && piece.len <= local - piece.local);
                prop_assert!(piece.remote <= remote && piece.len <= remote - piece.remote);
            }
        }
    }
}

#[test]
fn a_contiguous_transfer_is_one_row() {
    let shape = Shape::contiguous(10);
    let piece = |at, len| Piece { local: at, remote: at, len };
    let pieces: Vec<Piece> = shape.pieces(4).collect();
    assert_eq!(pieces, [piece(0, 4), piece(4, 4), piece(8, 2)]);
    assert_eq!((shape.local_span(), shape.remote_span()), (Some(10), Some(10)));
    assert_eq!(Shape::contiguous(u64::MAX).pieces(u64::MAX).count(), 1);
}
