//! The things that the checks look for in a token stream: functions, paths, unsafe sites and test
//! code.
//!
//! Working on tokens, not on a syntax tree, sees into the arguments of macros as well.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// A function with or without a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first_line: usize,
    pub(crate) last_line: usize,
    pub(crate) parameters: usize,
    /// Whether it is `extern "C"`.
    pub(crate) is_foreign: bool,
}

/// A path such as `std::sync::Arc`; the nested ones of a `use` are spelled out.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) is_import: bool,
    /// Of a `pub use`: under which name others find it here.
    pub(crate) public_name: Option<String>,
}

impl Path {
    /// Whether the path begins with these segments.
    pub(crate) fn starts_with(&self, segments: &[&str]) -> bool {
        self.segments.len() >= segments.len()
            && self.segments.iter().zip(segments).all(|(have, want)| have == want)
    }

    /// Whether these segments occur in the path one after the other.
    pub(crate) fn contains(&self, segments: &[&str]) -> bool {
        self.segments.windows(segments.len()).any(|window| window == segments)
    }
}

/// The item that an `unsafe` introduces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UnsafeKind {
    Block,
    Impl,
    Trait,
    Function,
    Extern,
    Attribute,
    /// The type of a function pointer.
    Pointer,
}

/// An `unsafe`.
#[derive(Debug, PartialEq)]
pub(crate) struct UnsafeSite {
    pub(crate) line: usize,
    pub(crate) kind: UnsafeKind,
}

/// All functions, nested ones included.
pub(crate) fn functions(tokens: &TokenStream) -> Vec<Function> {
    let mut found = Vec::new();
    each_level(tokens, &mut |trees| {
        let starts = (0..trees.len()).filter(|&at| is_ident(trees.get(at), "fn"));
        found.extend(starts.filter_map(|at| {
            let is_foreign = at >= 2 && is_ident(trees.get(at - 2), "extern");
            function(&trees[at..]).map(|function| Function { is_foreign, ..function })
        }));
    });
    found
}

/// All paths, those of one segment included.
pub(crate) fn paths(tokens: &TokenStream) -> Vec<Path> {
    let mut found = Vec::new();
    collect_paths(tokens, &[], Import::None, &mut found);
    found
}

/// The names of modules in files of their own that a test attribute stands before.
pub(crate) fn test_modules(tokens: &TokenStream) -> Vec<String> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut found = Vec::new();
    let mut is_test = false;
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) if is_punct(at.checked_sub(1).map(|at| &trees[at]), '#') => {
                is_test |= is_test_attribute(group);
            }
            TokenTree::Ident(ident) if ident == "mod" => {
                if let (true, Some(name)) = (is_test, trees.get(at + 1))
                    && is_punct(trees.get(at + 2), ';')
                {
                    found.push(name.to_string());
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => is_test = false,
            _ => {}
        }
    }
    found
}

/// All uses of `unsafe`.
pub(crate) fn unsafe_sites(tokens: &TokenStream) -> Vec<UnsafeSite> {
    let mut found = Vec::new();
    each_level(tokens, &mut |trees| {
        for (at, tree) in trees.iter().enumerate() {
            if is_ident(Some(tree), "unsafe") {
                let line = tree.span().start().line;
                found.push(UnsafeSite { line, kind: unsafe_kind(&trees[at + 1..]) });
            }
        }
    });
    found
}

/// First and last line of each item under `#[test]` or `#[cfg(test)]`, attributes included.
pub(crate) fn test_spans(tokens: &TokenStream) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    collect_test_spans(tokens, &mut found);
    found
}

/// Calls `look` with the tokens of every group, outermost first.
fn each_level(tokens: &TokenStream, look: &mut dyn FnMut(&[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    look(&trees);
    for tree in &trees {
        if let TokenTree::Group(group) = tree {
            each_level(&group.stream(), look);
        }
    }
}

/// Reads the function whose `fn` comes first in `trees`; the type of a pointer is none.
fn function(trees: &[TokenTree]) -> Option<Function> {
    if is_group(trees.get(1), Delimiter::Parenthesis) {
        return None;
    }
    let name = trees[1..].iter().find_map(|tree| match tree {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    })?;
    let first_line = trees[0].span().start().line;
    let (at, parameters) = find_outside_angles(trees, Delimiter::Parenthesis)?;
    let body = find_outside_angles(&trees[at + 1..], Delimiter::Brace);
    let last = body.map_or(parameters, |(_, body)| body);
    Some(Function {
        name,
        first_line,
        last_line: last.span_close().end().line,
        parameters: count_parameters(parameters),
        is_foreign: false,
    })
}

/// The first group of this kind outside of `<` and `>`, unless a semicolon comes before it.
fn find_outside_angles(trees: &[TokenTree], delimiter: Delimiter) -> Option<(usize, &Group)> {
    let mut depth = AngleDepth::default();
    for (at, tree) in trees.iter().enumerate() {
        depth.pass(tree);
        match tree {
            TokenTree::Group(group) if depth.is_zero() && group.delimiter() == delimiter => {
                return Some((at, group));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            _ => {}
        }
    }
    None
}

fn count_parameters(group: &Group) -> usize {
    let mut depth = AngleDepth::default();
    let mut count = 0;
    let mut is_between = true;
    for tree in group.stream() {
        depth.pass(&tree);
        if depth.is_zero() && is_punct(Some(&tree), ',') {
            is_between = true;
        } else if is_between {
            count += 1;
            is_between = false;
        }
    }
    count
}

/// How many `<` are open; the `>` of an arrow closes none.
#[derive(Default)]
struct AngleDepth {
    depth: usize,
    is_arrow: bool,
}

impl AngleDepth {
    fn pass(&mut self, tree: &TokenTree) {
        let TokenTree::Punct(punct) = tree else {
            self.is_arrow = false;
            return;
        };
        match punct.as_char() {
            '<' => self.depth += 1,
            '>' if !self.is_arrow => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.is_arrow = punct.as_char() == '-' && punct.spacing() == Spacing::Joint;
    }

    fn is_zero(&self) -> bool {
        self.depth == 0
    }
}

/// Whether paths are those of a `use`, and of which.
#[derive(Clone, Copy, PartialEq)]
enum Import {
    None,
    Private,
    Public,
}

impl Import {
    /// Of the `use` that stands at a place: `pub` may have a group of its own.
    fn at(trees: &[TokenTree], at: usize) -> Self {
        let before = |steps| at.checked_sub(steps).and_then(|at| trees.get(at));
        let is_group = is_group(before(1), Delimiter::Parenthesis);
        let is_public = is_ident(before(if is_group { 2 } else { 1 }), "pub");
        if is_public { Self::Public } else { Self::Private }
    }
}

fn collect_paths(tokens: &TokenStream, prefix: &[String], within: Import, found: &mut Vec<Path>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut import = within;
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(ident) if ident == "use" => import = Import::at(&trees, at - 1),
            TokenTree::Punct(punct) if punct.as_char() == ';' => import = Import::None,
            TokenTree::Group(group) => {
                import = within;
                collect_paths(&group.stream(), &[], Import::None, found);
            }
            TokenTree::Ident(ident) => {
                let mut segments = prefix.to_vec();
                segments.push(ident.to_string());
                let mut line = ident.span().start().line;
                let mut is_whole = true;
                while is_punct(trees.get(at), ':') && is_punct(trees.get(at + 1), ':') {
                    match trees.get(at + 2) {
                        Some(TokenTree::Ident(next)) => {
                            segments.push(next.to_string());
                            line = next.span().start().line;
                        }
                        Some(TokenTree::Group(group)) if import != Import::None => {
                            collect_paths(&group.stream(), &segments, import, found);
                            is_whole = false;
                        }
                        _ => break,
                    }
                    at += 3;
                }
                if is_whole {
                    let is_import = import != Import::None;
                    let mut name = segments.last().cloned();
                    if is_import && is_ident(trees.get(at), "as") {
                        name = trees.get(at + 1).map(ToString::to_string);
                        at += 2;
                    }
                    let public_name = name.filter(|_| import == Import::Public);
                    found.push(Path { segments, line, is_import, public_name });
                }
            }
            _ => {}
        }
    }
}

fn unsafe_kind(after: &[TokenTree]) -> UnsafeKind {
    // An ABI may stand between `extern` and what it applies to.
    let mut rest = after;
    if is_ident(rest.first(), "extern") {
        rest = &rest[1..];
        if matches!(rest.first(), Some(TokenTree::Literal(_))) {
            rest = &rest[1..];
        }
        if is_group(rest.first(), Delimiter::Brace) {
            return UnsafeKind::Extern;
        }
    }
    match rest.first() {
        Some(TokenTree::Ident(ident)) if ident == "impl" => UnsafeKind::Impl,
        Some(TokenTree::Ident(ident)) if ident == "trait" => UnsafeKind::Trait,
        Some(TokenTree::Ident(_)) if is_group(rest.get(1), Delimiter::Parenthesis) => {
            UnsafeKind::Pointer
        }
        Some(TokenTree::Ident(_)) => UnsafeKind::Function,
        tree if is_group(tree, Delimiter::Parenthesis) => UnsafeKind::Attribute,
        _ => UnsafeKind::Block,
    }
}

fn collect_test_spans(tokens: &TokenStream, found: &mut Vec<(usize, usize)>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut start = None;
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == ';' => start = None,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let is_inner = at > 0 && is_punct(trees.get(at - 1), '!');
                let is_outer = at > 0 && is_punct(trees.get(at - 1), '#');
                if is_inner && is_test_attribute(group) {
                    found.push((1, usize::MAX));
                } else if is_outer && is_test_attribute(group) {
                    start = start.or_else(|| Some(group.span_open().start().line));
                }
            }
            TokenTree::Group(group) => match (group.delimiter(), start) {
                (Delimiter::Brace, Some(first)) => {
                    found.push((first, group.span_close().end().line));
                    start = None;
                }
                _ => collect_test_spans(&group.stream(), found),
            },
            _ => {}
        }
    }
}

/// Whether an attribute is `test`, ends in `::test` or is a `cfg` that asks for tests.
fn is_test_attribute(group: &Group) -> bool {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    match (trees.first(), trees.get(1)) {
        (Some(TokenTree::Ident(ident)), Some(TokenTree::Group(condition))) if ident == "cfg" => {
            asks_for_test(condition)
        }
        _ => is_ident(trees.last(), "test"),
    }
}

fn asks_for_test(condition: &Group) -> bool {
    let trees: Vec<TokenTree> = condition.stream().into_iter().collect();
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Ident(ident) => ident == "test",
        TokenTree::Group(group) if at > 0 && !is_ident(trees.get(at - 1), "not") => {
            asks_for_test(group)
        }
        _ => false,
    })
}

fn is_ident(tree: Option<&TokenTree>, name: &str) -> bool {
    matches!(tree, Some(TokenTree::Ident(ident)) if ident == name)
}

fn is_punct(tree: Option<&TokenTree>, character: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn is_group(tree: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(tree, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> TokenStream {
        text.parse().unwrap()
    }

    fn shape(text: &str) -> Vec<(String, usize, usize, usize)> {
        let all = functions(&tokens(text)).into_iter();
        all.map(|f| (f.name, f.first_line, f.last_line, f.parameters)).collect()
    }

    #[test]
    fn functions_are_measured() {
        let text = "fn a() {\n}\nimpl T { fn b<F: Fn(u8, u8) -> u8>(&self, f: F, m: Map<A, B>,)\n\
                    -> Fill<{ N }>\nwhere F: X {\n} }\ntrait U { fn c(x: u8); fn d() {} }";
        let want = [("a", 1, 2, 0), ("b", 3, 6, 3), ("c", 7, 7, 1), ("d", 7, 7, 0)];
        assert_eq!(shape(text), want.map(|(name, a, b, n)| (name.to_owned(), a, b, n)));
    }

    #[test]
    fn functions_in_macros_are_seen_and_pointers_are_not() {
        assert_eq!(shape("m! { fn $name(a: u8) {} }"), [("name".to_owned(), 1, 1, 1)]);
        assert_eq!(shape("type A = fn(u8) -> u8; type B = unsafe extern \"C\" fn(u8);"), []);
    }

    #[test]
    fn paths_are_spelled_out() {
        let found =
            paths(&tokens("use std::{sync::{self, atomic::*}, fmt as f};\nf::Debug::<u8>()"));
        let has = |path: &[&str]| found.iter().any(|found| found.segments == path);
        assert!(has(&["std", "sync", "self"]) && has(&["std", "fmt"]) && has(&["f", "Debug"]));
        assert!(found.iter().all(|path| !path.contains(&["f", "Debug"]) || path.line == 2));
        let call = paths(&tokens("x.store(1, Ordering::Release)"));
        assert!(
            call.iter().any(|path| path.starts_with(&["Ordering", "Release"]) && !path.is_import)
        );
    }

    #[test]
    fn glob_imports_keep_their_prefix() {
        let found = paths(&tokens("use std::sync::atomic::*; use a::{b::atomic::*};"));
        assert!(found.iter().any(|path| path.segments == ["std", "sync", "atomic"]));
        assert!(found.iter().any(|path| path.segments == ["a", "b", "atomic"] && path.is_import));
    }

    #[test]
    fn unsafe_sites_are_told_apart() {
        let text = "unsafe { } unsafe impl A for B {} unsafe trait C {} unsafe fn d() {}\n\
                    unsafe extern \"C\" { } unsafe extern \"C\" fn e() {} type F = unsafe fn(u8);\n\
                    #[unsafe(no_mangle)] fn g() {}";
        let kinds: Vec<_> = unsafe_sites(&tokens(text)).iter().map(|site| site.kind).collect();
        use UnsafeKind::*;
        assert_eq!(kinds, [Block, Impl, Trait, Function, Extern, Function, Pointer, Attribute]);
    }

    #[test]
    fn test_code_is_found() {
        let text = "fn a() {}\n#[test]\nfn b() {\n}\n#[cfg(all(test, unix))]\nmod c {\n}\n\
                    #[cfg(not(test))]\nmod d { #[test] fn e() {} }\n\
                    #[cfg(test)]\nmod f;\nfn g() {}";
        assert_eq!(test_spans(&tokens(text)), [(2, 4), (5, 7), (9, 9)]);
        assert_eq!(test_spans(&tokens("#![cfg(test)]\nfn a() {}")), [(1, usize::MAX)]);
    }
}
