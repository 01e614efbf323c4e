//! Names that are like a wrong one.

/// The name that is most like `text`, if one is like it at all.
pub(super) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A longer text is like nothing here.
    let text: String = text.chars().take(64).collect();
    names
        .map(|name| (strsim::damerau_levenshtein(&text, name), name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
