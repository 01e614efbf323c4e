//! A library that a program has closed is still mapped: what has pointers to it may call them.

mod common;

use ayre_fi::abi::*;
use common::{API, Folder};
use libloading::os::unix::Library;
use std::ptr::{null, null_mut};

#[test]
fn a_closed_library_stays_where_it_is() {
    let folder = Folder::new("closed");
    // SAFETY: the function is the provider's entry, of this type.
    let provider = unsafe {
        let library = Library::new(folder.0.join("libayre-fi.so")).unwrap();
        type Entry = unsafe extern "C" fn() -> *mut Provider;
        let entry = *library.get::<Entry>(b"fi_prov_ini\0").unwrap();
        let provider = entry();
        library.close().unwrap();
        &*provider
    };
    let (getinfo, cleanup) = (provider.getinfo.unwrap(), provider.cleanup.unwrap());
    let mut list = null_mut();
    // SAFETY: a wrong flag, so that nothing is made.
    let status = unsafe {
        let status = getinfo(API, null(), null(), 1, null(), &mut list);
        cleanup();
        status
    };
    assert_eq!(status, -errno::EBADFLAGS);
}
