//! The page of the book.
use super::{Evidence, Line, Verdict};
use std::fmt::Write;

const INTRODUCTION: &str = "The numbers that the sources published, and those of the simulator. \
`make evidence` writes this page, and [one for a browser](evidence.html) with drawings of the \
deviations and the inputs. The table of targets is in `sim/evidence/targets.md`; a row \
never takes its own value as an input. An interval is that of 95 % confidence over five seeds.\n\n\
Sources leave gaps. A number that a model needs and its source does not give stands in the model, \
called *reconstructed*, with the reason for its value. Those who chose it knew the published \
numbers. So trust a number of several rows that follows from one choice more than a single row, \
and read the notes.\n";

pub(crate) fn page(evidence: &Evidence) -> String {
    let mut page = format!("# Evidence\n\n{INTRODUCTION}\n");
    page += "| row | source | quantity | published | ours | deviation | verdict | note |\n";
    page += "|---|---|---|---|---|---|---|---|\n";
    for judged in &evidence.lines {
        if matches!(judged.verdict, Verdict::Agrees | Verdict::Differs) {
            page += &line(judged);
        }
    }
    let [agree, differ, unchecked] =
        [Verdict::Agrees, Verdict::Differs, Verdict::Unchecked].map(|it| evidence.count(it));
    let judged = evidence.judged();
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "\nOf {judged} rows that can be judged, {agree} agree and {differ} do not.\n\
         The other {unchecked} have no check:\n\n\
         | row | quantity | published | reason |\n|---|---|---|---|"
    );
    for Line { row, note, verdict, .. } in &evidence.lines {
        if *verdict == Verdict::Unchecked {
            let _ = writeln!(page, "| {} | {} | {} | {note} |", row.id, row.quantity, row.value);
        }
    }
    page
}

fn line(line: &Line) -> String {
    let row = &line.row;
    let verdict = match line.verdict {
        Verdict::Differs => "**differs**",
        other => other.word(),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {verdict} | {} |\n",
        row.id,
        row.source,
        row.quantity,
        row.value,
        line.ours(),
        line.deviations(),
        line.note,
    )
}
