//! Address vectors: what numbers a program has for its peers.
//!
//! Tables and maps are the same here: a number is the lowest place that was free.

use crate::abi::{FidEq, errno};
use crate::error::{Code, Outcome};
use crate::info::address::Address;
use crate::object::registry::{self, Body, Entity};
use crate::queue::eq::Eq;
use crate::sys::object::Object;
use ayre_guest::cell::{Guard, Policy};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// An object that is told of peers that come and go: an endpoint.
pub(crate) trait Watcher: Send + Sync {
    /// The peer of this number is there.
    fn inserted(&self, number: u64, address: &Address);

    /// The peer of this number is no more: what is under way with it ends.
    fn removed(&self, number: u64);
}

/// The addresses, by number.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Option<Address>>,
    free: BTreeSet<usize>,
}

impl Table {
    fn insert(&mut self, address: Address) -> u64 {
        let place = self.free.pop_first().unwrap_or(self.places.len());
        if place == self.places.len() {
            self.places.push(None);
        }
        self.places[place] = Some(address);
        place as u64
    }

    fn remove(&mut self, number: u64) -> Outcome<Address> {
        let place = usize::try_from(number).map_err(|_| Code::INVALID)?;
        let address = self.places.get_mut(place).and_then(Option::take).ok_or(Code::INVALID)?;
        self.free.insert(place);
        Ok(address)
    }

    /// The address of a number.
    pub(crate) fn address(&self, number: u64) -> Option<Address> {
        *self.places.get(usize::try_from(number).ok()?)?
    }
}

/// The addresses, and who is told of them: under one lock, so that all are told in the order of
/// what has happened, and nobody who has left.
#[derive(Default)]
struct Known {
    table: Table,
    watchers: Vec<Arc<dyn Watcher>>,
}

/// An address vector.
pub(crate) struct Av<L: Policy> {
    known: L::Cell<Known>,
    /// Insertions report to an event queue.
    is_asynchronous: bool,
    eq: Mutex<Option<Arc<Object<FidEq, Eq>>>>,
    _domain: Arc<dyn Entity>,
}

/// The result for one address: its number, or the reason for having none.
pub(crate) type Inserted = Outcome<u64>;

impl<L: Policy> Av<L> {
    pub(crate) fn new(domain: Arc<dyn Entity>, is_asynchronous: bool) -> Self {
        Self {
            known: L::cell(Known::default()),
            is_asynchronous,
            eq: Mutex::default(),
            _domain: domain,
        }
    }

    /// Inserts addresses; those that are none have no number.
    pub(crate) fn insert(&self, addresses: &[Option<Address>]) -> Vec<Inserted> {
        self.known.with(|Known { table, watchers }| {
            let insert = |address: &Option<Address>| {
                let address = address.ok_or(Code::INVALID)?;
                let number = table.insert(address);
                watchers.iter().for_each(|watcher| watcher.inserted(number, &address));
                Ok(number)
            };
            addresses.iter().map(insert).collect()
        })
    }

    /// Removes peers; what is under way with them ends.
    ///
    /// # Errors
    /// `EINVAL` for a number that nobody has; the others are removed all the same.
    pub(crate) fn remove(&self, numbers: &[u64]) -> Outcome {
        self.known.with(|Known { table, watchers }| {
            let remove = |number: &u64| {
                table.remove(*number)?;
                watchers.iter().for_each(|watcher| watcher.removed(*number));
                Ok(())
            };
            numbers.iter().map(remove).fold(Ok(()), Result::and)
        })
    }

    /// The address of a number.
    pub(crate) fn address(&self, number: u64) -> Option<Address> {
        self.known.with(|known| known.table.address(number))
    }

    /// Has an endpoint told of peers from here on, and of those that are there.
    pub(crate) fn watch(&self, watcher: &Arc<dyn Watcher>) {
        self.known.with(|Known { table, watchers }| {
            let places = table.places.iter().enumerate();
            for (number, address) in places.filter_map(|(number, it)| Some((number, (*it)?))) {
                watcher.inserted(number as u64, &address);
            }
            watchers.push(Arc::clone(watcher));
        });
    }

    /// The endpoint is told nothing any more.
    pub(crate) fn unwatch(&self, watcher: &Arc<dyn Watcher>) {
        self.known.with(|known| known.watchers.retain(|known| !Arc::ptr_eq(known, watcher)));
    }

    /// Where insertions report; none if they do so by what they return.
    ///
    /// # Errors
    /// `ENOEQ` where one is needed and none is bound.
    pub(crate) fn reports_to(&self) -> Outcome<Option<Arc<Object<FidEq, Eq>>>> {
        if !self.is_asynchronous {
            return Ok(None);
        }
        let eq = self.eq.lock().unwrap_or_else(PoisonError::into_inner);
        eq.clone().map(Some).ok_or(Code(errno::ENOEQ))
    }
}

impl<L: Policy> Body for Av<L> {
    fn bind(&self, other: &Arc<dyn Entity>, flags: u64) -> Outcome {
        if flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let eq = registry::typed::<FidEq, Eq>(other).ok_or(Code::INVALID)?;
        *self.eq.lock().unwrap_or_else(PoisonError::into_inner) = Some(eq);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::registry::tests::owner;
    use crate::sys::threads::Serial;
    use ayre_guest::cell::Shared;

    fn at(port: u16) -> Address {
        Address::resolve(Some("10.0.0.1"), Some(&port.to_string()), 0).unwrap()
    }

    fn lowest_places_first<L: Policy>() {
        let av = Av::<L>::new(owner(), false);
        let inserted = av.insert(&[Some(at(1)), None, Some(at(2)), Some(at(3))]);
        assert_eq!(inserted, [Ok(0), Err(Code::INVALID), Ok(1), Ok(2)]);
        assert_eq!(av.remove(&[1, 0]), Ok(()));
        assert_eq!(av.remove(&[1]), Err(Code::INVALID));
        assert_eq!(av.remove(&[u64::MAX]), Err(Code::INVALID));
        assert_eq!((av.address(0), av.address(2), av.address(9)), (None, Some(at(3)), None));
        assert_eq!(av.insert(&[Some(at(2)), Some(at(9)), Some(at(1))]), [Ok(0), Ok(1), Ok(3)]);
    }

    #[test]
    fn lowest_places_are_taken_first_under_both_policies() {
        lowest_places_first::<Shared>();
        lowest_places_first::<Serial>();
    }

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Watcher for Log {
        fn inserted(&self, number: u64, address: &Address) {
            self.0.lock().unwrap().push(format!("+{number} {address}"));
        }

        fn removed(&self, number: u64) {
            self.0.lock().unwrap().push(format!("-{number}"));
        }
    }

    #[test]
    fn endpoints_are_notified_of_insertions_and_removals() {
        let av = Av::<Shared>::new(owner(), false);
        av.insert(&[Some(at(1))]);
        let log = Arc::new(Log::default());
        let watcher: Arc<dyn Watcher> = log.clone();
        av.watch(&watcher);
        av.insert(&[Some(at(2))]);
        av.remove(&[0]).unwrap();
        av.unwatch(&watcher);
        let wanted = ["+0 fi_ayre://10.0.0.1:1", "+1 fi_ayre://10.0.0.1:2", "-0"];
        av.remove(&[1]).unwrap();
        assert_eq!(*log.0.lock().unwrap(), wanted);
    }
}
