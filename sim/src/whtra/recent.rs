//! A set of a limited number of keys, from which the one that was used longest ago has to go.
use std::collections::{BTreeMap, HashMap};

/// Keys in the order of their last uses.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    limit: usize,
    uses: u64,
    /// The last use of each key, and the key of each last use.
    last: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

/// The effect of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The key was there.
    Hit,
    /// It came, and another one may have gone.
    Miss {
        /// The one that has gone.
        gone: Option<u64>,
    },
}

impl Recent {
    /// A set of up to `limit` keys: 1 at least.
    pub(crate) fn new(limit: usize) -> Self {
        let (last, order) = (HashMap::new(), BTreeMap::new());
        Self { limit: limit.max(1), uses: 0, last, order }
    }

    pub(crate) fn has(&self, key: u64) -> bool {
        self.last.contains_key(&key)
    }

    /// Uses a key, which is the most recent one then.
    pub(crate) fn touch(&mut self, key: u64) -> Use {
        self.uses += 1;
        let before = self.last.insert(key, self.uses);
        self.order.insert(self.uses, key);
        if let Some(before) = before {
            self.order.remove(&before);
            return Use::Hit;
        }
        let gone = if self.last.len() > self.limit { self.order.pop_first() } else { None };
        let gone = gone.map(|(_, key)| key);
        if let Some(key) = gone {
            self.last.remove(&key);
        }
        Use::Miss { gone }
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: u64) {
        if let Some(last) = self.last.remove(&key) {
            self.order.remove(&last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_used_longest_ago_goes() {
        let mut set = Recent::new(2);
        assert_eq!(set.touch(1), Use::Miss { gone: None });
        assert_eq!(set.touch(2), Use::Miss { gone: None });
        assert_eq!(set.touch(1), Use::Hit);
        assert_eq!(set.touch(3), Use::Miss { gone: Some(2) });
        assert!(set.has(1) && !set.has(2));
        set.remove(1);
        assert_eq!(set.touch(4), Use::Miss { gone: None });
    }
}
