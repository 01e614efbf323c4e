//! Prints the published numbers of the sources beside ours, as a page of Markdown.
//!
//! `cargo run --release -p ayre-sim --example evidence [packets]`
use ayre_sim::evidence::{Check, Row, UNCHECKED, Value, checks, rows};
use std::collections::HashMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packets = std::env::args().nth(1).map_or(Ok(400_000), |count| count.parse())?;
    let rows = rows();
    let checks: HashMap<_, _> = checks().into_iter().map(|check| (check.id, check)).collect();
    println!("# Evidence\n\n{INTRODUCTION}");
    println!("| row | source | quantity | published | ours | deviation | verdict | note |");
    println!("|---|---|---|---|---|---|---|---|");
    let (mut agree, mut differ) = (0, 0);
    for row in rows.iter().filter(|row| row.role.is_judged()) {
        let Some(check) = checks.get(row.id) else { continue };
        let values = check.run(packets);
        if values.iter().all(Value::is_good) {
            agree += 1;
        } else {
            differ += 1;
        }
        println!("{}", line(row, check, &values));
    }
    let judged = rows.iter().filter(|row| row.role.is_judged()).count();
    println!("\nOf {judged} rows that can be judged, {agree} agree and {differ} do not.");
    println!("The other {} have no check:\n", judged - agree - differ);
    println!("| row | quantity | published | reason |\n|---|---|---|---|");
    for row in &rows {
        if let Some((_, reason)) = UNCHECKED.iter().find(|(id, _)| *id == row.id) {
            println!("| {} | {} | {} | {reason} |", row.id, row.quantity, row.value);
        }
    }
    Ok(())
}

const INTRODUCTION: &str = "The numbers that the sources published, and those of the simulator. \
`make evidence` writes this page. The table of targets is in `sim/evidence/targets.md`; a row \
never takes its own value as an input. An interval is that of 95 % confidence over five seeds.\n\n\
Sources leave gaps. A number that a model needs and its source does not give stands in the model, \
called *reconstructed*, with the reason for its value. Those who chose it knew the published \
numbers. So trust a number of several rows that follows from one choice more than a single row, \
and read the notes.\n";

fn line(row: &Row, check: &Check, values: &[Value]) -> String {
    let good = values.iter().all(Value::is_good);
    let ours: Vec<_> = values.iter().map(show).collect();
    let deviations: Vec<_> = values.iter().map(deviation).collect();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} |",
        row.id,
        row.source,
        row.quantity,
        row.value,
        ours.join(" ; "),
        deviations.join(" ; "),
        if good { "agrees" } else { "**differs**" },
        check.note,
    )
}

fn show(value: &Value) -> String {
    let number = |number: f64| {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if value.half_width > 0.0 {
        format!("{} ± {}", number(value.ours), number(value.half_width))
    } else {
        number(value.ours)
    }
}

/// How far ours is from the middle of the values that agree, or the range where it is wide.
fn deviation(value: &Value) -> String {
    let (least, most) = value.agrees;
    let center = f64::midpoint(least, most);
    if (value.ours - center).abs() < 1e-6 {
        return "0".into();
    }
    if least <= 0.0 || most > 1.3 * least {
        return format!("{least:.1} to {most:.1}");
    }
    let share = 100.0 * (value.ours / center - 1.0);
    format!("{share:+.1} %")
}
