//! Two ports with a mediated connection: initiators and targets at both ends, and the records
//! between them. No lane, no memory file, no thread and no clock.
pub(crate) mod driver;
mod hostile;
pub(crate) mod oracle;
pub(crate) mod port;
mod random;
pub(crate) mod random_op;
mod refusals;
mod rules;
pub(crate) mod way;
