//! Data in several pieces of private memory: puts, gets, rows, batches and messages.
use ayre::memory::{Batch, Strided};
use ayre::{
    Config, Fault, Mode, PeerId, Port, PostError, PostOptions, Region, RegionOptions, RemoteRegion,
    Rights,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};

const LEN: usize = 1 << 16;

struct Pair {
    near: Port,
    /// Its engine serves it.
    far: Port,
    to: PeerId,
    region: Region,
    remote: RemoteRegion,
}

impl Pair {
    fn new(mode: Mode) -> Self {
        let config = |number| Config::new().number(number).mode(mode);
        let (mut near, mut far) = Port::pair(config(0), config(1)).expect("two ports");
        far.start_engine().expect("an engine");
        let (to, from) = (near.peer(1).expect("connected"), far.peer(0).expect("connected"));
        let region = far.alloc(LEN, RegionOptions::new()).expect("memory");
        far.share(from, &region, 0..LEN, Rights::all(), 0).expect("shared");
        let remote = near.accept_region(to, 0).expect("accepted");
        Self { near, far, to, region, remote }
    }

    fn is(&mut self, at: usize, due: &[u8]) -> bool {
        self.near.flush(self.to).expect("alive");
        let mut found = vec![0; due.len()];
        self.region.read(at, &mut found);
        found == due
    }

    fn put(&mut self, at: usize, pieces: &[Vec<u8>]) {
        let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let posted = self.near.put(&self.remote, at as u64, &slices[..], PostOptions::new());
        posted.expect("there is room");
        assert!(self.is(at, &pieces.concat()), "what was put is there");
    }

    fn get(&mut self, at: usize, lens: &[usize]) {
        let mut pieces: Vec<_> = lens.iter().map(|len| vec![0; *len]).collect();
        let mut slices: Vec<_> = pieces.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
        let got = self.near.get(&self.remote, at as u64, &mut slices[..], PostOptions::new());
        got.expect("it is there");
        assert!(self.is(at, &pieces.concat()), "what is there was got");
    }

    /// Rows of three bytes, two bytes apart here and four there.
    fn rows(&mut self, pieces: &[Vec<u8>]) {
        let all = pieces.concat();
        let rows = (all.len() / 5) as u64;
        let shape = Strided { row_len: 3, rows, local_stride: 5, remote_stride: 7 };
        let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let put = self.near.put_strided(&self.remote, 0, &slices[..], shape, PostOptions::new());
        put.expect("there is room");
        self.near.flush(self.to).expect("alive");
        let mut back: Vec<_> = pieces.iter().map(|piece| vec![0; piece.len()]).collect();
        let mut slices: Vec<_> = back.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
        let options = PostOptions::new();
        self.near.get_strided(&self.remote, 0, &mut slices[..], shape, options).expect("there");
        let back = back.concat();
        for row in (0..rows as usize).map(|row| 5 * row..5 * row + 3) {
            assert_eq!(back[row.clone()], all[row.clone()]);
            let there = row.start / 5 * 7;
            assert!(self.is(there, &all[row]));
        }
    }

    fn batch(&mut self, pieces: &[Vec<u8>]) {
        let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut batch = Batch::new(self.to);
        batch.put(&self.remote, 8, &slices[..], PostOptions::new());
        self.near.release(&batch).expect("there is room");
        assert!(self.is(8, &pieces.concat()));
    }

    fn message(&mut self, pieces: &[Vec<u8>]) {
        let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let all = pieces.concat();
        let sent = self.near.send_vectored(self.to, 9, &slices);
        match all.len() {
            0 => assert_eq!(sent, Err(PostError::Fault(Fault::Malformed))),
            1..=1024 => {
                assert_eq!(sent, Ok(()));
                let mut into = [0; 1024];
                let message = self.far.recv(&mut into, None).expect("it has come");
                assert_eq!((message.tag, &into[..message.len]), (9, &all[..]));
            }
            _ => assert_eq!(sent, Err(PostError::Fault(Fault::TooLong))),
        }
    }
}

fn pieces(longest: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..longest), 0..8)
}

fn all_forms(mode: Mode) {
    let pair = RefCell::new(Pair::new(mode));
    let config = ProptestConfig::with_cases(64);
    let parts = (0..100_usize, pieces(60), pieces(3000), vec(0..3000_usize, 0..8), pieces(250));
    proptest!(config, |((at, short, long, lens, message) in parts)| {
        let mut pair = pair.borrow_mut();
        pair.put(at, &short);
        pair.put(at, &long);
        pair.get(at, &lens);
        pair.rows(&short);
        pair.batch(&short);
        pair.message(&message);
    });
}

// spec: PUT-1, GET-1, STR-1, STR-4, BATCH-2, MSG-2
#[test]
fn pieces_count_as_one_on_direct_connections() {
    all_forms(Mode::Direct);
}

// spec: PUT-1, PUT-4, GET-1, GET-2, STR-1, STR-4, BATCH-2, MSG-2
#[test]
fn pieces_count_as_one_on_mediated_connections() {
    all_forms(Mode::Mediated);
}

// spec: CAP-5
#[test]
fn the_sum_of_all_pieces_is_what_is_checked() {
    let mut pair = Pair::new(Mode::Direct);
    let byte = [7; 1];
    let many = vec![IoSlice::new(&byte); LEN + 1];
    let (put, bounds) = (PostOptions::new(), Err(PostError::Fault(Fault::Bounds)));
    assert_eq!(pair.near.put(&pair.remote, 0, &many[..], put), bounds);
    assert_eq!(pair.near.put(&pair.remote, 1, &many[..LEN], put), bounds);
    assert!(pair.near.put(&pair.remote, 0, &many[..LEN], put).is_ok());
    assert!(pair.is(0, &[7; LEN]));
}
