//! The handlers of a messenger, by their ids.
use super::call::Call;
use super::handler::Handler;
use crate::error::SetupError;
use ayre_proto::active::NAME_MAX;

/// A handler's function. It gets the program's state, the call, the arguments and the payload.
type Run<S> = Box<dyn FnMut(&mut S, &mut Call<'_>, &[u8], &[u8]) + Send>;

/// A registered handler.
pub(super) struct Entry<S> {
    pub(super) id: u32,
    pub(super) arguments: u8,
    /// None if the id is static.
    pub(super) name: Option<Box<str>>,
    pub(super) run: Run<S>,
}

/// A hash table of handlers by id, at most half full.
pub(super) struct Handlers<S> {
    entries: Vec<Entry<S>>,
    /// The id of a handler and its index in `entries`; id 0 marks a free place.
    places: Vec<(u32, u32)>,
}

const PLACES_MIN: usize = 16;
const _: () = assert!(PLACES_MIN.is_power_of_two(), "an id's place is some of its bits");

impl<S> Default for Handlers<S> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: vec![(0, 0); PLACES_MIN] }
    }
}

impl<S> Handlers<S> {
    /// Adds a handler, and returns its index.
    // spec: AM-1, AM-2
    pub(super) fn add<const N: usize>(
        &mut self,
        name: Option<&str>,
        handler: Handler<N>,
        mut run: impl FnMut(&mut S, &mut Call<'_>, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<usize, SetupError> {
        if name.is_some_and(|name| name.is_empty() || name.len() > NAME_MAX) {
            return Err(SetupError::invalid("a handler's name has 1 to 64 bytes"));
        }
        if let Some(index) = self.find(handler.id()) {
            return Err(taken(name, handler.id(), self.entries[index].name.as_deref()));
        }
        let run: Run<S> = Box::new(move |state, call, arguments, payload| {
            let (words, _) = arguments.as_chunks::<8>();
            let word = |at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
            run(state, call, std::array::from_fn(word), payload);
        });
        let (id, arguments) = (handler.id(), N as u8);
        let index = self.entries.len();
        self.entries.push(Entry { id, arguments, name: name.map(Into::into), run });
        self.rebuild();
        assert_eq!(self.find(id), Some(index), "a handler is found by its id");
        Ok(index)
    }

    fn rebuild(&mut self) {
        let places = (2 * self.entries.len()).next_power_of_two().max(PLACES_MIN);
        assert!(places > self.entries.len(), "a search comes to a free place");
        self.places = vec![(0, 0); places];
        for (index, entry) in (0..).zip(&self.entries) {
            assert_ne!(entry.id, 0, "a free place has no handler's id");
            let mut at = entry.id as usize % places;
            while self.places[at].0 != 0 {
                at = (at + 1) % places;
            }
            self.places[at] = (entry.id, index);
        }
    }

    #[inline(always)]
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        let mask = self.places.len() - 1;
        let mut at = id as usize & mask;
        loop {
            let (found, index) = self.places[at];
            if found == id {
                return Some(index as usize);
            }
            if found == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, index: usize) -> &mut Entry<S> {
        &mut self.entries[index]
    }

    pub(super) fn entries(&self) -> &[Entry<S>] {
        &self.entries
    }
}

/// Returns the error for a handler whose id another one has.
#[cold]
fn taken(name: Option<&str>, id: u32, other: Option<&str>) -> SetupError {
    SetupError::invalid(match (name, other) {
        (Some(name), Some(other)) if name == other => {
            format!("a handler `{name}` is registered already")
        }
        (Some(name), Some(other)) => {
            format!("the handlers `{name}` and `{other}` have the same id, {id}; rename one")
        }
        _ => format!("a handler of the static id {id} is registered already"),
    })
}
