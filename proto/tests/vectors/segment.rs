//! Vectors of transfers cut into pieces.
use super::script::{Fields, Machine, Script};
use ayre_proto::segment::{Pieces, Shape};

pub(crate) const HEADER: &str = "\
Cutting a transfer into pieces (proto/src/segment.rs, spec/10). Numbers are hexadecimal.

transfer ROW_LEN ROWS LOCAL_STRIDE REMOTE_STRIDE LIMIT -> COUNT LOCAL_SPAN REMOTE_SPAN
                         number of pieces; bytes from the first to the last, or overflow
next -> LOCAL REMOTE LEN the next piece: offsets in the buffer and at the target, or end";

struct Cutter(Pieces);

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Cutter(Shape::contiguous(0).pieces(1)))
}

fn span(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "overflow".to_owned(), |bytes| format!("{bytes:x}"))
}

impl Machine for Cutter {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "transfer" => {
                let (row_len, rows) = (inputs.number(), inputs.number());
                let (local_stride, remote_stride) = (inputs.number(), inputs.number());
                let shape = Shape { row_len, rows, local_stride, remote_stride };
                let limit = inputs.number();
                self.0 = shape.pieces(limit);
                let spans = (span(shape.local_span()), span(shape.remote_span()));
                format!("{:x} {} {}", shape.count(limit), spans.0, spans.1)
            }
            "next" => self.0.next().map_or_else(
                || "end".to_owned(),
                |piece| format!("{:x} {:x} {:x}", piece.local, piece.remote, piece.len),
            ),
            _ => panic!("{name} is no step of a transfer"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("nothing, one piece, several pieces");
    for (len, limit) in [(0, 8), (1, 8), (8, 8), (9, 8), (24, 8), (5, 1), (10, u64::MAX)] {
        whole(s, [len, 1, 0, 0, limit]);
    }
    s.section("rows");
    for shape in [[4, 3, 6, 10, 100], [4, 3, 0, 4, 3], [0, 5, 1, 1, 4], [5, 0, 1, 1, 4]] {
        whole(s, shape);
    }
    for _ in 0..12 {
        let shape = [20, 5, 30, 30, 9].map(|end| s.random.below(end));
        whole(s, [shape[0], shape[1], shape[2], shape[3], shape[4] + 1]);
    }
    s.section("spans and counts at the edges of 64 bits: only the first piece is asked for");
    for [row_len, rows, stride, limit] in [
        [u64::MAX, 1, u64::MAX, 1],
        [1, 2, u64::MAX - 1, 1],
        [2, 2, u64::MAX - 1, 1],
        [1, 1 << 32, 1 << 31, 7],
        [1, 1 << 32, 1 << 32, 7],
        [16, 1 << 62, 1, 1],
        [u64::MAX, u64::MAX, u64::MAX, 1],
    ] {
        s.run(format!("transfer {row_len:x} {rows:x} {stride:x} 1 {limit:x}"));
        s.run("next");
    }
}

fn whole(s: &mut Script, shape: [u64; 5]) {
    s.run(format!("transfer {}", shape.map(|number| format!("{number:x}")).join(" ")));
    while s.run("next") != "end" {}
}
