//! Text files that a user has written and named in a variable.
use crate::sys::descriptor;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Returns the text of a file. A pipe, a device and a file without an end are errors.
// spec: LIFE-30
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = File::from(descriptor::open(path, flags, Mode::empty())?.into_owned());
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    // Allocated at once, so that growing leaves no copies of a key behind.
    let mut text = String::with_capacity(about.len().min(BYTES_MAX) as usize + 1);
    if file.take(BYTES_MAX + 1).read_to_string(&mut text)? as u64 > BYTES_MAX {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};

    // spec: LIFE-30
    #[test]
    fn special_and_overlong_files_are_errors() {
        let folder = std::env::temp_dir().join(format!("ayre-text-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("file");
        std::fs::write(&path, "a text").unwrap();
        assert_eq!(read(&path).unwrap(), "a text");
        std::fs::write(&path, vec![b'a'; BYTES_MAX as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("more than 1 MiB"));
        let pipe = folder.join("pipe");
        let (kind, mode) = (FileType::Fifo, Mode::RUSR);
        mknodat(CWD, &pipe, kind, mode, 0).unwrap();
        for other in [&pipe, &folder, Path::new("/dev/zero")] {
            assert!(read(other).unwrap_err().to_string().contains("no ordinary file"), "{other:?}");
        }
        assert_eq!(read(&folder.join("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
