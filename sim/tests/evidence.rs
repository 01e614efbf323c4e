//! The published numbers of the sources: every row that has a check is judged.
#[path = "../examples/evidence/page/mod.rs"]
mod page;

use ayre_sim::evidence::{UNCHECKED, checks, rows};
use page::{Evidence, PACKETS, Verdict, html, markdown};
use std::collections::HashSet;

/// Rows that do not agree, each with a reason in its check, in the order of the table.
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
    "GR-T5.4-P3-9-bw",
    "GR-T5.4-P4-9-lat",
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
fn ours_agree_with_the_published_numbers_and_pages_are_those_that_the_code_makes() {
    let evidence = Evidence::compute(PACKETS);
    let differ: Vec<_> =
        evidence.lines.iter().filter(|line| line.verdict == Verdict::Differs).collect();
    for line in &differ {
        assert!(!line.note.is_empty(), "{} gives no reason: {}", line.row.id, line.ours());
    }
    assert_eq!(differ.iter().map(|line| line.row.id).collect::<Vec<_>>(), KNOWN);
    let pages = [
        (include_str!("../../docs/evidence.md"), markdown::page(&evidence)),
        (include_str!("../../docs/evidence.html"), html::page(&evidence)),
    ];
    for (kept, made) in pages {
        for (kept, made) in kept.lines().zip(made.lines()) {
            assert_eq!(kept, made, "run `make evidence`");
        }
        assert_eq!(kept.len(), made.len(), "run `make evidence`");
        assert!(kept.len() < 200 << 10, "{} B", kept.len());
    }
}

#[test]
fn every_row_has_a_place_on_the_page() {
    let page = include_str!("../../docs/evidence.html");
    for row in rows() {
        let place = format!("<tr id=\"{}\">", row.id);
        assert_eq!(page.matches(&place).count(), 1, "{}", row.id);
        assert!(html::SOURCES.iter().any(|(prefix, _)| row.id.starts_with(prefix)), "{}", row.id);
    }
    // It fetches nothing.
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("url("));
}
