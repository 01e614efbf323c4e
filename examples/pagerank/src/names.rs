//! Numbers for names.

use std::collections::HashMap;

use anyhow::{Result, ensure};

/// Names numbered from 0 in the order in which they were first met.
#[derive(Default)]
pub(crate) struct Names {
    ids: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

impl Names {
    /// The number of `name`, which is new unless the name was met before.
    pub(crate) fn id(&mut self, name: &str) -> Result<u32> {
        if let Some(&id) = self.ids.get(name) {
            return Ok(id);
        }
        // The number of names has to fit as well.
        ensure!(self.list.len() < u32::MAX as usize, "more than {} names", u32::MAX);
        let id = self.list.len() as u32;
        self.ids.insert(name.into(), id);
        self.list.push(name.into());
        Ok(id)
    }

    /// How many names there are.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// The name that has the number `id`.
    pub(crate) fn get(&self, id: u32) -> &str {
        &self.list[id as usize]
    }

    pub(crate) fn into_list(self) -> Vec<Box<str>> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        let ids: Vec<u32> = ["x", "y", "x", "", "y"].map(|name| names.id(name).unwrap()).into();
        assert_eq!(ids, [0, 1, 0, 2, 1]);
        assert_eq!((names.count(), names.get(1)), (3, "y"));
        assert_eq!(names.into_list(), ["x".into(), "y".into(), "".into()]);
    }
}
