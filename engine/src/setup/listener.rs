//! Where a port's callers knock.
use crate::error::SetupError;
use crate::sys::descriptor;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};
use std::path::{Path, PathBuf};

/// Callers that may wait.
pub(super) const BACKLOG: i32 = 1024;

/// Where peers knock; its path, if it has one, goes with it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) socket: OwnedFd,
    path: Option<PathBuf>,
}

impl Listener {
    pub(crate) fn at_path(path: &Path) -> Result<Self, SetupError> {
        let mut listener = Self::at(&socket_address(path)?)?;
        listener.path = Some(path.to_owned());
        Ok(listener)
    }

    /// Of an address that is no path.
    pub(crate) fn at(address: &SocketAddrUnix) -> Result<Self, SetupError> {
        let socket = control_socket()?;
        bind(&socket, address).map_err(SetupError::os("bind"))?;
        listen(&socket, BACKLOG).map_err(SetupError::os("listen"))?;
        Ok(Self { socket, path: None })
    }

    /// Gives its path another name.
    pub(crate) fn rename(&mut self, path: PathBuf) -> std::io::Result<()> {
        if let Some(old) = &self.path {
            std::fs::rename(old, &path)?;
            self.path = Some(path);
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It may have been renamed or removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

pub(super) fn socket_address(path: &Path) -> Result<SocketAddrUnix, SetupError> {
    SocketAddrUnix::new(path).map_err(SetupError::os("socket path"))
}

pub(super) fn control_socket() -> Result<OwnedFd, SetupError> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::empty());
    descriptor::socket(AddressFamily::UNIX, kind, flags, None).map_err(SetupError::os("socket"))
}
