//! Private folders, and the job directories within them.
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder that only this user can enter; it goes with its value.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Makes one.
    pub fn new() -> Self {
        let name = format!("ayre-test-{:016x}", RandomState::new().build_hasher().finish());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).expect("a private folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path within it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The files in it.
    pub fn entries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
