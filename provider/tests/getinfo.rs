//! The answers of `fi_info`, and of `fi_getinfo` in several versions.

mod common;

use ayre_fi::abi::*;
use ayre_guest::layout::version;
use common::{API, Folder, Infos, Opened, blank, call, close, core};
use std::ffi::CStr;
use std::process::Command;

fn fi_info(arguments: &[&str]) -> String {
    let folder = Folder::new(&format!("fi-info{}", arguments.concat()));
    let mut command = Command::new("fi_info");
    command.args(arguments).env("FI_PROVIDER_PATH", &folder.0).env("FI_PROVIDER", "ayre");
    let output = command.output().expect("install libfabric-bin");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn text(text: *const std::ffi::c_char) -> &'static CStr {
    // SAFETY: names of an info that the test still has.
    unsafe { CStr::from_ptr(text) }
}

#[test]
fn fi_info_lists_the_provider() {
    assert!(fi_info(&["-l"]).contains("ayre:\n    version: 0.1"));
    let text = fi_info(&["-p", "ayre"]);
    for line in ["provider: ayre", "fabric: ayre-shm", "domain: shm", "type: FI_EP_RDM"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let text = fi_info(&["-p", "ayre", "-v"]);
    assert!(text.contains("src_addrlen: 64"), "{text}");
    assert!(text.contains("caps: [ FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, "), "{text}");
}

#[test]
fn fi_info_lists_the_parameters() {
    let text = fi_info(&["-e"]);
    assert!(text.contains("FI_AYRE_CQ_SIZE"), "{text}");
}

#[test]
fn the_provider_links_no_libfabric_symbol() {
    let folder = Folder::new("nm");
    let names = |what: &str| {
        let library = folder.0.join("libayre-fi.so");
        let output = Command::new("nm").args(["-D", what]).arg(library).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let wants = names("--undefined-only");
    assert!(!wants.lines().any(|line| line.trim_start().starts_with("U fi_")), "{wants}");
    let gives = names("--defined-only");
    let gives: Vec<_> = gives.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(gives, ["fi_prov_ini"]);
}

#[test]
fn versions_old_and_new_are_answered() {
    // SAFETY: it takes nothing.
    let library = unsafe { (core().version)() };
    println!("libfabric {}.{}", library >> 16, library & 0xffff);
    for (major, minor) in [(1, 0), (1, 3), (1, 5), (1, 9), (1, 17)] {
        let api = version(major, minor);
        let mut infos = Infos::hints().get_at(api, None, None, 0).unwrap();
        assert_eq!(text(infos.fabric().name), c"ayre-shm");
        assert_eq!(text(infos.fabric().prov_name), c"ayre");
        assert_eq!(text(infos.domain().name), c"shm");
        assert_eq!(infos.fabric().api_version, api);
        let mode = if api < version(1, 5) { MR_SCALABLE } else { 0 };
        assert_eq!(infos.domain().mr_mode, mode);
        assert!(infos.info().next.is_null());
    }
}

#[test]
fn wishes_that_cannot_be_met_have_no_answer() {
    core();
    let refused = |change: fn(&mut Info)| Infos::hints_with(change).get().unwrap_err();
    assert_eq!(refused(|info| info.caps = COLLECTIVE), -errno::ENODATA);
    assert_eq!(refused(|info| info.addr_format = SOCKADDR_IN), -errno::ENODATA);
    let mut hints = Infos::hints();
    hints.ep().r#type = EP_MSG;
    assert_eq!(hints.get().unwrap_err(), -errno::ENODATA);
    let mut hints = Infos::hints();
    hints.domain().domain = 0x1000 as *mut FidDomain;
    assert_eq!(hints.get().unwrap_err(), -errno::ENODATA);
    hints.domain().domain = std::ptr::null_mut();
    assert!(hints.get().is_ok());
}

/// Open MPI 5 shares its fabric among its parts, and closes it when the last has let go.
#[test]
fn an_answer_names_the_fabric_that_is_open() {
    let opened = [Opened::new(&Infos::hints()), Opened::new(&Infos::hints())];
    for one in &opened {
        let mut hints = Infos::hints();
        hints.domain().domain = one.domain;
        let mut infos = hints.get().unwrap();
        assert_eq!(infos.domain().domain, one.domain);
        assert_eq!(infos.fabric().fabric, one.fabric);
    }
    assert!(!Infos::hints().get().unwrap().fabric().fabric.is_null());
}

#[test]
fn a_thread_of_ours_is_on_request() {
    let (manual, auto) = (PROGRESS_MANUAL, PROGRESS_AUTO);
    for (asked, told) in [(0, manual), (manual, manual), (auto, auto)] {
        let mut hints = Infos::hints();
        hints.domain().data_progress = asked;
        assert_eq!(hints.get().unwrap().domain().data_progress, told);
    }
}

#[test]
fn modes_of_memory_are_each_on_request() {
    for mode in [0, MR_VIRT_ADDR, MR_PROV_KEY, MR_VIRT_ADDR | MR_ALLOCATED | MR_PROV_KEY] {
        let mut hints = Infos::hints();
        hints.domain().mr_mode = mode | MR_LOCAL | MR_ENDPOINT;
        assert_eq!(hints.get().unwrap().domain().mr_mode, mode);
    }
}

/// A program that has not chosen may insert where it likes, and tables have numbers to count on.
#[test]
fn a_vector_is_of_the_kind_that_was_asked_for() {
    for (asked, kind) in [(AV_UNSPEC, AV_TABLE), (AV_MAP, AV_MAP), (AV_TABLE, AV_TABLE)] {
        let mut hints = Infos::hints();
        hints.domain().av_type = asked;
        let mut opened = Opened::new(&hints);
        assert_eq!(opened.infos.domain().av_type, asked);
        let (mut attr, mut av) = (AvAttr { r#type: AV_UNSPEC, ..blank() }, std::ptr::null_mut());
        let status = call!(opened.domain, ops.av_open(&mut attr, &mut av, std::ptr::null_mut()));
        assert_eq!((status, attr.r#type, close(av)), (0, kind, 0));
    }
}

#[test]
fn nodes_and_services_become_addresses() {
    let hints = Infos::hints();
    let infos = hints.get_at(API, Some("127.0.0.1"), Some("7471"), SOURCE).unwrap();
    let info = infos.info();
    assert!(!info.src_addr.is_null() && info.dest_addr.is_null());
    assert_eq!((info.src_addrlen, info.addr_format & PROV_SPECIFIC), (64, PROV_SPECIFIC));
    let infos = hints.get_at(API, Some("localhost"), Some("7471"), 0).unwrap();
    assert!(!infos.info().src_addr.is_null() && !infos.info().dest_addr.is_null());
    for (node, service, flags) in [
        (Some("192.0.2.1"), Some("7471"), SOURCE),
        (Some("localhost"), Some("7471"), NUMERICHOST),
        (Some("127.0.0.1"), Some("no service"), 0),
        (Some("fi_ayre://nowhere"), None, 0),
        (None, None, SOURCE),
    ] {
        let refused = hints.get_at(API, node, service, flags).unwrap_err();
        assert_eq!(refused, -errno::ENODATA, "{node:?} {service:?}");
    }
}

/// A program may hand in what it was handed out.
#[test]
fn an_answer_is_a_good_question() {
    let hints = Infos::hints();
    let first = hints.get_at(API, Some("127.0.0.1"), Some("7471"), 0).unwrap();
    let second = first.get().unwrap();
    assert_eq!(second.info().dest_addrlen, first.info().dest_addrlen);
    // SAFETY: both addresses are as long as is said.
    let bytes = |infos: &Infos| unsafe {
        let info = infos.info();
        std::slice::from_raw_parts(info.dest_addr.cast::<u8>(), info.dest_addrlen).to_vec()
    };
    assert_eq!(bytes(&first), bytes(&second));
}
