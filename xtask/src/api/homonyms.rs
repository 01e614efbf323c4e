//! Names of types that mean two things within a crate.

use std::collections::{BTreeMap, BTreeSet};

/// The kinds of items that have the name of a type. `use` is a type of another crate, or a value.
const TYPES: [&str; 7] = ["struct", "enum", "union", "trait", "unsafe trait", "type", "use"];

/// The other kinds of items that stand in a module.
const OTHERS: [&str; 5] = ["mod", "const fn", "fn", "const", "static"];

/// The paths of types that have one name, where they are not one type: a line for each name. A type
/// that several modules export has the same members and implementations at each path.
pub(super) fn find(items: &str) -> Vec<String> {
    let mut types: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    let mut current: Option<&mut String> = None;
    for line in items.lines() {
        if let Some((is_type, path)) = item_of_module(line) {
            let name = path.rsplit("::").next().unwrap_or(path);
            current = is_type.then(|| types.entry(name).or_default().entry(path).or_default());
        }
        if let Some(text) = &mut current {
            text.push_str(line);
            text.push('\n');
        }
    }
    let is_ambiguous = |(name, paths): &(&str, BTreeMap<&str, String>)| {
        let types: BTreeSet<_> =
            paths.values().map(|text| without(paths.keys(), text, name)).collect();
        types.len() > 1
    };
    let line = |(name, paths): (&str, BTreeMap<&str, String>)| {
        let paths = paths.into_keys().collect::<Vec<_>>().join(", ");
        format!("{name} means two things: {paths}")
    };
    types.into_iter().filter(is_ambiguous).map(line).collect()
}

/// Whether an item is a type, and its path, if it stands in a module and not in a type.
fn item_of_module(line: &str) -> Option<(bool, &str)> {
    // Attributes come first.
    let item =
        line.split_once("] pub ").map(|(_, item)| item).or_else(|| line.strip_prefix("pub "))?;
    let starts =
        |kinds: &[&str]| kinds.iter().find_map(|kind| item.strip_prefix(kind)?.strip_prefix(' '));
    let (is_type, rest) = match starts(&TYPES) {
        Some(rest) => (true, rest),
        None => (false, starts(&OTHERS)?),
    };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let path = rest[..end.unwrap_or(rest.len())].trim_end_matches(':');
    let is_in_type =
        path.rsplit("::").nth(1).is_some_and(|owner| owner.starts_with(char::is_uppercase));
    (!is_in_type).then_some((is_type, path))
}

/// A text in which the longer paths of a type are its name.
fn without<'a>(paths: impl Iterator<Item = &'a &'a str>, text: &str, name: &str) -> String {
    let mut paths: Vec<_> = paths.collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    paths.iter().fold(text.to_owned(), |text, path| text.replace(**path, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_at_two_paths_is_one_type() {
        let items = "pub mod a\npub mod a::b\npub struct a::b::C<T>\npub a::b::C::len: usize\n\
                     impl<T> a::C<T>\npub fn a::C<T>::d(self)\npub fn a::b::d()\n\
                     pub struct a::C<T>\npub a::C::len: usize\nimpl<T> a::C<T>\n\
                     pub fn a::C<T>::d(self)\npub use a::E\npub use a::b::E\n";
        assert!(find(items).is_empty());
    }

    #[test]
    fn two_types_of_one_name_are_named() {
        let items = "pub struct a::b::C\npub a::b::C::len: usize\n#[repr(u8)] pub enum a::d::C\n\
                     pub a::d::C::Len = 0\npub fn a::d::len()\npub use a::E\n\
                     pub type a::b::E = u8\n\
                     pub type a::b::Way::Item = u8\npub type a::d::Way::Item = u16\n";
        assert_eq!(
            find(items),
            ["C means two things: a::b::C, a::d::C", "E means two things: a::E, a::b::E"]
        );
    }
}
