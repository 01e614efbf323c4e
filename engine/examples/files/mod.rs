//! The files that an example reads.
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The files named on the command line, else all of these folders of the repository.
pub(crate) fn named_or_in(folders: &[&str]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
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
