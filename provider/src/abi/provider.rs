//! Structures between a provider and the library's core.

use super::objects::{FabricAttr, FidFabric, Info};
use ayre_guest::c_structs;
use std::ffi::{c_char, c_int, c_void};

/// Asks a provider what it has.
pub type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const Info,
    *mut *mut Info,
) -> c_int;

/// Opens a fabric of a provider.
pub type OpenFabric =
    unsafe extern "C" fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int;

c_structs! {
    PROVIDER:
    struct Context = "fi_context" {
        internal: [*mut c_void; 4],
    }

    struct Context2 = "fi_context2" {
        internal: [*mut c_void; 8],
    }

    struct Provider = "fi_provider" {
        version: u32,
        fi_version: u32,
        context: Context,
        name: *const c_char,
        getinfo: Option<GetInfo>,
        fabric: Option<OpenFabric>,
        cleanup: Option<unsafe extern "C" fn()>,
    }

    struct Param = "fi_param" {
        name: *const c_char,
        r#type: u32,
        help_string: *const c_char,
        value: *const c_char,
    }
}
