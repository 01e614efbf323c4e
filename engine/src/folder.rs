//! The folder of one user's ports: `ayre-<user's number>`.
//!
//! The user owns it and nobody else can enter it. Its path may contain no link. Once it is open,
//! later changes of the path have no effect.
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::fd::AsRawFd;
use rustix::fs::{
    Access, AtFlags, Dir, Mode, OFlags, RenameFlags, Stat, access, chmod, fstat, mkdir,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::process::geteuid;
use std::path::{Path, PathBuf};

/// An open folder of ports.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: Descriptor,
    path: PathBuf,
}

impl Folder {
    /// Opens this user's folder, and makes it where there is none. None where it cannot be made, or
    /// where somebody else could enter it.
    // spec: WIRE-10
    pub(crate) fn make() -> Option<Self> {
        let path = paths().into_iter().find(|path| {
            let made = mkdir(path, Mode::RWXU);
            if made.is_ok() {
                // The user's umask may have removed rights that the owner needs.
                let _ = chmod(path, Mode::RWXU);
            }
            matches!(made, Ok(()) | Err(Errno::EXIST)) && Self::open(path).is_some()
        })?;
        Self::open(&path)
    }

    /// All folders of this user that exist, at any of the possible places.
    pub(crate) fn all() -> Vec<Self> {
        paths().iter().filter_map(|path| Self::open(path)).collect()
    }

    fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let folder = descriptor::open(path, flags, Mode::empty()).ok()?;
        is_private(&fstat(&folder).ok()?).then(|| Self { folder, path: path.to_owned() })
    }

    /// Names of the ports in the folder.
    pub(crate) fn ports(&self) -> Vec<String> {
        self.names().filter(|name| !name.starts_with('.') && name.ends_with(".sock")).collect()
    }

    /// Names of all files in the folder.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let entries = Dir::read_from(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
    }

    /// The address to which a file's socket is bound or connected. It is short, however long the
    /// folder's path is, unless `/proc` does not show this process its own descriptors.
    pub(crate) fn address(&self, name: &str) -> Result<SocketAddrUnix, Errno> {
        if access("/proc/self/fd", Access::EXEC_OK).is_err() {
            return SocketAddrUnix::new(self.path.join(name));
        }
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()))
    }

    /// Renames a file, unless another file has the new name.
    pub(crate) fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        renameat_with(&self.folder, old, &self.folder, new, RenameFlags::NOREPLACE)
    }

    pub(crate) fn remove(&self, name: &str) {
        // Another process may have removed it.
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }
}

/// Where the folder may be: in the place for files of running programs, else where every user may
/// write.
fn paths() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let bases = runtime.filter(|path| path.is_absolute()).into_iter().chain(["/tmp".into()]);
    bases.map(|base| base.join(format!("ayre-{}", geteuid().as_raw()))).collect()
}

fn is_private(stat: &Stat) -> bool {
    let mode = Mode::from_raw_mode(stat.st_mode);
    stat.st_uid == geteuid().as_raw() && !mode.intersects(Mode::RWXG | Mode::RWXO)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fs::{rmdir, symlink, unlink};

    // spec: WIRE-10
    #[test]
    fn only_a_folder_of_our_own_is_entered() {
        let base = std::env::temp_dir().join(format!("ayre-folder-{}", std::process::id()));
        let link = base.with_extension("link");
        mkdir(&base, Mode::RWXU).unwrap();
        assert!(Folder::open(&base).is_some());
        symlink(&base, &link).unwrap();
        assert!(Folder::open(&link).is_none(), "through a link");
        for open_to in [Mode::XGRP, Mode::WOTH, Mode::ROTH] {
            chmod(&base, Mode::RWXU | open_to).unwrap();
            assert!(Folder::open(&base).is_none(), "open to {open_to:?}");
        }
        unlink(&link).unwrap();
        rmdir(&base).unwrap();
        assert!(Folder::open(&base).is_none());
    }
}
