//! Strided puts and gets of random shapes against a loop over rows.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region, RemoteRegion};
use crate::seed::{Dice, cases};
use crate::world::{Memory, World, fault_of};
use ayre::Fault;
use ayre::memory::Strided;

const LEN: usize = 16 * 1024;

/// A random shape with its place, which fits `LEN` bytes at both sides. The rows that are written
/// do not overlap; those that are read may.
fn draw(dice: &mut Dice, put: bool) -> (Strided, usize, usize) {
    let row_len = dice.pick(&[0, 1, 7, 8, 24, 56, 100, 1000]) + dice.below(2);
    let rows = dice.below(13);
    let apart = |dice: &mut Dice| row_len + dice.below(40);
    let near = |dice: &mut Dice| dice.below(row_len + 40);
    let (local_stride, remote_stride) =
        if put { (near(dice), apart(dice)) } else { (apart(dice), near(dice)) };
    let strided = Strided { row_len, rows, local_stride, remote_stride };
    let (local, remote) = (span(&strided, local_stride), span(&strided, remote_stride));
    (strided, dice.index(LEN - local + 1), dice.index(LEN - remote + 1))
}

/// Bytes from the first to the last of all rows.
fn span(strided: &Strided, stride: u64) -> usize {
    match strided.rows {
        0 => 0,
        _ if strided.row_len == 0 => 0,
        rows => ((rows - 1) * stride + strided.row_len) as usize,
    }
}

/// Where the buffer ends: with the last row, or later.
fn buffer_end(dice: &mut Dice, last: usize) -> usize {
    if dice.below(2) == 0 { last } else { last + dice.index(LEN - last + 1) }
}

/// The effect of the operation.
fn copy_rows(strided: &Strided, from: (&[u8], u64), to: (&mut [u8], u64)) {
    for row in 0..strided.rows {
        let len = strided.row_len as usize;
        let (read, write) = ((row * from.1) as usize, (row * to.1) as usize);
        if len > 0 {
            to.0[write..][..len].copy_from_slice(&from.0[read..][..len]);
        }
    }
}

/// Strided puts, from private bytes and from a region, write the rows and nothing between them.
// spec: STR-1, STR-3, STR-4, NOTI-6
pub fn put_strided_writes_rows<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN);
    let source = world.own_memory(LEN);
    let data = pattern(4, LEN);
    fill(&source, &data);
    let mut expected = contents(&region);
    for case in 0..cases(400) {
        let mut dice = Dice::new(case);
        let (strided, local, at) = draw(&mut dice, true);
        let end = buffer_end(&mut dice, local + span(&strided, strided.local_stride));
        let options = Options::new().completer();
        world.drive(|port| {
            let posted = if dice.below(2) == 0 {
                port.put_strided(&remote, at as u64, &data[local..end], strided, options)
            } else {
                port.put_strided(&remote, at as u64, source.slice(local..end), strided, options)
            };
            posted.unwrap_or_else(|error| panic!("{strided:?}: {error}"));
        });
        let to = (&mut expected[at..], strided.remote_stride);
        copy_rows(&strided, (&data[local..], strided.local_stride), to);
        assert_eq!(world.raised().target.len(), 1, "one completer, {strided:?}");
        assert_same(&contents(&region), &expected, &strided);
    }
}

/// Strided gets, into private bytes and into a region, read the rows and write nothing between.
// spec: STR-1, STR-3, STR-4, GET-1
pub fn get_strided_reads_rows<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN);
    let sink = world.own_memory(LEN);
    let there = pattern(5, LEN);
    fill(&region, &there);
    let (mut bytes, mut expected, mut expected_sink) = (vec![0; LEN], vec![0; LEN], vec![0; LEN]);
    for case in 0..cases(400) {
        let mut dice = Dice::new(case);
        let (strided, local, at) = draw(&mut dice, false);
        let end = buffer_end(&mut dice, local + span(&strided, strided.local_stride));
        let private = dice.below(2) == 0;
        let buffer = &mut bytes;
        world.drive(|port| {
            let got = if private {
                let into = &mut buffer[local..end];
                port.get_strided(&remote, at as u64, into, strided, Options::new())
            } else {
                let into = sink.slice(local..end);
                port.get_strided(&remote, at as u64, into, strided, Options::new())
            };
            got.unwrap_or_else(|error| panic!("{strided:?}: {error}"));
            assert_eq!(port.flush(remote.peer()), Ok(()), "{strided:?}");
        });
        let into = if private { &mut expected } else { &mut expected_sink };
        let to = (&mut into[local..], strided.local_stride);
        copy_rows(&strided, (&there[at..], strided.remote_stride), to);
        assert_same(&bytes, &expected, &strided);
        assert_same(&contents(&sink), &expected_sink, &strided);
    }
    assert_same(&contents(&region), &there, &"gets leave the target as it is");
}

/// All rows are checked before the first one moves, without wrap-around, at both ends.
// spec: STR-2, POST-1, POST-2
pub fn strided_bounds_cover_all_rows<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(1000);
    let there = pattern(6, 1000);
    fill(&region, &there);
    let local = [0x55; 1000];
    let strided = |rows, row_len, local_stride, remote_stride| Strided {
        row_len,
        rows,
        local_stride,
        remote_stride,
    };
    let outside = [
        strided(11, 10, 10, 100),
        strided(2, 1, 1, u64::MAX),
        strided(3, 1, 1, u64::MAX / 2 + 1),
        strided(2, 1, u64::MAX, 1),
        strided(1 << 33, 1, 1, 1 << 33),
        strided(u64::MAX, 1, 1, 1),
        strided(1, 1001, 1001, 1001),
        strided(101, 10, 10, 10),
    ];
    for shape in outside {
        let port = world.initiator();
        let put = port.put_strided(&remote, 0, &local, shape, Options::new().completer());
        assert_eq!(fault_of(put), Fault::Bounds, "{shape:?}");
        let mut buffer = local;
        let got = port.get_strided(&remote, 0, &mut buffer, shape, Options::new().completer());
        assert_eq!(fault_of(got), Fault::Bounds, "{shape:?}");
        assert_eq!(buffer, local, "a refused get writes nothing");
    }
    let port = world.initiator();
    let inside = strided(10, 10, 10, 100);
    let put = port.put_strided(&remote, 91, &local, inside, Options::new());
    assert_eq!(fault_of(put), Fault::Bounds, "the last row ends a byte outside");
    assert!(world.raised().is_empty(), "what is refused notifies nobody");
    assert_same(&contents(&region), &there, &"what is refused writes nothing");
    world.post(|port| port.put_strided(&remote, 90, &local, inside, Options::new()));
    world.settle_ok();
}

/// Rows that would overlap where they land are refused, at the target and in the local buffer.
// spec: STR-3, POST-1, POST-2
pub fn rows_do_not_land_on_each_other<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(1000);
    let mut buffer = [0x33; 1000];
    for (rows, stride) in [(2, 0), (2, 9), (100, 1), (u64::MAX, 3)] {
        let put = Strided { row_len: 10, rows, local_stride: 10, remote_stride: stride };
        let get = Strided { row_len: 10, rows, local_stride: stride, remote_stride: 10 };
        let port = world.initiator();
        let posted = port.put_strided(&remote, 0, &buffer, put, Options::new().completer());
        assert_eq!(fault_of(posted), Fault::Malformed, "{put:?}");
        let posted = port.get_strided(&remote, 0, &mut buffer, get, Options::new().completer());
        assert_eq!(fault_of(posted), Fault::Malformed, "{get:?}");
    }
    assert!(world.raised().is_empty(), "what is refused notifies nobody");
    assert_eq!((contents(&region), buffer), (vec![0; 1000], [0x33; 1000]));
    let one = Strided { row_len: 10, rows: 1, local_stride: 0, remote_stride: 0 };
    world.post(|port| port.put_strided(&remote, 0, &buffer, one, Options::new()));
    world.settle_ok();
    assert_same(&contents(&region)[..20], &[[0x33; 10], [0; 10]].concat(), &"one row");
}
