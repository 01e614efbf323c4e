//! The key of a job: what endpoints of several hosts may share besides their addresses.
use crate::error::SetupError;
use crate::link::JobKey;
use crate::text_file;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bits of a file's mode by which others than its owner get at it.
const OF_OTHERS: u32 = 0o077;

/// Reads a key from a file that nobody but its owner, this user or root, may read: 64 hexadecimal
/// digits.
// spec: SEAL-16
pub(super) fn read(path: &Path) -> Result<JobKey, SetupError> {
    let wrong = |why: &dyn std::fmt::Display| {
        let path = path.display();
        SetupError::Environment(format!("the key of AYRE_KEY (FI_AYRE_KEY), {path}: {why}"))
    };
    let found = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if found.mode() & OF_OTHERS != 0 {
        let mode = found.mode() & 0o777;
        return Err(wrong(&format!("its mode is {mode:o}, and others may not use it: chmod 600")));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user && found.uid() != 0 {
        return Err(wrong(&format!("it belongs to user {}, and not to {user}", found.uid())));
    }
    let text = text_file::read(path).map(zeroize::Zeroizing::new);
    let key = JobKey::from_hex(text.map_err(|error| wrong(&error))?.trim_end());
    key.ok_or_else(|| wrong(&"a key has 64 hexadecimal digits"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    // spec: SEAL-16
    #[test]
    fn a_key_that_others_may_read_or_that_is_none_is_an_error_that_says_so() {
        let folder = std::env::temp_dir().join(format!("ayre-key-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("key");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(&path).map(drop).map_err(|error| error.to_string())
        };
        let good = "0123456789abcdef".repeat(4) + "\n";
        assert_eq!(read(&good, 0o600), Ok(()));
        assert!(read(&good, 0o640).unwrap_err().contains("mode is 640"));
        assert!(read(&good, 0o604).unwrap_err().contains("chmod 600"));
        for text in ["", "0123", &good.replace('a', "g"), &(good.clone() + &good)] {
            assert!(read(text, 0o600).unwrap_err().contains("64 hexadecimal digits"), "{text}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let missing = super::read(&path).unwrap_err().to_string();
        assert!(missing.contains("FI_AYRE_KEY") && missing.contains("No such file"), "{missing}");
    }
}
