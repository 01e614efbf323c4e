//! The real libfabric, opened at run time, with the provider where it looks for providers.
//!
//! `AYRE_LIBFABRIC` names another libfabric than the system's.

#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

use ayre_fi::abi::*;
use ayre_guest::layout::version;
use libloading::os::unix::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::{env, fs};

/// The version that most tests speak.
pub(crate) const API: u32 = version(1, 17);

/// Calls a function of an object's table.
macro_rules! call {
    ($object:expr, $table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {{
        let object = $object;
        // SAFETY: the object is open, its table is where its head says, and the test passes what
        // the manual page has for this function.
        unsafe {
            (*(*object).$table).$slot.expect("no slot is empty")(object, $($argument),*)
        }
    }};
}
pub(crate) use call;

pub(crate) mod ends;
pub(crate) mod scene;

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const Info,
    *mut *mut Info,
) -> c_int;

/// The functions that programs link.
pub(crate) struct Core {
    pub(crate) version: unsafe extern "C" fn() -> u32,
    getinfo: GetInfo,
    freeinfo: unsafe extern "C" fn(*mut Info),
    dupinfo: unsafe extern "C" fn(*const Info) -> *mut Info,
    fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
}

/// A folder with the provider in it, under the name that libfabric looks for.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(tag: &str) -> Self {
        let program = env::current_exe().unwrap();
        // Beside tests, and one folder above examples.
        let folders = program.ancestors().skip(1).take(2);
        let built = folders.map(|folder| folder.join("libayre_fi.so")).find(|it| it.exists());
        let built = built.expect("the provider is built");
        let folder = env::temp_dir().join(format!("ayre-{tag}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::copy(built, folder.join("libayre-fi.so")).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// libfabric, which has loaded the provider.
pub(crate) fn core() -> &'static Core {
    static CORE: OnceLock<Core> = OnceLock::new();
    CORE.get_or_init(|| {
        let folder = Folder::new("core");
        // SAFETY: every test begins here, so no other thread looks at the environment.
        unsafe { env::set_var("FI_PROVIDER_PATH", &folder.0) };
        let name = env::var_os("AYRE_LIBFABRIC").unwrap_or_else(|| "libfabric.so.1".into());
        // SAFETY: the functions have these types in every version, and the library stays open.
        unsafe {
            let library = Library::new(&name).expect("install libfabric1");
            let core = Core {
                version: *library.get(b"fi_version\0").unwrap(),
                getinfo: *library.get(b"fi_getinfo\0").unwrap(),
                freeinfo: *library.get(b"fi_freeinfo\0").unwrap(),
                dupinfo: *library.get(b"fi_dupinfo\0").unwrap(),
                fabric: *library.get(b"fi_fabric\0").unwrap(),
            };
            std::mem::forget(library);
            // The first call reads the folder.
            let mut list = null_mut();
            (core.getinfo)(API, null(), null(), 0, null(), &mut list);
            (core.freeinfo)(list);
            core
        }
    })
}

/// A list that `fi_getinfo` has returned, or hints for it.
#[derive(Debug)]
pub(crate) struct Infos(pub(crate) *mut Info);

impl Infos {
    fn ask(
        api: u32,
        node: Option<&str>,
        service: Option<&str>,
        flags: u64,
        hints: *const Info,
    ) -> Result<Self, c_int> {
        let text = |text: Option<&str>| text.map(|text| CString::new(text).unwrap());
        let (node, service) = (text(node), text(service));
        let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
        let mut list = null_mut();
        // SAFETY: texts and hints are null or there, and there is a place for the list.
        let status = unsafe {
            (core().getinfo)(api, pointer(&node), pointer(&service), flags, hints, &mut list)
        };
        if status == 0 { Ok(Self(list)) } else { Err(status) }
    }

    /// Blank hints that ask for this provider.
    pub(crate) fn hints() -> Self {
        // SAFETY: null asks for a blank one.
        let hints = Self(unsafe { (core().dupinfo)(null()) });
        // SAFETY: it comes with attributes; the name is freed with it.
        unsafe { (*(*hints.0).fabric_attr).prov_name = libc::strdup(c"ayre".as_ptr()) };
        hints
    }

    /// Blank hints, changed.
    pub(crate) fn hints_with(change: impl FnOnce(&mut Info)) -> Self {
        let hints = Self::hints();
        // SAFETY: it is there, and only here.
        change(unsafe { &mut *hints.0 });
        hints
    }

    /// The answer of the provider to these hints.
    pub(crate) fn get(&self) -> Result<Self, c_int> {
        self.get_at(API, None, None, 0)
    }

    /// The offers for a version, a node and a service.
    pub(crate) fn get_at(
        &self,
        api: u32,
        node: Option<&str>,
        service: Option<&str>,
        flags: u64,
    ) -> Result<Self, c_int> {
        Self::ask(api, node, service, flags, self.0)
    }

    pub(crate) fn info(&self) -> &Info {
        // SAFETY: it is there for as long as `self` is.
        unsafe { &*self.0 }
    }

    pub(crate) fn domain(&mut self) -> &mut DomainAttr {
        // SAFETY: as above, and only here.
        unsafe { &mut *self.info().domain_attr }
    }

    pub(crate) fn fabric(&mut self) -> &mut FabricAttr {
        // SAFETY: as above.
        unsafe { &mut *self.info().fabric_attr }
    }

    pub(crate) fn ep(&mut self) -> &mut EpAttr {
        // SAFETY: as above.
        unsafe { &mut *self.info().ep_attr }
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: the list is the core's, and nobody else has it.
        unsafe { (core().freeinfo)(self.0) };
    }
}

/// The beginning of an object.
pub(crate) fn fid<T>(object: *mut T) -> *mut Fid {
    object.cast()
}

pub(crate) fn close<T>(object: *mut T) -> c_int {
    call!(fid(object), ops.close())
}

pub(crate) fn bind<T, U>(object: *mut T, other: *mut U, flags: u64) -> c_int {
    call!(fid(object), ops.bind(fid(other), flags))
}

pub(crate) fn control<T, A>(object: *mut T, command: c_int, argument: *mut A) -> c_int {
    call!(fid(object), ops.control(command, argument.cast()))
}

/// Opens a fabric.
pub(crate) fn try_fabric(attr: &mut FabricAttr) -> Result<*mut FidFabric, c_int> {
    let mut fabric = null_mut();
    // SAFETY: the attributes are those of an info, with names that are there.
    let status = unsafe { (core().fabric)(attr, &mut fabric, null_mut()) };
    if status == 0 { Ok(fabric) } else { Err(status) }
}

/// A fabric and a domain; they are closed with it, which nothing may prevent.
pub(crate) struct Opened {
    pub(crate) infos: Infos,
    pub(crate) fabric: *mut FidFabric,
    pub(crate) domain: *mut FidDomain,
}

impl Opened {
    /// With what `fi_getinfo` answers to these hints.
    pub(crate) fn new(hints: &Infos) -> Self {
        let mut infos = hints.get().unwrap();
        let fabric = try_fabric(infos.fabric()).unwrap();
        let mut domain = null_mut();
        assert_eq!(call!(fabric, ops.domain(infos.0, &mut domain, null_mut())), 0);
        Self { infos, fabric, domain }
    }

    /// One of each threading level that has tables of its own.
    pub(crate) fn of_each_kind() -> [Self; 2] {
        [THREAD_SAFE, THREAD_DOMAIN].map(|threading| {
            let mut hints = Infos::hints();
            hints.domain().threading = threading;
            let mut opened = Self::new(&hints);
            assert_eq!(opened.infos.domain().threading, threading);
            opened
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!((close(self.domain), close(self.fabric)), (0, 0));
        }
    }
}

/// Attributes that are all zeros, for a test to change.
pub(crate) fn blank<T: Copy>() -> T {
    // SAFETY: the attributes of libfabric are numbers and pointers, for which zeros are values.
    unsafe { std::mem::zeroed() }
}

pub(crate) fn open_cq(
    opened: &Opened,
    change: impl FnOnce(&mut CqAttr),
) -> Result<*mut FidCq, c_int> {
    let (mut attr, mut cq) = (blank(), null_mut());
    change(&mut attr);
    let context = 0xc0 as *mut c_void;
    match call!(opened.domain, ops.cq_open(&mut attr, &mut cq, context)) {
        0 => Ok(cq),
        status => Err(status),
    }
}

pub(crate) fn open_cntr(opened: &Opened, wait_obj: u32) -> *mut FidCntr {
    let (mut attr, mut cntr) = (CntrAttr { wait_obj, ..blank() }, null_mut());
    let context = 0xc1 as *mut c_void;
    assert_eq!(call!(opened.domain, ops.cntr_open(&mut attr, &mut cntr, context)), 0);
    cntr
}

pub(crate) fn open_eq(opened: &Opened, flags: u64, wait_obj: u32) -> *mut FidEq {
    let (mut attr, mut eq) = (EqAttr { flags, wait_obj, ..blank() }, null_mut());
    assert_eq!(call!(opened.fabric, ops.eq_open(&mut attr, &mut eq, null_mut())), 0);
    eq
}

pub(crate) fn open_av(opened: &Opened, flags: u64) -> *mut FidAv {
    let (mut attr, mut av) = (AvAttr { flags, ..blank() }, null_mut());
    assert_eq!(call!(opened.domain, ops.av_open(&mut attr, &mut av, null_mut())), 0);
    assert_eq!(attr.r#type, AV_TABLE);
    av
}

/// Registers memory, which stays with the caller, for as long as it is registered.
pub(crate) fn register(
    opened: &Opened,
    memory: &[u8],
    access: u64,
    key: u64,
) -> Result<*mut FidMr, c_int> {
    let (place, len) = (memory.as_ptr().cast(), memory.len());
    let mut mr = null_mut();
    // SAFETY: the table is the domain's, and the memory is there.
    let status = unsafe {
        let reg = (*(*opened.domain).mr).reg.unwrap();
        reg(fid(opened.domain), place, len, access, 0, key, 0, &mut mr, null_mut())
    };
    if status == 0 { Ok(mr) } else { Err(status) }
}
