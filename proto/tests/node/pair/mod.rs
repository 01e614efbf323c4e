//! Two ports with a mediated connection: initiators and targets at both ends, and the records
//! between them. No lane, no memory file, no thread and no clock.
mod driver;
mod hostile;
mod oracle;
mod port;
mod random;
mod refusals;
mod rules;
mod way;
