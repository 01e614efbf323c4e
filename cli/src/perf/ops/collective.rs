//! Collectives of all ranks, each begun by everybody at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use ayre::Port;
use ayre::active::Messenger;
use ayre::collective::Combine;
use ayre::collective::Group;

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::{Label, labelled};

/// The group of all ranks, which several cases use.
pub(crate) struct Everybody {
    messenger: Messenger<()>,
    all: Group,
}

impl Everybody {
    /// Joins the job with a port of its own. Collective.
    pub(crate) fn join() -> Result<Rc<RefCell<Self>>> {
        let mut messenger = Messenger::new(Port::join()?);
        let all = messenger.collectives().group_of_all("all")?;
        Ok(Rc::new(RefCell::new(Self { messenger, all })))
    }
}

/// A barrier, or an allreduce of a number of bytes.
pub(crate) struct Together {
    pub(crate) label: Label,
    pub(crate) everybody: Rc<RefCell<Everybody>>,
    pub(crate) values: Vec<u64>,
}

impl Case for Together {
    labelled!();

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.values = vec![1; size / 8];
        Ok(())
    }

    fn run(&mut self, _side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let Everybody { messenger, all } = &mut *self.everybody.borrow_mut();
        let start = Instant::now();
        for _ in 0..iterations {
            if self.values.is_empty() {
                messenger.collectives().barrier(&mut (), *all)?;
            } else {
                messenger.collectives().allreduce(&mut (), *all, Combine::Max, &mut self.values)?;
            }
        }
        Ok(start.elapsed())
    }
}
