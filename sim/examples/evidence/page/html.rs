//! The page for a browser: one file that fetches nothing.
use super::{Evidence, Line, Verdict, drawing};
use std::fmt::Write;

/// How the names of a document's rows begin, and its title.
pub(crate) const SOURCES: [(&str, &str); 5] = [
    ("EX-", "EXTOLL, thesis"),
    ("FO-", "FORTH, prototype of a network interface and switch"),
    ("DE-", "DART, hybrid deposit model"),
    ("GR-", "GRIM, thesis"),
    ("WH-", "WHTRA, workshop on HyperTransport"),
];

const INTRODUCTION: [&str; 3] = [
    "The numbers that five sources published, and those of the simulator. A row never takes its \
     own value as an input. An interval (±) is that of 95 % confidence over five seeds.",
    "Sources leave gaps. A number that a model needs and its source does not give stands in the \
     model, called reconstructed, with the reason for its value. Those who chose it knew the \
     published numbers. So trust a number of several rows that follows from one choice more than a \
     single row, and read the notes.",
    "In the drawings, a row has a column, and each of its numbers a mark: how far ours is from the \
     middle of the values that agree, in halves of their range. The band has all that agree: ours \
     are circles within it, and diamonds beyond. Triangles point to what lies beyond the drawing.",
];

/// Colours of `ayre sim`'s pages, in light and dark surroundings.
const COLOURS: &str = "\
:root { --paper: #fff; --ink: #262626; --rule: #dfdfdf; --limit: #757575; --blue: #0072b2; \
--good: #007353; --bad: #b01c3c; --band: #d9efe6; }
@media (prefers-color-scheme: dark) { :root { --paper: #161616; --ink: #dedede; --rule: #3a3a3a; \
--limit: #a6a6a6; --blue: #5cb8ee; --good: #35cfa2; --bad: #ff8095; --band: #173d31; } }
";

const STYLE: &str = "\
a { color: var(--blue); }
th, td { vertical-align: top; }
td { white-space: normal; min-width: 6rem; }
td:first-child { white-space: nowrap; }
td:last-child { min-width: 18rem; }
tr:target { background: var(--band); }
.good, .bad { font-weight: 600; white-space: nowrap; }
td.good { color: var(--good); }
td.bad { color: var(--bad); }
.place { color: var(--limit); }
svg { display: block; }
svg text { font-size: 11px; fill: var(--ink); text-anchor: end; }
svg .band { fill: var(--band); }
svg .tick { stroke: var(--rule); }
svg .good { fill: var(--good); }
svg .bad { fill: var(--bad); }
svg .interval { stroke: currentColor; }
";

pub(crate) fn page(evidence: &Evidence) -> String {
    let mut body = "<h1>Evidence</h1>\n".to_owned();
    body += &counts(evidence);
    for paragraph in INTRODUCTION {
        let _ = writeln!(body, "<p>{paragraph}</p>");
    }
    for (prefix, title) in SOURCES {
        body += &source(prefix, title, &of_source(evidence, prefix));
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <title>Evidence: published numbers beside ours</title>\n\
         <style>\n{COLOURS}{}{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <footer><p>Written by <code>make evidence</code> from \
         <code>sim/evidence/targets.md</code>.</p></footer>\n</body>\n</html>\n",
        include_str!("../../../../cli/src/page/style.css"),
    )
}

fn of_source<'a>(evidence: &'a Evidence, prefix: &str) -> Vec<&'a Line> {
    evidence.lines.iter().filter(|line| line.row.id.starts_with(prefix)).collect()
}

/// How many rows of each source came out how, and the names of those that differ.
fn counts(evidence: &Evidence) -> String {
    const VERDICTS: [Verdict; 5] =
        [Verdict::Agrees, Verdict::Differs, Verdict::Unchecked, Verdict::Input, Verdict::NotJudged];
    let [agree, differ, unchecked, ..] = VERDICTS.map(|verdict| evidence.count(verdict));
    let mut counts = format!(
        "<p>Of {} rows that can be judged, <strong>{agree} agree</strong> and {differ} differ; \
         {unchecked} have no check.</p>\n<div class=\"wide\"><table>\n<thead><tr><th>source</th>",
        evidence.judged()
    );
    for verdict in VERDICTS {
        let _ = write!(counts, "<th>{}</th>", verdict.word());
    }
    counts += "</tr></thead>\n<tbody>\n";
    for (prefix, title) in SOURCES {
        let _ = write!(counts, "<tr><td><a href=\"#{}\">{title}</a></td>", &prefix[..2]);
        let lines = of_source(evidence, prefix);
        for verdict in VERDICTS {
            let count = lines.iter().filter(|line| line.verdict == verdict).count();
            let _ = write!(counts, "<td>{count}</td>");
        }
        counts += "</tr>\n";
    }
    counts += "</tbody>\n</table></div>\n<p>Those that differ:";
    for line in evidence.lines.iter().filter(|line| line.verdict == Verdict::Differs) {
        let _ = write!(counts, " <a href=\"#{0}\">{0}</a>", line.row.id);
    }
    counts + ".</p>\n"
}

fn source(prefix: &str, title: &str, lines: &[&Line]) -> String {
    let some = |wanted: &[Verdict]| -> Vec<_> {
        lines.iter().copied().filter(|line| wanted.contains(&line.verdict)).collect()
    };
    let computed = some(&[Verdict::Agrees, Verdict::Differs]);
    let named = format!("Deviations of {title}, in tolerances");
    let drawing = drawing::svg(&named, &computed);
    let mut source = format!(
        "<h2 id=\"{}\">{title}</h2>\n<div class=\"wide\">\n{drawing}</div>\n",
        &prefix[..2]
    );
    source += &table(&["ours", "deviation", "verdict", "note"], &computed, |line| {
        let class = if line.verdict == Verdict::Agrees { "good" } else { "bad" };
        format!(
            "<td>{}</td><td>{}</td><td class=\"{class}\">{}</td><td>{}</td>",
            line.ours(),
            line.deviations(),
            line.verdict.word(),
            escaped(line.note),
        )
    });
    for (verdict, summary, head) in [
        (Verdict::Unchecked, "Rows without a check", "reason"),
        (Verdict::Input, "Inputs", "verdict"),
        (Verdict::NotJudged, "Rows that are not judged", "how"),
    ] {
        let lines = some(&[verdict]);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(source, "<details><summary>{summary} ({})</summary>", lines.len());
        source += &table(&[head], &lines, |line| {
            let told = match verdict {
                Verdict::Unchecked => line.note,
                Verdict::Input => verdict.word(),
                _ => line.row.tolerance,
            };
            format!("<td>{}</td>", escaped(told))
        });
        source += "</details>\n";
    }
    source
}

/// Rows as published, and further cells of each.
fn table(heads: &[&str], lines: &[&Line], cells: impl Fn(&Line) -> String) -> String {
    let mut table = "<div class=\"wide\"><table>\n<thead><tr>".to_owned();
    for head in ["row", "quantity", "conditions", "published"].iter().chain(heads) {
        let _ = write!(table, "<th>{head}</th>");
    }
    table += "</tr></thead>\n<tbody>\n";
    for line in lines {
        let row = &line.row;
        let [place, quantity, conditions, value] =
            [row.source, row.quantity, row.conditions, row.value].map(escaped);
        let _ = writeln!(
            table,
            "<tr id=\"{0}\"><td><a href=\"#{0}\">{0}</a><br/><span class=\"place\">{place}</span>\
             </td><td>{quantity}</td><td>{conditions}</td><td>{value}</td>{1}</tr>",
            row.id,
            cells(line)
        );
    }
    table + "</tbody>\n</table></div>\n"
}

/// Text in the form that it has between tags or in quotes.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
