//! Dimension order, in meshes and in tori.
use super::Hop;

#[derive(Debug)]
pub(crate) struct Cube {
    /// The place of each router: that in the first dimension in the lowest bits.
    places: Vec<u64>,
    /// The dimension of each bit of a place.
    dimensions: [u8; 64],
    rows: Vec<Row>,
    /// The hops along a row of each length, for each place and target.
    hops: Vec<[Hop; 2]>,
    /// The hop into the node.
    last: Hop,
}

/// Where a dimension is.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The first bit of its place.
    shift: u32,
    side: u32,
    /// Its first hop in the table.
    hops: u32,
}

impl Cube {
    /// `datelines` divides the channels of rings by whether the way leads over the end of a row.
    pub(super) fn new(sides: &[u32], rings: bool, channels: u16, datelines: bool) -> Self {
        let mut cube = Self {
            places: Vec::new(),
            dimensions: [0; 64],
            rows: Vec::new(),
            hops: Vec::new(),
            last: Hop { port: 2 * sides.len() as u16, first: 0, count: 1 },
        };
        let mut shift = 0;
        for (dimension, side) in (0_u8..).zip(sides) {
            let bits = side.ilog2() + u32::from(!side.is_power_of_two());
            for bit in shift..shift + bits {
                cube.dimensions[bit as usize] = dimension;
            }
            cube.rows.push(Row { shift, side: *side, hops: cube.hops.len() as u32 });
            for at in 0..*side {
                for to in 0..*side {
                    let dimension = dimension.into();
                    let row = Direction { dimension, side: *side, rings, channels };
                    let hop = |up| match row.hop(at, to, up) {
                        hop if datelines => hop,
                        hop => Hop { first: 0, count: channels, ..hop },
                    };
                    cube.hops.push([hop(true), hop(false)]);
                }
            }
            shift += bits;
        }
        for router in 0..sides.iter().product() {
            let mut rest = router;
            let place = cube.rows.iter().fold(0, |place, row| {
                let here = u64::from(rest % row.side);
                rest /= row.side;
                place | here << row.shift
            });
            cube.places.push(place);
        }
        cube
    }

    #[inline(always)]
    pub(super) fn hop(&self, router: u32, source: u32, target: u32) -> Hop {
        let (here, there) = (self.places[router as usize], self.places[target as usize]);
        if here == there {
            return self.last;
        }
        let dimension = self.dimensions[(here ^ there).trailing_zeros() as usize];
        self.step(usize::from(dimension), [here, there], source ^ target)
    }

    /// A bit for each dimension in which a router is not at the target's place.
    pub(super) fn open(&self, router: u32, target: u32) -> u64 {
        let away = self.places[router as usize] ^ self.places[target as usize];
        let open = |row: &Row| away >> row.shift & u64::from(row.side.next_power_of_two() - 1) != 0;
        (0..).zip(&self.rows).fold(0, |all, (bit, row)| all | u64::from(open(row)) << bit)
    }

    /// The hop of a packet at this router in one dimension.
    pub(super) fn along(&self, dimension: usize, router: u32, target: u32) -> Hop {
        let ends = [self.places[router as usize], self.places[target as usize]];
        self.step(dimension, ends, router ^ target)
    }

    /// The hop in one dimension. Where both ways are equally long, half of the pairs take each, so
    /// that the load is even.
    #[inline(always)]
    fn step(&self, dimension: usize, [here, there]: [u64; 2], pair: u32) -> Hop {
        let Row { shift, side, hops } = self.rows[dimension];
        let mask = side.next_power_of_two() - 1;
        let (at, to) = ((here >> shift) as u32 & mask, (there >> shift) as u32 & mask);
        self.hops[(hops + at * side + to) as usize][(pair & 1) as usize]
    }
}

/// How a row is passed.
struct Direction {
    dimension: u16,
    side: u32,
    rings: bool,
    channels: u16,
}

impl Direction {
    /// The hop at `at` to `to`; `up` decides where both ways are equally long.
    fn hop(&self, at: u32, to: u32, up: bool) -> Hop {
        let up_port = 2 * self.dimension;
        let port = |up| if up { up_port } else { up_port + 1 };
        if !self.rings || self.side == 2 {
            return Hop { port: port(to > at), first: 0, count: self.channels };
        }
        let steps = (to + self.side - at) % self.side;
        let up = 2 * steps < self.side || 2 * steps == self.side && up;
        // The way still leads over the end of the row.
        let wraps = if up { to < at } else { to > at };
        let half = self.channels / 2;
        Hop {
            port: port(up),
            first: if wraps { 0 } else { half },
            count: if wraps { half } else { self.channels - half },
        }
    }
}
