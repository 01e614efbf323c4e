//! Tables that allocate when they are made, and never again.
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Values by name, sorted.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    rows: Vec<(K, V)>,
    most: usize,
}

impl<K: Copy + Ord, V: Copy> Table<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { rows: Vec::with_capacity(most), most }
    }

    pub(super) fn get(&self, name: K) -> Option<V> {
        let at = self.rows.binary_search_by_key(&name, |row| row.0).ok()?;
        Some(self.rows[at].1)
    }

    /// Adds or replaces a value. There is room.
    pub(super) fn put(&mut self, name: K, value: V) {
        match self.rows.binary_search_by_key(&name, |row| row.0) {
            Ok(at) => self.rows[at].1 = value,
            Err(at) => {
                debug_assert!(self.free() > 0, "who puts has looked");
                self.rows.insert(at, (name, value));
                let around = at.saturating_sub(1)..self.rows.len().min(at + 2);
                debug_assert!(self.rows[around].is_sorted_by_key(|row| row.0), "rows are sorted");
            }
        }
    }

    pub(super) fn remove(&mut self, name: K) {
        if let Ok(at) = self.rows.binary_search_by_key(&name, |row| row.0) {
            self.rows.remove(at);
        }
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(K, V) -> bool) {
        self.rows.retain(|row| stays(row.0, row.1));
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &(K, V)> {
        self.rows.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows that there is room for.
    pub(super) fn free(&self) -> usize {
        self.most - self.rows.len()
    }
}

/// Values by the place that they are given.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Box<[Option<T>]>,
    len: usize,
}

impl<T> Slab<T> {
    pub(super) fn new(places: usize) -> Self {
        Self { places: (0..places).map(|_| None).collect(), len: 0 }
    }

    /// The place that the next value gets.
    pub(super) fn next(&self) -> Option<u16> {
        self.places.iter().position(Option::is_none).map(|place| place as u16)
    }

    pub(super) fn put(&mut self, place: u16, value: T) {
        let before = self.places[usize::from(place)].replace(value);
        assert!(before.is_none(), "a place is given to one");
        self.len += 1;
    }

    pub(super) fn get(&self, place: u16) -> Option<&T> {
        self.places[usize::from(place)].as_ref()
    }

    pub(super) fn get_mut(&mut self, place: u16) -> Option<&mut T> {
        self.places[usize::from(place)].as_mut()
    }

    pub(super) fn take(&mut self, place: u16) -> Option<T> {
        let value = self.places[usize::from(place)].take();
        self.len -= usize::from(value.is_some());
        value
    }

    /// The values in the order of their places, of which the lowest are given first: behind the
    /// last value there may be many empty ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let places = self.places.iter().zip(0..);
        places.filter_map(|(value, place)| Some((place, value.as_ref()?))).take(self.len)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn free(&self) -> usize {
        self.places.len() - self.len
    }
}

/// Places in the order in which they came, each at most once.
#[derive(Debug)]
pub(super) struct Line {
    places: Box<[u16]>,
    first: usize,
    len: usize,
    is_in: Box<[bool]>,
}

impl Line {
    pub(super) fn new(places: usize) -> Self {
        let (empty, is_in) = (alloc::vec![0; places], alloc::vec![false; places]);
        Self { places: empty.into(), first: 0, len: 0, is_in: is_in.into() }
    }

    /// Adds a place, if it is not in the line.
    pub(super) fn push(&mut self, place: u16) {
        if !core::mem::replace(&mut self.is_in[usize::from(place)], true) {
            debug_assert!(self.len < self.places.len(), "there is room for each place once");
            let at = (self.first + self.len) % self.places.len();
            self.places[at] = place;
            self.len += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<u16> {
        if self.len == 0 {
            return None;
        }
        let place = self.places[self.first];
        self.first = (self.first + 1) % self.places.len();
        self.len -= 1;
        debug_assert!(self.is_in[usize::from(place)], "what stands in the line is known to");
        self.is_in[usize::from(place)] = false;
        Some(place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
