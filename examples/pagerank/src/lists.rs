//! Finding apt's package lists and opening them, compressed or not.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Where apt keeps the lists that it has fetched.
pub(crate) const DIRECTORY: &str = "/var/lib/apt/lists";

/// apt's own decompressor: it reads whatever format this machine's apt was told to store.
const HELPER: &str = "/usr/lib/apt/apt-helper";

const COMPRESSED: [&str; 6] = ["lz4", "gz", "xz", "zst", "bz2", "lzma"];

/// All package lists in `directory`, of every source, component and architecture, by name.
pub(crate) fn find(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut lists = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry.with_context(|| directory.display().to_string())?.path();
        if path.file_name().is_some_and(|name| is_list(&name.to_string_lossy())) {
            lists.push(path);
        }
    }
    lists.sort();
    ensure!(
        !lists.is_empty(),
        "no package lists in {}: fetch them with 'apt-get update', or use '--graph small'",
        directory.display()
    );
    Ok(lists)
}

/// Hands the uncompressed contents of the list at `path` to `read`.
pub(crate) fn open<T>(path: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<T>) -> Result<T> {
    let compressed = extension(path).is_some_and(|extension| COMPRESSED.contains(&extension));
    let result = if compressed {
        read_compressed(path, read)
    } else {
        File::open(path).map_err(Into::into).and_then(|file| read(&mut BufReader::new(file)))
    };
    result.with_context(|| path.display().to_string())
}

fn is_list(name: &str) -> bool {
    name.ends_with("_Packages")
        || name.rsplit_once('.').is_some_and(|(stem, extension)| {
            stem.ends_with("_Packages") && COMPRESSED.contains(&extension)
        })
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

fn read_compressed<T>(path: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<T>) -> Result<T> {
    // An absolute path cannot be taken for an option.
    let path = std::path::absolute(path)?;
    let mut helper = Helper::start(&path).with_context(|| format!("cannot run {HELPER}"))?;
    let result = read(&mut helper.output)?;
    let status = helper.child.wait()?;
    ensure!(status.success(), "apt-helper could not decompress it ({status})");
    Ok(result)
}

/// A running decompressor; it does not outlive this value.
struct Helper {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Helper {
    fn start(path: &Path) -> io::Result<Self> {
        let mut command = Command::new(HELPER);
        command.arg("cat-file").arg(path).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().expect("stdout is a pipe");
        Ok(Self { child, output: BufReader::with_capacity(1 << 16, output) })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Both do nothing after a `wait` that succeeded; otherwise the reader gave up early.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lists() {
        let table = [
            ("deb.debian.org_debian_dists_bookworm_main_binary-amd64_Packages", true),
            ("deb.debian.org_debian_dists_bookworm_main_binary-i386_Packages.lz4", true),
            ("host_dists_x_main_binary-all_Packages.xz", true),
            ("host_dists_x_main_binary-all_Packages.diff_Index", false),
            ("host_dists_x_InRelease", false),
            ("host_dists_x_main_Packages.txt", false),
            ("host_dists_x_main_source_Sources.lz4", false),
            ("Packages", false),
            ("lock", false),
        ];
        for (name, expected) in table {
            assert_eq!(is_list(name), expected, "{name}");
        }
    }

    #[test]
    fn a_directory_without_lists_is_an_error_that_helps() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = find(&directory).unwrap_err().to_string();
        assert!(error.contains("apt-get update"), "{error}");
        assert!(find(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn errors_name_the_list() {
        let error = open(Path::new("/nonexistent/x_Packages"), |_| Ok(())).unwrap_err();
        assert!(format!("{error:#}").starts_with("/nonexistent/x_Packages: No such file"));
    }
}
