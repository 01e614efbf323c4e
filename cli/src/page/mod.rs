//! Pages for a browser: sections of text, tables and charts in one file that fetches nothing.
//!
//! A page is XML as well as HTML, so that a parser can tell whether it is whole. Charts are drawn
//! by plotters as SVG whose texts stay texts; their colours are those of light surroundings, and
//! the style sheet exchanges them for others in dark ones.

mod axis;
mod bars;
mod canvas;
mod colours;
mod file;
mod map;
mod plot;
mod stacks;

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub(crate) use self::axis::{Axis, Unit};
pub(crate) use self::bars::{Bar, Bars};
pub(crate) use self::map::{Map, Way};
pub(crate) use self::plot::{Plot, Series, Shown};
pub(crate) use self::stacks::{Stack, Stacks};

/// A page under construction.
pub(crate) struct Page {
    title: String,
    body: String,
}

/// Lines of cells below their heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
}

/// A drawing of any kind.
pub(crate) enum Drawing {
    Plot(Plot),
    Bars(Bars),
    Stacks(Stacks),
    Map(Map),
}

impl Drawing {
    fn svg(&self) -> Result<String> {
        match self {
            Self::Plot(plot) => plot.svg(),
            Self::Bars(bars) => bars.svg(),
            Self::Stacks(stacks) => stacks.svg(),
            Self::Map(map) => map.svg(),
        }
    }

    /// Marks with their names.
    fn legend(&self) -> Vec<(String, String)> {
        match self {
            Self::Plot(plot) => plot.legend(),
            Self::Bars(bars) => bars.legend(),
            Self::Stacks(stacks) => stacks.legend(),
            Self::Map(map) => map.legend(),
        }
    }

    fn height(&self) -> u32 {
        match self {
            Self::Plot(plot) => plot.height(),
            Self::Bars(bars) => bars.height(),
            Self::Stacks(stacks) => stacks.height(),
            Self::Map(map) => map.height(),
        }
    }
}

/// A drawing with what belongs to it.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) drawing: Drawing,
    /// The numbers that are drawn.
    pub(crate) numbers: Table,
}

impl Page {
    /// A page with its title, and a line below that.
    pub(crate) fn new(title: &str, below: &str) -> Self {
        let body =
            format!("<h1>{}</h1>\n<p class=\"below\">{}</p>\n", escaped(title), escaped(below));
        Self { title: title.to_owned(), body }
    }

    /// Begins a section.
    pub(crate) fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(heading));
    }

    /// A paragraph.
    pub(crate) fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escaped(text));
    }

    /// A list of sentences.
    pub(crate) fn list<T: AsRef<str>>(&mut self, items: &[T]) {
        self.body += "<ul>\n";
        for item in items {
            let _ = writeln!(self.body, "<li>{}</li>", escaped(item.as_ref()));
        }
        self.body += "</ul>\n";
    }

    /// Names and what they stand for.
    pub(crate) fn facts<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        facts: impl IntoIterator<Item = (N, V)>,
    ) {
        self.body += "<dl>\n";
        for (name, value) in facts {
            let (name, value) = (escaped(name.as_ref()), escaped(value.as_ref()));
            let _ = writeln!(self.body, "<dt>{name}</dt><dd>{value}</dd>");
        }
        self.body += "</dl>\n";
    }

    /// A table.
    pub(crate) fn table(&mut self, table: &Table) {
        self.body += &table.html();
    }

    /// A table that opens with a click on its summary.
    pub(crate) fn folded(&mut self, summary: &str, table: &Table) {
        self.body += &folded(summary, table);
    }

    /// Charts, beside each other where there is room.
    pub(crate) fn charts(&mut self, charts: &[Chart]) -> Result<()> {
        self.body += "<div class=\"charts\">\n";
        for chart in charts {
            self.body += &chart.html()?;
        }
        self.body += "</div>\n";
        Ok(())
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.html())
            .with_context(|| format!("could not write {}", path.display()))
    }

    /// The whole file.
    pub(crate) fn html(&self) -> String {
        let (title, body) = (escaped(&self.title), &self.body);
        let style = format!("{}\n{}", colours::style(), include_str!("style.css"));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\
             </main>\n<footer>ayre {version}</footer>\n</body>\n</html>\n",
            version = env!("CARGO_PKG_VERSION")
        )
    }
}

/// When, and by which command.
pub(crate) fn made_by() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).ok();
    let now = now.and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default();
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    format!("{}: {}", now.replace('T', " ").replace('Z', " UTC"), shell_words::join(words))
}

impl Table {
    /// A table of these heads without a line.
    pub(crate) fn new<T: AsRef<str>>(heads: impl IntoIterator<Item = T>) -> Self {
        let heads = heads.into_iter().map(|head| head.as_ref().to_owned()).collect();
        Self { heads, lines: vec![] }
    }

    /// As Markdown, with its columns below each other.
    pub(crate) fn markdown(&self) -> String {
        let lines = || [&self.heads].into_iter().chain(&self.lines);
        let width = |column: usize| {
            let cells = lines().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let row = |cells: &[String]| {
            let cells = cells.iter().enumerate();
            let padded = cells.map(|(column, cell)| format!(" {cell:0$} |", width(column)));
            format!("|{}\n", padded.collect::<String>())
        };
        let rule: Vec<_> = (0..self.heads.len()).map(|column| "-".repeat(width(column))).collect();
        let below: String = self.lines.iter().map(|line| row(line)).collect();
        row(&self.heads) + &row(&rule) + &below
    }

    fn html(&self) -> String {
        let mut html = "<div class=\"wide\"><table>\n<thead><tr>".to_owned();
        for head in &self.heads {
            let _ = write!(html, "<th>{}</th>", escaped(head));
        }
        html += "</tr></thead>\n<tbody>\n";
        for line in &self.lines {
            html += "<tr>";
            for cell in line {
                let _ = write!(html, "<td{}>{}</td>", class_of(cell), escaped(cell));
            }
            html += "</tr>\n";
        }
        html + "</tbody>\n</table></div>\n"
    }
}

/// Numbers stand below each other by their last digit.
fn class_of(cell: &str) -> &'static str {
    let is_number = cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    if is_number { " class=\"number\"" } else { "" }
}

fn folded(summary: &str, table: &Table) -> String {
    let summary = escaped(summary);
    format!("<details><summary>{summary}</summary>\n{}</details>\n", table.html())
}

impl Chart {
    fn html(&self) -> Result<String> {
        let (svg, legend) = (self.drawing.svg()?, self.drawing.legend());
        let title = escaped(&self.title);
        // Screen readers say this in place of the drawing.
        let named = format!("<svg role=\"img\" aria-label=\"{title}\" ");
        let svg = svg.replacen("<svg ", &named, 1);
        let mut html = format!("<figure>\n<figcaption>{title}</figcaption>\n{svg}");
        html += "<ul class=\"legend\">";
        for (mark, name) in legend {
            let _ = write!(html, "<li>{mark}{}</li>", escaped(&name));
        }
        Ok(html + "</ul>\n" + &folded("Numbers", &self.numbers) + "</figure>\n")
    }
}

/// Text in the form that it has between tags or in quotes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in canvas::visible(text).chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
