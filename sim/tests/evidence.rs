//! The published numbers of the sources: every row that has a check is judged.
use ayre_sim::evidence::{UNCHECKED, checks, rows};
use std::collections::HashSet;

/// Rows that do not agree, each with a reason in its check.
const KNOWN: &[&str] = &[
    "EX-5.2.3-miss",
    "EX-5.2.6",
    "EX-5.6-lat",
    "EX-5.6-rmiss",
    "EX-7.3-eff",
    "EX-T7.7-nhalf",
    "EX-F9.6-max",
    "EX-F2.13-lat",
    "FO-F6-80",
    "FO-F8-v3",
    "FO-F9-prop",
    "DE-5-first",
    "GR-F5.4",
    "GR-F5.5-nhalf",
    "GR-F5.8",
    "GR-T5.4-P4-9-lat",
    "GR-T5.4-P3-9-bw",
    "GR-F8.7-rt",
    "GR-F8.8",
    "WH-C-T1-r64",
];

#[test]
fn the_table_has_all_rows() {
    let rows = rows();
    assert_eq!(rows.len(), 260);
    assert_eq!(rows.iter().filter(|row| row.role.is_judged()).count(), 55 + 92 + 32);
    let ids: HashSet<_> = rows.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), rows.len(), "a name is one row's");
}

#[test]
fn every_check_is_a_judged_row_of_the_table() {
    let rows = rows();
    let mut seen = HashSet::new();
    for check in checks() {
        let row = rows.iter().find(|row| row.id == check.id);
        let row = row.unwrap_or_else(|| panic!("{} is no row", check.id));
        assert!(row.role.is_judged(), "{} cannot prove anything", check.id);
        assert!(seen.insert(check.id), "{} is checked twice", check.id);
    }
}

#[test]
fn a_judged_row_has_a_check_or_a_reason_for_having_none() {
    let checks = checks();
    let has_check = |id: &str| checks.iter().any(|check| check.id == id);
    let has_reason = |id: &str| UNCHECKED.iter().any(|(other, _)| *other == id);
    let judged: Vec<_> = rows().into_iter().filter(|row| row.role.is_judged()).collect();
    for row in &judged {
        assert!(has_check(row.id) != has_reason(row.id), "{}", row.id);
    }
    let is_row = |id: &str| judged.iter().any(|row| row.id == id);
    assert!(UNCHECKED.iter().all(|(id, _)| is_row(id)), "each reason belongs to a row");
}

#[test]
fn ours_agree_with_the_published_numbers() {
    let mut failed = Vec::new();
    for check in checks() {
        let values = check.run(60_000);
        assert!(!values.is_empty());
        let good = values.iter().all(|value| value.is_good());
        if !good {
            assert!(!check.note.is_empty(), "{} gives no reason: {values:?}", check.id);
            failed.push(check.id);
        }
    }
    assert_eq!(failed, KNOWN);
}
