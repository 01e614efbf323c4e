//! Unsafe code: it lives in few folders, and each site carries its argument.

use crate::finding::Finding;
use crate::rules::{UNSAFE_HOMES, is_under};
use crate::source::Source;
use crate::tokens::{self, UnsafeKind, UnsafeSite};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        for site in tokens::unsafe_sites(&source.tokens) {
            if is_name(source, &site) {
                continue;
            }
            let mut report = |what: &str| {
                findings.push(Finding::new(&source.path, site.line, what));
            };
            if !is_under(&source.path, UNSAFE_HOMES) {
                report("unsafe outside its folders (the table is in xtask/src/rules.rs)");
            } else if !is_argued(source, site.line, site.kind) {
                report(match site.kind {
                    UnsafeKind::Function | UnsafeKind::Trait => {
                        "unsafe without a `# Safety` section in its documentation"
                    }
                    _ => "unsafe without a `SAFETY:` comment before it",
                });
            }
        }
    }
}

/// Whether a site only gives a function its name for the linker. If another one has that name, the
/// linker says so, and the function's own code is as safe as before.
fn is_name(source: &Source, site: &UnsafeSite) -> bool {
    site.kind == UnsafeKind::Attribute && source.line(site.line).code.contains("no_mangle")
}

fn is_argued(source: &Source, line: usize, kind: UnsafeKind) -> bool {
    let marks: &[&str] = match kind {
        UnsafeKind::Pointer => return true,
        UnsafeKind::Function | UnsafeKind::Trait => &["# Safety", "SAFETY:"],
        _ => &["SAFETY:"],
    };
    let has_mark =
        |number: usize| marks.iter().any(|mark| source.line(number).comment.contains(mark));
    if has_mark(line) {
        return true;
    }
    // Upwards over attributes and the beginning of the statement, to the comment before it.
    let mut number = line;
    while number > 1 {
        number -= 1;
        let above = source.line(number);
        if above.is_only_comment() {
            return (source.comment_block_start(number)..=number).any(has_mark);
        }
        let is_attribute = above.code.starts_with("#[");
        if above.code.is_empty() || (!is_attribute && above.code.ends_with([';', '{', '}', ','])) {
            return false;
        }
        if has_mark(number) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const HOME: &str = "engine/src/mem/a.rs";

    #[test]
    fn unsafe_stays_in_its_folders() {
        let text = "// SAFETY: nothing is done.\nunsafe {}\n";
        assert!(found(check, &[(HOME, text), ("cli/src/sys.rs", text)]).is_empty());
        let what = "cli/src/run.rs:2: unsafe outside its folders \
                    (the table is in xtask/src/rules.rs)";
        assert_eq!(found(check, &[("cli/src/run.rs", text)]), [what]);
        assert!(found(check, &[("cli/src/run.rs", "#![forbid(unsafe_code)]")]).is_empty());
        let named = "#[unsafe(no_mangle)]\npub extern \"C\" fn a() {}\n";
        assert!(found(check, &[("cli/src/run.rs", named)]).is_empty());
    }

    #[test]
    fn argued_sites_pass() {
        let good = [
            "// SAFETY: a\n// b\nlet c =\n    unsafe { d() };\n",
            "// SAFETY: a\n#[inline]\nunsafe impl A for B {}\n",
            "/// A.\n///\n/// # Safety\n/// B.\n#[inline]\npub unsafe fn a() {}\n",
            "a(unsafe { b() }); // SAFETY: c\n",
            "type A = unsafe extern \"C\" fn(u8);\n",
            "// SAFETY: a\n#[unsafe(no_mangle)]\nfn b() {}\n",
        ];
        for text in good {
            assert!(found(check, &[(HOME, text)]).is_empty(), "{text}");
        }
    }

    #[test]
    fn sites_without_an_argument_fail() {
        let bad = [
            "unsafe {}\n",
            "// SAFETY: a\nb();\nunsafe {}\n",
            "// SAFETY: a\n\nunsafe {}\n",
            "// why\nunsafe impl A for B {}\n",
            "/// A.\npub unsafe fn a() {}\n",
            "#[unsafe(link_section = \"a\")]\nfn b() {}\n",
        ];
        for text in bad {
            assert_eq!(found(check, &[(HOME, text)]).len(), 1, "{text}");
        }
    }
}
