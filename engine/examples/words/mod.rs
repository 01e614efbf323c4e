//! Words of text files: what the examples that count words have in common.
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// How often each word occurs.
pub(crate) type Counts = HashMap<String, u64>;

/// The files named on the command line, or all files of these folders of the repository.
pub(crate) fn files(folders: &[&str]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let named: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![];
    for folder in folders {
        find(&root.join(folder), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Result<String, Box<dyn Error>> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The words of a text, in small letters.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Counts the words of a text.
pub(crate) fn count(counts: &mut Counts, text: &str) {
    for word in words(text) {
        *counts.entry(word).or_default() += 1;
    }
}

/// Prints the commonest words, and compares all with a count of the same files in this process
/// alone. Words shorter than `shortest` bytes do not count.
pub(crate) fn report(
    counts: &Counts,
    files: &[PathBuf],
    shortest: usize,
) -> Result<(), Box<dyn Error>> {
    let mut alone = Counts::new();
    for file in files {
        count(&mut alone, &read(file)?);
    }
    alone.retain(|word, _| word.len() >= shortest);
    if *counts != alone {
        return Err("the counts differ from those of one process".into());
    }
    let mut common: Vec<_> = counts.iter().collect();
    common.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), *word));
    for (word, count) in common.into_iter().take(5) {
        println!("{count:8} {word}");
    }
    let total: u64 = counts.values().sum();
    println!("{total} words of {} files, counted as one process counts them", files.len());
    Ok(())
}
