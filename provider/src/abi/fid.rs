//! The beginning of every object.

use super::tables::ops_tables;
use ayre_guest::c_structs;
use std::ffi::{c_char, c_int, c_void};

c_structs! {
    FIDS:
    struct Fid = "fid" {
        fclass: usize,
        context: *mut c_void,
        ops: *const OpsFid,
    }
}

ops_tables! {
    FID_TABLES:
    struct OpsFid = "fi_ops" {
        close(*mut Fid) -> c_int;
        bind(*mut Fid, *mut Fid, u64) -> c_int;
        control(*mut Fid, c_int, *mut c_void) -> c_int;
        ops_open(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int;
        tostr(*const Fid, *mut c_char, usize) -> c_int;
        ops_set(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int;
    }
}
