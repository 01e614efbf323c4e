//! A chart as a file of its own: one SVG with title, drawing, legend and caption.

use std::fmt::Write;

use anyhow::Result;

use super::canvas::WIDTH;
use super::{Chart, colours, escaped};

/// Units of height for the title, and for each line of the legend and of the caption.
const TITLE: u32 = 56;
const LINE: u32 = 40;
/// Characters of a line of the caption at most.
const CHARACTERS_MAX: usize = 50;
/// Units of width before text, and before the names in the legend.
const LEFT: u32 = 24;
const NAMES: u32 = 104;

impl Chart {
    /// The whole file. It has its own background, so that it is readable on every page.
    pub(crate) fn file(&self, caption: &str) -> Result<String> {
        let Self { drawing, .. } = self;
        let (svg, legend, drawn) = (drawing.svg()?, drawing.legend(), drawing.height());
        let mut down = TITLE + drawn;
        let mut body = svg.replacen("<svg ", &format!("<svg y=\"{TITLE}\" "), 1);
        body += &text(LEFT, 38, &self.title);
        for (mark, name) in &legend {
            let place = format!("<svg x=\"{LEFT}\" y=\"{}\" width=\"60\" height=\"20\" ", down + 8);
            body += &mark.replacen("<svg ", &place, 1);
            body += &text(NAMES, down + 28, name);
            down += LINE;
        }
        for line in wrapped(caption) {
            body += &text(LEFT, down + 28, &line);
            down += LINE;
        }
        let (height, title) = (down + LINE / 2, escaped(&self.title));
        let (style, paper) = (colours::style(), colours::hex(colours::PAPER));
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" font-family=\"sans-serif\" font-size=\"27\">\n<title>{title}</title>\n\
             <style>\n{style}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{paper}\"/>\n{body}</svg>\n"
        ))
    }
}

fn text(x: u32, y: u32, words: &str) -> String {
    let (ink, words) = (colours::hex(colours::INK), escaped(words));
    format!("<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{words}</text>\n")
}

/// Lines of whole words, but of those that are longer than a line.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().flat_map(pieces) {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= CHARACTERS_MAX {
            let _ = write!(line, " {word}");
        } else {
            lines.push(word);
        }
    }
    lines
}

/// A word in parts that a line has room for.
fn pieces(word: &str) -> Vec<String> {
    let characters: Vec<_> = word.chars().collect();
    characters.chunks(CHARACTERS_MAX).map(|part| part.iter().collect()).collect()
}
