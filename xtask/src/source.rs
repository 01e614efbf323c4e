//! A Rust file as the checks see it: its tokens, and each line split into code and comment.

use std::ops::Range;

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

use crate::finding::Finding;
use crate::rules;

/// A line, split.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The line as it stands.
    pub(crate) raw: String,
    /// Its code, with every literal replaced by underscores.
    pub(crate) code: String,
    /// Its comment, doc comments included, with the slashes.
    pub(crate) comment: String,
    /// Whether the comment is a doc comment.
    pub(crate) is_doc: bool,
}

impl Line {
    /// Whether there is a comment and nothing else.
    pub(crate) fn is_only_comment(&self) -> bool {
        self.code.is_empty() && !self.comment.is_empty()
    }

    /// The comment without its slashes and stars.
    pub(crate) fn comment_text(&self) -> &str {
        self.comment.trim_start_matches(['/', '*', '!']).trim_end_matches(['*', '/']).trim()
    }
}

/// A Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) tokens: TokenStream,
    pub(crate) lines: Vec<Line>,
}

impl Source {
    /// Splits `text` into tokens and lines.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, Finding> {
        let tokens: TokenStream = text.parse().map_err(|error: LexError| {
            Finding::new(path, error.span().start().line, format!("is not Rust: {error}"))
        })?;
        let mut kinds = vec![Kind::Gap; text.len()];
        paint(&tokens, text, &mut kinds);
        Ok(Self { path: path.to_owned(), tokens, lines: split(text, &kinds) })
    }

    /// The line with the given number; numbers start at 1.
    pub(crate) fn line(&self, number: usize) -> &Line {
        &self.lines[number - 1]
    }

    /// Whether a tool wrote the file.
    pub(crate) fn is_generated(&self) -> bool {
        self.lines.first().is_some_and(|line| line.raw.contains(rules::GENERATED))
    }

    /// The first line of the comment block that `number` belongs to.
    pub(crate) fn comment_block_start(&self, number: usize) -> usize {
        let mut start = number;
        while start > 1 && self.line(start - 1).is_only_comment() {
            start -= 1;
        }
        start
    }
}

/// The kind of a byte of a file; a gap is white space or a plain comment.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Gap,
    Code,
    Literal,
    Doc,
}

/// Notes in `kinds` which bytes of `text` the tokens cover.
fn paint(tokens: &TokenStream, text: &str, kinds: &mut [Kind]) {
    for tree in tokens.clone() {
        match tree {
            TokenTree::Group(group) => {
                if group.delimiter() != Delimiter::None {
                    kinds[group.span_open().byte_range()].fill(Kind::Code);
                    kinds[group.span_close().byte_range()].fill(Kind::Code);
                }
                paint(&group.stream(), text, kinds);
            }
            TokenTree::Literal(literal) => {
                mark(literal.span().byte_range(), Kind::Literal, text, kinds);
            }
            tree => mark(tree.span().byte_range(), Kind::Code, text, kinds),
        }
    }
}

/// Marks one token: those made of a doc comment all cover the comment as a whole.
fn mark(range: Range<usize>, kind: Kind, text: &str, kinds: &mut [Kind]) {
    let token = &text[range.clone()];
    let is_doc = token.starts_with("//") || token.starts_with("/*");
    kinds[range].fill(if is_doc { Kind::Doc } else { kind });
}

fn split(text: &str, kinds: &[Kind]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for raw in text.split('\n') {
        let mut line = Line { raw: raw.to_owned(), ..Line::default() };
        for (offset, character) in raw.char_indices() {
            let kind = kinds[start + offset];
            line.is_doc |= kind == Kind::Doc;
            line.code.push(match kind {
                Kind::Code => character,
                Kind::Literal => '_',
                Kind::Gap | Kind::Doc => ' ',
            });
            let is_comment = matches!(kind, Kind::Gap | Kind::Doc);
            line.comment.push(if is_comment { character } else { ' ' });
        }
        line.code = line.code.trim().to_owned();
        line.comment = line.comment.trim().to_owned();
        lines.push(line);
        start += raw.len() + 1;
    }
    // The newline at the end of the file ends the last line and begins none.
    if lines.last().is_some_and(|line| line.raw.is_empty()) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Source {
        Source::parse("a.rs", text).unwrap()
    }

    #[test]
    fn code_and_comments_part() {
        let source = parse("//! Doc.\n\nlet a = \"// b\"; // c\n/* d */ e();\n");
        let [doc, blank, both, block] = &source.lines[..] else { panic!("four lines") };
        assert!(doc.is_doc && doc.is_only_comment());
        assert_eq!(doc.comment_text(), "Doc.");
        assert!(blank.code.is_empty() && blank.comment.is_empty());
        assert_eq!(both.code, "let a = ______;");
        assert_eq!(both.comment, "// c");
        assert!(!both.is_doc);
        assert_eq!((block.code.as_str(), block.comment_text()), ("e();", "d"));
    }

    #[test]
    fn literals_over_several_lines_are_code() {
        let source = parse("let a = r#\"x\n// y\n\"#; // ä\n");
        assert_eq!(source.line(2).code, "____");
        assert_eq!(source.line(2).comment, "");
        assert_eq!(source.line(3).comment_text(), "ä");
    }

    #[test]
    fn outer_docs_and_doc_attributes() {
        let source = parse("/// Outer\n/// docs.\n#[doc = \"x\"]\nfn a() {}\n");
        assert!(source.line(1).is_doc && source.line(2).is_doc && !source.line(3).is_doc);
        assert_eq!(source.line(2).comment_text(), "docs.");
        assert_eq!(source.comment_block_start(2), 1);
        assert_eq!(source.line(4).code, "fn a() {}");
    }
}
