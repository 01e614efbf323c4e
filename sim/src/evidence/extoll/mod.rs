//! Rows of the EXTOLL thesis, by chapter.
mod issue;
mod link;
mod mpi;
mod networks;
mod operations;
mod rates;
mod translation;

use super::Check;
use crate::host::Host;
use crate::time::Time;

/// The host of the measurements.
const HOST: Host = Host::HT400;

pub(super) fn checks() -> Vec<Check> {
    let mut all = translation::checks();
    all.extend(issue::checks());
    all.extend(link::checks());
    all.extend(operations::checks());
    all.extend(rates::checks());
    all.extend(mpi::checks());
    all.extend(networks::checks());
    all
}

fn nanos(time: Time) -> f64 {
    time.nanos()
}
