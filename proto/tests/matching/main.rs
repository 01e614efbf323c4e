//! Matching: what spec/45 says, rule by rule, and against vectors that are scanned in order.
mod budget;
mod oracle;
mod pair;
mod random;
mod rules;
mod sizes;
