//! Hybrid deposit: the machine against an interpreter, the paper's compounds, and hostile messages.
mod compounds;
mod formats;
mod hostile;
mod oracle;
mod place;
mod random;
mod reply;
mod standing;
mod text;
